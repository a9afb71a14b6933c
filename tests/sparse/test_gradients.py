"""Sparse gradients in a backward pass: how they are added, kept, seen by hooks, and used by optimizers, beside
torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.autograd import gradcheck, gradgradcheck


def rows(torch: Any) -> Any:
    return torch.arange(12.0).reshape(4, 3).requires_grad_()


def sparse_loss(torch: Any, w: Any) -> Any:
    return torch.nn.functional.embedding(torch.tensor([1, 3, 1]), w, sparse=True).pow(2).sum()


def plain_loss(w: Any) -> Any:
    return (w * w).sum()


PROGRAMS: dict[str, Any] = {
    "one": lambda torch, w: sparse_loss(torch, w).backward(),
    "two at once": lambda torch, w: (sparse_loss(torch, w) + sparse_loss(torch, w)).backward(),
    "sparse, then plain": lambda torch, w: (sparse_loss(torch, w) + plain_loss(w)).backward(),
    "plain, then sparse": lambda torch, w: (plain_loss(w) + sparse_loss(torch, w)).backward(),
    "three": lambda torch, w: (sparse_loss(torch, w) + plain_loss(w) + sparse_loss(torch, w)).backward(),
    "twice": lambda torch, w: [sparse_loss(torch, w).backward() for _ in range(2)],
    "onto a plain one": lambda torch, w: [plain_loss(w).backward(), sparse_loss(torch, w).backward()],
    "a plain one onto it": lambda torch, w: [sparse_loss(torch, w).backward(), plain_loss(w).backward()],
    "recorded": lambda torch, w: sparse_loss(torch, w).backward(create_graph=True),
    "recorded twice": lambda torch, w: [sparse_loss(torch, w).backward(create_graph=True) for _ in range(2)],
    "recorded, mixed": lambda torch, w: [
        sparse_loss(torch, w).backward(create_graph=True), plain_loss(w).backward(create_graph=True)
    ],
    "through operators": lambda torch, w: sparse_loss(torch, (w * 3 + 1).clone()).backward(),
    "through a transpose": lambda torch, w: sparse_loss(torch, w.reshape(3, 4).t()).backward(),
    "a hook that scales": lambda torch, w: [
        w.register_hook(lambda grad: grad * 2), sparse_loss(torch, w).backward()
    ],
    "zeroed": lambda torch, w: [sparse_loss(torch, w).backward(), w.grad.zero_()],
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "through a transpose"])
def test_gradients_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for module in (retrograd, torch):
        w = rows(module)
        PROGRAMS[name](module, w)
        found.append((str(w.grad.layout), w.grad.requires_grad, w.grad.detach().to_dense().tolist()))
    assert found[0] == found[1]


def test_a_node_without_a_sparse_form_of_its_gradient_says_so() -> None:
    """(So does torch: a sparse tensor has no view of another shape.)"""
    with pytest.raises(RuntimeError, match="sparse"):
        PROGRAMS["through a transpose"](retrograd, rows(retrograd))


def test_a_gradient_that_somebody_else_holds_is_copied() -> None:
    kept = []
    w = rows(retrograd)
    w.register_hook(kept.append)
    sparse_loss(retrograd, w).backward()
    before = kept[0].to_dense()
    w.grad.mul_(2)
    np.testing.assert_array_equal(kept[0].to_dense(), before)
    assert w.grad._values().data_ptr() != kept[0]._values().data_ptr()


def test_what_the_caller_starts_from_is_not_written_to() -> None:
    w = rows(retrograd)
    given = retrograd.sparse_coo_tensor([[1]], [[1.0, 2.0, 3.0]], (4, 3))
    for _ in range(3):
        w.backward(given)
    assert given.to_dense().sum().item() == 6
    assert w.grad.to_dense()[1].tolist() == [3, 6, 9]


def test_a_double_backward_through_a_sparse_gradient() -> None:
    w = rows(retrograd).double().detach().requires_grad_()
    assert gradgradcheck(lambda w: sparse_loss(retrograd, w) + 0 * plain_loss(w), w)


def test_retained_and_asked_for() -> None:
    w = rows(retrograd)
    v = w * 1
    v.retain_grad()
    loss = sparse_loss(retrograd, v)
    loss.backward(retain_graph=True)
    assert v.grad.is_sparse and w.grad.is_sparse
    v = w * 1
    (asked,) = retrograd.autograd.grad(sparse_loss(retrograd, v), v)
    assert asked.is_sparse
    np.testing.assert_array_equal(asked.to_dense(), w.grad.to_dense())


def test_a_hook_may_not_change_the_layout() -> None:
    w = rows(retrograd)
    w.register_hook(lambda grad: grad.to_dense())
    with pytest.raises(RuntimeError, match=r"was torch\.sparse\.FloatTensor got torch\.FloatTensor"):
        sparse_loss(retrograd, w).backward()


def test_a_write_to_an_alias_of_a_gradient_is_seen() -> None:
    """That is how gradients are clipped. (Torch writes to a copy where coordinates come twice, and clips nothing.)"""
    w = rows(retrograd)
    sparse_loss(retrograd, w).backward()
    w.grad.detach().mul_(0.5)
    assert w.grad.to_dense()[1].tolist() == [6, 8, 10]


def test_anomaly_mode_looks_at_the_values() -> None:
    w = rows(retrograd)
    with retrograd.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match="nan values"):
        rows_of = retrograd.nn.functional.embedding(retrograd.tensor([1]), w, sparse=True)
        (rows_of * float("nan")).sum().backward()


OPTIMIZERS: dict[str, Any] = {
    "SGD": {"lr": 0.1}, "SGD, momentum": {"lr": 0.1, "momentum": 0.9}, "SGD, maximize": {"lr": 0.1, "maximize": True},
    "SparseAdam": {"lr": 0.1}, "Adagrad": {"lr": 0.1},
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("bag", [False, True])
def test_training_is_torchs(name: str, bag: bool) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for module in (retrograd, torch):
        kind = module.nn.EmbeddingBag if bag else module.nn.Embedding
        table = kind(6, 3, sparse=True, **({"mode": "sum"} if bag else {"padding_idx": 2}))
        with module.no_grad():
            table.weight.copy_(module.arange(18.0).reshape(6, 3) / 10)
        optimizer = getattr(module.optim, name.partition(",")[0])(table.parameters(), **OPTIMIZERS[name])
        for step in range(4):
            optimizer.zero_grad()
            indices = module.tensor([[step % 6, 2, 5], [1, 1, step % 3]])
            table(indices).pow(2).sum().backward()
            assert table.weight.grad.is_sparse
            optimizer.step()
        found.append(table.weight.detach().numpy().copy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_gradcheck_of_sparse_inputs(layout: str, fast_mode: bool) -> None:
    """Masked: what has values varies, and has gradients. Not masked: all elements do."""
    plain = retrograd.tensor([[0.0, 3, 0, 1], [2, 0, 0, 0]], dtype=retrograd.float64)
    block = (2, 2) if "sparse_bs" in layout else None
    x = plain.to_sparse(layout=getattr(retrograd, layout), blocksize=block).requires_grad_()
    b = retrograd.rand(4, 2, dtype=retrograd.float64, requires_grad=True)
    assert gradcheck(lambda x: (x * 3).to_dense(), x, masked=True, fast_mode=fast_mode)
    assert gradcheck(lambda x: x.to_dense(masked_grad=False).exp(), x, masked=False, fast_mode=fast_mode)
    assert gradcheck(lambda x: retrograd.sum(x), x, masked=False, fast_mode=fast_mode)
    assert gradcheck(lambda x, b: retrograd.sparse.mm(x, b).sin(), (x, b), masked=True, fast_mode=fast_mode)
    with pytest.raises(ValueError, match="Sparse output is not supported"):
        gradcheck(lambda x: x * 3, x, masked=True, fast_mode=fast_mode)


def test_gradcheck_finds_a_wrong_sparse_gradient() -> None:
    class Wrong(retrograd.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.to_dense()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return (grad * 2).to_sparse()

    x = retrograd.eye(2, dtype=retrograd.float64).to_sparse().requires_grad_()
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, x, masked=True)


def test_layouts_of_gradients() -> None:
    """Any tensor may have a plain or a COO gradient; others must have its own layout."""

    class Give(retrograd.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, layout: Any) -> Any:
            ctx.layout = layout
            return x.to_dense()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.to_sparse(layout=ctx.layout), None

    x = retrograd.eye(2).to_sparse().requires_grad_()
    Give.apply(x, retrograd.sparse_coo).sum().backward()
    assert x.grad.layout is retrograd.sparse_coo
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected layout Sparse but got SparseCsr"):
        Give.apply(x, retrograd.sparse_csr).sum().backward()
