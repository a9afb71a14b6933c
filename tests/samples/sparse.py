"""Sparse tensors: every sample takes the values of one (or a plain tensor), and gives a plain tensor.

What varies is what a sparse tensor has values for; where these are is fixed, as it is for a program.
"""

from __future__ import annotations

from typing import Any

from samples.spec import Op, Sample, V, index, nonzero, positive, real
from samples.spec import S as sample


def S(name: str, *args: Any, torch_second: bool = False, **options: Any) -> Sample:
    """A sample; of most operators, torch gives zeros for second derivatives: it loses the history of what it masks."""
    return sample(name, *args, torch_second=torch_second, **options)


#: Coordinates in a 3 x 4 matrix: in order, and out of order with one place twice.
ORDERED = [[0, 0, 1, 2], [1, 3, 0, 2]]
TWICE = [[2, 0, 1, 0], [2, 1, 0, 1]]


def coo(torch: Any, values: Any, at: Any = ORDERED, size: tuple[int, ...] = (3, 4)) -> Any:
    return torch.sparse_coo_tensor(torch.tensor(at), values, (*size, *values.shape[1:]), check_invariants=True)


def csr(torch: Any, values: Any) -> Any:
    starts, columns = torch.tensor([0, 2, 3, 4]), torch.tensor([1, 3, 0, 2])
    return torch.sparse_csr_tensor(starts, columns, values, (3, 4), check_invariants=True)


def both_ways(name: str, function: Any, *samples: Any, **options: Any) -> list[Op]:
    """`function` of a coalesced tensor and of one that is not."""
    return [
        Op(f"sparse {name}", lambda torch, v, *rest: function(torch, coo(torch, v).coalesce(), *rest), list(samples),
           **options),
        Op(f"sparse {name}, uncoalesced", lambda torch, v, *rest: function(torch, coo(torch, v, TWICE), *rest),
           [S(s.name, *s.args, second=s.second, torch_first=s.torch_first, torch_second=s.torch_second)
            for s in samples], **options),
    ]  # fmt: skip


def unary(name: str, values: Any, **options: Any) -> list[Op]:
    # (Torch has no derivative of most of these for sparse tensors, whose own operators would be dense.)
    return both_ways(
        name, lambda torch, s: getattr(torch, name)(s).to_dense(), S("values", values), torch_gradient=False, **options
    )


def conversions() -> list[Op]:
    def through(*steps: Any) -> Any:
        def convert(torch: Any, v: Any) -> Any:
            tensor = coo(torch, v).coalesce()
            for method, *args in steps:
                tensor = getattr(tensor, method)(*args)
            return tensor.to_dense()

        return convert

    ways: dict[str, Any] = {
        "to_sparse": (("to_dense",), ("to_sparse",)),
        "to_sparse of rows": (("to_dense",), ("to_sparse", 1)),
        "to_sparse_coo": (("to_sparse_csr",), ("to_sparse_coo",)),
        "to_sparse_csr": (("to_sparse_csr",),),
        "to_sparse_csc": (("to_sparse_csc",),),
        "to_sparse_bsr": (("to_sparse_bsr", (3, 2)),),
        "to_sparse_bsc": (("to_sparse_bsc", (1, 2)),),
        "to_sparse_csr of a plain tensor": (("to_dense",), ("to_sparse_csr",)),
        "coalesce": (("coalesce",),),
        "clone": (("clone",),),
        "transpose": (("transpose", 0, 1),),
        "t": (("t",),),
        "permute": (("permute", 1, 0),),
        "unsqueeze": (("unsqueeze", 1),),
        "squeeze": (("unsqueeze", 0), ("select", 0, 0)),
        "select": (("select", 0, 0),),
        "narrow_copy": (("narrow_copy", 1, 1, 3),),
        "neg": (("neg",),),
    }
    without = ("unsqueeze", "squeeze", "select", "narrow_copy")  # torch has no derivatives of these
    return [
        Op(f"sparse {name}", through(*steps), [S("values", nonzero(4))], torch_gradient=name not in without)
        for name, steps in ways.items()
    ]


