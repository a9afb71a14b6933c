"""``torch.layout``: how the elements of a tensor lie in memory."""

from __future__ import annotations


class layout:
    """A layout. There is one of each name, as a constant of the package.

    >>> import retrograd as torch
    >>> torch.ones(2).layout is torch.strided
    True
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


#: Elements at fixed distances along each dimension.
strided: layout = layout("strided")
#: Values at coordinates.
sparse_coo: layout = layout("sparse_coo")
#: Matrices whose rows are compressed, or whose columns are; and the same of blocks.
sparse_csr: layout = layout("sparse_csr")
sparse_csc: layout = layout("sparse_csc")
sparse_bsr: layout = layout("sparse_bsr")
sparse_bsc: layout = layout("sparse_bsc")
#: Components that differ in one size lie one behind the other along it: a nested tensor.
jagged: layout = layout("jagged")
