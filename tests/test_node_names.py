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


def test_numbers_have_no_edges(torch: Any) -> None:
    """Where there is a node for numbers and one for tensors, the first has no edge for the number."""
    x, t = torch.rand(3, requires_grad=True), torch.ones(3)
    for number, tensor in [
        (x % 2, x % t),
        (x.fmod(2), x.fmod(t)),
        ((x * 1).fmod_(2), (x * 1).fmod_(t)),
        (x.clamp_min(0), x.clamp_min(t)),
        (x.clamp_max(2), x.clamp_max(t)),
        (torch.lerp(x, x, 0.5), torch.lerp(x, x, t)),
    ]:
        fewer, more = number.grad_fn.next_functions, tensor.grad_fn.next_functions
        assert len(fewer) + 1 == len(more) and all(node for node, _ in fewer) and more[-1][0] is None
        for create_graph in (False, True):
            (grad,) = torch.autograd.grad(number.sum(), x, retain_graph=True, create_graph=create_graph)
            assert grad.tolist() == [1, 1, 1]
    assert len(x.clamp(0, 1).grad_fn.next_functions) == 1
    assert len(x.clamp(max=t).grad_fn.next_functions) == 3
