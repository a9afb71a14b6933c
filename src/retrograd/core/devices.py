"""Devices: where a tensor's array lives.

The array tells: its class belongs to one library, and each library serves one kind of device.  NumPy arrays are
``cpu``.  `register_array_class` adds another library's class.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

#: How the name of a kind of device looks, and its number.
_KIND = re.compile("[a-zA-Z_]+")
_INDEX = re.compile("0|[1-9][0-9]*")


class DeviceClass(type):
    """The class of `device`: what ``torch.device(...)`` means can be overridden (ops/override_switch.py)."""


#: Instead of an argument that is not given.
_NOTHING: Any = object()


class device(metaclass=DeviceClass):
    """A device, such as ``retrograd.device("cpu")`` or ``retrograd.device("cuda", 0)``.

    >>> import retrograd
    >>> retrograd.device("cpu"), str(retrograd.device("cuda:1"))
    (device(type='cpu'), 'cuda:1')
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | int | device = _NOTHING, index: int | None = None, **named: Any) -> None:
        if named or type is _NOTHING:
            type = _only_device(type, index, named)
        if isinstance(type, device):
            other = type
            type, index = other.type, other.index if index is None else index
        if isinstance(type, int) and not isinstance(type, bool):  # the number of an accelerator
            if not -(2**63) <= type < 2**63:
                raise ValueError(f"Overflow when unpacking long long: {type} is no number of a device")
            if type < 0:
                raise RuntimeError(f"Device index must not be negative, but got {type}")
            if not accelerators and not _places().start():
                raise RuntimeError(f"Cannot access accelerator device when none is available: there is no {type}")
            type, index = accelerators[0].type, int(type)
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type.__class__.__name__}")
        if ":" in type:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            type, number = type.split(":", 1)
            if not _INDEX.fullmatch(number):
                raise RuntimeError(f"Invalid device string: '{type}:{number}'")
            index = int(number)
        if type not in _KINDS:
            if not type:
                raise RuntimeError("Device string must not be empty: write a kind of device, such as 'cpu'")
            if not _KIND.fullmatch(type):
                raise RuntimeError(f"Invalid device string: '{type}'")
            raise RuntimeError(f"Expected one of {', '.join(_KINDS)} device type at start of device string: {type}")
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + ("" if self.index is None else f", index={self.index}") + ")"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

    @property
    def place(self) -> Any:
        """What computes there: None for the CPU and meta."""
        return None if self.type in ("cpu", "meta") else place_of(self)

    # ``with device:`` makes tensors there, in this thread, where a factory is not told otherwise.

    def __enter__(self) -> device:
        refuse_other_default(self)
        default.before = (*default.before, default.device)
        default.device = self
        return self

    def __exit__(self, *exc_info: object) -> None:
        *before, default.device = default.before
        default.before = tuple(before)


def _only_device(type: Any, index: Any, named: dict[str, Any]) -> Any:
    """What is meant by ``device(device=...)``, the other way to say it, by name and alone."""
    if named.keys() == {"device"} and type is _NOTHING and index is None:
        return named["device"]
    if type is _NOTHING and (named.keys() == {"device"} or index is not None):
        raise TypeError('device() missing 1 required positional arguments: "type"')
    if named:
        raise TypeError(f"device() got an unexpected keyword argument '{next(iter(named))}': write device(type, index)")
    raise TypeError(
        "device() received an invalid combination of arguments - got (), but expected one of: (torch.device device), "
        "(str type, int index = -1)"
    )


class OutOfMemoryError(RuntimeError):
    """A device has no memory left."""


#: The kinds of devices that torch has a name for.
_KINDS = [
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
]  # fmt: skip
CPU = device("cpu")
#: The device of tensors without values: Note [Meta tensors] in tensor/meta.py.
META = device("meta")
_BY_ARRAY_CLASS: dict[type[Any], device] = {np.ndarray: CPU, type(None): META}
#: Devices that have a thread of their own for backward passes, see autograd/device_threads.py.
accelerators: list[device] = []
#: Who wants to know that a device is gone: called with it.
when_a_device_goes: list[Callable[[device], None]] = []


