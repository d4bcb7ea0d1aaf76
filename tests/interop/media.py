# SPDX-License-Identifier: Apache-2.0
"""Pictures and clips as PIL and PyAV read them; damaged, huge and strange files as errors that name them."""
import fractions
import os
import struct
import subprocess
import tempfile
import zlib

import av
import numpy as np
from PIL import Image, ImageCms, ImageOps

import tap

TOOL = os.environ['MEDIA_TOOL']
RNG = np.random.default_rng(7)


def run(*words, data=None, **env):
    done = subprocess.run([TOOL, *map(str, words)], input=data, stdout=subprocess.PIPE, timeout=120,
                          env={**os.environ, **env})
    return done.returncode, done.stdout.decode('utf-8', 'replace')


def probe(path):
    code, out = run('probe', path)
    if code:
        return None, out
    head, _, colour = out.rstrip('\n').partition(' colour=')
    return {**dict(word.split('=', 1) for word in head.split(' ')), 'colour': colour}, ''


def read(path, *frames, plane='rgb'):
    """An array of frames, or None and the error."""
    with tempfile.NamedTemporaryFile() as raw:
        code, out = run(plane, path, raw.name, *(frames or (0,)))
        if code:
            return None, out
        sizes = [tuple(map(int, line.split())) for line in out.splitlines()]
        _, width, height = sizes[0]
        shape = (len(sizes), height, width) + ((3,) if plane == 'rgb' else ())
        return np.fromfile(raw.name, np.uint8).reshape(shape), ''


def gradient(width, height, noise=12):
    y, x = np.mgrid[0:height, 0:width]
    a = np.stack([x * 255 / max(width - 1, 1), y * 255 / max(height - 1, 1), (x + y) % 256], -1)
    return np.clip(a + RNG.integers(-noise, noise + 1, a.shape), 0, 255).astype(np.uint8)


def differs(path, mean, most):
    """What PIL gives and we do not; nothing if it is alike."""
    with Image.open(path) as im:
        want = np.array(ImageOps.exif_transpose(im).convert('RGB')).astype(int)
    got, why = read(path)
    if got is None:
        return [why]
    if got[0].shape != want.shape:
        return [f'{path}: {got[0].shape}, want {want.shape}']
    diff = np.abs(got[0].astype(int) - want)
    return [] if diff.mean() <= mean and diff.max() <= most else [f'{path}: mean {diff.mean():.3f} most {diff.max()}']


def png16(path, a, colour):
    """16-bit rows that PIL does not write."""
    def chunk(kind, body):
        return struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
    rows = b''.join(b'\0' + row.astype('>u2').tobytes() for row in a.reshape(a.shape[0], -1))
    with open(path, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', a.shape[1], a.shape[0], 16, colour, 0, 0, 0))
                + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


def save(folder, name, im, **options):
    path = os.path.join(folder, name)
    im.save(path, **options)
    return path


def stills(folder):
    rgb = Image.fromarray(gradient(61, 43))
    rgba = rgb.copy()
    rgba.putalpha(Image.fromarray(gradient(61, 43)[:, :, 0]))
    exif = Image.Exif()
    png, jpeg, other = [], [], []
    for name, im in (('rgb', rgb), ('rgba', rgba), ('l', rgb.convert('L')), ('la', rgba.convert('LA')), ('p', rgb.quantize(200)),
                     ('p2', rgb.quantize(4)), ('1', rgb.convert('1'))):
        png.append(save(folder, f'{name}.png', im))
    png.append(save(folder, 'trns.png', rgb.quantize(16), transparency=3))
    png.append(save(folder, 'trns-rgb.png', rgb, transparency=(1, 2, 3)))
    png.append(save(folder, 'i16.png', Image.fromarray((gradient(61, 43)[:, :, 0].astype(np.uint16) * 3))))
    png.append(save(folder, 'one.png', rgb.crop((0, 0, 1, 1))))
    for kind, channels in ((2, 3), (4, 2), (6, 4)):
        png.append(os.path.join(folder, f'wide{kind}.png'))
        png16(png[-1], RNG.integers(0, 65536, (43, 61, channels)), kind)
    for turn in range(1, 9):
        exif[0x112] = turn
        png.append(save(folder, f'turn{turn}.png', rgb, exif=exif.tobytes()))
        jpeg.append(save(folder, f'turn{turn}.jpg', rgb, exif=exif.tobytes(), quality=92))
        other.append(save(folder, f'turn{turn}.webp', rgb, exif=exif.tobytes(), quality=92))
        other.append(save(folder, f'turn{turn}.avif', rgb, exif=exif.tobytes(), quality=90))
    for name, im, options in (('l', rgb.convert('L'), {}), ('420', rgb, {'subsampling': 2}), ('444', rgb, {'subsampling': 0}),
                              ('progressive', rgb, {'progressive': True}), ('cmyk', rgb.convert('CMYK'), {})):
        jpeg.append(save(folder, f'{name}.jpg', im, quality=90, **options))
    for name, im, options in (('rgb', rgb, {}), ('rgba', rgba, {}), ('lossless', rgba, {'lossless': True}),
                              ('anim', rgba, {'save_all': True, 'append_images': [rgba.rotate(90)]})):
        other.append(save(folder, f'{name}.webp', im, **options))
    for name, im in (('rgb', rgb), ('rgba', rgba), ('l', rgb.convert('L'))):
        other.append(save(folder, f'{name}.avif', im, quality=80))
    for name, im in (('rgb', rgb), ('l', rgb.convert('L')), ('p', rgb.quantize(100)), ('1', rgb.convert('1')), ('rgba', rgba)):
        png.append(save(folder, f'{name}.bmp', im))
    return png, jpeg, other


def interlaced(folder):
    """Adam7 by hand: PIL reads it, and writes none."""
    a = gradient(61, 43)
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    rows = b''.join(b'\0' + row.tobytes() for x, y, dx, dy in passes for row in a[y::dy, x::dx])

    def chunk(kind, body):
        return struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
    path = os.path.join(folder, 'adam7.png')
    with open(path, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 61, 43, 8, 2, 0, 0, 1))
                + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))
    return path


