"""Samples of products of matrices and vectors."""

from __future__ import annotations

import numpy as np

from samples.shared import more, refused
from samples.spec import E, Op, S, Same, V, given, integers, mask, nonzero, real

MATMUL = {
    "vector and vector": ((3,), (3,)),
    "matrix and vector": ((2, 3), (3,)),
    "vector and matrix": ((2,), (2, 3)),
    "matrix and matrix": ((2, 3), (3, 2)),
    "batch and batch": ((2, 1, 2), (2, 2, 3)),
    "batch and matrix": ((2, 2, 2), (2, 2)),
    "matrix and batch": ((2, 2), (2, 2, 1)),
    "batch and vector": ((2, 2, 3), (3,)),
    "vector and batch": ((2,), (2, 2, 3)),
    "batches that broadcast": ((2, 1, 1, 2), (3, 2, 1)),
    "one row": ((1, 3), (3, 1)),
    "empty inner": ((2, 0), (0, 3)),
    "empty outer": ((0, 3), (3, 2)),
    "empty batch": ((0, 2, 3), (3, 2)),
}

MATMUL_ERRORS = [
    E(
        "matrices",
        RuntimeError,
        r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x2\)",
        real(2, 3),
        real(4, 2),
    ),
    E("0-d", RuntimeError, r"both arguments to matmul need to be at least 1D", real(), real(3)),
    E("vectors", RuntimeError, r"inconsistent tensor size", real(3), real(4)),
    E(
        "dtypes",
        RuntimeError,
        r"expected m1 and m2 to have the same dtype",
        real(2, 3),
        real(3, 2, dtype="float32"),
    ),
]


def _matmuls() -> list:
    return [S(name, real(*left), real(*right)) for name, (left, right) in MATMUL.items()] + [
        S("transposed", real(2, 3, layout="transposed"), real(3, 2, layout="transposed"), as_complex=False),
        S("strided", real(2, 3, layout="strided"), real(3, layout="strided"), as_complex=False),
        S("expanded", real(2, 3, layout="expanded"), real(3, 2), as_complex=False),
        S("only the left requires grad", real(2, 3), real(3, 2, requires_grad=False), as_complex=False),
        S("only the right requires grad", real(2, 3, requires_grad=False), real(3), as_complex=False),
        S("with itself", real(2, 2), Same(0), as_complex=False),
        V("int64", integers(2, 3), integers(3, 2)),
        V("float32", real(2, 3, dtype="float32"), real(3, 2, dtype="float32")),
        V("infinity", given([[float("inf"), 1.0]]), given([[0.0], [1.0]])),
    ]


