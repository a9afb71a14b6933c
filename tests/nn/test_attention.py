"""Attention: masks that are causal, the paths of inference, and which implementations are allowed."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

SHUT = [[0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]]  # the second sequence is nothing but padding


def _filled(torch: Any, module: Any) -> Any:
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(size=tuple(parameter.shape)).astype(np.float32)) * 0.3)
    return module.eval()


def _input(torch: Any) -> Any:
    return torch.from_numpy(np.random.default_rng(0).normal(size=(3, 4, 8)).astype(np.float32))


@pytest.fixture
def attention(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.nn.attention")


@pytest.fixture
def bias(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.nn.attention.bias")


@pytest.mark.parametrize("queries, keys", [(3, 3), (2, 5), (5, 2)])
def test_causal_biases(torch: Any, bias: Any, queries: int, keys: int) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (torch.from_numpy(rng.normal(size=(1, 2, n, 4))) for n in (queries, keys, keys))
    attend = torch.nn.functional.scaled_dot_product_attention
    upper = bias.causal_upper_left(queries, keys)
    np.testing.assert_allclose(attend(q, k, v, upper), attend(q, k, v, is_causal=True), rtol=1e-12)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        lower = bias.causal_lower_right(queries, keys)
    assert [str(w.message)[:24] for w in heard] == ["Lower right causal bias "] * (queries > keys)
    expected = np.tri(queries, keys, keys - queries, dtype=bool)
    np.testing.assert_array_equal(lower._materialize(), expected)
    np.testing.assert_allclose(attend(q, k, v, lower), attend(q, k, v, torch.from_numpy(expected)), rtol=1e-12)
    assert repr(lower) == repr(torch.from_numpy(expected)) and lower.variant is bias.CausalVariant.LOWER_RIGHT
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        attend(q, k, v, upper, is_causal=True)
    with pytest.raises(AssertionError, match="causal_upper_left only supports 2D tensors"):
        bias.causal_upper_left(3)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant"):
        bias.CausalBias(1, 2, 3)


@pytest.mark.parametrize("batch_first", [True, False])
def test_what_sees_nothing(torch: Any, batch_first: bool) -> None:
    """In inference, sequences first, a softmax over nothing is NaN; elsewhere such a query gives zeros."""
    layer = _filled(torch, torch.nn.MultiheadAttention(8, 2, batch_first=batch_first))
    x, padding = _input(torch), torch.tensor(SHUT).bool()
    given = x if batch_first else x.transpose(0, 1)
    for recorded in (True, False):
        with torch.set_grad_enabled(recorded):
            result, none = layer(given, given, given, key_padding_mask=padding, need_weights=False)
            lost = torch.isnan(result if batch_first else result.transpose(0, 1)).any(-1).any(-1).tolist()
            assert lost == [False, batch_first and not recorded, False] and none is None
            _, weights = layer(given, given, given, key_padding_mask=padding)
            assert weights.isnan().any(-1).any(-1).tolist() == [False, True, False]


@pytest.mark.parametrize("norm", [True, False])
def test_padding_of_an_encoder_in_inference_is_zero(torch: Any, norm: bool) -> None:
    nn = torch.nn
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, nn.LayerNorm(8) if norm else None
    )
    encoder, x = _filled(torch, encoder), _input(torch)
    for mask in (SHUT, [[1, 0, 0, 1], [0, 1, 1, 1], [0, 0, 0, 0]]):  # the latter does not end with its padding
        padding = torch.tensor(mask).bool()
        plain = encoder(x, src_key_padding_mask=padding).detach()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's about nested tensors
            result = encoder(x, src_key_padding_mask=padding)
        kept = ~padding
        np.testing.assert_allclose(result[kept], plain[kept], atol=1e-5)
        skipped = mask is SHUT
        zero = encoder.norm.bias.detach() if norm else torch.zeros(8)
        assert torch.allclose(result[padding], zero.expand(result[padding].shape)) == skipped


@pytest.mark.parametrize("settings, reason", [
    ({"batch_first": True}, None), ({}, "self_attn.batch_first was not True"),
    ({"batch_first": True, "norm_first": True}, "norm_first was True"),
    ({"batch_first": True, "bias": False}, "self_attn was passed bias=False"),
    ({"batch_first": True, "activation": abs}, "activation_relu_or_gelu was not True"),
    ({"batch_first": True, "nhead": 1}, "self_attn.num_heads is odd"),
])  # fmt: skip
def test_encoders_say_why_they_compute_padding(torch: Any, settings: Any, reason: str | None) -> None:
    layer = torch.nn.TransformerEncoderLayer(8, **{"nhead": 2, **settings})
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        encoder = torch.nn.TransformerEncoder(layer, 1)
        assert encoder.use_nested_tensor == (reason is None)
        torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    assert [f"because encoder_layer.{reason}" in str(w.message) for w in heard] == [True] * (reason is not None)


def test_nested_sequences(torch: Any) -> None:
    layer = _filled(torch, torch.nn.MultiheadAttention(8, 2, batch_first=True))
    x = _input(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([x[0], x[1][:2]])
    with pytest.raises(AssertionError, match=r"outside of its fast path.*grad is enabled and.*or biases requires_grad"):
        layer(nested, nested, nested)
    with torch.no_grad():
        result, weights = layer(nested, nested, nested)
        for part, one in zip(result.unbind(), nested.unbind(), strict=True):
            expected, of_one = layer(one[None], one[None], one[None])
            np.testing.assert_allclose(part, expected[0], atol=1e-6)
        assert weights.shape == (2, 4, 4) and not weights[1, 2:].any()
        np.testing.assert_allclose(weights[1, :2, :2], of_one[0], atol=1e-6)
        with pytest.raises(AssertionError, match="outside of its fast path"):
            layer.train()(nested, nested, nested)


def test_a_causal_hint_stands_for_the_mask(torch: Any) -> None:
    """Where weights are not asked for, the mask beside it is not read."""
    layer = _filled(torch, torch.nn.MultiheadAttention(8, 2))
    x = _input(torch)[:1]
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4)
    result, _ = layer(x, x, x, attn_mask=mask, need_weights=False, is_causal=True)
    assert result.shape == x.shape
    with pytest.raises(RuntimeError, match="shape of the 2D attn_mask"):
        layer(x, x, x, attn_mask=mask, is_causal=True)


def test_which_implementations_are_allowed(torch: Any, attention: Any) -> None:
    x = torch.ones(1, 2, 3, 4)
    attend, kinds = torch.nn.functional.scaled_dot_product_attention, attention.SDPBackend
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where torch says why
        with attention.sdpa_kernel([kinds.MATH, kinds.EFFICIENT_ATTENTION]):
            assert attend(x, x, x).shape == attend(x, x, x, dropout_p=0.5).shape == x.shape
            assert not torch.backends.cuda.flash_sdp_enabled()
        with attention.sdpa_kernel(kinds.FLASH_ATTENTION):
            assert attend(x, x, x).shape == x.shape
            for call in (lambda: attend(x[0], x[0], x[0]), lambda: attend(x, x, x, dropout_p=0.5)):
                with pytest.raises(RuntimeError, match="No available kernel"):
                    call()
        with attention.sdpa_kernel(kinds.EFFICIENT_ATTENTION), pytest.raises(RuntimeError, match="No viable backend"):
            attend(x, x, x)
    assert attend(x[0], x[0], x[0]).shape == x[0].shape and torch.backends.cuda.flash_sdp_enabled()
