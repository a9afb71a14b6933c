"""Views: memory, versions, bases, histories that are made anew, and what creation meta forbids."""

from __future__ import annotations

import gc
import sys
import tracemalloc

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")

VIEWS = {
    "view": lambda torch, x: x.view(3, 2),
    "view(-1)": lambda torch, x: x.view(-1),
    "reshape": lambda torch, x: x.reshape(6),
    "flatten": lambda torch, x: x.flatten(),
    "transpose": lambda torch, x: x.transpose(0, 1),
    "t": lambda torch, x: x.t(),
    "mT": lambda torch, x: x.mT,
    "permute": lambda torch, x: x.permute(1, 0),
    "movedim": lambda torch, x: x.movedim(0, 1),
    "expand": lambda torch, x: x.expand(2, 2, 3),
    "unsqueeze": lambda torch, x: x.unsqueeze(1),
    "squeeze": lambda torch, x: x.squeeze(),
    "select": lambda torch, x: x.select(0, 1),
    "narrow": lambda torch, x: x.narrow(1, 1, 2),
    "x[0]": lambda torch, x: x[0],
    "x[:, 1:]": lambda torch, x: x[:, 1:],
    "x[..., ::2]": lambda torch, x: x[..., ::2],
    "x[None]": lambda torch, x: x[None],
    "x[...]": lambda torch, x: x[...],
    "x[0, 1]": lambda torch, x: x[0, 1],
    "diagonal": lambda torch, x: x.diagonal(),
    "unfold": lambda torch, x: x.unfold(1, 2, 1),
    "as_strided": lambda torch, x: x.as_strided((2, 2), (3, 2)),
    "unbind": lambda torch, x: x.unbind(0)[1],
    "split": lambda torch, x: x.split(2, 1)[1],
    "split sizes": lambda torch, x: x.split([1, 2], 1)[1],
    "chunk": lambda torch, x: x.chunk(2, 1)[0],
    "tensor_split": lambda torch, x: x.tensor_split(2, 1)[1],
    "view_as": lambda torch, x: x.view_as(torch.ones(3, 2)),
    "swapaxes": lambda torch, x: x.swapaxes(0, 1),
}
MULTIPLE = {"unbind", "split", "split sizes", "chunk"}
COMPLEX_VIEWS = {
    "real": lambda torch, x: x.real,
    "imag": lambda torch, x: x.imag,
    "view_as_real": lambda torch, x: torch.view_as_real(x),
    "view_as_real, view_as_complex": lambda torch, x: torch.view_as_complex(torch.view_as_real(x)),
}


def matrix(torch, requires_grad=True):
    values = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    return torch.tensor(values, dtype=torch.float64, requires_grad=requires_grad)


# --------------------------------------------------------------------------------------------------- memory and base


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shows_the_memory_of_its_base(torch, name):
    x = matrix(torch, requires_grad=False)
    v = VIEWS[name](torch, x)
    assert v._is_view() and v._base is x
    assert not x._is_view() and x._base is None
    assert x._version == v._version == 0
    v.zero_()
    assert x._version == v._version == 1
    assert (x == 0).any() and (v == 0).all()


@pytest.mark.parametrize("name", COMPLEX_VIEWS)
def test_complex_views(torch, name):
    x = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128)
    v = COMPLEX_VIEWS[name](torch, x)
    assert v._is_view() and v._base is x
    v.mul_(2)
    assert x._version == v._version == 1
    assert x.tolist() != [1 + 2j, 3 - 1j]


@pytest.mark.parametrize("name", COMPLEX_VIEWS)
def test_writes_to_complex_views_are_differentiated(torch, name):
    x = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
    y = x * 1
    COMPLEX_VIEWS[name](torch, y).mul_(3)
    assert "CopySlices" in y.grad_fn.name()
    torch.view_as_real(y).sum().backward()
    factor = {"real": 3 + 1j, "imag": 1 + 3j}.get(name, 3 + 3j)
    assert x.grad.tolist() == [factor, factor]


def test_another_dtype_of_the_same_memory(torch):
    x = torch.ones(3, dtype=torch.float64)
    v = x.view(torch.int64)
    v.zero_()
    assert x.tolist() == [0.0, 0.0, 0.0] and x._version == 1


