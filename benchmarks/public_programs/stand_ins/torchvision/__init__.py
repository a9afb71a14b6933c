"""Stands in for torchvision, which is bound to torch's own binary: made-up images, and what programs do with them.

It is written with ``torch``, so that programs get tensors of the library that they run on.
"""

from . import datasets, models, transforms, utils

__version__ = "0.0-stand-in"
