"""Recurrent layers: the NumPy kernels beside steps written out plainly, the compiled kernels beside the NumPy ones, and
the graph beside torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import backends, kernels
from retrograd.kernels import compiled_recurrent

needs_library = pytest.mark.skipif(
    not backends.fast.is_available(), reason="retrograd[fast] is not installed (make fast)"
)
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
#: Steps, batch, inputs, hidden units: one of each, rows and columns that fill no tile, more than one block of depth.
SHAPES = [(1, 1, 1, 1), (5, 3, 4, 2), (4, 9, 7, 17), (3, 21, 5, 50), (2, 64, 3, 130), (7, 2, 40, 33)]


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def operands(kind: str, shape: tuple[int, int, int, int], bias: bool, dtype: type) -> list[Any]:
    steps, batch, inputs, hidden = shape
    rng = np.random.default_rng(sum(shape) + bias)
    rows = GATES[kind] * hidden
    sizes = [(steps, batch, inputs), (rows, inputs), (rows, hidden), (rows,), (rows,), (batch, hidden)]
    sizes += [(batch, hidden)] * (kind == "lstm")
    made: list[Any] = [(rng.standard_normal(size) / np.sqrt(size[-1])).astype(dtype) for size in sizes]
    if not bias:
        made[3] = made[4] = None
    return made


def plain(kind: str, tensors: list[Any], reverse: bool) -> list[np.ndarray]:
    """Step by step."""
    x, w, u, b, d, h, *c = tensors
    hidden = u.shape[1]
    outputs = [np.empty(0)] * len(x)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        a, r = x[t] @ w.T + (0 if b is None else b), h @ u.T + (0 if d is None else d)
        if kind == "lstm":
            i, f, g, o = [(a + r)[:, k * hidden : (k + 1) * hidden] for k in range(4)]
            c = [logistic(f) * c[0] + logistic(i) * np.tanh(g)]
            h = logistic(o) * np.tanh(c[0])
        elif kind == "gru":
            (ar, az, an), (rr, rz, rn) = [[m[:, k * hidden : (k + 1) * hidden] for k in range(3)] for m in (a, r)]
            n, z = np.tanh(an + logistic(ar + rr) * rn), logistic(az + rz)
            h = (1 - z) * n + z * h
        else:
            h = np.tanh(a + r) if kind == "rnn_tanh" else np.maximum(a + r, 0)
        outputs[t] = h
    return [np.stack(outputs), h, *c]


def forward(kind: str, tensors: list[Any], reverse: bool) -> tuple[Any, ...]:
    if kind == "lstm":
        return kernels.lstm_layer(*tensors, reverse)
    return kernels.rnn_layer(*tensors, kind, reverse)


def backward(kind: str, tensors: list[Any], reverse: bool, given: tuple[bool, ...], how: Callable = lambda g: g) -> Any:
    """The gradients for random ones of the results, those that are `given`; `how` says how the outputs' lies."""
    found = forward(kind, tensors, reverse)
    states = 2 if kind == "lstm" else 1
    rng = np.random.default_rng(7)
    pairs = zip(found[: 1 + states], given)
    grads = [rng.standard_normal(r.shape).astype(r.dtype) if want else None for r, want in pairs]
    grads[0] = None if grads[0] is None else how(grads[0])
    kept, edges = found[1 + states :], [1] * len(tensors)
    if kind == "lstm":
        return grads[: 1 + states], kernels.lstm_layer_backward(grads, *tensors, found[0], *kept, reverse, edges)
    return grads[: 1 + states], kernels.rnn_layer_backward(grads, *tensors, found[0], *kept, kind, reverse, edges)


@pytest.fixture
def numpy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lstm", "lstm_backward", "gru", "gru_backward", "plain", "plain_backward"):
        monkeypatch.setattr(compiled_recurrent, name, lambda *args: False)


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", SHAPES[:3])
def test_values(kind: str, reverse: bool, shape: tuple[int, int, int, int]) -> None:
    for bias in (True, False):
        tensors = operands(kind, shape, bias, np.float64)
        for found, expected in zip(forward(kind, tensors, reverse), plain(kind, tensors, reverse)):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.usefixtures("numpy_alone")
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "given", [(True, True, True), (True, False, False), (False, True, False), (False, False, True)]
)
def test_gradients(kind: str, reverse: bool, given: tuple[bool, ...]) -> None:
    """Finite differences of the plain steps, along a direction of each operand."""
    given = given[: 3 if kind == "lstm" else 2]
    if not any(given):
        return
    tensors = operands(kind, (4, 3, 5, 6), True, np.float64)
    grads, found = backward(kind, tensors, reverse, given)
    rng = np.random.default_rng(3)

    def value(moved: list[Any]) -> float:
        return sum(float((r * g).sum()) for r, g in zip(plain(kind, moved, reverse), grads) if g is not None)

    for k, tensor in enumerate(tensors):
        direction, step = rng.standard_normal(tensor.shape), 1e-6
        ends = [value([*tensors[:k], tensor + s * direction, *tensors[k + 1 :]]) for s in (step, -step)]
        assert (found[k] * direction).sum() == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6, abs=1e-8)