def products() -> list[Op]:
    ops = both_ways("mm", lambda torch, s, b: torch.sparse.mm(s, b), S("matrix", real(4), real(4, 2)),
                    supports_complex=True)  # fmt: skip
    ops += both_ways("addmm", lambda torch, s, m, b: torch.sparse.addmm(m, s, b, beta=0.5, alpha=2.0),
                     S("matrix", real(4), real(3, 2), real(4, 2)))  # fmt: skip
    ops += both_ways(
        "matmul", lambda torch, s, b: s @ b, S("matrix", real(4), real(4, 2)), S("vector", real(4), real(4))
    )
    return [
        *ops,
        Op("sparse mm, plain first", lambda torch, v, b: torch.mm(b, coo(torch, v).coalesce()),
           [S("matrix", real(4), real(2, 3))], supports_complex=True),
        Op("sparse mm, both", lambda torch, v, w: torch.sparse.mm(coo(torch, v), coo(torch, w).t()).to_dense(),
           [S("values", real(4), real(4))]),
        Op("sparse mm, csr", lambda torch, v, b: torch.sparse.mm(csr(torch, v), b), [S("matrix", real(4), real(4, 2))]),
        *[
            Op(f"sparse mm, {reduce}", lambda torch, v, b, reduce=reduce: torch.sparse.mm(csr(torch, v), b, reduce),
               [S("matrix", real(4), real(4, 2))], torch_gradient=False)
            for reduce in ("mean", "amax", "amin")
        ],
        Op("sparse bmm", lambda torch, v, b: torch.stack([coo(torch, v)] * 2).bmm(b),
           [S("matrices", real(4), real(2, 4, 2))], torch_gradient=False),
        Op("smm", lambda torch, v, b: torch.smm(coo(torch, v), b).to_dense(),
           [S("matrix", real(4), real(4, 2))], torch_gradient=False),
        Op("hspmm", lambda torch, v, b: torch.hspmm(coo(torch, v), b).to_dense(),
           [S("matrix", real(4), real(4, 2))], torch_gradient=False),
        Op("spmm", lambda torch, v, b: torch.spmm(coo(torch, v), b), [S("matrix", real(4), real(4, 2))]),
        Op("saddmm", lambda torch, v, b: torch.saddmm(coo(torch, v), coo(torch, v), b).to_dense(),
           [S("matrix", real(4), real(4, 4))], torch_gradient=False),
        Op("sspaddmm",
           lambda torch, v, b, w: torch.sspaddmm(coo(torch, w), coo(torch, v), b, beta=2, alpha=0.5).to_dense(),
           [S("matrix", real(4), real(4, 4), real(4))], torch_gradient=False),
        Op("sparse.sampled_addmm",
           lambda torch, v, a, b: torch.sparse.sampled_addmm(csr(torch, v), a, b, beta=0.5, alpha=2.0).to_dense(),
           [S("matrices", real(4), real(3, 2), real(2, 4))], torch_gradient=False),
    ]  # fmt: skip


def sums() -> list[Op]:
    return [
        *both_ways("sum", lambda torch, s: torch.sparse.sum(s), S("values", real(4))),
        *both_ways("sum over rows", lambda torch, s: torch.sparse.sum(s, 0).to_dense(), S("values", real(4))),
        *both_ways("sum of rows", lambda torch, s: torch.sparse.sum(s, (0,)).to_dense(), S("hybrid", real(4, 2))),
        *both_ways("norm", lambda torch, s: s.norm(), S("values", nonzero(4)), torch_gradient=False),
        *both_ways("softmax", lambda torch, s: torch.sparse.softmax(s, 1).to_dense(), S("values", real(4)),
                   S("hybrid", real(4, 2))),
        *both_ways("softmax over the first", lambda torch, s: torch.sparse.softmax(s, 0).to_dense(), S("values",
        real(4))), *both_ways("log_softmax", lambda torch, s: torch.sparse.log_softmax(s, 1).to_dense(), S("values",
        real(4))),
    ]  # fmt: skip


def sums_of_two() -> list[Op]:
    other = [[0, 1, 2, 2], [1, 1, 0, 2]]
    return [
        *both_ways("add", lambda torch, s, w: torch.add(s, coo(torch, w, other), alpha=2).to_dense(),
                   S("both", real(4), real(4))),
        *both_ways("sub", lambda torch, s, w: (s - coo(torch, w, other)).to_dense(), S("both", real(4), real(4))),
        *both_ways("add to a plain tensor", lambda torch, s, x: torch.add(x, s, alpha=3), S("both", real(4), real(3,
        4))), *both_ways("add_", lambda torch, s, x: (x * 1).add_(s, alpha=3), S("both", real(4), real(3, 4))),
        *both_ways("mul", lambda torch, s, w: (s * coo(torch, w, other)).to_dense(), S("both", real(4), real(4))),
        *both_ways("mul by a number", lambda torch, s: (s * 3).to_dense(), S("values", real(4))),
        *both_ways("mul by a plain tensor", lambda torch, s, x: (s * x).to_dense() + x, S("both", real(4), real(3, 4)),
                   torch_gradient=False),
        *both_ways("div", lambda torch, s: (s / 3).to_dense(), S("values", real(4))),
        *both_ways("pow", lambda torch, s: (s**3).to_dense(), S("values", nonzero(4)), torch_gradient=False),
        *both_ways("cat", lambda torch, s: torch.cat([s, s * 2], 1).to_dense(), S("values", real(4)),
                   S("hybrid", real(4, 2)), torch_gradient=False),
        *both_ways("stack", lambda torch, s: torch.stack([s, s * 2], 1).to_dense(), S("values", real(4)),
                   torch_gradient=False),
        *both_ways("index_select", lambda torch, s: s.index_select(1, torch.tensor([3, 1, 1])).to_dense(),
                   S("values", real(4)), torch_gradient=False),
        *both_ways("sparse_mask", lambda torch, s, x: x.sparse_mask(s.detach().coalesce()).to_dense() + s.to_dense(),
                   S("both", real(4), real(3, 4))),
        *both_ways("to_dense", lambda torch, s: s.to_dense(masked_grad=False), S("hybrid", real(4, 2)),
                   S("values", real(4))),
        *both_ways("values", lambda torch, s: s.coalesce().values(), S("values", real(4)), S("hybrid", real(4, 2))),
    ]  # fmt: skip


