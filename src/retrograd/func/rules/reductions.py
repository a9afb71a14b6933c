"""Reductions, scans and sorts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._generated import functions as generated
from ..batched import Level, front, wrap, wrap_all
from .patterns import along, flattened, over, put

Function = Callable[..., Any]


def _whole(reduce: Callable[..., Any]) -> Any:
    """A reduction of all elements, by one over dimensions of the flattened examples."""

    def apply(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return wrap_all(reduce(flattened(front(args[0])), **kwargs), level)

    return apply


def _argument(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """argmax and argmin; over all elements if no dimension is given."""
    first, dim, keepdim = args
    ndim = first._memory_.ndim
    if dim is not None and ndim:
        dim = dim + ndim if dim < 0 else dim
        return wrap(function(front(first), dim + 1, keepdim), level)
    result = function(flattened(front(first)), 1, False)
    if keepdim and ndim:
        result = generated.view(result, (level.size, *(1,) * ndim))
    return wrap(result, level)


def _aminmax(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first = args[0]
    ndim, dim, keepdim = first._memory_.ndim, kwargs["dim"], kwargs["keepdim"]
    if dim is not None and ndim:
        return wrap_all(function(front(first), dim=dim % ndim + 1, keepdim=keepdim), level)
    result = function(flattened(front(first)), dim=1, keepdim=False)
    if keepdim and ndim:
        result = type(result)(*[generated.view(part, (level.size, *(1,) * ndim)) for part in result])
    return wrap_all(result, level)


def register() -> None:
    g = generated
    put(_whole(lambda x, dtype: g.sum_dim_IntList(x, [1], False, dtype=dtype)), "sum")
    put(_whole(lambda x, dtype: g.mean_dim(x, [1], False, dtype=dtype)), "mean")
    put(_whole(lambda x, dtype: g.prod_dim_int(x, 1, False, dtype=dtype)), "prod")
    put(_whole(lambda x: g.amax(x, [1], False)), "max")
    put(_whole(lambda x: g.amin(x, [1], False)), "min")
    put(_whole(lambda x: g.median_dim(x, 1, False)[0]), "median")
    put(_whole(lambda x: g.nanmedian_dim(x, 1, False)[0]), "nanmedian")
    put(_argument, "argmax", "argmin")
    put(_aminmax, "aminmax")
    over(1, "sum_dim_IntList", "nansum", "mean_dim", "logsumexp", "var_correction", "std_correction",
         "var_mean_correction", "std_mean_correction", "amax", "amin", "all", "any", "count_nonzero")  # fmt: skip
    over(2, "linalg_vector_norm")
    along(1, "prod_dim_int", "max_dim", "min_dim", "median_dim", "nanmedian_dim", "mode", "sort", "argsort", "cumsum",
          "cumprod", "cummax", "cummin", "logcumsumexp", "_softmax", "_log_softmax", "glu")  # fmt: skip
    along(2, "kthvalue", "topk")
    along(2, "softmax_backward", "log_softmax_backward", "linear_recurrence", tensors=2)
    over(1, "fft_c2c", "fft_r2c", "fft_c2r")
