"""Tensor: a handle on an array, its version counter and, once something needs it, its AutogradMeta.

The operators (``mul``, ``sum``, ``view`` ...) are generated from the table and attached to the class by
``ops``.  This file has construction, what a tensor is (sizes, dtype, device, memory), and the other handles on
the same memory (``detach()``, ``.data``); the autograd attributes are in autograd_attributes.py, and conversion to
Python and NumPy, printing and copying in conversion.py.
"""

from __future__ import annotations

from sys import _getframe
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..core import devices, dtypes
from ..core.cuts import remember_cut
from ..core.late import extension
from ..core.layout import strided
from ..core.meta import AutogradMeta, materialize_autograd_meta
from ..core.size import Size
from ..core.state import local
from ..core.version_counter import INFERENCE, VersionCounter, version_counter
from ..core.where import theirs
from ..kernels import is_contiguous, storage_offset, strides
from ..kernels.dims import normalize_dim
from .conversion import TensorConversion
from .overriding import NEVER, default_torch_function, disabled_torch_function

if TYPE_CHECKING:
    from ..autograd.edge import EdgeTuple

new = object.__new__


class Tensor(TensorConversion):
    """A multi-dimensional array that can record what is done to it.

    >>> import retrograd as torch
    >>> x = torch.tensor([1., 2., 3.], requires_grad=True)
    >>> y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4., 6.])
    """

    __slots__ = ("__dict__", "__weakref__", "_numbers_", "_edge_", "_grad_meta_", "_vc_")

    #: The values: a strided array of the device's library.
    _numbers_: Any
    #: The same slot by another name, for those who read how the values lie: see Note [Lazy conjugation].
    _memory_: Any
    #: And by a third, for those who take views of it: see Note [Special tensors].
    _viewed_: Any
    #: What kind of special tensor it is, if it is one: see the same note.
    _special_: int | None = None
    #: See Note [Version counters] (core/version_counter.py).
    _vc_: VersionCounter | None
    _grad_meta_: AutogradMeta | None
    #: The gradient edge of a non-leaf: (grad_fn, output_nr).
    _edge_: EdgeTuple | None

    # NumPy: let Tensor.__rmul__ and friends answer for ``ndarray * tensor``.
    __array_priority__ = 1000

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """The legacy constructor ``Tensor(2, 3)`` or ``Tensor([[1., 2.]])``; `tensor()` is the better one."""
        from ..ops.factories import legacy_tensor  # factories make Tensors

        return legacy_tensor(cls, *args, **kwargs)  # type: ignore[return-value]

    # ------------------------------------------------------------------------------------------------ classes of users

    def __init_subclass__(cls, **options: Any) -> None:
        """A class of tensors that a program defines: see Note [Overriding functions] and Note [Python dispatch]."""
        super().__init_subclass__(**options)
        overrides = cls.__torch_function__ is not disabled_torch_function
        if overrides or (cls._special_ is None and cls.__torch_dispatch__ is not Tensor.__torch_dispatch__):
            extension("subclasses").prepare(cls)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What `func` means where an argument is of this class: as for any tensor, with results of this class."""
        return default_torch_function(Tensor, cls, func, types, args, kwargs)

    @staticmethod
    def __torch_dispatch__(
        func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What an operator, below autograd, means where an argument is of this class: what it does to its memory."""
        del types  # whatever they are
        return extension("dispatch").without_dispatch(func, args, kwargs)

    @staticmethod
    def _make_subclass(cls: Any, data: Tensor, require_grad: bool = False, **options: Any) -> Any:
        """The memory of `data`, without its history, as an object of a class of tensors."""
        return extension("subclasses").make_subclass(cls, data, require_grad, **options)

    @staticmethod
    def _make_wrapper_subclass(cls: Any, size: Any, *args: Any, **options: Any) -> Any:
        """An object of a class with ``__torch_dispatch__`` that has sizes, a dtype and so on, but no memory."""
        return extension("subclasses").make_wrapper_subclass(cls, size, *args, **options)

    # -------------------------------------------------------------------------------------------------- what it is

    @property
    def shape(self) -> Size:
        """The sizes of all dimensions."""
        return Size(self._memory_.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """What its numbers are, such as ``torch.float32``."""
        return dtypes.from_numpy_dtype(self._memory_.dtype)

    @property
    def device(self) -> devices.device:
        """Where its numbers are."""
        return devices.device_of_array_class(self._memory_.__class__)

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return self._memory_.ndim

    @property
    def itemsize(self) -> int:
        """How many bytes an element takes."""
        return self._memory_.itemsize

    @property
    def nbytes(self) -> int:
        """How many bytes its elements take."""
        return self._memory_.nbytes

    @property
    def layout(self) -> Any:
        """How its elements are kept: ``torch.strided``, or one of the sparse layouts."""
        return strided

    is_cuda: property = property(lambda self: self.device.type == "cuda", doc="Is it on a CUDA device?")
    is_cpu: property = property(lambda self: self.device.type == "cpu", doc="Is it on the CPU?")
    is_sparse = False
    is_sparse_csr = False
    is_quantized = False
    is_nested = False
    is_mkldnn = False
    is_meta = False
    # Devices and libraries of torch's for which this package has no arrays.
    is_mps = is_xpu = is_xla = is_mtia = is_ipu = is_maia = is_vulkan = False

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or that of one dimension."""
        shape = self._memory_.shape
        if dim is True or dim is False:
            raise TypeError("size(): argument 'dim' (position 1) must be int, not bool")
        return Size(shape) if dim is None else shape[normalize_dim(dim, len(shape))]

    def dim(self) -> int:
        """How many dimensions it has."""
        return self._memory_.ndim

    def ndimension(self) -> int:
        """How many dimensions it has: the same as ``dim()``."""
        return self._memory_.ndim

    def numel(self) -> int:
        """How many elements it has."""
        return self._memory_.size

    def nelement(self) -> int:
        """How many elements it has: the same as ``numel()``."""
        return self._memory_.size

    def element_size(self) -> int:
        """How many bytes an element takes."""
        return self._memory_.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Steps between neighbours, in elements."""
        steps = strides(self._memory_)
        return steps if dim is None else steps[normalize_dim(dim, len(steps))]

    def storage_offset(self) -> int:
        """Elements between the start of the memory and the first element."""
        return storage_offset(self._memory_)

    def data_ptr(self) -> int:
        """The address of the first element; 0 where there is none."""
        memory = self._memory_
        if memory.__class__ is np.ndarray:
            return memory.ctypes.data if memory.size else 0
        return memory.data.ptr

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Do its elements lie in memory in the order of its dimensions, or in that of `memory_format`?"""
        if memory_format is None:
            return self._memory_.flags.c_contiguous
        return is_contiguous(self._memory_, memory_format)

    def is_floating_point(self) -> bool:
        """Are its numbers real and floating?"""
        return self._memory_.dtype.kind in "fV"

    def is_complex(self) -> bool:
        """Are its numbers complex?"""
        return self._memory_.dtype.kind in "cW"

    def is_signed(self) -> bool:
        """Can its numbers be negative?"""
        return self.dtype.is_signed

    def is_inference(self) -> bool:
        """Was it made under ``inference_mode()``?"""
        return self._vc_ is INFERENCE

    def is_conj(self) -> bool:
        """Is the memory to be read as its conjugate?"""
        return False

    def is_neg(self) -> bool:
        """Is the memory to be read with the other sign?"""
        return False

    def is_set_to(self, tensor: Tensor) -> bool:
        """Do both show the same memory in the same way? No lazy tensor does, be it the same one."""
        if self.is_conj() or self.is_neg() or tensor.is_conj() or tensor.is_neg():
            return False
        a, b = self._memory_, tensor._memory_
        if not self.untyped_storage().nbytes():  # type: ignore[attr-defined]
            return self is tensor  # of no memory nothing is shown
        return a.shape == b.shape and a.strides == b.strides and self.data_ptr() == tensor.data_ptr()

    def get_device(self) -> int:
        """The number of its device; -1 for the CPU."""
        index = self.device.index
        return -1 if index is None else index

    def _type_name_(self) -> str:
        """``'FloatTensor'`` and the like: the name of the dtype in torch's older vocabulary."""
        return dtypes.SCALAR_NAMES[self.dtype.name] + "Tensor"

    # --------------------------------------------------------------------------------------------- the same memory anew

    def detach(self) -> Tensor:
        """The same values (and version counter) without history."""
        state = local.state
        if state.interceptor is not None:
            return state.interceptor(Tensor.detach, (self,), {})
        result = new(Tensor)
        result._memory_ = self._memory_
        result._vc_ = self._vc_ or version_counter(self)
        result._grad_meta_ = result._edge_ = None
        if self.__class__ is not Tensor:
            _keep_bits(self, result)
        if self._edge_ is not None or (self._grad_meta_ is not None and self.requires_grad):
            frame = _getframe(1)
            code = frame.f_code
            if code.co_filename in theirs:  # remember_cut without the call
                state.cuts.append(("detach()", result._vc_, code, frame.f_lasti))
            else:
                remember_cut(state, "detach()", result._vc_)
        return result

    def detach_(self) -> Tensor:
        """Cut this tensor off its history, in place."""
        if self._is_view():
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead: x = x.detach(). A view shares its history with "
                "its base, which detach_() would leave behind."
            )
        if self.requires_grad:
            remember_cut(local.state, "detach_()", self._vc_ or version_counter(self))
        meta = materialize_autograd_meta(self)
        if self._edge_ is not None:
            meta.detached = True
            version_counter(self)  # so that nodes that have saved this tensor look twice
        self._edge_ = None
        meta.requires_grad = False
        meta.retains_grad = False
        meta.fw_grad = None
        return self

    @property
    def data(self) -> Tensor:
        """The values with neither history nor version counter: writes to it go unnoticed. Prefer `detach()`."""
        result = wrap(self._memory_, INFERENCE if self._vc_ is INFERENCE else None)
        if self.__class__ is not Tensor:
            _keep_bits(self, result)
        if self._edge_ is not None or (self._grad_meta_ is not None and self.requires_grad):
            remember_cut(local.state, ".data", None)
        return result

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        guard = local.state.mutation_guard
        if guard is not None:
            guard.before_data(self)
        if self.requires_grad and value._memory_.dtype.kind not in "fcVW":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        old, new = self._memory_, value._memory_
        if value._special_ != self._special_:
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor "
                f"type: their layouts are {self.layout} and {value.layout}"
            )
        self._memory_ = new
        if self.__class__ is not Tensor or value.__class__ is not Tensor:
            _keep_bits(value, self)
        same = (old.shape, old.dtype, old.__class__) == (new.shape, new.dtype, new.__class__)
        if self._grad_meta_ is not None and not same:
            from ..autograd.accumulate_grad import outdate_accumulator  # autograd is made of Tensors

            outdate_accumulator(self)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor.data is not allowed. Delete tensor instead!")

    def _fix_weakref(self) -> None:
        """Nothing: a weak reference to a tensor is Python's own."""

    def module_load(self, other: Tensor, assign: bool = False) -> Tensor:
        """What `Module.load_state_dict` swaps into this tensor, if it is to swap; subclasses may do it otherwise."""
        return other.detach() if assign else self.copy_(other).detach()  # type: ignore[attr-defined]

    def __dir__(self) -> list[str]:
        ours = {"_edge_", "_grad_meta_", "_memory_", "_numbers_", "_vc_", "_viewed_"}
        return sorted({*dir(type(self)), *self.__dict__} - ours)


