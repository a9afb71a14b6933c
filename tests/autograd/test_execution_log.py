"""The engine's log: which nodes it names, and that only its own logger's level switches it on."""

from __future__ import annotations

import logging
from contextlib import contextmanager

import pytest

import retrograd as torch
from retrograd.autograd.execution_log import is_logged

pytestmark = pytest.mark.usefixtures("clean_state")


@contextmanager
def recording(name="retrograd.autograd", level=logging.DEBUG):
    records, logger = [], logging.getLogger(name)

    class Handler(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    handler, before = Handler(), logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield records
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)


def test_each_node_is_logged_in_order():
    x = torch.ones(10, requires_grad=True)
    y = x.mul(2).div(3).sum()
    z = y.clone()
    with recording() as records:
        torch.autograd.backward((y, z))
    names = ["CloneBackward0", "SumBackward0", "DivBackward0", "MulBackward0", "AccumulateGrad"]
    assert len(records) == 5 and all(name in record for name, record in zip(names, records))
    assert records[0].startswith("Executing: <CloneBackward0 object at 0x")
    assert records[0].endswith("with grad_outputs: [f32[]]") and records[2].endswith("with grad_outputs: [f32[10]]")


def test_undefined_gradients_and_recorded_passes():
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    with recording() as records:
        torch.autograd.grad(x.max(dim=1)[0].sum(), x, create_graph=True)
    assert any(record.endswith("with grad_outputs: [f64[2]]") for record in records) or any(
        record.endswith("with grad_outputs: [f64[2],None]") for record in records
    )


@pytest.mark.parametrize(
    "name, level",
    [("", "DEBUG"), ("retrograd", "DEBUG"), ("retrograd.autograd", "INFO"), ("retrograd.autograd", "NOTSET")],
)
def test_other_levels_switch_nothing_on(name, level):
    with recording(name, level) as records:
        assert not is_logged()
        torch.ones(1, requires_grad=True).sum().backward()
    assert [record for record in records if "Executing" in record] == []


def test_hooks_are_left_alone():
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    with recording() as records, torch.autograd.set_detect_anomaly(True):
        y.backward()
    assert len(records) == 2 and y.grad_fn.extras is None
