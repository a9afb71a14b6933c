"""``x[key] = value`` beside torch: every kind of key, of value and of tensor that is written to."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd

try:
    import torch
except ImportError:
    torch = None

KEYS = [
    "0", "-1", "1:", "::2", "2:1", "None", "...", "()", "None, 0", "0, None", "..., 0", "0, ...", "1, 2", "1, 1:, None",
    "..., None", "True", "False", "0, False", ":, True", "[0, 1]", "[0, 0]", "[[0, 1], [1, 0]]", "[]", "[True, False]",
    "t.tensor([1, 0])", "t.tensor(1)", "t.tensor(True)", "t.tensor([True, False])", "b > 0", "0, b[0] > 0",
    "b[:, 0] > 0, 1", ":, [0, 2]", "[0, 1], [1, 2]", "..., [0, 2]", "None, [0, 1]", "[0, 1], None", "[0], None, [1]",
    "t.tensor([[0], [1]]), t.tensor([0, 2])", "t.tensor([0, 1], dtype=t.int32)", "t.tensor([], dtype=t.int64)",
    "range(2)", "(0, 1)", "np.array([0, 1])", "np.int64(1)", "...,t.tensor([0]),None,[1]",
    # refused
    "::-1", "::0", "5", "0, 0, 0", "1.5", "'a'", "(b > 0)[0]", "t.tensor([1.0])", "t.tensor([5])",
]  # fmt: skip
VALUES = [
    "1.5", "True", "1j", "None", "[1.0, 2.0]", "v", "v[0]", "v[:1]", "v[None]", "w", "w[:, :1]", "w[None]", "g", "g[0]",
    "g[:1]", "h", "h[None]", "h[:, :1]", "v.double()", "v[0].double()", "b[0]", "h.T",
]  # fmt: skip
ROWS = [[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0]]


def plain(t):
    return t.tensor(ROWS), None


def recorded(t):
    x = t.tensor(ROWS, requires_grad=True)
    return x * 1, x


def view(t):
    x = t.tensor(ROWS, requires_grad=True)
    return (x * 1).reshape(3, 2).view(2, 3), x


def transposed(t):
    x = t.tensor([list(row) for row in zip(*ROWS)], requires_grad=True)
    return (x * 1).t(), x


def leaf(t):
    x = t.tensor(ROWS, requires_grad=True)
    return x, x


def integers(t):
    return t.tensor(ROWS).long(), None


def unbound(t):
    x = t.tensor([ROWS, ROWS], requires_grad=True)
    return (x * 1).unbind(0)[0], x


def from_no_grad(t):
    x = t.tensor(ROWS, requires_grad=True)
    y = x * 1
    with t.no_grad():
        return y[...], x


KINDS = [plain, recorded, view, transposed, leaf, integers, unbound, from_no_grad]


def test_what_an_integer_tensor_holds_has_no_gradient():
    """(Torch lets it require grad all the same, and refuses to differentiate what is made of it.)"""
    b, g = retrograd.zeros(2, 3, dtype=retrograd.int64), retrograd.ones(3, requires_grad=True)
    b[0] = g
    assert not b.requires_grad and b.tolist() == [[1, 1, 1], [0, 0, 0]]


def outcome(t, kind, key, value):
    """What ``b[key] = value`` does: its error, the values, the version, and the gradients of a loss."""
    b, x = kind(t)
    g = t.tensor([7.0, 8.0, 9.0], requires_grad=True)
    h = t.tensor([[7.0, 8.0, 9.0], [10.0, 11.0, 12.0]], requires_grad=True)
    names = {"t": t, "np": np, "b": b, "v": t.tensor([7.0, 8.0, 9.0]), "w": t.tensor(ROWS) * 10, "g": g, "h": h}
    try:
        exec(f"b[{key}] = {value}", names)
        error = None
    except Exception as e:
        error = type(e).__name__
    seen = [error, b._version, b.requires_grad, b.tolist()]
    if b.grad_fn is not None and error is None:
        seen.append(b.grad_fn.name().replace("torch::autograd::", "").rstrip("0123456789"))
        (b * b * t.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).sum().backward()
        seen += [None if leaf is None or leaf.grad is None else leaf.grad.tolist() for leaf in (x, g, h)]
    return seen


#: Torch takes strides of dimensions of size 1 for a difference, and so the tensor for one that overlaps in part.
EXCEPT = {("None, 0", "b[0]")}
#: Torch has two reasons to refuse and finds the other one first.
TWO_REASONS = {"(b > 0)[0]", "t.tensor([1.0])", "t.tensor([5])"}


@pytest.mark.parity
@pytest.mark.skipif(torch is None, reason="torch is not installed")
@pytest.mark.parametrize("key", KEYS)
def test_assignment_to_a_subscript_is_torchs(key):
    for kind in KINDS:
        for value in VALUES:
            if (key, value) in EXCEPT or (kind is integers and value[0] in "gh"):
                continue
            mine, theirs = outcome(retrograd, kind, key, value), outcome(torch, kind, key, value)
            if key in TWO_REASONS:
                assert (mine[0] is None) == (theirs[0] is None) and mine[1:] == theirs[1:]
            else:
                assert mine == theirs, f"{kind.__name__}: b[{key}] = {value}"


@pytest.mark.parametrize("name, dim", [("unique", None), ("unique", 0), ("unique_consecutive", None)])
def test_only_the_elements_that_unique_finds_require_grad(name, dim):
    """They have a grad_fn, though no derivative; where they occur and how often are integers."""
    for t in (retrograd, torch):
        if t is None:
            continue
        x = t.tensor([3.0, 1.0, 1.0, 3.0], requires_grad=True)
        elements, places, counts = getattr(t, name)(x, return_inverse=True, return_counts=True, dim=dim)
        assert elements.requires_grad and not places.requires_grad and not counts.requires_grad
        expected = {("unique", None): "Unique2", ("unique", 0): "UniqueDim"}.get((name, dim), "UniqueConsecutive")
        assert elements.grad_fn.name() == f"{expected}Backward0"
        with pytest.raises(NotImplementedError, match=r"the derivative for '.*' is not implemented"):
            elements.sum().backward()
        assert not getattr(t, name)(t.tensor([3, 1, 1])).requires_grad
