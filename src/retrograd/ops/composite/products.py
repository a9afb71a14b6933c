"""Products that are made of others: `matmul` and its relatives, which choose among mm, bmm, mv and dot by dimensions.

The graph of each is torch's: ``x @ y`` of two matrices is one MmBackward0, of batches a BmmBackward0 between views.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ..._generated import functions as generated
from ...core import dtypes
from ...kernels.dims import normalize_dim
from ...kernels.einsum import parse_equation
from ...kernels.promotion import scalar_name
from ...tensor import Tensor
from ...tensor.special import NoArray, like_array, operate_on_special
from ..registry import composite
from ..support import not_a_tensor, tensor_list, write_out


@composite(method=False)
def linalg_multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices, in the cheapest order; the first and the last may be vectors."""
    tensors = list(tensors)
    n = len(tensors)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    first, last = tensors[0], tensors[-1]
    for position, x in ((0, first), (n - 1, last)):
        if x.ndim not in (1, 2):
            which = "first" if position == 0 else "last"
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {x.ndim}D")
    shape = []
    if first.ndim == 1:
        tensors[0] = first.unsqueeze(0)
    else:
        shape.append(first.shape[0])
    if last.ndim == 1:
        tensors[-1] = last.unsqueeze(-1)
    else:
        shape.append(last.shape[1])
    for i, x in enumerate(tensors):
        if x.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {x.ndim}D")
        if x.dtype != tensors[0].dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{dtypes.C_NAMES[tensors[0].dtype.name]} and tensor {i} {dtypes.C_NAMES[x.dtype.name]}"
            )
    for i, (a, b) in enumerate(itertools.pairwise(tensors)):
        if a.shape[-1] != b.shape[0]:
            given = [first if a is tensors[0] else a, last if b is tensors[-1] else b]
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(given[0].shape)} and {list(given[1].shape)} "
                "cannot be multiplied"
            )
    sizes = [x.shape[0] for x in tensors] + [tensors[-1].shape[-1]]
    return _multiply_chain(tensors, _cheapest_splits(sizes), 0, n - 1).view(tuple(shape))


@composite(method=False)
def _int_mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices of bytes, in int32.

    >>> import retrograd as torch
    >>> torch._int_mm(torch.full((1, 2), 100, dtype=torch.int8), torch.full((2, 1), 100, dtype=torch.int8))
    tensor([[20000]], dtype=torch.int32)
    """
    for name, one in (("self", input), ("mat2", mat2)):
        if one.ndim != 2:
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} to be of dimension 2 but got {one.ndim}")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {input.shape[1]} and {mat2.shape[0]}"
        )
    if input.dtype not in (dtypes.int8, dtypes.uint8):
        raise RuntimeError(f"int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got {input.dtype}")
    if mat2.dtype is not dtypes.int8:
        raise RuntimeError(f"int_mm_out_cpu: Expected mat2 dtype to be int8 but got {mat2.dtype}")
    if out is not None and out.dtype is not dtypes.int32:
        raise RuntimeError(f"int_mm_out_cpu: Expected result dtype to be of type kInt but got {out.dtype}")
    return generated.mm(input.to(dtypes.int32), mat2.to(dtypes.int32), out=out)


@composite(method=False)
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot products of vectors along `dim`, the first conjugated."""
    for v in (x, y):
        if v._memory_.dtype.kind not in "fcVW":
            raise RuntimeError(
                f"linalg.vecdot: Expected a floating point or complex tensor as input. Got "
                f"{scalar_name(v._memory_.dtype)}"
            )
    if x._memory_.dtype != y._memory_.dtype:
        names = scalar_name(x._memory_.dtype), scalar_name(y._memory_.dtype)
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type {} and y of type {} "
            "instead".format(*names)
        )
    if x.ndim == 1 == y.ndim:
        return generated.vdot(x, y)
    return ((x.conj() if x.is_complex() else x) * y).sum(dim)


