"""Kernels for another library of arrays, and the one place where they are chosen.

Note [Kernels for another library]
Kernels are written for NumPy, and what they compute is the same on any device.  So a device's kernels are these very
modules, run a second time in a world in which `numpy` is that device's library (`clone`): arrays that a kernel makes
lie on the device, ``ndarray`` is the class of its arrays, and so the short ways that begin with ``x.__class__ is
ndarray``
are taken there as well.  What the library does otherwise than NumPy is the business of the module that stands for
`numpy` (arrays/numpy_like.py), and no kernel knows of it.  Where a device has a kernel of its own, `overlay` puts it
in the place of ours, in the clone alone.

Which kernels run is decided by the classes of the arguments, in `_chooser`.  As long as no device is in use there is no
choice: nothing stands in front of a kernel, and calls on the CPU pay nothing.  `offer`, called when the first device
is used, puts choosers in the place of the kernels in everything that is not a kernel itself.
"""

from __future__ import annotations

import builtins
import sys
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any

from ..core.description import Description

_HOME = "retrograd.kernels"
#: Which kernels take arrays of a class: the clone's namespace, by class.
_BY_CLASS: dict[type[Any], Clone] = {}


class _Here(threading.local):
    #: Whose kernels run in this thread where no argument tells: a formula that makes an array of its own.
    clone: Clone | None = None


here: _Here = _Here()


