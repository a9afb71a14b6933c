"""Every optimizer over its options: step for step what torch's gives, in parameters and in state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from optim_settings import COMPLEX, SETTINGS, TYPICAL
from retrograd.optim import update

STEPS = 7


def start(torch: Any, dtype: str) -> list[Any]:
    """A matrix, a vector, a number, one that never gets a gradient, and a view with its own strides."""
    rng = np.random.default_rng(1)

    def draw(*shape: int) -> np.ndarray:
        values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype[0] == "c" else 0)
        return np.asarray(values).astype(dtype)

    leaves = [draw(3, 2), draw(2), draw(), draw(4), draw(2, 3).T]
    return [torch.from_numpy(leaf).requires_grad_() for leaf in leaves]


def loss_of(torch: Any, leaves: list[Any], x: Any) -> Any:
    w, b, scale, _, v = leaves
    return ((x @ w * scale + b + x @ v).abs() ** 2).mean()


def inputs(torch: Any, dtype: str) -> Any:
    return torch.from_numpy(np.random.default_rng(2).standard_normal((5, 3)).astype(dtype))


def train(torch: Any, name: str, settings: dict[str, Any], dtype: str, steps: int = STEPS) -> tuple[list, Any]:
    leaves, x = start(torch, dtype), inputs(torch, dtype)
    optimizer = getattr(torch.optim, name)(leaves, **settings)
    trace = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(torch, leaves, x).backward()
        optimizer.step()
        trace += [leaf.detach().resolve_conj().numpy().copy() for leaf in leaves]
    return trace, optimizer.state_dict()


def assert_same_state(ours: Any, theirs: Any, **tolerances: float) -> None:
    """The same keys in the same order, the same types and dtypes, and the same values to the tolerance."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            assert_same_state(ours[key], theirs[key], **tolerances)
    elif isinstance(theirs, (list, tuple)):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        for mine, other in zip(ours, theirs):
            assert_same_state(mine, other, **tolerances)
    elif hasattr(theirs, "dtype"):
        assert str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), **tolerances)
    else:
        assert type(ours) is type(theirs) and ours == theirs


#: In steps of about 0.1, what seven roundings of float32 can add up to; in float64 nothing that is seen.
TOLERANCES = {"float32": {"rtol": 2e-4, "atol": 2e-5}, "float64": {"rtol": 1e-10, "atol": 1e-11}}


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, settings", SETTINGS)
def test_step_for_step(name: str, settings: dict[str, Any], dtype: str, doubles: Any) -> None:
    torch = pytest.importorskip("torch")
    if dtype == "float64":
        doubles(torch)  # so that counts and products of the state are of that precision too
    (ours, my_state), (theirs, state) = (train(package, name, settings, dtype) for package in (retrograd, torch))
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, **TOLERANCES[dtype])
    assert_same_state(my_state, state, **TOLERANCES[dtype])


@pytest.mark.parity
@pytest.mark.parametrize("name, settings", COMPLEX)
def test_complex_parameters(name: str, settings: dict[str, Any], doubles: Any) -> None:
    torch = pytest.importorskip("torch")
    doubles(torch)
    (ours, my_state), (theirs, state) = (
        train(package, name, settings, "complex128") for package in (retrograd, torch)
    )
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-11)
    assert_same_state(my_state, state, rtol=1e-10, atol=1e-11)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Rprop"])