@composite("linalg.matmul")
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of vectors, matrices or batches of them, which are broadcast.

    >>> import retrograd as torch
    >>> torch.matmul(torch.ones(2, 3), torch.tensor([1., 2., 3.]))
    tensor([6., 6.])
    """
    for name, position, x in (("input", 1, input), ("other", 2, other)):
        if not isinstance(x, Tensor):
            raise not_a_tensor("matmul", name, position, x)
    if out is not None:
        return write_out(_matmul, out, (input, other), {})
    return _matmul(input, other)


@composite(space="Tensor", bare=True)
def __matmul__(self: Tensor, other: Any) -> Any:
    """``self @ other``."""
    if not isinstance(other, Tensor):
        return NotImplemented
    if self._memory_.ndim == 2 == other._memory_.ndim:
        return generated.mm(self, other)
    return _matmul(self, other)


@composite(space="Tensor", bare=True)
def __rmatmul__(self: Tensor, other: Any) -> Any:
    """``other @ self``; where other is not a Tensor, nothing that torch multiplies."""
    return _matmul(other, self) if isinstance(other, Tensor) else NotImplemented


def _matmul(input: Tensor, other: Tensor) -> Tensor:
    try:
        a, b = input._numbers_, other._numbers_
    except NoArray:
        result = operate_on_special(matmul, (input, other), {})
        if result is not NotImplemented:
            return result
        a, b = input._memory_, other._memory_
    n, m = a.ndim, b.ndim
    if n == 2 and m == 2:
        return generated.mm(input, other)
    if n == 0 or m == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {n}D and {m}D")
    if n == 1 and m == 1:
        return generated.dot(input, other)
    if n == 2 and m == 1:
        return generated.mv(input, other)
    if n == 1 and m == 2:
        return generated._squeeze_result(generated.mm(input.unsqueeze(0), other), 0)
    shape = a.shape
    if m <= 2:
        # One product with the rows of all matrices at once.
        rows = input.reshape(math.prod(shape[:-1]), shape[-1])
        result = generated.mv(rows, other) if m == 1 else generated.mm(rows, other)
        return generated._unsafe_view(result, (*shape[:-1], *b.shape[1:]))
    if n == 1:
        return _broadcast_bmm(input.unsqueeze(0), other).squeeze(-2)
    return _broadcast_bmm(input, other)


def _broadcast_bmm(input: Tensor, other: Tensor) -> Tensor:
    """The products of two batches whose batch dimensions are broadcast."""
    a, b = input._memory_.shape, other._memory_.shape
    if a[:-2] == b[:-2] and len(a) == 3:
        return generated.bmm(input, other)
    batch = a[:-2] if a[:-2] == b[:-2] else _broadcast_shape(a[:-2], b[:-2])
    count = math.prod(batch)
    left = input.expand((*batch, *a[-2:])).reshape(count, *a[-2:])
    right = other.expand((*batch, *b[-2:])).reshape(count, *b[-2:])
    product = generated.bmm(left, right)
    return product if len(batch) == 1 else generated._unsafe_view(product, (*batch, a[-2], b[-1]))


def _broadcast_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    result = list(a if len(a) >= len(b) else b)
    for d in range(1, min(len(a), len(b)) + 1):
        n, m = a[-d], b[-d]
        if n != m and n != 1 and m != 1:
            raise RuntimeError(
                f"The size of tensor a ({n}) must match the size of tensor b ({m}) at non-singleton dimension "
                f"{len(result) - d}"
            )
        result[-d] = m if n == 1 else n
    return tuple(result)


@composite(space="internal")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: one addmm where there is a bias.

    >>> import retrograd as torch
    >>> torch.nn.functional.linear(torch.ones(2, 3), torch.ones(1, 3), torch.ones(1))
    tensor([[4.],
            [4.]])
    """
    for name, position, x in (("input", 1, input), ("weight", 2, weight)):
        if not isinstance(x, Tensor):
            raise not_a_tensor("linear", name, position, x)
    try:
        a, w = input._numbers_, weight._numbers_
    except NoArray:
        result = operate_on_special(linear, (input, weight, bias), {})
        if result is not NotImplemented:
            return result
        a, w = input._memory_, weight._memory_
    n = a.ndim
    if n == 0 or w.ndim == 0:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {n}D and {w.ndim}D")
    if n == 2 == w.ndim and bias is not None:
        return generated.addmm(bias, input, generated.t(weight))
    if bias is None or w.ndim != 2 or bias._memory_.ndim > 1:
        result = _matmul(input, generated.t(weight))
        return result if bias is None else result + bias
    rows = input.reshape(math.prod(a.shape[:-1]), a.shape[-1])
    return generated.addmm(bias, rows, generated.t(weight)).view((*a.shape[:-1], w.shape[0]))


