# SPDX-License-Identifier: Apache-2.0
"""Scaled and cropped pictures beside Pillow and OpenCV: Lanczos where they grow, area where they shrink."""
import random
import subprocess
import sys

import tap

try:
    import cv2
    import numpy as np
    from PIL import Image
except ImportError:  # an interpreter of the user's own
    cv2 = None

TOOL = sys.argv[1]
MEAN, MOST = 0.02, 1  # of 255


def wanted(picture, width, height):
    """musubi-tuner's resize_image_to_bucket, from its description."""
    from_height, from_width = picture.shape[:2]
    if (from_width, from_height) == (width, height):
        return picture
    scale = max(width / from_width, height / from_height)
    size = int(from_width * scale + 0.5), int(from_height * scale + 0.5)
    if scale > 1:
        scaled = np.array(Image.fromarray(picture).resize(size, Image.LANCZOS))
    else:
        scaled = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return scaled[top:top + height, left:left + width]


def fitted(picture, width, height):
    channels = 1 if picture.ndim == 2 else 3
    numbers = [channels, picture.shape[1], picture.shape[0], width, height]
    done = subprocess.run([TOOL, 'fit', *map(str, numbers)], input=picture.tobytes(), stdout=subprocess.PIPE, check=True)
    shape = (height, width) if channels == 1 else (height, width, 3)
    return np.frombuffer(done.stdout, np.uint8).reshape(shape)


def made(rng, width, height, channels):
    """Noise, edges or a smooth picture."""
    shape = (height, width) if channels == 1 else (height, width, 3)
    kind = rng.randrange(3)
    noise = np.random.default_rng(rng.randrange(1 << 30)).integers(0, 256, shape, dtype=np.uint8)
    if kind == 0:
        return noise
    if kind == 1:
        return np.where(noise > 127, 255, 0).astype(np.uint8)
    y, x = np.mgrid[0:height, 0:width]
    smooth = (127 + 120 * np.sin(x / 7 + y / 11)).astype(np.uint8)
    return np.ascontiguousarray(smooth if channels == 1 else np.stack([smooth, smooth // 2, 255 - smooth], axis=2))


def compare(sizes):
    if cv2 is None:
        raise tap.Skip('no OpenCV and Pillow')
    rng, findings, exact = random.Random(5), [], 0
    for number, (from_width, from_height, width, height) in enumerate(sizes):
        picture = made(rng, from_width, from_height, 1 if number % 5 == 4 else 3)
        want = wanted(picture, width, height)
        off = np.abs(fitted(picture, width, height).astype(int) - want.astype(int))
        exact += off.max() == 0
        if off.max() > MOST or off.mean() > MEAN:
            findings.append(f'{from_width}x{from_height} to {width}x{height}: at most {off.max()}, on average {off.mean():.4f}')
    print(f'# {exact} of {len(sizes)} are the same in every bit')
    return findings


def random_sizes(seed, count, grow):
    rng, sizes = random.Random(seed), []
    while len(sizes) < count:
        from_width, from_height = rng.randrange(1, 500), rng.randrange(1, 500)
        width, height = 16 * rng.randrange(1, 20), 16 * rng.randrange(1, 20)
        scale = max(width / from_width, height / from_height)
        if (scale > 1) == grow and max(from_width, from_height) * scale < 6000:
            sizes.append((from_width, from_height, width, height))
    return sizes


def pictures_that_grow():
    return compare(random_sizes(1, 60, True) + [(1, 1, 16, 16), (2, 1, 32, 16), (63, 64, 64, 64), (64, 33, 64, 48)])


def pictures_that_shrink():
    return compare(random_sizes(2, 60, False) + [(1920, 1080, 832, 480), (1999, 1501, 640, 480)])


def whole_ratios():
    return compare([(2 * n * 16, 2 * n * 16, 32, 32) for n in range(1, 30)] + [(64, 96, 32, 32), (96, 96, 32, 32),
                   (1024, 512, 512, 256), (784, 784, 16, 16), (64, 64, 64, 64), (64, 80, 64, 64)])


tap.run([pictures_that_grow, pictures_that_shrink, whole_ratios])
