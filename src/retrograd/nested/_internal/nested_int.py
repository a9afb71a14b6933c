"""The sizes of ragged dimensions, where torch has them."""

from ...core.sym_int import NestedIntNode

__all__ = ["NestedIntNode"]
