"""retrograd: PyTorch's autograd system in Python. ``import retrograd as torch``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import (
    _C,
    amp,
    autograd,
    backends,
    cuda,
    fft,
    linalg,
    nn,
    optim,
    random,
    return_types,
    serialization,
    special,
    types,
    utils,
    version,
)
from .amp import (
    GradScaler,
    autocast,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
)
from .autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from .autograd.dispatch_trace import show_if_asked as _show_dispatch_trace_if_asked
from .autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .compiler import compile
from .core import dtypes as _dtypes
from .core.constants import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    e,
    inf,
    memory_format,
    nan,
    newaxis,
    pi,
    preserve_format,
)
from .core.devices import OutOfMemoryError, device
from .core.dtypes import bool_ as bool
from .core.dtypes import (
    cdouble,
    cfloat,
    chalf,
    complex32,
    complex64,
    complex128,
    double,
    dtype,
    float4_e2m1fn_x2,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    int8,
    int16,
    int32,
    int64,
    long,
    set_default_dtype,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .core.dtypes import float_ as float
from .core.dtypes import int_ as int
from .core.late import transforms as _transforms
from .core.layout import jagged, layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from .core.quiet import drop_names as _drop_names
from .core.size import Size
from .core.sym_int import SymInt
from .core.threads import (
    get_num_interop_threads,
    get_num_threads,
    set_num_interop_threads,
    set_num_threads,
)
from .core.type_info import finfo, iinfo
from .nn.functional import recurrent as _recurrent
from .nn.functional import top_level as _top_level
from .ops import compiled_core as _compiled_core
from .ops.checks import (
    _assert,
    _assert_async,
    _check,
    _check_index,
    _check_is_size,
    _check_not_implemented,
    _check_tensor_all,
    _check_tensor_all_with,
    _check_type,
    _check_value,
    _check_with,
)
from .ops.operator_schema import Tag
from .ops.registry import SPACES as _SPACES
from .ops.settings import (
    are_deterministic_algorithms_enabled,
    get_default_device,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled,
    set_default_device,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_warn_always,
    use_deterministic_algorithms,
)
from .ops.tensor_types import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    _tensor_classes,
    set_default_tensor_type,
    typename,
)
from .random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .serialization import load, save
from .storage import (
    BFloat16Storage,
    BoolStorage,
    ByteStorage,
    CharStorage,
    ComplexDoubleStorage,
    ComplexFloatStorage,
    DoubleStorage,
    FloatStorage,
    HalfStorage,
    IntStorage,
    LongStorage,
    ShortStorage,
    TypedStorage,
    UntypedStorage,
)
from .storage import FloatStorage as Storage
from .tensor import Tensor
from .tensor.dlpack import from_dlpack, to_dlpack
from .tensor.printing import set_printoptions
from .version import __version__

#: Namespaces that are imported by who asks for them.
_ON_DEMAND = (
    "_VF", "__config__", "__future__", "_custom_op", "_custom_ops", "_dynamo", "_functorch", "_inductor", "_library",
    "_tensor", "_utils", "_vmap_internals",
    "accelerator", "ao", "capture", "compiler", "cpu", "distributed", "distributions", "explorer", "func",
    "functional", "futures", "fx", "hub", "jit", "library", "masked", "mps", "mtia", "multiprocessing", "nested",
    "onnx", "overrides", "profiler", "quantization", "quasirandom", "scipy", "signal", "sparse", "testing",
    "torch_version", "xpu",
)  # fmt: skip


if _TYPE_CHECKING:
    from .capture.package import capture
    from .func import vmap


def __getattr__(name: str) -> _Any:
    if name == "bfloat16":  # made when it is first asked for: see Note [bfloat16] in core/dtypes.py
        return _dtypes.bfloat16
    if name.startswith(("_nested_", "_test_autograd_multiple_dispatch")):
        from .nested import _private_names, _test_operators  # few programs have nested tensors

        found = getattr(_private_names, name, None) or getattr(_test_operators, name, None)
        if found is not None:
            return found
    if name in _ON_DEMAND:
        from importlib import import_module

        return import_module("." + name, __name__)
    if name == "vmap":
        return _transforms("vmap").vmap
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


globals().update(_SPACES["torch"])
#: What is public: the operators that the table and the registry put here, and these.
__all__ = [
    *[_name for _name in _SPACES["torch"] if not _name.startswith("_")],
    "BFloat16Storage", "BFloat16Tensor", "BoolStorage", "BoolTensor", "ByteStorage", "ByteTensor", "CharStorage",
    "CharTensor", "ComplexDoubleStorage", "ComplexFloatStorage", "DoubleStorage", "DoubleTensor", "FloatStorage",
    "FloatTensor", "Generator", "GradScaler", "HalfStorage", "HalfTensor", "IntStorage", "IntTensor", "LongStorage",
    "LongTensor", "OutOfMemoryError", "ShortStorage", "ShortTensor", "Size", "Storage", "SymInt", "Tag", "Tensor",
    "TypedStorage", "UntypedStorage", "accelerator", "amp", "are_deterministic_algorithms_enabled", "autocast",
    "autograd", "backends", "bfloat16", "bool", "cdouble", "cfloat", "chalf", "channels_last", "channels_last_3d",
    "clear_autocast_cache", "compile", "compiler", "complex128", "complex32", "complex64", "contiguous_format",
    "cuda", "default_generator", "device", "distributed", "distributions", "double", "dtype", "e", "enable_grad",
    "fft", "finfo", "float", "float16", "float32", "float4_e2m1fn_x2", "float64", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "from_dlpack", "func", "futures", "get_autocast_cpu_dtype",
    "get_autocast_dtype", "get_autocast_gpu_dtype", "get_default_device", "get_default_dtype",
    "get_deterministic_debug_mode", "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "get_rng_state", "half", "hub", "iinfo", "inf", "inference_mode", "initial_seed", "int", "int16", "int32",
    "int64", "int8", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled", "is_autocast_enabled", "is_deterministic_algorithms_warn_only_enabled",
    "is_grad_enabled", "is_inference_mode_enabled", "is_warn_always_enabled", "jagged", "jit", "layout", "linalg",
    "load", "long", "manual_seed", "memory_format", "multiprocessing", "nan", "newaxis", "nn", "no_grad", "onnx",
    "ops", "optim", "pi", "preserve_format", "profiler", "random", "return_types", "save", "seed", "serialization",
    "set_anomaly_enabled", "set_default_device", "set_default_dtype", "set_default_tensor_type",
    "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal", "set_grad_enabled",
    "set_num_interop_threads", "set_num_threads", "set_printoptions", "set_rng_state", "set_warn_always", "short",
    "sparse", "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc", "sparse_csr", "special", "storage", "strided",
    "testing", "to_dlpack", "typename", "uint16", "uint32", "uint64", "uint8", "use_deterministic_algorithms",
    "utils", "version", "vmap",
]  # fmt: skip
_drop_names(
    *[f"{__name__}.{part}" for part in ("kernels.", "derivatives.formulas.", "_generated.", "ops.stored_dtypes")]
)
_show_dispatch_trace_if_asked()
