"""``torch.sparse``: functions of sparse tensors.

Sparse tensors themselves are made by `sparse_coo_tensor`, `Tensor.to_sparse` and their like, and ordinary operators
take them.  The files: ``derivatives.py`` has the operators that the others are made of; ``construction.py`` new
tensors and conversions; ``attributes.py``, ``elementwise.py``, ``shapes.py``, ``reductions.py`` and ``products.py``
what operators mean for them, which ``operators.py`` finds in the tables of ``forms.py``; ``printing.py`` and
``invariants.py`` what they say.  The classes of the tensors are in ``tensor/sparse.py``, what they hold in
``kernels/sparse.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from ..tensor.sparse import AnySparse
from . import operators as _operators  # (it declares what operators mean)
from .construction import spdiags
from .invariants import check_sparse_tensor_invariants
from .products import addmm as _addmm
from .products import multiply, multiply_and_reduce
from .products import sampled_addmm as _sampled_addmm
from .reductions import softmax as _softmax
from .reductions import sum_over
from .tensor_types import TYPES as _TYPES

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax",
    "spdiags", "sum", *_TYPES,
]  # fmt: skip

BFloat16Tensor = _TYPES["BFloat16Tensor"]
ByteTensor = _TYPES["ByteTensor"]
CharTensor = _TYPES["CharTensor"]
DoubleTensor = _TYPES["DoubleTensor"]
FloatTensor = _TYPES["FloatTensor"]
HalfTensor = _TYPES["HalfTensor"]
IntTensor = _TYPES["IntTensor"]
LongTensor = _TYPES["LongTensor"]
ShortTensor = _TYPES["ShortTensor"]


def _need_sparse(name: str, *tensors: Any) -> None:
    if not any(isinstance(one, AnySparse) for one in tensors):
        raise NotImplementedError(
            f"Could not run 'aten::_sparse_{name}' with arguments from the 'CPU' backend: torch.sparse.{name} is for "
            "sparse tensors. Write x.to_sparse()"
        )


def mm(mat1: Any, mat2: Any, reduce: str = "sum") -> Any:
    """The product of matrices, of which one or both are sparse; those have gradients where they have values.

    >>> import retrograd as torch
    >>> a = torch.sparse_coo_tensor([[0, 1], [1, 0]], [2., 3.], (2, 2))
    >>> torch.sparse.mm(a, torch.tensor([[1., 2.], [3., 4.]]))
    tensor([[6., 8.],
            [3., 6.]])
    """
    if reduce != "sum":
        return multiply_and_reduce(mat1, mat2, reduce)
    if not isinstance(mat1, AnySparse) and not isinstance(mat2, AnySparse):
        return mat1.mm(mat2)
    return multiply(mat1, mat2, "sparse.mm")


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """``beta * mat + alpha * (mat1 @ mat2)``, where `mat1` is sparse.

    >>> import retrograd as torch
    >>> torch.sparse.addmm(torch.ones(1, 1), torch.tensor([[2.]]).to_sparse(), torch.tensor([[3.]]), alpha=2)
    tensor([[13.]])
    """
    _need_sparse("addmm", mat1, mat2)
    return _addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum over all dimensions, or over some: a sparse tensor unless no sparse dimension is left.

    >>> import retrograd as torch
    >>> a = torch.sparse_coo_tensor([[0, 1], [1, 1]], [2., 3.], (2, 2))
    >>> torch.sparse.sum(a), torch.sparse.sum(a, 0).to_dense()
    (tensor(5.), tensor([0., 5.]))
    """
    _need_sparse("sum", input)
    return sum_over(input, dim, dtype)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Softmax along `dim` over the values that there are; what has none counts as minus infinity.

    >>> import retrograd as torch
    >>> torch.sparse.softmax(torch.sparse_coo_tensor([[0, 0], [0, 2]], [1., 1.], (2, 3)), 1).to_dense()
    tensor([[0.5000, 0.0000, 0.5000],
            [0.0000, 0.0000, 0.0000]])
    """
    _need_sparse("softmax", input)
    return _softmax(input, dim, dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of `softmax`.

    >>> import retrograd as torch
    >>> torch.sparse.log_softmax(torch.sparse_coo_tensor([[0, 0], [0, 2]], [1., 1.], (1, 3)), 1).values()
    tensor([-0.6931, -0.6931])
    """
    _need_sparse("log_softmax", input)
    return _softmax(input, dim, dtype, logarithm=True)


def sampled_addmm(input: Any, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """``alpha * (mat1 @ mat2)`` at the places where the CSR tensor `input` has values, plus ``beta * input``.

    >>> import retrograd as torch
    >>> torch.sparse.sampled_addmm(torch.eye(2).to_sparse_csr(), torch.ones(2, 3), torch.ones(3, 2)).to_dense()
    tensor([[4., 0.],
            [0., 4.]])
    """
    if not isinstance(input, AnySparse) or input.is_sparse:
        raise NotImplementedError(
            "Could not run 'aten::sparse_sampled_addmm': it is for tensors of layout torch.sparse_csr. Write "
            "x.to_sparse_csr()"
        )
    return _sampled_addmm(input, mat1, mat2, beta, alpha)


def as_sparse_gradcheck(gradcheck: Callable[..., Any]) -> Callable[..., Any]:
    """`gradcheck` for functions of sparse tensors; `autograd.gradcheck` itself takes them, so it is that.

    >>> import retrograd as torch
    >>> gradcheck = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    >>> x = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
    >>> gradcheck(lambda x: (x * 2).to_dense(), x, masked=True)
    True
    """

    @functools.wraps(gradcheck)
    def checked(func: Any, inputs: Any, **options: Any) -> Any:
        return gradcheck(func, inputs, **options)

    return checked
