"""What nested tensors are: construction, sizes, views, history, hooks, custom functions, copies, files, errors."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from nested.cases import components
from retrograd.nested._internal.nested_tensor import get_tensor_symint, nested_view_from_values_offsets

LAYOUTS = pytest.mark.parametrize("layout", [torch.jagged, torch.strided], ids=str)


def make(layout: Any = torch.jagged, **kwargs: Any) -> Any:
    return torch.nested.nested_tensor([torch.from_numpy(c) for c in components(3)], layout=layout, **kwargs)


def same(a: Any, b: Any) -> bool:
    return len(a.unbind()) == len(b.unbind()) and all(torch.equal(x, y) for x, y in zip(a.unbind(), b.unbind()))


# ---------------------------------------------------------------------------------------------------------- what it is


def test_a_ragged_size_is_that_of_the_offsets() -> None:
    nt = make()
    ragged = nt.shape[1]
    assert isinstance(ragged, torch.SymInt)
    assert nt.shape == (4, ragged, 3) and nt.dim() == 3 and nt.numel() == 30 and len(nt) == 4
    assert (nt * 2).shape[1] == ragged == get_tensor_symint(nt.offsets())
    assert make().shape[1] != ragged and ragged != 4
    assert nt.stride() == (3 * ragged, 3, 1)
    assert nt.is_nested and nt.layout is torch.jagged and nt.is_contiguous()


def test_sizes_of_a_strided_tensor_are_those_that_agree() -> None:
    nt = make(torch.strided)
    assert nt.size(0) == 4 and nt.size(2) == 3 and nt.numel() == 30
    with pytest.raises(RuntimeError, match="irregular"):
        nt.size(1)
    with pytest.raises(RuntimeError, match="doesn't support sizes"):
        nt.shape
    assert nt._nested_tensor_size().tolist() == [[2, 3], [4, 3], [1, 3], [3, 3]]


@pytest.mark.parity
def test_printing_is_torchs() -> None:
    theirs = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in (torch, theirs):
            data = [t.tensor([[1.0, 2.0]]), t.tensor([[3.0, 4.0], [5.5, 6.0]])]
            strided = t.nested.nested_tensor(data, requires_grad=True)
            texts = [str(strided), str(strided.detach()), str(strided * 2), str(t.nested.nested_tensor([]))]
            jagged = t.nested.nested_tensor(data, layout=t.jagged, requires_grad=True)
            for nt in (jagged, jagged.detach(), jagged.transpose(1, 2).detach()):
                # (The number of a ragged size depends on what was made before.)
                texts.append(str(nt).replace(str(nt.shape[nt._ragged_idx]), "j"))
            if t is torch:
                ours = texts
        assert ours == texts


def test_components_may_differ_in_any_one_size() -> None:
    nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(2, 5)], layout=torch.jagged)
    assert nt._ragged_idx == 2 and nt.values().shape == (2, 8)
    assert [c.shape for c in nt] == [(2, 3), (2, 5)]


def test_holes_between_components() -> None:
    values = torch.arange(10.0).requires_grad_()
    nt = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 4, 7, 10]), torch.tensor([2, 3, 1]))
    assert not nt.is_contiguous() and nt.numel() == 6
    assert [c.tolist() for c in nt] == [[0.0, 1.0], [4.0, 5.0, 6.0], [7.0]]
    assert nt.sum() == 23  # what lies in a hole is nobody's
    (nt.contiguous() * 2).sum().backward()
    assert values.grad.tolist() == [2, 2, 0, 0, 2, 2, 2, 2, 0, 0]


def test_narrow_is_a_view() -> None:
    x = torch.arange(12.0).reshape(3, 4).clone().requires_grad_()
    nt = torch.nested.narrow(x, 1, torch.tensor([0, 1, 2]), torch.tensor([1, 3, 2]), layout=torch.jagged)
    assert nt._is_view() and nt._base is x
    nt.to_padded_tensor(0.0).sum().backward()
    assert x.grad.tolist() == [[1, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1]]


# ------------------------------------------------------------------------------------------------------------- history


@LAYOUTS
def test_a_leaf_gets_a_nested_gradient(layout: Any) -> None:
    nt = make(layout, requires_grad=True)
    assert nt.is_leaf and nt.requires_grad and nt.grad_fn is None and nt.grad is None
    y = nt * nt
    assert not y.is_leaf and y.grad_fn.name() == "MulBackward0"
    y.backward(torch.ones_like(y))
    assert nt.grad.layout is layout and same(nt.grad, nt.detach() * 2)
    assert nt.grad is nt.grad
    (nt * 3).backward(torch.ones_like(nt))
    assert same(nt.grad, nt.detach() * 2 + 3)
    nt.grad = None
    assert nt.grad is None
    nt.grad = torch.zeros_like(nt)
    assert same(nt.grad, nt.detach() * 0)


@LAYOUTS
def test_gradients_flow_into_what_it_was_made_of(layout: Any) -> None:
    a, b = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3)
    nt = torch.nested.as_nested_tensor([a, b], layout=layout)
    assert nt.requires_grad and not nt.is_leaf
    (nt * 5).to_padded_tensor(0.0).sum().backward()
    assert a.grad.tolist() == [[5.0] * 3] * 2 and b.grad is None
    fresh = torch.nested.nested_tensor([a, b], layout=layout, requires_grad=True)
    assert fresh.is_leaf


@LAYOUTS
def test_grad_of_and_for_nested_tensors(layout: Any) -> None:
    nt = make(layout, requires_grad=True)
    middle = nt * 2
    out = middle * middle
    of_middle, of_leaf = torch.autograd.grad(out, (middle, nt), torch.ones_like(out), create_graph=True)
    assert same(of_middle, middle.detach() * 2) and same(of_leaf, nt.detach() * 8)
    (second,) = torch.autograd.grad(of_leaf, nt, torch.ones_like(nt))
    assert same(second, nt.detach() * 0 + 8)


@LAYOUTS
def test_hooks_see_nested_tensors(layout: Any) -> None:
    nt = make(layout, requires_grad=True)
    middle = nt * 2
    middle.retain_grad()
    seen = []
    middle.register_hook(lambda grad: seen.append(grad))
    nt.register_hook(lambda grad: grad * 10)
    nt.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf))
    (middle * 3).backward(torch.ones_like(nt))
    assert seen[0].is_nested and same(seen[0], nt.detach() * 0 + 3)
    assert seen[1] is nt
    assert same(middle.grad, nt.detach() * 0 + 3) and same(nt.grad, nt.detach() * 0 + 60)


@LAYOUTS
def test_writes_in_place_are_seen(layout: Any) -> None:
    nt = make(layout, requires_grad=True)
    x = nt.clone()
    y = x * x
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward(torch.ones_like(y))
    z = nt.clone()
    z.mul_(3)
    z.backward(torch.ones_like(z))
    assert same(nt.grad, nt.detach() * 0 + 3)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        nt.add_(1)


@LAYOUTS
def test_custom_functions_take_and_give_nested_tensors(layout: Any) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2, x * x

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            assert first.is_nested and second.is_nested  # zeros, for the output that was not used
            (x,) = ctx.saved_tensors
            return first * 2 + second * x * 2

    nt = make(layout, requires_grad=True)
    first, second = Twice.apply(nt)
    assert first.grad_fn.name() == "TwiceBackward"
    second.backward(torch.ones_like(second))
    assert same(nt.grad, nt.detach() * 2)


@LAYOUTS
def test_whoever_watches_operators_sees_those_inside(layout: Any) -> None:
    nt = make(layout, requires_grad=True)
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        y = nt * nt
    y.backward(torch.ones_like(y))
    assert len(packed) == 2 and not packed[0].is_nested
    with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True):
        warnings.simplefilter("ignore")
        (nt.detach().requires_grad_() * 2).to_padded_tensor(0.0).sum().backward()
    from retrograd.utils.checkpoint import checkpoint

    x = make(layout, requires_grad=True)
    checkpoint(lambda v: (v * v).to_padded_tensor(0.0), x, use_reentrant=False).sum().backward()
    assert same(x.grad, x.detach() * 2)


@LAYOUTS
def test_dual_tensors(layout: Any) -> None:
    nt = make(layout)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(nt, torch.ones_like(nt))
        primal, tangent = torch.autograd.forward_ad.unpack_dual(dual * dual)
        assert same(primal, nt * nt) and same(tangent, nt * 2)


def test_modules() -> None:
    nt = make().to(torch.float32)
    layers = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.LayerNorm(5), torch.nn.GELU(), torch.nn.Dropout(0.0))
    out = layers(nt)
    for got, component in zip(out.unbind(), nt.unbind()):
        torch.testing.assert_close(got, layers(component))
    out.sum().backward()
    assert layers[0].weight.grad.shape == (5, 3)
    words = torch.nested.nested_tensor([torch.tensor([1, 2]), torch.tensor([3])], layout=torch.jagged)
    assert torch.nn.Embedding(5, 2)(words).shape == (2, words.shape[1], 2)


# --------------------------------------------------------------------------------------------------------------- views


def test_views_know_their_base() -> None:
    values = torch.randn(10, 5)
    nt = nested_view_from_values_offsets(values, torch.tensor([0, 3, 6, 10]))
    assert nt._is_view() and nt._base is values and not make()._is_view()
    values.zero_()
    assert nt.sum() == 0
    nt.add_(1)
    assert values.sum() == 50
    leaf = nt.detach().clone()
    assert leaf.values()._base is leaf and leaf.transpose(1, 2)._base is leaf and leaf.view(3, -1, 5, 1)._base is leaf
    again = nt._view_func(torch.ones(10, 5))
    assert again.shape == nt.shape and again.sum() == 50


def test_the_components_are_views() -> None:
    for layout in (torch.jagged, torch.strided):
        nt = make(layout)
        nt[1].zero_()
        assert nt.unbind()[1].sum() == 0 and nt.unbind()[0].sum() != 0


# --------------------------------------------------------------------------------------------------- copies and files


@LAYOUTS
def test_copies(layout: Any) -> None:
    nt = make(layout, requires_grad=True)
    nt.grad = torch.ones_like(nt)
    for other in (copy.deepcopy(nt), pickle.loads(pickle.dumps(nt))):
        assert same(other, nt) and other.requires_grad and other.is_leaf and other.layout is layout
        other.detach().zero_()
        assert not same(other, nt)
    assert same(copy.deepcopy(nt).grad, nt.grad)


@LAYOUTS
@pytest.mark.parametrize("weights_only", [True, False])
def test_files(layout: Any, weights_only: bool) -> None:
    for nt in (make(layout), make(layout).transpose(1, 2)):
        file = io.BytesIO()
        torch.save({"nt": nt}, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=weights_only)["nt"]
        assert same(loaded, nt) and loaded.is_contiguous() == nt.is_contiguous()


class DimRange:
    """Stands for a class of torch."""

    def __setstate__(self, state: Any) -> None:
        pass


@pytest.mark.parity
@LAYOUTS
def test_files_of_torch_and_for_torch(layout: Any) -> None:
    theirs = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source, target in ((theirs, torch), (torch, theirs)):
            kind = getattr(source, str(layout).removeprefix("torch."))
            nt = source.nested.nested_tensor([source.from_numpy(c) for c in components(3)], layout=kind)
            file = io.BytesIO()
            source.save(nt, file)
            file.seek(0)
            # Torch leaves a mark of its compiler on offsets.
            with torch.serialization.safe_globals([(DimRange, "torch._dynamo.decorators._DimRange")]):
                loaded = target.load(file, weights_only=True)
            assert loaded.is_nested
            for a, b in zip(loaded.unbind(), components(3), strict=True):
                np.testing.assert_array_equal(a.numpy(), b)


def test_a_nested_tensor_in_a_file_stays_within_its_buffer() -> None:
    sizes, strides, offsets = torch.tensor([[4]]), torch.tensor([[1]]), torch.tensor([2])
    with pytest.raises(RuntimeError, match="does not lie in a buffer of 5 elements"):
        torch._nested_view_from_buffer(torch.zeros(5), sizes, strides, offsets)


# -------------------------------------------------------------------------------------------------------------- errors

WRONG = {
    "other raggedness": lambda t, j, s: j + t.nested.nested_tensor([t.ones(2, 3)] * 4, layout=t.jagged),
    "a ragged size for a number": lambda t, j, s: j * j.size(1),
    "batch transposed": lambda t, j, s: j.transpose(0, 1),
    "batch summed": lambda t, j, s: j.sum(0),
    "ragged and another": lambda t, j, s: j.sum((1, 2)),
    "split of the ragged dimension": lambda t, j, s: t.split(j, 1, 1),
    "cat along the batch": lambda t, j, s: t.cat([j, j]),
    "squeeze of the batch": lambda t, j, s: j.squeeze(0),
    "select of the ragged dimension": lambda t, j, s: j.select(1, 0),
    "unknown operator": lambda t, j, s: j.sort(1),
    "softmax over the batch": lambda t, j, s: j.softmax(0),
    "empty list": lambda t, j, s: t.nested.nested_tensor([], layout=t.jagged),
    "two ragged sizes": lambda t, j, s: t.nested.nested_tensor([t.ones(2, 3), t.ones(3, 4)], layout=t.jagged),
    "dtypes": lambda t, j, s: t.nested.nested_tensor([t.ones(2), t.ones(3).double()], layout=t.jagged),
    "a tensor for a list": lambda t, j, s: t.nested.nested_tensor(t.ones(2, 3)),
    "one dimension": lambda t, j, s: t.nested.as_nested_tensor(t.ones(3)),
    "no offsets": lambda t, j, s: t.nested.nested_tensor_from_jagged(t.ones(3)),
    "strided: shape": lambda t, j, s: s.shape,
    "strided: dimensions": lambda t, j, s: t.nested.nested_tensor([t.ones(2), t.ones(2, 2)]),
    "strided: with a vector": lambda t, j, s: s * t.ones(3).double(),
    "strided: not contiguous": lambda t, j, s: t.tanh(s.transpose(1, 2)),
    "strided: index": lambda t, j, s: s[9],
    "strided: unbind": lambda t, j, s: s.unbind(1),
    "strided: keepdim": lambda t, j, s: s.sum(-1),
    "strided: batch transposed": lambda t, j, s: s.transpose(0, 1),
    "strided: padded, not contiguous": lambda t, j, s: t.nested.to_padded_tensor(s.transpose(1, 2), 0.0),
    "strided: mm": lambda t, j, s: t.bmm(s, s),
    "strided: unknown operator": lambda t, j, s: s.cumsum(1),
    "plain: padded": lambda t, j, s: t.ones(2).to_padded_tensor(0.0),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_are_refused_as_torch_refuses_them(name: str) -> None:
    theirs = pytest.importorskip("torch")
    kinds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in (torch, theirs):
            data = [t.from_numpy(c) for c in components(3)]
            with pytest.raises(Exception) as caught:
                WRONG[name](t, t.nested.nested_tensor(data, layout=t.jagged), t.nested.nested_tensor(data))
            kinds.append(caught.type)
    assert kinds[0] is kinds[1], kinds


def test_gradients_of_other_structure_are_refused() -> None:
    nt = make(requires_grad=True)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (nt * 2).backward(make())  # the same lengths, but other offsets
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        (nt * 2).backward()
    assert nt.grad is None
