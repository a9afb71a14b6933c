"""``torch._utils``: exceptions that travel between threads and processes, what the pickles in files call, and helpers
of torch's own code that programs have come to use."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .core.devices import as_device
from .core.dtypes import dtype as Dtype
from .ops import namespace
from .overrides import resolve_name
from .tensor import Tensor

__all__ = ["ExceptionWrapper"]


class ExceptionWrapper:
    """The exception that is being handled, as text and class: what it refers to stays where it was raised.

    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError:
    ...     kept = ExceptionWrapper(where="in a thread")
    >>> try:
    ...     kept.reraise()
    ... except ZeroDivisionError as error:
    ...     print(str(error).splitlines()[0])
    Caught ZeroDivisionError in a thread.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def without_class(self) -> ExceptionWrapper:
        """The same for a class that cannot be sent."""
        self.exc_msg = f"(of the class {self.exc_type.__qualname__}, which cannot be pickled)\n{self.exc_msg}"
        self.exc_type = RuntimeError
        return self

    def reraise(self) -> None:
        """Raise it again, of its class, with the traceback in its text."""
        text: Any = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if issubclass(self.exc_type, KeyError):
            text = KeyErrorMessage(text)
        try:
            error = self.exc_type(text)
        except Exception:  # a class that wants other arguments
            error = RuntimeError(text)
        raise error


class KeyErrorMessage(str):
    """Text that a KeyError, which shows the repr of its argument, shows as it is."""

    def __repr__(self) -> str:
        return str(self)


# ------------------------------------------------------------------------------------------------ tensors, many at once


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements of tensors of one dtype in one vector.

    >>> import retrograd as torch
    >>> many = [torch.ones(2), torch.zeros(1, 2)]
    >>> flat = _flatten_dense_tensors(many)
    >>> flat, _unflatten_dense_tensors(flat, many)
    (tensor([1., 1., 0., 0.]), (tensor([1., 1.]), tensor([[0., 0.]])))
    """
    return namespace.cat([tensor.reshape(-1) for tensor in tensors])  # type: ignore[attr-defined]


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The parts of such a vector in the shapes of the tensors."""
    found, start = [], 0
    for tensor in tensors:
        count = tensor.numel()
        found.append(flat.narrow(0, start, count).view(tensor.shape))  # type: ignore[attr-defined]
        start += count
    return tuple(found)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Tensors in groups of one dtype and of at most `size_limit` bytes (one that is larger is a group of its own)."""
    open_groups: dict[str, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        kind, size = tensor.type(), tensor.nbytes  # type: ignore[attr-defined]
        group, held = open_groups.get(kind, ([], 0))
        if group and held + size > size_limit:
            yield group
            group, held = [], 0
        group.append(tensor)
        open_groups[kind] = (group, held + size)
    for group, _ in open_groups.values():
        yield group


def _reorder_tensors_as(tensors: Sequence[Tensor], ordered_tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Tensors in the order of dtypes that others have."""
    by_type: dict[str, Iterator[Tensor]] = {}
    for kind in {tensor.type() for tensor in tensors}:  # type: ignore[attr-defined]
        by_type[kind] = iter([tensor for tensor in tensors if tensor.type() == kind])  # type: ignore[attr-defined]
    return tuple([next(by_type[tensor.type()]) for tensor in ordered_tensors])  # type: ignore[attr-defined]


def _handle_complex(tensor: Tensor) -> Tensor:
    """A complex tensor as pairs of real numbers; any other itself."""
    return namespace.view_as_real(tensor) if tensor.is_complex() else tensor


def _element_size(dtype: Dtype) -> int:
    """The bytes of an element.

    >>> import retrograd as torch
    >>> _element_size(torch.float16), _element_size(torch.complex64)
    (2, 8)
    """
    if not isinstance(dtype, Dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


# --------------------------------------------------------------------------------------------------------------- others


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device; of the CPU, which has none, -1 if `allow_cpu`."""
    if isinstance(device, int):
        return device
    if device is None:
        if optional:
            return -1
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
    known = as_device(device)
    if known is not None and known.type == "cpu":
        if allow_cpu:
            return -1
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    if known is None or known.index is None:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
    return known.index


def _import_dotted_name(name: str) -> Any:
    """What a dotted name stands for.

    >>> _import_dotted_name("os.path.sep")
    '/'
    """
    first, *rest = name.split(".")
    found = importlib.import_module(first)
    for part in rest:
        found = getattr(found, part)
    return found


def _get_available_device_type() -> None:
    """The kind of accelerator that there is: none."""
    return None


class classproperty:
    """A property of a class.

    >>> class Box:
    ...     @classproperty
    ...     def size(cls):
    ...         return 3
    >>> Box.size
    3
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.function(type(instance) if owner is None else owner)


def __getattr__(name: str) -> Any:
    from .serialization import rebuild  # files are read by few

    if name.startswith("_rebuild_") and hasattr(rebuild, name):
        return getattr(rebuild, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def try_import(module_name: str) -> Any:
    """A module, or None where there is none of that name.

    >>> from retrograd._utils import try_import
    >>> try_import("there_is_no_such_module") is None
    True
    """
    found = sys.modules.get(module_name)
    if found is not None:
        return found
    return None if importlib.util.find_spec(module_name) is None else importlib.import_module(module_name)


def render_call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """A call as it would be written, with tensors in short.

    >>> import retrograd as torch
    >>> from retrograd._utils import render_call
    >>> render_call(torch.sum, [torch.ones(100)], {"dim": 0})
    'torch.sum(tensor([...], size=(100,)), dim=0)'
    """
    def shown(value: Any) -> str:
        if not isinstance(value, Tensor):
            return repr(value)
        kind = "" if value.dtype.name in ("float32", "int64", "bool") else f", dtype={value.dtype}"
        grad = ", requires_grad=True" if value.requires_grad else ""
        return f"tensor([...], size={tuple(value.shape)}{kind}{grad})"

    parts = [shown(value) for value in args] + [f"{name}={shown(value)}" for name, value in kwargs.items()]
    return f"{resolve_name(fn) or str(fn)}({', '.join(parts)})"
