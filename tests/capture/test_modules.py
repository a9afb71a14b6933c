"""Every module over its options (module_cases.py), captured and eager: the same bits, or a reason."""

from __future__ import annotations

import re
from typing import Any

import pytest

import retrograd as torch
from module_cases import CASES, inputs, make
from retrograd.capture import CaptureError

#: What a program cannot repeat, by the class of the module: what the error says.
REFUSED = {
    "BatchNorm": "needs the value of a tensor",  # momentum=None: how many batches there were is a number
    "AdaptiveLogSoftmaxWithLoss": "needs the value of a tensor",  # which rows are in which cluster
    "CTCLoss": "needs the value of a tensor",  # lengths
    "MaxUnpool": "needs the value of a tensor",  # the largest index, which is checked
    "EmbeddingBag": "needs the value of a tensor|the size of whose result hangs on values",  # lengths of bags
    "Embedding": "the size of whose result hangs on values",  # max_norm: which rows are used
    "TransformerEncoder": "needs the value of a tensor",  # is the mask a causal one?
}
#: The kernels of these go a quicker way where a backward pass does not hold recorded arrays: the last bits differ.
CLOSE = ("RNN(", "GRU(", "LSTM(")
_used: set[str] = set()


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
        return [one.detach().clone() for one in results], list(grads)

    return step


def run(expression: str, names: str, captured: Any) -> list[Any]:
    """Results, gradients and buffers of four calls, and what the generator draws then."""
    torch.manual_seed(0)
    module = make(torch, expression).double()
    if "Lazy" in expression:  # the first input makes it an ordinary one
        module(*inputs(torch, names))
    step = captured(step_of(module))
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
    eager = run(expression, names, lambda step: step)
    try:
        captured = run(expression, names, torch.capture(backend="plain"))
    except CaptureError as error:
        name = next((name for name in REFUSED if expression.startswith(name)), None)
        assert name is not None, error
        assert re.search(REFUSED[name], str(error))
        _used.add(name)
        try:
            captured = run(expression, names, torch.capture(backend="plain", split=True))
        except CaptureError as error:
            assert "the size of whose result hangs on values" in str(error)
            return
    close = next((name for name in CLOSE if expression.startswith(name)), None)
    for one, two in zip(eager, captured, strict=True):
        assert one.dtype == two.dtype and one.shape == two.shape
        if one.detach().numpy().tobytes() != two.detach().numpy().tobytes():
            assert close is not None, "other bits"
            _used.add(close)
            torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("all_cases")
def test_no_exception_is_stale() -> None:
    """After all cases have run in this process."""
    if len(_used) > 0:
        assert _used >= {*REFUSED, *CLOSE}
