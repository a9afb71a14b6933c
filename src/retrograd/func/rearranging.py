"""`rearrange`: reshaping and permuting by a pattern of names, as in einops."""

from __future__ import annotations

import math
import re
from typing import Any

from .._generated import functions as generated
from ..tensor import Tensor

#: Dimensions that have no name; within brackets "..." stands for them.
_REST: list[str] = []


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Tensor:
    """`tensor` with its dimensions taken apart, reordered and joined as `pattern` says; several tensors are stacked.

    >>> import retrograd as torch
    >>> x = torch.arange(6).reshape(2, 3)
    >>> torch.func.rearrange(x, "a b -> b a").shape
    torch.Size([3, 2])
    >>> torch.func.rearrange(torch.zeros(4, 6, 3), "b (h w) c -> (b h) w c", h=2).shape
    torch.Size([8, 3, 3])
    """
    if not isinstance(tensor, Tensor):
        tensor = generated.stack(list(tensor))
    left, arrow, right = pattern.partition("->")
    if not arrow or "->" in right:
        raise ValueError(f"rearrange: a pattern has one '->' with dimensions on both sides, but got {pattern!r}")
    before, after = _groups(left, pattern), _groups(right, pattern)
    spare = tensor._memory_.ndim - sum(group is not _REST for group in before)
    if spare < 0 or (spare and not any(group is _REST for group in before)):
        raise ValueError(f"rearrange: {pattern!r} does not fit a tensor of {tensor._memory_.ndim} dimensions")
    rest = [f"...{i}" for i in range(spare)]
    before = _spread(before, [[name] for name in rest])
    after = [_flat(group, rest) for group in _spread(after, [[name] for name in rest])]
    names, given = [n for group in before for n in group], [n for group in after for n in group]
    if sorted(n for n in names if n != "1") != sorted(n for n in given if n != "1") or len(set(given) - {"1"}) != len(
        [n for n in given if n != "1"]
    ):
        raise ValueError(f"rearrange: the names on both sides of {pattern!r} have to be the same, each once")
    sizes = _sizes(before, tensor._memory_.shape, axes_lengths, pattern)
    order = [n for n in given if n != "1"]
    kept = [n for n in names if n != "1"]
    apart = tensor.reshape([sizes[n] for n in kept])
    moved = generated.permute(apart, *[kept.index(n) for n in order]) if kept else apart
    return moved.reshape([math.prod([1 if n == "1" else sizes[n] for n in group]) for group in after])


def _groups(side: str, pattern: str) -> list[list[str]]:
    """The dimensions of one side, each a list of names."""
    found: list[list[str]] = []
    inside: list[str] | None = None
    if re.sub(r"\(|\)|\.\.\.|\w+|\s", "", side):
        raise ValueError(f"rearrange: {pattern!r} has characters that mean nothing")
    for token in re.findall(r"\(|\)|\.\.\.|\w+", side):
        if token == "(":
            if inside is not None:
                raise ValueError(f"rearrange: brackets within brackets in {pattern!r}")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError(f"rearrange: brackets that do not match in {pattern!r}")
            found.append(inside)
            inside = None
        elif inside is not None:
            inside.append(token)
        else:
            found.append(_REST if token == "..." else [token])
    if inside is not None:
        raise ValueError(f"rearrange: brackets that do not match in {pattern!r}")
    return found


def _spread(groups: list[list[str]], rest: list[list[str]]) -> list[list[str]]:
    return [one for group in groups for one in (rest if group is _REST else [group])]


def _flat(group: list[str], rest: list[str]) -> list[str]:
    return [one for name in group for one in (rest if name == "..." else [name])]


def _sizes(groups: list[list[str]], shape: Any, known: dict[str, int], pattern: str) -> dict[str, int]:
    """The size of each name: given, or what is left of its dimension."""
    sizes = dict(known)
    for group, size in zip(groups, shape, strict=True):
        names = [name for name in group if name != "1"]
        unknown = [name for name in names if name not in sizes]
        product = math.prod([sizes[name] for name in names if name in sizes])
        if len(unknown) > 1 or (product == 0 and unknown) or (unknown and size % product):
            raise ValueError(f"rearrange: cannot tell the sizes of {unknown} in a dimension of {size} ({pattern!r})")
        if unknown:
            sizes[unknown[0]] = size // product
        elif product != size:
            raise ValueError(f"rearrange: a dimension of {size} is not {' x '.join(names) or '1'} ({pattern!r})")
    return sizes
