"""What classes of users call their attributes is theirs: what `Tensor` has for itself has other names."""

from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.ops.dispatch import DispatchTensor

#: Names that Tensor has, torch's has not, and users may know of: docs/ADDITIONS.md, and NumPy's and Python's protocols.
KNOWN = {"conjugate", "__array_function__", "__array_ufunc__", "__slots__"}
#: What Tensor and the base of all classes with ``__torch_dispatch__`` have for themselves, as a user would write it.
OURS = sorted({
    name.strip("_") for name in dir(DispatchTensor) if name.startswith("_") and name.endswith("_") and name[1] != "_"
})  # fmt: skip
OURS = [f"_{name}" for name in OURS]

#: What libraries call the attributes of their subclasses: torchao, torchvision's tensors, unit and masked tensors.
NAMES = (
    "held", "kind", "make", "_data", "_meta", "_array", "_value", "_values", "_tensor", "_storage", "_shape", "_units",
    "elem", *OURS,
)  # fmt: skip


@pytest.mark.parity
def test_no_name_of_ours_is_one_that_a_user_would_write() -> None:
    """A name that torch's Tensor has not is free for attributes of users; ours begin and end with an underscore."""
    reference = pytest.importorskip("torch")

    ours = set(dir(DispatchTensor)) - set(dir(reference.Tensor)) - KNOWN
    assert not [name for name in ours if not (name.startswith("_") and name.endswith("_"))]
    assert {"_numbers_", "_memory_", "_viewed_", "_edge_", "_vc_", "_grad_meta_", "_special_"} <= ours


@pytest.mark.parametrize("name", NAMES)
def test_an_attribute_of_a_subclass_is_theirs(name: str) -> None:
    class Mine(torch.Tensor):
        pass

    x = Mine([1.0, 2.0]).requires_grad_()
    held = {"any": "thing"}
    setattr(x, name, held)
    y = (x * x).sum()
    y.backward()
    assert getattr(x, name) is held
    assert x.tolist() == [1.0, 2.0] and x.grad is not None and x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("name", NAMES)
def test_so_is_one_of_a_wrapper(name: str) -> None:
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner: torch.Tensor) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner: torch.Tensor) -> None:
            setattr(self, name, inner)

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            plain = [getattr(a, name) if isinstance(a, cls) else a for a in args]
            return cls(func(*plain, **(kwargs or {})))

    x = Wrapper(torch.tensor([1.0, 2.0]))
    assert np.array_equal(getattr(x.exp(), name).numpy(), np.exp(np.array([1.0, 2.0], np.float32)))
