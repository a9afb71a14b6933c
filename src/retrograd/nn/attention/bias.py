"""``torch.nn.attention.bias``: causal masks for queries and keys of different numbers."""

from __future__ import annotations

import warnings
from enum import IntEnum, auto
from typing import Any

from ...core import dtypes
from ...ops import factories
from ...tensor import Tensor
from ...tensor.overriding import disabled_torch_function

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Which corner of the scores the diagonal goes through, below which a query sees a key."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A mask of `scaled_dot_product_attention`: each query sees the keys up to its own place.

    Places are counted from the first ones (`CausalVariant.UPPER_LEFT`, what ``is_causal=True`` means) or from the last
    ones (`CausalVariant.LOWER_RIGHT`, where queries continue what the keys have begun).

    >>> from retrograd.nn.attention.bias import CausalBias, CausalVariant
    >>> CausalBias(CausalVariant.LOWER_RIGHT, 2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    __torch_function__ = disabled_torch_function  # type: ignore[assignment]
    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        right = variant is CausalVariant.LOWER_RIGHT
        if right and seq_len_q > seq_len_kv:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv! The first "
                f"{seq_len_q - seq_len_kv} queries see no key",
                stacklevel=2,
            )
        whole = factories.ones(seq_len_q, seq_len_kv, dtype=dtypes.bool_)
        mask: Any = whole.tril(seq_len_kv - seq_len_q if right else 0).as_subclass(cls)  # type: ignore[attr-defined]
        mask.variant, mask.seq_len_q, mask.seq_len_kv = variant, seq_len_q, seq_len_kv
        return mask

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        super().__init__()

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a plain tensor."""
        mask = self.as_subclass(Tensor)  # type: ignore[attr-defined]
        return mask if device is None else mask.to(device)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of so many queries and keys, places counted from the first ones.

    >>> from retrograd.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_two("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """The mask of so many queries and keys, places counted from the last ones.

    >>> from retrograd.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two("causal_lower_right", size))


def _two(name: str, size: tuple[int, ...]) -> tuple[int, ...]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors: write {name}(queries, keys)")
    return size
