"""Observers of ranges give torch's scales and zero points; a Linear that trains with them takes parametrizations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

DATA = [np.random.default_rng(i).standard_normal((3, 4)).astype(np.float32) * (i + 1) for i in range(3)]


def scheme(torch: Any, name: str) -> Any:
    return getattr(torch if hasattr(torch, name) else torch.ao.quantization, name)


@pytest.mark.parametrize("reduce_range", [False, True])
@pytest.mark.parametrize("dtype", ["qint8", "quint8"])
@pytest.mark.parametrize("kind, symmetric", [
    ("MinMaxObserver", False), ("MinMaxObserver", True), ("PerChannelMinMaxObserver", False),
    ("PerChannelMinMaxObserver", True), ("MovingAverageMinMaxObserver", False),
])  # fmt: skip
@pytest.mark.parity
def test_scales_beside_torch(kind: str, symmetric: bool, dtype: str, reduce_range: bool) -> None:
    import retrograd

    if symmetric and dtype == "quint8" and reduce_range:
        observer = getattr(retrograd.ao.quantization, kind)
        place = "per_channel_symmetric" if kind.startswith("Per") else "per_tensor_symmetric"
        with pytest.raises(NotImplementedError, match="Cannot reduce range"):  # as torch
            observer(dtype=scheme(retrograd, dtype), qscheme=scheme(retrograd, place), reduce_range=True)
        return
    found = []
    for package in (retrograd, pytest.importorskip("torch")):
        place = "per_channel" if kind.startswith("Per") else "per_tensor"
        observer = getattr(package.ao.quantization.observer, kind)(
            dtype=scheme(package, dtype), qscheme=scheme(package, f"{place}_{'symmetric' if symmetric else 'affine'}"),
            reduce_range=reduce_range,
        )  # fmt: skip
        for values in DATA:
            x = package.from_numpy(values.copy())
            assert observer(x) is x
        scale, zero_point = observer.calculate_qparams()
        state = {name: value.numpy() for name, value in observer.state_dict().items()}
        found.append((scale.numpy(), zero_point.numpy(), state))
    (scale, zero, state), (scale_there, zero_there, state_there) = found
    np.testing.assert_allclose(scale, scale_there, rtol=1e-6)
    np.testing.assert_array_equal(zero, zero_there)
    assert list(state) == list(state_there)
    for name in state:
        np.testing.assert_allclose(state[name], state_there[name], rtol=1e-6)


def test_nothing_seen_yet(torch: Any) -> None:
    scale, zero_point = torch.ao.quantization.MinMaxObserver().calculate_qparams()
    assert scale.tolist() == [1] and zero_point.tolist() == [0]


def test_linear_for_training(torch: Any) -> None:
    qconfig = torch.ao.quantization.get_default_qconfig()
    m = torch.ao.nn.qat.Linear(3, 2, qconfig=qconfig)
    parts = ["weight_fake_quant.eps", "weight_fake_quant.min_val", "weight_fake_quant.max_val"]
    assert list(m.state_dict()) == ["weight", "bias", *parts]
    y = m(torch.ones(3))
    assert torch.allclose(y, torch.nn.functional.linear(torch.ones(3), m.weight, m.bias))
    assert torch.allclose(m.weight_fake_quant.max_val, m.weight.amax(1))
    with pytest.raises(AssertionError, match="qconfig must be provided for QAT module"):
        torch.ao.nn.qat.Linear(3, 2)
    plain = torch.nn.Linear(3, 2)
    plain.qconfig = qconfig
    torch.nn.utils.parametrizations.weight_norm(plain)
    made = torch.ao.nn.qat.Linear.from_float(plain)
    assert torch.nn.utils.parametrize.is_parametrized(made, "weight") and made.bias is plain.bias
    assert torch.allclose(made.weight, plain.weight)
