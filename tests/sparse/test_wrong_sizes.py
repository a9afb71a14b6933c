"""Sizes that no sparse tensor can have, refused as torch refuses them."""

from __future__ import annotations

import warnings

import pytest

import retrograd

MAKERS = {
    "coo": lambda lib, size: lib.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], size),
    "csr": lambda lib, size: lib.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], size),
}
SIZES = {
    "a": TypeError, 2.5: TypeError, 3: TypeError, (2, None): TypeError, (2.0, 3): TypeError, (10**30, 2): TypeError,
    (2, -3): RuntimeError,
}  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layout", MAKERS)
def test_wrong_sizes(layout, size):
    with pytest.raises(SIZES[size], match=r"size|dimension"):
        MAKERS[layout](retrograd, size)


@pytest.mark.parity
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layout", MAKERS)
def test_torch_refuses_them_too(layout, size):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about checks that are off, and layouts in beta
        with pytest.raises(SIZES[size]):
            MAKERS[layout](torch, size)


def test_a_size_and_no_values():
    with pytest.raises(TypeError, match="invalid combination"):
        retrograd.sparse_coo_tensor([[0, 1], [2, 0]], None, (2, 3))
