# SPDX-License-Identifier: Apache-2.0
"""Clips of a shape that moves, with captions.  Plain Python: no library is needed.

    shapes.py FOLDER    writes the clips from which `make demo-wan` learns what a star is, and their captions
"""
import math
import os
import random
import struct
import sys
import zlib

SIDE, FRAMES = 96, 9
GROUND = (18, 20, 28)
COLORS = {'red': (230, 60, 50), 'green': (60, 200, 80), 'blue': (70, 110, 240), 'yellow': (240, 210, 60),
          'purple': (175, 80, 215), 'cyan': (60, 210, 220), 'white': (240, 240, 240)}
MOTIONS = {'left': (-1, 0), 'right': (1, 0), 'up': (0, -1), 'down': (0, 1)}
# Points, radius of the corners between them, rotation, radius in pixels.  A polygon is a star with blunt points.
SHAPES = {'circle': (40, math.cos(math.pi / 40), 0, 14), 'square': (4, math.cos(math.pi / 4), math.pi / 4, 17),
          'triangle': (3, math.cos(math.pi / 3), -math.pi / 2, 19), 'star': (5, 0.4, -math.pi / 2, 20)}


def caption(color, shape, motion=None):
    return f'a {color} {shape}' + (f' moving {motion}' if motion else '')


def path(motion, chance):
    """The centre in each frame."""
    dx, dy = MOTIONS[motion]
    speed, along, across = chance.uniform(4, 5.5), chance.uniform(-6, 6), chance.uniform(-16, 16)
    for t in range(FRAMES):
        way = along + speed * (t - (FRAMES - 1) / 2)
        yield SIDE / 2 + dx * way + dy * across, SIDE / 2 + dy * way + dx * across


def frame(shape, color, x0, y0, scale):
    """The bytes of the frame, in RGB."""
    points, inner, turn, radius = SHAPES[shape]
    radius *= scale
    half = math.pi / points
    bx, by = radius * inner * math.cos(half), radius * inner * math.sin(half)
    length = math.hypot(bx - radius, by)
    rows = [bytearray(GROUND * SIDE) for _ in range(SIDE)]
    for y in range(max(0, int(y0 - radius - 1)), min(SIDE, int(y0 + radius + 2))):
        for x in range(max(0, int(x0 - radius - 1)), min(SIDE, int(x0 + radius + 2))):
            dx, dy = x + 0.5 - x0, y + 0.5 - y0
            r, a = math.hypot(dx, dy), abs((math.atan2(dy, dx) - turn + half) % (2 * half) - half)
            inside = ((bx - radius) * r * math.sin(a) - by * (r * math.cos(a) - radius)) / length
            cover = min(1.0, max(0.0, inside + 0.5))
            rows[y][3 * x:3 * x + 3] = bytes(round(g + (c - g) * cover) for g, c in zip(GROUND, COLORS[color]))
    return rows


def write_png(name, rows):
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    size = struct.pack('>IIBBBBB', len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    with open(name, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', size) + chunk(b'IDAT', zlib.compress(b''.join(b'\0' + bytes(r) for r in rows), 9))
                + chunk(b'IEND', b''))


def write_avi(name, frames, rate=16):
    """A clip without compression; each frame is a list of rows."""
    height, width = len(frames[0]), len(frames[0][0]) // 3

    def chunk(kind, data):
        return kind + struct.pack('<I', len(data)) + data + b'\0' * (len(data) % 2)

    def bgr(rows):  # from the last row on, each row a multiple of four bytes
        data = bytearray()
        for row in reversed(rows):
            swapped = bytearray(row)
            swapped[0::3], swapped[2::3] = row[2::3], row[0::3]
            data += swapped + b'\0' * (-len(row) % 4)
        return bytes(data)
    pictures = [bgr(rows) for rows in frames]
    size = len(pictures[0])
    main = struct.pack('<10I16x', 1000000 // rate, size * rate, 0, 0x10, len(frames), 0, 1, size, width, height)
    stream = b'vidsDIB ' + struct.pack('<10I4H', 0, 0, 0, 1, rate, 0, len(frames), size, 0, 0, 0, 0, width, height)
    picture = struct.pack('<IiiHHIIiiII', 40, width, height, 1, 24, 0, size, 0, 0, 0, 0)
    header = chunk(b'LIST', b'hdrl' + chunk(b'avih', main) + chunk(b'LIST', b'strl' + chunk(b'strh', stream) + chunk(b'strf', picture)))
    body = chunk(b'LIST', b'movi' + b''.join(chunk(b'00db', p) for p in pictures))
    index = b''.join(b'00db' + struct.pack('<3I', 0x10, 4 + i * (size + 8), size) for i in range(len(pictures)))
    with open(name, 'wb') as f:
        f.write(chunk(b'RIFF', b'AVI ' + header + body + chunk(b'idx1', index)))


def write_clip(folder, name, shape, color, motion, chance):
    os.makedirs(folder, exist_ok=True)
    scale = chance.uniform(0.85, 1.15)
    write_avi(f'{folder}/{name}.avi', [frame(shape, color, x, y, scale) for x, y in path(motion, chance)])
    with open(f'{folder}/{name}.txt', 'w', encoding='utf-8') as f:
        f.write(caption(color, shape, motion) + '\n')


def main(folder):
    """Stars in some of the colours: the others show whether it is the shape that was learned."""
    chance = random.Random(1)
    for color in 'red', 'green', 'blue', 'yellow', 'white':
        for motion in MOTIONS:
            write_clip(folder, f'{color}-star-{motion}', 'star', color, motion, chance)


if __name__ == '__main__':
    main(sys.argv[1])
