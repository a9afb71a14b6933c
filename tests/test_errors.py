"""Bad input: torch's exception and key phrase, which tensor and what to write instead, and nothing changed by it.

Each case is run with retrograd and with torch: the same phrase must be in both messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


@dataclass
class World:
    """The tensors that a case works on; a refused call must leave all of them as they were."""

    torch: object
    tensors: dict = field(default_factory=dict)

    def __post_init__(self):
        torch = self.torch
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        x.grad = torch.tensor([5.0, 6.0])
        w = torch.tensor([3.0, 4.0], requires_grad=True)
        y = x * w
        self.tensors = {
            "x": x,
            "w": w,
            "y": y,
            "total": y.sum(),
            "plain": torch.ones(2),
            "integers": torch.tensor([1, 2]),
            "complex": torch.tensor([1 + 1j], requires_grad=True),
            "matrix": torch.ones(2, 3, requires_grad=True),
        }

    def __getattr__(self, name):
        try:
            return self.tensors[name]
        except KeyError:
            raise AttributeError(name) from None

    def snapshot(self):
        result = {}
        for name, t in self.tensors.items():
            grad = t.grad if t.is_leaf else None
            result[name] = (
                t.tolist(), t._version, t.requires_grad, t.is_leaf, id(t.grad_fn) if t.grad_fn else None, t.data_ptr(),
                t.retains_grad, None if grad is None else (grad.tolist(), grad._version, id(grad)),
            )  # fmt: skip
        return result


#: name -> (call, exception, torch's key phrase, what retrograd adds)
CASES = {
    # ------------------------------------------------------------------------------------------------- backward
    "non-scalar without gradient": (
        lambda t, s: s.y.backward(), RuntimeError, "grad can be implicitly created only for scalar outputs",
        ["[2]", "y.sum().backward()", "y.backward(gradient)"],
    ),
    "output without grad": (
        lambda t, s: s.plain.sum().backward(), RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn", ["requires_grad_()", "no_grad"],
    ),
    "integer output": (
        lambda t, s: s.integers.sum().backward(), RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn", ["torch.int64"],
    ),
    "second output without grad": (
        lambda t, s: t.autograd.backward([s.total, s.plain.sum()]), RuntimeError,
        "element 1 of tensors does not require grad and does not have a grad_fn", [],
    ),
    "gradient of the wrong shape": (
        lambda t, s: s.y.backward(t.ones(3)), RuntimeError, "Mismatch in shape: grad_output[0] has a shape of",
        ["torch.Size([3])", "torch.Size([2])"],
    ),
    "complex gradient of a real output": (
        lambda t, s: s.y.backward(t.ones(2, dtype=t.complex64)), RuntimeError,
        "For complex Tensors, both grad_output and output are required to have the same dtype", ["torch.complex64"],
    ),
    "complex output without gradient": (
        lambda t, s: s.complex.sum().backward(), RuntimeError,
        "grad can be implicitly created only for real scalar outputs but got", ["complex64"],
    ),
    "gradient that is no tensor": (
        lambda t, s: t.autograd.backward([s.y], [3.0]), TypeError,
        "gradients can be either Tensors or None, but got", ["float"],
    ),
    "too few gradients": (
        lambda t, s: t.autograd.backward([s.total, s.total], [None]), RuntimeError, "got 2 tensors and 1 gradients", [],
    ),
    "empty inputs": (
        lambda t, s: s.total.backward(inputs=[]), RuntimeError, "cannot be empty", [],
    ),
    # ----------------------------------------------------------------------------------------------------- grad
    "input without grad": (
        lambda t, s: t.autograd.grad(s.total, s.plain), RuntimeError,
        "One of the differentiated Tensors does not require grad", [],
    ),
    "input that is not there": (
        lambda t, s: t.autograd.grad(s.w.sum(), s.x), RuntimeError,
        "The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True", [],
    ),
    "input that is no tensor": (
        lambda t, s: t.autograd.grad(s.w.sum(), ["x"]), RuntimeError,
        "all inputs have to be Tensors or GradientEdges", ["str"],
    ),
    "contradiction": (
        lambda t, s: t.autograd.grad(s.total, s.x, allow_unused=False, materialize_grads=True), ValueError,
        "Expected allow_unused to be True or not passed when materialize_grads=True", [],
    ),
    # -------------------------------------------------------------------------------------------------- tensors
    "integers that require grad": (
        lambda t, s: s.integers.requires_grad_(), RuntimeError,
        "only Tensors of floating point dtype can require gradients",
        ["torch.int64", "float()"],
    ),
    "integers made to require grad": (
        lambda t, s: t.tensor([1], requires_grad=True), RuntimeError,
        "Only Tensors of floating point and complex dtype can require gradients", ["torch.int64"],
    ),
    "flag of a result": (
        lambda t, s: setattr(s.y, "requires_grad", False), RuntimeError,
        "you can only change requires_grad flags of leaf variables.", ["detach()"],
    ),
    "flag that is no bool": (
        lambda t, s: setattr(s.x, "requires_grad", "yes"), RuntimeError, "requires_grad must be a bool", ["str"],
    ),
    "grad of the wrong size": (
        lambda t, s: setattr(s.x, "grad", t.ones(3)), RuntimeError,
        "attempting to assign a gradient of size '[3]'", ["[2]"],
    ),
    "grad of the wrong dtype": (
        lambda t, s: setattr(s.x, "grad", t.ones(2, dtype=t.float64)), RuntimeError,
        "attempting to assign a gradient with dtype", ["torch.float32"],
    ),
    "grad that is no tensor": (
        lambda t, s: setattr(s.x, "grad", [1.0, 2.0]), TypeError,
        "assigned grad expected to be a Tensor or None but got grad of type", ["list"],
    ),
    "a tensor as its own grad": (
        lambda t, s: setattr(s.x, "grad", s.x), RuntimeError, "can't assign Variable as its own grad", [],
    ),
    "data that is no tensor": (
        lambda t, s: setattr(s.x, "data", 3), TypeError, "Variable data has to be a tensor", ["int"],
    ),
    "integer data of what requires grad": (
        lambda t, s: setattr(s.x, "data", t.tensor([1, 2])), RuntimeError,
        "data set to a tensor that requires gradients must be floating point or complex dtype", [],
    ),
    "numpy of what requires grad": (
        lambda t, s: s.x.numpy(), RuntimeError,
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy()", [],
    ),
    "item of several": (
        lambda t, s: s.x.item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar", [],
    ),
    "truth of several": (
        lambda t, s: bool(s.x), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous", [],
    ),
    "hook without grad": (
        lambda t, s: s.plain.register_hook(print), RuntimeError,
        "cannot register a hook on a tensor that doesn't require gradient", [],
    ),
    "retain_grad without grad": (
        lambda t, s: s.plain.retain_grad(), RuntimeError,
        "can't retain_grad on Tensor that has requires_grad=False", [],
    ),
    "deepcopy of a result": (
        lambda t, s: __import__("copy").deepcopy(s.y), RuntimeError,
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol",
        ["MulBackward0", "detach().clone()"],
    ),
    "gradient edge without grad": (
        lambda t, s: t.autograd.graph.get_gradient_edge(s.plain), RuntimeError,
        "It is not possible to get the gradient edge for a Tensor that does not require gradients", [],
    ),
    # -------------------------------------------------------------------------------------------------- in place
    "in place on a leaf": (
        lambda t, s: s.x.add_(1), RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation.", ["no_grad"],
    ),
    "in place with another size": (
        lambda t, s: s.y.add_(t.ones(3)), RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3)", [],
    ),
    "in place with too large a size": (
        lambda t, s: s.y.add_(t.ones(2, 2)), RuntimeError, "doesn't match the broadcast shape", ["[2, 2]"],
    ),
    "in place into integers": (
        lambda t, s: s.integers.add_(1.5), RuntimeError, "can't be cast to the desired output type", [],
    ),
    # ------------------------------------------------------------------------------------------------- operators
    "sizes that do not broadcast": (
        lambda t, s: s.x + t.ones(3), RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0", [],
    ),
    "a string": (lambda t, s: s.x + "a", TypeError, "unsupported operand type(s) for +", []),
    "an argument that is no tensor": (lambda t, s: t.exp(3), TypeError,
        "exp(): argument 'input' (position 1) must be Tensor", []),
    "dimension out of range": (
        lambda t, s: s.x.sum(3), IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 3)", [],
    ),
    "view of the wrong size": (lambda t, s: s.x.view(3), RuntimeError,
        "shape '[3]' is invalid for input of size 2", []),
    "index out of range": (lambda t, s: s.x[5], IndexError, "index 5 is out of bounds for dimension 0 with size 2", []),
    "out= of what requires grad": (
        lambda t, s: t.exp(s.x, out=s.plain), RuntimeError,
        "functions with out=... arguments don't support automatic differentiation, but one of the arguments",
        [],
    ),
    "matrices that do not fit": (
        lambda t, s: s.matrix @ s.matrix, RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)", [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_refused(torch, name):
    call, exception, phrase, more = CASES[name]
    world = World(torch)
    before = world.snapshot()
    with pytest.raises(exception, match=re.escape(phrase)) as error:
        call(torch, world)
    assert type(error.value) is exception
    if torch is retrograd:
        for fragment in more:
            assert fragment in str(error.value)
    assert world.snapshot() == before
    assert torch.is_grad_enabled()
    world.total.backward()  # and everything still works
    assert world.x.grad.tolist() == [8.0, 10.0]


@pytest.mark.parametrize("name", CASES)
def test_refused_under_no_grad_too_or_allowed(name):
    """Whatever happens to a bad call under no_grad, the mode is the same afterwards."""
    call, *_ = CASES[name]
    world = World(retrograd)
    with retrograd.no_grad():
        try:
            call(retrograd, world)
        except (RuntimeError, TypeError, ValueError, IndexError):
            pass
        assert not retrograd.is_grad_enabled()
    assert retrograd.is_grad_enabled()


# ------------------------------------------------------------------------------------------- errors while a pass runs


def test_second_backward(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp().sum()
    y.backward()
    grad, values = x.grad, x.grad.tolist()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time") as error:
        y.backward()
    assert x.grad is grad and grad.tolist() == values
    if torch is retrograd:
        assert "ExpBackward0" in str(error.value) and __file__ in str(error.value)


def test_a_modified_tensor(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([1.0, 2.0])
    y = (x * w).sum()
    w.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: .* is at version 1; expected") as e:
        y.backward()
    assert x.grad is None and w._version == 1
    if torch is retrograd:
        assert "MulBackward0" in str(e.value) and __file__ in str(e.value)


def test_a_failed_pass_can_be_repeated(torch):
    """The error comes before anything was freed or accumulated behind it."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    total = (y * 3).sum()
    handle = y.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        total.backward(retain_graph=True)
    handle.remove()
    total.backward()
    assert x.grad is not None


def test_an_operator_that_torch_has_no_formula_for(torch):
    y = torch.ones(2, requires_grad=True) // 2
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented") as caught:
        y.sum().backward()
    assert caught.type is RuntimeError
