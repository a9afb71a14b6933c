"""The names of nodes where an operator has more than one form, or is another's short name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda t, x: x.clamp(0, 1), "ClampBackward1"),
        (lambda t, x: x.clamp(t.zeros(3), t.ones(3)), "ClampBackward0"),
        (lambda t, x: x.clip(min=0), "ClampBackward1"),
        (lambda t, x: x.clamp_min(0), "ClampMinBackward0"),
        (lambda t, x: t.clamp_max(x, t.ones(3)), "ClampMaxBackward1"),
        (lambda t, x: x % 2, "RemainderBackward0"),
        (lambda t, x: x % t.ones(3), "RemainderBackward1"),
        (lambda t, x: (x * 1).fmod_(t.ones(3)), "FmodBackward1"),
        (lambda t, x: t.lerp(x, x, 0.5), "LerpBackward0"),
        (lambda t, x: t.lerp(x, x, t.ones(3)), "LerpBackward1"),
        (lambda t, x: x.square(), "PowBackward0"),
        (lambda t, x: (x * 1).square_(), "PowBackward0"),
        (lambda t, x: x.log1p(), "Log1PBackward0"),
        (lambda t, x: t.special.i0e(x), "SpecialI0EBackward0"),
        (lambda t, x: t.special.xlog1py(x, x), "SpecialXlog1PyBackward0"),
    ],
)
def test_name(torch: Any, call: Callable[[Any, Any], Any], name: str) -> None:
    assert call(torch, torch.rand(3, requires_grad=True)).grad_fn.name() == name


def test_what_they_save(torch: Any) -> None:
    x = torch.rand(3, requires_grad=True)
    assert x.square().grad_fn._saved_exponent == 2
    assert x.clamp(0, 1).grad_fn._saved_max == 1
    assert x.clamp(max=torch.ones(3)).grad_fn._saved_max.tolist() == [1, 1, 1]
