"""Settings of the whole process."""

from __future__ import annotations

from typing import Any

import pytest


def test_warn_always(torch: Any) -> None:
    assert torch.is_warn_always_enabled() is False
    torch.set_warn_always(True)
    try:
        assert torch.is_warn_always_enabled() is True
    finally:
        torch.set_warn_always(False)
    with pytest.raises((RuntimeError, TypeError), match="expects a bool"):
        torch.set_warn_always(1)


def test_threads_are_at_the_top_level(torch: Any) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    assert torch.get_num_interop_threads() >= 1


def test_anomaly_mode_by_the_switch(torch: Any) -> None:
    torch.set_anomaly_enabled(True, False)
    try:
        assert torch.is_anomaly_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
    finally:
        torch.set_anomaly_enabled(False)
    assert not torch.is_anomaly_enabled()


def test_determinism(torch: Any) -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.get_deterministic_debug_mode() == 1
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.get_deterministic_debug_mode() == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not a real device", "Invalid device string: 'not a real device'"),
        ("cuda:01", "Invalid device string: 'cuda:01'"),
        ("cpu:-1", "Invalid device string: 'cpu:-1'"),
        ("", "Device string must not be empty"),
        ("CPU", "Expected one of cpu, cuda, .* device type at start of device string: CPU"),
    ],
)
def test_what_is_no_device(torch: Any, text: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.device(text)


def test_a_mode_is_put_on_functions(torch: Any) -> None:
    with pytest.raises(TypeError, match=r"autocast\(\)\(func\) requires a callable, but got Tensor"):
        torch.autocast("cpu")(torch.ones(2))


def test_a_device_is_a_context(torch: Any) -> None:
    with torch.device("cpu"):
        assert torch.ones(2).device.type == "cpu"


def test_a_device_that_is_not_there_is_no_context() -> None:
    import retrograd

    with pytest.raises(RuntimeError, match="mps"), retrograd.device("mps"):
        pass


def test_deterministic_algorithms_are_asked_for_by_bools(torch: Any) -> None:
    for arguments, message in (
        (((1,), {}), r"argument 'mode' \(position 1\) must be bool, not int"),
        (((True,), {"warn_only": 1}), "argument 'warn_only' must be bool, not int"),
    ):
        with pytest.raises(TypeError, match=message):
            torch.use_deterministic_algorithms(*arguments[0], **arguments[1])
    with pytest.raises(TypeError, match="debug_mode must be str or int"):
        torch.set_deterministic_debug_mode(1.5)
    assert not torch.are_deterministic_algorithms_enabled()


def test_new_memory_is_filled_where_results_are_deterministic(torch: Any) -> None:
    repeated = torch.empty_strided((10,), (0,)).fill_(0.0)
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(10, 9, out=torch.zeros(1, dtype=torch.int8)).unique().tolist() == [127]
        assert repeated.resize_(20)[1:].isnan().all() and repeated[0] == 0
        assert torch._C._get_deterministic_fill_uninitialized_memory() is True
        torch._C._set_deterministic_fill_uninitialized_memory(False)
        assert torch.utils.deterministic.fill_uninitialized_memory is False
    finally:
        torch._C._set_deterministic_fill_uninitialized_memory(True)
        torch.use_deterministic_algorithms(False)


def test_a_number_of_threads_that_is_too_large(torch: Any) -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.set_num_threads(2**65)


def test_the_older_type_by_default_is_deprecated(torch: Any) -> None:
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match=r"please use torch.set_default_dtype\(\)"):
            torch.set_default_tensor_type(torch.FloatTensor)
    finally:
        torch.set_warn_always(False)


def test_the_older_homes_of_mixed_precision(torch: Any) -> None:
    for make in (torch.cpu.amp.autocast, torch.cpu.amp.GradScaler, torch.cuda.amp.autocast, torch.cuda.amp.GradScaler):
        with pytest.warns(FutureWarning, match=r"\(args...\)` is deprecated"):
            make(enabled=False)
