"""``torch.distributions.utils``: parameters of one shape, probabilities and logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from numbers import Number
from typing import Any

from ..autograd.grad_mode import enable_grad
from ..core.dtypes import get_default_dtype
from ..core.type_info import finfo
from ..ops import namespace as ops
from ..tensor import Tensor

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

euler_constant: float = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape. A number becomes a tensor of the first tensor's dtype, or of the default one.

    >>> import retrograd as torch
    >>> from retrograd.distributions.utils import broadcast_all
    >>> broadcast_all(1., torch.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(isinstance(value, Number) or hasattr(type(value), "__torch_function__") for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__; "
            f"got {', '.join(type(value).__name__ for value in values)}"
        )
    first = next((value for value in values if isinstance(value, Tensor)), None)
    dtype = get_default_dtype() if first is None else first.dtype
    where = None if first is None else first.device
    tensors = [ops.tensor(value, dtype=dtype, device=where) if isinstance(value, Number) else value for value in values]
    return tuple(ops.broadcast_tensors(*tensors))


def standard_normal(shape: Sequence[int], like: Tensor) -> Tensor:
    """Standard normal numbers of the dtype of `like`."""
    return ops.empty(shape, dtype=like.dtype, device=like.device).normal_()


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """The sum over the last `dims` dimensions."""
    return value.reshape((*value.shape[: value.dim() - dims], -1)).sum(-1) if dims else value


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log-odds (`is_binary`), or of logarithms along the last dimension.

    >>> import retrograd as torch
    >>> from retrograd.distributions.utils import logits_to_probs
    >>> logits_to_probs(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept off 0 and 1 by the smallest step of their dtype.

    >>> import retrograd as torch
    >>> from retrograd.distributions.utils import clamp_probs
    >>> clamp_probs(torch.tensor([0., 0.5]))
    tensor([1.1921e-07, 5.0000e-01])
    """
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds (`is_binary`) or logarithms of probabilities.

    >>> import retrograd as torch
    >>> from retrograd.distributions.utils import probs_to_logits
    >>> probs_to_logits(torch.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


class lazy_property:
    """A property that is computed when it is first asked for, with gradients, and is an attribute from then on."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _below(n: int, diag: int) -> Tensor:
    """Which elements of an n by n matrix are on or below a diagonal."""
    rows = ops.arange(n)
    return rows < rows.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles of matrices, row by row.

    >>> import retrograd as torch
    >>> from retrograd.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(torch.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 3., 4.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _below(n, diag)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices, filled row by row.

    >>> import retrograd as torch
    >>> from retrograd.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(torch.tensor([1., 3., 4.]))
    tensor([[1., 0.],
            [3., 4.]])
    """
    count, b = vec.shape[-1], 1 + 2 * diag
    # the n by n matrix has n (n + 1) / 2 elements on and below its diagonal, and n more or fewer for each step of diag
    root = (-b + (b * b + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    n = round(root)
    if abs(n - root) > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part of a square "
            "D x D matrix."
        )
    mat = vec.new_zeros((*vec.shape[:-1], n, n))
    mat[..., _below(n, diag)] = vec
    return mat


class ProbsOrLogits:
    """Of distributions that take `probs` or `logits`: either is computed from the other when it is asked for."""

    _is_binary = True
    _param: Tensor

    def _take(self, probs: Any, logits: Any, *others: Any) -> list[Tensor]:
        """Keep the one that is given, broadcast with `others`, which come back in its dtype."""
        name, given = one_of(probs, logits)
        *rest, self._param = broadcast_all(*others, given)
        setattr(self, name, self._param)
        return [other.to(self._param.dtype) for other in rest]

    @lazy_property
    def logits(self) -> Any:
        """Log-odds, or logarithms of probabilities."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def param_shape(self) -> Any:
        """The shape of `probs` and `logits`."""
        return self._param.shape

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)


def one_of(probs: Any, logits: Any) -> tuple[str, Any]:
    """Which of the two is given; it has to be one."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("probs", probs) if logits is None else ("logits", logits)


# torch's own names for two of them, which other libraries of distributions import.
_sum_rightmost = sum_rightmost


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Normal numbers of a shape."""
    return ops.empty(shape, dtype=dtype, device=device).normal_()
