"""Storages: the memory of tensors as an object, in bytes and in elements, and shared with other processes."""

from __future__ import annotations

import copy
import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


def test_bytes(torch: Any) -> None:
    x = torch.tensor([1, 258], dtype=torch.int32)
    s = x.untyped_storage()
    assert s.tolist() == [1, 0, 0, 0, 2, 1, 0, 0] and len(s) == s.nbytes() == s.size() == 8 and s[4] == 2 and s[-3] == 1
    s[0] = 7
    s[1:3][1] = 1  # a slice shares
    assert x.tolist() == [7 + (1 << 16), 258]
    s.fill_(0)
    assert x.tolist() == [0, 0]
    assert s.element_size() == 1 and str(s.device) == "cpu" and not s.is_cuda and s.untyped() is s
    other = s.clone()
    other.fill_(1)
    assert x.tolist() == [0, 0] and other[0] == 1
    assert s.copy_(other) is s and x[0].item() == 0x01010101
    made = torch.UntypedStorage([1, 2, 3])
    assert made.tolist() == [1, 2, 3] and len(torch.UntypedStorage(5)) == 5 and len(torch.UntypedStorage()) == 0
    copies = [copy.copy(made), copy.deepcopy(made)]
    if torch is retrograd:  # torch cannot pickle one
        copies.append(pickle.loads(pickle.dumps(made)))
    for copied in copies:
        assert copied.tolist() == [1, 2, 3] and copied.data_ptr() != made.data_ptr()
    for wrong in ((-1,), (1, 2), ("ab",), ([1.5],)):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            torch.UntypedStorage(*wrong)


def test_elements(torch: Any) -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    s = x[1:].storage()
    assert len(s) == s.size() == 3 and s[0] == 1.0 and s.tolist() == list(s) == [1, 2, 3] and s.element_size() == 4
    assert s.dtype is torch.float32 and s.nbytes() == 12 and isinstance(s, torch.FloatStorage)
    assert not isinstance(s, torch.LongStorage) and torch.is_storage(s) and s.pickle_storage_type() == "FloatStorage"
    s[1] = 20
    s[2:] = 5
    assert x.tolist() == [1, 20, 5]
    assert s.double().tolist() == [1.0, 20.0, 5.0] and s.double().dtype is torch.float64
    assert s.type() == "torch.FloatStorage" and s.long().type() == "torch.LongStorage"
    clone = s.clone()
    clone.fill_(9)
    assert x.tolist() == [1, 20, 5] and s.copy_(clone).tolist() == [9, 9, 9]
    made = torch.LongStorage([4, 5])
    assert made.tolist() == [4, 5] and made.dtype is torch.int64 and len(torch.DoubleStorage(3)) == 3
    for copied in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert copied.tolist() == [4, 5] and copied.dtype is torch.int64 and copied.data_ptr() != made.data_ptr()
    assert torch.FloatStorage.dtype is torch.float32


@pytest.mark.parametrize(
    "name", "Bool Byte Char Short Int Long Half BFloat16 Float Double ComplexFloat ComplexDouble".split()
)
def test_every_kind(torch: Any, name: str) -> None:
    kind = getattr(torch, f"{name}Storage")
    made = kind([1, 0, 1])
    assert made.tolist() == [1, 0, 1] and made.dtype is kind.dtype and made.pickle_storage_type() == f"{name}Storage"
    x = torch.tensor([1, 0, 1]).to(kind.dtype)
    assert isinstance(x.storage(), kind) and x.storage().tolist() == [1, 0, 1]