PRODUCTS = [
    Op(
        "matmul",
        "matmul",
        _matmuls(),
        errors=MATMUL_ERRORS,
        supports_complex=True,
        method="matmul",
        reference=np.matmul,
    ),
    Op(
        "__matmul__",
        lambda torch, x, y: x @ y,
        [S("matrices", real(2, 3), real(3, 2)), S("matrix and vector", real(2, 3), real(3))],
        errors=MATMUL_ERRORS,
        reference=np.matmul,
    ),
    Op(
        "mm",
        "mm",
        [
            S("matrices", real(2, 3), real(3, 2)),
            S("transposed", real(2, 3, layout="transposed"), real(3, 2, layout="transposed"), as_complex=False),
            S("one transposed", real(2, 3), real(3, 2, layout="transposed"), as_complex=False),
            S("with itself", real(2, 2), Same(0)),
            S("empty inner", real(2, 0), real(0, 3)),
            S("empty outer", real(0, 2), real(2, 3), as_complex=False),
            V("int64", integers(2, 3), integers(3, 2)),
        ],
        errors=[
            E(
                "shapes",
                RuntimeError,
                r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)",
                real(2, 3),
                real(2, 3),
            ),
            E("vector", RuntimeError, r"mat2 must be a matrix", real(2, 3), real(3)),
            E("batch", RuntimeError, r"self must be a matrix", real(2, 2, 2), real(2, 2)),
        ],
        supports_complex=True,
        method="mm",
        reference=np.matmul,
    ),
    Op(
        "bmm",
        "bmm",
        [
            S("batches", real(2, 1, 3), real(2, 3, 2)),
            S("transposed", real(2, 2, 2, layout="transposed"), real(2, 2, 1), as_complex=False),
            S("empty", real(0, 2, 3), real(0, 3, 1), as_complex=False),
            S("empty inner", real(2, 1, 0), real(2, 0, 2), as_complex=False),
        ],
        errors=[
            E("matrix", RuntimeError, r"batch2 must be a 3D tensor", real(2, 2, 2), real(2, 2)),
            E(
                "batch sizes",
                RuntimeError,
                r"Expected size for first two dimensions of batch2 tensor to be",
                real(2, 2, 3),
                real(3, 3, 2),
            ),
        ],
        supports_complex=True,
        method="bmm",
        reference=np.matmul,
    ),
    Op(
        "mv",
        "mv",
        [
            S("matrix and vector", real(2, 3), real(3)),
            S("transposed", real(2, 3, layout="transposed"), real(3, layout="strided"), as_complex=False),
            S("empty", real(0, 3), real(3), as_complex=False),
            S("empty inner", real(2, 0), real(0), as_complex=False),
        ],
        errors=[
            E("sizes", RuntimeError, r"size mismatch, got input \(2\), mat \(2x3\), vec \(4\)", real(2, 3), real(4)),
            E("vector", RuntimeError, r"vector \+ matrix @ vector expected", real(3), real(3)),
        ],
        supports_complex=True,
        method="mv",
        reference=np.matmul,
    ),
    Op(
        "dot",
        "dot",
        [
            S("vectors", real(3), real(3)),
            S("strided", real(3, layout="strided"), real(3), as_complex=False),
            S("expanded", real(3, layout="expanded"), real(3), as_complex=False),
            S("empty", real(0), real(0), as_complex=False),
            S("with itself", real(3), Same(0)),
            V("int64", integers(3), integers(3)),
        ],
        errors=[
            E(
                "sizes",
                RuntimeError,
                r"inconsistent tensor size, expected tensor \[3\] and src \[4\]",
                real(3),
                real(4),
            ),
            E("matrix", RuntimeError, r"1D tensors expected, but got 2D and 1D tensors", real(2, 3), real(3)),
            E(
                "dtypes",
                RuntimeError,
                r"dot : expected both vectors to have same dtype",
                real(3),
                real(3, dtype="float32"),
            ),
        ],
        supports_complex=True,
        method="dot",
        reference=np.dot,
    ),
    Op("vdot", "vdot", [S("vectors", real(3), real(3))], supports_complex=True, method="vdot", extra=True),
    Op(
        "inner",
        "inner",
        [S("vectors", real(3), real(3)), S("matrices", real(2, 3), real(2, 3)), S("0-d", real(), real(2))],
        method="inner",
        reference=np.inner,
        extra=True,
    ),
    Op(
        "outer",
        "outer",
        [
            S("vectors", real(2), real(3)),
            S("strided", real(2, layout="strided"), real(3, layout="expanded"), as_complex=False),
            S("empty", real(0), real(3), as_complex=False),
            S("with itself", real(2), Same(0)),
            V("int64 and float32", integers(2), real(3, dtype="float32")),
        ],
        errors=[E("matrix", RuntimeError, r"outer: Expected 1-D argument self, but got 2-D", real(2, 3), real(3))],
        supports_complex=True,
        method="outer",
        reference=np.outer,
    ),
    Op("ger", "ger", [S("vectors", real(2), real(3))], method="ger", extra=True, reference=np.outer),
    Op(
        "addmm",
        "addmm",
        [
            S("plain", real(2, 2), real(2, 3), real(3, 2)),
            S("broadcast", real(2), real(2, 3), real(3, 2)),
            S("scaled", real(2, 2), real(2, 3), real(3, 2), beta=0.5, alpha=-2),
        ],
        supports_complex=True,
        method="addmm",
        inplace=None,
        extra=True,
    ),
    Op("addmv", "addmv", [S("scaled", real(2), real(2, 3), real(3), beta=0.5, alpha=2)], method="addmv", extra=True),
    Op("baddbmm", "baddbmm", [S("plain", real(2, 1, 2), real(2, 1, 3), real(2, 3, 2))], method="baddbmm", extra=True),
    Op(
        "tensordot",
        "tensordot",
        [S("number", real(2, 3), real(3, 2), 1), S("dims", real(2, 3), real(3, 2), ([0, 1], [1, 0]))],
        extra=True,
        reference=np.tensordot,
    ),
]