class Clone:
    """The kernels, once more: `modules` by their names below ``kernels``, "" for the package itself."""

    def __init__(
        self,
        name: str,
        numpy: Any,
        stand_ins: Mapping[str, Any],
        overlay: Mapping[str, Mapping[str, Any]],
        mixes: Callable[[Any, tuple[Any, ...], dict[str, Any]], None],
    ) -> None:
        self.name: str = name
        self.numpy: Any = numpy
        self.stand_ins: Mapping[str, Any] = stand_ins
        self.overlay: Mapping[str, Mapping[str, Any]] = overlay
        #: Called before an operator that somebody outside asked for: raises where devices are mixed.
        self.mixes = mixes
        self.modules: dict[str, ModuleType] = {}
        #: Classes that stay one, and what they would be in this world.
        self._classes: dict[type[Any], type[Any]] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}
        self.package: ModuleType = self._run("")

    def _run(self, name: str) -> ModuleType:
        """The module that is ``kernels.name`` here, in this world."""
        made = self.modules.get(name)
        if made is not None:
            return made
        path = f"{_HOME}.{name}" if name else _HOME
        spec = find_spec(path)
        assert spec is not None and spec.loader is not None
        code = spec.loader.get_code(path)  # type: ignore[attr-defined]
        made = self.modules[name] = ModuleType(f"{path}@{self.name}")
        scope = vars(made)
        # `__name__` is that of the original: what is warned about and shown in errors is the same kernel.
        scope.update(__builtins__=self._builtins, __package__=_HOME, __file__=spec.origin, __name__=path)
        exec(code, scope)  # our own source, which has been imported already
        ours = vars(import_module(path))
        for key, value in list(scope.items()):
            # Classes stay one: an error, or what stands for the array of a sparse tensor, is the same on all devices.
            if isinstance(value, type) and issubclass(value, (BaseException, Description)) and key in ours:
                if value is not ours[key]:
                    self._classes[ours[key]] = value
                scope[key] = ours[key]
        for key, value in self.overlay.get(name, {}).items():
            # One that has a `make` stands around ours, and hands on to it what it does not take.
            scope[key] = value.make(scope[key]) if hasattr(value, "make") else value
        return made

    def methods(self, kind: type[Any]) -> dict[str, Any]:
        """What a class of descriptions computes, in this world."""
        made = self._classes[kind]
        return {
            name: value
            for cls in reversed(made.__mro__)
            if cls in self._classes.values()
            for name, value in vars(cls).items()
            if isinstance(value, FunctionType) and not name.startswith("__")
        }

    def _import(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        """What ``import`` does in a clone."""
        if level == 1:
            name, level = f"{_HOME}.{name}" if name else _HOME, 0
        elif level == 2:
            name, level = f"retrograd.{name}" if name else "retrograd", 0
        if name == _HOME or name.startswith(_HOME + "."):
            inner = name[len(_HOME) + 1 :]
            if not fromlist:
                raise ImportError(f"kernels are imported by name: from {name} import ...")
            if inner:
                return self._run(inner)
            for one in fromlist:  # from . import compiled
                if find_spec(f"{_HOME}.{one}") is not None:
                    setattr(self.modules[""], one, self._run(one))
            return self.modules[""]
        top = name.partition(".")[0]
        if top in self.stand_ins:
            found = self.stand_ins[top]
            if fromlist:
                for part in name.split(".")[1:]:
                    found = getattr(found, part)
            return found
        return __import__(name, globals, locals, fromlist, level)


def _clone_of(args: Any, kwargs: Any) -> Clone | None:
    for value in args:
        kind = value.__class__
        if kind in _BY_CLASS:
            return _BY_CLASS[kind]
        if kind is list or kind is tuple:
            for inner in value:
                if inner.__class__ in _BY_CLASS:
                    return _BY_CLASS[inner.__class__]
                if inner.__class__ is list or inner.__class__ is tuple:
                    found = _clone_of(inner, ())
                    if found is not None:
                        return found
    for name in kwargs:
        found = _clone_of((kwargs[name],), ())
        if found is not None:
            return found
    return None


#: What is no array, and holds none.
_NO_ARRAYS = {int, float, bool, str, type(None)}


def _has_arrays(args: Any) -> bool:
    return any(hasattr(value, "__array_ufunc__") or (isinstance(value, (list, tuple)) and _has_arrays(value))
               for value in args)  # fmt: skip


def _chooser(ours: Any, module: str, name: str, asked_for: bool) -> Any:
    """A function that is `ours` for arrays of the CPU, and for others that of their clone."""

    of_clones: dict[Any, Any] = {}

    def chosen(*args: Any, **kwargs: Any) -> Any:
        kind: Any = None
        for value in args:
            kind = value.__class__
            if kind in _BY_CLASS:
                clone = _BY_CLASS[kind]
                break
        else:
            found = _clone_of(args, kwargs)
            if found is None:
                found = here.clone
                if found is None or _has_arrays(args) or _has_arrays(kwargs.values()):
                    return ours(*args, **kwargs)
            clone = found
        if asked_for:
            for value in args:
                if value.__class__ is not kind and value.__class__ not in _NO_ARRAYS:
                    clone.mixes(name, args, kwargs)
                    break
            else:
                if kwargs:
                    clone.mixes(name, args, kwargs)
        kernel = of_clones.get(clone)
        if kernel is None:
            kernel = of_clones[clone] = getattr(clone.modules[module], name)
        return kernel(*args, **kwargs)

    vars(chosen).update(vars(ours))
    chosen.__name__ = chosen.__qualname__ = getattr(ours, "__name__", name)
    chosen.__doc__ = ours.__doc__
    chosen.__module__ = _HOME
    chosen.__wrapped__ = ours  # type: ignore[attr-defined]
    return chosen


#: What stands in front of each kernel, by the kernel's identity: for everything else, and for operators that users
#: call.
_choosers: dict[int, tuple[Any, Any]] = {}
#: The kernels themselves, by identity: the module, and the name there.
_kernels: dict[int, tuple[str, str]] = {}
_proxies: dict[str, ModuleType] = {}


def offer(array_class: type[Any], clone: Clone) -> None:
    """From now on arrays of `array_class` have the kernels of `clone`."""
    _BY_CLASS[array_class] = clone
    if not _proxies:
        _put_choosers(clone)


def withdraw(array_class: type[Any]) -> None:
    """There are no such arrays any more; with the last ones the choosers go."""
    _BY_CLASS.pop(array_class, None)
    if not _BY_CLASS and _proxies:
        _take_choosers()


def _put_choosers(clone: Clone) -> None:
    for short in clone.modules:
        path = f"{_HOME}.{short}" if short else _HOME
        original = import_module(path)
        scope: dict[str, Any] = {}
        for name, value in vars(original).items():
            if (
                type(value) is FunctionType
                and value.__module__ != "builtins"
                and short not in ("libraries", "compiled")
            ):
                if id(value) not in _choosers:
                    pair = _chooser(value, short, name, False), _chooser(value, short, name, True)
                    _choosers[id(value)] = pair
                    _kernels[id(value)] = short, name
                scope[name] = _choosers[id(value)][0]
            else:
                scope[name] = value
        if short:
            proxy = ModuleType(path)
            vars(proxy).update(scope)
            _proxies[path] = proxy
    package = sys.modules[_HOME]
    _proxies[_HOME] = ModuleType(_HOME)
    vars(_proxies[_HOME]).update(vars(package))
    for name, value in list(vars(package).items()):
        if id(value) in _choosers:
            setattr(package, name, _choosers[id(value)][0])
    for path, proxy in _proxies.items():
        if path != _HOME:
            _originals[path] = sys.modules[path]
            sys.modules[path] = proxy
            if getattr(package, path.rpartition(".")[2], None) is _originals[path]:  # and no kernel of that name
                setattr(package, path.rpartition(".")[2], proxy)
    _replace({id(_originals[path]): _proxies[path] for path in _originals}, _choosers)


_originals: dict[str, ModuleType] = {}


def _replace(modules: dict[int, Any], functions: dict[int, tuple[Any, Any]]) -> None:
    """Put what stands in front of kernels into all modules that have taken them by name."""
    for path, module in list(sys.modules.items()):
        if not path.startswith("retrograd.") or path.startswith(_HOME) or module is None:
            continue
        generated = path.startswith("retrograd._generated.")
        for name, value in list(vars(module).items()):
            found = functions.get(id(value)) or _before_a_guard(value)
            if found is not None:
                setattr(module, name, found[1] if generated and name.startswith("kernel_") else found[0])
            elif id(value) in modules:
                setattr(module, name, modules[id(value)])


class InFront:
    """What stands in front of a kernel, its ``__wrapped__``, and is no function: see capture/patching.py."""

    __slots__ = ()


def _before_a_guard(value: Any) -> tuple[Any, Any] | None:
    """The choosers of a kernel that something else stands in front of already: see ops/stored_dtypes.py."""
    bare = value
    while id(bare) not in _kernels and isinstance(bare, (FunctionType, InFront)) and hasattr(bare, "__wrapped__"):
        bare = bare.__wrapped__  # type: ignore[attr-defined]
    if bare is value or id(bare) not in _kernels:
        return None
    short, name = _kernels[id(bare)]
    pair = _chooser(value, short, name, False), _chooser(value, short, name, True)
    _choosers[id(value)] = pair
    return pair


def _take_choosers() -> None:
    package = sys.modules[_HOME]
    back: dict[int, tuple[Any, Any]] = {}
    for pair in _choosers.values():
        for chosen in pair:
            back[id(chosen)] = (chosen.__wrapped__, chosen.__wrapped__)
    for name, value in list(vars(package).items()):
        if id(value) in back:
            setattr(package, name, back[id(value)][0])
    modules = {}
    for path, original in _originals.items():
        modules[id(_proxies[path])] = original
        sys.modules[path] = original
        if getattr(package, path.rpartition(".")[2], None) is _proxies[path]:
            setattr(package, path.rpartition(".")[2], original)
    _kernels.clear()
    _replace(modules, back)
    for table in (_choosers, _proxies, _originals):
        table.clear()  # type: ignore[attr-defined]