def test_files(torch: Any, tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    np.arange(4, dtype=np.float32).tofile(path)
    private = torch.FloatStorage.from_file(str(path), False, 3)
    assert private.tolist() == [0, 1, 2]
    private[0] = 5
    assert np.fromfile(path, np.float32)[0] == 0
    shared = torch.UntypedStorage.from_file(str(path), True, 8)
    shared[0:4].fill_(0)
    shared[7] = 0x40
    assert np.fromfile(path, np.float32).tolist() == [0, 4, 2, 3]


def test_files_that_are_too_short(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"abc")
    with pytest.raises(RuntimeError, match="size <3> is smaller than the required mapping size <8>"):
        retrograd.UntypedStorage.from_file(tmp_path / "short", nbytes=8)


def test_storages_grow_and_shrink_under_their_tensors(torch: Any) -> None:
    x = torch.arange(4.0)
    y, z, kept, leaf = x[1:], x.view(2, 2), x.detach(), x.clone().requires_grad_()
    s = x.untyped_storage()
    assert s.resize_(16) is s and s.resizable()
    address = s.data_ptr()
    s.resize_(32)
    for other in (x, y, z, kept):
        assert other.untyped_storage().nbytes() == 32 and other.untyped_storage().data_ptr() == s.data_ptr()
    assert (x.tolist(), y.tolist(), z.tolist()) == ([0, 1, 2, 3], [1, 2, 3], [[0, 1], [2, 3]])
    x.resize_(8)
    x[7] = 5.0
    assert y.storage()[7] == 5.0 and y.data_ptr() - x.data_ptr() == 4
    z[0, 1] = 9.0
    assert x[1] == 9 and y[0] == 9 and kept[1] == 9
    # All memory let go, and taken again: what sharded training does between uses of a parameter.
    s.resize_(0)
    assert s.nbytes() == 0 and y.shape == (3,) and y.stride() == (1,) and y.storage_offset() == 1 and y.numel() == 3
    s.resize_(16)
    z.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert y.tolist() == [2, 3, 4]
    # Typed storages count in elements; leaves are moved too.
    t = leaf.storage()
    t.resize_(2)
    assert len(t) == 2 and t.tolist() == [0.0, 1.0] and leaf.requires_grad
    t.resize_(6)
    assert leaf.tolist()[:2] == [0.0, 1.0] and (leaf * leaf).requires_grad
    del address


def test_what_lies_beyond_a_storage_is_not_read() -> None:
    """Torch reads and writes what lies there, or ends; here it is said what is wrong."""
    x = retrograd.arange(4.0)
    y = x[3:]
    x.untyped_storage().resize_(8)
    calls = (lambda: x + 1, lambda: y.sum(), lambda: repr(x), lambda: x.copy_(x), lambda: x.tolist(), lambda: x[2:])
    for call in calls:
        with pytest.raises(RuntimeError, match="out of bounds for storage of size 8"):
            call()
    assert x.shape == (4,) and x.dtype is retrograd.float32 and x.is_contiguous()
    assert x.resize_(2).tolist() == [0.0, 1.0]  # what is left of it
    x.untyped_storage().resize_(16)
    y.fill_(4.0)
    assert x.resize_(4)[3] == 4.0


def test_memory_that_cannot_move() -> None:
    shared = retrograd.ones(2).share_memory_()
    with pytest.raises(RuntimeError, match="not resizable"):
        shared.untyped_storage().resize_(16)
    with pytest.raises(RuntimeError, match="negative"):
        retrograd.ones(2).untyped_storage().resize_(-1)
    array = np.arange(2.0)
    x = retrograd.from_numpy(array)
    x.untyped_storage().resize_(32)  # torch refuses: the array would be left behind, as it is here
    x[0] = 7.0
    assert array.tolist() == [0.0, 1.0]


def test_resizing_a_tensor_resizes_its_storage(torch: Any) -> None:
    x = torch.arange(4.0)
    y = x[2:]
    x.resize_(6)
    x[2] = 9.0
    assert y.tolist() == [9.0, 3.0] and y.untyped_storage().nbytes() == 24
    y.resize_(3)  # has room
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() and y.untyped_storage().nbytes() == 24


def test_where_nothing_lies(torch: Any) -> None:
    x = torch.arange(12.0).view(3, 4)
    cases = [x[2:2], x[1:1, 1:], x[3:], x[:, 4:], x[5:9], x[-1:1], x.t()[2:2], x[1:][1:1], x[:0]]
    cases.append(torch.arange(4.0)[2:2])
    assert [c.storage_offset() for c in cases] == [8, 5, 12, 4, 12, 8, 2, 8, 0, 2]
    assert [tuple(c.shape) for c in cases[:4]] == [(0, 4), (0, 3), (0, 4), (3, 0)]
    assert all(c.data_ptr() == 0 for c in cases)


def test_set_takes_memory(torch: Any) -> None:
    x = torch.arange(4.0)[1:3]
    assert x.set_().tolist() == [] and x.storage_offset() == 0 and len(x.storage()) == 0
    nine = torch.arange(9.0)
    assert x.set_(nine.storage(), 2, (2, 2), (3, 1)).tolist() == [[2, 3], [5, 6]] and x.storage_offset() == 2
    assert x.set_(nine.untyped_storage(), 1, (2,)).tolist() == [1, 2]
    assert x.set_(nine.untyped_storage()).shape == (9,) and x.set_(nine[4:]).tolist() == [4, 5, 6, 7, 8]
    assert x.set_(nine, 1, (2,), (2,)).tolist() == [1, 3]
    x[0] = 7.0
    assert nine[1] == 7
    grown = torch.zeros(2).set_(nine.storage(), 8, (3,))
    assert nine.untyped_storage().nbytes() == 44 and grown[0] == 8
    nine[3] = 8.0
    assert x.tolist() == [7, 8]
    refusals = [
        ("x.set_(torch.arange(4).storage())", "Expected a Storage of type float or an UntypedStorage, but got type L"),
        ("x.set_(torch.arange(4))", "Could not set tensor of type long int to a tensor of type float"),
    ]
    for call, words in refusals:
        y = torch.zeros(2)
        with pytest.raises(RuntimeError, match=words):
            eval(call, {"torch": torch, "x": y})
        assert y.tolist() == [0, 0]
    assert x.tolist() == [7, 8]


def test_all_methods_are_here() -> None:
    theirs = pytest.importorskip("torch")
    #: Between processes and devices, or torch's own bookkeeping.
    words = "cuda|_fd|_cpu|_filename|weak|_decref|_incref|_ipc|_file|hpu|mps|_expired|_shared$|_cdata|_addr_|_swap"
    absent = re.compile(words)
    for name in ("UntypedStorage", "TypedStorage"):
        mine, other = getattr(retrograd, name), getattr(theirs, name)
        missing = {n for n in dir(other) if not hasattr(mine, n) and not absent.search(n)}
        assert missing <= {"__annotations__", "_byteswap", "_checkpoint_offset", "_fake_device", "_deepcopy",
                           "_from_buffer", "_maybe_wrap_index", "__delitem__", "from_buffer",
                           "_get_legacy_storage_class"}  # fmt: skip


def test_conversions_of_storages(torch: Any) -> None:
    s = torch.tensor([1.5, 2.0]).storage()
    assert s.int().tolist() == [1, 2] and s.double().dtype is torch.float64 and s.float8_e5m2().tolist() == [1.5, 2.0]
    assert s.type() == "torch.FloatStorage"
    u = torch.UntypedStorage([1, 255])
    assert u.new().nbytes() == 0 and list(u) == [1, 255] and u.get_device() is None
    if torch is retrograd:  # (torch's copies bytes to elements, and finds that they are not as many)
        assert u.float().tolist() == [1.0, 255.0] and s.type("torch.IntStorage").tolist() == [1, 2]
        assert s.type(torch.DoubleStorage).dtype is torch.float64
    assert torch.zeros(1, dtype=torch.uint16).storage().type() == "torch.storage.TypedStorage"
    for wrong in (lambda: s[5], lambda: s[-3]):
        with pytest.raises(IndexError):
            wrong()
    s[0:2] = 4
    assert s.tolist() == [4.0, 4.0]
    assert torch.ones(2)._typed_storage().tolist() == [1.0, 1.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX's")
def test_shared_memory() -> None:
    x = retrograd.zeros(3, requires_grad=True)
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared() and x.share_memory_().is_shared()
    pid = os.fork()
    if pid == 0:
        x.data.add_(5)
        os._exit(0)
    os.waitpid(pid, 0)
    assert x.tolist() == [5, 5, 5] and x[1:].is_shared() and x.requires_grad
    net = retrograd.nn.Linear(2, 2)
    for p in net.parameters():
        p.share_memory_()
    net(retrograd.ones(1, 2)).sum().backward()
    assert all(p.is_shared() and p.grad is not None for p in net.parameters())
    x = retrograd.arange(4.0)
    part = x[1:].share_memory_()  # takes the whole memory along
    x[1] = 8.0
    assert x.is_shared() and part[0] == 8.0


def test_pinned_memory(torch: Any) -> None:
    assert not torch.ones(1).is_pinned()
    with pytest.raises(RuntimeError, match=r"[Cc]annot access accelerator device when none is available|[Nn]eed to"):
        torch.ones(1).pin_memory()


def test_storages_are_copied_with_the_tensors_on_them(torch: Any) -> None:
    x = torch.zeros(4)
    row, storage, untyped = copy.deepcopy([x[2:], x.storage(), x.untyped_storage()])
    row.fill_(1)
    assert storage.tolist() == [0, 0, 1, 1]
    assert storage.untyped() == untyped == row.untyped_storage()
    assert x.tolist() == [0, 0, 0, 0]
    again = copy.deepcopy([x.untyped_storage(), x])
    again[1].fill_(2)
    assert again[0].data_ptr() == again[1].data_ptr()


def test_a_tensor_of_a_storage(torch: Any) -> None:
    storage = torch.arange(6.0).storage()
    for made in (torch.tensor(storage), torch.tensor(storage.untyped(), dtype=torch.float32)):
        assert made.tolist() == [0, 1, 2, 3, 4, 5]
        assert made.dtype == torch.float32
    assert torch.tensor(torch.tensor([7, 8]).untyped_storage()).tolist() == [7, 8]
    with pytest.raises(RuntimeError, match="Expected a Storage of type Double or an UntypedStorage, but got Float"):
        torch.tensor(storage, dtype=torch.float64)


def test_storages_of_nothing(torch: Any) -> None:
    """On the device meta they have a size and no bytes."""
    untyped = torch.UntypedStorage(100, device="meta")
    typed = torch.TypedStorage([1, 2], dtype=torch.int64, device="meta")
    assert (untyped.nbytes(), len(untyped), untyped.data_ptr(), untyped.device.type) == (100, 100, 0, "meta")
    assert (typed.nbytes(), typed.size(), typed.device.type) == (16, 2, "meta")
    x = torch.empty(4, 5, device="meta")
    assert (x.untyped_storage().nbytes(), x.storage().size()) == (80, 20)
    assert x[1:].untyped_storage()._cdata == x.untyped_storage()._cdata
    assert x.untyped_storage()._cdata != torch.empty(4, 5, device="meta").untyped_storage()._cdata
    assert torch.empty(0, 3, device="meta").untyped_storage().nbytes() == 0
    assert untyped.clone().device.type == "meta"
    assert untyped.resize_(20).nbytes() == 20
    for refused in (lambda: untyped[0], untyped.tolist, lambda: typed[0], typed.tolist):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device"):
            refused()
    for storage in (untyped, typed):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            storage.cpu()
    with pytest.raises(RuntimeError, match="only available on CPU"):
        x.share_memory_()


def test_the_oldest_name(torch: Any) -> None:
    assert torch.Storage([1, 2]).tolist() == [1.0, 2.0]
    assert torch.Storage is torch.FloatStorage
    assert torch.storage._dtype_to_storage_type_map()[torch.int64] == "LongStorage"


def test_a_storage_is_one_object(torch: Any) -> None:
    x = torch.ones(4)
    s = x.untyped_storage()
    s.note = 3
    assert x.untyped_storage() is s and x.view(2, 2).untyped_storage() is s and x.storage().untyped() is s
    assert x.clone().untyped_storage() is not s
    s.resize_(32)
    assert x.untyped_storage() is s and s.nbytes() == 32
    assert x.storage_type() is torch.FloatStorage


def test_tensors_of_storages_share_them(torch: Any) -> None:
    x = torch.tensor([1.0, 2.0])
    made = (
        x.new(x.storage()), torch.FloatTensor(x.storage()), torch.FloatTensor(x.untyped_storage()),
        torch.Tensor(x.storage()), torch.tensor(x.storage()), torch.tensor(x.untyped_storage(), dtype=torch.float),
    )  # fmt: skip
    for one in made:
        assert one.data_ptr() == x.data_ptr() and one.tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        x.new(x.int().storage())
    t = torch.ones(1)
    with pytest.raises(RuntimeError, match="out of bounds for storage of size"):
        t.set_(t.untyped_storage(), 1000, t.size())
    t.set_(t.untyped_storage(), 10, (2, 3))
    assert t.storage_offset() == 10 and t.untyped_storage().nbytes() == 64


def test_storages_without_memory(torch: Any, tmp_path: Path) -> None:
    there = torch.TypedStorage([1, 2, 3, 4], dtype=torch.float)
    meta = torch.TypedStorage([1, 2, 3, 4], device="meta", dtype=torch.float)
    for storage in (meta, torch.TypedStorage(device="meta", dtype=torch.float), meta.untyped()):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            storage[0]
        with pytest.raises(RuntimeError, match="only available on CPU"):
            storage._share_filename_cpu_()
        with pytest.raises(RuntimeError, match="only available on CPU"):
            storage._share_fd_cpu_()
    meta[0] = 1
    assert meta.fill_(1) is meta and meta.copy_(there) is meta
    for other in (there, there.untyped()):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            other.copy_(meta if other is there else meta.untyped())
    with open(tmp_path / "none", "wb") as file:
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            meta._write_file(file, True, True, 4)
    assert there.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_storages_change_places() -> None:
    torch = retrograd
    x, y = torch.ones(4), torch.zeros(4)
    part, empty = x[1:3], torch.ones(4)
    x.untyped_storage()._swap_data_ptr_(y.untyped_storage())
    assert x.tolist() == part.tolist() * 2 == [0.0] * 4 and y.tolist() == [1.0] * 4
    empty.untyped_storage().resize_(0)
    empty.untyped_storage()._swap_data_ptr_(y.untyped_storage())
    assert empty.tolist() == [1.0] * 4 and y.untyped_storage().nbytes() == 0
    with pytest.raises(RuntimeError, match="same nbytes"):
        x.untyped_storage()._swap_data_ptr_(torch.ones(8).untyped_storage())
    with pytest.raises(RuntimeError, match="same device"):
        x.untyped_storage()._swap_data_ptr_(torch.ones(4, device="meta").untyped_storage())


def test_tensors_of_files(torch: Any, tmp_path: Path) -> None:
    name = str(tmp_path / "numbers")
    first = torch.from_file(name, True, 10, dtype=torch.float)
    second = torch.from_file(name, True, 10, dtype=torch.float)
    first.fill_(3.0)
    assert second.tolist() == [3.0] * 10
    own = torch.from_file(name, size=2)
    own.fill_(1.0)
    assert first.tolist() == [3.0] * 10 and torch.from_file(name).shape == (0,)
    with pytest.raises(RuntimeError, match="size <40> is smaller than the required mapping size <4000>"):
        torch.from_file(name, size=1000)
    with pytest.raises(RuntimeError, match=r"unable to open file <.*> in read-only mode: No such file or directory"):
        torch.from_file(name + "2", size=1)


def test_elements_in_one_place(torch: Any) -> None:
    overlap = torch._debug_has_internal_overlap
    assert [overlap(torch.ones(3, 3)), overlap(torch.ones(1, 3).expand(4, 3))] == [0, 1]
    assert overlap(torch.ones(10).as_strided([2, 1, 5], [1, 0, 2])) == 0
    assert overlap(torch.ones(20).as_strided((2, 1, 5), (10, 0, 2))) == 2
