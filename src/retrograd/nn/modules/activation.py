"""Activations as modules; each is the function of the same name in ``functional``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...backends.mha import get_fastpath_enabled
from ...core.state import local
from ...ops import namespace as ops
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear, new_parameter
from .module import Module


class _Plain(Module):
    """An activation without settings."""

    _function: Callable[[Tensor], Tensor]

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input)


class Sigmoid(_Plain):
    """``1 / (1 + exp(-input))``."""

    _function = staticmethod(F.sigmoid)


class Tanh(_Plain):
    """The hyperbolic tangent."""

    _function = staticmethod(F.tanh)


class LogSigmoid(_Plain):
    """The logarithm of the sigmoid."""

    _function = staticmethod(F.logsigmoid)


class Softsign(_Plain):
    """``input / (1 + abs(input))``."""

    _function = staticmethod(F.softsign)


class Tanhshrink(_Plain):
    """``input - tanh(input)``."""

    _function = staticmethod(F.tanhshrink)


class _MaybeInplace(Module):
    """An activation that may write over its input."""

    _function: Callable[..., Tensor]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_MaybeInplace):
    """The positive part.

    >>> import retrograd as torch
    >>> torch.nn.ReLU()(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """

    _function = staticmethod(F.relu)


class SiLU(_MaybeInplace):
    """The input times its sigmoid."""

    _function = staticmethod(F.silu)


class Mish(_MaybeInplace):
    """The input times the tanh of its softplus."""

    _function = staticmethod(F.mish)


class SELU(_MaybeInplace):
    """`ELU` scaled so that a normal distribution keeps its mean and variance."""

    _function = staticmethod(F.selu)


class Hardsigmoid(_MaybeInplace):
    """``clamp(input + 3, 0, 6) / 6``."""

    _function = staticmethod(F.hardsigmoid)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_MaybeInplace):
    """The input times its `Hardsigmoid`."""

    _function = staticmethod(F.hardswish)

    def extra_repr(self) -> str:
        return ""


class _Sloped(Module):
    """An activation with one number, named in `_setting`, that may write over its input."""

    _function: Callable[..., Tensor]
    _setting: str

    def __init__(self, value: float, inplace: bool) -> None:
        super().__init__()
        setattr(self, self._setting, value)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input, getattr(self, self._setting), self.inplace)

    def extra_repr(self) -> str:
        return f"{self._setting}={getattr(self, self._setting)}" + (", inplace=True" if self.inplace else "")


class LeakyReLU(_Sloped):
    """The positive part plus `negative_slope` times the negative part."""

    _function = staticmethod(F.leaky_relu)
    _setting = "negative_slope"

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(negative_slope, inplace)


class ELU(_Sloped):
    """The positive part, and ``alpha * (exp(input) - 1)`` where the input is negative."""

    _function = staticmethod(F.elu)
    _setting = "alpha"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha, inplace)


class CELU(_Sloped):
    """`ELU` made continuously differentiable for every `alpha`."""

    _function = staticmethod(F.celu)
    _setting = "alpha"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha, inplace)


class Hardtanh(Module):
    """Clamped between `min_val` and `max_val`."""

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, value in (("min_value", min_value), ("max_value", max_value)):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{old[:-2]}`", FutureWarning, stacklevel=2
                )
        min_val = min_val if min_value is None else min_value
        max_val = max_val if max_value is None else max_value
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be larger than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """Clamped between 0 and 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class RReLU(Module):
    """`LeakyReLU` with slopes drawn between `lower` and `upper` in training, and their mean else."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """The input where it is above `threshold`, else `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """The input times the normal distribution function of it, or (``"tanh"``) an approximation."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """``log(1 + exp(beta * input)) / beta``, and the input itself where ``beta * input`` is above `threshold`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _Shrink(Module):
    _function: Callable[..., Tensor]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(_Shrink):
    """The input moved towards zero by `lambd`, and zero where it is nearer to it than that."""

    _function = staticmethod(F.softshrink)


class Hardshrink(_Shrink):
    """The input, with zero where it is not farther from it than `lambd`."""

    _function = staticmethod(F.hardshrink)


class PReLU(Module):
    """`LeakyReLU` with a learned slope, one or one for each channel."""

    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(ops.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the first slope."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _AlongDim(Module):
    """An activation along one dimension."""

    _function: Callable[..., Tensor]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """``exp(input)`` divided by its sum along `dim`.

    >>> import retrograd as torch
    >>> torch.nn.Softmax(dim=0)(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    _function = staticmethod(F.softmax)


class Softmin(_AlongDim):
    """`Softmax` of ``-input``."""

    _function = staticmethod(F.softmin)


class LogSoftmax(_AlongDim):
    """The logarithm of `Softmax`, without its loss of precision."""

    _function = staticmethod(F.log_softmax)


class GLU(_AlongDim):
    """One half of the input times the sigmoid of the other, halved along `dim`."""

    _function = staticmethod(F.glu)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)


class Softmax2d(Module):
    """`Softmax` over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class MultiheadAttention(Module):
    """Attention of several heads with projections before and after: of `query` to `key`, giving sums of `value`.

    >>> import retrograd as torch
    >>> attend = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.ones(3, 5, 8)
    >>> result, weights = attend(x, x, x)
    >>> result.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 5, 5]))
    """

    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        self.embed_dim = embed_dim
        self.kdim: int = embed_dim if kdim is None else kdim
        self.vdim: int = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim: int = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        # Queries, keys and values of one width are projected by one weight.
        parts = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        made = {"in_proj_weight": (3 * embed_dim, embed_dim)} if self._qkv_same_embed_dim else {
            name: (embed_dim, width) for name, width in parts.items()
        }  # fmt: skip
        for name, shape in made.items():
            self.register_parameter(name, new_parameter(*shape, device=device, dtype=dtype))
        for name in parts if self._qkv_same_embed_dim else ("in_proj_weight",):
            self.register_parameter(name, None)
        self.register_parameter(
            "in_proj_bias", new_parameter(3 * embed_dim, device=device, dtype=dtype) if bias else None
        )
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = self.bias_v = None
        if add_bias_kv:
            self.bias_k = new_parameter(1, 1, embed_dim, device=device, dtype=dtype)
            self.bias_v = new_parameter(1, 1, embed_dim, device=device, dtype=dtype)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)  # type: ignore[arg-type]
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # which older versions did not write down
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if query.is_nested or key.is_nested or value.is_nested:
            return self._forward_nested(query, key, value, key_padding_mask, need_weights, attn_mask)
        masked = key_padding_mask is not None or attn_mask is not None
        # There torch's softmax gives NaN for a query that sees no key: as where weights are asked for, and not as where
        # they are not.
        plain = masked and not need_weights and not self._why_not_fast(query, key, value, key_padding_mask, attn_mask)
        swapped = self.batch_first and query.dim() == 3
        if swapped:
            # What is one tensor stays one: it is projected at once.
            turned = {id(x): x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = (turned[id(x)] for x in (query, key, value))
        result, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights or plain,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return result.transpose(0, 1) if swapped else result, None if plain else weights

    def _why_not_fast(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None
    ) -> str:
        """Why torch would not take the path that it has for inference; empty if it would."""
        given = (query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias)
        for holds, reason in (
            (get_fastpath_enabled(), "torch.backends.mha.get_fastpath_enabled() was not True"),
            (query.dim() == 3, f"input not batched; expected query.dim() of 3 but got {query.dim()}"),
            (query is key is value, "non-self attention was used (query, key, and value are not the same Tensor)"),
            (self.in_proj_weight is not None, "in_proj_weight was None"),
            (self.in_proj_bias is not None, "in_proj_bias was None"),
            (not self.training, "training is enabled"),
            (self.num_heads % 2 == 0, "self.num_heads is not even"),
            (self.batch_first, "batch_first was not True"),
            (self.bias_k is None and self.bias_v is None, "self.bias_k or self.bias_v was not None"),
            (not self.add_zero_attn, "add_zero_attn was enabled"),
            (
                not any(mask is not None and mask.is_floating_point() for mask in (key_padding_mask, attn_mask)),
                "floating-point masks are not supported for fast path.",
            ),
            (
                not local.state.grad_enabled or not any(x is not None and x.requires_grad for x in given),
                "grad is enabled and at least one of query or the input/output projection weights or biases "
                "requires_grad",
            ),
        ):
            if not holds:
                return reason
        return ""

    def _forward_nested(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, need_weights: bool,
        attn_mask: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Each component by itself, in inference."""
        reason = self._why_not_fast(query, key, value, key_padding_mask, attn_mask)
        if key_padding_mask is not None or attn_mask is not None:
            reason = "masks are not supported with NestedTensor input"
        if not hasattr(query, "pack"):  # of the jagged layout
            reason = "some Tensor argument has_torch_function"
        if reason:
            raise AssertionError(
                "MultiheadAttention does not support NestedTensor outside of its fast path. The fast path was not hit "
                f"because {reason}"
            )
        found = [self.forward(x, x, x, need_weights=need_weights) for x in query.unbind()]  # type: ignore[attr-defined]
        result = type(query).pack([part for part, _ in found])  # type: ignore[attr-defined]
        if not need_weights:
            return result, None
        most = max(len(part) for part, _ in found)
        padded = [F.pad(weights, (0, most - len(part)) * 2) for part, weights in found]  # type: ignore[arg-type]
        return result, ops.stack(padded)