def clip(path, codec='libx264', n=25, size=(96, 64), pix='yuv420p', times=None, **options):
    with av.open(path, 'w') as c:
        s = c.add_stream(codec, rate=16, options=options)
        s.width, s.height, s.pix_fmt = *size, pix
        if times:
            s.codec_context.time_base = fractions.Fraction(1, 1000)
        for i in range(n):
            f = av.VideoFrame.from_ndarray(np.roll(gradient(*size, noise=3), i * 3, 1), 'rgb24')
            if times:
                f.pts, f.time_base = times[i], fractions.Fraction(1, 1000)
            for packet in s.encode(f):
                c.mux(packet)
        for packet in s.encode():
            c.mux(packet)
    return path


def clip_differs(path):
    mean = 1.5 if 'ten' in path else 1  # releases of FFmpeg dither 10 bits to 8 differently
    with av.open(path) as c:
        want = [f.to_ndarray(format='rgb24') for f in c.decode(video=0)]
    info, why = probe(path)
    if not info:
        return [why]
    out = [] if int(info['frames']) == len(want) else [f"{path}: {info['frames']} frames, want {len(want)}"]
    numbers = [0, 3, len(want) // 2, len(want) - 1]
    got, why = read(path, *numbers)
    if got is None:
        return out + [why]
    for frame, number in zip(got, numbers):
        diff = np.abs(frame.astype(int) - want[number].astype(int))
        if diff.mean() > mean:
            out.append(f'{path}: frame {number}: mean {diff.mean():.2f} most {diff.max()}')
    return out


def rate_findings(folder):
    steady, _ = probe(clip(os.path.join(folder, 'steady.mkv'), times=[i * 40 for i in range(25)]))
    uneven, _ = probe(clip(os.path.join(folder, 'uneven.mkv'), times=[i * 40 + i // 5 * 90 for i in range(25)]))
    if steady['variable'] != '0' or abs(float(steady['fps']) - 25) > 0.1:
        yield f'steady: {steady}'
    if uneven['variable'] != '1' or uneven['frames'] != '25':
        yield f'uneven: {uneven}'


def turned_findings(folder):
    """The matrix of a phone's clip, put into the track's header."""
    path = clip(os.path.join(folder, 'phone.mp4'))
    before, _ = read(path, 5)
    with open(path, 'rb') as f:
        data = bytearray(f.read())
    one = 1 << 16
    for matrix, turn, orientation in (((0, one, 0, -one, 0, 0), -1, 6), ((-one, 0, 0, 0, -one, 0), 2, 3), ((0, -one, 0, one, 0, 0), 1, 8)):
        at = data.index(b'tkhd') + 4 + 40
        data[at:at + 36] = struct.pack('>9i', *matrix, 0, 0, 1 << 30)
        with open(path, 'wb') as f:
            f.write(data)
        info, why = probe(path)
        got, _ = read(path, 5)
        if not info or int(info['orientation']) != orientation or not np.array_equal(got[0], np.rot90(before[0], turn)):
            yield f'{orientation}: {info} {why}'


def profile_findings(folder):
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile('sRGB')).tobytes()
    other = srgb.replace('sRGB built-in'.encode('utf-16-be'), 'Wide Gamut 99'.encode('utf-16-be'))
    for ending in ('png', 'jpg', 'webp', 'avif'):
        for profile, name in ((None, ''), (srgb, ''), (other, 'Wide Gamut 99')):
            path = save(folder, f'profile.{ending}', Image.fromarray(gradient(9, 7)), icc_profile=profile)
            info, why = probe(path)
            if not info or (name not in info['colour'] if name else info['colour']):
                yield f'{ending} {name}: {info} {why}'
    if not probe(os.path.join(folder, 'cmyk.jpg'))[0]['colour']:
        yield 'CMYK without a note'


def cut_findings(folder, paths):
    """A clip without its end has the frames before it, and says so."""
    for path in paths:
        whole, _ = probe(path)
        with open(path, 'rb') as f:
            data = f.read()
        cut = os.path.join(folder, 'cut-' + os.path.basename(path))
        with open(cut, 'wb') as f:
            f.write(data[:len(data) * 6 // 10])
        info, why = probe(cut)
        if whole['cut'] != '0' or not info or info['cut'] != '1' or not 0 < int(info['frames']) < 25:
            yield f'{path}: {whole}, cut: {info} {why}'
            continue
        got, why = read(cut, int(info['frames']) - 1)
        if got is None:
            yield why
        if read(cut, int(info['frames']))[0] is not None:
            yield f'{cut}: a frame behind the end'


def damaged_findings(folder, paths):
    """Cut and flipped files: an answer or an error that names the file, in either case a living reader."""
    for path in paths:
        with open(path, 'rb') as f:
            data = f.read()
        bad = os.path.join(folder, 'bad-' + os.path.basename(path))
        cut = len(data) * 6 // 10
        with open(bad, 'wb') as f:
            f.write(data[:cut])
        got, why = read(bad)
        if got is not None and not path.endswith(('.mp4', '.webm', '.avi', '.mkv', '.flv', '.mpg')):
            yield f'{path}: cut, and read'
        if got is None and os.path.basename(bad) not in why:
            yield f'{path}: {why}'
        for turn in range(6):
            flipped = bytearray(data)
            for at in RNG.integers(12, len(data), 1 + turn * 3):
                flipped[at] ^= 1 << RNG.integers(0, 8)
            with open(bad, 'wb') as f:
                f.write(flipped)
            for plane in ('probe', 'rgb'):
                result, why = probe(bad) if plane == 'probe' else read(bad)
                if result is None and os.path.basename(bad) not in why:
                    yield f'{path}: flipped: {why}'


def strange_findings(folder):
    def refused(path, about, **env):
        with tempfile.NamedTemporaryFile() as raw:
            code, out = run('rgb', path, raw.name, 0, **env)
        return [] if code and os.path.basename(path) in out and out.startswith('error') else [f'{about}: {out}']
    bomb = os.path.join(folder, 'bomb.png')
    head = struct.pack('>IIBBBBB', 100000, 100000, 8, 2, 0, 0, 0)
    with open(bomb, 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + struct.pack('>I', 13) + b'IHDR' + head + struct.pack('>I', zlib.crc32(b'IHDR' + head)))
    yield from refused(bomb, 'a bomb')
    for name in ('a b.png', "it's \"so\".png", 'two\nlines.png', 'Grüße-日本.png', '-dash.png'):
        path = save(folder, name, Image.fromarray(gradient(5, 4)))
        if probe(path)[0] is None:
            yield f'{name!r}: not read'
    large = save(folder, 'large.png', Image.new('L', (20000, 3000), 7), compress_level=1)
    got, why = read(large)
    if got is None or got.shape != (1, 3000, 20000, 3) or got.max() != 7:
        yield f'large: {why}'
    yield from refused(large, 'more than the limit of memory', MEDIA_MEMORY=str(400 << 20))
    for name, text in (('list.m3u8', '#EXTM3U\n#EXTINF:1,\n/etc/passwd\n'), ('list.txt', "ffconcat version 1.0\nfile '/etc/passwd'\n"),
                       ('text.mp4', 'not a clip\n')):
        path = os.path.join(folder, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        yield from refused(path, name)
    sound = os.path.join(folder, 'sound.mp4')
    with av.open(sound, 'w') as c:
        s = c.add_stream('aac', rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 4096), np.float32), 'fltp', 'mono')
        frame.sample_rate = 8000
        for packet in [*s.encode(frame), *s.encode()]:
            c.mux(packet)
    yield from refused(sound, 'no video')
    empty = clip(os.path.join(folder, 'empty.mkv'), n=0)
    yield from refused(empty, 'no frames')
    if probe(empty)[0]:
        yield f'no frames: {probe(empty)}'
    yield from refused('/dev/null', 'a device')
    yield from refused(os.path.join(folder, 'not-there.png'), 'missing')


def folder_findings(folder):
    frames = os.path.join(folder, 'frames')
    os.mkdir(frames)
    for i in range(4):
        save(frames, f'{i:03}.png', Image.new('RGB', (8, 6), (i * 10, 0, 0)))
    with open(os.path.join(frames, 'note.txt'), 'w', encoding='utf-8') as f:
        f.write('not a frame')
    info, why = probe(frames)
    if not info or info['frames'] != '4' or info['clip'] != '1':
        yield f'{info} {why}'
    got, why = read(frames, 1, 3)
    if got is None or got[0, 0, 0, 0] != 10 or got[1, 0, 0, 0] != 30:
        yield f'frames: {why}'
    if read(frames, 4)[0] is not None:
        yield 'frame 4 of 4'
    save(frames, '004.png', Image.new('RGB', (9, 6)))
    if read(frames, 3, 4)[0] is not None:
        yield 'frames of two sizes'


def written_findings(folder):
    for width, height, channels in ((1, 1, 3), (37, 21, 3), (64, 64, 1)):
        path, a = os.path.join(folder, 'out.png'), gradient(width, height)[:, :, :channels]
        run('png', path, width, height, channels, data=np.ascontiguousarray(a).tobytes())
        got = np.array(Image.open(path)).reshape(a.shape)
        if not np.array_equal(got, a):
            yield f'{width} x {height} x {channels} differs'
    if os.path.getsize(save(folder, 'pil.png', Image.fromarray(gradient(300, 200)))) * 1.1 < size_of_png(folder):
        yield 'larger than what PIL writes'
    for width, height in ((64, 48), (33, 17)):
        path = os.path.join(folder, 'out.mp4')
        a = np.stack([np.roll(gradient(width, height, 0), i, 1) for i in range(9)])
        code, out = run('write', path, width, height, 16, 9, data=a.tobytes())
        got, why = (None, out) if code else read(path, *range(9))
        if got is None or got.shape != a.shape or np.abs(got.astype(int) - a.astype(int)).mean() > 12:
            yield f'{width} x {height}: {why} {None if got is None else np.abs(got.astype(int) - a.astype(int)).mean()}'
    if probe(path)[0]['fps'] != '16.000000':
        yield 'fps'


def size_of_png(folder):
    path, a = os.path.join(folder, 'size.png'), gradient(300, 200)
    run('png', path, 300, 200, 3, data=a.tobytes())
    return os.path.getsize(path)


def main():
    with tempfile.TemporaryDirectory() as folder:
        png, jpeg, other = stills(folder)
        clips = [clip(os.path.join(folder, name), codec, pix=pix, **options) for name, codec, pix, options in (
            ('h264.mp4', 'libx264', 'yuv420p', {}), ('h265.mkv', 'libx265', 'yuv420p', {'x265-params': 'log-level=none'}),
            ('vp9.webm', 'libvpx-vp9', 'yuv420p', {}), ('mpeg4.mkv', 'mpeg4', 'yuv420p', {}), ('mjpeg.avi', 'mjpeg', 'yuvj420p', {}),
            ('mpeg2.mpg', 'mpeg2video', 'yuv420p', {}), ('444.mp4', 'libx264', 'yuv444p', {}), ('ten.mkv', 'libx265', 'yuv420p10le', {'x265-params': 'log-level=none'}),
            ('bt709.mp4', 'libx264', 'yuv420p', {'colorspace': 'bt709', 'color_range': 'tv'}))]

        def png_and_bmp_are_as_PIL_reads_them():
            return [f for path in [*png, interlaced(folder)] for f in differs(path, 1, 3)]

        def jpeg_is_as_PIL_reads_it():
            return [f for path in jpeg for f in differs(path, 2, 255)]

        def webp_and_avif_are_as_PIL_reads_them():
            return [f for path in other for f in differs(path, 1, 8)]

        def clips_are_as_PyAV_reads_them():
            return [f for path in clips for f in clip_differs(path)]

        def rates_are_told():
            return list(rate_findings(folder))

        def turned_clips_stand_upright():
            return list(turned_findings(folder))

        def colour_profiles_are_named():
            return list(profile_findings(folder))

        def cut_clips_are_told():
            return list(cut_findings(folder, [clips[2], clips[3], clips[4]]))

        def damaged_files_are_errors():
            return list(damaged_findings(folder, [png[0], jpeg[0], other[0], other[1], png[-1], clips[0], clips[2], clips[4]]))

        def strange_files_are_errors():
            return list(strange_findings(folder))

        def a_folder_of_pictures_is_a_clip():
            return list(folder_findings(folder))

        def what_is_written_can_be_read():
            return list(written_findings(folder))

        tap.run([png_and_bmp_are_as_PIL_reads_them, jpeg_is_as_PIL_reads_it, webp_and_avif_are_as_PIL_reads_them,
                 clips_are_as_PyAV_reads_them, rates_are_told, turned_clips_stand_upright, colour_profiles_are_named, cut_clips_are_told, damaged_files_are_errors, strange_files_are_errors,
                 a_folder_of_pictures_is_a_clip, what_is_written_can_be_read])


main()