EINSUM = {
    "matrix product": ("ij,jk->ik", (2, 3), (3, 2)),
    "implicit output": ("ij,jk", (2, 3), (3, 2)),
    "implicit order of letters": ("ba", (2, 3)),
    "spaces": (" i j , j k -> i k ", (2, 3), (3, 2)),
    "batch": ("bij,bjk->bik", (2, 1, 3), (2, 3, 2)),
    "outer": ("i,j->ij", (2,), (3,)),
    "inner": ("i,i->", (3,), (3,)),
    "elementwise": ("ij,ij->ij", (2, 3), (2, 3)),
    "transpose": ("ij->ji", (2, 3)),
    "trace": ("ii", (3, 3)),
    "diagonal": ("ii->i", (3, 3)),
    "diagonal of a batch": ("bii->bi", (2, 2, 2)),
    "sum of all": ("ij->", (2, 3)),
    "sum of rows": ("ij->j", (2, 3)),
    "summed in one operand only": ("ij,k->k", (2, 2), (3,)),
    "bilinear": ("bi,oij,bj->bo", (2, 2), (1, 2, 2), (2, 2)),
    "three operands": ("i,ij,j->", (2,), (2, 3), (3,)),
    "ellipsis": ("...ij,...jk->...ik", (2, 1, 2), (2, 2, 2)),
    "ellipsis that broadcasts": ("...i,...i->...", (2, 1, 2), (3, 2)),
    "ellipsis summed": ("...i->i", (2, 3)),
    "ellipsis, implicit output": ("...ij,...j", (2, 2, 3), (3,)),
    "length one broadcasts": ("ij,ij->ij", (2, 1), (2, 3)),
    "capital letters": ("aB,Bc->ac", (2, 3), (3, 2)),
    "0-d operand": (",i->i", (), (3,)),
    "empty": ("ij,jk->ik", (2, 0), (0, 3)),
}

EINSUMS = [
    Op(
        "einsum",
        "einsum",
        [
            *[
                S(name, equation, *[real(*shape) for shape in shapes], as_complex=number % 3 == 0)
                for number, (name, (equation, *shapes)) in enumerate(EINSUM.items())
            ],
            S("operands in a list", "ij,jk->ik", [real(2, 3), real(3, 2)], as_complex=False),
            S("transposed", "ij,jk->ik", real(2, 3, layout="transposed"), real(3, 2), as_complex=False),
            S("with itself", "i,i->", real(3), Same(0), as_complex=False),
            S("one without grad", "i,i->i", real(3), real(3, requires_grad=False), as_complex=False),
            S("sublists", real(2, 3), [0, 1], real(3, 2), [1, 2], [0, 2], as_complex=False),
        ],
        errors=[
            E(
                "operands",
                RuntimeError,
                r"fewer operands were provided than specified",
                "ij,jk",
                real(2, 3),
            ),
            E(
                "letters",
                RuntimeError,
                r"number of subscripts .* does not match the number of dimensions",
                "ijk",
                real(2, 3),
            ),
            E("sizes", RuntimeError, r"does not broadcast with previously seen size", "ij,jk", real(2, 3), real(2, 3)),
            E("output", RuntimeError, r"output subscript k does not appear in the equation", "ij->k", real(2, 3)),
        ],
        supports_complex=True,
        view=None,  # of a transpose or a diagonal alone, torch returns a view
    ),
]

F = "nn.functional."


