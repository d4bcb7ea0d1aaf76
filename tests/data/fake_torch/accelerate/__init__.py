# SPDX-License-Identifier: Apache-2.0
"""As much of accelerate as the probe uses."""
import os

__version__ = '1.12.0'

if os.environ.get('FAKE_ACCELERATE') == 'missing':
    raise ModuleNotFoundError("No module named 'accelerate'")


class Accelerator:
    device = 'cuda'
