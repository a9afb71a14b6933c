"""What programs ask of ``torch.cuda`` where there is no such device."""

from __future__ import annotations

import pytest


def test_there_is_no_device(torch):
    assert torch.cuda.is_available() is False
    assert torch.cuda.device_count() == 0
    assert torch.cuda.is_initialized() is False
    assert torch.device("cuda" if torch.cuda.is_available() else "cpu") == torch.device("cpu")


def test_what_needs_no_device_does_nothing(torch):
    assert torch.cuda.manual_seed(0) is None
    assert torch.cuda.manual_seed_all(0) is None
    assert torch.cuda.empty_cache() is None


@pytest.mark.parametrize("name", ["current_device", "synchronize"])
def test_what_needs_a_device_says_so(torch, name):
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        getattr(torch.cuda, name)()


def test_streams_and_graphs_need_a_device(torch):
    for make, words in (
        (torch.cuda.Stream, "torch.cuda.Stream requires CUDA support"),
        (torch.cuda.Event, "Tried to instantiate dummy base class Event"),
        (torch.cuda.CUDAGraph, "Tried to instantiate dummy base class CUDAGraph"),
    ):
        with pytest.raises(RuntimeError, match=words):
            make()
