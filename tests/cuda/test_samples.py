"""Every operator of the sample database on a device: values, gradients, tangents and second derivatives are the CPU's.

On the simulated library, which lacks what CuPy lacks; ``make test-cuda`` runs all samples on CuPy.  Here each
operator has its first sample, all samples in the slow test.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import scipy.special

import retrograd
from gpu.on_device import compare
from retrograd.arrays.device_array import on_host
from samples import OPS

#: What is refused on a device, by the words of the refusal. docs/CUDA.md lists it.
REFUSED = ("sparse tensors are on the CPU",)
#: What NumPy may compute for a device, in the host's memory: what CuPy has not, or has otherwise. docs/CUDA.md says
#: why.
ON_HOST = {
    "get_lapack_funcs", "getrf", "sytrf", "sytrs", "hetrf", "hetrs", "fftn", "ifftn", "rfftn",
    "irfftn", "reduce", "at", "divide", "leggauss", "solve", "airy", "isin", "insert", "concatenate", "copysign",
    "histogramdd", "add", "astype",
}  # fmt: skip


def problems_of(samples: list[tuple[Any, Any]]) -> tuple[list[str], set[str]]:
    found, refused = [], set()
    for op, sample in samples:
        for step, text in compare(op, sample).items():
            if any(words in text for words in REFUSED):
                refused.add(op.name)
            else:
                found.append(f"{op.name}[{sample.name}] {step}: {text}")
    return found, refused


def check(samples: list[tuple[Any, Any]]) -> None:
    on_host.clear()
    found, refused = problems_of(samples)
    assert found == []
    # SciPy's special functions are CuPy's on a GPU; the simulated library has none.
    hosted = {name.removeprefix("function ") for name in on_host if not hasattr(scipy.special, name)}
    assert {name for name in hosted if name not in ON_HOST and name[1:] not in ON_HOST} == set()
    assert len(refused) <= 150 and all(
        "sparse" in name or name in ("hspmm", "saddmm", "smm", "spmm", "sspaddmm", "dsmm") for name in refused
    ), refused


@pytest.mark.parametrize("part", range(4))
def test_every_operator_on_a_device(gpu, part):
    if gpu.real:
        pytest.skip("gpu.run has all samples, in several processes")
    chosen = [(op, op.samples[0]) for op in OPS if op.samples and not op.missing_from(retrograd)]
    check(chosen[part::4])


@pytest.mark.slow
def test_every_sample_on_a_device(gpu):
    if gpu.real:
        pytest.skip("gpu.run has all samples, in several processes")
    by_op = defaultdict(list)
    for op in OPS:
        if not op.missing_from(retrograd):
            by_op[op.name] += [(op, sample) for sample in op.samples]
    check([case for cases in by_op.values() for case in cases])