@composite(method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[k] @ input2`` for every k, plus `bias`."""
    given: dict[str, Tensor] = {"input1": input1, "input2": input2, "weight": weight}
    if bias is not None:
        given["bias"] = bias
    if len({x._memory_.dtype for x in given.values()}) > 1:
        names = ", ".join(f"{name}: {dtypes.C_NAMES[x.dtype.name]}" for name, x in given.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {names}")
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    if bias is not None:
        if bias._memory_.shape != weight._memory_.shape[:1]:
            raise RuntimeError(
                f"bilinear(): bias size does not match weight size: got {list(bias.shape)} but expected "
                f"{list(weight.shape[:1])}"
            )
    lead = input1._memory_.shape[:-1]
    if lead != input2._memory_.shape[:-1] or weight._memory_.ndim != 3 or not input1._memory_.ndim:
        result = einsum("...i,kij,...j->...k", input1, weight, input2)  # which says what does not fit
        return result if bias is None else result + bias
    rows = (x.reshape((-1, x._memory_.shape[-1])) for x in (input1, input2))
    flat = generated._trilinear(next(rows), weight, next(rows), (1, 3), (0,), (1, 2), (2, 3))
    result = flat.reshape((*lead, weight._memory_.shape[0]))
    return result if bias is None else result + bias


@composite("ger", out=True)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Every element of one vector times every element of the other.

    >>> import retrograd as torch
    >>> torch.outer(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    for name, v in (("self", input), ("vec2", vec2)):
        if v._memory_.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {v._memory_.ndim}-D")
    return generated.mul(input.reshape((input._memory_.shape[0], 1)), vec2)


@composite(out=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of products over the last dimension of both."""
    if not input._memory_.ndim or not other._memory_.ndim:
        return generated.mul(input, other)
    n, m = input._memory_.shape[-1], other._memory_.shape[-1]
    if n != m:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input._memory_.shape)} "
            f"and {list(other._memory_.shape)}"
        )
    return tensordot(input, other, ([-1], [-1]))


@composite(method=False, out=True)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sum of products over the last `dims` dimensions of `a` and the first of `b`, or over two lists of them.

    >>> import retrograd as torch
    >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(4, 3), dims=([1, 2], [1, 0]))
    tensor([12., 12.])
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    x, y = a._memory_, b._memory_
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(x.ndim, y.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = (list(range(-dims, 0)), list(range(dims)))
    if not isinstance(dims, (tuple, list)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, "
            f"but got dims={dims}"
        )
    if len(dims) != 2:
        raise ValueError(f"tensordot(): dims should have two lists, of dimensions of a and of b, but got {len(dims)}")
    over_a, over_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(over_a) != len(over_b):
        raise RuntimeError("both dimension lists should have same length")
    if x.dtype != y.dtype:
        raise RuntimeError("both inputs should have same dtype")
    over_a = [normalize_dim(d, x.ndim) for d in over_a]
    over_b = [normalize_dim(d, y.ndim) for d in over_b]
    for d, e in zip(over_a, over_b):
        n, m = x.shape[d], y.shape[e]
        # A dimension of size 1 is repeated: what it meets is summed.
        if n == 1 != m:
            b = b.sum(e, keepdim=True, dtype=b.dtype)
        elif m == 1 != n:
            a = a.sum(d, keepdim=True, dtype=a.dtype)
        elif n != m:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {d} and second has size {m} in "
                f"dim {e}"
            )
    x, y = a._memory_, b._memory_
    keep_a = [d for d in range(x.ndim) if d not in over_a]
    keep_b = [d for d in range(y.ndim) if d not in over_b]
    shape_a, shape_b = [x.shape[d] for d in keep_a], [y.shape[d] for d in keep_b]
    inside = math.prod([x.shape[d] for d in over_a])
    left = a.permute([*keep_a, *over_a]).reshape(math.prod(shape_a), inside)
    right = b.permute([*over_b, *keep_b]).reshape(inside, math.prod(shape_b))
    return generated.mm(left, right).reshape(shape_a + shape_b)