def test_chained_views_collapse_onto_one_base(torch):
    x = matrix(torch, requires_grad=False)
    v = x
    for step in (lambda t: t.t(), lambda t: t[1:], lambda t: t.mT, lambda t: t[::2], lambda t: t[None].reshape(-1)):
        v = step(v)
        assert v._base is x
    v.fill_(0)
    assert x._version == 1


def test_what_is_no_view(torch):
    x = matrix(torch)
    for result in (x.clone(), x + 0, x[[0, 1]], x[x > 2], x.t().reshape(-1), x.detach(), x.data, x.t().contiguous()):
        assert not result._is_view() and result._base is None


def test_the_base_of_a_view_of_detached_memory(torch):
    x = matrix(torch)
    d = x.detach()
    v = d[0]
    assert v._base is d and not v.requires_grad
    v.add_(1)
    assert x._version == d._version == 1
    assert x.grad_fn is None and x.requires_grad


def test_a_base_is_kept_alive_by_its_views(torch):
    v = (matrix(torch) * 2)[0]
    assert v._base.tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]


def test_versions_of_a_view_go_on(torch):
    """A view made after a write starts at the version of its memory."""
    x = torch.zeros(3)
    x += 1
    v = x[1:]
    assert v._version == 1
    v += 1
    assert x._version == 2


def test_increment_version(torch):
    x = torch.zeros(3)
    v = x[1:]
    torch.autograd.graph.increment_version(v)
    torch.autograd.graph.increment_version([x, v])
    assert x._version == v._version == 3


# ----------------------------------------------------------------------------------------- histories made anew, lazily


def names(node):
    return node.name().removeprefix("torch::autograd::")


def test_the_history_of_a_view_is_made_anew_when_its_base_is_written_to(torch):
    x = matrix(torch)
    y = x * 1
    v = y[0]
    before = v.grad_fn
    assert names(before) == "SelectBackward0"
    y.mul_(10)
    assert v.grad_fn is not before and names(v.grad_fn) == "AsStridedBackward0"
    assert names(v.grad_fn.next_functions[0][0]) == "MulBackward0"
    assert v.grad_fn is v.grad_fn  # and then it stays
    v.sum().backward()
    assert x.grad.tolist() == [[10.0] * 3, [0.0] * 3]


def test_nothing_is_made_anew_without_a_write(torch):
    y = matrix(torch) * 1
    v = y[0]
    node = v.grad_fn
    y.sum().backward()
    y * 2
    assert v.grad_fn is node


def test_siblings_see_each_others_writes(torch):
    x = matrix(torch)
    y = x * 1
    row, column = y[0], y[:, 0]
    row.mul_(5)
    assert names(y.grad_fn) == "CopySlices"
    assert names(column.grad_fn) == "AsStridedBackward0"
    assert names(column.grad_fn.next_functions[0][0]) == "CopySlices"
    column.sum().backward()
    assert x.grad.tolist() == [[5.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


def test_an_unrecorded_write_also_makes_the_history_anew(torch):
    y = matrix(torch) * 1
    v = y[0]
    with torch.no_grad():
        y.zero_()
    assert names(v.grad_fn) == "AsStridedBackward0"
    assert names(v.grad_fn.next_functions[0][0]) == "MulBackward0"


def test_a_view_requires_grad_when_its_base_comes_to(torch):
    base, w = torch.zeros(2, 2), torch.ones(2, requires_grad=True)
    v = base[0]
    assert not v.requires_grad and v.is_leaf
    base[1] = w
    assert v.requires_grad and not v.is_leaf


def test_a_tensor_hook_stays_with_the_value_and_retain_grad_moves(torch):
    x = matrix(torch)
    y = x * 1
    v = y[0]
    v.retain_grad()
    seen = []
    v.register_hook(lambda grad: seen.append(grad.tolist()))
    y.mul_(2)
    (v * 3).sum().backward()
    assert v.grad.tolist() == [3.0, 3.0, 3.0]
    assert seen == []  # nobody used the former value


@pytest.mark.parametrize("name", sorted(set(VIEWS) - MULTIPLE - {"expand", "unfold"}))
def test_writing_to_a_view_is_writing_to_its_base(torch, name):
    """The gradients of a write to a view, against the same written with a mask."""
    view, x, w = VIEWS[name], matrix(torch), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], dtype=torch.float64)
    y = x * x
    view(torch, y).mul_(w)
    (y * weights).sum().backward()
    mask = torch.zeros(2, 3, dtype=torch.float64)
    view(torch, mask).fill_(1)
    p, q = matrix(torch), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    ((p * p * (1 - mask) + p * p * q * mask) * weights).sum().backward()
    assert x.grad.tolist() == p.grad.tolist()
    assert w.grad.item() == pytest.approx(q.grad.item())


