"""Layers and losses: what a table of values does not show."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest


def test_inplace_activations(torch: Any) -> None:
    for name in ("ReLU", "ReLU6", "SiLU", "Mish", "SELU", "Hardsigmoid", "Hardswish", "LeakyReLU", "ELU", "CELU"):
        x = torch.tensor([-1.0, 2.0])
        y = x + 0
        result = getattr(torch.nn, name)(inplace=True)(y)
        assert result is y, name
        assert torch.allclose(y, getattr(torch.nn, name)()(x)), name
    assert repr(torch.nn.ReLU(True)) == "ReLU(inplace=True)" and repr(torch.nn.Hardswish(True)) == "Hardswish()"


def test_first_values_lie_within_bounds(torch: Any) -> None:
    layer = torch.nn.Linear(16, 300)
    for parameter in (layer.weight, layer.bias):
        assert 0.2 < parameter.abs().max().item() <= 0.25
        assert abs(parameter.mean().item()) < 0.05
    assert torch.nn.Bilinear(4, 3, 50).weight.abs().max().item() <= 0.5
    table = torch.nn.Embedding(500, 4, padding_idx=-1)
    assert table.padding_idx == 499 and (table.weight[499] == 0).all()
    assert abs(table.weight.std().item() - 1) < 0.1
    assert (torch.nn.PReLU().weight == 0.25).all()


def test_older_reduction_arguments(torch: Any) -> None:
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert torch.nn.MSELoss(size_average=False).reduction == "sum"


def test_pretrained_embedding(torch: Any) -> None:
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    table = torch.nn.Embedding.from_pretrained(rows)
    assert not table.weight.requires_grad
    assert table(torch.tensor([1])).tolist() == [[3, 4]]


def test_batch_norm_keeps_running_values(torch: Any) -> None:
    m = torch.nn.BatchNorm1d(2, momentum=0.5)
    x = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    m(x)
    assert m.running_mean.tolist() == [1, 1] and m.running_var.tolist() == [1.5, 4.5]
    assert m.num_batches_tracked.item() == 1
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        m(torch.ones(1, 2))
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        m(torch.ones(2))


def test_data_parallel_without_accelerators(torch: Any) -> None:
    net = torch.nn.DataParallel(torch.nn.Linear(2, 2))
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    net(torch.ones(1, 2)).sum().backward()
    assert net.module.weight.grad is not None


def test_bags_and_what_is_outside(torch: Any) -> None:
    bag = torch.nn.EmbeddingBag(4, 2, include_last_offset=True, mode="max")
    assert bag(torch.tensor([0, 1, 2]), torch.tensor([0, 2, 2])).shape == (2, 2)
    for wrong in (-1, 4):
        with pytest.raises(RuntimeError, match=f"found idx to be {wrong}"):
            bag(torch.tensor([0, wrong]), torch.tensor([0, 2]))
    with pytest.raises(AssertionError, match="padding_idx must be within num_embeddings"):
        torch.nn.EmbeddingBag(4, 2, padding_idx=4)


def test_convolutions_refuse(torch: Any) -> None:
    nn = torch.nn
    for call, text in (
        (lambda: nn.Conv2d(3, 4, 1, groups=2), "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(2, 3, 1, groups=2), "out_channels must be divisible by groups"),
        (lambda: nn.Conv2d(2, 2, 1, groups=0), "groups must be a positive integer"),
        (lambda: nn.Conv1d(2, 2, 3, stride=2, padding="same"), "not supported for strided convolutions"),
        (lambda: nn.Conv1d(2, 2, 3, padding="other"), "Invalid padding string 'other'"),
        (lambda: nn.Conv1d(2, 2, 3, padding_mode="other"), "padding_mode must be one of"),
        (lambda: nn.ConvTranspose1d(2, 2, 3, padding_mode="circular"), 'Only "zeros" padding mode is supported'),
        (lambda: nn.ConvTranspose1d(1, 1, 3, 2)(torch.ones(1, 1, 4), output_size=[20]), "valid sizes range from"),
        (lambda: nn.ConvTranspose2d(1, 1, 3)(torch.ones(1, 1, 4, 4), output_size=[20]), "output_size must have 2 or 4"),
        (lambda: nn.CircularPad2d(1)(torch.ones(3)), "expected 3D or 4D input"),
        (lambda: nn.FractionalMaxPool2d(2), "requires specifying either an output size, or a pooling ratio"),
        (lambda: nn.FractionalMaxPool2d(2, 3, 0.5), "only one of output_size and output_ratio"),
        (lambda: nn.FractionalMaxPool2d(2, output_ratio=2.0), "output_ratio must be between 0 and 1"),
        (lambda: nn.TripletMarginLoss(margin=0), "expected margin to be greater than 0"),
        (lambda: nn.MultiMarginLoss(p=3), "only p == 1 and p == 2 supported"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [5]), "cutoffs should be a sequence of unique, positive integers"),
        (lambda: nn.LSTM(2, 3, dropout=2), "dropout should be a number in range"),
        (lambda: nn.LSTM(2, 3, proj_size=3), "proj_size has to be smaller than hidden_size"),
        (lambda: nn.GRU(2, 3, proj_size=1), "proj_size argument is only supported for LSTM"),
        (lambda: nn.RNN(2, 3, nonlinearity="other"), "Unknown nonlinearity 'other'"),
        (lambda: nn.MultiheadAttention(0, 1), "must be greater than 0"),
        (lambda: nn.RNNCell(2, 3)(torch.ones(1, 1, 2)), "Expected input to be 1D or 2D"),
        (lambda: nn.InstanceNorm1d(3, affine=True)(torch.ones(2, 2, 4)), "to match num_features"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            call()


def test_recurrent_networks_refuse(torch: Any) -> None:
    rnn, lstm = torch.nn.RNN(2, 3), torch.nn.LSTM(2, 3)
    for settings, text in (
        ({"bias": 1}, "bias should be of type bool, got: int"),
        ({"batch_first": "yes"}, "batch_first should be of type bool, got: str"),
        ({"input_size": 2.0}, "input_size should be of type int, got: float"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=text):
            torch.nn.GRU(**{"input_size": 2, "hidden_size": 3, **settings})
    with pytest.raises(ValueError, match="input_size must be greater than zero"):
        torch.nn.LSTM(0, 3)
    with pytest.raises(RuntimeError, match="Input batch size 3 doesn't match hidden0 batch size 5"):
        torch.nn.GRUCell(2, 3)(torch.ones(3, 2), torch.ones(5, 3))
    for call, text in (
        (lambda: rnn(torch.ones(4, 1, 5)), "input.size\\(-1\\) must be equal to input_size. Expected 2, got 5"),
        (lambda: rnn(torch.ones(4, 1, 2), torch.ones(1, 2, 3)), "Expected hidden size \\(1, 1, 3\\), got"),
        (lambda: rnn(torch.ones(4, 1, 2), torch.ones(1, 3)), "For batched 3-D input, hx should also be 3-D"),
        (lambda: lstm(torch.ones(4, 1, 2), (torch.ones(1, 1, 3), torch.ones(1, 1, 4))), "Expected hidden\\[1\\] size"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last recurrent layer"):
        torch.nn.GRU(2, 3, dropout=0.5)


def test_pools_refuse_images_without_channels(torch: Any) -> None:
    nn = torch.nn
    for pool, x in (
        (nn.AdaptiveMaxPool1d(2), torch.ones(1, 0, 3)), (nn.AdaptiveMaxPool2d(2), torch.ones(1, 0, 3, 3)),
        (nn.AdaptiveMaxPool3d(2), torch.ones(1, 2, 0, 3, 3)), (nn.FractionalMaxPool2d(2, 2), torch.ones(1, 0, 3, 3)),
        (nn.FractionalMaxPool3d(2, 2), torch.ones(1, 0, 3, 3, 3)),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="Expected input to have non-zero size for non-batch dimensions"):
            pool(x)
    assert nn.AdaptiveMaxPool2d(2)(torch.ones(0, 2, 3, 3)).shape == (0, 2, 2, 2)
    with pytest.raises(RuntimeError, match="strides should be greater than zero"):
        nn.MaxUnpool3d(1, stride=0)(torch.ones(1, 1, 1, 1, 1), torch.zeros(1, 1, 1, 1, 1, dtype=torch.int64))


def test_nothing_to_attend_and_nothing_to_norm(torch: Any) -> None:
    layer = torch.nn.TransformerDecoderLayer(4, 2, 8)
    assert layer(torch.ones(5, 0, 4), torch.ones(3, 0, 4)).shape == (5, 0, 4)
    assert torch.nn.LayerNorm(()).weight.shape == ()
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        assert torch.nn.Linear(1, 1).to(torch.complex64).weight.dtype == torch.complex64


@pytest.mark.parametrize(
    ("name", "shape", "said"),
    [
        ("dropout2d", (2, 3), "Received a 2-D input to dropout2d"),
        ("dropout2d", (2, 3, 4), "assuming that channel-wise 1D dropout behavior is desired"),
        ("dropout3d", (2, 3, 4), "Received a 3-D input to dropout3d"),
        ("dropout3d", (1, 2, 2, 2, 2, 2), "Received a 6-D input to dropout3d"),
    ],
)
def test_dropout_of_other_shapes_is_warned_of(torch: Any, name: str, shape: tuple[int, ...], said: str) -> None:
    function = getattr(torch.nn.functional, name)
    with pytest.warns(UserWarning, match=said):
        function(torch.ones(shape))
    with warnings.catch_warnings():  # and is an error for who has said so, as it is
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=said):
            function(torch.ones(shape))


def test_tensors_without_memory_are_not_shared(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="share memory on an uninitialized"):
        torch.nn.LazyLinear(3).share_memory()


@pytest.mark.parametrize("shape, size", [
    ((2, 3, 7, 9), (3, 4)), ((2, 3, 7, 9), (10, 12)), ((3, 40, 30), (1, 1)), ((3, 40, 30), (2, 7)),
    ((2, 50, 40), (1, 3)), ((1, 2, 1000, 3), (1, 2)), ((2, 3, 5, 6, 7), (2, 3, 4)), ((2, 3, 5, 6, 7), (1, 1, 1)),
])  # fmt: skip
def test_adaptive_maxima_of_any_sizes(torch: Any, shape: Any, size: Any) -> None:
    """Of equal elements the first one in memory is the maximum, of several NaN the last one."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, shape).astype(np.float32)
    for lost in (False, True):
        if lost:
            values[rng.random(shape) < 0.1] = np.nan
        pool = getattr(torch.nn.functional, f"adaptive_max_pool{len(size)}d")
        maxima, places = pool(torch.from_numpy(values), size, return_indices=True)
        planes = values.reshape(-1, *shape[len(shape) - len(size) :])
        expected = []
        for plane in planes:
            for cell in np.ndindex(*size):
                part = tuple(
                    slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(cell, plane.shape, size, strict=True)
                )
                window, where = plane[part].reshape(-1), np.arange(plane.size).reshape(plane.shape)[part].reshape(-1)
                nan = np.flatnonzero(np.isnan(window))
                expected.append(where[nan[-1] if nan.size else window.argmax()])
        np.testing.assert_array_equal(places.reshape(-1), expected)
        flat = planes.reshape(len(planes), -1)
        np.testing.assert_array_equal(
            maxima.reshape(len(planes), -1), np.take_along_axis(flat, places.reshape(len(planes), -1).numpy(), 1)
        )


