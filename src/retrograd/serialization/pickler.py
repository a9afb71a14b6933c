"""Pickling an object whose tensors' memory is written elsewhere.  Called by `save`."""

from __future__ import annotations

import io
import pickle
import types
import warnings
from collections import OrderedDict
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..core import dtypes
from ..core.devices import device
from ..core.layout import layout
from ..core.where import users_level
from ..kernels import CompressedArray, SparseArray, storage_offset, storage_root, strides
from ..nn.parameter import Parameter
from ..storage import TYPES, TypedStorage, UntypedStorage
from ..tensor import Tensor, wrap
from ..tensor.beside import on_host
from ..tensor.conversion import state_of
from ..tensor.lazy_conjugation import LazyTensor, bits_of
from ..tensor.meta import MetaTensor
from ..utils.hooks import warn_if_has_hooks
from . import rebuild
from .locations import location_tag
from .names import spelling
from .options import data_is_skipped

# The pickler that is written in Python: only there can names be chosen.
_PythonPickler: Any = pickle._Pickler  # type: ignore[attr-defined]


class Piece(NamedTuple):
    """A storage that is to be written."""

    key: str
    octets: np.ndarray  # its memory, in bytes
    kind: Any  # the class that the pickle names for it: FloatStorage, ...
    root: Any  # keeps the memory alive, so that its address stays its own




def pickle_aside(obj: Any, pickle_module: Any, protocol: int, legacy: bool = False) -> tuple[bytes, list[Piece]]:
    """The pickle of an object, and the storages that it refers to."""
    buffer = io.BytesIO()
    pickler = _pickler_class(pickle_module)(buffer, protocol=protocol)
    pickler.pieces = {}
    pickler.legacy = legacy
    pickler.dump(obj)
    return buffer.getvalue(), list(pickler.pieces.values())


def _pickler_class(pickle_module: Any) -> Any:
    base = _PythonPickler if pickle_module in (None, pickle) else pickle_module.Pickler
    if not issubclass(base, _PythonPickler):
        raise TypeError(
            f"save() cannot write with {pickle_module.__name__}.Pickler, which lets nobody choose the names in a "
            "pickle: use the module pickle, or one like dill whose Pickler derives from Python's own"
        )
    return _aside(base)


@cache
def _aside(base: Any) -> Any:
    save_function = base.dispatch[types.FunctionType]

    class AsidePickler(base):
        """Pickles tensors as torch does, and remembers the memory that is to be written beside the pickle."""

        pieces: dict[Any, Piece]
        legacy: bool
        dispatch = base.dispatch.copy()

        def save(self, obj: Any, save_persistent_id: bool = True) -> None:
            # What Python's own does for plain values, without asking each of them whether it is a storage or tensor.
            plain = self.dispatch.get(type(obj))
            if plain is None:
                super().save(obj, save_persistent_id)
                return
            self.framer.commit_frame()
            known = self.memo.get(id(obj))
            if known is None:
                plain(self, obj)
            else:
                self.write(self.get(known[0]))

        def persistent_id(self, obj: Any) -> Any:
            if isinstance(obj, (TypedStorage, UntypedStorage)):
                return _reference(self, obj)
            return None

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, Tensor):
                return _reduce_tensor(obj)
            if isinstance(obj, dtypes.dtype):
                return obj.name
            if isinstance(obj, device):
                return device, ((obj.type,) if obj.index is None else (obj.type, obj.index))
            if isinstance(obj, layout):
                return rebuild._get_layout, (repr(obj),)
            return NotImplemented

        def save_global(self, obj: Any, name: str | None = None) -> None:
            spelled = spelling(obj, name)
            if spelled is None:
                super().save_global(obj, name)
            elif self.proto >= 4:
                self.save(spelled[0])
                self.save(spelled[1])
                self.write(pickle.STACK_GLOBAL)
                self.memoize(obj)
            else:
                self.write(pickle.GLOBAL + f"{spelled[0]}\n{spelled[1]}\n".encode())
                self.memoize(obj)

        def save_function(self, obj: Any) -> None:
            if spelling(obj) is None:
                save_function(self, obj)
            else:
                self.save_global(obj)

        dispatch[types.FunctionType] = save_function

    return AsidePickler


