"""What is known of storages on their way between processes."""

from __future__ import annotations

import weakref
from typing import Any


class StorageWeakRef:
    """A weak reference to a storage: two are equal if they are of the same memory.

    >>> import retrograd as torch
    >>> from retrograd.multiprocessing.reductions import StorageWeakRef
    >>> x = torch.ones(2)
    >>> StorageWeakRef(x.untyped_storage()) == StorageWeakRef(x[1:].untyped_storage())
    True
    """

    __slots__ = ("cdata", "reference")

    def __init__(self, storage: Any) -> None:
        self.cdata: int = storage._cdata
        # (The object itself is made when it is asked for; its memory stays.)
        self.reference = weakref.ref(getattr(storage, "_root", storage))

    def expired(self) -> bool:
        """Is the storage gone?"""
        return self.reference() is None

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata
