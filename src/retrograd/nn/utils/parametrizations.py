"""Parametrizations that keep a weight orthogonal, of unit spectral norm, or in polar coordinates."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from ... import linalg
from ...autograd.grad_mode import no_grad
from ...core.type_info import finfo
from ...ops import factories
from ...ops import namespace as ops
from ...tensor import Tensor
from .. import functional as F
from ..modules.conv import _ConvTransposeNd
from ..modules.module import Module
from .parametrize import register_parametrization
from .weight_norm import with_norms

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _weight(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# ---------------------------------------------------------------------------------------------------------- orthogonal


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(q: Tensor) -> bool:
    rows, columns = q.shape[-2:]
    identity = factories.eye(columns, dtype=q.dtype, device=q.device)
    return bool(ops.allclose(q.mH @ q, identity.expand((*q.shape[:-2], columns, columns)),
                             atol=10.0 * rows * finfo(q.dtype).eps))  # fmt: skip


def _nearest_frame(a: Tensor) -> Tensor:
    """An orthonormal basis of what the columns span, in their directions."""
    x, tau = ops.geqrf(a)
    return linalg.householder_product(x, tau) * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """A free matrix made orthogonal; where it is wide, its transpose is.

    With a `base` the map starts there: an assigned value becomes the base, and the free matrix the one that the map
    sends to the identity.
    """

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.shape[-2] < x.shape[-1]
        x = x.mT if wide else x
        q = self._householder(x) if self.orthogonal_map is _OrthMaps.householder else self._from_skew(x)
        if hasattr(self, "base"):
            q = self.base @ q  # type: ignore[operator]
        return q.mT if wide else q

    def _from_skew(self, x: Tensor) -> Tensor:
        """The exponential, or the Cayley transform, of the skew-symmetric matrix with the lower triangle of `x`."""
        rows, columns = x.shape[-2:]
        x = x.tril()
        if rows != columns:
            zeros = x.new_zeros((rows, rows - columns)).expand((*x.shape[:-2], rows, rows - columns))
            x = ops.cat([x, zeros], -1)
        skew = x - x.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            q = ops.matrix_exp(skew)
        else:
            identity = factories.eye(rows, dtype=skew.dtype, device=skew.device)
            q = linalg.solve(identity - 0.5 * skew, identity + 0.5 * skew)
        return q[..., :columns] if rows != columns else q

    def _householder(self, x: Tensor) -> Tensor:
        """The product of the reflections whose vectors lie below the diagonal, which has their signs."""
        vectors = x.tril(-1)
        tau = 2.0 / (1.0 + (vectors * vectors).sum(-2))
        # Only the signs count: they are numbers, not something to train.
        signs = x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        return linalg.householder_product(vectors, tau) * signs

    @no_grad()
    def right_inverse(self, q: Tensor) -> Tensor:
        """The free matrix for `q`, which is made orthogonal where it is not."""
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}."
            )
        like = q
        wide = q.shape[-2] < q.shape[-1]
        q = q.mT if wide else q
        rows, columns = q.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            a, tau = ops.geqrf(q)
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            diagonal.sign_()
            diagonal[tau == 0.0] *= -1  # a reflection that is none does not turn its sign
            return a.mT if wide else a
        if rows == columns:
            q = q.clone() if _is_orthogonal(q) else _nearest_frame(q)
        else:  # completed to a basis at random
            more = ops.randn((*q.shape[:-2], rows, rows - columns), dtype=q.dtype, device=q.device)
            q = _nearest_frame(ops.cat([q, more], -1))
        self.base = q
        # Both skew maps send this to the identity; so do the reflections, with these signs.
        start = ops.zeros_like(like)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a matrix of a module (or a batch of them) orthogonal.

    `orthogonal_map` is "matrix_exp", "cayley" or "householder"; by default the first for square and complex matrices,
    else the last.

    >>> import retrograd as torch
    >>> m = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(20, 40))
    >>> q = m.weight
    >>> bool(torch.dist(q.T @ q, torch.eye(20)) < 1e-4)
    True
    """
    weight = _weight(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


# --------------------------------------------------------------------------------------------------------- weight norm


class _WeightNorm(Module):
    """Lengths and directions, multiplied."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return with_norms(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The lengths, and the weight as directions."""
        return ops.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Make of a weight its lengths (``original0``), one for each index of `dim`, and its directions (``original1``).

    >>> import retrograd as torch
    >>> m = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(20, 40))
    >>> m.parametrizations.weight.original0.shape
    torch.Size([40, 1])
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_older(state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """What the older `nn.utils.weight_norm` saved is taken, too."""
        old = [f"{prefix}{name}_{part}" for part in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(from_older)
    return module


# ------------------------------------------------------------------------------------------------------- spectral norm


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, as the power method knows it."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            for buffer, size in zip(("_u", "_v"), matrix.shape, strict=True):
                drawn = matrix.new_empty(size).detach().normal_(0, 1)
                self.register_buffer(buffer, F.normalize(drawn, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    @no_grad()
    def _power_method(self, weight_mat: Tensor, n_power_iterations: int) -> None:
        # In place: replicas share the buffers.
        for _ in range(n_power_iterations):
            self._u.copy_(F.normalize(ops.mv(weight_mat, self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(ops.mv(weight_mat.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies: the next call writes over the buffers, and the backward pass may come after it.
        return weight / ops.vdot(self._u.clone(), ops.mv(matrix, self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Any weight will do: only its scale is lost."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight, as a matrix with `dim` by all other dimensions, by its largest singular value.

    >>> import retrograd as torch
    >>> m = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(20, 40))
    >>> bool((torch.linalg.matrix_norm(m.weight, 2) - 1).abs() < 0.2)
    True
    """
    weight = _weight(module, name)
    if dim is None:
        dim = 1 if isinstance(module, _ConvTransposeNd) else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