def _reference(pickler: Any, storage: Any) -> tuple:
    """What stands in the pickle for a storage."""
    untyped = storage.untyped()
    root = untyped._root
    kind: Any = TYPES[storage.pickle_storage_type()] if isinstance(storage, TypedStorage) else UntypedStorage
    # By address and length: other objects may show the same memory. Nothing has no address.
    where = (untyped.data_ptr(), root.nbytes) if root.nbytes else (id(root), kind)
    piece = pickler.pieces.get(where)
    if piece is None:
        octets = root.reshape(-1).view(np.uint8) if root.flags.c_contiguous else root.ravel("K").view(np.uint8)
        piece = pickler.pieces[where] = Piece(str(len(pickler.pieces)), on_host(octets), kind, root)
    elif piece.kind is not kind:
        raise RuntimeError(
            "Cannot save multiple tensors or storages that view the same data as different types: this one as "
            f"{kind.__name__}, an earlier one as {piece.kind.__name__}. Save a clone() of one of them"
        )
    reference = ("storage", kind, piece.key, location_tag(untyped), root.nbytes // storage.element_size())
    return (*reference, None) if pickler.legacy else reference


_OWN = (Tensor.__reduce_ex__, LazyTensor.__reduce_ex__)


def _reduce_tensor(tensor: Tensor) -> Any:
    cls = type(tensor)
    if data_is_skipped() and tensor._special_ is not None:
        if tensor.is_nested:
            raise RuntimeError(
                "Cannot serialize nested tensor under skip_data context manager: save its values and offsets, which "
                "are plain tensors"
            )
        if tensor.is_meta:
            warnings.warn(
                "Serializing tensors on the meta device under skip_data context manager is a no-op", UserWarning,
                stacklevel=users_level(),
            )  # fmt: skip
    if isinstance(tensor._memory_, (SparseArray, CompressedArray)):
        parts = [wrap(getattr(tensor._memory_, name)) for name in tensor._memory_.parts]
        coalesced = (tensor._memory_.coalesced,) if tensor.is_sparse else ()
        return rebuild._rebuild_sparse_tensor, (tensor.layout, (*parts, tensor.shape, *coalesced))
    if isinstance(tensor, MetaTensor):
        of_meta = tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), tensor.requires_grad
        own = getattr(cls, "_class_of_user_", None)
        if own is not None:
            if own.__reduce_ex__ not in (*_OWN, MetaTensor.__reduce_ex__) or own.__reduce__ is not object.__reduce__:
                return NotImplemented
            bare = rebuild._rebuild_meta_tensor_no_storage
            return rebuild._rebuild_from_type_v2, (bare, own, of_meta, state_of(tensor))
        if not tensor.__dict__.get("_is_param"):
            return rebuild._rebuild_meta_tensor_no_storage, of_meta
        return rebuild._rebuild_parameter, (tensor.data, tensor.requires_grad, OrderedDict())
    if tensor._special_ is not None and tensor._needs_tensors_ and tensor._memory_.array is None:  # type: ignore[attr-defined]
        memory = tensor._travelling_()  # type: ignore[attr-defined]
        described = tensor._described_()  # type: ignore[attr-defined]
        state = {**memory.attributes, **memory.own}
        return rebuild._rebuild_from_type_v2, (rebuild._rebuild_wrapper_subclass, cls, described, state)
    if cls.__reduce_ex__ not in _OWN or cls.__reduce__ is not object.__reduce__:
        return NotImplemented  # a subclass that says itself how it is pickled
    if tensor._backward_hooks:
        warn_if_has_hooks(tensor)
    state = state_of(tensor)
    if cls is Parameter:
        data: Any = wrap(tensor._memory_)
        if state:
            return rebuild._rebuild_parameter_with_state, (data, tensor.requires_grad, OrderedDict(), state)
        return rebuild._rebuild_parameter, (data, tensor.requires_grad, OrderedDict())
    array = tensor._memory_
    root = storage_root(array)
    if not (root.flags.c_contiguous or root.flags.f_contiguous):  # memory with gaps: a copy
        root = array = np.ascontiguousarray(array).reshape(array.shape)
    untyped, dtype = UntypedStorage._of(root), tensor.dtype
    # Dtypes that came later have no class of storages: the memory counts as bytes, and the dtype stands beside it.
    later = dtype.name in dtypes.STORED
    storage = untyped if later else TypedStorage(wrap_storage=untyped, dtype=dtype)
    layout = storage_offset(array) if array is not root else 0, tuple(array.shape), strides(array)
    arguments: tuple = (storage, *layout, tensor.requires_grad, OrderedDict(), *[dtype] * later)
    function = rebuild._rebuild_tensor_v3 if later else rebuild._rebuild_tensor_v2
    conj, neg = bits_of(tensor)
    if conj or neg:
        arguments += ({name: True for name, bit in (("conj", conj), ("neg", neg)) if bit},)
        cls = Tensor
    if cls is Tensor and not state:
        return function, arguments
    if not tensor.is_leaf:
        raise RuntimeError("a tensor of a subclass that is the result of an operation cannot be saved: detach() it")
    return rebuild._rebuild_from_type_v2, (function, cls, arguments, state)