def test_adaptive_pools_of_no_windows(torch: Any) -> None:
    for dims, kind in ((1, "avg"), (2, "avg"), (3, "avg"), (1, "max"), (2, "max"), (3, "max")):
        x = torch.ones(2, 3, *[4] * dims, requires_grad=True)
        result = getattr(torch.nn.functional, f"adaptive_{kind}_pool{dims}d")(x, 0)
        assert result.numel() == 0
        with pytest.raises(RuntimeError, match="Expected grad_output to have non-zero size for non-batch dimensions"):
            result.sum().backward()


def test_norms_of_many_elements_are_exact(torch: Any) -> None:
    """Sums of millions of squares in single precision."""
    x = np.random.default_rng(0).random((2, 1 << 22), dtype=np.float32)
    exact = x.astype(np.float64)
    exact = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    functional, given = torch.nn.functional, torch.from_numpy(x)
    np.testing.assert_allclose(functional.layer_norm(given, [1 << 22]), exact, atol=2e-6)
    np.testing.assert_allclose(functional.group_norm(given.view(2, 4, 1 << 20), 1).view(2, -1), exact, atol=2e-6)


@pytest.mark.parametrize("dtype, error", [("bfloat16", 0.01), ("float16", 0.0015)])
def test_gradients_of_softmax_in_half_precision_are_rounded_once(torch: Any, dtype: str, error: float) -> None:
    rng = np.random.default_rng(0)
    x, grad = (torch.from_numpy(rng.normal(size=(3, 20000)).astype(np.float32)) for _ in range(2))
    for function in (torch.softmax, torch.log_softmax):
        found = []
        for kind in (dtype, "float32"):
            leaf = x.to(getattr(torch, dtype)).to(getattr(torch, kind)).requires_grad_()
            function(leaf, 0).backward(grad.to(getattr(torch, dtype)).to(leaf.dtype))
            found.append(leaf.grad.float())
        assert (found[0] - found[1]).abs().max() < error * (1 if function is torch.softmax else 3)


