"""Formula helpers of matrix products."""

from __future__ import annotations

from typing import Any

from ... import kernels
from ...kernels.einsum import parse_equation


def mm_laid_out(ops: Any, a: Any, b: Any, strides: tuple[int, ...]) -> Any:
    """``a @ b``, stored by columns where that is how the operand with these `strides` is stored.

    It is the gradient of that operand. The weight of a linear layer enters the product transposed: laid out like it,
    its gradient can become ``.grad`` without a copy.
    """
    if strides[0] >= strides[1]:
        return ops.mm(a, b)
    return ops.mm(b.T, a.T).T if ops is kernels else ops.t(ops.mm(ops.t(b), ops.t(a)))


def every_matrix(ops: Any, grad: Any, shape: tuple[int, ...]) -> Any:
    """The matrix `grad` for every matrix of a batch of `shape`."""
    return ops.expand(ops.unsqueeze(grad, 0), (shape[0], *grad.shape))


def trace_backward(ops: Any, grad: Any, sizes: tuple[int, ...]) -> Any:
    """`grad` on the diagonal of a matrix."""
    return ops.diagonal_backward(ops.expand(grad, (min(sizes),)), tuple(sizes), 0, 0, 1)


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum_backward(ops: Any, grad: Any, equation: str, operands: list[Any], edges: tuple[Any, ...]) -> list[Any]:
    """The gradient of each operand that one is wanted of."""
    labels, output = parse_equation(equation, operands)
    return [
        None if edge is None else _einsum_gradient(ops, grad, labels, output, operands, k)
        for k, edge in enumerate(edges)
    ]


def _einsum_gradient(
    ops: Any, grad: Any, labels: list[list[int]], output: list[int], operands: list[Any], k: int
) -> Any:
    # The sum of products is linear in operand k: its gradient is the same kind of sum, of `grad` and the others.
    shape, own = tuple(operands[k].shape), labels[k]
    sizes = dict(zip(own, shape))
    factors, subscripts = [grad], [output]
    for j, other in enumerate(operands):
        if j != k:
            factors.append(ops.conj(other))
            subscripts.append(labels[j])
    elsewhere = {label for part in subscripts for label in part}
    distinct = list(dict.fromkeys(own))
    # Along a dimension of size 1 the operand was repeated, so its gradient is summed; along one that nothing else has
    # it was summed, so its gradient is repeated.
    wanted = [label for label in distinct if label in elsewhere and sizes[label] != 1]
    names = {label: _LETTERS[i] for i, label in enumerate(dict.fromkeys([*distinct, *sorted(elsewhere)]))}
    left = ",".join(["".join([names[label] for label in part]) for part in subscripts])
    result = ops.einsum(f"{left}->{''.join([names[label] for label in wanted])}", factors)
    for position, label in enumerate(distinct):
        if label not in wanted:
            result = ops.unsqueeze(result, position)
    result = ops.expand(result, tuple([sizes[label] for label in distinct]))
    return _undo_diagonals(ops, result, distinct, own)


def _undo_diagonals(ops: Any, result: Any, distinct: list[int], own: list[int]) -> Any:
    # A label that an operand has twice took its diagonal: the gradient is zero off it.
    dims = list(distinct)
    for label in distinct:
        for _ in range(own.count(label) - 1):
            d = dims.index(label)
            result = ops.diag_embed(result if d == len(dims) - 1 else ops.movedim(result, d, -1))
            dims = [*dims[:d], *dims[d + 1 :], label, label]
    if dims == own:
        return result
    order, free = [], list(range(len(dims)))
    for label in own:
        d = next(i for i in free if dims[i] == label)
        free.remove(d)
        order.append(d)
    return ops.permute(result, tuple(order))


def einsum_jvp(ops: Any, equation: str, operands: list[Any], tangents: list[Any]) -> Any:
    """The tangent: one term for each operand, with its tangent in its place."""
    terms = [ops.einsum(equation, [*operands[:k], tangent, *operands[k + 1 :]]) for k, tangent in enumerate(tangents)]
    total = terms[0]
    for term in terms[1:]:
        total = ops.add(total, term)
    return total


def trilinear_part(
    ops: Any, a: Any, without_a: Any, b: Any, without_b: Any, c: Any, without_c: Any, without: Any
) -> Any:
    """The product of three tensors, summed over what the result is without; each is without some dimensions, too."""
    ndim = a.ndim + len(without_a)
    return ops.einsum(kernels.trilinear_equation(ndim, without_a, without_b, without_c, without), [a, b, c])