@pytest.mark.parametrize("name", sorted(set(VIEWS) - MULTIPLE - {"expand", "unfold"}))
def test_double_backward_through_a_write_to_a_view(torch, name):
    view, x = VIEWS[name], matrix(torch)
    y = x * x
    part = view(torch, y)
    part.mul_(part.detach() * 0 + 2).pow_(2)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    mask = torch.zeros(2, 3, dtype=torch.float64)
    view(torch, mask).fill_(1)
    p = x.detach()
    # x² outside, (2x²)² inside: second derivatives 2 and 48 x².
    assert torch.allclose(h, 2 * (1 - mask) + 48 * p * p * mask)


# ------------------------------------------------------------------------------------------------------ half-detached


def test_a_write_to_detached_memory_is_seen_but_not_recorded(torch):
    x = matrix(torch)
    y = x * 2
    y.detach()[0].zero_()
    assert y.tolist()[0] == [0.0, 0.0, 0.0]
    assert names(y.grad_fn) == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_a_base_without_grad_gets_history_through_a_view(torch):
    w = torch.ones(2, requires_grad=True)
    base = torch.zeros(2, 2)
    base[0].add_(w * 3)
    assert base.requires_grad and names(base.grad_fn) == "CopySlices"
    base.sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_a_view_that_requires_grad_of_a_base_that_does_not(torch):
    base = torch.zeros(2, 2)
    v = base[0].requires_grad_()
    assert v.is_leaf and v.requires_grad and not base.requires_grad
    (v * 2).sum().backward()
    assert v.grad.tolist() == [2.0, 2.0] and base.grad is None
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        v.add_(1)


def test_a_leaf_that_moved_into_the_graph(torch):
    x = torch.zeros(2, requires_grad=True)
    y = x * 2
    x.requires_grad_(False)
    x[0] = y[0]
    assert not x.is_leaf
    with pytest.raises(RuntimeError, match="leaf variable has been moved into the graph interior"):
        y.sum().backward()


def test_detach_in_place_of_a_view(torch):
    v = (matrix(torch) * 1)[0]
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        v.detach_()
    assert v.requires_grad


def test_shape_changes_in_place(torch):
    x = matrix(torch)
    y = x * 1
    v = y[:1]
    assert v.squeeze_() is v and v.shape == (3,) and v._base is y and y.shape == (2, 3)
    v.mul_(2)
    y.transpose_(0, 1)
    row = y[1]
    (row * torch.tensor([1.0, 10.0], dtype=torch.float64)).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 0.0], [0.0, 10.0, 0.0]]


def test_an_older_view_of_a_base_that_was_transposed_in_place(torch):
    x = matrix(torch)
    y = x * 1
    row = y[0]
    y.transpose_(0, 1)
    row.mul_(2)
    weights = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=torch.float64)
    (y * weights).sum().backward()
    assert x.grad.tolist() == [[2.0, 6.0, 10.0], [2.0, 4.0, 6.0]]


# ------------------------------------------------------------------------------------------------------ creation meta


def state(t):
    return t.tolist(), t._version, t.requires_grad


def refuses(write, tensors, match):
    """`write` raises, and no value, version or flag has changed."""
    before = [state(t) for t in tensors]
    with pytest.raises(RuntimeError, match=match):
        write()
    assert [state(t) for t in tensors] == before


def test_a_view_of_a_leaf(torch):
    x = matrix(torch)
    for write in (lambda: x[0].add_(1), lambda: x.__setitem__(0, 1.0), lambda: x.view(-1).zero_()):
        refuses(write, [x], "a view of a leaf Variable that requires grad is being used in an in-place operation")
    refuses(lambda: x.add_(1), [x], "a leaf Variable that requires grad is being used in an in-place operation")
    assert x.grad_fn is None


