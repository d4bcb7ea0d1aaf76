# SPDX-License-Identifier: Apache-2.0
"""load_python.py FILE ROUNDS: seconds to load every tensor of FILE as float32 arrays, by cairn_tensor and by the
safetensors package with ml_dtypes; the best of the rounds, which alternate."""
import sys
import time

import cairn_tensor
import ml_dtypes  # noqa: F401, teaches numpy bfloat16
import numpy
import safetensors.numpy


def package(path):
    return {name: array.astype(numpy.float32) for name, array in safetensors.numpy.load_file(path).items()}


def cairn(path):
    return cairn_tensor.load_file(path, dtype=numpy.float32, framework='np')


def seconds(load, path):
    start = time.perf_counter()
    load(path)
    return time.perf_counter() - start


def main(path, rounds):
    first, second = cairn(path), package(path)
    assert first.keys() == second.keys() and all(numpy.array_equal(first[k][:8], second[k][:8]) for k in first)
    del first, second
    pairs = [(seconds(cairn, path), seconds(package, path)) for _ in range(rounds)]
    print(min(a for a, _ in pairs), min(b for _, b in pairs))


main(sys.argv[1], int(sys.argv[2]))
