"""``import torch`` means retrograd: for programs that are to run as they are.

``python -m retrograd program.py`` runs a program so; ``retrograd.as_torch.install()`` does it from within. Modules are
not loaded twice: ``torch.nn`` is the module ``retrograd.nn``. ``torch.__version__`` is then that of the torch which
this package follows.
"""

from __future__ import annotations

import multiprocessing.spawn
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from . import version
from .torch_version import TorchVersion

__all__ = ["install", "installed", "uninstall"]

_PACKAGE = __name__.partition(".")[0]
_VERSION = version.__version__


class _Alias(MetaPathFinder, Loader):
    """Finds ``torch`` and what is in it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        name = _PACKAGE + fullname.removeprefix("torch")
        if name not in sys.modules and find_spec(name) is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(_PACKAGE + spec.name.removeprefix("torch"))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # It has run already. The import system has given it the spec of its other name: it goes by its own.
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state


_alias = _Alias()


class _Installing:
    """Goes to processes that are started afresh (``spawn``, ``forkserver``) with what else they are told before they
    import the program: when it arrives there, ``torch`` means retrograd there as well."""

    def __reduce__(self) -> tuple:
        return install, ()


_told = multiprocessing.spawn.get_preparation_data


def _tell(name: str) -> dict:
    return {**_told(name), _PACKAGE: _Installing()}


def _say_version(text: str) -> None:
    """Programs ask torch's version, and do without what came later."""
    vars(sys.modules[_PACKAGE])["__version__"] = vars(version)["__version__"] = text


def installed() -> bool:
    """Does ``import torch`` mean retrograd in this process?"""
    return _alias in sys.meta_path


def install() -> None:
    """Let ``import torch`` mean retrograd from now on, in this process. Refused where torch itself is in use."""
    found = sys.modules.get("torch")
    if found is not None and found is not sys.modules[_PACKAGE]:
        raise RuntimeError("torch itself is imported already: call retrograd.as_torch.install() before anything does")
    if not installed():
        sys.meta_path.insert(0, _alias)
        _say_version(TorchVersion(f"{version.follows}+{_PACKAGE}.{_VERSION}"))
        multiprocessing.spawn.get_preparation_data = _tell


def uninstall() -> None:
    """Let ``import torch`` mean torch again, for modules that are imported after this."""
    if installed():
        sys.meta_path.remove(_alias)
        _say_version(_VERSION)
        multiprocessing.spawn.get_preparation_data = _told
        for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
            del sys.modules[name]