def parts() -> list[Op]:
    """What a sparse tensor is made of, which has no gradient."""

    def all_parts(torch: Any, v: Any) -> tuple[Any, ...]:
        s, rows = coo(torch, v).coalesce(), csr(torch, v)
        columns = coo(torch, v).to_sparse_csc()
        return (
            s.indices(), s._indices(), s._values() * 1, rows.values() * 1,
            rows.crow_indices(), rows.col_indices(), torch.crow_indices_copy(rows), torch.col_indices_copy(rows),
            columns.ccol_indices(), columns.row_indices(), torch.ccol_indices_copy(columns),
            torch.row_indices_copy(columns),
            torch.tensor([s._nnz(), s.sparse_dim(), s.dense_dim(), s._dimI(), s._dimV(), v.sparse_dim(),
            v.dense_dim()]), torch.tensor([s.is_coalesced(), coo(torch, v).is_coalesced(), coo(torch,
            v)._coalesced_(True).is_coalesced()]),
        )  # fmt: skip

    def resized(torch: Any, v: Any) -> tuple[Any, ...]:
        s, other = coo(torch, v).coalesce(), coo(torch, v)
        made = (
            s.clone().sparse_resize_((5, 4), 2, 0), s.clone().sparse_resize_and_clear_((2, 2), 2, 0),
            torch.sparse_coo_tensor(size=(1, 1)).resize_as_sparse_(other), s.clone().zero_(),
        )  # fmt: skip
        return tuple(x.to_dense() for x in made)

    def constructed(torch: Any, v: Any) -> tuple[Any, ...]:
        starts, columns = torch.tensor([0, 2, 2]), torch.tensor([0, 1])
        blocks = v.reshape(2, 2, 1)
        made = (
            torch.sparse_csc_tensor(
                torch.tensor([0, 1, 2]), torch.tensor([2, 0]), v[:2], (3, 2), check_invariants=True
            ),
            torch.sparse_bsr_tensor(starts, columns, blocks, (4, 2), check_invariants=True),
            torch.sparse_bsc_tensor(
                torch.tensor([0, 1, 2]), torch.tensor([0, 0]), blocks, (2, 2), check_invariants=True
            ),
            torch.sparse_compressed_tensor(
                starts, columns, v[:2], (2, 2), layout=torch.sparse_csr, dtype=torch.float64, check_invariants=True
            ),
            torch.sparse.spdiags(v.reshape(2, 2), torch.tensor([0, -1]), (2, 2)),
        )
        return tuple(x.to_dense() for x in made)

    return [
        Op("sparse parts", all_parts, [V("values", real(4))], differentiable=False),
        Op("sparse resized", resized, [V("values", real(4, requires_grad=False))], differentiable=False),
        Op("sparse constructed", constructed, [S("values", real(4))], torch_gradient=False),
    ]


def sparse_gradients() -> list[Op]:
    """Functions whose gradients are sparse; a plain gradient is added, so that the sum can be compared."""

    def with_plain(function: Any) -> Any:
        return lambda torch, x, *rest: function(torch, x, *rest) + x.sum() * 2

    return [
        Op("embedding, sparse gradient", with_plain(
            lambda torch, w, i: torch.nn.functional.embedding(i, w, padding_idx=2, sparse=True)),
           [S("rows", real(4, 3), index([1, 3, 1]), torch_second=True), V("padding", real(4, 3), index([1, 2, 1]))]),
        Op("embedding_bag, sparse gradient", with_plain(
            lambda torch, w, i: torch.nn.functional.embedding_bag(i, w, torch.tensor([0, 2]), mode="sum", sparse=True)),
           [S("rows", real(4, 3), index([1, 2, 1]), torch_second=False)]),
        Op("gather, sparse gradient", with_plain(lambda torch, x, i: torch.gather(x, 0, i, sparse_grad=True)),
           [S("along the first", real(4, 3), index([[0, 3, 1], [0, 0, 2]]), torch_second=True)]),
    ]  # fmt: skip


UNARY = {
    "sin": real(4), "tan": real(4, low=-1.0, high=1.0), "asin": real(4, low=-0.4, high=0.4),
    "atan": real(4), "sinh": real(4), "tanh": real(4), "asinh": real(4), "atanh": real(4, low=-0.4, high=0.4),
    "sqrt": positive(4), "log1p": positive(4), "expm1": real(4), "erf": real(4), "erfinv": real(4, low=-0.4, high=0.4),
    "abs": positive(4), "relu": positive(4), "deg2rad": real(4), "square": real(4), "sgn": positive(4),
}  # fmt: skip

OPS: list[Op] = [
    *conversions(),
    *products(),
    *sums(),
    *sums_of_two(),
    *parts(),
    *sparse_gradients(),
    *[op for name, values in UNARY.items() for op in unary(name, values)],
]