@pytest.mark.parametrize("name", sorted(MULTIPLE))
def test_one_of_several_views(torch, name):
    y = matrix(torch) * 1
    v = VIEWS[name](torch, y)
    node = y.grad_fn
    refuses(
        lambda: v.mul_(2),
        [y, v],
        r"Output \d of \w+ is a view and is being modified inplace\. This view is the output of a function that "
        r"returns multiple views\. Such functions do not allow the output views to be modified inplace\. You should "
        r"replace the inplace operation by an out-of-place one\.",
    )
    assert y.grad_fn is node
    y.mul_(2)
    with pytest.raises(
        RuntimeError,
        match=r"is a view and its base or another view of its base has been modified inplace\. This view is the output "
        "of a function that returns multiple views",
    ):
        v.grad_fn


def test_several_views_without_grad_may_be_written_to(torch):
    x = torch.zeros(2, 3)
    for row in x.unbind(0):
        row += 1
    assert x.tolist() == [[1.0] * 3] * 2 and x._version == 2


def test_iterating_and_writing(torch):
    """``for row in x`` takes x apart by unbind."""
    y = matrix(torch) * 1
    with pytest.raises(RuntimeError, match="Output 0 of Unbind is a view"):
        for row in y:
            row += 1


MODES = {"no_grad": ("no_grad", "no_grad", "with grad mode enabled"),
         "inference_mode": ("inference", "inference_mode", "in normal mode")}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_a_view_from_another_mode(torch, mode):
    where, block, when = MODES[mode]
    y = matrix(torch) * 1
    with getattr(torch, mode)():
        v = y[0]
    assert v.requires_grad and v.grad_fn is None and v._base is y
    why = (
        r"Given that this use case is ambiguous and error-prone, it is forbidden\. You can clarify your code by moving "
        rf"both the view and the inplace either both inside the {block} block \(if you don't want the inplace to be "
        r"tracked\) or both outside \(if you want the inplace to be tracked\)\."
    )
    made = f"A view was created in {where} mode and"
    refuses(lambda: v.mul_(2), [y, v], rf"{made} is being modified inplace {when}\. {why}")
    y.mul_(2)
    indirect = f"{made} its base or another view of its base has been modified inplace {when}"
    with pytest.raises(RuntimeError, match=rf"{indirect}\. {why}"):
        v.grad_fn


@pytest.mark.parametrize("mode", MODES)
def test_later_views_inherit_where_they_come_from(torch, mode):
    where, _, when = MODES[mode]
    y = matrix(torch) * 1
    with getattr(torch, mode)():
        v = y[:]
    w = v[0]
    refuses(
        lambda: w.mul_(2),
        [y, v, w],
        f"Output 0 of Select is a view of a view which was created in {where} mode and is being modified inplace "
        + when,
    )


def test_which_origin_wins(torch):
    """The latest, except that inference mode is never forgotten."""
    y = matrix(torch) * 1
    with torch.no_grad():
        v = y[:]
    with pytest.raises(RuntimeError, match="returns multiple views"):
        v.unbind(0)[0].add_(1)
    with torch.inference_mode():
        v = y[:]
    with pytest.raises(RuntimeError, match="created in inference mode"):
        v.unbind(0)[0].add_(1)
    part = y.unbind(0)[0]
    with torch.no_grad():
        part = part[:]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        part.add_(1)


def test_view_and_write_in_one_mode_are_fine(torch):
    x = matrix(torch)
    with torch.no_grad():
        x[0].zero_()
        x.view(-1)[3:] = 1
    assert x.tolist() == [[0.0] * 3, [1.0] * 3] and x._version == 2 and x.is_leaf


def test_a_view_from_no_grad_that_is_only_read(torch):
    y = matrix(torch) * 1
    with torch.no_grad():
        v = y[0]
    z = v * 2
    assert z.requires_grad
    z.sum().backward()  # there is nowhere to go


def test_a_view_from_no_grad_of_what_does_not_require_grad(torch):
    base, w = torch.zeros(3), torch.ones(2, requires_grad=True)
    with torch.no_grad():
        v = base[1:]
    v.add_(1)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        v.add_(w)
    assert base.tolist() == [0.0, 1.0, 1.0] and not base.requires_grad


# ------------------------------------------------------------------------------------------------- errors, with lines


def here():
    return sys._getframe(1).f_lineno


