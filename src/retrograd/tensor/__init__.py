"""The Tensor: a handle on an array, with what it is, what it holds and how it prints.

(``retrograd.tensor`` is the factory function, as in torch: this package is imported from, and never looked up there.)
"""

from .tensor import Tensor, fresh, new, type_name, unwrap, wrap

__all__ = ["Tensor", "fresh", "new", "type_name", "unwrap", "wrap"]
