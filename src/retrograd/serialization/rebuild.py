"""What the pickles in files call to make tensors, under torch's names.  Found by `names.py`.

Arguments come from the file: each is looked at, so that a tensor stays within its memory.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from ..core import dtypes
from ..core import layout as layouts
from ..core.late import extension
from ..core.size import Size
from ..kernels import as_strided, contiguous_strides
from ..nn.parameter import Parameter
from ..ops import namespace as ops
from ..storage import TypedStorage, UntypedStorage
from ..tensor import Tensor, new, wrap
from ..tensor.lazy_conjugation import set_bits
from ..tensor.meta import MetaArray, MetaTensor, meta_tensor
from .load_error import LoadError


def _rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Tensor:
    """A tensor on the memory of a storage, within its bounds."""
    if not isinstance(storage, TypedStorage):
        raise LoadError(f"a tensor in the file lies in a {type(storage).__name__} instead of a storage")
    return _made(_view(storage.untyped(), storage.dtype, storage_offset, size, stride), storage)


def _made(array: np.ndarray, storage: Any) -> Tensor:
    if storage.device.type == "meta":
        return meta_tensor(MetaArray.strided(array.shape, array.dtype, array.strides))
    return wrap(array)


def _view(storage: UntypedStorage, dtype: dtypes.dtype, offset: Any, shape: Any, stride: Any) -> np.ndarray:
    if type(shape) not in (tuple, Size) or type(stride) not in (tuple, Size) or type(offset) is not int:
        raise LoadError("a tensor in the file is described in a way that makes no sense")
    if not all(type(n) is int and n >= 0 for n in (offset, *shape, *stride)) or len(shape) != len(stride):
        raise LoadError("the sizes and strides of a tensor in the file are none")
    memory = TypedStorage(wrap_storage=storage, dtype=dtype)._elements
    shape, stride = tuple(shape), tuple(stride)
    if 0 in shape:
        return np.ndarray(shape, memory.dtype, memory[:0])
    last = offset + sum((n - 1) * s for n, s in zip(shape, stride))
    if last >= memory.size:
        raise LoadError(f"a tensor in the file reaches to element {last} of a memory of {memory.size}")
    if stride == contiguous_strides(shape) and last + 1 == memory.size and offset == 0:
        return memory.reshape(shape)
    return as_strided(memory, shape, stride, offset)


def _rebuild_tensor_v2(
    storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any, backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor, with what it had besides its numbers: requires_grad, the bits that say how its memory is read."""
    _check_hooks(backward_hooks)
    return _finish(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, metadata)


