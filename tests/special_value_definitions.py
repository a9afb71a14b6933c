"""What operators are by definition, in other operators of torch: see test_special_value_reasons.py.

Each function takes the module first, and what the operator takes after it.
"""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Any


def prod(torch: Any, x: Any, dim: int | None = None, keepdim: bool = False, **_: Any) -> Any:
    """One factor after the other."""
    if dim is None:
        return functools.reduce(operator.mul, x.reshape(-1).unbind(0))
    result = functools.reduce(operator.mul, x.unbind(dim))
    return result.unsqueeze(dim) if keepdim else result


def cumprod(torch: Any, x: Any, dim: int, **_: Any) -> Any:
    return torch.stack(list(itertools.accumulate(x.unbind(dim), operator.mul)), dim)


def masked_cumprod(torch: Any, x: Any, dim: int, *, mask: Any = None, dtype: Any = None) -> Any:
    """Of ones where there is no element."""
    x = x if mask is None else torch.where(mask, x, torch.ones((), dtype=x.dtype))
    return cumprod(torch, x if dtype is None else x.to(dtype), dim)


def masked_logaddexp(
    torch: Any, x: Any, y: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Any:
    """The one element itself where the other is masked."""
    there = [torch.tensor(True) if mask is None else mask for mask in (input_mask, other_mask)]
    zero = torch.zeros((), dtype=x.dtype)
    x, y = torch.where(there[0], x, zero), torch.where(there[1], y, zero)
    alone = torch.where(there[0], x, torch.where(there[1], y, zero - torch.inf))
    result = torch.where(there[0] & there[1], torch.logaddexp(x, y), alone)
    return result if dtype is None else result.to(dtype)


def logcumsumexp(torch: Any, x: Any, dim: int) -> Any:
    if not x.ndim:
        return x * 1
    return torch.stack(list(itertools.accumulate(x.unbind(dim), torch.logaddexp)), dim)


def var_mean(torch: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return torch.var(x, *args, **kwargs), _mean(torch, x, *args, **kwargs)


def std_mean(torch: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return torch.std(x, *args, **kwargs), _mean(torch, x, *args, **kwargs)


def _mean(torch: Any, x: Any, *args: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    dims, flags = ([a for a in args if isinstance(a, bool) == bools] for bools in (False, True))
    return torch.mean(x, dims[0] if dims else dim, flags[1] if flags[1:] else keepdim)


def sorted_parts(torch: Any, x: Any) -> Any:
    return torch.stack([torch.var(x, 0, unbiased=False, keepdim=True), torch.mean(x, 0, keepdim=True)])


def trapezoid(torch: Any, y: Any, x: Any = None, *, dx: float = 1, dim: int = -1) -> Any:
    """Half the sum of two neighbours times their distance; torch has that where the distances are given."""
    n = y.shape[dim]
    widths = dx if x is None else x.diff(dim=-1)
    if x is not None and x.ndim == 1:
        widths = widths.reshape([-1 if d == dim % y.ndim else 1 for d in range(y.ndim)])
    return ((y.narrow(dim, 0, n - 1) + y.narrow(dim, 1, n - 1)) * widths).sum(dim) / 2


def differences(torch: Any, x: Any, y: Any, p: float = 2.0, *_: Any, **__: Any) -> Any:
    """`cdist`."""
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)


def pdist(torch: Any, x: Any, p: float = 2.0) -> Any:
    pairs = list(itertools.combinations(range(len(x)), 2))
    left, right = (torch.tensor([pair[i] for pair in pairs]) for i in (0, 1))
    return torch.linalg.vector_norm(x[left] - x[right], p, -1)


def norm_except_dim(torch: Any, v: Any, pow: int = 2, dim: int = 0) -> Any:
    if dim == -1:
        return torch.linalg.vector_norm(v, pow)
    if v.ndim == 1:
        return torch.abs(v)
    return torch.linalg.vector_norm(v, pow, [d for d in range(v.ndim) if d != dim], keepdim=True)


def group_norm(torch: Any, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Normalized first, then scaled, then shifted: as layer_norm does it in torch."""
    rows = x.reshape(x.shape[0], groups, -1)
    rows = (rows - rows.mean(-1, True)) / torch.sqrt(rows.var(-1, unbiased=False, keepdim=True) + eps)
    result = rows.reshape(x.shape)
    along = (1, -1, *[1] * (x.ndim - 2))
    result = result if weight is None else result * weight.reshape(along)
    return result if bias is None else result + bias.reshape(along)


def bilinear(torch: Any, x: Any, y: Any, weight: Any, bias: Any = None) -> Any:
    """The sum of (x[i] * y[j]) * weight[i, j]."""
    result = ((x.unsqueeze(-1) * y.unsqueeze(-2)).unsqueeze(-3) * weight).sum((-1, -2))
    return result if bias is None else result + bias


def polar(torch: Any, length: Any, angle: Any) -> Any:
    return torch.complex(length * torch.cos(angle), length * torch.sin(angle))


def vander(torch: Any, x: Any, *, N: int | None = None) -> Any:
    """The powers from 0 on, multiplied up."""
    x = x if x.ndim else x.unsqueeze(0)
    factors = [torch.ones_like(x), *[x] * ((x.shape[-1] if N is None else N) - 1)]
    return torch.stack(list(itertools.accumulate(factors, operator.mul)), -1)


def rtruediv(torch: Any, x: Any, y: Any) -> Any:
    return torch.div(x, y)


def multi_margin_loss(
    torch: Any, x: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, **options: Any
) -> Any:
    rows, target = x.reshape(-1, x.shape[-1] if x.ndim else 1), target.reshape(-1)
    losses = []
    for row, t in zip(rows, target.tolist(), strict=True):
        terms = [torch.clamp(margin - row[t] + row[i], min=0) ** p for i in range(len(row)) if i != t]
        total = sum(terms, torch.zeros((), dtype=x.dtype)) / len(row)
        losses.append(total if weight is None else total * weight[t])
    return _reduced(torch, torch.stack(losses) if x.ndim == 2 else losses[0], **options)


def multilabel_margin_loss(torch: Any, x: Any, target: Any, **options: Any) -> Any:
    losses = []
    for row, labels in zip(x.reshape(-1, x.shape[-1]), target.reshape(-1, x.shape[-1]).tolist(), strict=True):
        wanted = list(itertools.takewhile(lambda label: label >= 0, labels))
        terms = [
            torch.clamp(1 - row[t] + row[i], min=0) for t in wanted for i in range(len(row)) if i not in wanted
        ]
        losses.append(sum(terms, torch.zeros((), dtype=x.dtype)) / len(row))
    return _reduced(torch, torch.stack(losses) if x.ndim == 2 else losses[0], **options)


def _reduced(
    torch: Any, losses: Any, reduction: Any = "mean", size_average: Any = None, reduce: Any = None
) -> Any:
    if reduce is False:
        reduction = "none"
    elif size_average is not None:
        reduction = "mean" if size_average else "sum"
    reduction = {0: "none", 1: "mean", 2: "sum"}.get(reduction, reduction)
    return losses if reduction == "none" else getattr(losses, reduction)()


#: By the name of the operator in the samples.
DEFINITIONS = {
    "prod": prod,
    "cumprod": cumprod,
    "masked.cumprod": masked_cumprod,
    "masked.logaddexp": masked_logaddexp,
    "logcumsumexp": logcumsumexp,
    "var_mean": var_mean,
    "std_mean": std_mean,
    "var_mean, options": var_mean,
    "std_mean, options": std_mean,
    "sorted parts": sorted_parts,
    "trapezoid": trapezoid,
    "cdist": differences,
    "cdist, options": differences,
    "pdist": pdist,
    "norm_except_dim": norm_except_dim,
    "nn.functional.group_norm": group_norm,
    "nn.functional.bilinear": bilinear,
    "polar": polar,
    "linalg.vander": vander,
    "linalg.vander, options": vander,
    "__rtruediv__, options": rtruediv,
    "nn.functional.multi_margin_loss": multi_margin_loss,
    "nn.functional.multi_margin_loss, options": multi_margin_loss,
    "multi_margin_loss, shapes": multi_margin_loss,
    "nn.functional.multilabel_margin_loss": multilabel_margin_loss,
    "nn.functional.multilabel_margin_loss, options": multilabel_margin_loss,
    "multilabel_margin_loss, shapes": multilabel_margin_loss,
}
