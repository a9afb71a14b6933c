"""What sparse tensors print, how they are copied, pickled and saved, beside torch."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

import retrograd

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


def some(torch: Any, layout: str, dtype: str = "float32") -> Any:
    """A matrix of two rows and four columns, with three elements."""
    plain = torch.tensor([[0, 3, 0, 1], [2, 0, 0, 0]], dtype=getattr(torch, dtype))
    block = (2, 2) if "sparse_bs" in layout else None
    return plain.to_sparse(layout=getattr(torch, layout), blocksize=block)


def kinds(torch: Any) -> list[Any]:
    found = [some(torch, layout, dtype) for layout in LAYOUTS for dtype in ("float32", "float64", "int64", "complex64")]
    i = torch.tensor([[0, 1, 1], [2, 0, 2]])
    found += [
        torch.sparse_coo_tensor((2, 3)),
        torch.sparse_coo_tensor(i, torch.tensor([[1.5, 2], [3, 4], [5, 6]]), (2, 4, 2), check_invariants=True),
        torch.sparse_coo_tensor(i, torch.tensor([1.0, 2, 3]), (2, 4), check_invariants=True).requires_grad_(),
        torch.sparse_coo_tensor(i, torch.tensor([1.0, 2, 3]), (2, 4), check_invariants=True).requires_grad_() * 2,
        torch.sparse_coo_tensor(i, torch.tensor([1, 2, 3], dtype=torch.int8), (2, 4), check_invariants=True),
        torch.sparse_coo_tensor(torch.tensor([list(range(40))]), torch.arange(40) * 0.5, (50,), check_invariants=True),
    ]
    return found


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_prints_as_torch() -> None:
    torch = pytest.importorskip("torch")
    for ours, theirs in zip(kinds(retrograd), kinds(torch), strict=True):
        assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_are_apart(layout: str) -> None:
    x = some(retrograd, layout).requires_grad_()
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.detach().clone().requires_grad_()):
        assert made.layout is x.layout and made.requires_grad
        made.detach().mul_(2)
        np.testing.assert_array_equal(made.detach().to_dense(), 2 * np.array(x.detach().to_dense()))
    assert x.detach().to_dense().tolist() == [[0, 3, 0, 1], [2, 0, 0, 0]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_saved_and_loaded(layout: str) -> None:
    file = io.BytesIO()
    retrograd.save({"x": some(retrograd, layout)}, file)
    file.seek(0)
    made = retrograd.load(file)["x"]
    assert made.layout is getattr(retrograd, layout)
    assert made.to_dense().tolist() == [[0, 3, 0, 1], [2, 0, 0, 0]]
    if layout == "sparse_coo":
        assert made.is_coalesced()


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_are_torchs(layout: str) -> None:
    torch = pytest.importorskip("torch")
    for writer, reader in ((retrograd, torch), (torch, retrograd)):
        file = io.BytesIO()
        writer.save([some(writer, layout), some(writer, layout, "float64")], file)
        file.seek(0)
        for made, dtype in zip(reader.load(file), ("float32", "float64"), strict=True):
            assert made.layout is getattr(reader, layout) and made.dtype is getattr(reader, dtype)
            assert made.to_dense().tolist() == [[0, 3, 0, 1], [2, 0, 0, 0]]


def test_a_file_cannot_bring_wrong_coordinates() -> None:
    x = some(retrograd, "sparse_coo")
    x._memory_.indices[0, 0] = 7
    file = io.BytesIO()
    retrograd.save(x, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="size is inconsistent with indices"):
        retrograd.load(file)


def test_attributes() -> None:
    x = some(retrograd, "sparse_coo")
    assert x.is_sparse and not x.is_sparse_csr and x.layout is retrograd.sparse_coo and x.device.type == "cpu"
    assert (x.ndim, x.numel(), len(x), x._nnz(), x.sparse_dim(), x.dense_dim()) == (2, 8, 2, 3, 2, 0)
    assert isinstance(x, retrograd.Tensor) and type(x).__name__ == "Tensor" and x.type() == "torch.sparse.FloatTensor"
    rows = some(retrograd, "sparse_csr")
    assert rows.is_sparse_csr and not rows.is_sparse and rows.layout is retrograd.sparse_csr
    plain = retrograd.ones(2)
    assert not plain.is_sparse and not plain.is_sparse_csr and (plain.sparse_dim(), plain.dense_dim()) == (0, 1)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "wrong",
    [
        lambda torch: some(torch, "sparse_coo").exp(),
        lambda torch: some(torch, "sparse_coo").view(8),
        lambda torch: some(torch, "sparse_coo").max(),
        lambda torch: some(torch, "sparse_coo")[:1],
        lambda torch: some(torch, "sparse_coo").sort(),
        lambda torch: torch.softmax(some(torch, "sparse_coo"), 0),
        lambda torch: some(torch, "sparse_coo").numpy(),
        lambda torch: some(torch, "sparse_coo").data_ptr(),
        lambda torch: some(torch, "sparse_coo").storage(),
        lambda torch: some(torch, "sparse_coo").item(),
        lambda torch: torch.ones(2).coalesce(),
        lambda torch: torch.ones(2).values(),
        lambda torch: torch.ones(2)._nnz(),
        lambda torch: torch.ones(2).crow_indices(),
        lambda torch: some(torch, "sparse_csr").indices(),
        lambda torch: some(torch, "sparse_csc").crow_indices(),
        lambda torch: some(torch, "sparse_csr").stride(),
        lambda torch: some(torch, "sparse_coo") + torch.ones(2, 4),
        lambda torch: some(torch, "sparse_coo") + 1,
        lambda torch: some(torch, "sparse_coo") + some(torch, "sparse_coo").t(),
        lambda torch: some(torch, "sparse_coo") / torch.ones(2, 4),
        lambda torch: some(torch, "sparse_coo") ** 0,
        lambda torch: some(torch, "sparse_coo").copy_(torch.ones(2, 4)),
        lambda torch: some(torch, "sparse_coo").sparse_resize_((1, 4), 2, 0),
        lambda torch: torch.sparse_coo_tensor([[0, 1]], [1.0], (2,), check_invariants=True),
        lambda torch: torch.sparse_coo_tensor([[0, 5]], [1.0, 2], (2,), check_invariants=True),
        lambda torch: torch.sparse_coo_tensor([[0, -1]], [1.0, 2], (2,), check_invariants=True),
        lambda torch: torch.sparse_coo_tensor([[0, 1]], [1.0, 2], (2, 2), check_invariants=True),
        lambda torch: torch.sparse_csr_tensor([0, 1, 2], [0, 7], [1.0, 2], (2, 2), check_invariants=True),
        lambda torch: torch.sparse_csr_tensor([1, 1, 2], [0, 1], [1.0, 2], (2, 2), check_invariants=True),
        lambda torch: torch.sparse_csr_tensor([0, 2, 2], [1, 0], [1.0, 2], (2, 2), check_invariants=True),
        lambda torch: torch.sparse_coo_tensor([[0, 1, 1]], [1.0, 2, 3], (2,), check_invariants=True).indices(),
        lambda torch: torch.sparse.softmax(torch.ones(2, 2), 0),
        lambda torch: torch.sparse.sum(torch.ones(2, 2), 0),
        lambda torch: torch.sparse.mm(some(torch, "sparse_coo"), torch.ones(3, 2)),
    ],
)
def test_errors_are_torchs(wrong: Any) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as theirs:  # whatever it is
        wrong(torch)
    with pytest.raises(theirs.type) as ours:
        wrong(retrograd)
    words = str(theirs.value)
    if theirs.type is NotImplementedError and "Could not run" in words:
        assert "backend" in str(ours.value)
        assert any(instead in str(ours.value) for instead in ("x.to_dense()", "x.to_sparse", "x.numel()"))


def test_an_operator_without_a_form_says_which_and_what_to_write() -> None:
    with pytest.raises(NotImplementedError, match=r"'aten::exp'.*'SparseCPU'.*torch.sparse_coo.*x.to_dense\(\)"):
        some(retrograd, "sparse_coo").exp()
    with pytest.raises(NotImplementedError, match=r"'aten::cumsum'.*'SparseCsrCPU'.*torch.sparse_csr"):
        some(retrograd, "sparse_csr").cumsum(0)


def test_a_refused_write_changes_nothing() -> None:
    x = some(retrograd, "sparse_coo")
    for wrong in (
        lambda: x.add_(retrograd.ones(2, 4)),
        lambda: x.copy_(retrograd.ones(2, 4)),
        lambda: x.sparse_resize_((1, 1), 2, 0),
        lambda: x.requires_grad_().mul_(2),
    ):
        with pytest.raises(RuntimeError):
            wrong()
    assert x._version == 0 and x.detach().to_dense().tolist() == [[0, 3, 0, 1], [2, 0, 0, 0]]


def test_parts_and_dense_dimensions() -> None:
    x = some(retrograd, "sparse_coo")
    assert retrograd.indices_copy(x).tolist() == [[0, 0, 1], [1, 3, 0]]
    copied = retrograd.values_copy(x)
    copied.zero_()
    assert x.values().tolist() == [3, 1, 2]
    cube = retrograd.arange(24.0).reshape(2, 3, 4)
    for layout in ("sparse_csr", "sparse_csc"):
        made = cube.to_sparse(layout=getattr(retrograd, layout), dense_dim=1)
        assert (made.dense_dim(), made.values().shape[1:]) == (1, (4,))
        assert made.to_dense().equal(cube)
    for layout in ("sparse_bsr", "sparse_bsc"):
        made = getattr(cube, f"to_{layout}")((1, 3), 1)
        assert made.values().shape[1:] == (1, 3, 4) and made.to_dense().equal(cube)
    batch = retrograd.ones(3, 2, 2).to_sparse_csr()
    assert batch.crow_indices().shape == (3, 3) and batch.to_dense().equal(retrograd.ones(3, 2, 2))
    with pytest.raises(RuntimeError, match="same number of specified elements per batch"):
        retrograd.tensor([[[1.0, 1]], [[0, 1]]]).to_sparse_csr()
    assert retrograd.sparse_csr_tensor([0, 1, 2], [0, 1], [1, 2], dtype=retrograd.float64).dtype is retrograd.float64


def test_checks_can_be_switched() -> None:
    switch = retrograd.sparse.check_sparse_tensor_invariants
    wrong_order = [0, 2, 2], [1, 0], [1.0, 2], (2, 2)
    assert retrograd.sparse_csr_tensor(*wrong_order).to_dense().tolist() == [[2, 1], [0, 0]]
    with switch(), pytest.raises(RuntimeError, match="sorted and distinct"):
        retrograd.sparse_csr_tensor(*wrong_order)
    assert not switch.is_enabled()

    @switch()
    def within() -> bool:
        return switch.is_enabled()

    assert within() and not switch.is_enabled()
    with pytest.raises(RuntimeError, match="integer multiplication overflow"):
        retrograd.sparse_coo_tensor([[0], [0]], [1.0], (2**40, 2**40))


def test_assert_close() -> None:
    close = retrograd.testing.assert_close
    for layout in LAYOUTS:
        close(some(retrograd, layout), some(retrograd, layout))
        with pytest.raises(AssertionError, match="for the values"):
            close(some(retrograd, layout), some(retrograd, layout) * 2)
        with pytest.raises(AssertionError, match="attribute 'layout' do not match"):
            close(some(retrograd, layout), some(retrograd, layout).to_dense())
        close(some(retrograd, layout), some(retrograd, layout).to_dense(), check_layout=False)
    with pytest.raises(AssertionError, match="number of specified values"):
        close(some(retrograd, "sparse_coo"), retrograd.sparse_coo_tensor((2, 4)))
