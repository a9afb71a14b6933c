"""How many multiplications and additions an operator does, by the shapes of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..tensor import Tensor


def _of_product(a: Any, b: Any) -> int:
    return 2 * math.prod(a.shape) * b.shape[-1]


def _of_convolution(input: Any, weight: Any, given: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    def option(name: str, position: int, default: Any) -> Any:
        return kwargs.get(name, given[position] if position < len(given) else default)

    dims = weight.ndim - 2
    stride, padding, dilation = option("stride", 3, 1), option("padding", 4, 0), option("dilation", 5, 1)
    if option("transposed", 6, False):
        return 2 * math.prod(input.shape) * math.prod(weight.shape[1:])
    sizes = [v if isinstance(v, (tuple, list)) else (v,) * dims for v in (stride, padding, dilation)]
    outer = [
        (input.shape[2 + d] + 2 * sizes[1][d] - sizes[2][d] * (weight.shape[2 + d] - 1) - 1) // sizes[0][d] + 1
        for d in range(dims)
    ]
    return 2 * input.shape[0] * math.prod(outer) * math.prod(weight.shape)


def _pointwise(*args: Any) -> int:
    return max([math.prod(value.shape) for value in args if isinstance(value, Tensor)], default=0)


_COUNTED: dict[str, Callable[..., int]] = {
    "aten::mm": _of_product,
    "aten::bmm": _of_product,
    "aten::matmul": _of_product,
    "aten::addmm": lambda bias, a, b, *rest: _of_product(a, b),
    "aten::baddbmm": lambda bias, a, b, *rest: _of_product(a, b),
    "aten::mul": _pointwise,
    "aten::add": _pointwise,
}


def flops_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """0 of operators that are not counted.

    >>> import retrograd as torch
    >>> flops_of("aten::mm", (torch.ones(2, 3), torch.ones(3, 4)), {})
    48
    """
    if name == "aten::convolution":
        return _of_convolution(args[0], args[1], args, kwargs)
    count = _COUNTED.get(name)
    return 0 if count is None else count(*args)
