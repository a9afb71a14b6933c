"""Saved variables: what is kept, what is noticed when it is modified, what is freed."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import retrograd
from retrograd.autograd.saved_variable import SavedVariable, freed_by, save, save_list, unpack_array, unpack_tensor

pytestmark = pytest.mark.usefixtures("clean_state")

MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"


# -------------------------------------------------------------------------------------------------------- what is kept


def test_only_what_a_formula_that_will_run_needs(torch):
    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    assert (x * w).grad_fn._saved_self is None
    assert (x * w).grad_fn._saved_other is w
    assert (w * x).grad_fn._saved_other is None
    both = x * x.detach().requires_grad_()
    assert both.grad_fn._saved_self is x and both.grad_fn._saved_other is not None


def test_only_shapes_where_shapes_will_do():
    x = retrograd.ones(2, 3, requires_grad=True)
    array = x * 1
    reference = weakref.ref(array._numbers_)
    total = array.sum()
    del array
    assert reference() is None
    assert "self_" not in type(total.grad_fn).__slots__


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.mean(), lambda x: x + 1, lambda x: x - 1, lambda x: -x,
        lambda x: x.clone(), lambda x: x.double(), lambda x: x.cumsum(0), lambda x: retrograd.cat([x, x]),
        lambda x: retrograd.stack([x, x]), lambda x: x.flip(0), lambda x: x.t().contiguous(), lambda x: x.tril(),
    ],
)  # fmt: skip
def test_linear_operators_keep_no_values(function):
    leaf = retrograd.ones(2, 2, requires_grad=True)
    x = leaf + 1
    reference = weakref.ref(x)
    y = function(x)
    del x
    assert reference() is None
    y.sum().backward()
    y.sum().backward()  # nothing saved, nothing freed
    assert leaf.grad is not None


def test_numbers_are_kept_as_numbers(torch):
    x = torch.ones(2, requires_grad=True)
    assert (x**3).grad_fn._saved_exponent == 3
    assert (x**3).grad_fn._saved_self is x


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt", "reciprocal"])
def test_a_saved_result_is_the_result(torch, name):
    x = torch.ones(2, requires_grad=True)
    y = getattr(x, name)()
    saved = y.grad_fn._saved_result
    assert saved.tolist() == y.tolist()
    assert saved.grad_fn is y.grad_fn and saved.requires_grad
    assert saved.data_ptr() == y.data_ptr()


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt", "relu"])
def test_a_saved_result_makes_no_cycle(name, no_cycles):
    with no_cycles():
        x = retrograd.ones(2, requires_grad=True)
        y = getattr(x, name)()
        references = [weakref.ref(y), weakref.ref(y.grad_fn), weakref.ref(y._numbers_)]
        del y
        assert [r() for r in references] == [None] * 3


def test_a_saved_input_keeps_its_history(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    z = y * y
    assert z.grad_fn._saved_self is y
    (g,) = torch.autograd.grad(z, x, create_graph=True)
    (g,) = torch.autograd.grad(g, x)
    assert g.item() == 18.0


def test_freed_slots_say_so(torch):
    x = torch.ones(2, requires_grad=True)
    y = x.exp() * torch.ones(2)
    exp = y.grad_fn.next_functions[0][0]
    y.sum().backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already been freed"):
        exp._saved_result
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already been freed"):
        y.grad_fn._saved_other


# --------------------------------------------------------------------------------------------------- what is noticed

WRITES = {
    "add_": lambda torch, t: t.add_(1),
    "mul_": lambda torch, t: t.mul_(1),
    "zero_": lambda torch, t: t.zero_(),
    "iadd": lambda torch, t: t.__iadd__(1),
    "detach": lambda torch, t: t.detach().add_(1),
    "view": lambda torch, t: t.view(-1).add_(1),
    "element": lambda torch, t: t.__setitem__(0, 5.0),
    "element of a view": lambda torch, t: t[0:1].fill_(5.0),
    "copy_": lambda torch, t: t.copy_(torch.zeros(2)),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_modified_input(torch, write, create_graph):
    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    y = (x * w).sum()
    WRITES[write](torch, w)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward(create_graph=create_graph)
    assert x.grad is None


@pytest.mark.parametrize("write", WRITES)
def test_a_modified_result(torch, write):
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    with torch.no_grad():
        WRITES[write](torch, y)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()
    assert x.grad is None


def test_writes_to_data_go_unnoticed(torch):
    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    y = (x * w).sum()
    w.data.add_(1)
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_writes_to_what_is_not_needed_are_fine(torch):
    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    y = x + w
    z = y * 2
    w.add_(1)
    y.add_(1)
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_written_to_before_it_was_saved(torch):
    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    w.add_(1)
    assert w._version == 1
    y = (x * w).sum()
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [2.0, 2.0]
    w.add_(1)
    with pytest.raises(RuntimeError, match="is at version 2; expected version 1 instead"):
        y.backward()


def test_an_alias_made_after_saving_shares_the_counter(torch):
    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    y = (x * w).sum()
    alias = w.detach()
    y.backward(retain_graph=True)  # an alias alone is no write
    alias.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


def test_a_modified_member_of_a_list(torch):
    x = torch.ones(2, requires_grad=True)
    parts = [x * 2, x * 3]
    y = parts[0] * parts[1]
    with torch.no_grad():
        parts[1].add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_the_error_names_both_sides():
    x, w = retrograd.ones(2, 3, requires_grad=True), retrograd.ones(2, 3)
    y = (x * w).sum()
    w.add_(1)  # the line that the error names
    line = test_the_error_names_both_sides.__code__.co_firstlineno + 3
    with pytest.raises(RuntimeError) as error:
        y.backward()
    text = str(error.value)
    assert "[torch.FloatTensor [2, 3]]" in text
    assert "is at version 1; expected version 0 instead" in text
    assert "MulBackward0" in text and "'other'" in text
    assert f"It was last modified by add_ at {__file__}:{line}" in text
    assert "x = x.add(...) instead of x.add_(...)" in text and "clone" in text


def _zero_all(x):
    for row in x:
        row.zero_()


#: What modifies a tensor, and what the error calls it.
MODIFICATIONS = {
    "add_": lambda x: x.__iadd__(1),
    "fill_": lambda x: x.fill_(2.0),
    "copy_": lambda x: x.copy_(retrograd.zeros(2, 3)),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 1.0),
    "index_put_": lambda x: x.index_put_((retrograd.tensor([0]),), retrograd.tensor(1.0)),
    "__setitem__": lambda x: x.__setitem__(0, 1.0),
    "__setitem__ ": lambda x: x.__setitem__([0, 1], 1.0),
    "normal_": lambda x: x.normal_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "zero_": _zero_all,
    "mul": lambda x: retrograd.mul(x.detach().clone(), 2, out=x),
    "increment_version": retrograd.autograd.graph.increment_version,
}


@pytest.mark.parametrize("name", MODIFICATIONS)
@pytest.mark.parametrize("recorded", [False, True])
def test_the_error_names_the_operation_that_modified(name, recorded):
    x, w = retrograd.ones(2, 3, requires_grad=True), retrograd.ones(2, 3)
    if recorded and name not in ("mul", "zero_"):  # neither out= nor views of several outputs are recorded
        w = x * 2
    y = (x * w).sum()
    MODIFICATIONS[name](w)
    with pytest.raises(RuntimeError, match=f"last modified by {name.strip()} at .*{__name__.rpartition('.')[2]}.py"):
        y.backward()


def test_the_error_names_the_custom_function_that_modified():
    class Double(retrograd.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    x = retrograd.ones(2, requires_grad=True)
    w = x * 1
    y = w * w
    Double.apply(w)
    with pytest.raises(RuntimeError, match=r"last modified by Double\.forward at"):
        y.sum().backward()


def test_the_error_names_the_accumulation_of_a_gradient():
    x, w = retrograd.ones(2, requires_grad=True), retrograd.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    x.grad.zero_()
    y = w * x.grad
    (x * 3).sum().backward()
    with pytest.raises(RuntimeError, match=r"last modified by AccumulateGrad\. Write"):
        y.sum().backward()


def test_in_anomaly_mode_the_error_names_the_line_that_saved():
    x, w = retrograd.ones(2, requires_grad=True), retrograd.ones(2)
    with pytest.warns(UserWarning, match="Anomaly"), retrograd.autograd.detect_anomaly():
        y = (x * w).sum()  # saved here
    line = test_in_anomaly_mode_the_error_names_the_line_that_saved.__code__.co_firstlineno + 3
    w.add_(1)
    with pytest.raises(RuntimeError, match=rf"as 'other' for its gradient at \S+, line {line}, in .*: y = \(x \* w\)"):
        y.backward()


def test_the_error_names_where_the_tensor_comes_from(torch):
    x = torch.ones(2, requires_grad=True)
    w = x * 2
    y = (w * w).sum()
    w.add_(1)
    with pytest.raises(RuntimeError, match=r"which is output 0 of Add(Backward0)?, is at version 1; expected"):
        y.backward()


def test_a_modified_input_is_harmless_without_its_formula():
    """Only the gradient of w needs x."""
    x, w = retrograd.ones(2, requires_grad=True), retrograd.ones(2, requires_grad=True)
    base = x * 1
    y = base * w
    with retrograd.no_grad():
        w.add_(1)
    (g,) = retrograd.autograd.grad(y.sum(), w)
    assert g.tolist() == [1.0, 1.0]


# --------------------------------------------------------------------------------------------------------- the pieces


def test_save_picks_the_fast_way():
    tensor = retrograd.ones(2)
    assert save(tensor) is tensor
    tensor.add_(1)
    saved = save(tensor)
    assert isinstance(saved, SavedVariable) and saved.version == 1 and saved.tensor is tensor


def test_save_list():
    first, second = retrograd.ones(1), retrograd.ones(1)
    second.add_(1)
    slot = save_list([first, second])
    assert slot[0] is first and isinstance(slot[1], SavedVariable)


def test_unpacking():
    node = (retrograd.ones(1, requires_grad=True) * 2).grad_fn
    tensor = retrograd.ones(2)
    assert unpack_array(node, "self", tensor) is tensor._numbers_
    assert unpack_tensor(node, "self", tensor) is tensor
    assert unpack_array(node, "self", 2.5) == 2.5 and unpack_tensor(node, "self", None) is None
    for unpack in (unpack_array, unpack_tensor):
        with pytest.raises(RuntimeError, match="second time"):
            unpack(node, "self", freed_by(None))


def test_saved_arrays_are_never_written_to_by_the_pass():
    x = retrograd.tensor([1.0, 2.0], requires_grad=True)
    w = retrograd.tensor([3.0, 4.0])
    y = x.exp()
    before = y._numbers_.copy()
    z = (y * w + y.sin() * y).sum()
    z.backward(retain_graph=True)
    z.backward(create_graph=True)
    z.backward()
    np.testing.assert_array_equal(y._numbers_, before)
    assert w.tolist() == [3.0, 4.0]
    x.grad = None


# -------------------------------------------------------------------------------------------------- numbers are kept

NUMBERS = {
    "lerp": lambda torch, x, z: torch.lerp(x, z, 0.5),
    "lerp in place": lambda torch, x, z: (x + 1).lerp_(z, 0.5),
    "remainder": lambda torch, x, z: x % 2,
    "fmod": lambda torch, x, z: torch.fmod(x, 2),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_not_let_go(torch, name):
    """Where torch has a node of its own for numbers, it saves no tensor, and a second pass finds all it needs."""
    x, z = (torch.tensor([1.0, 2.5], requires_grad=True) for _ in range(2))
    y = NUMBERS[name](torch, x, z)
    for _ in range(2):
        y.backward(torch.ones(2))
    assert x.grad.tolist() == ([1.0, 1.0] if "lerp" in name else [2.0, 2.0])


def test_a_tensor_in_its_place_is(torch):
    x, z = (torch.tensor([1.0, 2.5], requires_grad=True) for _ in range(2))
    y = torch.lerp(x, z, torch.tensor(0.5))
    y.backward(torch.ones(2))
    with pytest.raises(RuntimeError, match="second time"):
        y.backward(torch.ones(2))
