"""Hooks on saved tensors: one by one, by default, and what they may not do."""

from __future__ import annotations

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


class Recorder:
    """Hooks that remember what they saw."""

    def __init__(self):
        self.packed, self.unpacked = [], []

    def pack(self, tensor):
        self.packed.append(tensor.tolist())
        return len(self.packed) - 1, tensor.detach().clone()

    def unpack(self, packed):
        self.unpacked.append(packed[0])
        return packed[1]


@pytest.fixture
def hooks(torch):
    recorder = Recorder()
    recorder.block = lambda: torch.autograd.graph.saved_tensors_hooks(recorder.pack, recorder.unpack)
    return recorder


def test_inputs_and_outputs_go_through(torch, hooks):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with hooks.block():
        y = x * x
        z = y.sqrt()
    assert hooks.packed == [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]] and hooks.unpacked == []
    z.sum().backward()
    assert sorted(hooks.unpacked) == [0, 1, 2]
    assert x.grad.tolist() == pytest.approx([1.0, 1.0])


def test_unpacked_once_for_each_pass(torch, hooks):
    x = torch.tensor([2.0], requires_grad=True)
    with hooks.block():
        y = x.exp()
    y.backward(retain_graph=True)
    y.backward()
    assert hooks.unpacked == [0, 0]


def test_indices_are_saved_tensors_too(torch, hooks):
    x = torch.arange(3.0).requires_grad_()
    with hooks.block():
        y = x[[0, 2]]
    assert hooks.packed == [[0, 2]]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 1.0]


def test_nothing_is_packed_outside(torch, hooks):
    x = torch.ones(2, requires_grad=True)
    with hooks.block():
        pass
    x * x
    with hooks.block(), torch.no_grad():
        x * x
    assert hooks.packed == []


def test_the_innermost_hooks_win(torch, hooks):
    outer = Recorder()
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(outer.pack, outer.unpack):
        with hooks.block():
            x.exp()
        x.exp()
    assert len(outer.packed) == len(hooks.packed) == 1


@pytest.mark.parametrize("write", [lambda y, w: y.mul_(w), lambda y, w: y[0].mul_(w[0]), lambda y, w: y.div_(w)])
def test_in_place_operators_pack_what_was_there(torch, hooks, write):
    """Before they write: an operand may be the very memory that is written to."""
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y, w = x * 1, torch.tensor([5.0, 7.0], requires_grad=True)
    with hooks.block():
        write(y, w)
    y.sum().backward()
    p, q = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([5.0, 7.0], requires_grad=True)
    r = p * 1
    write(r, q)
    r.sum().backward()
    assert x.grad.tolist() == p.grad.tolist() and w.grad.tolist() == q.grad.tolist()


def test_an_operand_that_is_an_alias_of_what_is_written_to(torch, hooks):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    v = y.view(2)
    with hooks.block():
        y.mul_(v)
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_an_output_of_a_write_to_a_view(torch, hooks):
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * 1
    with hooks.block():
        y[1].sqrt_()
    assert hooks.packed == [2.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 0.25]


def test_hooks_let_the_original_be_modified(torch, hooks):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    with hooks.block():
        z = (y * y).sum()
    y.zero_()
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_second_derivatives(torch, hooks):
    x = torch.tensor([2.0], requires_grad=True)
    with hooks.block():
        y = x**3
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [12.0]


def test_one_variable(torch):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    seen = []
    raw = y.grad_fn._raw_saved_self
    raw.register_hooks(lambda t: seen.append("pack") or t * 1, lambda t: seen.append("unpack") or t)
    assert seen == ["pack"]
    y.sum().backward()
    assert seen == ["pack", "unpack"] and x.grad.tolist() == [4.0, 6.0]


