"""Dictionaries whose keys are told apart by who they are, and are not kept alive: ``torch.utils.weak``.

>>> import retrograd as torch
>>> from retrograd.utils.weak import WeakTensorKeyDictionary
>>> x, names = torch.ones(2), WeakTensorKeyDictionary()
>>> names[x] = "x"
>>> names[x], torch.ones(2) in names, len(names)
('x', False, 1)
>>> del x
>>> len(names)
0
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any

from ..tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):  # type: ignore[type-arg]
    """A weak reference that is equal to another one of the same object."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdRef):
            return NotImplemented
        one, two = self(), other()
        return one is two if one is not None and two is not None else self is other


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


_dict = dict


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary that forgets a key when it goes."""

    def __init__(self, dict: Any = None, ref_type: type[WeakIdRef] = WeakIdRef) -> None:
        self.data: dict[WeakIdRef, Any] = {}
        self.ref_type = ref_type
        forget = weakref.WeakMethod(self._forget)

        def remove(reference: Any) -> None:
            method = forget()
            if method is not None:
                method(reference)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def _forget(self, reference: Any) -> None:
        self.data.pop(reference, None)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def keyrefs(self) -> list[WeakIdRef]:
        """Weak references to all keys, of which some may be gone by the time they are called."""
        return list(self.data)

    def update(self, dict: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        """Take over all pairs of a mapping, or of an iterable; what raises before it has given all changes nothing."""
        pairs = [] if dict is None else list(dict.items()) if hasattr(dict, "items") else list(_dict(dict).items())
        for key, value in (*pairs, *kwargs.items()):
            self[key] = value

    def copy(self) -> WeakIdKeyDictionary:
        """Another one of the same pairs."""
        result = type(self)(ref_type=self.ref_type)
        result.update([(key, value) for key, value in self._alive()])
        return result

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        """Of copies of the values; keys are who they are."""
        result = type(self)(ref_type=self.ref_type)
        for key, value in self._alive():
            result[key] = deepcopy(value, memo)
        return result

    def _alive(self) -> list[tuple[Any, Any]]:
        """Keys and values, the keys alive as long as the list is."""
        found = [(reference(), value) for reference, value in list(self.data.items())]
        return [pair for pair in found if pair[0] is not None]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(key): value for key, value in self._alive()} == {id(key): value for key, value in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        result = type(self)(ref_type=self.ref_type)
        result.update(other)
        result.update(self)
        return result

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary
