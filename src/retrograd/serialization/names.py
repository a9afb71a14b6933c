"""What things are called in files.

Note [Names in files]
The format is torch's, and so are the names in it: what lies in this package as ``retrograd.nn.modules.linear.Linear``
is written as ``torch.nn.Linear``: under the highest package that has it, since that is where torch has it too, whatever
the files are called.  A few things lie elsewhere here than in torch; `known` lists them.  What is read and not found
under its module is looked for in the packages above it for the same reason: ``torch.nn.modules.container.Sequential``
is ``retrograd.nn.Sequential``.
"""

from __future__ import annotations

import importlib
import sys
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from functools import cache
from typing import Any

from ..core import dtypes
from ..core.devices import device
from ..core.size import Size
from ..nn.parameter import Parameter
from ..ops.tensor_types import TYPES as TENSOR_TYPES
from ..storage import TYPES as STORAGE_TYPES
from ..storage import TypedStorage, UntypedStorage
from ..tensor import Tensor
from ..tensor.tensor import TYPE_NAMES
from . import rebuild
from .load_error import LoadError

_PACKAGE = __name__.partition(".")[0]


@cache
def known() -> dict[str, Any]:
    """By name in files: what lies elsewhere here; what `load` takes from any file, besides dtypes and plain values."""
    found = {f"torch._utils.{function.__name__}": function for function in rebuild.TENSORS}
    nested = "torch.nested._internal.nested_tensor."
    return {
        **found,
        f"{nested}_rebuild_njt": rebuild._rebuild_njt,
        f"{nested}NestedTensor": Tensor,  # beside the function that makes it, its name says nothing
        "torch._tensor._rebuild_from_type_v2": rebuild._rebuild_from_type_v2,
        "torch.serialization._get_layout": rebuild._get_layout,
        "torch.Size": Size,
        "torch.device": device,
        "torch.Tensor": Tensor,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.storage.UntypedStorage": UntypedStorage,
        "torch.storage.TypedStorage": TypedStorage,
        **{f"torch.{word}": kind for word, kind in STORAGE_TYPES.items()},
        **{f"torch.{word}": kind for word, kind in TENSOR_TYPES.items()},
    }


@cache
def _spelled() -> dict[Any, tuple[str, str]]:
    return {thing: tuple(full.rsplit(".", 1)) for full, thing in known().items()}  # type: ignore[misc]


def spelling(thing: Any, name: str | None = None) -> tuple[str, str] | None:
    """The module and name that files have for a class, function or constant of this package; None for others."""
    if isinstance(thing, dtypes.dtype):
        return "torch", thing.name
    try:
        found = _spelled().get(thing)
    except TypeError:  # it cannot be looked up in a dictionary
        found = None
    if found is not None:
        return found
    spellings = public_spellings(thing, name)
    return spellings[0] if spellings else None


def public_spellings(thing: Any, name: str | None = None) -> list[tuple[str, str]]:
    """Every module of this package that has `thing`, from the top down to where it is defined."""
    module = getattr(thing, "__module__", None)
    name = name or getattr(thing, "__qualname__", None)
    if type(module) is not str or type(name) is not str or module.partition(".")[0] != _PACKAGE:
        return []
    parts = module.split(".")
    paths = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    there = [path for path in paths if path in sys.modules and _attribute(sys.modules[path], name) is thing]
    return [("torch" + path.removeprefix(_PACKAGE), name) for path in there]


def find_known(module: str, name: str) -> Any:
    """What a file means by a name, if it is one of those that any file may use; else None."""
    if module == "torch" and (name in TYPE_NAMES or name in dtypes.STORED):
        return dtypes.by_name(name)
    return known().get(f"{module}.{name}")


def find(module: str, name: str) -> Any:
    """What a trusted file means by a name of torch's (None: it is none of torch's)."""
    found = find_known(module, name)
    if found is not None or module.partition(".")[0] != "torch":
        return found
    path = _PACKAGE + module.removeprefix("torch")
    while path:
        try:
            there = importlib.import_module(path)
        except ImportError:
            there = None
        found = None if there is None else _attribute(there, name)
        if found is not None:
            return found
        path = path.rpartition(".")[0]
    raise LoadError(f"the file refers to {module}.{name}, which {_PACKAGE} does not have")


def _attribute(there: Any, name: str) -> Any:
    for part in name.split("."):
        there = getattr(there, part, None)
    return there


def in_python_3(module: str, name: str) -> tuple[str, str]:
    """Pickles of protocol 2, which torch writes, use the names of Python 2."""
    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[module, name]
    return IMPORT_MAPPING.get(module, module), name


def normalize_storage_type(storage_type: Any) -> Any:
    """The class of storages of that name.

    >>> import retrograd as torch
    >>> torch.serialization.normalize_storage_type(torch.FloatStorage)
    <class 'torch.FloatStorage'>
    """
    return known().get(f"torch.{storage_type.__name__}") or known()[f"torch.storage.{storage_type.__name__}"]


def storage_to_tensor_type(storage: Any) -> Any:
    """The older name of the tensors that lie in a typed storage.

    >>> import retrograd as torch
    >>> torch.serialization.storage_to_tensor_type(torch.ones(1).storage())
    <class 'torch.FloatTensor'>
    """
    return TENSOR_TYPES[storage.pickle_storage_type().replace("Storage", "Tensor")]
