"""Tensor: a handle on an array, its version counter and, once something needs it, its AutogradMeta.

The operators (``mul``, ``sum``, ``view`` ...) are generated from the table and attached to the class by
``ops.install``; this file has what is not an operator: construction, the autograd attributes, conversion to Python
and NumPy, printing, copying.

Note [Version counters]
A counter belongs to one piece of memory and is shared by every tensor that aliases it (views, ``detach()``; not
``.data``).  Each in-place write adds one.  ``_vc`` is None while a tensor has never been written to and has no alias,
which is the case of nearly every tensor: `version_counter` makes the counter when somebody has to share or raise it.
"""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from . import devices, dtypes
from .autograd.meta import AutogradMeta, materialize_autograd_meta
from .autograd.state import local
from .size import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType

    from ._generated.tensor_operators import TensorOperators
    from .autograd.edge import EdgeTuple
    from .autograd.hooks import RemovableHandle
    from .autograd.node import Node
    from .autograd.where import Location

else:
    TensorOperators = object

new = object.__new__


class VersionCounter:
    """How often a piece of memory was written to, and where in the user's code the last time."""

    __slots__ = ("code", "instruction", "version")

    version: int
    #: Where the last write was: as `Location` has it, without the cost of making one.
    code: CodeType
    instruction: int

    @property
    def where(self) -> Location | None:
        """The line of the user's code that wrote last, if it is known."""
        from .autograd.where import Location

        code = getattr(self, "code", None)
        return None if code is None else Location(code, self.instruction)


class _InferenceCounter(VersionCounter):
    """Marks tensors made in inference mode, which have no version."""

    __slots__ = ()

    @property
    def version(self) -> int:  # type: ignore[override]
        raise RuntimeError("Inference tensors do not track version counter.")


#: The version counter of every inference tensor.
INFERENCE = _InferenceCounter()


def new_version_counter() -> VersionCounter:
    vc = VersionCounter()
    vc.version = 0
    return vc


def version_counter(tensor: Tensor) -> VersionCounter:
    """The tensor's version counter, to be shared or raised; made now if there was none."""
    vc = tensor._vc
    if vc is None:
        vc = tensor._vc = new_version_counter()
    return vc


