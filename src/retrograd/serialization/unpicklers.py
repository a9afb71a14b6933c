"""The unpickler of a file: one for files that are trusted, one for those that are not.  Made by `load`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .load_error import LoadError
from .names import find
from .safe_unpickler import SafeUnpickler


class Outside(Exception):
    """Carries an exception of the caller's code (a `map_location`) through an unpickler: the file is not to blame."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class Unpicklers:
    """Makes the unpicklers of one call of `load`."""

    def __init__(self, safe: bool, pickle_module: Any, arguments: dict[str, Any]) -> None:
        self.safe = safe
        self.module = pickle_module
        self.arguments = arguments

    def load(self, file: Any, size: int, persistent_load: Callable[[Any], Any]) -> Any:
        """The object whose pickle the file has next; `size` bounds what it may make."""
        if self.safe:
            unpickler: Any = SafeUnpickler(file, size, persistent_load, **self.arguments)
        else:
            unpickler = self._trusting(file, persistent_load)
        try:
            return unpickler.load()
        except LoadError:
            raise
        except Outside as passed:
            raise passed.error from None
        except Exception as error:
            if not self.safe:
                raise  # it is what was written: what it raises is the objects' own
            raise LoadError(
                "Weights only load failed: the file is damaged: what describes its objects makes no sense "
                f"({type(error).__name__}: {error})"
            ) from error

    def _trusting(self, file: Any, load_persistent: Callable[[Any], Any]) -> Any:
        class Unpickler(self.module.Unpickler):  # type: ignore[name-defined]
            def find_class(self, module: str, name: str) -> Any:
                found = find(module, name)
                return super().find_class(module, name) if found is None else found

            def persistent_load(self, pid: Any) -> Any:
                return load_persistent(pid)

        return Unpickler(file, **self.arguments)