def _rebuild_tensor_v3(
    storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any, backward_hooks: Any, dtype: Any,
    metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor of a dtype that has no typed storage of its own: the storage counts bytes."""
    _check_hooks(backward_hooks)
    if not isinstance(storage, (UntypedStorage, TypedStorage)) or not isinstance(dtype, dtypes.dtype):
        raise LoadError("a tensor in the file is described in a way that makes no sense")
    made = _made(_view(storage.untyped(), dtype, storage_offset, size, stride), storage)
    return _finish(made, requires_grad, metadata)


def _finish(tensor: Tensor, requires_grad: Any, metadata: Any) -> Tensor:
    if type(requires_grad) is not bool:
        raise LoadError("a tensor in the file requires grad neither true nor false")
    if metadata is not None:
        if type(metadata) is not dict or not all(
            name in ("conj", "neg") and type(value) is bool for name, value in metadata.items()
        ):
            raise LoadError("the memory of a tensor in the file is to be read in a way that is not known")
        if metadata.get("conj") and tensor._memory_.dtype.kind not in "cW":
            raise LoadError(f"a tensor in the file is conjugated and {tensor.dtype}")
        if any(metadata.values()):
            set_bits(tensor, (metadata.get("conj", False), metadata.get("neg", False)))
    if requires_grad:
        tensor.requires_grad_()
    return tensor


def _check_hooks(hooks: Any) -> None:
    if hooks is not None and not (type(hooks) in (OrderedDict, dict) and not hooks):
        raise LoadError("a tensor in the file has hooks, which no file can bring")


def _rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Parameter:
    """A Parameter on the memory of a tensor."""
    _check_hooks(backward_hooks)
    if not isinstance(data, Tensor) or type(requires_grad) is not bool:
        raise LoadError("a parameter in the file is described in a way that makes no sense")
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Parameter:
    """A Parameter with attributes of its own."""
    return _with_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Tensor:
    """A tensor of a subclass, or with attributes of its own."""
    if func not in TENSORS or type(args) is not tuple:
        raise LoadError("a tensor in the file is made by something that makes no tensors")
    if not (isinstance(new_type, type) and issubclass(new_type, Tensor)):
        what = new_type.__name__ if isinstance(new_type, type) else type(new_type).__name__
        raise LoadError(f"a tensor in the file is of a class that is none of tensors: {what}")
    made = func(*args)
    if type(made) is MetaTensor and new_type is not Tensor:
        made = Tensor._make_subclass(new_type, made, made.requires_grad)
    elif type(made) is not new_type and new_type is not Tensor:
        result = new(new_type)
        result._numbers_, result._vc_, result._grad_meta_, result._edge_ = made._numbers_, None, None, None
        if made.requires_grad:
            result.requires_grad_()
        made = result
    if made._special_ is not None and not made._needs_tensors_:
        return made  # what torch has in the state of a nested tensor is what it was made of
    if "__setstate__" in vars(new_type):
        made.__setstate__(state)  # type: ignore[attr-defined]
        return made
    return _with_state(made, state)


def _with_state(made: Any, state: Any) -> Any:
    """Attributes: a dictionary, or a pair of one and one of slots."""
    plain, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    for attributes in (plain, slots):
        if attributes is None:
            continue
        if type(attributes) is not dict or not all(type(name) is str for name in attributes):
            raise LoadError("the attributes of a tensor in the file have no names")
    if plain:
        made.__dict__.update(plain)
    for name, value in (slots or {}).items():
        if name in Tensor.__slots__:
            raise LoadError(f"the file sets {name!r} of a tensor")
        setattr(made, name, value)
    return made


def _nested() -> Any:
    """What nested tensors are made of."""
    from ..nested import _internal  # few files have them

    return _internal


def _rebuild_nested_tensor(buffer: Any, sizes: Any, strides: Any, storage_offsets: Any) -> Tensor:
    """A nested tensor of the strided layout on a buffer."""
    if not all(isinstance(t, Tensor) and t._special_ is None for t in (buffer, sizes, strides, storage_offsets)):
        raise LoadError("a nested tensor in the file is described in a way that makes no sense")
    requires_grad = buffer.requires_grad
    result = _nested().strided.nested_view_from_buffer(buffer.detach(), sizes, strides, storage_offsets)
    return result.requires_grad_(requires_grad)


def _rebuild_njt(constructor_kwargs: Any) -> Tensor:
    """A nested tensor of the jagged layout."""
    given = constructor_kwargs if type(constructor_kwargs) is dict else {}
    parts = [given.get(name) for name in ("values", "offsets", "lengths")]
    cache = given.get("_metadata_cache")
    if set(given) != {"values", "offsets", "lengths", "_ragged_idx", "_metadata_cache", "requires_grad"} or not (
        all(isinstance(t, Tensor) and t._special_ is None for t in parts if t is not None)
        and type(given["_ragged_idx"]) is int
        and type(given["requires_grad"]) is bool
        and (cache is None or type(cache) is dict)
    ):
        raise LoadError("a nested tensor in the file is described in a way that makes no sense")
    # Torch keeps a length as the first size of a tensor without elements.
    lengths = {k: v if type(v) is int else int(v.shape[0]) for k, v in (cache or {}).items()}
    held = {**given, "values": given["values"].detach(), "_metadata_cache": lengths}
    return _nested().nested_tensor.NestedTensor(**held)


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    """A sparse tensor of its parts."""
    parts = data[:-1] if type(data) is tuple and len(data) > 2 else ()
    if layout is layouts.sparse_coo and len(data) == 4 and type(data[3]) is bool:  # since torch 2.1
        parts, size, options = data[:2], data[2], {"is_coalesced": data[3]}
    else:
        size, options = data[-1] if parts else None, {}
    number = 2 if layout is layouts.sparse_coo else 3
    if len(parts) != number or not all(isinstance(t, Tensor) and t._special_ is None for t in parts) or not (
        isinstance(size, tuple) and all(type(n) is int and n >= 0 for n in size)
    ):
        raise LoadError("a sparse tensor in the file is described in a way that makes no sense")
    try:
        if layout is layouts.sparse_coo:
            return ops.sparse_coo_tensor(*parts, size, check_invariants=True, **options)
        starts, places, values = parts
        return ops.sparse_compressed_tensor(starts, places, values, size, layout=layout, check_invariants=True)
    except (RuntimeError, TypeError) as error:
        raise LoadError(f"a sparse tensor in the file is none: {error}") from None


_LAYOUTS = (
    layouts.strided, layouts.jagged, layouts.sparse_coo, layouts.sparse_csr, layouts.sparse_csc, layouts.sparse_bsr,
    layouts.sparse_bsc,
)  # fmt: skip


def _get_layout(name: Any) -> Any:
    """A layout, such as ``torch.strided``, by its name."""
    for known in _LAYOUTS:
        if name == repr(known):
            return known
    raise LoadError(f"the file has a layout that is not here: {str(name)[:50]!r}")


def _rebuild_wrapper_subclass(
    cls: Any, dtype: Any, size: Any, stride: Any, storage_offset: Any, layout: Any, device: Any, requires_grad: Any
) -> Any:
    """A tensor without memory of a class that says itself what operators do; what it holds is its state."""
    made_of_ints = all(type(n) is int for n in (*size, *stride, storage_offset))
    if not (isinstance(dtype, dtypes.dtype) and made_of_ints and type(requires_grad) is bool):
        raise LoadError("a tensor in the file is described in a way that makes no sense")
    if not (isinstance(cls, type) and issubclass(cls, Tensor) and cls._special_ is not None):
        raise LoadError("a tensor without memory in the file is of a class that has no __torch_dispatch__")
    rebuild = extension("dispatch_attributes").rebuild_wrapper
    return rebuild(cls, dtype, size, stride, storage_offset, layout, device, requires_grad)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor without values."""
    if not (isinstance(dtype, dtypes.dtype) and type(requires_grad) is bool and len(size) == len(stride)):
        raise LoadError("a tensor in the file is described in a way that makes no sense")
    if any(type(n) is not int or n < 0 for n in (*size, *stride)):
        raise LoadError("a tensor in the file is described in a way that makes no sense")
    np_dtype: Any = dtypes.as_numpy_dtype(dtype)
    steps = tuple([step * np_dtype.itemsize for step in stride])
    return meta_tensor(MetaArray.strided(tuple(size), np_dtype, steps)).requires_grad_(requires_grad)


#: The functions that make a tensor of arguments alone.
TENSORS = (
    _rebuild_meta_tensor_no_storage, _rebuild_tensor, _rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_parameter,
    _rebuild_parameter_with_state, _rebuild_nested_tensor, _rebuild_njt, _rebuild_sparse_tensor,
    _rebuild_wrapper_subclass,
)  # fmt: skip
