"""``torch.utils.cpp_extension``: operators in C++ need torch's own headers; refused here."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["BuildExtension", "CUDAExtension", "CppExtension", "include_paths", "load", "load_inline"]


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(
        f"torch.utils.cpp_extension.{name}(): retrograd is Python and has no C++ interface. Write the operator as a "
        "torch.autograd.Function with NumPy, or call the library through ctypes"
    )


def load(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused."""
    _refuse("load")


def load_inline(name: str, cpp_sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused."""
    _refuse("load_inline")


def CppExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused."""
    _refuse("CppExtension")


def CUDAExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused."""
    _refuse("CUDAExtension")


def include_paths(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused."""
    _refuse("include_paths")


class BuildExtension:
    """Refused when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("BuildExtension")
