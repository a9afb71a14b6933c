"""CopySlices: the history of a base whose view was written to, and ``t[...] = value``."""

from __future__ import annotations

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


def names(node):
    return node.name().removeprefix("torch::autograd::")


def test_its_edges(torch):
    x, w = torch.ones(2, 2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = x * 1
    old = y.grad_fn
    y[0].mul_(w)
    node = y.grad_fn
    assert names(node) == "CopySlices"
    assert node.next_functions[0][0] is old
    assert names(node.next_functions[1][0]) == "AccumulateGrad"
    assert node.next_functions[1][0].variable is w


def test_several_writes_chain(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    for i in range(3):
        y[i].mul_(i + 2)
    depth, node = 0, y.grad_fn
    while names(node) == "CopySlices":
        depth, node = depth + 1, node.next_functions[0][0]
    assert depth == 3
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 3.0, 4.0]


def test_overlapping_writes(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    y[:2].mul_(3)
    y[1:].mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 15.0, 5.0]


def test_what_is_overwritten_gets_no_gradient(torch):
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    y = x * 2
    y[0].copy_(w)
    y.sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [2.0] * 3]
    assert w.grad.tolist() == [1.0] * 3


def test_only_the_value_is_wanted(torch):
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    y = x * 2
    y[0].mul_(w)
    (g,) = torch.autograd.grad(y.sum(), w)
    assert g.tolist() == [2.0] * 3


def test_only_the_base_is_wanted(torch):
    x, w = torch.ones(2, 3, requires_grad=True), torch.full((3,), 4.0, requires_grad=True)
    y = x * 2
    y[0].mul_(w)
    (g,) = torch.autograd.grad(y.sum(), x)
    assert g.tolist() == [[8.0] * 3, [2.0] * 3]


def test_a_base_in_another_order(torch):
    x = torch.ones(2, 3, requires_grad=True)
    y = (x * 1).t().clone().t()  # column-major
    y[1].mul_(5)
    (y * torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0, 3.0], [20.0, 25.0, 30.0]]


def test_a_base_that_is_a_part_of_its_memory(torch):
    w = torch.ones(2, requires_grad=True)
    base = torch.zeros(3, 4)[1:, 1:3].detach()
    base[0].add_(w)
    base[1].copy_(w * 2)
    base.sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_the_incoming_gradient_is_not_written_to(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    y[0].zero_()
    g = torch.ones(3)
    y.backward(g)
    assert g.tolist() == [1.0, 1.0, 1.0] and x.grad.tolist() == [0.0, 1.0, 1.0]


def test_a_second_pass_needs_retain_graph(torch):
    """Even where the operation has saved nothing, as copy_ has not."""
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    y[0].copy_(x[1])
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()


def test_double_backward(torch):
    x, w = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor(5.0, requires_grad=True)
    y = x * x
    y[0].mul_(w * w)
    gx, gw = torch.autograd.grad(y.sum(), (x, w), create_graph=True)
    assert gx.tolist() == [100.0, 6.0] and gw.item() == 40.0
    hx, hw = torch.autograd.grad(gx.sum() + gw, (x, w))
    assert hx.tolist() == [90.0, 2.0] and hw.item() == 48.0


def test_an_output_saved_by_a_write_to_a_view(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y[0].exp_()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    e = torch.tensor(1.0).exp().item()
    assert g.tolist() == pytest.approx([e, 1.0]) and h.tolist() == pytest.approx([e, 0.0])
    y = x * 1
    y[0].exp_()
    y[1] = 0.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_no_cycles(no_cycles):
    x = retrograd.ones(2, 2, requires_grad=True)
    with no_cycles():
        y = x * 1
        v = y[0]
        y[1, 1] = x[0, 0]
        v.exp_()
        y.sum().backward()
        del y, v


# ------------------------------------------------------------------------------------------------------- t[...] = value

KEYS = {
    "0": (lambda torch: 0, "CopySlices"),
    "-1": (lambda torch: -1, "CopySlices"),
    "0, 1": (lambda torch: (0, 1), "CopySlices"),
    "1:": (lambda torch: slice(1, None), "CopySlices"),
    "::2": (lambda torch: slice(None, None, 2), "CopySlices"),
    "..., 1": (lambda torch: (..., 1), "CopySlices"),
    "None, 0": (lambda torch: (None, 0), "CopySlices"),
    "...": (lambda torch: ..., None),
    ":": (lambda torch: slice(None), None),
    "()": (lambda torch: (), None),
    "[0, 2]": (lambda torch: [0, 2], "IndexPutBackward0"),
    "tensor": (lambda torch: torch.tensor([0, 2]), "IndexPutBackward0"),
    "mask": (lambda torch: torch.tensor([True, False, True]), "IndexPutBackward0"),
    "full mask": (lambda torch: torch.tensor([[True, False], [False, False], [True, True]]), "IndexPutBackward0"),
    ":, [1]": (lambda torch: (slice(None), [1]), "IndexPutBackward0"),
    "0, [1]": (lambda torch: (0, [1]), "CopySlices"),
    "[0, 1], [1, 0]": (lambda torch: ([0, 1], [1, 0]), "IndexPutBackward0"),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", ["number", "0-d", "same shape", "broadcast"])
def test_assignment_to_a_subscript(torch, key, value):
    key, name = KEYS[key]
    key = key(torch)
    x = torch.arange(6.0, dtype=torch.float64).reshape(3, 2).requires_grad_()
    y = x * 3
    shape = y.detach()[key].shape
    w = {
        "number": lambda: 7.0,
        "0-d": lambda: torch.tensor(7.0, dtype=torch.float64, requires_grad=True),
        "same shape": lambda: torch.full(shape, 7.0, dtype=torch.float64, requires_grad=True),
        "broadcast": lambda: torch.full((1, 1, *shape[1:]), 7.0, dtype=torch.float64, requires_grad=True),
    }[value]()
    y[key] = w
    assert y._version == 1
    if name is not None:
        assert names(y.grad_fn) == name
    written = torch.zeros(3, 2, dtype=torch.float64)
    written[key] = 1.0
    assert y.tolist() == (x.detach() * 3 * (1 - written) + 7 * written).tolist()
    weights = torch.tensor([[1.0, -2.0], [3.0, 0.5], [-1.0, 4.0]], dtype=torch.float64)
    (y * weights).sum().backward()
    assert x.grad.tolist() == (3 * weights * (1 - written)).tolist()
    if value != "number":
        assert w.grad.shape == w.shape
        assert w.grad.sum().item() == pytest.approx((weights * written).sum().item())


def test_assignment_of_itself_shifted(torch):
    x = torch.arange(4.0)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a"):
        x[1:] = x[:-1]
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0] and x._version == 0
    x[1:] = x[:-1].clone()
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0]


def test_operands_that_overlap(torch):
    x = torch.arange(4.0).reshape(2, 2)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a"):
        x.add_(x.t())
    x.mul_(x).add_(x.view(2, 2))
    assert x.tolist() == [[0.0, 2.0], [8.0, 18.0]] and x._version == 2


def test_an_expanded_tensor_may_be_written_to_where_it_does_not_overlap(torch):
    x = torch.zeros(1, 3).expand(2, 3)
    x[0] = 1.0
    assert x.tolist() == [[1.0] * 3] * 2
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        x[:, 0] = 2.0
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        x.add_(1)
    x.fill_(3)
    assert x.tolist() == [[3.0] * 3] * 2


def test_augmented_assignment_to_a_subscript(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    y[1:] *= 4
    y[0] += x[2]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 4.0, 5.0]
