"""Where a storage is, in words, and how `load` puts it there: `register_package` and what `map_location` means."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..core.devices import META, as_device, device, device_count
from ..storage import UntypedStorage
from .load_error import LoadError

#: (priority, what says where a storage is, what puts it there): the first that has an answer is taken.
_registry: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = []


def register_package(
    priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]
) -> None:
    """Say how storages of a kind of device are saved and loaded.

    ``tagger(storage)`` is the location that is written to the file, ``deserializer(storage, location)`` a storage at
    that location; each returns None where it is not its own.  Those of low priority numbers are asked first.
    """
    _registry.append((priority, tagger, deserializer))
    _registry.sort(key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """Where a storage is, as files have it.

    >>> import retrograd as torch
    >>> torch.serialization.location_tag(torch.ones(1).untyped_storage())
    'cpu'
    """
    for _, tagger, _ in _registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {type(storage).__name__}")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage, at `location`."""
    for _, _, deserializer in _registry:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise LoadError(
        f"don't know how to restore data location of {type(storage).__name__} (tagged with {location}). Load it with "
        "map_location='cpu'"
    )


def restorer(map_location: Any) -> Callable[[Any, str], Any]:
    """What `map_location` means: a function of (storage, location)."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, device, int)) and not isinstance(map_location, bool):
        where = str(device("cuda", map_location) if isinstance(map_location, int) else map_location)
        return lambda storage, location: default_restore_location(storage, where)
    if isinstance(map_location, bytes):
        return lambda storage, location: default_restore_location(storage, map_location.decode())
    if not callable(map_location):
        raise TypeError(
            "map_location must be a device, its name, a dictionary of names or a function of (storage, location), not "
            + type(map_location).__name__
        )

    def restore(storage: Any, location: str) -> Any:
        result = map_location(storage, location)
        if result is None:
            return default_restore_location(storage, location)
        if not isinstance(result, UntypedStorage):
            raise TypeError(f"map_location must return a storage or None, but it returned a {type(result).__name__}")
        return result

    return restore


# ----------------------------------------------------------------------------------------------------- torch's devices


def validate_cuda_device(location: str) -> int:
    """The number of a CUDA device that is there."""
    count = device_count()
    if count:
        index = device(location).index or 0
        if index < count:
            return index
        raise LoadError(
            f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is {count}. Please "
            "use torch.load with map_location to map your storages to an existing device."
        )
    raise LoadError(
        "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running "
        "on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to "
        "the CPU."
    )


def _cpu_tag(storage: Any) -> str | None:
    return "cpu" if storage.device.type == "cpu" else None


def _cpu_deserialize(storage: Any, location: str) -> Any:
    return storage.cpu() if location == "cpu" else None


class StorageOnMeta(UntypedStorage):
    """A storage of a file of which only the sizes are wanted: tensors on it are made without values."""

    device = property(lambda self: META)  # type: ignore[assignment]


def _other_tag(storage: Any) -> str | None:
    return str(storage.device)


def _other_deserialize(storage: Any, location: str) -> Any:
    found = re.match(r"(cuda|meta|mps|hpu|xpu|mtia)(:\d+)?$", location)
    if found is None:
        return None
    kind = found.group(1)
    if kind == "cuda":
        return storage.to(device=device("cuda", validate_cuda_device(location)))
    as_device(kind)
    return StorageOnMeta._of(storage.untyped()._root) if kind == "meta" else None


register_package(10, _cpu_tag, _cpu_deserialize)
register_package(20, _other_tag, _other_deserialize)
