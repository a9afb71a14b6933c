"""``torch.backends.cudnn``: not here. Its switches may be set and change nothing."""

from __future__ import annotations

from typing import Any

from .absent import Flags

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available() -> bool:
    """Is it here?"""
    return False


def flags(**values: Any) -> Flags:
    """Set switches for the length of a block."""
    return Flags(globals(), values)


def version() -> None:
    """Its version: none."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Could it compute with this tensor?"""
    return False


def set_flags(
    _enabled: bool | None = None, _benchmark: bool | None = None, _benchmark_limit: int | None = None,
    _deterministic: bool | None = None, _allow_tf32: bool | None = None, _fp32_precision: str = "none",
) -> tuple[bool, bool, int | None, bool, bool, str]:  # fmt: skip
    """Set switches; what they were before."""
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    before = tuple(globals()[name] for name in names)
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)
    globals().update({name: value for name, value in zip(names, given, strict=True) if value is not None})
    return (*before, _fp32_precision)  # type: ignore[return-value]