def test_bfloat16(name: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for package in (retrograd, torch):
        w = package.tensor([1.0, -2.0, 3.0], dtype=package.bfloat16, requires_grad=True)
        optimizer = getattr(package.optim, name)([w], lr=0.1)
        for step in range(4):
            w.grad = (w.detach() * (step + 1)).to(package.bfloat16)
            optimizer.step()
        results.append(w.detach().float().tolist())
        assert all(value.dtype is package.bfloat16 for key, value in optimizer.state[w].items() if key != "step")
    assert results[0] == pytest.approx(results[1], rel=2**-7)


# ----------------------------------------------------------------------------------------- the two sets of operations


#: Adafactor has no rule of this kind: it looks at whole rows and columns.
RULES = [name for name in TYPICAL if name != "Adafactor"]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_both_ways_to_run_a_rule_agree(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On bare arrays and on Tensors (Note [Update rules]), whole and in blocks."""
    ways = []
    bare = update._arrays
    for arrays, block in ((bare, update.BLOCK), (bare, 2), (lambda *_: None, update.BLOCK)):
        monkeypatch.setattr(update, "_arrays", arrays)
        monkeypatch.setattr(update, "BLOCK", block)
        ways.append(train(retrograd, name, TYPICAL[name], dtype)[0])
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for whole, blocks, tensors in zip(*ways, strict=True):
        np.testing.assert_array_equal(whole, blocks)
        np.testing.assert_allclose(whole, tensors, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", RULES)
def test_plain_parameters_are_updated_as_arrays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should one of the conditions for it fail by mistake, all would still be right, but slow."""

    def refuse(*_: Any) -> None:
        raise AssertionError("on Tensors")

    monkeypatch.setattr(update, "as_real", refuse)
    for dtype in ("float32", "float64"):
        train(retrograd, name, TYPICAL[name], dtype, steps=2)


def test_no_array_of_the_size_of_a_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    import tracemalloc

    w = retrograd.zeros(1_000_000, requires_grad=True)
    w.grad = retrograd.ones(1_000_000)
    optimizer = retrograd.optim.Adam([w], weight_decay=0.1, maximize=True, amsgrad=True)
    optimizer.step()
    tracemalloc.start()
    optimizer.step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000  # bytes: the parameter has four million


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}])
def test_large_parameters(dtype: str, settings: dict[str, Any], torch: Any) -> None:
    """More than a block, where BLAS adds: the rule by hand, in double precision."""
    w = torch.linspace(-1, 1, 50_001, dtype=getattr(torch, dtype)).requires_grad_()
    optimizer = torch.optim.SGD([w], lr=0.1, **settings)
    expected, buffer = w.detach().double().numpy().copy(), np.zeros(50_001)
    momentum, decay = settings.get("momentum", 0.0), settings.get("weight_decay", 0.0)
    for step in range(3):
        w.grad = (step + 1) * w.detach().sin()
        grad = w.grad.double().numpy() + decay * expected
        buffer = momentum * buffer + grad if step else grad
        expected -= 0.1 * (grad + momentum * buffer if settings.get("nesterov") else buffer)
        optimizer.step()
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(w.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def test_a_rate_of_zero_spreads_nan(torch: Any) -> None:
    w = torch.zeros(20_000, requires_grad=True)
    w.grad = torch.full((20_000,), float("nan"))
    torch.optim.SGD([w], lr=0.0).step()
    assert w.isnan().all()


@pytest.mark.parametrize("name", TYPICAL)
def test_writes_are_counted(torch: Any, name: str) -> None:
    w = torch.ones(2, 2, requires_grad=True)
    loss = (w * w).sum()
    w.grad = torch.ones(2, 2)
    before = w._version
    optimizer = getattr(torch.optim, name)([w], **TYPICAL[name])
    optimizer.step()
    assert w._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    saved = [value for value in optimizer.state[w].values() if value.ndim]
    versions = [value._version for value in saved]
    optimizer.step()
    assert all(value._version > version for value, version in zip(saved, versions))


def test_a_write_names_the_users_line() -> None:
    w = retrograd.ones(1, requires_grad=True)
    loss = w * w
    w.grad = retrograd.ones(1)
    retrograd.optim.SGD([w]).step()
    with pytest.raises(RuntimeError, match=r"by step at .*test_algorithms\.py"):
        loss.backward()


def test_modes_see_a_step() -> None:
    """A trace sees the operators of a step; saved tensors that may change are kept from it."""
    w = retrograd.tensor([1.0, 2.0], requires_grad=True)
    optimizer = retrograd.optim.SGD([w], lr=0.5)
    with retrograd.autograd.graph.allow_mutation_on_saved_tensors():
        loss = (w * w).sum()
        w.grad = retrograd.ones(2)
        optimizer.step()
        (grad,) = retrograd.autograd.grad(loss, w)
    assert grad.tolist() == [2.0, 4.0]
    assert w.tolist() == [0.5, 1.5]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", TYPICAL)
def test_overflow_warns_of_nothing(name: str) -> None:
    w = retrograd.full((2, 2), 1e38, requires_grad=True)
    optimizer = getattr(retrograd.optim, name)([w], **TYPICAL[name])
    for value in (3e38, float("inf"), float("nan"), 0.0):
        w.grad = retrograd.full((2, 2), value)
        optimizer.step()


@pytest.mark.parity
@pytest.mark.parametrize("name, settings", [(name, TYPICAL[name]) for name in TYPICAL])
@pytest.mark.parametrize("value", [float("inf"), float("nan"), 0.0])
def test_special_gradients(name: str, settings: dict[str, Any], value: float) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for package in (retrograd, torch):
        w = package.ones(2, 2, requires_grad=True)
        optimizer = getattr(package.optim, name)([w], **settings)
        for grad in (1.0, value, -1.0):
            w.grad = package.tensor([[1.0, grad], [-2.0, 0.5]])
            optimizer.step()
        results.append(w.detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------------------------------- settings as tensors


@pytest.mark.parity
@pytest.mark.parametrize("name", [*TYPICAL, "Muon", "LBFGS"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_learning_rate_as_a_tensor(name: str, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for package in (retrograd, torch):
        w = package.tensor([[1.0, 2.0], [3.0, -4.0]], requires_grad=True)
        settings = {**TYPICAL.get(name, {}), "lr": package.full(shape, 0.1)}
        optimizer = getattr(package.optim, name)([w], **settings)

        slopes = package.tensor([[1.0, 2.0], [3.0, 4.0]])

        def closure(w: Any = w, slopes: Any = slopes) -> Any:
            w.grad = w.detach() * slopes
            return (w * w).sum()

        for _ in range(3):
            optimizer.step(closure)
        results.append(w.detach().numpy())
    tolerance = 0.005 if name == "Muon" else 1e-5  # Muon computes in bfloat16
    np.testing.assert_allclose(*results, rtol=tolerance, atol=tolerance)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_betas_as_tensors(name: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for package in (retrograd, torch):
        w = package.tensor([1.0, 2.0], requires_grad=True)
        betas = package.tensor(0.7), package.tensor([0.8])
        optimizer = getattr(package.optim, name)([w], betas=betas)
        for _ in range(3):
            w.grad = w.detach() * 2
            optimizer.step()
        results.append(w.tolist())
    assert results[0] == pytest.approx(results[1], rel=1e-6)


# ------------------------------------------------------------------------------------------------ fused, and scaling


@pytest.mark.parity
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_steps_unscale_and_skip(name: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for package in (retrograd, torch):
        w = package.tensor([1.0, 2.0], requires_grad=True)
        optimizer = getattr(package.optim, name)([w], lr=0.1, fused=True)
        assert optimizer._step_supports_amp_scaling
        for found in (0.0, 1.0, 0.0):
            w.grad = package.tensor([8.0, -8.0])
            optimizer.grad_scale, optimizer.found_inf = package.tensor(4.0), package.tensor(found)
            optimizer.step()
        results.append((w.tolist(), optimizer.state[w]["step"].item() if name != "SGD" else 0))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-6)
    assert results[0][1] == results[1][1]


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad"])
def test_only_fused_steps_take_a_scale(torch: Any, name: str) -> None:
    w = torch.ones(1, requires_grad=True)
    w.grad = torch.ones(1)
    optimizer = getattr(torch.optim, name)([w])
    optimizer.grad_scale = torch.tensor(2.0)
    with pytest.raises(AssertionError, match="Expected grad_scale and found_inf to be None"):
        optimizer.step()
