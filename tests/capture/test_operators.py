"""Operators of the sample database, captured with first and second derivatives, beside eager ones."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as torch
import retrograd.nn.functional as F
from capture.side_by_side import compare
from retrograd import nn
from retrograd.capture import CaptureError
from retrograd.nn.functional import pool
from retrograd.utils._pytree import tree_leaves
from samples import OPS, cases
from samples.spec import Attr, Same, T, laid_out, lookup, map_tree

#: What a step may not do: these samples are refused.
_REFUSED = (
    "the size of whose result hangs on values", "which needs the value of a tensor", "a tensor of uint64",
    "sparse_gradient", "a result that is a view",
)  # fmt: skip
#: Kernels that have a quicker path for eager arrays (docs/CAPTURE.md), whose last bits may differ.
_ROUNDED = ("rnn", "rnn_tanh", "rnn_relu", "gru", "lstm")


def weighted(result: Any) -> Any:
    """A number that each element of a result has another part in."""
    weights = torch.linspace(0.5, 1.5, result.numel(), dtype=torch.float64).reshape(result.shape).to(result.dtype)
    total = (result * weights).sum()
    return total.abs() if total.is_complex() else total


def step_of(op: Any, sample: Any) -> Any:
    """An operator's results and its first and second derivatives, from tensors that require no grad."""

    def step(*tensors: Any) -> Any:
        given = [one.clone().requires_grad_() if spec.differentiable else one
                 for one, spec in zip(tensors, sample.specs, strict=True)]  # fmt: skip
        left = iter(given)

        def resolve(leaf: Any) -> Any:
            if isinstance(leaf, T):
                return next(left)
            if isinstance(leaf, Same):
                return given[leaf.index]
            return lookup(torch, leaf.name) if isinstance(leaf, Attr) else leaf

        args, kwargs = map_tree(resolve, (sample.args, sample.kwargs))
        results = [one for one in tree_leaves(op.call(torch, args, kwargs)) if isinstance(one, torch.Tensor)]
        found = [one.detach().clone() for one in results]
        leaves = [one for one in given if one.requires_grad]
        for _ in range(2 if sample.second else 1):
            results = [weighted(one) for one in results if one.requires_grad and one.numel()]
            if not results:
                break
            results = [
                one for one in torch.autograd.grad(sum(results), leaves, create_graph=True, allow_unused=True)
                if one is not None
            ]  # fmt: skip
            found += [one.detach().clone() for one in results]
        return found

    return step


def tensors_of(sample: Any, call: int) -> list[Any]:
    """Other numbers in each call, laid out in another way in the last ones."""
    rng = np.random.default_rng(sample.seed + call)
    layouts = ["strided" if call > 3 else "contiguous" if spec.layout == "expanded" else spec.layout
               for spec in sample.specs]  # fmt: skip
    return [torch.from_numpy(laid_out(spec.draw(rng), layout))
            for spec, layout in zip(sample.specs, layouts, strict=True)]  # fmt: skip


def outcome(step: Any, sample: Any, call: int) -> Any:
    try:
        found = step(*tensors_of(sample, call))
    except CaptureError:
        raise
    except Exception as error:
        return type(error)
    return [(one.shape, one.stride(), one.dtype, one.resolve_conj()._memory_) for one in found]


def same(one: Any, two: Any, exactly: bool) -> bool:
    if isinstance(one, type) or isinstance(two, type):
        return one is two
    if len(one) != len(two) or any(a[:3] != b[:3] for a, b in zip(one, two, strict=True)):
        return False
    if exactly:
        return all(np.array_equal(a[3], b[3], equal_nan=a[3].dtype.kind in "fc") for a, b in zip(one, two, strict=True))
    return all(np.allclose(a[3], b[3], rtol=1e-4, atol=1e-6, equal_nan=True) for a, b in zip(one, two, strict=True))


def differs(op: Any, sample: Any) -> str | None:
    """What a captured operator does that the eager one does not, in words."""
    step = step_of(op, sample)
    captured = torch.capture(step, backend="plain")
    # NumPy computes with complex numbers of its own in another way than with arrays of them.
    exactly = not op.name.endswith(_ROUNDED) and not any(
        np.dtype(spec.dtype).kind == "c" and not spec.shape for spec in sample.specs
    )
    for call in range(6):
        torch.manual_seed(call)
        expected = outcome(step, sample, call)
        torch.manual_seed(call)
        try:
            found = outcome(captured, sample, call)
        except CaptureError as error:
            is_meant = "sparse gradient" in op.name or any(reason in str(error) for reason in _REFUSED)
            return None if is_meant else f"{op.name}[{sample.name}]: {error}"
        if not same(expected, found, exactly):
            return f"{op.name}[{sample.name}], call {call}: {expected} and {found}"
    return None


CASES = [(op, sample) for op, sample in cases(OPS) if not op.missing_from(torch)]


