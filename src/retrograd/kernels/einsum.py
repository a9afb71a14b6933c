"""Einstein summation, every contraction of two operands done by BLAS.

An equation becomes one list of integer labels per operand.  Operands are then contracted two at a time: what is
summed over becomes the inner dimension of a matrix product, what only one of them has its rows or columns, and what
both have and keep its batch.  NumPy is asked only for a good order where there are more than two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .products import _batched, _product
from .promotion import scalar_name

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LABEL = {letter: i for i, letter in enumerate(_LETTERS)}
_DOTS = 52  # labels from here on stand for the dimensions under an ellipsis

Labelled = tuple[np.ndarray, list[int]]


def einsum(equation: str, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of products that `equation` describes, such as ``"ij,jk->ik"``."""
    labels, output = parse_equation(equation, operands)
    for a in operands:
        if a.dtype != operands[0].dtype:
            raise RuntimeError(
                f"expected scalar type {scalar_name(operands[0].dtype)} but found {scalar_name(a.dtype)}"
            )
    terms = _without_ones([_diagonals(a, own, i) for i, (a, own) in enumerate(zip(operands, labels))])
    wanted = set(output)
    if len(terms) == 1:
        a, own = terms[0]
        result, kept = _sum_out(a, own, wanted)
        result = result.transpose([kept.index(label) for label in output])
        return result.copy() if result.base is not None or result is a else result
    for i, j in _path(terms, output):
        second, first = terms.pop(max(i, j)), terms.pop(min(i, j))
        later = wanted.union(*[own for _, own in terms])
        if not terms:  # the last product: in the order of the output, so that its result need not be turned
            apart = set(first[1]) ^ set(second[1])
            if next((label for label in output if label in apart), None) in second[1]:
                first, second = second, first
        terms.append(_contract(*first, *second, later))
    result, kept = terms[0]
    return result.transpose([kept.index(label) for label in output])


# ------------------------------------------------------------------------------------------------------ equations


def parse_equation(equation: str, operands: Sequence[np.ndarray]) -> tuple[list[list[int]], list[int]]:
    """The labels of each operand and of the output, as integers, with those under an ellipsis spelled out."""
    left, arrow, right = equation.partition("->")
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    parts = left.split(",")
    if len(parts) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(parts) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    written = [_subscripts(part, equation, f"for operand {i}") for i, part in enumerate(parts)]
    most = 0
    for i, (subscripts, a) in enumerate(zip(written, operands)):
        dots = _DOTS in subscripts
        n = len(subscripts) - dots
        if n > a.ndim or (not dots and n != a.ndim):
            more = "is more than" if dots else "does not match"
            none = "" if dots else " and no ellipsis was given"
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({n}) {more} the number of dimensions "
                f"({a.ndim}) for operand {i}{none}"
            )
        if dots:
            most = max(most, a.ndim - n)
    dotted = list(range(_DOTS, _DOTS + most))
    labels = [_fill(s, dotted[most - (a.ndim - len(s) + 1) :]) for s, a in zip(written, operands)]
    if arrow:
        output = _subscripts(right, equation, "for output")
        known = {label for own in labels for label in own}
        for label in output:
            if label != _DOTS and label not in known:
                raise RuntimeError(
                    f"einsum(): output subscript {_LETTERS[label]} does not appear in the equation for any input "
                    "operand"
                )
            if output.count(label) > 1:
                raise RuntimeError(f"einsum(): output subscript {_LETTERS[label]} appears more than once in the output")
        return labels, _fill(output, dotted)
    counts: dict[int, int] = {}
    for own in written:
        for label in own:
            counts[label] = counts.get(label, 0) + 1
    counts.pop(_DOTS, None)
    return labels, dotted + sorted([label for label, n in counts.items() if n == 1])


def _subscripts(part: str, equation: str, where: str) -> list[int]:
    result = []
    i = 0
    while i < len(part):
        if part[i] == " ":
            i += 1
        elif part[i] in _LABEL:
            result.append(_LABEL[part[i]])
            i += 1
        elif part[i] == ".":
            output = where == "for output"
            if _DOTS in result:
                again = "but an ellipsis (...) was" if output else "for which an ellipsis was"
                raise RuntimeError(f"einsum(): found '.' {where} {again} already found")
            if part[i : i + 3] != "...":
                dots = " (...)" if output else ""
                raise RuntimeError(f"einsum(): found '.' {where} that is not part of any ellipsis{dots}")
            result.append(_DOTS)
            i += 3
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {equation.find(part[i])} in the equation string, "
                "subscripts must be in [a-zA-Z]"
            )
    return result


def _fill(subscripts: list[int], dotted: list[int]) -> list[int]:
    # The labels with those of the ellipsis in its place.
    if _DOTS not in subscripts:
        return subscripts
    i = subscripts.index(_DOTS)
    return subscripts[:i] + dotted + subscripts[i + 1 :]


# ------------------------------------------------------------------------------------------------------ operands


