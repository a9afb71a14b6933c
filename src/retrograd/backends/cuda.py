"""``torch.backends.cuda``: not here. Its switches may be set and change nothing, but for those of attention."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

from ..core.attention import allowed as _attention

#: Which products may be less precise than float32.
matmul: SimpleNamespace = SimpleNamespace(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False, fp32_precision="none",
)  # fmt: skip
cufft_plan_cache: SimpleNamespace = SimpleNamespace(size=0, max_size=0, clear=lambda: None)


def is_built() -> bool:
    """Was this built for CUDA?"""
    return False


def is_available() -> bool:
    """Is it here?"""
    return False


def preferred_linalg_library(backend: Any = None) -> str:
    """The library of decompositions: "default"."""
    return "default"


def _switch(name: str) -> tuple[Any, Any]:
    def enabled() -> bool:
        """Is this way to compute attention on CUDA devices allowed?"""
        return _attention[name]

    def enable(value: bool) -> None:
        """Allow this way to compute attention on CUDA devices, or not."""
        _attention[name] = bool(value)

    return enabled, enable


flash_sdp_enabled: Any
enable_flash_sdp: Any
flash_sdp_enabled, enable_flash_sdp = _switch("flash")
mem_efficient_sdp_enabled: Any
enable_mem_efficient_sdp: Any
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient")
math_sdp_enabled: Any
enable_math_sdp: Any
math_sdp_enabled, enable_math_sdp = _switch("math")
cudnn_sdp_enabled: Any
enable_cudnn_sdp: Any
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn")


class sdp_kernel(contextlib.ContextDecorator):
    """Which ways to compute attention on CUDA devices are allowed within a block."""

    def __init__(
        self, enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
        enable_cudnn: bool = True,
    ) -> None:  # fmt: skip
        self.values: dict[str, bool] = {
            "flash": enable_flash, "math": enable_math, "mem_efficient": enable_mem_efficient, "cudnn": enable_cudnn,
        }  # fmt: skip

    def __enter__(self) -> None:
        self.before: dict[str, bool] = dict(_attention)
        _attention.update(self.values)

    def __exit__(self, *exc_info: object) -> None:
        _attention.update(self.before)
