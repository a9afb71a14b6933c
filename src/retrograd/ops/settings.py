"""Settings of the whole process, as torch has them, and what they mean where everything runs in NumPy.

Every operator here is deterministic and computes float32 products in float32 (on CUDA devices the gradients of large
embeddings are deterministic when it is asked for): the settings that ask for this are remembered and change nothing
else; those that ask for something else are refused.
"""

from __future__ import annotations

from typing import Any

from ..core import said_once
from ..core.deterministic import asked
from ..core.devices import CPU, as_device, default, device, refuse_other_default
from .uninitialized import memory

__all__ = [
    "are_deterministic_algorithms_enabled", "get_default_device", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "is_deterministic_algorithms_warn_only_enabled", "set_default_device",
    "is_warn_always_enabled", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_warn_always", "use_deterministic_algorithms",
]  # fmt: skip

#: What was set last.
_settings: dict[str, Any] = {"warn_only": False, "precision": "highest"}
_MODES = ("default", "warn", "error")
_PRECISIONS = ("highest", "high", "medium")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that are the same in every run, which they always are on the CPU, and otherwise but for sums that
    threads of a device add to in any order. New memory is filled as well.

    >>> import retrograd as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.are_deterministic_algorithms_enabled()
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    for name, given in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        if not isinstance(given, bool):
            kind = type(given).__name__
            raise TypeError(f"_set_deterministic_algorithms(): argument {name} must be bool, not {kind}")
    _set_mode((1 if warn_only else 2) if mode else 0)
    _settings["warn_only"] = warn_only


def _set_mode(mode: int) -> None:
    asked.mode = mode
    _settings["warn_only"] = mode == 1
    memory.switch(deterministic=mode > 0)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was called."""
    return asked.mode > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it was called with ``warn_only=True``."""
    return _settings["warn_only"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by number or name: 0 "default", 1 "warn", 2 "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _set_mode(int(debug_mode))


def get_deterministic_debug_mode() -> int:
    """The number that `set_deterministic_debug_mode` takes."""
    return asked.mode


def set_float32_matmul_precision(precision: str) -> None:
    """Allow less precise products of float32 matrices, which are never computed that way."""
    if precision not in _PRECISIONS:
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    _settings["precision"] = precision


def get_float32_matmul_precision() -> str:
    """What was last allowed."""
    return _settings["precision"]


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers could be set to flush to zero: they cannot."""
    return False


def set_warn_always(b: bool, /) -> None:
    """Ask for the warnings that are given once in a process to be given each time; Python's filters have the last word.

    >>> import retrograd as torch
    >>> torch.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    said_once.Settings.always = b


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was last given."""
    return said_once.Settings.always


def get_default_device() -> device:
    """The device on which factories make tensors in this thread."""
    return default.device or CPU


def set_default_device(device: Any) -> None:
    """Make tensors on that device, where a factory is not told otherwise: on the CPU, or without values, on meta.

    >>> import retrograd as torch
    >>> torch.set_default_device("meta"); torch.ones(2)
    tensor(..., device='meta', size=(2,))
    >>> torch.set_default_device(None); torch.ones(2)
    tensor([1., 1.])
    """
    refuse_other_default(device)
    default.device = None if device is None else as_device(device)
