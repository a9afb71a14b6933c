"""Random correlations."""

from __future__ import annotations

import math
from typing import Any

from ..autograd.grad_mode import no_grad
from ..core.size import Size
from ..core.type_info import finfo
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all, standard_normal

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, whose density is a power of the determinant.

    >>> import retrograd as torch
    >>> torch.distributions.LKJCholesky(3, 0.5).sample().shape
    torch.Size([3, 3])
    """

    arg_constraints: Any = {"concentration": constraints.positive}
    support: Any = constraints.corr_cholesky
    _batched = ("concentration", "_beta")
    _kept = ("dim",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of what stands before the diagonal in each row (the "onion" of Lewandowski and others,
        # 2009); the first row has none of it.
        rows = ops.arange(-1, dim - 1, dtype=self.concentration.dtype, device=self.concentration.device).clamp(min=0)
        rest = (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * rows
        self._beta = Beta(rows + 0.5, rest, validate_args=validate_args)
        super().__init__(self.concentration.shape, Size((dim, dim)), validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            directions = standard_normal(self._extended_shape(sample_shape), squares).tril(-1)
            lengths = directions.norm(dim=-1, keepdim=True)
            w = squares.sqrt() * (directions / lengths.masked_fill(lengths == 0, 1))
            diagonal = (1 - (w**2).sum(-1)).clamp(min=finfo(w.dtype).tiny).sqrt()
            return w + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        diagonal = self._checked(value).diagonal(dim1=-1, dim2=-2)[..., 1:]
        n, eta = self.dim - 1, self.concentration
        powers = 2 * (eta - 1).unsqueeze(-1) + ops.arange(n - 1, -1, -1, dtype=eta.dtype, device=eta.device)
        alpha = eta + 0.5 * n
        norm = 0.5 * n * math.log(math.pi) + ops.mvlgamma(alpha - 0.5, n) - n * alpha.lgamma()
        return (powers * diagonal.log()).sum(-1) - norm
