"""Samples of views."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples.shared import more, refused
from samples.spec import Attr, E, Op, S, Sample, T, V, given, index, integers, mask, real

OUT_OF_RANGE = r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"


def method(name: str) -> Any:
    """What has no function: `x.name(...)`."""
    return lambda torch, x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def view(name: str, samples: list[Sample], **options: Any) -> Op:
    """An operator whose result shares the input's memory."""
    defaults = {"view": True, "supports_complex": True, "method": name}
    return Op(name, options.pop("fn", name), samples, **(defaults | options))


def _layouts(name: str, *args: Any, shape: tuple[int, ...] = (2, 3), **kwargs: Any) -> list[Sample]:
    """`name` once for each layout other than the contiguous one, in which views are easily wrong."""
    return [
        S(f"{name}, {layout}", real(*shape, layout=layout), *args, as_complex=False, **kwargs)
        for layout in ("transposed", "strided", "expanded")
    ]


RESHAPE = [
    S("rows to columns", real(2, 3), (3, 2)),
    S("flat", real(2, 3), (6,)),
    S("inferred", real(2, 3), (-1,)),
    S("inferred in the middle", real(2, 3), (1, -1, 2), as_complex=False),
    S("to 0-d", real(1, 1), (), as_complex=False),
    S("from 0-d", real(), (1, 1), as_complex=False),
    S("0-d inferred", real(), (-1,), as_complex=False),
    S("empty", real(0, 3), (3, 0), as_complex=False),
    S("empty inferred", real(0, 3), (-1, 3), as_complex=False),
    S("same", real(2, 3), (2, 3), as_complex=False),
    V("int64", integers(2, 3), (3, 2)),
    V("bool", mask([True, False]), (2, 1)),
]


def reshapes() -> list[Sample]:
    """Fresh copies of RESHAPE: an `Op` puts its own seeds into its samples."""
    return [Sample(s.name, s.args, dict(s.kwargs), s.smooth, s.second, s.as_complex) for s in RESHAPE]


BAD_SIZE = r"shape '\[4, 2\]' is invalid for input of size 6"

