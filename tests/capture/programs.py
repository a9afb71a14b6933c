"""Random steps: views, writes in place, several backward passes, state, and now and then an exception in the middle."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Operation = tuple[str, tuple[Any, ...]]


def draw_program(seed: int, length: int = 14) -> list[Operation]:
    """A list of operations on a pool of tensors: what each does, and with which."""
    rng = random.Random(seed)
    kinds = [
        "add", "mul", "sub", "tanh", "scale", "square", "matmul", "t", "view", "row", "sum_to_row", "clone_add_",
        "mul_",
        "write_row", "buffer_add_", "exp", "relu", "maximum", "where", "cat", "expand", "softmax", "mean", "backward",
        "detach", "transpose_add_", "noise", "buffer_row_", "no_grad", "chunk", "number", "sum",
        "masked_fill_", "gather", "cumsum", "sort", "lerp_", "addcmul_", "diagonal_", "flip", "integer", "dropout",
        "grad", "double_grad", "hook", "weight_grad", "argument_", "buffer_view_", "detached_view_", "strided",
        "out_of_order",
    ]  # fmt: skip
    return [(rng.choice(kinds), (rng.random(), rng.random(), rng.randrange(3))) for _ in range(length)]


class World:
    """What a step reads and changes beside its arguments."""

    def __init__(self, lib: Any, seed: int, dtype: Any) -> None:
        self.lib = lib
        self.weight = lib.linspace(-1.0, 1.0, 9, dtype=dtype).reshape(3, 3).clone().requires_grad_()
        self.bias = lib.linspace(0.5, -0.5, 3, dtype=dtype).requires_grad_()
        self.buffer = lib.zeros(3, 3, dtype=dtype)
        self.fails = lib.zeros((), dtype=dtype)

    def state(self) -> list[Any]:
        return [self.weight, self.bias, self.buffer]


def make_step(lib: Any, program: list[Operation], world: World, lr: float) -> Callable[..., Any]:
    """The step of a program. It fails in the middle where the Cholesky factor of an argument does not exist."""
    weight, bias, buffer = world.weight, world.bias, world.buffer

    def step(x: Any, y: Any, failing: Any) -> Any:
        pool = [x * 1.0, y + weight, weight * 0.5, x @ weight + bias]
        for kind, (first, second, number) in program:
            a, b = pool[int(first * len(pool))], pool[int(second * len(pool))]
            if kind in ("add", "mul", "sub", "maximum", "matmul"):
                a = getattr(lib, kind)(a, b)
            elif kind in ("tanh", "relu", "exp"):
                a = getattr(lib, kind)(a.clamp(-3, 3) if kind == "exp" else a)
            elif kind == "scale":
                a = a * (number - 0.75)
            elif kind == "square":
                a = (a * 0.1) ** 2
            elif kind == "t":
                a = a.t()
            elif kind == "view":
                a = a.reshape(9)[number:].sum() + b
            elif kind == "row":
                a = a[number] + b
            elif kind == "sum_to_row":
                a = a.sum(0) * b
            elif kind == "sum":
                a = a.sum(1, keepdim=True) + b
            elif kind == "clone_add_":
                a = a.clone()
                a.add_(b, alpha=0.5)
            elif kind == "mul_":
                a = a.clone()
                a.t().mul_(0.5)
                a[number] *= 2
            elif kind == "write_row":
                a = a.clone()
                a[number] = b[0]
                a[:, number] = 0.25
            elif kind == "transpose_add_":
                a = a.clone(memory_format=lib.contiguous_format)
                a.view(9)[::2].add_(1)
            elif kind == "buffer_add_":
                buffer.mul_(0.5).add_(a.detach().tanh())
                a = a + buffer.clone()
            elif kind == "buffer_row_":
                with lib.no_grad():
                    buffer[number] += b[number].tanh()
                a = a * buffer.clone()
            elif kind == "where":
                a = lib.where(a > b, a, b * 0.5)
            elif kind == "cat":
                a = lib.cat([a[:number], b[number:]])
            elif kind == "expand":
                a = a[number].expand(3, 3) + b
            elif kind == "softmax":
                a = a.softmax(number - 1 if number else 0)
            elif kind == "mean":
                a = a - a.mean()
            elif kind == "detach":
                a = a.detach()
            elif kind == "noise":
                a = a + lib.rand(3, 3, dtype=a.dtype)
            elif kind == "no_grad":
                with lib.no_grad():
                    a = a + 1
            elif kind == "chunk":
                parts = a.unbind(0)
                a = lib.stack([parts[number], parts[0], parts[1]])
            elif kind == "number":
                total = a[0, 0] * a[1, 1] - a[0, 1] * a[number, 0]
                a = b * total.tanh()
            elif kind == "masked_fill_":
                a = a.clone().masked_fill_(b.detach() > 0, 0.5)
            elif kind == "gather":
                a = a.gather(number % 2, b.detach().argsort(number % 2))
            elif kind == "cumsum":
                a = a.tanh().cumsum(number % 2)
            elif kind == "sort":
                a = a.sort(number % 2).values + b.amax(0)
            elif kind == "lerp_":
                a = a.clone().lerp_(b.tanh(), 0.25)
            elif kind == "addcmul_":
                a = a.clone().addcmul_(a.tanh(), b.tanh(), value=0.5)
            elif kind == "diagonal_":
                a = a.clone()
                a.diagonal().mul_(0.5)
            elif kind == "flip":
                a = a.flip(0) + b.roll(1, 1)
            elif kind == "integer":
                a = a * ((b.detach() * 4).clamp(-9, 9).to(lib.int64) % 3)
            elif kind == "dropout":
                a = lib.nn.functional.dropout(a, 0.5)
            elif kind in ("grad", "double_grad"):
                leaf = a.detach().requires_grad_()
                (found,) = lib.autograd.grad((leaf * b.tanh()).sin().sum(), leaf, create_graph=kind == "double_grad")
                a = a + found
            elif kind == "hook":
                a = a * 1.0
                if a.requires_grad:
                    a.register_hook(lambda grad, by=number: grad * by)
            elif kind == "weight_grad":
                a = a if weight.grad is None else a + weight.grad.clamp(-1, 1)
            elif kind == "argument_":
                with lib.no_grad():
                    y[number] += b[0].detach().tanh()
                a = a + y.clone()
            elif kind == "buffer_view_":
                buffer.t()[number].mul_(0.5)
                a = a * buffer.view(9)[number].clone()
            elif kind == "detached_view_":
                buffer.detach().view(9)[number::3].add_(0.125)
                a = a + buffer.sum()
            elif kind == "strided":
                a = a.contiguous().as_strided((3, 3), (1, 3)) + b.expand(2, 3, 3)[1]
            elif kind == "out_of_order":
                later = b.clone()
                a = a + later.mul_(2).sum(1)
                later.add_(1)
            elif kind == "backward":
                loss = a.tanh().sum()
                if loss.requires_grad:
                    loss.backward(retain_graph=True)
            pool.append(a)
        loss = sum([(one * 0.1).tanh().sum() for one in pool[4:]], pool[3].sum())
        loss.backward()
        lib.linalg.cholesky(failing)
        with lib.no_grad():
            for parameter in (weight, bias):
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad.clamp(-1, 1), alpha=lr)
                    buffer.add_(lr)
        lib.linalg.cholesky(failing + 1e-3 * lib.eye(2, dtype=failing.dtype))
        last = pool[-1].detach().clone()
        return loss.detach(), last, last.t(), last[0], buffer.view(9), weight.grad, y

    return step
