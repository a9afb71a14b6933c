"""What computes, and whether it is used."""

from . import fast

__all__ = ["fast"]
