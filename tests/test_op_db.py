"""Torch's own database of operators: every name in it is here, and its samples give torch's values and derivatives.

The database is torch's, from the torch that is installed; nothing of it is kept here.  Its entries are named after
functions, so what stands under the same name here is called with the same numbers.
"""

from __future__ import annotations

import sys
import types
import unittest
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

import retrograd

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

#: Names of the database that are not here, and why.
MISSING = {
    "jiterator_2inputs_2outputs": "compiles kernels for GPUs",
    "jiterator_4inputs_with_extra_args": "compiles kernels for GPUs",
    "jiterator_binary": "compiles kernels for GPUs",
    "jiterator_binary_return_by_ref": "compiles kernels for GPUs",
    "jiterator_unary": "compiles kernels for GPUs",
    "torch._scaled_mm_v2": "torch has it on GPUs alone",
    "torch.ops.aten._efficient_attention_forward": "torch has it on GPUs alone",
    "torch.ops.aten._flash_attention_forward": "torch has it on GPUs alone",
}
#: Where the function of an entry stands, if not under its name.
ELSEWHERE = {
    "_batch_norm_with_update": "ops.aten._batch_norm_with_update",
    "_segment_reduce": "segment_reduce",
    "_upsample_bilinear2d_aa": "ops.aten._upsample_bilinear2d_aa",
    "max_pool2d_with_indices_backward": "ops.aten.max_pool2d_with_indices_backward",
    "native_dropout_backward": "ops.aten.native_dropout_backward",
    "slice": "ops.aten.slice.Tensor",
    **{f"{name}": f"Tensor.{name}_" for name in ("cauchy", "exponential", "geometric", "log_normal", "uniform")},
}


#: Entries of random functions set this seed themselves.
SEED = 42


def _database() -> list[Any]:
    pytest.importorskip("torch")
    if "expecttest" not in sys.modules:  # torch's helpers for tests import it, and entries do not use it
        stand_in: Any = types.ModuleType("expecttest")
        stand_in.TestCase, stand_in.assert_expected_inline = unittest.TestCase, None
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def _find(name: str) -> Any:
    """What stands here under the name of an entry: a function, or else a method; None if nothing does."""
    paths = [ELSEWHERE[name]] if name in ELSEWHERE else [name.removeprefix("torch."), f"Tensor.{name}"]
    for path in paths:
        found: Any = retrograd
        for part in path.split("."):
            try:
                found = getattr(found, part)
            except (AttributeError, ImportError):
                found = None
                break
        if callable(found) or isinstance(found, property):  # (torch.double is a dtype)
            return found
    return None


def _function(torch: Any, entry: Any) -> Any:
    """What to call here for an entry: its own function in a world where torch is this package, or that of its name."""
    function = entry.op
    if isinstance(function, types.FunctionType) and function.__module__.startswith("torch.testing"):
        world = {**function.__globals__, "torch": retrograd}
        parts = function.__code__, world, function.__name__, function.__defaults__, function.__closure__
        made = types.FunctionType(*parts)
        made.__kwdefaults__ = function.__kwdefaults__
        return made
    return _find(entry.name)


@pytest.mark.slow
def test_every_name_is_here() -> None:
    names = {entry.name for entry in _database()}
    assert len(names) > 600
    absent = {name for name in names if _find(name) is None}
    assert absent - set(MISSING) == set()
    assert set(MISSING) - absent == set(), "these are here: take them off the list"


# ------------------------------------------------------------------------------------------------------------- samples


def _convert(torch: Any, value: Any, tensors: dict[int, Any]) -> Any:
    """A sample's argument, with the tensors of this package in place of torch's."""
    if isinstance(value, torch.Tensor):
        if id(value) not in tensors:
            array = value.detach().resolve_conj().resolve_neg().numpy()
            tensors[id(value)] = retrograd.from_numpy(array.copy(order="K")).requires_grad_(value.requires_grad)
        return tensors[id(value)]
    if isinstance(value, torch.dtype):
        return getattr(retrograd, str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return retrograd.Size(value)
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        name = str(value).removeprefix("torch.")
        return retrograd.device(name) if isinstance(value, torch.device) else getattr(retrograd, name)
    if isinstance(value, (tuple, list)):
        items = [_convert(torch, one, tensors) for one in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: _convert(torch, one, tensors) for key, one in value.items()}
    return value


def _flat(value: Any, kind: type) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _flat(one, kind)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()), kind)


