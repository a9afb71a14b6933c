"""Tensors on meta beside torch's: sizes, dtypes and strides of results and of gradients, for every operator.

`test_meta.py` holds meta against the CPU; here it is held against what torch says without computing.
"""

from __future__ import annotations

import pytest

import retrograd
from operator_runs import Run, is_tensor
from retrograd.ops.meta import inference
from test_meta import REFUSED, REFUSED_SAMPLES, TESTED, OnMeta, _looks

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

#: Results that lie otherwise, by what their operators' names begin with: LAPACK's matrices are column by column in
#: torch and row by row in NumPy, FFTs of real numbers leave the transformed dimension outermost.  So it is on the CPU.
OTHER_STRIDES = (
    "linalg.chol", "cholesky", "linalg.qr", "qr", "linalg.lu", "lu", "linalg.svd of one", "linalg.eigh", "linalg.ldl",
    "linalg.householder", "linalg.inv", "inverse", "linalg.solve_triangular", "linalg.triangular_solve",
    "linalg.tensorinv", "fft.rfft", "fft.ihfft", "unravel_index",
)  # fmt: skip
#: Gradients that do: formulas that compute the same in another order, or expand what torch writes out.
OTHER_GRADIENT_STRIDES = (
    "mean", "einsum", "nn.functional.bilinear", "ormqr", "linalg.eig", "linalg.slogdet", "logdet", "linalg.logdet",
    "linalg.pinv", "pinverse", "slogdet", "nn.functional.adaptive_avg", "nn.functional.affine_grid", "affine_grid",
    "fft.irfft", "fft.hfft", "nn.functional.scaled_dot_product_attention, heads", *OTHER_STRIDES,
)  # fmt: skip


class OnTorchMeta:
    """torch with tensors that lie as arrays do, without their values."""

    def __init__(self, torch):
        self.torch = torch

    def from_numpy(self, array):
        dtype = self.torch.from_numpy(array.copy()).dtype
        steps = [step // array.itemsize for step in array.strides]
        return self.torch.empty_strided(array.shape, steps, dtype=dtype, device="meta")

    def __getattr__(self, name):
        return getattr(self.torch, name)


def _said(library, module, op, sample):
    """How results and gradients look, None for what is refused."""
    try:
        with library.device("meta"):
            run = Run(module, op, sample)
            results = [_looks(out) for out in run.outputs if is_tensor(out)]
    except (RuntimeError, NotImplementedError):
        return None, None
    try:
        return results, [None if grad is None else _looks(grad)[:3] for grad in run.gradients()]
    except (RuntimeError, NotImplementedError, AttributeError):
        return results, None


def _without_strides(looks):
    return [None if look is None else (*look[:2], *look[3:]) for look in looks]


def test_every_operator_beside_torch(monkeypatch):
    torch = pytest.importorskip("torch")

    monkeypatch.setattr(inference, "_KEPT", 1)
    counts = dict.fromkeys(("results", "gradients", "theirs refused", "strides", "strides of gradients"), 0)
    for op in TESTED:
        if op.name in REFUSED:
            continue
        sample = next(s for s in op.samples if s.specs)
        theirs, their_gradients = _said(torch, OnTorchMeta(torch), op, sample)
        ours, our_gradients = _said(retrograd, OnMeta(), op, sample)
        if theirs is None:
            counts["theirs refused"] += 1
            continue
        assert ours is not None, f"{op.name} is refused, torch says {theirs}"
        assert _without_strides(ours) == _without_strides(theirs), op.name
        counts["results"] += 1
        if ours != theirs:
            assert op.name.startswith(OTHER_STRIDES), f"{op.name}: {ours}, and {theirs} of torch"
            counts["strides"] += 1
        if their_gradients is None or "empty" in op.name:
            continue
        if our_gradients is None:
            assert op.name in REFUSED_SAMPLES, f"{op.name}: the gradient is refused, torch says {their_gradients}"
            continue
        assert _without_strides(our_gradients) == _without_strides(their_gradients), op.name
        counts["gradients"] += 1
        if our_gradients != their_gradients:
            assert op.name.startswith(OTHER_GRADIENT_STRIDES), f"{op.name}: {our_gradients}, and {their_gradients}"
            counts["strides of gradients"] += 1
    assert counts["results"] >= 700 and counts["gradients"] >= 600 and counts["theirs refused"] <= 20, counts
    assert counts["strides"] <= 36 and counts["strides of gradients"] <= 40, counts
