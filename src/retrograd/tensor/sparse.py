"""Sparse tensors: what they are and hold.  What operators mean for them is in the package `sparse`.

`SparseTensor` has values at coordinates (``torch.sparse_coo``), `CompressedTensor` the compressed forms of matrices
(``sparse_csr``, ``sparse_csc``, ``sparse_bsr``, ``sparse_bsc``).  Both are special tensors (Note [Special tensors]);
their ``_memory_`` is one of the classes of ``kernels/sparse.py``.  Their class is ``Tensor`` for users, as in torch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn, Self

from ..core import layout as layouts
from ..core.version_counter import INFERENCE
from ..kernels import CompressedArray, SparseArray
from . import Tensor
from .special import SpecialTensor

#: Layouts by the name that arrays have for theirs.
LAYOUTS: dict[str, layouts.layout] = {
    "Strided": layouts.strided, "Sparse": layouts.sparse_coo, "SparseCsr": layouts.sparse_csr,
    "SparseCsc": layouts.sparse_csc, "SparseBsr": layouts.sparse_bsr, "SparseBsc": layouts.sparse_bsc,
}  # fmt: skip


def _package() -> Any:
    from ..sparse import operators  # operators are made of Tensors

    return operators


class AnySparse(SpecialTensor):
    """What sparse tensors of all layouts have in common."""

    __slots__ = ()

    special = 1
    backend: str
    _impl: str
    #: Its operators are Functions, and operators on its values.
    _transparent_ = True

    @classmethod
    def on(cls, array: Any) -> Self:
        """A tensor on `array`, without history."""
        result = cls._make_()
        result._memory_ = array
        return result

    @property
    def layout(self) -> layouts.layout:
        return LAYOUTS[self._memory_.layout_name]

    @property
    def _kind_(self) -> str:
        return repr(self.layout)

    @property
    def data(self) -> Any:
        """The values with neither history nor version counter."""
        result = self.on(self._memory_)
        result._vc_ = INFERENCE if self._vc_ is INFERENCE else None
        return result

    @data.setter
    def data(self, value: Any) -> None:
        if type(value) is not type(self):
            Tensor.data.__set__(self, value)  # type: ignore[attr-defined]  # which refuses it
        self._memory_ = value._memory_

    def _operate_(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _package().operate(self, function, args, kwargs)

    def _to_device(self, device: Any, non_blocking: bool) -> Any:
        return _package().Moved.apply(self, device, non_blocking)

    def _no_form_(self, name: str) -> Exception:
        return NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the '{self.backend}' backend: there is no {name} of "
            f"tensors whose layout is {self.layout}. Write x.to_dense() for the tensor of that layout"
        )

    # ------------------------------------------------------------------------------------------- what it does not have

    def _no_storage(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"Cannot access storage of {type(self)._impl}: a {self._kind_} tensor has none")

    storage_offset = storage = untyped_storage = typed_storage = _no_storage

    def data_ptr(self) -> NoReturn:
        raise RuntimeError(
            "Cannot access data pointer of Tensor that doesn't have storage: x.values().data_ptr() is that of its "
            "values"
        )

    def numpy(self, *, force: bool = False) -> NoReturn:
        raise TypeError(
            f"can't convert {self._memory_.layout_name} layout tensor to numpy. Use Tensor.to_dense() first."
        )

    def tolist(self) -> Any:
        return self.to_dense().tolist()  # type: ignore[attr-defined]

    def item(self) -> Any:
        if self._memory_.size != 1:
            raise RuntimeError(f"a Tensor with {self._memory_.size} elements cannot be converted to Scalar")
        return self.to_dense().item()  # type: ignore[attr-defined]

    _scalar_ = item

    def __bool__(self) -> bool:
        return bool(self.to_dense())  # type: ignore[attr-defined]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return _package().sparse_str(self, tensor_contents)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    # -------------------------------------------------------------------------------------------------------- copies

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if not self.is_leaf:
            return Tensor.__deepcopy__(self, memo)  # which refuses it
        if id(self) not in memo:
            result = memo[id(self)] = self.on(copy.deepcopy(self._memory_, memo))
            if self._grad_meta_ is not None:
                result.requires_grad_(self._grad_meta_.requires_grad)
                if self._grad_meta_.grad is not None:
                    result.grad = copy.deepcopy(self._grad_meta_.grad, memo)
            result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (self._memory_, self.requires_grad, self.__dict__)


class SparseTensor(AnySparse):
    """A tensor of values at coordinates."""

    __slots__ = ()

    is_sparse = True
    backend = "SparseCPU"
    _impl = "SparseTensorImpl"

    _memory_: SparseArray

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: there are no steps between its values."""
        steps = (0,) * self._memory_.ndim
        return steps if dim is None else steps[dim]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return False


class CompressedTensor(AnySparse):
    """A tensor of matrices whose rows or columns are compressed."""

    __slots__ = ()

    backend = "SparseCsrCPU"
    _impl = "SparseCsrTensorImpl"

    _memory_: CompressedArray

    @property
    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        return self._memory_.layout_name == "SparseCsr"

    def stride(self, dim: int | None = None) -> NoReturn:
        raise RuntimeError(f"Sparse {self._memory_.layout_name[6:].upper()} tensors do not have strides")

    def is_contiguous(self, memory_format: Any = None) -> NoReturn:
        raise RuntimeError(f"Sparse {self._memory_.layout_name[6:].upper()} tensors do not have is_contiguous")


for _class in (SparseTensor, CompressedTensor):
    # Users know one class of tensors.
    _class.__name__, _class.__qualname__, _class.__module__ = Tensor.__name__, Tensor.__qualname__, Tensor.__module__


def _rebuild(array: Any, requires_grad: bool, attributes: dict[Any, Any]) -> Tensor:
    result: Tensor = array.as_tensor()
    if requires_grad:
        result.requires_grad_()
    result.__dict__.update(attributes)
    return result
