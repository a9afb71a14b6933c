"""Samples of copies, dtypes, filling, storages."""

from __future__ import annotations

import numpy as np

from samples.shape import _layouts, method
from samples.shared import more
from samples.spec import Op, S, Sample, V, given, index, integers, real


def copying(name: str, *samples: Sample, complex_too: bool = True) -> Op:
    """A ``*_copy`` function."""
    return Op(name, name, list(samples), supports_complex=complex_too)


OPS = [
    Op(
        "clone",
        "clone",
        [S("matrix", real(2, 3)), S("0-d", real()), *_layouts("copy"), V("int64", integers(3))],
        supports_complex=True,
        method="clone",
        reference=np.copy,
    ),
    Op("detach", method("detach"), [V("matrix", real(2, 3))], view=True, differentiable=False),
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
        "is_nonzero",
        "is_nonzero",
        [V("zero", index(0)), V("one", given([0.5], requires_grad=False))],
        differentiable=False,
        method="is_nonzero",
    ),
    Op("detach_", lambda torch, x: (x * 2).detach_() + x, [V("part", real(2))]),
    more("view_copy", S("not contiguous", real(3, 2, layout="transposed"), (2, 3))),
    more("zero_", V("all", real(2, requires_grad=False)), fn=lambda torch, x: x.clone().zero_(), differentiable=False),
]