def _array(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if str(tensor.dtype) in ("torch.bfloat16", "torch.complex32"):  # which NumPy does not have
        tensor = tensor.float() if tensor.is_floating_point() else tensor.cfloat()
    return tensor.numpy(force=True)


def _same(ours: list[Any], expected: list[Any], what: str) -> str:
    if len(ours) != len(expected):
        return f"{what}: {len(ours)} results, not {len(expected)}"
    for one, other in zip(ours, expected, strict=True):
        if one is None and other is None:
            continue
        if one is None or other is None:
            present = other if one is None else one
            if _array(present).any():
                return f"{what}: no gradient on one side"
            continue
        if str(one.dtype) != str(other.dtype):
            return f"{what}: {one.dtype}, not {other.dtype}"
        a, b = _array(one), _array(other)
        if a.shape != b.shape:
            return f"{what}: shape {a.shape}, not {b.shape}"
        if not np.allclose(a, b, 1e-6, 1e-7, equal_nan=True):
            return f"{what}: other values"
    return ""


def _derivatives(module: Any, results: list[Any], leaves: list[Any]) -> tuple[list[Any], list[Any]]:
    """First and second derivatives of a fixed function of the results."""
    roots = [r for r in results if r.requires_grad]
    seeds = [
        module.from_numpy(np.cos(np.arange(r.numel(), dtype=np.float64)).reshape(tuple(r.shape))).to(r.dtype)
        for r in roots
    ]
    first = module.autograd.grad(roots, leaves, seeds, create_graph=True, allow_unused=True)
    again = [g for g in first if g is not None and g.requires_grad]
    if not again:
        return list(first), []
    total = sum((g * g.conj()).real.sum() if g.is_complex() else (g * g).sum() for g in again)
    return list(first), list(module.autograd.grad(total, leaves, allow_unused=True))


def _dtype(torch: Any, entry: Any) -> Any:
    supported = entry.supported_dtypes("cpu")
    for name in ("float64", "complex128", "float32", "int64", "uint8", "bool"):
        if getattr(torch, name) in supported:
            return getattr(torch, name)
    return None


def compare(torch: Any, entry: Any, count: int, second: bool) -> list[str]:
    """What differs from torch in the first samples of an entry."""
    dtype = _dtype(torch, entry)
    function = _function(torch, entry)
    if dtype is None or _find(entry.name) is None:
        return []
    differentiable = entry.supports_autograd and dtype.is_floating_point
    found: list[str] = []
    torch.manual_seed(0)
    for number, sample in enumerate(islice(entry.sample_inputs("cpu", dtype, requires_grad=differentiable), count)):
        tensors: dict[int, Any] = {}
        given = (sample.input, *sample.args)
        args, kwargs = _convert(torch, given, tensors), _convert(torch, sample.kwargs, tensors)
        words = _compare_call(torch, entry, function, given, sample.kwargs, args, kwargs, differentiable, second)
        found += [f"sample {number}, {word}" for word in words]
    return found


def _compare_call(
    torch: Any, entry: Any, function: Callable[..., Any], given: Any, named: Any, args: Any, kwargs: Any,
    differentiable: bool, second: bool,
) -> list[str]:  # fmt: skip
    torch.manual_seed(SEED)
    retrograd.manual_seed(SEED)
    try:
        expected = entry.op(*given, **named)
    except Exception:
        return []  # the entry needs something that this torch is built without
    try:
        ours = function(*args, **kwargs)
    except Exception as error:
        return [f"{type(error).__name__}: {str(error)[:120]}"]
    results, theirs = list(_flat(ours, retrograd.Tensor)), list(_flat(expected, torch.Tensor))
    word = _same(results, theirs, "values")
    if word or not differentiable:
        return [word] if word else []
    leaves = [t for t in _flat((args, kwargs), retrograd.Tensor) if t.requires_grad]
    others = [t for t in _flat((given, named), torch.Tensor) if t.requires_grad]
    if not leaves or not any(t.requires_grad for t in theirs):
        return []
    try:
        wanted = _derivatives(torch, theirs, others)
    except (RuntimeError, NotImplementedError):
        return []  # torch has no derivative here, or no second one
    try:
        mine = _derivatives(retrograd, results, leaves)
    except Exception as error:
        return [f"derivatives, {type(error).__name__}: {str(error)[:120]}"]
    words = [_same(mine[0], wanted[0], "gradients")]
    if second and wanted[1]:  # (torch's gradient may be one that it cannot differentiate again)
        words.append(_same(mine[1], wanted[1], "second derivatives"))
    return [word for word in words if word]


#: Entries whose results differ from torch's, and why.
EXCEPTIONS = {
    "masked.logaddexp": "torch's second derivatives are no numbers where one of the two is masked, ours are 0",
    "as_strided.partial_views": "reads memory beside the sample, which the copy of a sample does not have",
    "as_strided_scatter": "torch's gradient is that of the elements that were overwritten, not of the others",
    "nn.functional.triplet_margin_with_distance_loss": "a sample's argument is a function of torch itself",
    "svd_lowrank": "singular vectors have either sign",
    "pca_lowrank": "singular vectors have either sign",
    "linalg.eig": "eigenvectors have any phase",
    "linalg.eigh": "eigenvectors have any phase",
    "histogramdd": "bins that do not increase are refused, where torch counts into some of them",
    "special.bessel_j0": "torch's has seven digits at 5",
    "special.bessel_y1": "torch's has seven digits at 5",
}
#: Memory that nobody has written to may hold anything, also the same.
UNDEFINED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
#: Their samples are sparse; tests of sparse tensors have them.
SPARSE = {"sparse.sampled_addmm", "sparse.mm.reduce", "to_sparse"}


@pytest.mark.slow
def test_samples_give_torchs_values_and_derivatives() -> None:
    torch = pytest.importorskip("torch")
    differ, compared = {}, 0
    for entry in _database():
        name = f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else entry.name
        if name in SPARSE or entry.name in UNDEFINED or _find(entry.name) is None:
            continue
        compared += 1
        words = compare(torch, entry, 4, second=True)
        if words:
            differ[name] = words
    assert {name: words for name, words in differ.items() if name not in EXCEPTIONS} == {}
    assert set(EXCEPTIONS) - set(differ) == set(), "these agree now: take them off the list"
    assert compared > 650