Tensor._memory_ = Tensor._viewed_ = Tensor.__dict__["_numbers_"]
NEVER.add(Tensor)


#: By dtype: the older names that are classes too.  The dtypes that came later have none.
TYPE_NAMES: dict[str, str] = {name: word + "Tensor" for name, word in list(dtypes.SCALAR_NAMES.items())[:12]}


def type_name(tensor: Tensor) -> str:
    """``'torch.FloatTensor'``: dtype and device in one word, for messages."""
    layout = "sparse." if tensor.is_sparse else ""
    return f"torch.{layout}{'' if tensor.device.type == 'cpu' else tensor.device.type + '.'}{tensor._type_name_()}"


def _keep_bits(source: Tensor, alias: Tensor) -> None:
    from .lazy_conjugation import keep_bits  # its classes are made of Tensor

    keep_bits(source, alias)


def wrap(array: Any, vc: VersionCounter | None = None) -> Tensor:
    """A Tensor on `array`, without history."""
    result = new(Tensor)
    result._numbers_ = array
    result._vc_ = vc
    result._grad_meta_ = result._edge_ = None
    return result


def fresh(array: Any) -> Tensor:
    """A Tensor on a new array, to be given to the user: in inference mode, an inference tensor."""
    return wrap(array, local.state.new_vc)


def unwrap(tensor: Tensor) -> Any:
    """The array of a Tensor."""
    return tensor._numbers_
