"""Memory shared with other libraries through DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def test_from_an_array_shares_memory(torch: Any) -> None:
    array = np.zeros((2, 3), np.float32)
    tensor = torch.from_dlpack(array.T)
    tensor[1, 0] = 5
    assert array[0, 1] == 5
    assert tensor.dtype is torch.float32
    assert tensor.stride() == (1, 3)


def test_to_an_array_shares_memory(torch: Any) -> None:
    tensor = torch.zeros(3, dtype=torch.int64)
    tensor[1] = 7
    assert np.from_dlpack(tensor).tolist() == [0, 7, 0]
    assert tuple(int(part) for part in tensor.__dlpack_device__()) == (1, 0)


def test_a_capsule_can_be_written_to(torch: Any) -> None:
    tensor = torch.zeros(2)
    other = torch.from_dlpack(torch.to_dlpack(tensor))
    other[0] = 1
    assert tensor.tolist() == [1, 0]
    assert torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(tensor)).tolist() == [1, 0]


def test_a_copy_is_one(torch: Any) -> None:
    array = np.zeros(2)
    torch.from_dlpack(array, copy=True)[0] = 1
    assert array.tolist() == [0, 0]


def test_what_cannot_be_exchanged(torch: Any) -> None:
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        torch.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(RuntimeError, match="from_dlpack received an invalid capsule"):
        torch.from_dlpack(3)


def test_a_device_that_no_tensor_is_on() -> None:
    import retrograd

    x = retrograd.ones(2)
    assert np.from_dlpack(x).tolist() == [1, 1] and x.__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError, match="of a kind that no tensor is on"):
        x.__dlpack__(dl_device=(13, 0))


def test_bfloat16(torch: Any) -> None:
    x = torch.tensor([[1.0, 2.5], [-3.0, 0.0]]).bfloat16()
    for way in (lambda x: x, torch.to_dlpack):
        y = torch.from_dlpack(way(x.t()))
        assert y.dtype is torch.bfloat16 and y.tolist() == [[1, -3], [2.5, 0]]
        y[1, 1] = 7
        assert x[1, 1] == 7
        y[1, 1] = 0


def test_other_types_say_what_to_do() -> None:
    import retrograd

    with pytest.raises(BufferError, match=r"x\.float\(\)"):
        retrograd.ones(2).to(retrograd.float8_e5m2).__dlpack__()


@pytest.mark.parity
def test_with_torch() -> None:
    import retrograd

    torch = pytest.importorskip("torch")
    ours = retrograd.zeros(2)
    torch.from_dlpack(ours)[0] = 1
    theirs = torch.zeros(2)
    retrograd.from_dlpack(theirs)[1] = 2
    assert ours.tolist() == [1, 0]
    assert theirs.tolist() == [0, 2]
    ours, theirs = retrograd.zeros(2).bfloat16(), torch.zeros(2).bfloat16()
    torch.from_dlpack(ours)[0] = 1.5
    retrograd.from_dlpack(theirs)[1] = 2.5
    retrograd.from_dlpack(torch.to_dlpack(theirs))[0] = -1
    assert ours.tolist() == [1.5, 0] and theirs.tolist() == [-1, 2.5]
