"""``torch.nn``: modules, layers and losses, their functions, initialisation and utilities."""

from importlib import import_module as _import_module
from typing import Any as _Any

from . import functional, init, modules, utils
from .modules import Module
from .modules import __all__ as _modules
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

#: Parts that are imported when they are first asked for.
_FILES = {
    "DataParallel": "parallel", "attention": "attention", "common_types": "common_types", "grad": "grad",
    "parallel": "parallel",
}  # fmt: skip

__all__ = sorted([
    *_modules, *_FILES, "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "factory_kwargs",
    "functional", "init", "modules", "utils",
])  # fmt: skip


def factory_kwargs(kwargs: dict[str, _Any] | None) -> dict[str, _Any]:
    """Those of a module's keyword arguments that are for its tensors: device, dtype and memory_format.

    >>> factory_kwargs({"dtype": None, "factory_kwargs": {"device": "cpu"}})
    {'device': 'cpu', 'dtype': None}
    """
    given = dict(kwargs or {})
    found = dict(given.pop("factory_kwargs", {}))
    for name, value in given.items():
        if name not in ("device", "dtype", "memory_format"):
            raise TypeError(f"unexpected kwargs { {name} }")
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = value
    return found


def __getattr__(name: str) -> _Any:
    if name in _modules:
        value = getattr(modules, name)
    elif name in _FILES:
        file = _import_module(f".{_FILES[name]}", __name__)
        value = file if name == _FILES[name] else getattr(file, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules, *_FILES})