def register_array_class(array_class: type[Any], where: device) -> None:
    """Say that arrays of `array_class` live on `where`."""
    _BY_ARRAY_CLASS[array_class] = where
    if where.type not in ("cpu", "meta") and where not in accelerators:
        accelerators.append(where)


def forget_array_class(array_class: type[Any]) -> None:
    """Say that there are no such arrays any more; a device without arrays is gone, and so is its thread."""
    where = _BY_ARRAY_CLASS.pop(array_class)
    if where in accelerators and where not in _BY_ARRAY_CLASS.values():
        accelerators.remove(where)
        for tell in when_a_device_goes:
            tell(where)


def device_of_array_class(array_class: type[Any]) -> device:
    """The device of arrays of this class."""
    return _BY_ARRAY_CLASS[array_class]


def refuse_device(absent: device) -> NoReturn:
    """Say that there is no such device; torch has two kinds of errors for it."""
    reason = f"no backend for device '{absent}' is loaded; this build computes on the CPU with NumPy"
    if absent.type == "cuda":
        reason += ", and with CuPy (pip install retrograd[cuda]) where that finds a GPU"
    if absent.type in ("cuda", "xpu"):
        raise AssertionError(f"Torch not compiled with {absent.type.upper()} enabled: {reason}")
    raise RuntimeError(f"PyTorch is not linked with support for {absent.type} devices: {reason}")


class _Default(threading.local):
    """Where factories make tensors in this thread, if they are not told; None: on the CPU."""

    device: device | None = None
    #: What it was outside of the blocks that are open.
    before: tuple[Any, ...] = ()


default: _Default = _Default()


def refuse_other_default(where: Any) -> None:
    """Raise unless tensors can be made on `where` without being told so."""
    as_device(where)


def as_device(value: Any) -> device:
    """What a caller gave for a ``device`` argument; None is the CPU."""
    if value is None:
        return CPU
    found = value if isinstance(value, device) else device(value)
    if found.type not in {known.type for known in _BY_ARRAY_CLASS.values()} and not _start(found):
        refuse_device(found)
    return found


def _start(wanted: device) -> bool:
    """Is there such a device after all? Its library is looked for when it is first asked for."""
    return wanted.type == "cuda" and bool(_places().start())


def places_in_use() -> list[Any]:
    """The CUDA devices that somebody has asked for."""
    return _places().places if accelerators else []


def _places() -> Any:
    return import_module("...arrays.places", __name__)  # not before a device is asked for


def current_capture() -> Any:
    """What this thread is capturing on a device that is in use: Note [Captured graphs] in arrays/capturing.py."""
    return import_module("...arrays.capturing", __name__).current()


def places_of(kind: str) -> Any:
    """The module that knows the devices of a kind, which are there."""
    as_device(kind)
    return _places()


def place_of(where: device) -> Any:
    """What computes on a device that is not the CPU."""
    return _places().place_of(as_device(where))


def pinned(array: Any) -> Any:
    """An array of the CPU, copied into memory that devices read and write by themselves."""
    if not accelerators and not _places().start():
        raise RuntimeError(
            "Cannot access accelerator device when none is available: pin_memory=True requires a CUDA or other "
            "accelerator backend, and there is none"
        )
    places = _places()
    return places.pinned.copy(places.places[0].module, array)


#: Stretches of the host's memory that are pinned: from, to.
pinned_memory: list[tuple[int, int]] = []


def is_pinned_array(array: Any) -> bool:
    """Does an array of the CPU lie in pinned memory?"""
    if not pinned_memory:
        return False
    address = array.__array_interface__["data"][0]
    return any(low <= address < high for low, high in pinned_memory)


def device_count() -> int:
    """How many CUDA devices there are."""
    return sum(known.type == "cuda" for known in accelerators) or len(_places().start())
