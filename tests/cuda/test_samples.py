"""Every operator of the sample database on a device: values, gradients, tangents and second derivatives are the CPU's.

On the simulated library, which lacks what CuPy lacks; ``make test-cuda`` runs all samples on CuPy.  Here each
operator has its first sample, all samples in the slow test.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import scipy.fft
import scipy.special

import retrograd
from gpu import cannot, simulated
from gpu.on_device import compare
from retrograd.arrays.device_array import on_host
from samples import OPS


def check(samples: list[tuple[Any, Any]]) -> None:
    on_host.clear()
    found = []
    for op, sample in samples:
        found += [f"{op.name}[{sample.name}] {step}: {text}" for step, text in compare(op, sample).items()]
    assert found == []
    # SciPy's functions are CuPy's on a GPU; the simulated library has none.
    hosted = [name for name in on_host if not hasattr(scipy.special, name) and not hasattr(scipy.fft, name)]
    assert cannot.unexplained(hosted) == []


def test_the_table_of_what_cupy_cannot_do_is_that_of_the_documentation():
    assert [(", ".join(row.operators), row.error) for row in cannot.ROWS] == cannot.written()
    assert sum(len(row.operators) for row in cannot.ROWS) < cannot.MOST


def test_a_row_that_is_not_so_is_found():
    """The simulated library has none of CuPy's modules; of dtypes that it does not have it says what CuPy says."""
    assert len(cannot.stale(simulated.library())) == len(cannot.ROWS) - 1
    assert cannot.unexplained({"airy": 1, "sort": 2}) == ["sort"]


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