def test_the_error_names_what_saved_and_the_line_that_wrote_to_a_view():
    x = retrograd.ones(2, 2, requires_grad=True)
    y = x * 1
    z = (y * y).sum()
    y[0].mul_(2); line = here()  # fmt: skip  # noqa: E702
    with pytest.raises(RuntimeError) as error:
        z.backward()
    text = str(error.value)
    assert "modified by an inplace operation" in text and "MulBackward0 saved it as '" in text
    assert f"test_views.py:{line}" in text and "out of place" in text


def test_the_error_names_the_subscript_that_wrote():
    x = retrograd.ones(2, 2, requires_grad=True)
    y = x.exp()
    y[0, 1] = 3.0; line = here()  # fmt: skip  # noqa: E702
    with pytest.raises(RuntimeError) as error:
        y.sum().backward()
    text = str(error.value)
    assert "ExpBackward0 saved it as 'result'" in text
    assert f"test_views.py:{line}" in text


def test_the_error_of_a_second_pass_names_the_first():
    x = retrograd.ones(2, requires_grad=True)
    y = x.exp().sum()
    y.backward(); line = here()  # fmt: skip  # noqa: E702
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time") as error:
        y.backward()
    assert f"test_views.py:{line}" in str(error.value)
    y = x * 1
    y[0].zero_()
    retrograd.autograd.grad(y.sum(), x); line = here()  # fmt: skip  # noqa: E702
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time") as error:
        y.sum().backward()
    assert f"test_views.py:{line}" in str(error.value)


def test_the_leaf_error_shows_the_block_to_write():
    x = retrograd.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"with torch.no_grad\(\):\n        x \+= \.\.\."):
        x += 1


def test_complex_views_of_a_base_that_was_transposed_in_place(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    y = x * 1
    v = torch.view_as_complex(y)
    y.transpose_(0, 1)
    if torch is retrograd:  # torch takes the complex view of the transposed matrix, and fails
        v.mul_(2)
        (y * torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)).sum().backward()
        assert x.grad.tolist() == [[2.0, 6.0], [4.0, 8.0]]


def test_real_views_of_a_base_that_was_transposed_in_place(torch):
    x = torch.tensor([[1 + 1j, 2 + 2j, 3 + 3j]], dtype=torch.complex128, requires_grad=True)
    y = x * 1
    v = torch.view_as_real(y)[0, 1]
    y.transpose_(0, 1)
    if torch is retrograd:
        v.mul_(3)
        torch.view_as_real(y).sum().backward()
        assert x.grad.tolist() == [[1 + 1j, 3 + 3j, 1 + 1j]]


def test_a_real_view_of_a_complex_tensor_transposed_in_place_has_the_right_gradient():
    """Held against finite differences. (Torch 2.13 gives the transpose of it, and a test of its own says so.)"""

    def loss(values):
        a = values.clone()
        b = retrograd.view_as_real(a)
        b.transpose_(0, 1)
        b += 1
        return (b * retrograd.arange(8.0, dtype=retrograd.float64).view(2, 2, 2)).sum()

    x = retrograd.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]], dtype=retrograd.complex128, requires_grad=True)
    loss(x).backward()
    for i in range(2):
        for j in range(2):
            for step, part in ((1e-6, "real"), (1e-6j, "imag")):
                there, back = x.detach().clone(), x.detach().clone()
                there[i, j] += step
                back[i, j] -= step
                slope = (loss(there) - loss(back)).item() / 2e-6
                assert getattr(x.grad[i, j], part).item() == pytest.approx(slope, abs=1e-6)


def test_a_chain_of_views_costs_linear_memory():
    """Each view has the steps of the one before it and one more; they are shared."""

    def bytes_per_view(n):
        gc.collect()
        tracemalloc.start()
        try:
            chain = [retrograd.ones(4, 4, requires_grad=True) * 1]
            for i in range(n):
                chain.append(chain[-1].view(16) if i % 2 == 0 else chain[-1].view(4, 4))
            used = tracemalloc.get_traced_memory()[0] / n
        finally:
            tracemalloc.stop()
        chain[0].mul_(3)  # the histories are made anew
        (grad,) = retrograd.autograd.grad(chain[-1].sum(), chain[0])
        assert grad.tolist() == retrograd.ones(4, 4).tolist()
        return used

    bytes_per_view(10)
    assert bytes_per_view(4000) < 1.5 * bytes_per_view(500)
