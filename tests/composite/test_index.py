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


# ---------------------------------------------------------------------------------------------- what torch says of keys


@pytest.mark.parametrize("key", [slice(0.0, 2.0), slice("0", "1"), slice(None, 2.5)], ids=str)
def test_a_slice_is_bounded_by_ints(torch, key):
    with pytest.raises(TypeError, match="slice indices must be integers or None"):
        torch.ones(3)[key]


def test_no_index_at_all(torch):
    with pytest.raises(IndexError, match="at least one index must be provided"):
        torch.ops.aten.index.Tensor(torch.ones(1), [])


def test_an_index_into_nothing(torch):
    with pytest.raises(IndexError, match="out of bounds for dimension with size 0"):
        torch.empty(10, 0)[:, [0, 1]]


def test_values_are_asked_for_their_shape_before_their_dtype(torch):
    x = torch.arange(4)
    for values in (torch.tensor([]), torch.tensor([1.0, 2.0, 3.0])):
        with pytest.raises((RuntimeError, IndexError), match="shape mismatch"):
            x[x > -1] = values
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[x > 1] = torch.tensor([1.0, 2.0])
    assert x.tolist() == [0, 1, 2, 3]


def test_masks_of_bytes_are_warned_of_wherever_they_are_used(torch):
    mask = torch.zeros(3, dtype=torch.uint8)
    x = torch.ones(3)
    for use in (lambda: x[mask], lambda: x.index_put_((mask,), torch.ones(0)), lambda: x.index_put((mask,), x[:0])):
        with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
            use()


def test_strides_of_empty_views(torch):
    x = torch.zeros(2, 3, 4, 5)[:, :, :, 1]
    assert x[:, 1:1, :].stride() == (60, 20, 5)
    assert torch.empty(2, 0, 4).stride() == (4, 4, 1)
    assert x[:, 1:1, :].is_contiguous()


def test_unravel_index_says_what_a_shape_is(torch):
    index = torch.tensor([1])
    with pytest.raises(TypeError, match="expected 'shape' to be int or sequence"):
        torch.unravel_index(index, torch.tensor([1, 2, 3]))
    with pytest.raises(TypeError, match="expected 'shape' sequence to only contain ints"):
        torch.unravel_index(index, (1, 2, 2.0))


def test_split_by_a_tensor(torch):
    x = torch.arange(5)
    for size in (torch.tensor(2), torch.tensor(2.0), torch.tensor(2.9), torch.tensor([2])):
        assert [part.tolist() for part in torch.split(x, size)] == [[0, 1], [2, 3], [4]]
        assert [part.tolist() for part in x.split(size)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(TypeError, match="must be tuple of ints, not Tensor"):
        torch.split(x, torch.tensor([2, 3]))


def test_places_lie_in_memory_column_by_column(torch):
    for shape in ((3,), (2, 3), (2, 3, 4)):
        places = torch.ones(shape).nonzero()
        assert places.stride() == torch.argwhere(torch.ones(shape)).stride() == (1, places.shape[0])
