"""The transformer, and the layers it is made of."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from ...backends.mha import get_fastpath_enabled
from ...core.state import local
from ...ops import namespace as ops
from ...tensor import Tensor
from .. import functional as F
from ..init import xavier_uniform_
from .activation import GELU, MultiheadAttention, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _which_activation(activation: Any) -> int:
    return 1 if activation is F.relu or isinstance(activation, ReLU) else int(
        activation is F.gelu or isinstance(activation, GELU)
    ) * 2


def _copies(module: Module, n: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    return ops.triu(ops.full((size, size), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _is_causal(mask: Tensor | None, is_causal: bool | None, length: int) -> bool:
    """Is the mask the one that hides the future? Looked up where nobody has said."""
    if is_causal is not None or mask is None:
        return is_causal is True
    usual = _causal_mask(length, mask.device, mask.dtype if mask.is_floating_point() else None)
    if mask.shape != usual.shape:
        return False
    return bool((mask == (usual if mask.is_floating_point() else usual != 0)).all())


class Transformer(Module):
    """An encoder of `src` and a decoder of `tgt` that attends to what the encoder gave.

    >>> import retrograd as torch
    >>> net = torch.nn.Transformer(8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16)
    >>> net(torch.ones(5, 3, 8), torch.ones(4, 3, 8)).shape
    torch.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        settings = (dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is None:
            layer = TransformerEncoderLayer(d_model, nhead, *settings, **where)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(d_model, nhead, *settings, **where)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
            custom_decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The mask that hides the future: minus infinity above the diagonal.

        >>> import retrograd as torch
        >>> torch.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _causal_mask(sz, device, dtype)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        if src.dim() == 3:
            batch = 0 if self.batch_first else 1
            if src.size(batch) != tgt.size(batch):
                raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip


class TransformerEncoder(Module):
    """`num_layers` copies of a layer, one after the other, and a norm.

    `enable_nested_tensor`: in inference, what the layers give for padding is zero, if each sequence ends with its
    padding.  (Torch packs sequences to skip it; here it is computed, and overwritten.)
    """

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers: ModuleList = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        reason = _why_not_nested(encoder_layer) if enable_nested_tensor else ""
        if reason:
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {reason}: padding is "
                "computed in inference, too. With enable_nested_tensor=False there is no warning",
                stacklevel=2,
            )
        self.use_nested_tensor: bool = enable_nested_tensor and not reason
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        causal = _is_causal(mask, is_causal, _length(self.layers, src)) if len(self.layers) else False
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        if src_key_padding_mask is not None and mask is None and self._skips(src, src_key_padding_mask):
            output = output.masked_fill(_is_padding(src_key_padding_mask).unsqueeze(-1), 0.0)  # type: ignore[attr-defined]
        return output if self.norm is None else self.norm(output)

    def _skips(self, src: Tensor, padding: Tensor) -> bool:
        """Would torch skip this padding?"""
        first = self.layers[0]
        if not getattr(self, "use_nested_tensor", False) or first.training or src.dim() != 3:
            return False
        if not get_fastpath_enabled() or src.is_nested or src.is_meta:
            return False
        if local.state.grad_enabled and (src.requires_grad or any(p.requires_grad for p in first.parameters())):
            return False
        hidden = _is_padding(padding)
        return bool((hidden[:, 1:] >= hidden[:, :-1]).all())  # each sequence ends with its padding


def _is_padding(mask: Tensor) -> Tensor:
    return mask != 0 if mask.is_floating_point() else mask.bool()  # type: ignore[attr-defined]


def _why_not_nested(layer: Any) -> str:
    """Why torch would not skip the padding of sequences that go through such layers; empty if it would."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    for holds, reason in (
        (not layer.norm_first, "norm_first was True"),
        (
            attention.batch_first,
            "self_attn.batch_first was not True (use batch_first for better inference performance)",
        ),
        (attention._qkv_same_embed_dim, "self_attn._qkv_same_embed_dim was not True"),
        (attention.in_proj_bias is not None, "self_attn was passed bias=False"),
        (layer.activation_relu_or_gelu, "activation_relu_or_gelu was not True"),
        (layer.norm1.eps == layer.norm2.eps, "norm1.eps was not equal to encoder_layer.norm2.eps"),
        (attention.num_heads % 2 == 0, "self_attn.num_heads is odd"),
    ):
        if not holds:
            return f"encoder_layer.{reason}"
    return ""


class TransformerDecoder(Module):
    """`num_layers` copies of a layer that attends to `memory`, one after the other, and a norm."""

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers: ModuleList = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(self.layers, tgt)) if len(self.layers) else False
        output = tgt
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


def _length(layers: Any, x: Tensor) -> int:
    first = getattr(layers[0], "self_attn", None)
    return x.size(1 if x.dim() == 3 and getattr(first, "batch_first", False) else 0)


class _Layer(Module):
    """What both kinds of layers share: self-attention, then two linear layers with an activation between them."""

    def _make(
        self, attentions: tuple[str, ...], d_model: int, nhead: int, dim_feedforward: int, dropout: float,
        activation: Activation, layer_norm_eps: float, batch_first: bool, norm_first: bool, bias: bool, where: Any,
    ) -> None:  # fmt: skip
        for name in attentions:
            attention = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **where)
            setattr(self, name, attention)
        self.linear1: Linear = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout: Dropout = Dropout(dropout)
        self.linear2: Linear = Linear(dim_feedforward, d_model, bias=bias, **where)
        self.norm_first = norm_first
        blocks = range(1, len(attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation: Callable[[Tensor], Tensor] = _activation(activation)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("norm_first", False)
        if "activation" not in self.__dict__ and "activation" not in self._modules:
            self.activation = F.relu
        if isinstance(self, TransformerEncoderLayer):
            self.__dict__.setdefault("activation_relu_or_gelu", _which_activation(self.activation))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        x = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )[0]
        return self.dropout1(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _blocks(self, x: Tensor, blocks: list[Callable[[Tensor], Tensor]]) -> Tensor:
        """``x`` plus what each block makes of it, normed before each or after each."""
        for i, block in enumerate(blocks, 1):
            norm = getattr(self, f"norm{i}")
            x = x + block(norm(x)) if self.norm_first else norm(x + block(x))
        return x


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, each added to its input and normed."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        settings = (dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self._make(("self_attn",), d_model, nhead, *settings, where)
        #: 1 for ReLU, 2 for GELU, 0 for any other activation.
        self.activation_relu_or_gelu: int = _which_activation(self.activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        return self._blocks(
            src,
            [
                lambda x: self._sa_block(x, src_mask, src_key_padding_mask, is_causal),
                lambda x: self.dropout2(self._ff_block(x)),
            ],
        )


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to `memory` and a feed-forward network, each added to its input and normed."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        settings = (dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self._make(("self_attn", "multihead_attn"), d_model, nhead, *settings, where)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        return self._blocks(
            tgt,
            [
                lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal),
                lambda x: self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal),
                lambda x: self.dropout3(self._ff_block(x)),
            ],
        )

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        x = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal,
            need_weights=False,
        )[0]  # fmt: skip
        return self.dropout2(x)
