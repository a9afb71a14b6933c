"""Storages: the memory of tensors as an object, in bytes and in elements, and shared with other processes."""

from __future__ import annotations

import copy
import os
import pickle
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
    with pytest.raises(RuntimeError, match="has 3 bytes, of which 8 were to be mapped"):
        retrograd.UntypedStorage.from_file(tmp_path / "short", nbytes=8)


def test_memory_that_cannot_move() -> None:
    s = retrograd.ones(2).untyped_storage()
    assert s.resize_(8) is s
    with pytest.raises(RuntimeError, match="not resizable"):
        s.resize_(16)


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
    with pytest.raises(RuntimeError, match="is a view of another one"):
        retrograd.ones(4)[1:].share_memory_()


def test_pinned_memory(torch: Any) -> None:
    assert not torch.ones(1).is_pinned()
    with pytest.raises(RuntimeError, match=r"[Cc]annot access accelerator device when none is available|[Nn]eed to"):
        torch.ones(1).pin_memory()
