# SPDX-License-Identifier: Apache-2.0
from typing import Optional

__version__ = '2.12.0+rocm7.2.1'
cuda: Optional[str] = None
hip: Optional[str] = '7.2.53211'
