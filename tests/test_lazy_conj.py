"""Lazily conjugated and negated views: tensor/lazy_conjugation.py, beside torch."""

from __future__ import annotations

import copy
import io
import pickle
import random

import numpy as np
import pytest

import retrograd
from aliasing.compare import OutOfStep, difference, shortened, step_differences
from aliasing.programs import SHAPES, WEIGHTS, Features, Generator, Machine
from samples import OPS
from samples.spec import map_tree

Z = [[1 + 2j, 3 - 1j], [0.5j, 2 + 1j]]


@pytest.fixture
def x(torch):
    return torch.tensor(Z, dtype=torch.complex128)


def array(tensor):
    return tensor.detach().numpy(force=True)


def bits(tensor):
    return tensor.is_conj(), tensor.is_neg()


def check_values(tensor, expected):
    np.testing.assert_allclose(array(tensor), expected, rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------------------------------------------------ the bits


def test_conj_is_a_view_with_a_bit(torch, x):
    c = x.conj()
    assert bits(c) == (True, False) and torch.is_conj(c) and not torch.is_neg(c)
    assert c._is_view() and c._base is x and c.data_ptr() == x.data_ptr()
    assert c.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert c.stride() == x.stride() and c.storage_offset() == 0 and c.is_contiguous()
    check_values(c, np.conj(Z))
    assert type(c).__name__ == "Tensor" and isinstance(c, torch.Tensor)


def test_conj_twice_is_the_tensor_again(torch, x):
    again = x.conj().conj()
    assert bits(again) == (False, False) and again._base is x and again is not x
    check_values(again, Z)


def test_a_real_tensor_is_its_own_conjugate(torch):
    r = torch.tensor([1.0, 2.0])
    assert r.conj() is r and r.resolve_conj() is r and r.resolve_neg() is r and r.conj_physical() is r
    assert torch._neg_view(r).conj().is_neg()


@pytest.mark.parametrize("conj", [False, True])
@pytest.mark.parametrize("neg", [False, True])
def test_parts(torch, x, conj, neg):
    z, t = np.array(Z), x
    if neg:
        z, t = -z, torch._neg_view(t)
    if conj:
        z, t = z.conj(), t.conj()
    assert bits(t) == (conj, neg)
    check_values(t, z)
    assert bits(t.real) == (False, neg) and bits(t.imag) == (False, neg != conj)
    check_values(t.real, z.real)
    check_values(t.imag, z.imag)
    assert t.real.data_ptr() == x.data_ptr() and t.imag.data_ptr() == x.data_ptr() + 8


def test_neg_view(torch):
    for values in ([1.0, -2.0], [1, -2]):
        t = torch.tensor(values)
        n = torch._neg_view(t)
        assert bits(n) == (False, True) and n._base is t and n.data_ptr() == t.data_ptr()
        assert n.tolist() == [-v for v in values]
        assert bits(torch._neg_view(n)) == (False, False)


VIEWS = {
    "index": lambda t: t[0],
    "slice": lambda t: t[:, 1:],
    "ellipsis": lambda t: t[...],
    "transpose": lambda t: t.t(),
    "permute": lambda t: t.permute(1, 0),
    "mT": lambda t: t.mT,
    "view": lambda t: t.view(4),
    "reshape": lambda t: t.reshape(4, 1),
    "flatten": lambda t: t.flatten(),
    "expand": lambda t: t[0].expand(3, 2),
    "diagonal": lambda t: t.diagonal(),
    "unbind": lambda t: t.unbind()[1],
    "split": lambda t: t.split(1)[1],
    "chunk": lambda t: t.chunk(2, 1)[1],
    "unfold": lambda t: t.unfold(0, 1, 1),
    "narrow": lambda t: t.narrow(0, 1, 1),
    "select": lambda t: t.select(1, 1),
    "squeeze": lambda t: t.squeeze(),
    "unsqueeze": lambda t: t.unsqueeze(1),
    "as_strided": lambda t: t.as_strided((2,), (2,), 1),
    "positive": lambda t: +t,
    "movedim": lambda t: t.movedim(0, 1),
    "view_as": lambda t: t.view_as(t),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("lazy", ["conj", "_neg_view"])
def test_views_keep_the_bits(torch, x, name, lazy):
    view, plain = VIEWS[name](getattr(x, lazy)()), VIEWS[name](x)
    assert bits(view) == bits(getattr(x, lazy)()) and view._base is x
    assert (view.data_ptr(), view.stride(), view.shape) == (plain.data_ptr(), plain.stride(), plain.shape)
    check_values(view, np.conj(array(plain)) if lazy == "conj" else -array(plain))


@pytest.mark.parametrize("name", "detach resolve_neg contiguous cpu cdouble data".split())
def test_what_keeps_the_bits(torch, x, name):
    result = getattr(x.conj(), name)
    assert bits(result() if callable(result) else result) == (True, False)


@pytest.mark.parametrize("name", "clone resolve_conj conj_physical exp neg cfloat sgn mH H".split())
def test_what_has_none(torch, x, name):
    result = getattr(x.conj(), name)
    assert bits(result() if callable(result) else result) == (False, False)


def test_copies_have_no_bits(torch, x):
    c = x.conj()
    like = [torch.empty_like(c), torch.zeros_like(c), torch.ones_like(c)]
    copied = [c.t().contiguous(), c.t().reshape(4), c[[0]], torch.cat([c]), c.repeat(1, 1), c.flip(0)]
    for result in (*like, *copied, c + c, c @ c, c.to(torch.complex64)):
        assert bits(result) == (False, False) and result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    assert c.t().clone().stride() == (1, 2)
    check_values(c.t().clone(), np.conj(Z).T)


def test_adjoint_is_a_conjugated_view(torch, x):
    for t in (x.mH, x.H, x.adjoint(), torch.adjoint(x)):
        assert bits(t) == (True, False) and t.stride() == (1, 2) and t._base is x
        check_values(t, np.conj(Z).T)
    check_values(x.mH @ x, np.conj(Z).T @ np.array(Z))
    check_values(x @ x.conj() - x.conj() @ x.T, Z @ np.conj(Z) - np.conj(Z) @ np.array(Z).T)


def test_no_grad_and_inference_views(torch):
    with torch.no_grad():
        x = torch.tensor(Z)
        assert bits(x.conj()[0]) == (True, False) and x.conj()._is_view()
    with torch.inference_mode():
        x = torch.tensor(Z)
        c = x.conj()
        assert bits(c) == bits(c[0]) == bits(c.detach()) == bits(c.mT) == (True, False)
        c.add_(1j)
        check_values(x, np.array(Z) - 1j)


def test_complex_family(torch, x):
    """What issue 6 names, of conjugated operands."""
    c, z = x.conj(), np.conj(Z)
    check_values(c.angle(), np.angle(z))
    check_values(c.abs(), np.abs(z))
    check_values(c.sgn(), z / np.abs(z))
    check_values(torch.polar(c.abs(), c.angle()), z)
    check_values(torch.complex(c.real, c.imag), z)
    check_values(torch.view_as_real(c.resolve_conj()), np.stack([z.real, z.imag], -1))
    check_values(torch.view_as_complex(torch.view_as_real(torch._neg_view(x))), -np.array(Z))
    assert torch.equal(c, torch.tensor(z)) and not torch.equal(c, x) and torch.allclose(c.conj(), x)
    assert c[0, 0].item() == 1 - 2j and complex(c[0, 0]) == 1 - 2j and c.imag.tolist() == z.imag.tolist()
    assert [bits(row) for row in c] == [(True, False)] * 2


def test_printing(torch, x):
    assert repr(x.conj()) == repr(x.conj().resolve_conj())
    assert repr(x.conj().imag) == repr(x.conj().imag.clone())


# -------------------------------------------------------------------------------------------------------------- writes

WRITES = {
    "mul_": (lambda t: t.mul_(2j), lambda a: a * 2j),
    "add_": (lambda t: t.add_(1 + 1j), lambda a: a + 1 + 1j),
    "iadd": (lambda t: t.__iadd__(t), lambda a: a + a),
    "exp_": (lambda t: t.exp_(), np.exp),
    "neg_": (lambda t: t.neg_(), lambda a: -a),
    "conj_physical_": (lambda t: t.conj_physical_(), np.conj),
    "zero_": (lambda t: t.zero_(), lambda a: a * 0),
    "fill_": (lambda t: t.fill_(3 + 4j), lambda a: a * 0 + 3 + 4j),
    "setitem": (lambda t: t.__setitem__(..., 5 + 6j), lambda a: a * 0 + 5 + 6j),
    "reciprocal_": (lambda t: t.reciprocal_(), lambda a: 1 / a),
    "transposed": (lambda t: t.t().mul_(1j), lambda a: a * 1j),
    "tril_": (lambda t: t.tril_(), np.tril),
    "cumsum_": (lambda t: t.cumsum_(0), lambda a: np.cumsum(a, 0)),
    "masked_fill_": (lambda t: t.masked_fill_(t.imag > 0, 1j), lambda a: np.where(a.imag > 0, 1j, a)),
    "addcmul_": (lambda t: t.addcmul_(t, t), lambda a: a + a * a),
}


@pytest.mark.parametrize("lazy", ["conj", "_neg_view", "both"])
@pytest.mark.parametrize("name", WRITES)
def test_writes_go_through(torch, x, name, lazy):
    write, expected = WRITES[name]
    view = torch._neg_view(x).conj() if lazy == "both" else getattr(x, lazy)()
    before = array(view).copy()
    write(view)
    check_values(view, expected(before))
    physical = {"conj": np.conj, "_neg_view": np.negative, "both": lambda a: -np.conj(a)}[lazy]
    check_values(x, physical(expected(before)))
    assert x._version == view._version == 1


def test_writes_to_parts(torch, x):
    c = x.conj()
    c[0] = 5 + 6j
    c[torch.tensor([1]), torch.tensor([0])] = torch.tensor(1j, dtype=torch.complex128)
    check_values(x, [[5 - 6j, 5 - 6j], [-1j, 2 + 1j]])
    assert x._version == 2
    c.imag.mul_(2)
    check_values(x, [[5 - 12j, 5 - 12j], [-2j, 2 + 2j]])
    c.imag = torch.ones(2, 2, dtype=torch.float64)
    c.real = 7.0
    check_values(x, np.full((2, 2), 7 - 1j))
    check_values(c, np.full((2, 2), 7 + 1j))


def test_writes_to_the_base_are_seen(torch, x):
    c, n = x.conj(), torch._neg_view(x)
    x.mul_(1j)
    check_values(c, np.conj(np.array(Z) * 1j))
    check_values(n, -np.array(Z) * 1j)
    assert c._version == n._version == 1


def test_copy_to_and_from(torch, x):
    target = torch.zeros(2, 2, dtype=torch.complex128)
    target.conj().copy_(x)
    check_values(target, np.conj(Z))
    target.copy_(x.conj())
    check_values(target, np.conj(Z))
    target.conj().copy_(x.conj())
    check_values(target, Z)


def test_in_place_with_its_own_base(torch, x):
    c = x.conj()
    c.add_(x)
    check_values(x, 2 * np.array(Z).real)


def test_out(torch, x):
    target = torch.zeros(2, 2, dtype=torch.complex128)
    c = target.conj()
    assert torch.add(x, 1, out=c) is c
    check_values(c, np.array(Z) + 1)
    check_values(target, np.conj(Z) + 1)
    assert target._version == 1 and bits(c) == (True, False)
    torch.ones(2, 2, dtype=torch.complex128, out=c.mul_(2j))
    check_values(target, np.ones((2, 2)))


def test_an_expanded_view_is_not_written_to(torch, x):
    e = x[0].conj().expand(2, 2)
    for write in (lambda: e.add_(1), lambda: e.fill_(1), lambda: e.copy_(x)):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write()
    check_values(x, Z)


def test_random_writes(torch, x):
    x.conj().imag.uniform_(1, 2)
    assert (array(x).imag <= -1).all()
    c = x.conj()
    assert bits(c.normal_()) == (True, False)
    check_values(x, np.conj(array(c)))


def test_shape_changes_in_place(torch, x):
    c = x.conj()
    c.t_()
    assert bits(c) == (True, False)
    check_values(c, np.conj(Z).T)
    check_values(x, Z)


def test_other_memory(torch, x):
    other = torch.ones(2, 2, dtype=torch.complex128) * 1j
    y, v = x.clone(), x.conj()
    y.set_(other.conj())
    assert bits(y) == (False, False)
    check_values(y, np.full((2, 2), 1j))
    v.set_(other)
    assert bits(v) == (True, False)
    check_values(v, np.full((2, 2), -1j))
    y.data = other.conj()
    assert bits(y) == (True, False) and y.data_ptr() == other.data_ptr()
    y.data = x
    assert bits(y) == (False, False)
    assert not x.conj().is_set_to(x) and not x.is_set_to(x.conj())


def test_detached_views_share_memory_and_version(torch, x):
    d = x.conj().detach()
    assert bits(d) == (True, False) and d._base is None
    d.mul_(1j)
    check_values(x, np.array(Z) * -1j)
    assert x._version == d._version == 1
    part = d[0]
    assert bits(part) == (True, False) and part._base is d
    x.data.conj().zero_()
    assert x._version == 1 and not array(x).any()


# ------------------------------------------------------------------------------------------------------------ refusals


def test_refusals(torch, x):
    c, n = x.conj(), torch._neg_view(x)
    with pytest.raises(RuntimeError, match="view_as_real doesn't work on unresolved conjugated tensors"):
        torch.view_as_real(c)
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors"):
        c.view(torch.float64)
    with pytest.raises(RuntimeError, match="not supported for tensors with negative bit set"):
        n.view(torch.float64)
    for convert in (lambda t: t.numpy(), np.asarray):
        with pytest.raises(RuntimeError, match="that has conjugate bit set"):
            convert(c)
        with pytest.raises(RuntimeError, match="that has negative bit set"):
            convert(n)
    with pytest.raises(RuntimeError):
        torch._conj(torch.tensor([1.0]))
    with pytest.raises(BufferError, match="Can't export tensors with the conjugate bit set"):
        torch.from_dlpack(c)
    assert np.array_equal(c.resolve_conj().numpy(), np.conj(Z)) and np.array_equal(n.numpy(force=True), -np.array(Z))


# ------------------------------------------------------------------------------------------------------------- copying


def test_deepcopy_resolves(torch, x):
    c = x.conj()
    y = copy.deepcopy([c, c])
    assert bits(y[0]) == (False, False) and y[0] is y[1]
    check_values(y[0], np.conj(Z))
    leaf = c.detach().requires_grad_()
    leaf.grad = torch.ones_like(leaf)
    copied = copy.deepcopy(leaf)
    assert bits(copied) == (False, False) and copied.requires_grad and copied.is_leaf
    check_values(copied.grad, np.ones((2, 2)))


def test_saving_keeps_bits_and_sharing(torch, x):
    file = io.BytesIO()
    torch.save([x, x.conj()], file)
    file.seek(0)
    y, c = torch.load(file)
    assert bits(c) == (True, False) and c.data_ptr() == y.data_ptr()
    check_values(c, np.conj(Z))
    c.imag.zero_()
    check_values(y, np.array(Z).real)
    p = pickle.loads(pickle.dumps(x.conj()))
    assert bits(p) == (True, False)
    check_values(p, np.conj(Z))


def test_a_saved_leaf_requires_grad(torch, x):
    file = io.BytesIO()
    torch.save(x.conj().detach().requires_grad_(), file)
    file.seek(0)
    y = torch.load(file)
    assert y.requires_grad and y.is_leaf and bits(y) == (True, False)


# ------------------------------------------------------------------------------------------------------------ gradients


def names(node):
    found = []
    while node is not None and node.next_functions:
        found.append(node.name())
        node = node.next_functions[0][0]
    return found


def test_nodes(torch, x):
    x.requires_grad_()
    c = x.conj()
    assert names(c.grad_fn) == ["ConjBackward0"]
    assert names(c.conj().grad_fn) == ["ConjBackward0"] * 2
    assert names(torch._neg_view(x).grad_fn) == ["NegViewBackward0"]
    assert names(x.conj_physical().grad_fn) == ["ConjPhysicalBackward0"]
    assert names(c.resolve_conj().grad_fn) == ["CloneBackward0", "ConjBackward0"]
    parts = ["ViewAsRealBackward0", "ConjBackward0", "ConjBackward0"]
    assert names(c.real.grad_fn) == ["SelectBackward0", *parts]
    assert names(c.imag.grad_fn) == ["SelectBackward0", "NegViewBackward0", *parts]
    assert names(x.mH.grad_fn) == ["ConjBackward0", "TransposeBackward0"]


FUNCTIONS = {
    "conj": lambda t, z: z.conj(),
    "square": lambda t, z: z.conj() * z,
    "imag": lambda t, z: z.conj().imag * z.conj().real,
    "neg_view": lambda t, z: t._neg_view(z).conj() * z,
    "mH": lambda t, z: z.mH @ z,
    "matmul": lambda t, z: z.conj() @ z.conj(),
    "sliced": lambda t, z: z.conj()[0].exp() * z[1],
    "abs": lambda t, z: z.conj().abs(),
    "angle": lambda t, z: z.conj().angle(),
    "sgn": lambda t, z: z.conj().sgn(),
    "polar": lambda t, z: t.polar(z.conj().abs(), z.conj().angle()),
    "written": lambda t, z: _written(z, lambda v: v.mul_(1j)),
    "written_by": lambda t, z: _written(z, lambda v: v.mul_(z)),
    "written_part": lambda t, z: _written(z, lambda v: v[0].mul_(z[1])),
    "written_imag": lambda t, z: _written(z, lambda v: v.imag.mul_(z.real)),
    "written_neg": lambda t, z: _written(z, lambda v: t._neg_view(v)[0].copy_(z[1] * z[0])),
    "written_item": lambda t, z: _written(z, lambda v: v.__setitem__(0, z[1] * 2j)),
    "written_rows": lambda t, z: _written(z, lambda v: v.index_put_((t.tensor([1]),), z[:1] * 1j)),
    "base_written": lambda t, z: _base_written(z),
}


def _written(z, write):
    base = z * 1
    view = base.conj()
    write(view)
    return base * view + view.real


def _base_written(z):
    base = z * 1
    view, part = base.conj(), base.conj()[0]
    base.mul_(z)
    return view * z + part


def _gradients(torch, function, create_graph=False):
    z = torch.tensor(Z, dtype=torch.complex128, requires_grad=True)
    y = function(torch, z)
    weights = torch.tensor(np.linspace(1, 2, y.numel()).reshape(tuple(y.shape)))
    grad, = torch.autograd.grad(((y * (1 - 0.5j)).real * weights).sum(), z, create_graph=create_graph)
    return z, grad


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(torch, name):
    function = FUNCTIONS[name]
    z = torch.tensor(Z, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: function(torch, z), z, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda z: function(torch, z), z)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_recorded_passes_give_the_same(torch, name):
    _, grad = _gradients(torch, FUNCTIONS[name])
    _, recorded = _gradients(torch, FUNCTIONS[name], create_graph=True)
    check_values(recorded, array(grad))


def test_history_of_a_base(torch, x):
    x.requires_grad_()
    base = x * 1
    view = base.conj()
    view.mul_(x)
    assert base.grad_fn.name() == "torch::autograd::CopySlices"
    assert names(view.grad_fn)[:2] == ["ConjBackward0", "torch::autograd::CopySlices"]
    part = view[0]
    part.mul_(2)
    assert names(part.grad_fn)[:2] == ["AsStridedBackward0", "ConjBackward0"]


def test_a_view_of_a_leaf_is_not_written_to(torch, x):
    x.requires_grad_()
    c = x.conj()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        c.mul_(2)
    check_values(x, Z)
    assert x._version == 0
    with torch.no_grad():
        c.mul_(2)
        made = (x * 1).conj()
    check_values(x, np.array(Z) * 2)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        made.mul_(x)


def test_a_saved_conjugate_that_was_written_to(torch, x):
    x.requires_grad_()
    base = x * 1
    y = base.conj() * x
    base.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.real.sum().backward()


def test_a_lazy_leaf(torch, x):
    leaf = x.conj().detach().requires_grad_()
    (leaf * leaf).real.sum().backward()
    check_values(leaf.grad, 2 * np.array(Z))
    (leaf[0] * 1j).imag.sum().backward()
    check_values(leaf.grad, 2 * np.array(Z) + [[1, 1], [0, 0]])
    with torch.no_grad():
        leaf -= leaf.grad
    check_values(x, np.conj(array(leaf)))


def test_a_lazy_gradient_is_added_to(torch, x):
    leaf = torch.zeros(2, 2, dtype=torch.complex128, requires_grad=True)
    given = x.clone()
    leaf.grad = given.conj()
    leaf.real.sum().backward()
    check_values(leaf.grad, np.conj(Z) + 1)
    check_values(given, np.array(Z) + 1)


def test_lazy_gradients_come_in(torch, x):
    leaf = torch.zeros(2, 2, dtype=torch.complex128, requires_grad=True)
    (leaf * 2j).backward(x.conj())
    check_values(leaf.grad, np.conj(Z) * -2j)
    leaf.grad.zero_()
    check_values(x, Z)


def test_hooks_and_saved_hooks(torch, x):
    x.requires_grad_()
    seen = []
    c = x.conj()
    c.register_hook(lambda g: seen.append(array(g).copy()))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = c * c
    y.real.sum().backward()
    check_values(torch.tensor(seen[0]), 2 * np.array(Z))
    check_values(x.grad, 2 * np.conj(Z))


def test_saved_tensors_may_be_modified_in_the_context_for_it(torch, x):
    x.requires_grad_()
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        base = x * 1
        y = base.conj() * base
        base.conj().zero_()
        y.real.sum().backward()
    check_values(x.grad, 2 * np.array(Z))


def test_custom_functions(torch, x):
    class Conj(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z.conj() * z

        @staticmethod
        def backward(ctx, grad):
            (z,) = ctx.saved_tensors
            return (grad.conj() * z.conj() + grad * z.conj()).conj()

    x.requires_grad_()
    Conj.apply(x.conj()).real.sum().backward()
    check_values(x.grad, 2 * np.array(Z))


# --------------------------------------------------------------------------------------------------------- forward mode


def test_tangents_have_the_bits_of_their_primals(torch, x):
    fwAD = torch.autograd.forward_ad
    tangent = torch.ones(2, 2, dtype=torch.complex128) * 1j
    with fwAD.dual_level():
        for primal in (x.conj(), torch._neg_view(x), x.mH):
            dual = fwAD.make_dual(primal, tangent)
            unpacked = fwAD.unpack_dual(dual)
            assert bits(unpacked.tangent) == bits(primal) and unpacked.tangent.stride() == primal.stride()
            check_values(unpacked.tangent, np.full((2, 2), 1j))
        lazy = tangent.conj()
        assert fwAD.unpack_dual(fwAD.make_dual(x.conj(), lazy)).tangent is lazy
        assert bits(fwAD.unpack_dual(fwAD.make_dual(x, lazy)).tangent) == (False, False)


def test_tangents_through_views_and_writes(torch, x):
    fwAD = torch.autograd.forward_ad
    tangent = torch.tensor([[1j, 2], [3, 4j]], dtype=torch.complex128)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, tangent)
        c = dual.conj()
        of_c = fwAD.unpack_dual(c).tangent
        assert bits(of_c) == (True, False)
        check_values(of_c, np.conj(array(tangent)))
        check_values(fwAD.unpack_dual(c.imag).tangent, -array(tangent).imag)
        c.mul_(1j)
        check_values(fwAD.unpack_dual(dual).tangent, array(tangent))  # written to, as the primal was
        check_values(fwAD.unpack_dual(c).tangent, np.conj(array(tangent)))
        base = torch.zeros(2, 2, dtype=torch.complex128)
        base.conj().copy_(dual)
        check_values(fwAD.unpack_dual(base).tangent, np.conj(array(fwAD.unpack_dual(dual).tangent)))


# ---------------------------------------------------------------------------------------- every operator of the samples

#: What a lazy tensor is refused, or asked about its bits.
NOT_LAZY = ("view_as_real_copy", "view, options", "dtypes")
#: What gives the view another shape and leaves the base as it is.
OWN_SHAPE = ("squeeze", "transpose", "unsqueeze")


def _few(op):
    """The first samples of an operator, real and complex."""
    chosen = [[], []]
    for sample in op.samples:
        chosen[any(spec.dtype.startswith("complex") for spec in sample.specs)].append(sample)
    return [*chosen[0][:2], *chosen[1][:2]]


def _physical(tensor):
    """What lies in memory if the values are to be read with a bit."""
    return tensor.conj_physical() if tensor.is_complex() else -tensor


def _lazy(thing):
    """The same values, to be read from other ones."""
    if not isinstance(thing, retrograd.Tensor) or thing.dtype in (retrograd.bool, retrograd.uint8):
        return thing
    return _physical(thing).conj() if thing.is_complex() else _physical(thing)._neg_view()


def _run(op, sample, change, call):
    """The values of the results, and the gradients of the leaves."""
    retrograd.manual_seed(0)
    built = sample.build(retrograd)
    results = call(map_tree(change, built.args), map_tree(change, built.kwargs))
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    results = [r for r in results if isinstance(r, retrograd.Tensor)]
    roots = [r for r in results if r.requires_grad] if op.differentiable else []
    cotangents = [retrograd.ones_like(root) for root in roots]
    gradients = retrograd.autograd.grad(roots, built.leaves, cotangents, allow_unused=True) if roots else []
    return [array(r) for r in results], [None if g is None else array(g) for g in gradients]


def _check_same(mine, expected):
    for one, other in zip(mine, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            single = one.dtype.itemsize < 8 or one.dtype == "complex64"
            np.testing.assert_allclose(one, other, rtol=1e-4 if single else 1e-9, atol=1e-4 if single else 1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", [op for op in OPS if op.name not in NOT_LAZY], ids=lambda op: op.name)
def test_operators_read_the_values(op):
    for sample in _few(op):
        call = lambda args, kwargs: op.call(retrograd, args, kwargs)
        try:
            expected = _run(op, sample, lambda thing: thing, call)
        except NotImplementedError:  # operators that have no derivative on purpose
            continue
        mine = _run(op, sample, _lazy, call)
        _check_same(mine[0], expected[0])
        _check_same(mine[1], expected[1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", [op for op in OPS if op.inplace and op.name not in OWN_SHAPE], ids=lambda op: op.name)
def test_in_place_operators_write_to_the_memory(op):
    for sample in _few(op):
        if not sample.method or not sample.args or any(spec.layout == "expanded" for spec in sample.specs):
            continue
        base = []

        def write(args, kwargs, base=base):
            first, *rest = args
            base.append(_physical(first).clone())
            view = base[0].conj() if first.is_complex() else base[0]._neg_view()
            assert getattr(view, op.inplace)(*rest, **kwargs) is view and view._version == 1
            return view

        call = lambda args, kwargs: getattr(args[0].clone(), op.inplace)(*args[1:], **kwargs)
        try:
            expected = _run(op, sample, lambda thing: thing, call)
        except (NotImplementedError, RuntimeError, TypeError):  # no derivative, or a result of another dtype or shape
            continue
        if sample.build(retrograd).args[0].dtype in (retrograd.bool, retrograd.uint8):
            continue
        mine = _run(op, sample, lambda thing: thing, write)
        _check_same(mine[0], expected[0])
        _check_same(mine[1], expected[1])
        _check_same([array(_physical(base[0]))], expected[0])


# ------------------------------------------------------------------------------------------------------ random programs


class LazyGenerator(Generator):
    """Programs about complex tensors, conjugated and negated as often as not."""

    def leaf(self) -> str:
        shape = self.rng.choices(SHAPES[:-2], WEIGHTS[:-2])[0]
        is_complex = self.rng.random() < 0.85
        grad = ", requires_grad=True" if self.rng.random() < 0.6 else ""
        dtype = "complex128" if is_complex else "float64"
        return f"{self.new()} = torch.tensor({self.values(shape, is_complex)}, dtype=torch.{dtype}{grad})"

    def view_of(self, name: str) -> str:
        if self.rng.random() < 0.55:
            return super().view_of(name)
        choices = [f"torch._neg_view({name})", f"{name}.conj()"]
        if self.is_complex(name):
            choices += [f"{name}.conj()", f"{name}.conj()", f"{name}.imag", f"{name}.imag", f"{name}.real"]
            choices += [f"{name}.mH"] if len(self.shape(name)) > 1 else []
        return self.rng.choice(choices)

    def write(self) -> str:
        # (torch forgets that the shape of a view was changed in place when it was conjugated on the way to it)
        statement = super().write()
        return self.write() if "squeeze_(" in statement or "transpose_(" in statement else statement

    def compute(self) -> str:
        if self.rng.random() < 0.9:
            return super().compute()
        return f"{self.new()} = {self.pick()}.{self.rng.choice(['resolve_conj', 'resolve_neg', 'conj_physical'])}()"


def check_seeds(seeds: range, steps: int) -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    for seed in seeds:
        rng = random.Random(seed)
        every_step = rng.random() < 0.5
        generator = LazyGenerator(rng, Features())
        ours, yours = Machine(retrograd), Machine(torch)
        program: list[str] = []
        for number in range(steps):
            program.append(generator.statement(ours))
            try:
                found = step_differences(ours, yours, program[-1], every_step or number == steps - 1)
            except OutOfStep:
                break
            if found:
                short = shortened(program, lambda p, e=every_step: difference(p, retrograd, torch, e) is not None)
                found = difference(short, retrograd, torch, every_step) or found
                pytest.fail(f"seed {seed}:\n" + "\n".join(short) + f"\n-> {found}")


@pytest.mark.parity
@pytest.mark.parametrize("first", range(10_000, 10_600, 200))
def test_random_programs(first):
    check_seeds(range(first, first + 200), steps=12)


@pytest.mark.slow
@pytest.mark.parity
def test_random_programs_in_the_long_run():
    check_seeds(range(20_000, 23_000), steps=12)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
def test_conj_physical_of_a_real_tensor_in_place_is_a_write(torch, dtype):
    x = torch.ones(2, dtype=getattr(torch, dtype))
    assert x.conj_physical_() is x and x._version == 1 and x.tolist() == [1, 1]
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        leaf.conj_physical_()
    y = leaf * 2
    y.conj_physical_()
    assert y.grad_fn.name().startswith("ConjPhysicalBackward")
