"""bfloat16: the dtype itself, and every operator of the sample database in it beside torch."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import retrograd
from operator_runs import flat, is_tensor
from samples import OPS, Op, Sample
from samples.spec import Attr, Same, T, lookup, map_tree

# ---------------------------------------------------------------------------------------------- the dtype


def test_its_package_is_imported_at_its_first_use() -> None:
    program = (
        "import sys, retrograd; assert 'ml_dtypes' not in sys.modules; "
        "retrograd.bfloat16; assert 'ml_dtypes' in sys.modules"
    )
    # (The compiled kernels copy the loops of NumPy's functions, which its package adds to, so they import it.)
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"RETROGRAD_FAST": "0"})


def test_what_it_is(torch: Any) -> None:
    d = torch.bfloat16
    assert repr(d) == "torch.bfloat16"
    assert d is torch.ones(1).bfloat16().dtype
    assert (d.is_floating_point, d.is_complex, d.is_signed, d.itemsize) == (True, False, True, 2)
    assert (d.to_real(), d.to_complex()) == (d, torch.complex64)
    info = torch.finfo(d)
    assert (info.bits, info.eps, info.resolution, info.dtype) == (16, 0.0078125, 0.01, "bfloat16")
    assert info.max == -info.min == 3.3895313892515355e38
    assert torch.ones(1, dtype=d).type() == "torch.BFloat16Tensor"
    assert isinstance(torch.ones(1).type("torch.BFloat16Tensor"), torch.BFloat16Tensor)


@pytest.mark.parametrize(
    ("other", "result"),
    [
        ("bool", "bfloat16"), ("uint8", "bfloat16"), ("int64", "bfloat16"), ("float16", "float32"),
        ("float32", "float32"), ("float64", "float64"), ("complex64", "complex64"), ("complex128", "complex128"),
    ],
)  # fmt: skip
def test_promotion(torch: Any, other: str, result: str) -> None:
    given, expected = getattr(torch, other), getattr(torch, result)
    assert torch.promote_types(torch.bfloat16, given) is expected
    assert (torch.ones(2).bfloat16() + torch.ones(2, dtype=given)).dtype is expected
    # A tensor without dimensions changes the dtype only by being of a higher category.
    weak = torch.ones(2).bfloat16() * torch.ones((), dtype=given)
    assert weak.dtype is (torch.complex64 if given.is_complex else torch.bfloat16)
    assert (torch.ones(2).bfloat16() * 2.5).dtype is torch.bfloat16


def test_rounding_is_to_nearest_even(torch: Any) -> None:
    x = torch.tensor([1 + 1 / 256, 1 + 3 / 256, 3.1, 1e39], dtype=torch.bfloat16)
    assert x.tolist() == [1.0, 1 + 4 / 256, 3.09375, float("inf")]
    assert repr(x[:3]) == "tensor([1.0000, 1.0156, 3.0938], dtype=torch.bfloat16)"


def test_conversions(torch: Any) -> None:
    x = torch.tensor([1.5, -2.75, 0.0]).bfloat16()
    for name, expected in {"long": [1, -2, 0], "bool": [True, True, False], "half": [1.5, -2.75, 0.0]}.items():
        assert getattr(x, name)().tolist() == expected
    assert x.to(torch.complex64).tolist() == [1.5, -2.75, 0]
    assert x.view(torch.int16).tolist() == [16320, -16336, 0]
    assert torch.tensor([1, 2], dtype=torch.bfloat16).float().tolist() == [1.0, 2.0]
    assert x[0].item() == 1.5
    assert float(x[1]) == -2.75
    with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
        x.numpy()
    with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
        np.asarray(x)


def test_factories(torch: Any) -> None:
    for made in (
        torch.zeros(2, dtype=torch.bfloat16), torch.full((2,), 1.5, dtype=torch.bfloat16),
        torch.rand(2, dtype=torch.bfloat16), torch.randn(2, dtype=torch.bfloat16),
        torch.arange(4, dtype=torch.bfloat16), torch.linspace(0, 1, 5, dtype=torch.bfloat16),
        torch.eye(2, dtype=torch.bfloat16), torch.ones(2).to(torch.bfloat16).new_zeros(3),
    ):  # fmt: skip
        assert made.dtype is torch.bfloat16


def test_sums_and_products_are_rounded_once(torch: Any) -> None:
    """In bfloat16 itself a sum of ones would stop at 256."""
    ones = torch.ones(1000).bfloat16()
    assert ones.sum().item() == ones.dot(ones).item() == 1000
    assert ones.mean().item() == 1
    assert ones.cumsum(0)[-1].item() == 1000
    assert (ones.view(1, -1) @ ones.view(-1, 1)).item() == 1000


def test_sorting_knows_nan(torch: Any) -> None:
    x = torch.tensor([3.0, float("nan"), 1.0, 2.0]).bfloat16()
    assert x.sort().indices.tolist() == [2, 3, 0, 1]
    assert x.topk(2).indices.tolist() == [1, 0]
    assert x.nanmedian().item() == 2
    assert x.unique().dtype is torch.bfloat16


def test_default_dtype(torch: Any) -> None:
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert torch.tensor(1.5).dtype is torch.get_default_dtype() is torch.bfloat16
        assert torch.tensor([1, 2]).exp().dtype is torch.bfloat16
    finally:
        torch.set_default_dtype(torch.float32)


def test_saving(torch: Any) -> None:
    file = io.BytesIO()
    x = torch.tensor([1.5, 2.5], dtype=torch.bfloat16)
    torch.save({"x": x, "dtype": x.dtype}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["dtype"] is torch.bfloat16
    assert loaded["x"].dtype is torch.bfloat16
    assert loaded["x"].tolist() == [1.5, 2.5]


def test_training(torch: Any) -> None:
    """A module in bfloat16 has gradients in it, and an optimiser steps on it."""
    layer = torch.nn.Linear(3, 1).bfloat16()
    with torch.no_grad():
        layer.weight.fill_(0.5)
        layer.bias.fill_(0.0)
    layer(torch.ones(2, 3).bfloat16()).sum().backward()
    assert layer.weight.grad.dtype is torch.bfloat16
    assert layer.weight.grad.tolist() == [[2.0, 2.0, 2.0]]
    torch.optim.SGD(layer.parameters(), 0.25).step()
    assert layer.weight.tolist() == [[0.0, 0.0, 0.0]]


def test_forward_mode(torch: Any) -> None:
    fwd = torch.autograd.forward_ad
    with fwd.dual_level():
        x = fwd.make_dual(torch.tensor([3.0]).bfloat16(), torch.tensor([2.0]).bfloat16())
        tangent = fwd.unpack_dual(x * x).tangent
    assert tangent.dtype is torch.bfloat16
    assert tangent.tolist() == [12.0]


# ---------------------------------------------------------------------------------------------- every operator


#: Where torch itself gives up, or is further from float64's result than we are.
TORCH_DIFFERS = {
    "matrix_exp": "torch's is NaN",
    "logcumsumexp": "torch's gradient loses small terms",
    "nn.functional.gelu": "torch's is NaN at infinity",
    "nn.functional.grid_sample": "torch interpolates in bfloat16",
    "grid_sampler_2d": "torch interpolates in bfloat16",
    "signbit": "the sign of NaN",
}


def _build(module: Any, sample: Sample) -> tuple[tuple, dict, list]:
    tensors: list[Any] = []
    for spec, array in zip(sample.specs, sample.arrays(), strict=True):
        double = array.dtype == np.float64
        tensor = module.from_numpy(array.astype(np.float32) if double else array)
        tensor = tensor.bfloat16() if double else tensor
        tensors.append(tensor.requires_grad_() if spec.differentiable else tensor)
    taken = iter(tensors)

    def resolve(leaf: Any) -> Any:
        if isinstance(leaf, T):
            return next(taken)
        if isinstance(leaf, Same):
            return tensors[leaf.index]
        return lookup(module, leaf.name) if isinstance(leaf, Attr) else leaf

    args, kwargs = map_tree(resolve, (sample.args, sample.kwargs))
    return args, kwargs, [t for t, s in zip(tensors, sample.specs, strict=True) if s.differentiable]


def _numbers(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().resolve_conj()
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


def _same(ours: Any, theirs: Any, tolerance: float, what: str) -> None:
    if not is_tensor(theirs):
        assert ours == theirs
        return
    assert str(ours.dtype) == str(theirs.dtype), what
    np.testing.assert_allclose(_numbers(ours), _numbers(theirs), tolerance, tolerance, True, what)


BEFORE = [
    pytest.param(op, next(s for s in op.samples if any(spec.dtype == "float64" for spec in s.specs)), id=op.name)
    for op in OPS
    if op.name not in TORCH_DIFFERS
    and any(spec.dtype == "float64" for s in op.samples for spec in s.specs)
    and not op.missing_from(retrograd)
]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("op", "sample"), BEFORE)
def test_operator_is_torchs(op: Op, sample: Sample) -> None:
    """Value, dtype and gradient, to bfloat16's precision; where torch has no kernel for bfloat16, nothing is said."""
    torch = pytest.importorskip("torch")
    args, kwargs, leaves = _build(torch, sample)
    try:
        theirs = flat(op.call(torch, args, kwargs))
    except (NotImplementedError, RuntimeError):
        pytest.skip("torch has no bfloat16 here")
    mine, own, our_leaves = _build(retrograd, sample)
    ours = flat(op.call(retrograd, mine, own))
    for one, other in zip(ours, theirs, strict=True):
        _same(one, other, 2e-2, "result")
    if not op.differentiable or not sample.torch_first:
        return
    roots = [out for out in theirs if is_tensor(out) and out.requires_grad]
    try:
        expected = torch.autograd.grad(roots, leaves, [torch.ones_like(r) for r in roots], allow_unused=True)
    except (NotImplementedError, RuntimeError):
        pytest.skip("torch has no gradient here")
    our_roots = [out for out in ours if is_tensor(out) and out.requires_grad]
    grads = retrograd.autograd.grad(
        our_roots, our_leaves, [retrograd.ones_like(r) for r in our_roots], allow_unused=True
    )
    for one, other in zip(grads, expected, strict=True):
        if one is not None and other is not None:
            _same(one, other, 5e-2, "gradient")