@pytest.mark.parametrize("part", range(4))
def test_some_samples(part: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not [text for op, sample in CASES[part::401] if (text := differs(op, sample))]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_all_samples(part: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not [text for op, sample in CASES[part::8] if (text := differs(op, sample))]


# --------------------------------------------------------------------------------------------- what was found by them


def gradient_of(loss: Any, create_graph: bool = False) -> Any:
    def step(x: Any) -> Any:
        leaf = x.detach().requires_grad_()
        (grad,) = torch.autograd.grad(loss(leaf), leaf, create_graph=create_graph)
        return grad.detach()

    return step


WRITTEN = torch.tensor([0, 2, 1])
STEPS = {
    "a complex number beside float64": lambda x: (x.double() * 1j + (2 - 1j), x.double() ** 1j),
    "the gradient of einsum": gradient_of(lambda x: torch.einsum("ij,jk->ik", x, x).sum()),
    "histogram": lambda x: torch.histogram(x, 4, range=(0.0, 1.0)).hist,
    "second derivatives of cross entropy": gradient_of(lambda x: F.cross_entropy(x, WRITTEN), True),
    "and of several labels": gradient_of(lambda x: F.multilabel_margin_loss(x, WRITTEN.expand(3, 3)), True),
    "a power of complex numbers": gradient_of(lambda x: ((x * (3.3 + 1.7j)) ** 1.5).sum().abs()),
    "the gradient of a sum, as it lies": gradient_of(lambda x: (x.t().clone().t() * 2).sin().sum(), True),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps(name: str) -> None:
    def script(capture: Any) -> list[Any]:
        step = capture(STEPS[name])
        return [step(torch.rand(3, 3).t()) for _ in range(5)]

    compare(script)


def test_a_sparse_tensor_is_refused() -> None:
    values = torch.ones(2, requires_grad=True)

    @torch.capture
    def step(x: Any) -> Any:
        sparse = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), values, (2, 2))
        return torch.sparse.mm(sparse, x).sum().backward()

    with pytest.raises(CaptureError, match=r"cannot capture .* at .*test_operators.py:\d+ in step"):
        step(torch.ones(2, 2))


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AvgPool1d(2)

    def forward(self, x: Any) -> Any:
        return {"generated": F.relu(self.pool(x))}


def test_names_that_modules_without_a_name_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """As tests give modules that compute their names back, they are taken here: see core/quiet.py."""
    monkeypatch.setitem(vars(pool.generated), "__name__", None)  # type: ignore[attr-defined]
    model = Pooled()

    def script(capture: Any) -> list[Any]:
        step = capture(lambda x: model(x)["generated"])
        return [step(torch.full((1, 4), float(call))) for call in range(5)]

    compare(script)


FIRST = """
import retrograd as torch
matrix = torch.ones(3, 3)
step = torch.capture({step}, backend="plain")
for call in range(5):
    x = torch.full((3,), float(call))
    assert torch.equal(step(x), step.function(x)), call
assert step.source
"""


@pytest.mark.parametrize(
    "step",
    [
        "lambda x: torch.func.jacrev(lambda x: x @ matrix)(x)",
        "lambda x: torch.func.hessian(lambda x: (x @ matrix).sin().sum())(x)",
        "lambda x: torch.func.vmap(torch.func.grad(lambda x: (x @ matrix).sum()))(x.expand(2, 3))",
    ],
)
def test_what_is_imported_while_a_step_is_recorded(step: str) -> None:
    subprocess.run([sys.executable, "-c", FIRST.format(step=step)], check=True)


def test_functions_without_the_name_of_a_module() -> None:
    """Kernels stand behind such ones once a tensor is there whose dtype is for storing alone."""
    before = "import retrograd as torch\nnarrow = torch.tensor([1], dtype=torch.uint64)"
    program = FIRST.format(step="lambda x: (x @ matrix).exp()").replace("import retrograd as torch", before)
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_view_that_is_taken_again_of_another_layout() -> None:
    def script(capture: Any) -> list[Any]:
        weight = torch.ones(2, 3, 3).mT.clone(memory_format=torch.preserve_format).requires_grad_()

        def step(x: Any) -> Any:
            part = (weight.mT * x)[..., 0].as_strided((2, 3), (9, 3), 0) * 1
            whole = weight * x
            view = whole.as_strided((2, 3), (9, 1), 0)
            view.mul_(2)
            weight.grad = None
            (whole.sum() + part.sum()).backward()
            return whole.detach(), view.detach()

        captured = capture(step)
        return [[captured(torch.full((3,), float(call))), weight.grad] for call in range(5)]

    compare(script)


def test_numpy_may_be_asked_for_dimensions() -> None:
    def step(x: Any) -> Any:
        return torch.isin(x, torch.ones(2), assume_unique=True)

    captured = torch.capture(step, backend="plain")
    for call in range(4):
        x = torch.tensor([float(call), 1.0, 2.0])
        assert torch.equal(captured(x), step(x))


NAMES_SCIPY = """
import retrograd as torch
import scipy.constants

@torch.capture
def step(x):
    return x * scipy.constants.pi

for call in range(4):
    x = torch.tensor([call])
    assert torch.equal(step(x), x * 3.141592653589793)
"""


def test_scipy_is_not_looked_into() -> None:
    subprocess.run([sys.executable, "-c", NAMES_SCIPY], check=True)
