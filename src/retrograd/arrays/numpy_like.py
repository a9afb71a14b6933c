"""NumPy's names, computing on a device: what the kernels of a device find as ``np``.

What CuPy has otherwise than NumPy is met in calls.py (methods of ufuncs, arguments that CuPy does not take) and in
functions.py (whole functions).  What is left goes to NumPy on the host.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from .calls import Ufunc, function_of, ufunc_for
from .device_array import DeviceArray
from .functions import OWN, OWN_SPECIAL

if TYPE_CHECKING:
    from .places import Place

#: Functions that read no values: what they are asked is in shapes, dtypes and addresses.
_PLAIN = {
    "dtype", "iinfo", "finfo", "errstate", "ndindex", "broadcast_shapes", "promote_types", "issubdtype", "can_cast",
    "setbufsize", "isscalar", "get_printoptions", "printoptions", "seterr", "geterr",
}  # fmt: skip


class NumpyLike:
    """``np`` for one device."""

    def __init__(self, place: Place, path: str = "", module: Any = None, host: Any = np) -> None:
        self._place, self._path, self._module, self._host = (
            place,
            path,
            place.module if module is None else module,
            host,
        )

    def __getattr__(self, name: str) -> Any:
        found = self._find(name)
        self.__dict__[name] = found
        return found

    def _find(self, name: str) -> Any:
        place = self._place
        if self._path + name in OWN:
            return OWN[self._path + name](place)
        if not self._path:
            if name == "ndarray":
                return place.array_class
            if name == "ufunc":
                return Ufunc
            if name in _PLAIN:
                return getattr(np, name)
        ours = getattr(self._host, name)
        theirs = getattr(self._module, name, None)
        if isinstance(ours, np.ufunc):
            return ufunc_for(place, ours, theirs)
        if isinstance(ours, type) or not callable(ours):
            if isinstance(ours, ModuleType):
                return NumpyLike(place, f"{self._path}{name}.", theirs, ours)
            return ours
        return function_of(place, ours, theirs, self._path + name)

    def __repr__(self) -> str:
        return f"<numpy for {self._place.device}>"


# -------------------------------------------------------------------------------------------------------- SciPy


class OnHost:
    """A module whose functions run on the host: those of the device's library of the same name, where it has them."""

    def __init__(self, place: Place, path: str) -> None:
        self._place, self._path = place, path

    def __getattr__(self, name: str) -> Any:
        ours = getattr(import_module(self._path), name, None)
        if ours is None or isinstance(ours, ModuleType):
            return OnHost(self._place, f"{self._path}.{name}")
        if not callable(ours) or isinstance(ours, type):
            return ours
        found = hosted(self._place, ours, self._theirs(name))
        if self._path == "scipy.special" and name in OWN_SPECIAL:
            found = OWN_SPECIAL[name](self._place, found)
        self.__dict__[name] = found
        return found

    def _theirs(self, name: str) -> Any:
        if self._path not in ("scipy.special", "scipy.fft"):
            return None
        return getattr(self._place.library_of(self._path), name, None)


def hosted(place: Place, ours: Any, theirs: Any = None) -> Any:
    """A function of a library for NumPy arrays, for those of a device."""
    if theirs is not None:
        return function_of(place, ours, theirs, ours.__name__ if hasattr(ours, "__name__") else str(ours))

    def call(*args: Any, **kwargs: Any) -> Any:
        return _callable(place, place.by_host(ours, args, kwargs))

    call.__name__ = getattr(ours, "__name__", "function")
    return call


def _callable(place: Place, value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)([_callable(place, one) for one in value]) if not hasattr(value, "_fields") else value
    if callable(value) and not isinstance(value, (type, DeviceArray)):
        return hosted(place, value)
    return value


def stand_ins(place: Place) -> dict[str, Any]:
    """What a device's kernels import in place of libraries for NumPy arrays."""
    return {"numpy": place.numpy, "scipy": OnHost(place, "scipy")}
