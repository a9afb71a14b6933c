"""Windows of signals, beside torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd

WINDOWS: dict[str, list[dict[str, Any]]] = {
    "bartlett": [{}],
    "blackman": [{}],
    "cosine": [{}],
    "exponential": [{}, {"tau": 0.3}, {"tau": 9.0}, {"center": 1.0, "sym": False}],
    "gaussian": [{}, {"std": 0.3}, {"std": 9.0}],
    "general_cosine": [{"a": [0.4, 0.3, 0.2, 0.1]}, {"a": (1.0,)}],
    "general_hamming": [{}, {"alpha": 0.7}],
    "hamming": [{}],
    "hann": [{}],
    "kaiser": [{}, {"beta": 0.0}, {"beta": 1.0}, {"beta": 30.0}],
    "nuttall": [{}],
}


def test_all_of_them() -> None:
    assert sorted(WINDOWS) == retrograd.signal.windows.__all__


@pytest.mark.parity
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    assert sorted(torch.signal.windows.__all__) == sorted(WINDOWS)
    for M in (0, 1, 2, 3, 7, 64, 101):
        for sym in (True, False):
            for dtype in ("float32", "float64", None):
                for options in WINDOWS[name]:
                    given = {"sym": sym, **options}
                    ours, theirs = [
                        getattr(t.signal.windows, name)(
                            M, dtype=None if dtype is None else getattr(t, dtype), device="cpu", layout=t.strided,
                            **given,
                        )
                        for t in (retrograd, torch)
                    ]  # fmt: skip
                    assert str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape)
                    # (Points of 200 and more are rounded before their exponential is taken.)
                    digits = 1e-13 if dtype == "float64" else 1e-5
                    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=0, atol=digits)


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_may_require_grad(name: str) -> None:
    """It is a leaf: what torch returns is the result of operators on points that nobody has."""
    options = WINDOWS[name][0]
    for M in (0, 1, 5):
        window = getattr(retrograd.signal.windows, name)(M, requires_grad=True, **options)
        assert window.is_leaf and window.requires_grad
        (window * 2).sum().backward()
        assert window.grad.tolist() == [2.0] * M
        assert not getattr(retrograd.signal.windows, name)(M, **options).requires_grad


@pytest.mark.parity
@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("hann", (-1,), {}),
        ("hann", (3,), {"dtype": "int64"}),
        ("bartlett", (3,), {"dtype": "float16"}),
        ("cosine", (3,), {"layout": "jagged"}),
        ("exponential", (3,), {"tau": 0}),
        ("exponential", (3,), {"center": 1.0}),
        ("gaussian", (3,), {"std": -1}),
        ("kaiser", (3,), {"beta": -1}),
        ("general_cosine", (3,), {"a": []}),
        ("general_cosine", (3,), {"a": 3}),
        ("general_cosine", (3,), {}),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused_in_torchs_words(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    said = []
    for t in (retrograd, torch):
        given = {k: getattr(t, v) if isinstance(v, str) else v for k, v in options.items()}
        with pytest.raises((ValueError, TypeError)) as caught:
            getattr(t.signal.windows, name)(*args, **given)
        said.append((caught.type, str(caught.value).rstrip(".")))
    assert said[0] == said[1]
