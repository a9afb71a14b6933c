"""Parametrizations, pruning, weight and spectral norm, and the other tools of nn.utils: true of torch as well."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any

import pytest


def symmetric(torch: Any) -> Any:
    class Symmetric(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    return Symmetric()


def test_parametrized_weight(torch: Any) -> None:
    parametrize = torch.nn.utils.parametrize
    m = torch.nn.Linear(3, 3)
    original = m.weight
    parametrize.register_parametrization(m, "weight", symmetric(torch))
    assert type(m).__name__ == "ParametrizedLinear" and parametrize.type_before_parametrizations(m) is torch.nn.Linear
    assert m.parametrizations.weight.original is original and (m.weight == m.weight.mT).all()
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original"]
    m(torch.ones(3)).sum().backward()
    assert original.grad is not None
    m.weight = torch.eye(3)
    assert (m.weight == torch.eye(3)).all() and (original == torch.eye(3)).all()
    with parametrize.cached():
        assert m.weight is m.weight
    assert m.weight is not m.weight
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(m)
    copied = copy.deepcopy(m)
    assert (copied.weight == m.weight).all() and copied.parametrizations.weight.original is not original
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is torch.nn.Linear and m.weight is original and not parametrize.is_parametrized(m)
    with pytest.raises(ValueError, match="does not have a parametrization on"):
        parametrize.remove_parametrizations(m, "weight")
    with pytest.raises(ValueError, match="does not have a parameter, a buffer"):
        parametrize.register_parametrization(m, "nothing", symmetric(torch))


def test_parametrizations_may_not_change_the_shape(torch: Any) -> None:
    class Cut(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x[1:]

    m = torch.nn.Linear(2, 3)
    register = torch.nn.utils.parametrize.register_parametrization
    with pytest.raises(ValueError, match="may not change the shape"):
        register(m, "weight", Cut())
    assert isinstance(m.weight, torch.nn.Parameter) and type(m) is torch.nn.Linear
    register(m, "weight", Cut(), unsafe=True)
    assert m.weight.shape == (2, 2)
    with pytest.raises(ValueError, match="may not change the shape"):
        register(m, "weight", Cut())


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(torch: Any, kind: str, shape: tuple[int, int], trivial: bool) -> None:
    torch.manual_seed(0)
    m = torch.nn.Linear(shape[1], shape[0]).double()
    torch.nn.init.orthogonal_(m.weight)
    start = m.weight.detach().clone()
    torch.nn.utils.parametrizations.orthogonal(m, orthogonal_map=kind, use_trivialization=trivial)
    q = m.weight
    identity = torch.eye(min(shape), dtype=torch.float64)
    assert torch.allclose(q @ q.mT if shape[0] < shape[1] else q.mT @ q, identity)
    if trivial or kind == "householder":
        assert torch.allclose(q, start)  # an orthogonal weight is where it starts
    m(torch.ones(shape[1], dtype=torch.float64)).sum().backward()
    grad = m.parametrizations.weight.original.grad
    assert grad.shape == shape and grad.isfinite().all()


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_old_and_new(torch: Any, dim: int | None) -> None:
    torch.manual_seed(0)
    m = torch.nn.Conv1d(2, 3, 4).double()
    before = m.weight.detach().clone()
    new = torch.nn.utils.parametrizations.weight_norm(copy.deepcopy(m), dim=dim)
    assert torch.allclose(new.weight, before)
    with pytest.warns(FutureWarning, match="deprecated in favor of"):
        old = torch.nn.utils.weight_norm(copy.deepcopy(m), dim=dim)
    assert sorted(old.state_dict()) == ["bias", "weight_g", "weight_v"]
    with pytest.raises(RuntimeError, match="two weight_norm hooks"), pytest.warns(FutureWarning):
        torch.nn.utils.weight_norm(old, dim=dim)
    with torch.no_grad():
        old.weight_g.mul_(2)
    x = torch.ones(1, 2, 5, dtype=torch.float64)
    new.load_state_dict(old.state_dict())
    assert torch.allclose(new(x), old(x)) and torch.allclose(new.weight, 2 * before)
    torch.nn.utils.remove_weight_norm(old)
    assert torch.allclose(old.weight, 2 * before) and sorted(old.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        torch.nn.utils.remove_weight_norm(old)


def test_spectral_norm_old_and_new(torch: Any) -> None:
    torch.manual_seed(0)
    m = torch.nn.ConvTranspose2d(3, 4, 2).double()
    new = torch.nn.utils.parametrizations.spectral_norm(copy.deepcopy(m), n_power_iterations=50)
    old = torch.nn.utils.spectral_norm(copy.deepcopy(m), n_power_iterations=50)
    x = torch.ones(1, 3, 2, 2, dtype=torch.float64)
    assert torch.allclose(new(x), old(x), atol=1e-6)
    for weight in (new.weight, old.weight):
        assert torch.linalg.matrix_norm(weight.movedim(1, 0).flatten(1), 2).item() == pytest.approx(1, abs=1e-6)
    assert sorted(old.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert old.state_dict()._metadata[""]["spectral_norm"] == {"weight.version": 1}
    torch.nn.utils.remove_spectral_norm(old)
    assert not old._state_dict_hooks and not old._forward_pre_hooks
    assert torch.allclose(old(x), new(x), atol=1e-6)
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found"):
        torch.nn.utils.remove_spectral_norm(old)


# -------------------------------------------------------------------------------------------------------------- pruning


def test_pruning(torch: Any) -> None:
    prune = importlib.import_module(torch.__name__ + ".nn.utils.prune")
    m = torch.nn.Linear(3, 2)
    with torch.no_grad():
        m.weight.copy_(torch.tensor([[1.0, -5.0, 2.0], [-3.0, 4.0, 6.0]]))
    prune.l1_unstructured(m, "weight", amount=2)
    assert m.weight_mask.tolist() == [[0, 1, 0], [1, 1, 1]] and prune.is_pruned(m)
    (hook,) = m._forward_pre_hooks.values()
    assert isinstance(hook, prune.L1Unstructured)
    m(torch.ones(3)).sum().backward()
    assert m.weight_orig.grad.tolist() == [[0, 1, 0], [1, 1, 1]]
    prune.ln_structured(m, "weight", amount=1, n=1, dim=1)  # of what is left the first column is the least
    assert m.weight_mask.tolist() == [[0, 1, 0], [0, 1, 1]]
    (container,) = m._forward_pre_hooks.values()
    assert isinstance(container, prune.PruningContainer) and len(container) == 2
    original = m.weight_orig
    prune.remove(m, "weight")
    assert m.weight is original and m.weight.tolist() == [[0, -5, 0], [0, 4, 6]] and not prune.is_pruned(m)
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        prune.remove(m, "weight")


def test_pruning_at_random_and_by_masks(torch: Any) -> None:
    prune = importlib.import_module(torch.__name__ + ".nn.utils.prune")
    m = torch.nn.Linear(10, 8)
    prune.random_unstructured(m, "weight", amount=0.25)
    assert int((m.weight_mask == 0).sum()) == 20
    prune.random_structured(m, "weight", amount=3, dim=0)
    assert int((m.weight_mask.sum(1) == 0).sum()) >= 3
    prune.custom_from_mask(m, "bias", mask=torch.tensor([0.0, 1.0] * 4))
    assert (m.bias[::2] == 0).all() and prune.identity(torch.nn.Linear(1, 1), "bias").bias_mask.item() == 1
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2))
    prune.global_unstructured([(layer, "weight") for layer in net], prune.L1Unstructured, amount=0.5)
    assert sum(int((layer.weight == 0).sum()) for layer in net) == 5


def test_refused_pruning_changes_nothing(torch: Any) -> None:
    prune = importlib.import_module(torch.__name__ + ".nn.utils.prune")
    m = torch.nn.Linear(3, 2)
    for wrong, error, text in (
        (lambda: prune.l1_unstructured(m, "weight", amount=7), ValueError, "should be smaller than the number"),
        (lambda: prune.l1_unstructured(m, "weight", amount=1.5), ValueError, "float in the range"),
        (lambda: prune.l1_unstructured(m, "weight", amount="2"), TypeError, "Invalid type for amount"),
        (lambda: prune.random_structured(m, "bias", 1, 0), ValueError, "multidimensional tensors"),
        (lambda: prune.random_structured(m, "weight", 1, 2), IndexError, "Invalid index 2"),
    ):
        with pytest.raises(error, match=text):
            wrong()
        assert list(m.state_dict()) == ["weight", "bias"] or set(m.state_dict()) == {"weight", "bias"}
        assert not m._forward_pre_hooks


# ------------------------------------------------------------------------------------------------- the rest of nn.utils


def test_packed_sequences(torch: Any) -> None:
    rnn = torch.nn.utils.rnn
    sequences = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0]), torch.tensor([6.0])]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.data.tolist() == [3, 1, 6, 4, 2, 5] and packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2] and packed.unsorted_indices.tolist() == [1, 0, 2]
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=4)
    assert padded.tolist() == [[1, 2, -1, -1], [3, 4, 5, -1], [6, -1, -1, -1]] and lengths.tolist() == [2, 3, 1]
    assert [s.tolist() for s in rnn.unpack_sequence(packed)] == [s.tolist() for s in sequences]
    assert rnn.pad_sequence(sequences, True, 0.0, "left").tolist() == [[0, 1, 2], [3, 4, 5], [0, 0, 6]]
    assert packed.double().data.dtype == torch.float64 and packed.to(torch.float32) is packed
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        rnn.pack_sequence(sequences)
    with pytest.raises(RuntimeError, match="Length of all samples has to be greater than 0"):
        rnn.pack_padded_sequence(torch.ones(2, 2), torch.tensor([2, 0]))
    with pytest.raises(ValueError, match="Expected total_length to be at least the length"):
        rnn.pad_packed_sequence(packed, total_length=2)
    with pytest.raises(RuntimeError, match="batch_sizes can not be empty"):
        rnn.unpack_sequence(rnn.PackedSequence(torch.ones(0, 5), torch.tensor([], dtype=torch.int64)))
    x = torch.ones(3, 2, 4, requires_grad=True)
    again, _ = rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 1]))
    again.sum().backward()
    assert x.grad[:, 0].sum() == 12 and x.grad[:, 1].sum() == 4


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.stateless")
def test_stateless_calls(torch: Any) -> None:
    call = torch.nn.utils.stateless.functional_call
    m = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
    m[1].weight = m[0].weight
    x, new = torch.ones(1), torch.full((1, 1), 3.0, requires_grad=True)
    zeros = {"0.bias": torch.zeros(1), "1.bias": torch.zeros(1)}
    kept = m[0].weight
    result = call(m, {"0.weight": new, **zeros}, x)
    assert result.item() == 9 and m[0].weight is kept and m[1].weight is kept
    result.backward()
    assert new.grad.item() == 6 and kept.grad is None
    with pytest.raises(ValueError, match="which are tied"):
        call(m, {"0.weight": new, "1.weight": torch.ones(1, 1)}, x)
    with pytest.raises(RuntimeError, match="Missing key"):
        call(m, {"0.weight": new}, x, strict=True)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        call(m, {"0.weight": new, "other": x, **zeros}, x, strict=True)
    call(m, {"0.weight": new, "1.other": x, "1.more": torch.nn.Parameter(x), "0.bias": None}, x)
    assert not hasattr(m[1], "other") and len(list(m.parameters())) == 3 and m[0].bias is not None
    with pytest.raises(TypeError, match=r"attribute `training`: True is not an instance of torch\.Tensor"):
        call(m, {"0.weight": new, "training": x}, x)
    assert m[0].weight is kept
    bn = torch.nn.BatchNorm1d(1)
    buffers = {"num_batches_tracked": torch.tensor(4)}
    call(bn, buffers, torch.ones(2, 1))
    assert buffers["num_batches_tracked"].item() == 5 and bn.num_batches_tracked.item() == 0


def test_fused_layers(torch: Any) -> None:
    torch.manual_seed(0)
    utils = torch.nn.utils
    for layer, bn, x, fuse in (
        (torch.nn.Conv2d(2, 3, 2), torch.nn.BatchNorm2d(3), torch.randn(2, 2, 4, 4), utils.fuse_conv_bn_eval),
        (torch.nn.Linear(2, 3, bias=False), torch.nn.BatchNorm1d(3), torch.randn(5, 2), utils.fuse_linear_bn_eval),
        (torch.nn.ConvTranspose1d(2, 3, 2), torch.nn.BatchNorm1d(3), torch.randn(2, 2, 4),
         lambda a, b: utils.fuse_conv_bn_eval(a, b, transpose=True)),
    ):  # fmt: skip
        bn(layer(x))  # so that there are statistics
        torch.nn.init.uniform_(bn.weight)
        with pytest.raises(AssertionError, match="Fusion only for eval!"):
            fuse(layer, bn)
        layer.eval(), bn.eval()
        assert torch.allclose(fuse(layer, bn)(x), bn(layer(x)), atol=1e-5)


def test_skipped_init_draws_nothing(torch: Any) -> None:
    torch.manual_seed(0)
    state = torch.get_rng_state()
    m = torch.nn.utils.skip_init(torch.nn.MultiheadAttention, 4, 2)
    assert (torch.get_rng_state() == state).all() and m.in_proj_weight.shape == (12, 4)
    with pytest.raises(RuntimeError, match="Module must support a 'device' arg"):
        torch.nn.utils.skip_init(torch.nn.ReLU)


def test_memory_formats(torch: Any) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 4), torch.nn.Conv3d(2, 3, 2))
    before = net[0].weight.detach().clone()
    torch.nn.utils.convert_conv2d_weight_memory_format(net, torch.channels_last)
    assert net[0].weight.is_contiguous(memory_format=torch.channels_last) and net[1].weight.is_contiguous()
    assert (net[0].weight == before).all()
    torch.nn.utils.convert_conv3d_weight_memory_format(net, torch.channels_last_3d)
    assert net[1].weight.is_contiguous(memory_format=torch.channels_last_3d)


def test_gradients_of_convolutions(torch: Any) -> None:
    x, w = torch.randn(1, 2, 5, requires_grad=True), torch.randn(3, 2, 3, requires_grad=True)
    y = torch.nn.functional.conv1d(x, w, stride=2, padding=1)
    grad = torch.randn(y.shape)
    y.backward(grad)
    assert torch.allclose(torch.nn.grad.conv1d_input(x.shape, w, grad, stride=2, padding=1), x.grad, atol=1e-6)
    assert torch.allclose(torch.nn.grad.conv1d_weight(x, w.shape, grad, stride=2, padding=1), w.grad, atol=1e-6)


def test_parametrizations_move_to_another_module(torch: Any) -> None:
    parametrize = torch.nn.utils.parametrize
    source, target = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    parametrize.register_parametrization(source, "weight", symmetric(torch))
    torch.nn.utils.parametrizations.weight_norm(source, "bias")
    parametrize.transfer_parametrizations_and_params(source, target, "weight")
    assert target.parametrizations.weight.original is source.parametrizations.weight.original
    assert (target.weight == source.weight).all() and "bias" not in target.parametrizations
    assert parametrize.transfer_parametrizations_and_params(torch.nn.Linear(1, 1), target) is target