SIZES = [
    view(
        "reshape",
        [*reshapes(), *_layouts("flat", (6,)), *_layouts("same", (2, 3)), S("list", real(2, 3), [3, 2])],
        view=None,
        errors=[
            E("size", RuntimeError, BAD_SIZE, real(2, 3), (4, 2)),
            E("two inferred", RuntimeError, r"only one dimension can be inferred", real(2, 3), (-1, -1)),
            E("negative", RuntimeError, r"invalid shape dimension -2", real(2, 3), (-2, 3)),
            E("not divisible", RuntimeError, r"shape '\[4, -1\]' is invalid for input of size 6", real(2, 3), (4, -1)),
        ],
        reference=np.reshape,
    ),
    view(
        "reshape.numbers",
        [S("numbers", real(2, 3), 3, 2), S("inferred", real(2, 3), -1, 2), S("one", real(2, 3), -1)],
        fn=method("reshape"),
        view=None,
        method=None,
        reference=lambda x, *shape: x.reshape(shape),
    ),
    view(
        "view",
        [
            *reshapes(),
            S("numbers", real(2, 3), 3, 2),
            S("split of a strided dimension", real(2, 4, layout="strided"), (2, 2, 2)),
            S("transposed, split", real(4, 3, layout="transposed"), (2, 2, 3), as_complex=False),
        ],
        fn=method("view"),
        method=None,
        errors=[
            E("size", RuntimeError, BAD_SIZE, real(2, 3), (4, 2)),
            E(
                "strides",
                RuntimeError,
                r"view size is not compatible with input tensor's size and stride",
                real(2, 3, layout="transposed"),
                (6,),
            ),
        ],
    ),
    view("view_as", [S("matrix", real(2, 3), T((3, 2), requires_grad=False))], fn=method("view_as"), method=None),
    view(
        "reshape_as",
        [S("matrix", real(2, 3), T((3, 2), requires_grad=False)), *_layouts("matrix", T((6,), requires_grad=False))],
        fn=method("reshape_as"),
        method=None,
        view=None,
    ),
    view(
        "flatten",
        [
            S("all", real(2, 3, 2)),
            S("from", real(2, 3, 2), 1),
            S("range", real(2, 3, 2), 0, 1),
            S("negative", real(2, 3, 2), -2, -1, as_complex=False),
            S("keywords", real(2, 3, 2), start_dim=0, end_dim=-2, as_complex=False),
            S("one dimension", real(3), as_complex=False),
            S("0-d", real(), as_complex=False),
            S("empty", real(0, 3), as_complex=False),
            *_layouts("all"),
        ],
        view=None,
        errors=[
            E(
                "order",
                RuntimeError,
                r"flatten\(\) has invalid args: start_dim cannot come after end_dim",
                real(2, 3),
                1,
                0,
            ),
            E("dim", IndexError, OUT_OF_RANGE, real(2, 3), 2),
        ],
    ),
    view("ravel", [S("matrix", real(2, 3)), *_layouts("matrix"), S("0-d", real())], view=None, extra=True),
    view(
        "unflatten",
        [S("matrix", real(2, 6), 1, (2, 3)), S("inferred", real(6), -1, (2, -1)), S("first", real(4, 2), 0, (2, 2))],
        extra=True,
    ),
    view(
        "squeeze",
        [
            S("all", real(1, 3, 1)),
            S("dim", real(1, 3, 1), 0),
            S("negative dim", real(1, 3, 1), -1, as_complex=False),
            S("keyword dim", real(1, 3, 1), dim=2, as_complex=False),
            S("not of length one", real(1, 3, 1), 1, as_complex=False),
            S("dims", real(1, 3, 1), (0, 2)),
            S("dims, not all of length one", real(1, 3, 1), (0, 1), as_complex=False),
            S("to 0-d", real(1, 1), as_complex=False),
            S("0-d", real(), as_complex=False),
            S("0-d, dim", real(), 0, as_complex=False),
            S("empty", real(0, 1), as_complex=False),
            S("transposed", real(3, 1, layout="transposed"), -1, as_complex=False),
        ],
        inplace="squeeze_",
        errors=[E("dim", IndexError, OUT_OF_RANGE, real(1, 3), 2)],
    ),
    view(
        "unsqueeze",
        [
            S("front", real(2, 3), 0),
            S("middle", real(2, 3), 1, as_complex=False),
            S("back", real(2, 3), 2, as_complex=False),
            S("negative", real(2, 3), -1),
            S("most negative", real(2, 3), -3, as_complex=False),
            S("keyword", real(2, 3), dim=1, as_complex=False),
            S("0-d", real(), 0, as_complex=False),
            S("empty", real(0), 0, as_complex=False),
            *_layouts("front", 0),
        ],
        inplace="unsqueeze_",
        errors=[
            E(
                "dim",
                IndexError,
                r"Dimension out of range \(expected to be in range of \[-3, 2\], but got 3\)",
                real(2, 3),
                3,
            )
        ],
        reference=lambda x, dim: np.expand_dims(x, dim),
    ),
    view(
        "expand",
        [
            S("column", real(2, 1), (2, 3)),
            S("new dimension", real(3), (2, 3)),
            S("kept", real(2, 1), (-1, 3), as_complex=False),
            S("numbers", real(2, 1), 2, 3, as_complex=False),
            S("new and kept", real(1, 2), (3, -1, 2), as_complex=False),
            S("from 0-d", real(), (2, 3), as_complex=False),
            S("same", real(2, 3), (2, 3), as_complex=False),
            S("to empty", real(1, 3), (0, 3), as_complex=False),
            S("transposed", real(3, 1, layout="transposed"), (2, 3, 2), as_complex=False),
        ],
        fn=method("expand"),
        method=None,
        errors=[
            E(
                "size",
                RuntimeError,
                r"The expanded size of the tensor \(4\) must match the existing size",
                real(2, 3),
                (2, 4),
            ),
            E("fewer", RuntimeError, r"the number of sizes provided", real(2, 3), (3,)),
            E("new kept", RuntimeError, r"isn't allowed in a leading, non-existing dimension", real(3), (-1, 3)),
        ],
    ),
    view("expand_as", [S("column", real(2, 1), T((2, 3), requires_grad=False))], fn=method("expand_as"), method=None),
    view("broadcast_to", [S("column", real(2, 1), (2, 3)), S("new", real(3), (2, 3))], reference=np.broadcast_to),
]