def test_one_variable_twice(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * x
    raw = y.grad_fn._raw_saved_self
    raw.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        raw.register_hooks(lambda t: t, lambda t: t)


def test_after_it_was_freed(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * x
    raw = y.grad_fn._raw_saved_self
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        raw.register_hooks(lambda t: t, lambda t: t)


def test_made_by_hand(torch):
    kind = type((torch.ones(1, requires_grad=True) ** 2).grad_fn._raw_saved_self)
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python is forbidden"):
        kind()


def test_wrong_hooks(torch):
    raw = (torch.ones(1, requires_grad=True) ** 2).grad_fn._raw_saved_self
    with pytest.raises(TypeError, match="incompatible function arguments"):
        raw.register_hooks(lambda t: t)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        raw.register_hooks(1, 1)


def test_unpacking_something_else(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 1.0):
        y = x * x
    with pytest.raises(TypeError, match="Output of saved tensor unpack_hook expected to be a Tensor but got result of"):
        y.sum().backward()


def test_packing_may_not_modify(torch):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
            x.clone() ** 2


def test_errors_of_hooks_come_through(torch):
    def fail(t):
        raise KeyError("mine")

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="mine"):
        with torch.autograd.graph.saved_tensors_hooks(fail, lambda t: t):
            x * x
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, fail):
        y = x * x
    with pytest.raises(KeyError, match="mine"):
        y.sum().backward()
    assert (x * x).grad_fn is not None


def test_disabled(torch):
    graph = torch.autograd.graph
    with graph.disable_saved_tensors_hooks("not now"):
        with pytest.raises(RuntimeError, match="not now"):
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass
        with pytest.raises(RuntimeError, match="not now"):
            with graph.save_on_cpu():
                pass
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        with pytest.raises(RuntimeError, match="not now"):
            with graph.disable_saved_tensors_hooks("not now"):
                pass


def test_save_on_cpu(torch):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = (x * x * x).sum()
    y.backward()
    assert x.grad.tolist() == [12.0, 27.0]


# -------------------------------------------------------------------------------------- allow_mutation_on_saved_tensors


