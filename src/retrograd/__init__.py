"""retrograd: PyTorch's autograd system in Python. ``import retrograd as torch``."""

from __future__ import annotations

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
from .amp import GradScaler, autocast, get_autocast_dtype, is_autocast_enabled
from .autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from .autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .compiler import compile
from .core import dtypes
from .core.constants import *
from .core.devices import device
from .core.dtypes import bool_ as bool
from .core.dtypes import (
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    dtype,
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
)
from .core.dtypes import float_ as float
from .core.dtypes import int_ as int
from .core.layout import layout, strided
from .core.quiet import drop_names
from .core.size import Size
from .core.threads import *
from .core.type_info import finfo, iinfo
from .nn.shared_functions import FUNCTIONS as _NN_FUNCTIONS
from .ops.composite.foreach import FOREACH as _FOREACH
from .ops.namespace import *
from .ops.namespace import _conj, _conj_copy, _conj_physical, _neg_view, _neg_view_copy
from .ops.settings import *
from .ops.tensor_types import *
from .random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .serialization import load, save
from .storage import *
from .tensor import Tensor
from .tensor.dlpack import from_dlpack, to_dlpack
from .tensor.printing import set_printoptions
from .version import __version__

#: Namespaces that are imported by who asks for them.
_ON_DEMAND = (
    "__config__", "__future__", "compiler", "distributed", "hub", "jit", "multiprocessing", "onnx", "testing",
)  # fmt: skip



def __getattr__(name: str) -> _Any:
    if name == "bfloat16":  # made when it is first asked for: see Note [bfloat16] in core/dtypes.py
        return dtypes.bfloat16
    if name in _ON_DEMAND:
        from importlib import import_module

        return import_module("." + name, __name__)
    if name in ("vmap", "func"):
        raise AttributeError(
            f"torch.{name} is not here yet: this version batches nothing by itself. Write a loop and torch.stack, give "
            "the operators a batch dimension, or use is_grads_batched=True of torch.autograd.grad; "
            "torch.autograd.functional has jvp, vjp, jacobian and hessian"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


globals().update(_NN_FUNCTIONS | _FOREACH)
drop_names(*[f"{__name__}.{part}." for part in ("kernels", "derivatives.formulas", "_generated")])
