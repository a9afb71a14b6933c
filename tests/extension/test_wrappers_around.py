"""What a wrapper of tensors does besides operators: as a parameter, copied, printed; its storage, its gradients."""

from __future__ import annotations

import copy

import pytest


def logging_class(torch):
    tree_map = torch.utils._pytree.tree_map

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            result = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            result.held = inner
            return result

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            def plain(value):
                return value.held if isinstance(value, cls) else value

            out = func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))
            return tree_map(lambda value: cls(value) if isinstance(value, torch.Tensor) else value, out)

        def __repr__(self):
            return super().__repr__(tensor_contents=f"{self.held}")

    return Wrapper


def test_a_wrapper_as_a_parameter(torch):
    wrapper = logging_class(torch)
    parameter = torch.nn.Parameter(wrapper(torch.ones(2)))
    parameter.note = ["a"]
    again = copy.deepcopy(parameter)
    for one in (parameter, again):
        assert type(one) is wrapper and isinstance(one, torch.nn.Parameter) and one.requires_grad
        assert repr(one) == "Parameter(Wrapper(tensor([1., 1.]), requires_grad=True))"
    assert again.note == ["a"] and again.note is not parameter.note
    assert again.held is not parameter.held and again.held.tolist() == [1.0, 1.0]


def test_its_storage_has_no_memory(torch):
    storage = logging_class(torch)(torch.ones(2)).untyped_storage()
    assert storage.nbytes() == 8
    for what in (lambda: storage.data_ptr(), lambda: storage.resize_(0), lambda: storage.fill_(0)):
        with pytest.raises(RuntimeError, match="on an invalid python storage"):
            what()


def test_gradients_that_were_expanded_are_summed(torch):
    """The graph of a vectorized Jacobian broadcasts; its own backward pass has to sum, on wrappers as on tensors."""
    wrapper = logging_class(torch)
    values = torch.arange(4.0, dtype=torch.float64).reshape(2, 2) / 4
    found = []
    for x in (values.clone().requires_grad_(), wrapper(values.clone()).requires_grad_()):
        jacobian = torch.autograd.functional.jacobian(
            lambda x: x.exp().sum(dim=1), x, create_graph=True, vectorize=True
        )
        (grad,) = torch.autograd.grad(jacobian.sum(), x)
        found.append(getattr(grad, "held", grad))
    assert type(grad) is wrapper
    assert torch.equal(found[0], found[1]) and torch.allclose(found[0], values.exp())


def test_a_subclass_with_memory_is_set_to_other_memory(torch):
    class Counted(torch.Tensor):
        calls = 0

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.calls += 1
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = Counted(torch.zeros(2))
    x.data = torch.ones(2)
    before = Counted.calls
    x.set_(torch.full((3,), 2.0))
    assert Counted.calls == before + 1 and type(x) is Counted
    assert x.shape == (3,) and x.sum().item() == 6.0


def test_type_as_goes_to_the_device_too(torch):
    assert torch.ones(1).type_as(torch.empty(2, dtype=torch.float64, device="meta")).device.type == "meta"