def test_saved_tensors_may_be_modified(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = (y * y).sum() + y.exp().sum()
        y.view(-1)[0] = 100.0
        y.zero_()
        z.backward()
    assert x.grad.tolist() == pytest.approx([2 + 2.718281828, 4 + 7.389056099])


def test_clones_are_made_when_they_are_needed(torch):
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        y = x * 1
        z = y.exp() + y.sin()
        assert len(context.cloned) == 0
        y.add_(1)
        assert len(context.cloned) == 1
        y.add_(1)
        assert len(context.cloned) == 1
        z.sum().backward()


def test_backward_outside_of_the_block(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = (x * x).sum()
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors'"):
        y.backward()


def test_not_nested(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        with pytest.raises(RuntimeError, match="allow_mutation_on_saved_tensors contexts cannot be nested"):
            with torch.autograd.graph.allow_mutation_on_saved_tensors():
                pass


def test_packed_outputs_make_no_cycle(no_cycles):
    x = retrograd.ones(3, requires_grad=True)
    with no_cycles():
        with retrograd.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x.exp()
            z = y * 1
            z[0].exp_()
        z.sum().backward()
        del y, z


# ------------------------------------------------------------------------------------------------ what a pack hook sees


def test_a_pack_hook_sees_the_history_of_what_it_packs(torch):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(x, result)
            return result

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[1]

    seen = []

    def pack(t):
        seen.append((t.requires_grad, t.grad_fn and t.grad_fn.name().replace("torch::autograd::", "")))
        return t

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = x.exp()
        assert seen == [(True, "ExpBackward0")]
        x.sin()
        assert seen[1:] == [(True, None)]
        y.max(0)
        assert seen[2:] == [(False, None)]  # the indices
        Exp.apply(x)
        assert seen[3:] == [(True, None), (True, "ExpBackward")]


def test_hooks_of_one_saved_variable_see_no_history(torch):
    seen = []
    y = torch.ones(2, requires_grad=True).exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: seen.append((t.requires_grad, t.grad_fn)) or t, lambda t: t)
    assert seen == [(False, None)]


def test_an_output_with_a_number_of_its_own(torch):
    """The second output of a node, packed and unpacked, has its history: the second derivative is right."""
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64, requires_grad=True)

    def second(x):
        values, vectors = torch.linalg.eigh(x)
        (g,) = torch.autograd.grad((values * values).sum() + (vectors[0] ** 4).sum(), x, create_graph=True)
        return torch.autograd.grad((g * g).sum(), x)[0]

    expected = second(x)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        assert torch.allclose(second(x), expected)


@pytest.mark.parametrize("hooks", [(5, 6), (lambda x: x, None), ("pack", lambda x: x)])
def test_what_is_no_hook_is_refused_where_it_is_written(hooks):
    """Torch refuses it when the block is entered."""
    name = "pack_hook" if not callable(hooks[0]) else "unpack_hook"
    with pytest.raises(TypeError, match=f"{name} must be callable, not (int|str|NoneType)"):
        retrograd.autograd.graph.saved_tensors_hooks(*hooks)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda t, a, b: a * b, "other self"),
        (lambda t, a, b: a / b, "other self"),
        (lambda t, a, b: a @ b, "mat2 self"),
        (lambda t, a, b: a**b, "exponent self result"),
        (lambda t, a, b: t.atan2(a, b), "other self"),
        (lambda t, a, b: t.lerp(a, b, a), "end self weight"),
        (lambda t, a, b: t.layer_norm(a, (2,), b[0], a[0]), "bias input weight result1 result2"),
        (lambda t, a, b: t.gather(a, 0, t.tensor([[0, 1]])), "index self"),
        (lambda t, a, b: t.nn.functional.nll_loss(a, t.tensor([0, 1])), "self target total_weight"),
    ],
)
def test_tensors_are_packed_in_the_order_of_their_names(torch, call, names):
    """Inputs before results, each in the order of the names under which the node has them."""
    a, b = (torch.rand(2, 2, requires_grad=True) for _ in range(2))
    recorder = Recorder()
    with torch.autograd.graph.saved_tensors_hooks(recorder.pack, recorder.unpack):
        node = call(torch, a, b).grad_fn
    packed = list(recorder.packed)
    recorder.packed.clear()
    assert packed[len(packed) - len(names.split()) :] == [
        getattr(node, f"_saved_{name}").tolist() for name in names.split()
    ]


def test_what_two_formulas_read_is_unpacked_once(torch):
    """Both gradients of a quotient read the divisor."""
    a, b = (torch.rand(2, requires_grad=True) for _ in range(2))
    for create_graph in (False, True):
        recorder = Recorder()
        with torch.autograd.graph.saved_tensors_hooks(recorder.pack, recorder.unpack):
            y = (a / b).sum()
        torch.autograd.grad(y, (a, b), create_graph=create_graph)
        assert sorted(recorder.unpacked[:2]) == [0, 1] and recorder.unpacked.count(0) == 1


def test_numbers_are_shown_as_tensors_and_are_not_packed(torch):
    x = torch.ones(2, requires_grad=True)
    recorder = Recorder()
    with torch.autograd.graph.saved_tensors_hooks(recorder.pack, recorder.unpack):
        y = x * 2.5
    assert recorder.packed == []
    other = y.grad_fn._saved_other
    assert other.shape == () and other.dtype == torch.float64 and other.item() == 2.5
    assert (x * 2).grad_fn._saved_other.dtype == torch.int64
    y.grad_fn._raw_saved_other.register_hooks(lambda t: t * 2, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [5, 5] and x.grad.dtype == torch.float32


def test_the_raw_saved_type(torch):
    raw = (torch.ones(2, requires_grad=True) ** 2).grad_fn._raw_saved_self
    assert type(raw).__name__ == "SavedTensor" and isinstance(raw, torch._C._autograd.SavedTensor)