ORDERS = [
    view(
        "transpose",
        [
            S("matrix", real(2, 3), 0, 1),
            S("negative", real(2, 3, 2), -1, 0),
            S("keywords", real(2, 3), dim0=1, dim1=0, as_complex=False),
            S("same", real(2, 3), 1, 1, as_complex=False),
            S("0-d", real(), 0, -1, as_complex=False),
            S("empty", real(0, 3), 0, 1, as_complex=False),
            *_layouts("matrix", 0, 1),
        ],
        inplace="transpose_",
        errors=[E("dim", IndexError, OUT_OF_RANGE, real(2, 3), 0, 2)],
        reference=lambda x, dim0, dim1: np.swapaxes(x, dim0, dim1) if x.ndim else x,
    ),
    view("swapaxes", [S("matrix", real(2, 3), 0, 1)], extra=True),
    view(
        "t",
        [S("matrix", real(2, 3)), S("vector", real(3)), S("0-d", real())],
        errors=[E("3-d", RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D", real(2, 2, 2))],
        reference=np.transpose,
    ),
    view(
        "T",
        [S("matrix", real(2, 3)), S("vector", real(3))],
        fn=lambda torch, x: x.T,
        method=None,
        reference=np.transpose,
    ),
    view("mT", [S("batch", real(2, 3, 2)), S("matrix", real(2, 3))], fn=lambda torch, x: x.mT, method=None),
    view(
        "permute",
        [
            S("three", real(2, 3, 2), (2, 0, 1)),
            S("negative", real(2, 3, 2), (-1, 0, -2), as_complex=False),
            S("same", real(2, 3), (0, 1), as_complex=False),
            S("0-d", real(), (), as_complex=False),
            S("empty", real(0, 3), (1, 0), as_complex=False),
            *_layouts("swap", (1, 0)),
        ],
        errors=[
            E(
                "number",
                RuntimeError,
                r"number of dimensions in the tensor input does not match the length",
                real(2, 3),
                (0,),
            ),
            E("repeated", RuntimeError, r"duplicate dims are not allowed", real(2, 3), (0, 0)),
        ],
        reference=np.transpose,
    ),
    view("permute.numbers", [S("three", real(2, 3, 2), 2, 0, 1)], fn=method("permute"), method=None),
    view("movedim", [S("one", real(2, 3, 2), 0, -1), S("two", real(2, 3, 2), (0, 1), (1, 2))], extra=True),
]


def _unaliased(name: str) -> Any:
    """The parts times one: a split is one of the few operators whose outputs torch will not differentiate in place."""
    return lambda torch, x, *args, **kwargs: [part * 1 for part in getattr(torch, name)(x, *args, **kwargs)]


SPLITS = [
    Op(
        "hsplit",
        _unaliased("hsplit"),
        [
            S("equal", real(2, 4), 2), S("at", real(2, 4), (1, 3)), S("vector", real(4), 2),
            S("sections", real(2, 4), sections=2), S("indices", real(2, 4), indices=(1, 3)),
        ],
        [
            E("0-d", RuntimeError, "torch.hsplit requires a tensor with at least 1 dimension", real(), 1),
            E("unequal", RuntimeError, "not divisible by the split_size 3", real(2, 4), 3),
            E("zero", RuntimeError, "not divisible by the split_size 0", real(2, 4), 0),
        ],
    ),
    Op(
        "vsplit",
        _unaliased("vsplit"),
        [S("equal", real(4, 2), 2), S("at", real(4, 2), (1, 3))],
        [
            E("vector", RuntimeError, "torch.vsplit requires a tensor with at least 2 dimension", real(4), 2),
            E("zero", RuntimeError, "not divisible by the split_size 0", real(2, 4), 0),
        ],
    ),
    Op(
        "dsplit",
        _unaliased("dsplit"),
        [S("equal", real(1, 2, 4), 2), S("at", real(1, 2, 3), (1,))],
        [E("matrix", RuntimeError, "torch.dsplit requires a tensor with at least 3 dimension", real(2, 4), 2)],
    ),
    Op(
        "unsafe_chunk",
        _unaliased("unsafe_chunk"),
        [S("first", real(4, 2), 2), S("dim", real(2, 3), 2, dim=1)],
        supports_complex=True,
    ),
    Op(
        "unsafe_split",
        _unaliased("unsafe_split"),
        [S("first", real(4, 2), 3), S("dim", real(2, 3), 2, -1)],
        supports_complex=True,
    ),
    Op(
        "unsafe_split_with_sizes",
        _unaliased("unsafe_split_with_sizes"),
        [S("dim", real(2, 3), [1, 2], 1)],
        [E("sum", RuntimeError, "to sum exactly to 3", real(3), [1, 1])],
    ),
    Op(
        "split_with_sizes",
        _unaliased("split_with_sizes"),
        [S("first", real(3, 2), [1, 0, 2]), S("dim", real(2, 3), [1, 2], dim=-1)],
    ),
    Op(
        "broadcast_tensors",
        lambda torch, *x: [part * 1 for part in torch.broadcast_tensors(*x)],
        [S("two", real(2, 1), real(3)), S("0-d", real(), real(2))],
        [E("shapes", RuntimeError, "must match|do not broadcast|Shape mismatch", real(2), real(3))],
    ),
]


OPS = [
    *SIZES,
    *ORDERS,
    view(
        "narrow",
        [
            S("first dimension", real(4, 2), 0, 1, 2),
            S("negative dim", real(2, 4), -1, 0, 3),
            S("negative start", real(4), 0, -3, 2, as_complex=False),
            S("keywords", real(4), dim=0, start=1, length=2, as_complex=False),
            S("nothing", real(4), 0, 2, 0, as_complex=False),
            *_layouts("columns", 1, 1, 2),
        ],
        errors=[
            E("length", RuntimeError, r"start \(2\) \+ length \(3\) exceeds dimension size \(4\)", real(4), 0, 2, 3),
            E("negative length", RuntimeError, r"narrow\(\): length must be non-negative", real(4), 0, 2, -1),
            E("0-d", RuntimeError, r"narrow\(\) cannot be applied to a 0-dim tensor", real(), 0, 0, 1),
        ],
    ),
    view(
        "select",
        [
            S("row", real(2, 3), 0, 1),
            S("column", real(2, 3), 1, 0),
            S("negative", real(2, 3), -1, -1, as_complex=False),
            S("keywords", real(2, 3), dim=1, index=2, as_complex=False),
            S("to 0-d", real(3), 0, 1, as_complex=False),
            *_layouts("column", 1, 2),
        ],
        errors=[
            E(
                "index",
                IndexError,
                r"select\(\): index 3 out of range for tensor of size \[2, 3\] at dimension 1",
                real(2, 3),
                1,
                3,
            ),
            E("0-d", IndexError, r"select\(\) cannot be applied to a 0-dim tensor", real(), 0, 0),
        ],
        reference=lambda x, dim, index: np.take(x, index, axis=dim),
    ),
    view(
        "diagonal",
        [
            S("matrix", real(3, 3)),
            S("wide", real(2, 3)),
            S("above", real(3, 3), 1, as_complex=False),
            S("below", real(3, 2), -1),
            S("offset keyword", real(2, 3), offset=2, as_complex=False),
            S("outside", real(2, 2), 5, as_complex=False),
            S("dims", real(2, 3, 2), 0, 0, 2),
            S("negative dims", real(2, 3, 2), offset=1, dim1=-1, dim2=-2, as_complex=False),
            *_layouts("matrix", shape=(3, 3)),
        ],
        errors=[
            E("same dims", RuntimeError, r"diagonal dimensions cannot be identical", real(2, 2), 0, 1, 1),
            E("1-d", IndexError, r"Dimension out of range", real(3)),
        ],
        reference=lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2) if offset < 5 else np.zeros(0),
    ),
    view(
        "split",
        [
            S("even", real(4, 2), 2),
            S("uneven", real(5), 2),
            S("sizes", real(5, 2), [1, 3, 1]),
            S("sizes tuple", real(3), (1, 2), as_complex=False),
            S("dim", real(2, 5), 3, 1, as_complex=False),
            S("negative keyword dim", real(2, 5), [2, 3], dim=-1, as_complex=False),
            S("larger than the tensor", real(3), 7, as_complex=False),
            S("a size of zero", real(3), [0, 3], as_complex=False),
            *_layouts("columns", 2, 1),
        ],
        errors=[
            E("sum", RuntimeError, r"split_with_sizes expects split_sizes to sum exactly to 5", real(5), [1, 3]),
            E("negative", RuntimeError, r"split expects split_size be non-negative", real(5), -1),
        ],
    ),
    view(
        "chunk",
        [
            S("even", real(4, 2), 2),
            S("uneven", real(5), 3),
            S("fewer than asked", real(6), 4, as_complex=False),
            S("dim", real(2, 5), 2, 1, as_complex=False),
            S("negative keyword dim", real(2, 5), chunks=2, dim=-1, as_complex=False),
            *_layouts("columns", 2, 1),
        ],
        errors=[E("chunks", RuntimeError, r"chunk expects `chunks` to be greater than 0", real(4), 0)],
    ),
    view("tensor_split", [S("sections", real(5), 3), S("indices", real(5, 2), (1, 3))], extra=True),
    view(
        "unbind",
        [
            S("rows", real(2, 3)),
            S("columns", real(2, 3), 1),
            S("negative keyword dim", real(2, 3), dim=-1, as_complex=False),
            S("vector", real(3), as_complex=False),
            *_layouts("columns", 1),
        ],
        errors=[E("0-d", IndexError, r"Dimension specified as 0 but tensor has no dimensions", real())],
    ),
    Op(
        "contiguous",
        method("contiguous"),
        [S("matrix", real(2, 3)), *_layouts("copy")],
        view=None,
        supports_complex=True,
    ),
    Op(
        "is_same_size",
        "is_same_size",
        [V("same", integers(2), integers(2)), V("not", integers(2), integers(1, 2))],
        differentiable=False,
    ),
    Op(
        "linalg.diagonal",
        "linalg.diagonal",
        [S("plain", real(3, 3)), S("offset", real(2, 3, 3), offset=1)],
        supports_complex=True,
        view=True,
    ),
    *SPLITS,
    more(
        "linalg.diagonal",
        S("dims", real(2, 2, 2), offset=1, dim1=0, dim2=1),
        fn=lambda torch, a, **kwargs: torch.linalg.diagonal(a, **kwargs) * 1,
    ),
    more("mT", V("0-d", real()), fn=lambda torch, x: [x.mT * 1, x.mH * 1]),
    more(
        "tensor_split",
        S("dim", real(2, 3), 2, dim=1),
        fn=lambda torch, x, *args, **kwargs: [part * 1 for part in torch.tensor_split(x, *args, **kwargs)],
    ),
    more(
        "view",
        V("dtype", given([1.0], requires_grad=False), dtype=Attr("int64")),
        V("size", real(4), size=(2, 2)),
        fn=lambda torch, x, *args, **kwargs: x.view(*args, **kwargs).clone(),
    ),
    more("squeeze", S("axis", real(1, 2), axis=0), fn=lambda torch, x, axis: torch.squeeze(x, axis=axis) * 1),
    more(
        "narrow",
        S("tensor", real(4), 0, index(1), 2),
        fn=lambda torch, *args: torch.narrow(*args) * 1,
        errors=[E("float start", RuntimeError, "start must be an 0-dim integral Tensor", real(4), 0, given(1.0), 2)],
    ),
    refused(
        "tensor_split",
        E("float indices", RuntimeError, "to have dtype of long", real(4), given([1.0], requires_grad=False)),
    ),
]