def as_it_is(g: np.ndarray) -> np.ndarray:
    return g


def batch_first(g: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(g.swapaxes(0, 1)).swapaxes(0, 1)


def spread(g: np.ndarray) -> np.ndarray:
    return np.broadcast_to(g[:1, :1, :1], g.shape)


@needs_library
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", [as_it_is, batch_first, spread])
def test_compiled(kind: str, shape: Any, dtype: type, how: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    tolerance = {"rtol": 1e-4, "atol": 2e-5} if dtype is np.float32 else {"rtol": 1e-11, "atol": 1e-12}
    reverse = shape[0] % 2 == 0
    for bias, given in ((True, (True, True, True)), (False, (True, False, False)), (True, (False, True, True))):
        tensors = operands(kind, shape, bias, dtype)
        values = forward(kind, tensors, reverse), backward(kind, tensors, reverse, given, how)[1]
        with monkeypatch.context() as patch:
            for name in ("lstm", "lstm_backward", "gru", "gru_backward", "plain", "plain_backward"):
                patch.setattr(compiled_recurrent, name, lambda *args: False)
            expected = forward(kind, tensors, reverse), backward(kind, tensors, reverse, given, how)[1]
        for mine, theirs in zip(values, expected, strict=True):
            for a, b in zip(mine, theirs, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    np.testing.assert_allclose(a, b, **tolerance)


@needs_library
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_gates_saturate_and_keep_nan(dtype: type) -> None:
    """tanh and the sigmoid, at and beyond the ends of what a float can tell from their limits."""
    x = np.concatenate([np.linspace(-120, 120, 4001), [0.0, -0.0, 1e-30, -1e-9, np.inf, -np.inf, np.nan]]).astype(dtype)
    one, zero = np.ones((1, 1), dtype), np.zeros((1, 1), dtype)
    tensors = [x[None, :, None], one, zero, None, None, np.zeros((x.size, 1), dtype)]
    (found,) = kernels.rnn_layer(*tensors, "rnn_tanh", False)[0][..., 0]
    np.testing.assert_allclose(found, np.tanh(x.astype(np.float64)), rtol=3e-7 if dtype is np.float32 else 1e-15)


def graph(output: Any) -> list[str]:
    names, waiting, seen = [], [output.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            names.append(node.name())
            waiting += [edge[0] for edge in node.next_functions]
    return sorted(names)


@pytest.mark.parity
@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True}, {"bidirectional": True, "num_layers": 2}, {"bias": False}]
)
def test_lstm_is_torchs_node(options: dict[str, Any]) -> None:
    """In float32 a layer and direction of an LSTM is one node in torch, too: its name, edges, values and gradients."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    theirs, mine = torch.nn.LSTM(3, 5, **options), retrograd.nn.LSTM(3, 5, **options)
    mine.load_state_dict({name: retrograd.from_numpy(p.numpy().copy()) for name, p in theirs.state_dict().items()})
    x = rng.standard_normal((4, 6, 3)).astype(np.float32)
    results = []
    for lib, module in ((torch, theirs), (retrograd, mine)):
        # (Torch copies an input whose batch comes first, which is a node if it has a gradient.)
        output, (h, c) = module(lib.from_numpy(x.copy()).requires_grad_("batch_first" not in options))
        (output.square().sum() + (h * c).sum()).backward()
        results.append((output, [p.grad.numpy() for p in module.parameters()]))
    (output, grads), (ours, our_grads) = results
    assert graph(ours) == graph(output)
    np.testing.assert_allclose(ours.detach().numpy(), output.detach().numpy(), rtol=1e-5, atol=1e-6)
    for a, b in zip(our_grads, grads, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_autocast(kind: str, dtype: str) -> None:
    """What becomes of a layer in mixed precision: the dtypes are torch's, the values near."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    theirs, mine = getattr(torch.nn, kind)(3, 5), getattr(retrograd.nn, kind)(3, 5)
    mine.load_state_dict({name: retrograd.from_numpy(p.numpy().copy()) for name, p in theirs.state_dict().items()})
    x = rng.standard_normal((4, 6, 3)).astype(np.float32)
    found = []
    for lib, module in ((torch, theirs), (retrograd, mine)):
        if dtype == "float32":
            with lib.autocast("cpu"):
                output, _ = module(lib.from_numpy(x.copy()))
        else:
            output, _ = module.to(lib.bfloat16)(lib.from_numpy(x.copy()).to(lib.bfloat16))
        output.float().sum().backward()
        found.append((str(output.dtype), output.detach().float().numpy(), module.weight_hh_l0.grad.float().numpy()))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[1][1], found[0][1], atol=0.02)
    np.testing.assert_allclose(found[1][2], found[0][2], rtol=0.1, atol=0.1)
