"""Samples of trigonometric and hyperbolic functions."""

from __future__ import annotations

import numpy as np

from samples.pointwise import between, binary, unary
from samples.shared import more
from samples.spec import S, given, nonzero, positive

OPS = [
    unary("sin", supports_complex=True, reference=np.sin),
    unary("cos", supports_complex=True, reference=np.cos),
    unary("tan", between(-1.2, 1.2), supports_complex=True, reference=np.tan),
    unary("asin", between(-0.8, 0.8), supports_complex=True, reference=np.arcsin),
    unary("acos", between(-0.8, 0.8), supports_complex=True, reference=np.arccos),
    unary("atan", between(-0.8, 0.8), supports_complex=True, reference=np.arctan),
    unary("sinh", supports_complex=True, reference=np.sinh),
    unary("cosh", supports_complex=True, reference=np.cosh),
    unary("tanh", supports_complex=True, reference=np.tanh),
    # torch has no derivative of the inverse hyperbolic functions in place.
    unary("asinh", between(-0.8, 0.8), inplace=None, supports_complex=True, reference=np.arcsinh),
    unary("acosh", between(1.3, 3.0), inplace=None, supports_complex=True, reference=np.arccosh),
    unary("atanh", between(-0.8, 0.8), inplace=None, supports_complex=True, reference=np.arctanh),
    unary("arcsin", between(-0.8, 0.8), extra=True),
    unary("arccos", between(-0.8, 0.8), extra=True),
    unary("arctan", between(-0.8, 0.8), extra=True),
    unary("arcsinh", between(-0.8, 0.8), inplace=None, extra=True),
    unary("arccosh", between(1.3, 3.0), inplace=None, extra=True),
    unary("arctanh", between(-0.8, 0.8), inplace=None, extra=True),
    binary("atan2", positive, nonzero, number=None, boolean=False, extra=True, reference=np.arctan2),
    more(
        "arccosh_",
        S("all three", given([1.5, 2.5]), second=False, torch_first=False),
        fn=lambda torch, x: torch.stack(
            [(x * 1).arccosh_(), (x * 1).arcsinh_(), (x * 0.3).arctanh_(), (x * 1).conj_physical_()]
        ),
    ),
]
