"""``torch.sparse.FloatTensor`` and its like: torch's older names for sparse tensors of a dtype."""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..ops import namespace as ops
from ..tensor import Tensor
from ..tensor.tensor import TYPE_NAMES

__all__ = ["TYPES"]


class SparseTensorType(type):
    """The type of ``sparse.FloatTensor``: it makes sparse tensors, and recognises those of its dtype.

    >>> import retrograd as torch
    >>> torch.sparse.FloatTensor(torch.tensor([[0, 1]]), torch.tensor([2., 3.]), torch.Size([3])).to_dense()
    tensor([2., 3., 0.])
    """

    dtype_name: str

    @property
    def dtype(cls) -> dtypes.dtype:
        """The dtype of its tensors."""
        return dtypes.by_name(cls.dtype_name)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.is_sparse and instance.dtype is cls.dtype

    def __call__(cls, *args: Any) -> Tensor:
        """Of indices and values, whose dtype it keeps, and a size; or of a size alone, without values."""
        if args and isinstance(args[0], Tensor):
            indices, values, *rest = args
            if indices.dtype is not dtypes.int64:
                raise RuntimeError(f"expected scalar type Long but found {TYPE_NAMES[indices.dtype.np.name][:-6]}")
            return ops.sparse_coo_tensor(indices, values, *rest)
        size = tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args or (0,)
        empty = ops.empty((len(size), 0), dtype=dtypes.int64)
        return ops.sparse_coo_tensor(empty, ops.empty((0,), dtype=cls.dtype), size)

    def __repr__(cls) -> str:
        return f"<class 'torch.sparse.{cls.__name__}'>"


#: By name; torch has none for booleans.
TYPES: dict[str, SparseTensorType] = {
    word: SparseTensorType(
        word, (), {"dtype_name": name, "__module__": "torch.sparse", "__doc__": f"A sparse COO tensor of {name}."}
    )
    for name, word in TYPE_NAMES.items()
    if word in ("BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
                "LongTensor", "ShortTensor")
}  # fmt: skip