def test_running_statistics_have_no_tangent(torch: Any) -> None:
    forward, batch_norm = torch.autograd.forward_ad, torch.nn.functional.batch_norm
    x, mean, var = torch.arange(30.0).view(3, 2, 5), torch.zeros(2), torch.ones(2)
    with forward.dual_level():
        duals = [forward.make_dual(t, torch.ones_like(t)) for t in (x, mean, var)]
        for given in ((duals[0], duals[1], var), (duals[0], mean, duals[2])):
            with pytest.raises(RuntimeError, match="not differentiable wrt running_mean and running_var"):
                batch_norm(*given)
        assert batch_norm(x, duals[1], duals[2]).shape == batch_norm(*duals, training=True).shape == x.shape


def test_bags_of_a_table_of_matrices(torch: Any) -> None:
    with pytest.raises(ValueError, match="weight has to be a 2D Tensor"):
        torch.nn.functional.embedding_bag(torch.tensor([2, 2]), torch.zeros(2, 2, 2), torch.tensor([0, 0]))


def test_adaptive_maxima_of_more_than_there_is_memory_for(torch: Any) -> None:
    with pytest.raises(RuntimeError):
        torch.nn.functional.adaptive_max_pool1d(torch.ones(2, 2, 2), 0x3FFFFFFFFFFFFFFF)


@pytest.mark.parametrize("shape, target, message", [
    ((2, 3, 5), (2, 4), r"Expected target size \[2, 5\], got \[2, 4\]"),
    ((2, 3, 4, 5), (2, 4, 6), "size mismatch"),
    ((2, 3, 2, 4, 5), (2, 2, 4, 6), r"Expected target size \[2, 2, 4, 5\], got \[2, 2, 4, 6\]"),
])  # fmt: skip
def test_targets_of_another_size(torch: Any, shape: Any, target: Any, message: str) -> None:
    for loss in (torch.nn.functional.cross_entropy, torch.nn.functional.nll_loss):
        with pytest.raises(RuntimeError, match=message):
            loss(torch.zeros(shape), torch.zeros(target).long())


def test_delta_of_huber_loss_is_a_number(torch: Any) -> None:
    for wrong in (1 + 0j, "1", None):
        with pytest.raises(TypeError, match="delta must be a float or int"):
            torch.nn.HuberLoss(delta=wrong)