class Tensor(TensorOperators):
    """A multi-dimensional array that can record what is done to it.

    >>> import retrograd as torch
    >>> x = torch.tensor([1., 2., 3.], requires_grad=True)
    >>> y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4., 6.])
    """

    __slots__ = ("__dict__", "__weakref__", "_data", "_edge", "_meta", "_vc")

    #: The values: a strided array of the device's library.
    _data: Any
    #: See Note [Version counters].
    _vc: VersionCounter | None
    _meta: AutogradMeta | None
    #: The gradient edge of a non-leaf: (grad_fn, output_nr).
    _edge: EdgeTuple | None

    # NumPy: let Tensor.__rmul__ and friends answer for ``ndarray * tensor``.
    __array_priority__ = 1000

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """The legacy constructor ``Tensor(2, 3)`` or ``Tensor([[1., 2.]])``; `tensor()` is the better one."""
        from .factories import legacy_tensor

        return legacy_tensor(cls, *args, **kwargs)

    # -------------------------------------------------------------------------------------------------- what it is

    @property
    def shape(self) -> Size:
        """The sizes of all dimensions."""
        return Size(self._data.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        return dtypes.from_numpy_dtype(self._data.dtype)

    @property
    def device(self) -> devices.device:
        return devices.device_of_array_class(self._data.__class__)

    @property
    def ndim(self) -> int:
        return self._data.ndim

    @property
    def itemsize(self) -> int:
        return self._data.itemsize

    @property
    def nbytes(self) -> int:
        return self._data.nbytes

    @property
    def layout(self) -> Any:
        from .factories import strided

        return strided

    is_cuda = property(lambda self: self.device.type == "cuda")
    is_cpu = property(lambda self: self.device.type == "cpu")
    is_sparse = False
    is_quantized = False
    is_nested = False
    is_mkldnn = False
    is_meta = False

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or that of one dimension."""
        from .kernels.dims import normalize_dim

        shape = self._data.shape
        return Size(shape) if dim is None else shape[normalize_dim(dim, len(shape))]

    def dim(self) -> int:
        return self._data.ndim

    ndimension = dim

    def numel(self) -> int:
        return self._data.size

    nelement = numel

    def element_size(self) -> int:
        return self._data.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Steps between neighbours, in elements."""
        from .kernels import strides
        from .kernels.dims import normalize_dim

        steps = strides(self._data)
        return steps if dim is None else steps[normalize_dim(dim, len(steps))]

    def storage_offset(self) -> int:
        """Elements between the start of the memory and the first element."""
        from .kernels import storage_offset

        return storage_offset(self._data)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._data.ctypes.data if self._data.__class__ is np.ndarray else self._data.data.ptr

    def is_contiguous(self, memory_format: Any = None) -> bool:
        if memory_format is None:
            return self._data.flags.c_contiguous
        from .kernels import is_contiguous

        return is_contiguous(self._data, memory_format)

    def is_floating_point(self) -> bool:
        return self._data.dtype.kind == "f"

    def is_complex(self) -> bool:
        return self._data.dtype.kind == "c"

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    def is_inference(self) -> bool:
        return self._vc is INFERENCE

    def is_same_size(self, other: Tensor) -> bool:
        return self._data.shape == other._data.shape

    def is_set_to(self, other: Tensor) -> bool:
        """Do both show the same memory in the same way?"""
        a, b = self._data, other._data
        return a.shape == b.shape and a.strides == b.strides and self.data_ptr() == other.data_ptr()

    def get_device(self) -> int:
        index = self.device.index
        return -1 if index is None else index

    def type_name(self) -> str:
        """``'FloatTensor'`` and the like: the name of the dtype in torch's older vocabulary."""
        return _TYPE_NAMES[self.dtype.name]

    # --------------------------------------------------------------------------------------------------- autograd

    @property
    def requires_grad(self) -> bool:
        """Are gradients computed for this tensor? True for results of operations on such tensors."""
        if self._edge is not None:
            return True
        meta: Any = self._meta
        if meta is None:
            return False
        if meta.is_view and (meta.edge is not None or meta.base.requires_grad):
            return True
        return meta.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"requires_grad must be a bool, but got {type(value).__name__}")
        if self._has_edge():
            hint = (
                ""
                if value
                else " If you want to use a computed variable in a subgraph that doesn't require "
                "differentiation use var_no_grad = var.detach()."
            )
            raise RuntimeError(f"you can only change requires_grad flags of leaf variables.{hint}")
        if value and self._data.dtype.kind not in "fc":
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients; this one has dtype "
                f"{self.dtype}. Convert it first: x = x.float().requires_grad_()"
            )
        if value and self._vc is INFERENCE and not local.state.inference:
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. Clone it first: "
                "x = x.clone().requires_grad_()"
            )
        if value or self._meta is not None:
            materialize_autograd_meta(self).requires_grad = value

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad cannot be deleted: set it to False")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set ``requires_grad`` in place and return the tensor."""
        if not isinstance(requires_grad, bool):
            raise TypeError(
                f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, "
                f"not {type(requires_grad).__name__}"
            )
        if requires_grad and self._has_edge():
            return self  # a result that requires grad already
        if requires_grad and self._data.dtype.kind not in "fc":
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients (or of complex dtype); this one has dtype "
                f"{self.dtype}. Convert it first: x = x.float().requires_grad_()"
            )
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Made by the user, or by operations that nothing was recorded of."""
        return self.grad_fn is None

    def _has_edge(self) -> bool:
        """Is a gradient edge recorded? Unlike `grad_fn`, this does not ask whether a view's memory was written to."""
        meta: Any = self._meta
        return self._edge is not None or (meta is not None and meta.is_view and meta.edge is not None)

    @property
    def grad_fn(self) -> Node | None:
        """The node that the gradient of this tensor goes into; None for a leaf."""
        edge = self._history()
        return None if edge is None else edge[0]

    def _history(self) -> EdgeTuple | None:
        """The gradient edge of a non-leaf, be it a view or not."""
        edge = self._edge
        if edge is None and self._meta is not None and self._meta.is_view:
            from .autograd.view_meta import view_edge

            edge = view_edge(self)
        return edge

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this is."""
        edge = self._history()
        return 0 if edge is None else edge[1]

    @property
    def _base(self) -> Tensor | None:
        """The tensor whose memory this view shows; None if this is not a view."""
        meta: Any = self._meta
        return meta.base if meta is not None and meta.is_view else None

    def _view_func(self, new_base: Tensor) -> Tensor:
        """The same view of another tensor that is laid out like the base."""
        from .autograd.view_meta import replay_on_tensor

        meta: Any = self._meta
        if meta is None or not meta.is_view:
            raise RuntimeError("this tensor is not a view: it has no view function")
        if new_base._data.shape != meta.base._data.shape or new_base._data.dtype != meta.base._data.dtype:
            raise RuntimeError("the view function takes a tensor of the base's shape and dtype")
        return replay_on_tensor(meta.replay, new_base)

    _view_func_unsafe = _view_func

    def _is_view(self) -> bool:
        return self._meta is not None and self._meta.is_view

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, or None."""
        meta = self._meta
        grad = None if meta is None else meta.grad
        if grad is None and not self.retains_grad and self._has_edge():
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated "
                "for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor "
                "by mistake, make sure you access the leaf Tensor instead.",
                UserWarning,
                stacklevel=2,
            )
        return grad

    @grad.setter
    def grad(self, grad: Tensor | None) -> None:
        if grad is None:
            if self._meta is not None:
                self._meta.grad = None
            return
        if not isinstance(grad, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
        if grad is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if grad._data.shape != self._data.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(grad.shape)}' to a tensor of size "
                f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )
        expected = self.grad_dtype if self.is_leaf else self.dtype
        if expected is not None and grad.dtype is not expected:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{_C_NAMES[grad.dtype.name]}' to a tensor with grad_dtype "
                f"'{_SCALAR_NAMES[expected.name]}'. The gradient must match the tensor's grad_dtype (by default the "
                f"tensor's dtype): use grad.to({expected}), or set grad_dtype (None allows any dtype)"
            )
        if grad.device != self.device:
            raise RuntimeError(
                f"attempting to assign a gradient located on device with type '{grad.device}' to a tensor located on "
                f"device with type '{self.device}'. Please ensure that the gradient and the tensor are on the same "
                "device"
            )
        materialize_autograd_meta(self).grad = grad

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def grad_dtype(self) -> dtypes.dtype | None:
        """The dtype that the gradient of this leaf has; None for whatever arrives."""
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be accessed on leaf tensors")
        given = "same" if self._meta is None else self._meta.grad_dtype
        if isinstance(given, str):
            return self.dtype
        return None if given is None else dtypes.from_numpy_dtype(given)

    @grad_dtype.setter
    def grad_dtype(self, value: dtypes.dtype | None) -> None:
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be set on leaf tensors")
        if value is not None and not isinstance(value, dtypes.dtype):
            raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
        meta = materialize_autograd_meta(self)
        if value is not None and meta.grad is not None and meta.grad.dtype is not value:
            raise RuntimeError(
                f"Cannot set grad_dtype to '{value}' because there is already a gradient with dtype "
                f"'{meta.grad.dtype}'. Set x.grad = None first"
            )
        meta.grad_dtype = None if value is None else value.np
        accumulator = None if meta.grad_accumulator is None else meta.grad_accumulator()
        if accumulator is not None:
            accumulator.dtype = meta.grad_dtype

    @property
    def retains_grad(self) -> bool:
        """Will backward store the gradient of this non-leaf in ``.grad``?"""
        return self._meta is not None and self._meta.retains_grad

    def retain_grad(self) -> None:
        """Have backward store the gradient of this tensor in ``.grad`` although it is not a leaf."""
        import weakref

        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if not self._has_edge() or self.retains_grad:
            return
        meta = materialize_autograd_meta(self)
        node: Any = self.grad_fn
        node.materialize_extras().retains_grad[self.output_nr] = weakref.ref(self)
        meta.retains_grad = True

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Tensor] | None = None,
    ) -> None:
        """Compute the gradient of this tensor with respect to the leaves of its graph, into their ``.grad``.

        >>> import retrograd as torch
        >>> x = torch.tensor(3., requires_grad=True)
        >>> (x ** 2).backward()
        >>> x.grad
        tensor(6.)
        """
        _run_backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(grad)`` whenever a gradient of this tensor is computed; what it returns replaces it."""
        from .autograd.hooks import register_tensor_hook

        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return register_tensor_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(tensor)`` whenever backward has added to the ``.grad`` of this leaf.

        >>> import retrograd as torch
        >>> x = torch.tensor([1., 2.], requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda t: print("gradient:", t.grad))
        >>> (x * 3).sum().backward()
        gradient: tensor([3., 3.])
        """
        from .autograd.hooks import register_post_accumulate_grad_hook

        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors: use register_hook() to see the "
                "gradient of a result"
            )
        return register_post_accumulate_grad_hook(self, hook)

    def detach(self) -> Tensor:
        """The same values (and version counter) without history."""
        state = local.state
        if state.interceptor is not None:
            return state.interceptor(Tensor.detach, (self,), {})
        result = new(Tensor)
        result._data = self._data
        result._vc = self._vc or version_counter(self)
        result._meta = result._edge = None
        return result

    def detach_(self) -> Tensor:
        """Cut this tensor off its history, in place."""
        if self._is_view():
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead: x = x.detach(). A view shares its history with "
                "its base, which detach_() would leave behind."
            )
        meta = materialize_autograd_meta(self)
        if self._edge is not None:
            meta.detached = True
            version_counter(self)  # so that nodes that have saved this tensor look twice
        self._edge = None
        meta.requires_grad = False
        meta.retains_grad = False
        meta.fw_grad = None
        return self

    @property
    def data(self) -> Tensor:
        """The values with neither history nor version counter: writes to it go unnoticed. Prefer `detach()`."""
        return wrap(self._data, INFERENCE if self._vc is INFERENCE else None)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self.requires_grad and value._data.dtype.kind not in "fc":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        meta = self._meta
        accumulator = None if meta is None or meta.grad_accumulator is None else meta.grad_accumulator()
        self._data = value._data
        if accumulator is not None:
            data = self._data
            accumulator.shape, accumulator.dtype, accumulator.array_class = data.shape, data.dtype, data.__class__

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor.data is not allowed. Delete tensor instead!")

    @property
    def _grad_fn(self) -> Node | None:
        return self.grad_fn

    @_grad_fn.setter
    def _grad_fn(self, value: None) -> None:
        if value is not None:
            raise TypeError("_grad_fn can be only set to None")
        self.detach_()

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("_grad_fn cannot be deleted: use detach_()")

    @property
    def _backward_hooks(self) -> Any:
        return None if self._meta is None else self._meta.hooks

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: Any) -> None:
        materialize_autograd_meta(self).hooks = hooks

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("_backward_hooks cannot be deleted: remove the hooks by their handles")

    @property
    def _version(self) -> int:
        vc = self._vc
        return 0 if vc is None else vc.version

    def _bump_version(self) -> None:
        from .autograd.inplace import bump_version

        bump_version(self)

    @property
    def name(self) -> str | None:
        return None if self._meta is None else self._meta.name

    # ----------------------------------------------------------------------------------------------------- to Python

    def item(self) -> Any:
        """The value of a one-element tensor as a Python number."""
        data = self._data
        if data.size != 1:
            raise RuntimeError(f"a Tensor with {data.size} elements cannot be converted to Scalar")
        return data.item()

    def tolist(self) -> Any:
        """The values as nested lists."""
        return self._data.tolist()

    def __bool__(self) -> bool:
        data = self._data
        if data.size != 1:
            if data.size == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(data.item())

    def _scalar(self) -> Any:
        if self._data.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self._data.item()

    def __int__(self) -> int:
        value = self._scalar()
        if isinstance(value, complex):
            if value.imag != 0:
                raise RuntimeError("value cannot be converted to type int64_t without overflow")
            value = value.real
        return int(value)

    def __float__(self) -> float:
        value = self._scalar()
        if isinstance(value, complex):
            if value.imag != 0:
                raise RuntimeError("value cannot be converted to type double without overflow")
            value = value.real
        return float(value)

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        data = self._data
        if data.size != 1 or data.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(data.item())

    def __len__(self) -> int:
        if self._data.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self._data.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if self._data.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))  # type: ignore[attr-defined]

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (Tensor, int, float, complex, bool, np.generic)):
            return bool((element == self).any().item())  # type: ignore[union-attr]
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        from .printing import tensor_str

        return tensor_str(self, tensor_contents)

    def __format__(self, spec: str) -> str:
        from .printing import format_number

        return format_number(self, spec)

    # ------------------------------------------------------------------------------------------------------ to NumPy

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The values as a NumPy array that shares memory (with `force`: a copy if need be)."""
        if force:
            return self.detach().cpu()._data  # type: ignore[attr-defined]
        if local.state.grad_enabled and self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self._data.__class__ is not np.ndarray and self.device.type != "cpu":
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        return self._data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    # ------------------------------------------------------------------------------------------------------- copying

    def __deepcopy__(self, memo: dict) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                f"moment. This one is the result of {self.grad_fn.name()}: use "  # type: ignore[union-attr]
                "x.detach().clone() for its values, or x.clone() to stay in the graph."
            )
        if id(self) in memo:
            return memo[id(self)]
        result = new(type(self))
        memo[id(self)] = result
        result._data = _deepcopy_array(self._data, memo)
        result._vc = None
        result._meta = result._edge = None
        meta = self._meta
        if meta is not None:
            result.requires_grad_(meta.requires_grad)
            if meta.grad is not None:
                result.grad = copy.deepcopy(meta.grad, memo)
        if self.__dict__:
            result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return result

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _rebuild, (type(self), self._data, self.requires_grad, self.__dict__)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.__dict__} - {"_data", "_edge", "_meta", "_vc"})


#: What messages call a dtype, as torch's do: by its C type, and by its scalar type.
_C_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int",
    "int64": "long int", "float16": "c10::Half", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip
_SCALAR_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "float16": "Half", "float32": "Float", "float64": "Double", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip

_TYPE_NAMES = {
    "bool": "BoolTensor",
    "uint8": "ByteTensor",
    "int8": "CharTensor",
    "int16": "ShortTensor",
    "int32": "IntTensor",
    "int64": "LongTensor",
    "float16": "HalfTensor",
    "float32": "FloatTensor",
    "float64": "DoubleTensor",
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
}


def type_name(tensor: Tensor) -> str:
    """``'torch.FloatTensor'``: dtype and device in one word, for messages."""
    return f"torch.{'' if tensor.device.type == 'cpu' else tensor.device.type + '.'}{tensor.type_name()}"


def wrap(array: Any, vc: VersionCounter | None = None) -> Tensor:
    """A Tensor on `array`, without history."""
    result = new(Tensor)
    result._data = array
    result._vc = vc
    result._meta = result._edge = None
    return result


def unwrap(tensor: Tensor) -> Any:
    """The array of a Tensor."""
    return tensor._data


def _deepcopy_array(array: Any, memo: dict) -> Any:
    """A copy of an array; views of one piece of memory are views of one copy of it."""
    from .kernels import storage_root

    root = storage_root(array)
    if root is array or not (root.flags.c_contiguous and root.__class__ is array.__class__ is np.ndarray):
        return copy.deepcopy(array, memo)
    if id(root) not in memo:
        memo[id(root)] = root.copy()
        memo.setdefault(id(memo), []).append(root)  # alive as long as its id is in use
    offset = array.ctypes.data - root.ctypes.data
    return np.ndarray(array.shape, array.dtype, memo[id(root)], offset, array.strides)


def _rebuild(cls: type, array: Any, requires_grad: bool, attributes: dict) -> Tensor:
    result: Tensor = new(cls)
    result._data = array
    result._vc = None
    result._meta = result._edge = None
    if requires_grad:
        result.requires_grad_()
    result.__dict__.update(attributes)
    return result


def _run_backward(*args: Any, **kwargs: Any) -> None:
    """`autograd.backward`, put here at its first use: the module imports this one."""
    global _run_backward
    from .autograd.run_backward import backward

    _run_backward = backward
    backward(*args, **kwargs)
