"""Samples of what is put together: parts replaced, copies of views, combinations, reductions into places."""

from __future__ import annotations

from typing import Any

from samples.spec import E, Op, S, Sample, V, given, index, integers, mask, nonzero, real


def copying(name: str, *samples: Sample, complex_too: bool = True) -> Op:
    """A ``*_copy`` function."""
    return Op(name, name, list(samples), supports_complex=complex_too)


def placed(reduce: str, domain: Any = real) -> list[Sample]:
    """Samples of `index_reduce`."""
    return [
        S(f"{reduce}", domain(3, 2), 0, index([0, 2, 0]), domain(3, 2), reduce),
        S(f"{reduce}, dim", domain(2, 3), 1, index([1, 1]), domain(2, 2), reduce),
        S(f"{reduce}, alone", domain(3), 0, index([0, 0]), domain(2), reduce, include_self=False),
    ]


OPS = [
    Op(
        "select_scatter",
        "select_scatter",
        [S("rows", real(2, 3), real(3), 0, 1), S("columns", real(2, 3), real(2), -1, 0)],
        [E("size", RuntimeError, "expected src to have a size equal to the slice of self", real(2, 3), real(2), 0, 1)],
        method="select_scatter",
    ),
    Op(
        "slice_scatter",
        "slice_scatter",
        [
            S("rows", real(4, 2), real(2, 2), 0, 1, 3),
            S("step", real(5), real(3), step=2),
            S("all", real(2, 2), real(2, 2)),
            V("none", real(2, 2), real(0, 2), 0, 1, 1),
        ],
        method="slice_scatter",
    ),
    Op(
        "diagonal_scatter",
        "diagonal_scatter",
        [
            S("square", real(3, 3), real(3)),
            S("offset", real(2, 3), real(2), 1),
            S("dims", real(2, 2, 2), real(2, 2), 0, 1, 2),
        ],
        supports_complex=True,
        method="diagonal_scatter",
    ),
    Op(
        "as_strided_scatter",
        "as_strided_scatter",
        [
            # Torch's own gradient of `input` is wrong here: it keeps what was overwritten and drops the rest.
            S("part", real(3, 3), real(2, 2), (2, 2), (1, 2), torch_first=False),
            S("offset", real(6), real(2), (2,), (2,), 1, torch_first=False),
        ],
        supports_complex=True,
        method="as_strided_scatter",
    ),
    copying("alias_copy", S("matrix", real(2, 3))),
    copying("as_strided_copy", S("part", real(2, 3), (2, 2), (1, 2))),
    copying("detach_copy", V("matrix", real(2, 3, requires_grad=False))),
    copying("diagonal_copy", S("matrix", real(2, 3)), S("offset", real(3, 3), 1)),
    copying("expand_copy", S("rows", real(2, 1), (2, 3))),
    copying("permute_copy", S("three", real(2, 1, 3), (2, 0, 1))),
    copying("select_copy", S("row", real(2, 3), 0, 1), complex_too=False),
    copying("slice_copy", S("rows", real(4, 2), 0, 1, 3), complex_too=False),
    copying("split_copy", S("two", real(4, 2), 2)),
    copying("split_with_sizes_copy", S("two", real(4, 2), [1, 3])),
    copying("squeeze_copy", S("all", real(1, 2)), S("dim", real(1, 2), 0)),
    copying("t_copy", S("matrix", real(2, 3))),
    copying("transpose_copy", S("matrix", real(2, 3), 0, 1)),
    copying("unbind_copy", S("rows", real(2, 3))),
    copying("unfold_copy", S("windows", real(4), 0, 2, 1)),
    copying("unsqueeze_copy", S("front", real(2, 3), 0)),
    copying("view_copy", S("flat", real(2, 3), (6,))),
    copying("view_as_complex_copy", V("pairs", real(2, 2, requires_grad=False)), complex_too=False),
    copying("view_as_real_copy", S("matrix", real(2, 2, dtype="complex128")), complex_too=False),
    copying("narrow_copy", S("rows", real(3, 2), 0, 1, 2)),
    Op(
        "fill_diagonal_",
        lambda torch, x, *args, **kwargs: x.clone().fill_diagonal_(*args, **kwargs),
        [
            S("square", real(3, 3), 2.0),
            S("wide", real(2, 3), 2.0),
            S("tall", real(7, 2), 2.0),
            S("wrapped", real(7, 2), 2.0, wrap=True),
            S("cube", real(2, 2, 2), 2.0),
        ],
    ),
    Op(
        "cartesian_prod",
        "cartesian_prod",
        [
            S("two", real(2), real(3)),
            S("three", real(2), real(1), real(2)),
            V("one", real(2)),
            V("int64", index([1, 2]), index([3])),
        ],
        view=None,
    ),
    Op(
        "combinations",
        "combinations",
        [
            S("pairs", real(4)),
            S("triples", real(4), 3),
            S("with replacement", real(3), with_replacement=True),
            V("none", real(3, requires_grad=False), 0),
            V("too few", real(2), 3),
        ],
    ),
    Op(
        "unique_consecutive",
        "unique_consecutive",
        [
            V("runs", index([1, 1, 2, 2, 1])),
            V("inverse and counts", index([[1, 1], [2, 1]]), True, True),
            V("dim", given([[1.0, 2.0], [1.0, 2.0], [3.0, 2.0]], requires_grad=False), return_counts=True, dim=0),
            V("empty", index([])),
        ],
        differentiable=False,
        method="unique_consecutive",
    ),
    Op(
        "unravel_index",
        "unravel_index",
        [V("matrix", index([3, 4, 5]), (2, 3)), V("0-d", index(5), (2, 3)), V("one size", index([1, 2]), 4)],
        differentiable=False,
    ),
    Op(
        "nonzero_static",
        "nonzero_static",
        [V("cut", index([1, 0, 2]), size=1), V("filled up", index([[1, 0], [0, 2]]), size=3, fill_value=7)],
        differentiable=False,
        method="nonzero_static",
    ),
    Op(
        "index_reduce",
        "index_reduce",
        [*placed("prod", nonzero), *placed("mean"), *placed("amax"), *placed("amin")],
        [E("reduction", RuntimeError, "Expected reduce to be one of", real(3), 0, index([0]), real(1), "sum")],
        method="index_reduce",
        inplace="index_reduce_",
    ),
    Op(
        "is_nonzero",
        "is_nonzero",
        [V("zero", index(0)), V("one", given([0.5], requires_grad=False))],
        differentiable=False,
        method="is_nonzero",
    ),
    Op(
        "is_same_size",
        "is_same_size",
        [V("same", integers(2), integers(2)), V("not", integers(2), integers(1, 2))],
        differentiable=False,
    ),
    Op("is_signed", "is_signed", [V("int64", integers(2)), V("bool", mask([True]))], differentiable=False),
]