@composite(method=False, bare=True)
def einsum(*args: Any) -> Tensor:
    """The sum of products that an equation describes; or, in place of one, each operand followed by its list of labels.

    >>> import retrograd as torch
    >>> torch.einsum("ij,j->i", torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation, operands = _equation_of_lists(args)
    else:
        equation, operands = args[0], list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
        if not operands:
            raise ValueError("einsum(): must specify the equation string and at least one operand")
        if not isinstance(equation, str):
            raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}")
    if len(operands) == 1 and isinstance(operands[0], Tensor):
        (labels,), output = parse_equation(equation, [like_array(operands[0])])
        sizes = set(zip(labels, operands[0]._memory_.shape))
        if set(labels) == set(output) and len(sizes) == len(output):
            return _rearranged(operands[0], labels, output)
    return generated.einsum(equation, operands)


def _rearranged(operand: Tensor, labels: list[int], output: list[int]) -> Tensor:
    """An einsum that sums nothing, such as ``"ij->ji"`` or ``"ii->i"``: a view."""
    labels = list(labels)
    for label in output:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            operand = generated.diagonal(operand, 0, first, second)
            del labels[second], labels[first]
            labels.append(label)
    return generated.permute(operand, [labels.index(label) for label in output])


def _equation_of_lists(args: tuple) -> tuple[str, list[Tensor]]:
    """``x, [0, 1], y, [1, 2], [0, 2]`` as ``"AB,BC->AC"`` and the operands."""

    def subscripts(labels: Sequence) -> str:
        text = ""
        if not isinstance(labels, (tuple, list)) or not all(isinstance(n, int) or n is Ellipsis for n in labels):
            raise TypeError(
                f"einsum(): a list of subscripts must be a list of ints and Ellipsis, not {type(labels).__name__}"
            )
        for label in labels:
            if label is Ellipsis:
                text += "..."
            elif 0 <= label < 26:
                text += chr(ord("A") + label)
            elif 26 <= label < 52:
                text += chr(ord("a") + label - 26)
            else:
                raise ValueError(f"einsum(): subscript {label} in subscript list is not within the valid range [0, 52)")
        return text

    equation = ",".join([subscripts(labels) for labels in args[1::2]])
    if len(args) % 2:
        equation += "->" + subscripts(args[-1])
    return equation, list(args[: len(args) // 2 * 2 : 2])


@composite(out=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: `other`, scaled by every element of `input`, side by side."""
    n = max(input._memory_.ndim, other._memory_.ndim)
    a = (1,) * (n - input._memory_.ndim) + input._memory_.shape
    b = (1,) * (n - other._memory_.ndim) + other._memory_.shape
    left = input.reshape([s for size in a for s in (size, 1)])
    right = other.reshape([s for size in b for s in (1, size)])
    return generated._unsafe_view(generated.mul(left, right), [x * y for x, y in zip(a, b)])