def _diagonals(a: np.ndarray, labels: list[int], operand: int) -> Labelled:
    # A label that an operand has twice means its diagonal.
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            if a.shape[i] != a.shape[j]:
                raise RuntimeError(
                    f"einsum(): subscript {_LETTERS[label]} is repeated for operand {operand} but the sizes don't "
                    f"match, {a.shape[j]} != {a.shape[i]}"
                )
            a = a.diagonal(0, i, j)
            del labels[j], labels[i]
            labels.append(label)
    return a, labels


def _without_ones(terms: list[Labelled]) -> list[Labelled]:
    # An operand with size 1 where another has more is constant along that dimension: it does without.
    sizes: dict[int, int] = {}
    for i, (a, labels) in enumerate(terms):
        for label, n in zip(labels, a.shape):
            seen = sizes.setdefault(label, n)
            if seen == 1:
                sizes[label] = n
            elif n != seen and n != 1:
                what = f"subscript {_LETTERS[label]}" if label < _DOTS else "dimension under the ellipsis"
                raise RuntimeError(
                    f"einsum(): {what} has size {n} for operand {i} which does not broadcast with previously seen "
                    f"size {seen}"
                )
    result = []
    for a, labels in terms:
        drop = tuple([d for d, label in enumerate(labels) if a.shape[d] == 1 != sizes[label]])
        if drop:
            a, labels = a.squeeze(drop), [label for d, label in enumerate(labels) if d not in drop]
        result.append((a, labels))
    return result


def _sum_out(a: np.ndarray, labels: list[int], keep: set[int]) -> Labelled:
    over = tuple([d for d, label in enumerate(labels) if label not in keep])
    if not over:
        return a, labels
    summed = np.asarray(np.add.reduce(a, over, dtype=np.int64 if a.dtype.kind in "biu" else a.dtype))
    return summed, [label for label in labels if label in keep]


def _path(terms: list[Labelled], output: list[int]) -> list[tuple[int, int]]:
    # The pairs to contract, each result going to the end of the list.
    n = len(terms)
    if n == 2:
        return [(0, 1)]
    used = {label: i for i, label in enumerate(dict.fromkeys([x for _, own in terms for x in own]))}
    if len(used) > 52:
        return [(0, 1)] + [(0, n - i) for i in range(2, n)]
    arguments: list[Any] = []
    for a, labels in terms:
        arguments += [a, [used[label] for label in labels]]
    path = np.einsum_path(*arguments, [used[label] for label in output], optimize="greedy")[0][1:]
    pairs: list[tuple[int, int]] = []
    for step in path:
        group = sorted(step)
        while len(group) > 2:  # NumPy contracts several at once where no order is better than another
            j, i = group.pop(), group.pop()
            pairs.append((i, j))
            n -= 1
            group.append(n - 1)
        if len(group) == 2:
            pairs.append((group[0], group[1]))
            n -= 1
    return pairs


def _contract(a: np.ndarray, labels_a: list[int], b: np.ndarray, labels_b: list[int], keep: set[int]) -> Labelled:
    a, labels_a = _sum_out(a, labels_a, keep.union(labels_b))
    b, labels_b = _sum_out(b, labels_b, keep.union(labels_a))
    both = [label for label in labels_a if label in labels_b]
    batch = [label for label in both if label in keep]
    inner = [label for label in both if label not in keep]
    rows = [label for label in labels_a if label not in both]
    columns = [label for label in labels_b if label not in both]
    size = dict(zip(labels_a, a.shape)) | dict(zip(labels_b, b.shape))

    def arranged(x: np.ndarray, labels: list[int], order: list[int]) -> np.ndarray:
        return x.transpose([labels.index(label) for label in order])

    def count(labels: list[int]) -> int:
        return math.prod([size[label] for label in labels])

    result = batch + rows + columns
    shape = tuple([size[label] for label in result])
    if not inner:
        left = arranged(a, labels_a, batch + rows)
        right = arranged(b, labels_b, batch + columns)
        left = left.reshape(left.shape + (1,) * len(columns))
        right = right.reshape(right.shape[: len(batch)] + (1,) * len(rows) + right.shape[len(batch) :])
        return np.asarray(np.multiply(left, right)), result
    left = arranged(a, labels_a, batch + rows + inner)
    right = arranged(b, labels_b, batch + inner + columns)
    n, k, m = count(rows), count(inner), count(columns)
    if batch:
        product = _batched(left.reshape(count(batch), n, k), right.reshape(count(batch), k, m))
    else:
        product = _product(left.reshape(n, k), right.reshape(k, m))
    return product.reshape(shape), result


def trilinear(
    i1: np.ndarray,
    i2: np.ndarray,
    i3: np.ndarray,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
) -> np.ndarray:
    """The product of three arrays, each without the dimensions in its ``expand``, summed over `sumdim`."""
    return einsum(trilinear_equation(i1.ndim + len(expand1), expand1, expand2, expand3, sumdim), [i1, i2, i3])


def trilinear_equation(ndim: int, *missing: Sequence[int]) -> str:
    """The equation of a product of tensors, each without some of `ndim` dimensions; the last are the result's."""
    *inputs, result = ["".join(chr(97 + d) for d in range(ndim) if d not in dims) for dims in missing]
    return f"{','.join(inputs)}->{result}"
