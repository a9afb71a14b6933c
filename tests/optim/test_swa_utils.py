"""Averaged models beside torch's."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import retrograd


def swa_utils(torch: Any) -> Any:
    return import_module(f"{torch.__name__}.optim.swa_utils")


def model_of(torch: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    fill(torch, model, 0)
    return model


def fill(torch: Any, model: Any, seed: int) -> None:
    """Other weights, and other running statistics."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            values = np.asarray(rng.standard_normal(tuple(tensor.shape)) + 2)
            tensor.copy_(torch.from_numpy(values))


WAYS: dict[str, Any] = {
    "mean": lambda u: {},
    "mean of buffers too": lambda u: {"use_buffers": True},
    "ema": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.7)},
    "ema of buffers too": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.7), "use_buffers": True},
    "ema by tensor": lambda u: {"avg_fn": u.get_ema_avg_fn(0.7), "use_buffers": True},
    "mean by tensor": lambda u: {"avg_fn": u.get_swa_avg_fn()},
    "mean of lists": lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    "own": lambda u: {"avg_fn": lambda mean, new, count: mean * 0.5 + new * count},
}


@pytest.mark.parity
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_averages(way: Any) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for package in (retrograd, torch):
        model = model_of(package)
        averaged = swa_utils(package).AveragedModel(model, **way(swa_utils(package)))
        for seed in range(1, 5):
            fill(package, model, seed)
            averaged.update_parameters(model)
        results.append({name: value.numpy() for name, value in averaged.state_dict().items()})
    ours, theirs = results
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parity
def test_batch_norms_are_measured_anew() -> None:
    torch = pytest.importorskip("torch")
    results = []
    for package in (retrograd, torch):
        model = model_of(package).eval()
        rng = np.random.default_rng(7)
        batches = [package.from_numpy(rng.standard_normal((5, 3)).astype("float32")) for _ in range(3)]
        swa_utils(package).update_bn([(batch, None) for batch in batches], model)
        assert not model.training and model[1].momentum == 0.1
        results.append([model[1].running_mean.numpy(), model[1].running_var.numpy()])
        assert model[1].num_batches_tracked == 3
    for mine, other in zip(*results):
        np.testing.assert_allclose(mine, other, rtol=1e-5)


def test_the_model_stays_as_it_is_when_a_batch_fails() -> None:
    """torch's leaves it in training mode, without momenta."""
    model = model_of(retrograd).eval()
    with pytest.raises(RuntimeError):
        retrograd.optim.swa_utils.update_bn([retrograd.ones(2, 7)], model)
    assert not model.training and model[1].momentum == 0.1


def test_an_averaged_model_is_a_model(torch: Any) -> None:
    model = model_of(torch)
    averaged = swa_utils(torch).AveragedModel(model)
    averaged.update_parameters(model)
    x = torch.ones(2, 3)
    assert (averaged.eval()(x) == model.eval()(x)).all()
    assert averaged.n_averaged == 1 and averaged.n_averaged.dtype == torch.int64
    assert pickle.loads(pickle.dumps(averaged)).n_averaged == 1
    other = swa_utils(torch).AveragedModel(model_of(torch))
    other.load_state_dict(averaged.state_dict())
    assert other.n_averaged == 1


def test_refusals(torch: Any) -> None:
    u = swa_utils(torch)
    for make in (u.get_ema_avg_fn, u.get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match=r"Invalid decay value 1\.5 provided"):
            make(1.5)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be provided"):
        u.AveragedModel(model_of(torch), avg_fn=u.get_swa_avg_fn(), multi_avg_fn=u.get_swa_multi_avg_fn())
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)])
    with pytest.raises(ValueError, match="anneal_strategy must be one of 'cos' or 'linear', instead got square"):
        u.SWALR(optimizer, 0.1, anneal_strategy="square")
    with pytest.raises(ValueError, match="anneal_epochs must be equal or greater than 0, got -1"):
        u.SWALR(optimizer, 0.1, anneal_epochs=-1)
    with pytest.raises(ValueError, match=r"swa_lr must have the same length as optimizer\.param_groups"):
        u.SWALR(optimizer, [0.1, 0.2])
