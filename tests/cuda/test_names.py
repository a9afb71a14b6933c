"""Every name of devices that programs are written with is there, and does what it says: one entry for each."""

from __future__ import annotations

import io
from typing import Any

import pytest

import retrograd as torch


def saved_and_loaded(where: Any) -> Any:
    file = io.BytesIO()
    torch.save({"x": torch.arange(3.0, device="cuda:1")}, file)
    file.seek(0)
    return torch.load(file, map_location=where)["x"]


def current_is(number: int) -> bool:
    return torch.cuda.current_device() == number and torch.ones(1, device="cuda").device.index == number


def set_device() -> bool:
    torch.cuda.set_device(1)
    try:
        return current_is(1)
    finally:
        torch.cuda.set_device(0)


def device_context() -> bool:
    with torch.cuda.device(1):
        inside = current_is(1)
    return inside and current_is(0)


def stream_context() -> bool:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        inside = torch.cuda.current_stream() == side
    return inside and torch.cuda.current_stream() == torch.cuda.default_stream()


def event() -> bool:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    torch.ones(8, device="cuda").sum()
    end.record()
    end.synchronize()
    return end.query() and start.elapsed_time(end) >= 0


def counted() -> bool:
    before = torch.cuda.memory_allocated()
    x = torch.ones(1024, device="cuda")
    grown = torch.cuda.memory_allocated() - before
    del x
    return grown == 4096 and torch.cuda.memory_allocated() == before


def peak() -> bool:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.max_memory_allocated()
    x = torch.ones(1024, device="cuda")
    del x
    kept = torch.cuda.max_memory_allocated() - before
    torch.cuda.reset_peak_memory_stats()
    return kept == 4096 and torch.cuda.max_memory_allocated() == before


def emptied() -> bool:
    x = torch.ones(1 << 22, device="cuda")
    reserved = torch.cuda.memory_reserved()
    del x
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return reserved >= 1 << 24 and torch.cuda.memory_reserved() <= reserved - (1 << 24)


def seeded() -> bool:
    torch.cuda.manual_seed(5)
    first = torch.rand(4, device="cuda").tolist()
    torch.cuda.manual_seed(5)
    return torch.rand(4, device="cuda").tolist() == first != torch.rand(4, device="cuda").tolist()


def scaled() -> bool:
    scaler = torch.amp.GradScaler("cuda", init_scale=4.0)
    x = torch.ones(2, device="cuda", requires_grad=True)
    scaler.scale(x.sum()).backward()
    return x.grad.tolist() == [4.0, 4.0]


def cast() -> bool:
    with torch.autocast("cuda", dtype=torch.float16):
        a = torch.ones(2, 2, device="cuda")
        return (a @ a).dtype == torch.float16


def shared() -> bool:
    x = torch.arange(4.0, device="cuda")
    y = torch.from_dlpack(x)
    return y.data_ptr() == x.data_ptr() and y.device == x.device


def differentiable_copy() -> bool:
    x = torch.ones(2, requires_grad=True)
    (x.cuda() * 3).to("cuda:1").cpu().sum().backward()
    return x.grad.tolist() == [3.0, 3.0] and x.grad.is_cpu


def pinned() -> bool:
    x = torch.arange(3.0).pin_memory()
    return x.is_pinned() and x.cuda(non_blocking=True).tolist() == [0, 1, 2]


NAMES: dict[str, Any] = {
    "Tensor.to": lambda: torch.ones(1).to("cuda:1").device == torch.device("cuda", 1),
    "Tensor.cuda": lambda: torch.ones(1).cuda().is_cuda,
    "Tensor.cpu": lambda: torch.ones(1, device="cuda").cpu().is_cpu,
    "device=": lambda: torch.full((2,), 1.0, device="cuda:1").get_device() == 1, "pin_memory": pinned,
    "copies with gradients": differentiable_copy, "is_available": lambda: torch.cuda.is_available() is True,
    "device_count": lambda: torch.cuda.device_count() == 2, "current_device": lambda: current_is(0),
    "set_device": set_device, "device": device_context,
    "get_device_name": lambda: torch.cuda.get_device_name(0) == torch.cuda.get_device_properties(0).name,
    "get_device_properties": lambda: torch.cuda.get_device_properties(0).total_memory > 0,
    "synchronize": lambda: torch.cuda.synchronize() is None, "Stream": lambda: torch.cuda.Stream().query(),
    "Event": event, "stream": stream_context,
    "current_stream": lambda: torch.cuda.current_stream() == torch.cuda.current_stream(0),
    "default_stream": lambda: torch.cuda.default_stream().cuda_stream == 0, "memory_allocated": counted,
    "max_memory_allocated": peak, "memory_reserved": lambda: torch.cuda.memory_reserved() >= 0,
    "reset_peak_memory_stats": peak, "empty_cache": emptied, "manual_seed": seeded,
    "bfloat16": lambda: (torch.ones(2, dtype=torch.bfloat16, device="cuda") * 3).tolist() == [3.0, 3.0],
    "float16": lambda: (torch.ones(2, dtype=torch.float16, device="cuda") * 3).tolist() == [3.0, 3.0],
    "autocast": cast, "GradScaler": scaled, "DLPack": shared,
    "load to the CPU": lambda: saved_and_loaded("cpu").is_cpu,
    "load where it was": lambda: saved_and_loaded(None).device == torch.device("cuda", 1),
    "load to a device": lambda: saved_and_loaded("cuda:0").device == torch.device("cuda", 0),
    "load by a map": lambda: saved_and_loaded({"cuda:1": "cuda:0"}).device == torch.device("cuda", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_name(gpu: Any, name: str) -> None:
    if name == "DLPack" and not gpu.real:
        pytest.skip("the simulated library has no memory that others know of")
    assert NAMES[name]() is True