OPS = [
    *PRODUCTS,
    *EINSUMS,
    Op(
        F + "linear",
        F + "linear",
        [
            S("plain", real(2, 3), real(2, 3)),
            S("bias", real(2, 3), real(2, 3), real(2)),
            S("keyword bias", real(2, 3), real(2, 3), bias=real(2)),
            S("vector", real(3), real(2, 3), real(2), as_complex=False),
            S("vector weight", real(2, 3), real(3), as_complex=False),
            S("batch", real(2, 2, 2), real(1, 2), real(1), as_complex=False),
            S("empty batch", real(0, 3), real(2, 3), real(2), as_complex=False),
            S("no input features", real(2, 0), real(2, 0), real(2), as_complex=False),
            S("input without grad", real(2, 3, requires_grad=False), real(2, 3), real(2), as_complex=False),
            S("only bias", real(2, 3, requires_grad=False), real(2, 3, requires_grad=False), real(2), as_complex=False),
            S(
                "transposed",
                real(2, 3, layout="transposed"),
                real(2, 3, layout="transposed"),
                real(2),
                as_complex=False,
            ),
            S("strided", real(2, 3, layout="strided"), real(2, 3, layout="strided"), as_complex=False),
            V("float32", real(2, 3, dtype="float32"), real(2, 3, dtype="float32"), real(2, dtype="float32")),
        ],
        errors=[
            E(
                "shapes",
                RuntimeError,
                r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x2\)",
                real(2, 3),
                real(2, 4),
            ),
            E(
                "dtypes",
                RuntimeError,
                r"expected m1 and m2 to have the same dtype",
                real(2, 3),
                real(2, 3, dtype="float32"),
            ),
        ],
        supports_complex=True,
        reference=lambda x, w, bias=0: x @ w.T + bias,
    ),
    Op(
        "linalg.multi_dot",
        lambda torch, *xs: torch.linalg.multi_dot(xs),
        [
            S("two", real(2, 2), real(2, 2)),
            S("three", real(2, 3), real(3, 1), real(1, 2)),
            S("vectors", real(2), real(2, 3), real(3)),
            S("four", real(2, 1), real(1, 2), real(2, 1), real(1, 2), as_complex=False),
        ],
        [E("one", RuntimeError, r"multi_dot\(\): expected at least 2 tensors but got 1", real(2, 2))],
        supports_complex=True,
    ),
    Op(
        "linalg.vecdot",
        "linalg.vecdot",
        [
            S("vectors", real(3), real(3)),
            S("rows", real(2, 3), real(2, 3)),
            S("dim", real(2, 3), real(2, 3), dim=0),
            S("broadcast", real(2, 3), real(3)),
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.cross",
        "linalg.cross",
        [S("vectors", real(3), real(3)), S("dim", real(3, 2), real(3, 2), dim=0)],
        supports_complex=True,
    ),
    Op("linalg.matmul", "linalg.matmul", [S("matrices", real(2, 3), real(3, 2))], supports_complex=True),
    Op(
        F + "bilinear",
        F + "bilinear",
        [
            S("rows", real(2, 2), real(2, 1), real(2, 2, 1)),
            S("bias", real(2, 2), real(2, 2), real(1, 2, 2), real(1)),
            S("batches", real(2, 1, 2), real(2, 1, 1), real(2, 2, 1), bias=real(2)),
        ],
    ),
    Op(
        "kron",
        "kron",
        [S("matrices", real(2, 1), real(1, 2)), S("ranks", real(2), real(2, 1)), S("0-d", real(), real(2))],
        method="kron",
        supports_complex=True,
    ),
    Op(
        "addbmm",
        "addbmm",
        [
            S("plain", real(2, 2), real(2, 2, 1), real(2, 1, 2)),
            S("weighted", real(2, 2), real(1, 2, 2), real(1, 2, 2), beta=0.5, alpha=1.5),
            S("broadcast", real(2), real(1, 2, 2), real(1, 2, 2)),
        ],
        [
            E(
                "batch",
                RuntimeError,
                "same number of batches|batch1 and batch2 must have same number of batches",
                real(2, 2),
                real(1, 2, 2),
                real(2, 2, 2),
            )
        ],
        method="addbmm",
        inplace="addbmm_",
        supports_complex=True,
    ),
    Op(
        "addr",
        "addr",
        [
            S("plain", real(2, 3), real(2), real(3)),
            S("weighted", real(2, 2), real(2), real(2), beta=0.5, alpha=1.5),
            V("bool", mask([[True, False], [False, False]]), mask([True, False]), mask([True, True]), beta=3, alpha=2),
        ],
        [E("matrix", RuntimeError, "Expected 1-D argument vec1", real(2, 2), real(2, 2), real(2))],
        method="addr",
        inplace="addr_",
        supports_complex=True,
    ),
    Op("baddbmm, weighted", "baddbmm", [S("both", real(1, 2, 2), real(1, 2, 2), real(1, 2, 2), beta=0.5, alpha=1.5)]),
    Op(
        "chain_matmul",
        "chain_matmul",
        [S("three", real(1, 2), real(2, 2), real(2, 1)), S("one", real(1, 2))],
        view=None,
    ),
    Op(
        "trace",
        "trace",
        [S("square", real(2, 2)), S("wide", real(2, 3)), V("int64", integers(2, 2))],
        [E("vector", RuntimeError, "expected a matrix", real(2))],
        method="trace",
        supports_complex=True,
    ),
    Op(
        "cross",
        "cross",
        [S("found", nonzero(2, 3), nonzero(2, 3)), S("dim", nonzero(3, 2), nonzero(3, 2), 0)],
        [E("none", RuntimeError, "dimension|inconsistent", real(2, 2), real(2, 2))],
        method="cross",
        supports_complex=True,
    ),
    more(
        "tensordot",
        V("repeated", given([[[200]]], "uint8"), given([[[1, 1]], [[2, 3]]], "uint8"), dims=([0, 1], [2, 0])),
    ),
    more(
        "einsum",
        V("uint8", given([200, 100], "uint8")),
        V("bool", mask([True, True])),
        fn=lambda torch, x: torch.einsum("i->", x),
    ),
    more("linalg.vecdot", S("0-d", real(), real(2))),
    more("__rmatmul__", S("reflected", real(2, 2), real(2, 2)), fn=lambda torch, x, y: x.__rmatmul__(y)),
    refused("linalg.vecdot", E("dtypes", RuntimeError, "to have the same dtype", real(2), real(2, dtype="float32"))),
]