@composite()
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross products of the vectors of length 3 along `dim`, by default the first dimension of that size."""
    if dim is None:
        if input._memory_.ndim != other._memory_.ndim:
            raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
        dim = next((d for d, n in enumerate(input._memory_.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return generated.linalg_cross(input, other, dim=dim, out=out)


@composite(method=False, out=True)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of matrices, in the order of multiplications that costs least."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    tensor_list("chain_matmul", "matrices", 1, matrices)
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for x in matrices:
        if x.ndim != 2:
            raise RuntimeError(f"chain_matmul(): Tensor dimension is {x.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return generated.clone(matrices[0])
    sizes = [x._memory_.shape[0] for x in matrices] + [matrices[-1]._memory_.shape[-1]]
    return _multiply_chain(matrices, _cheapest_splits(sizes), 0, len(matrices) - 1)


def _cheapest_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each part of the chain, by dynamic programming over its length.

    Of orders that cost the same torch takes the first split, but of three matrices the last: where a number is
    infinite, that decides what is NaN.
    """
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(options, key=lambda option: (option[0], -option[1] if n == 3 else option[1]))
    return split


def _multiply_chain(matrices: Sequence[Tensor], split: dict, i: int, j: int) -> Tensor:
    if i == j:
        return matrices[i]
    k = split[i, j]
    return generated.mm(_multiply_chain(matrices, split, i, k), _multiply_chain(matrices, split, k + 1, j))


@composite(method=False, out=True)
def _scaled_mm(
    input: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """The product of two matrices of float8, scaled as a whole or by rows and columns, computed in float32.

    >>> import retrograd as torch
    >>> a, one = torch.ones(2, 3).to(torch.float8_e4m3fn), torch.tensor(1.)
    >>> torch._scaled_mm(a, a.t(), one, one * 2, out_dtype=torch.float32)
    tensor([[6., 6.],
            [6., 6.]])
    """
    del use_fast_accum  # sums are in float32 either way
    if scale_result is not None:
        raise RuntimeError("_scaled_mm: scale_result is for GPUs, and ignored by torch on the CPU: scale the result")
    for name, matrix in (("mat1", input), ("mat2", mat2)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix.ndim}-D tensor")
        if matrix.dtype.name not in dtypes.FLOAT8:
            raise ValueError(
                "Invalid scaling configuration.\n- For TensorWise and RowWise scaling, a and b should be float8, "
                f"scales should be float: {name} is {matrix.dtype}"
            )
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({input.shape[0]}x{input.shape[1]} and "
            f"{mat2.shape[0]}x{mat2.shape[1]})"
        )
    for name, scale, rows in (("scale_a", scale_a, (input.shape[0], 1)), ("scale_b", scale_b, (1, mat2.shape[1]))):
        if scale.dtype is not dtypes.float32 or (scale.numel() != 1 and tuple(scale.shape) != rows):
            raise ValueError(
                f"Invalid scaling configuration.\n- {name} should be float32, one number or of shape {rows}, got "
                f"{scale.dtype} of shape {tuple(scale.shape)}"
            )
    pairs: Any = ((input, scale_a), (mat2, scale_b))
    wide = [m.to(dtypes.float32) * (s if s.numel() > 1 else s.reshape(())) for m, s in pairs]
    result: Any = generated.mm(*wide)
    if bias is not None:
        result = result + bias.to(dtypes.float32)  # type: ignore[attr-defined]
    target = input.dtype if out_dtype is None else out_dtype
    return result.to(target)


@composite(method=False, out=True)
def _addmm_activation(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False
) -> Tensor:
    """``addmm``, and the part of it that is positive; with `use_gelu`, its `gelu`.

    >>> import retrograd as torch
    >>> torch._addmm_activation(torch.tensor([1., -9.]), torch.eye(2), torch.eye(2))
    tensor([[2., 0.],
            [1., 0.]])
    """
    result = generated.addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return generated.gelu(result) if use_gelu else generated.relu(result)
