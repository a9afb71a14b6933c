"""Which CUDA devices there are: asked when somebody wants to know, since that loads CuPy."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from ..core.devices import accelerators
from ..core.devices import device as _device


def found() -> list[Any]:
    """The places of all CUDA devices, none if there is none."""
    return import_module("...arrays.places", __name__).start()


def count() -> int:
    """How many CUDA devices there are."""
    known = sum(device.type == "cuda" for device in accelerators)
    return known or len(found())


def place(device: Any = None) -> Any:
    """The place of a device, None for the current one; refused where there is none."""
    if not found():
        refuse()
    if isinstance(device, str):
        device = _device(device)
    if isinstance(device, _device) and device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return import_module("...arrays.places", __name__).place_of(device)


def need(words: str) -> None:
    """Refuse to make what only a CUDA device has, in torch's words for it."""
    if not found():
        raise RuntimeError(f"{words}: there is no CUDA device here, ask torch.cuda.is_available() first")


def refuse() -> NoReturn:
    """Say that there is no CUDA device."""
    raise AssertionError(
        "Torch not compiled with CUDA enabled: there is no CUDA device here, or CuPy is not installed (pip install "
        "retrograd[cuda]). Ask torch.cuda.is_available() first"
    )
