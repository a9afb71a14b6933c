"""Every module over its options (module_cases.py), captured and eager: the same bits, or a reason."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

import retrograd as torch
from module_cases import CASES, inputs, make
from retrograd.capture import CaptureError

#: What a program cannot do, and what the error says.
REFUSED: dict[str, str] = {}


def tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for part in value for leaf in tensors(part)] if isinstance(value, (tuple, list)) else []


def step_of(module: Any) -> Any:
    def step(*arguments: Any) -> Any:
        results = tensors(module(*arguments))
        wanted = [one for one in tensors(arguments) if one.requires_grad] + list(module.parameters())
        total = sum([one.square().sum() for one in results if one.requires_grad], torch.zeros(()))
        grads = torch.autograd.grad(total, wanted, allow_unused=True) if total.requires_grad else ()
        return [one.detach() for one in results], list(grads)

    return step


def run(expression: str, names: str, backend: str | None) -> list[Any]:
    torch.manual_seed(0)
    module = make(torch, expression)
    if "Lazy" in expression:
        module.double()(*inputs(torch, names))
    step = step_of(module.double() if expression.startswith("Lazy") else module)
    if backend is not None:
        step = torch.capture(step, backend=backend)
    torch.manual_seed(1)
    found: list[Any] = []
    arguments = inputs(torch, names)
    for _ in range(4):
        found += [one.clone() for one in tensors(step(*arguments))]
        found += [buffer.clone() for buffer in module.buffers()]
    return [*found, torch.rand(2)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression, names", CASES, ids=[f"{e}-{n}" for e, n in CASES])
def test_a_captured_module_is_the_eager_one(expression: str, names: str) -> None:
    eager = run(expression, names, None)
    captured = run(expression, names, "plain")
    assert len(eager) == len(captured)
    for one, two in zip(eager, captured, strict=True):
        assert one.dtype == two.dtype and one.shape == two.shape
        assert one.detach().numpy().tobytes() == two.detach().numpy().tobytes()
