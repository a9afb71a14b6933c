"""Numbers, layouts and tolerances for the tests of our CUDA kernels."""

from __future__ import annotations

import numpy as np

import retrograd as torch

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
#: What rounding may make of sums and of functions, in the CPU's order and in ours.
DIGITS = {torch.float32: 2e-5, torch.float64: 1e-11, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def numbers(shape, dtype, seed, special=False):
    values = np.random.default_rng(seed).standard_normal(shape)
    if special and values.size > 6:
        values.reshape(-1)[:6] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]
    return torch.from_numpy(values).to(dtype)


def layouts(x):
    """The same numbers in several layouts."""
    yield x
    if x.ndim > 1:
        yield x.transpose(0, -1).contiguous().transpose(0, -1)
        wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype, device=x.device)
        wide[..., ::2] = x
        yield wide[..., ::2]


def same(found, expected, dtype, what):
    a, b = found.detach().cpu().double().numpy(), expected.detach().double().numpy()
    assert a.shape == b.shape, f"{what}: {a.shape} for {b.shape}"
    digits = DIGITS[dtype]
    np.testing.assert_allclose(a, b, rtol=digits, atol=digits, equal_nan=True, err_msg=what)
