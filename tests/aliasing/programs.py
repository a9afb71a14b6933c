"""Random programs: short sequences of statements about tensors that share memory.

A program is a list of statements in torch's own language, such as ``t2 = t0[1:]`` or ``t2.mul_(t1)``, about the names
t0, t1, ...; it is run by `exec`, a statement at a time, in a namespace where ``torch`` is torch, retrograd or the
oracle (oracle.py).  So what a failing test prints can be pasted into an interpreter.

`Generator` writes a program. It looks at the tensors that the statements so far have made in one running machine
(retrograd, as a rule), so that most statements make sense; some of them are meant to be refused.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SHAPES = [(), (2,), (3,), (4,), (2, 2), (2, 3), (3, 2), (1, 3), (2, 1), (2, 1, 2), (2, 2, 2), (0,), (0, 2)]
WEIGHTS = [2, 2, 4, 3, 6, 6, 4, 2, 2, 2, 2, 0.3, 0.2]
NAMES = 8  # tensors alive at a time


class Machine:
    """One library running a program: the names, what hooks have seen, and the error of the last statement."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.log: list[Any] = []
        self.saw_inference = self.saw_sink = self.saw_function = False
        self.names: dict[str, Any] = {"torch": module, "log": self._log}
        if module.__name__ != "oracle":
            self.names |= custom_functions(module)

    def _log(self, grad: Any) -> None:
        self.log.append(None if grad is None else grad.detach().clone())

    def run(self, statement: str) -> Exception | None:
        """Run one statement; an error is the result, not the end."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(_compiled(statement), self.names)
            except NotInThisMachine:
                raise
            except Exception as error:
                error.__traceback__ = None  # it would keep tensors alive
                return error
        return None

    def tensors(self) -> dict[str, Any]:
        """The tensors that names stand for."""
        return {name: value for name, value in self.names.items() if name[0] == "t" and hasattr(value, "shape")}


def custom_functions(torch: Any) -> dict[str, Any]:
    """Custom functions that give a new tensor, a view of their input, two of them, the input itself, or write to it."""

    class Custom(torch.autograd.Function):
        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return sum(grads) * 2

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * x * 2

    class View(Custom):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

    class Views(Custom):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x), x.view_as(x)

    class AsIs(Custom):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

    class Write(Custom):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

    return {cls.__name__: cls.apply for cls in (Square, View, Views, AsIs, Write)}


class NotInThisMachine(Exception):
    """The oracle does not know an operation."""


_cache: dict[str, Any] = {}


def _compiled(statement: str) -> Any:
    code = _cache.get(statement)
    if code is None:
        if len(_cache) > 20_000:
            _cache.clear()
        code = _cache[statement] = compile(statement, "<program>", "exec")
    return code


@dataclass
class Features:
    """Which kinds of statements a program may have."""

    complex: bool = True
    inference: bool = True
    hooks: bool = True
    saved_hooks: bool = True
    create_graph: bool = True
    odd: bool = True
    """Rare things with rules of their own: ``.data``, requires_grad_ on views, detach_, out=."""
    custom: bool = True
    """Custom functions."""
    inner_gradients: bool = True
    """Gradients of results, not only of leaves."""


@dataclass
class Generator:
    """Writes statements; `rng` is a Random, or hypothesis' imitation of one."""

    rng: random.Random
    features: Features = field(default_factory=Features)

    def statement(self, machine: Machine) -> str:
        """The next statement of the program that `machine` is running."""
        tensors = machine.tensors()
        self.tensors = {name: t for name, t in tensors.items() if name.startswith("t") and name[1:].isdigit()}
        if not self.tensors or (len(self.tensors) < 3 and self.rng.random() < 0.3):
            return self.leaf()
        kinds: list[tuple[float, Callable[[], str]]] = [
            (1, self.leaf),
            (9, self.view),
            (9, self.write),
            (6, self.compute),
            (5, self.backward),
            (1.5, self.detach),
            (1, self.flag),
            (0.3, self.forget),
        ]
        if self.features.hooks:
            kinds.append((1.5, self.hook))
        if self.features.odd:
            kinds.append((1.5, self.odd))
        if self.features.custom:
            kinds.append((1.5, self.custom))
        make = self.rng.choices([k for _, k in kinds], [w for w, _ in kinds])[0]
        statement = make()
        if make in (self.view, self.write, self.compute, self.custom) and self.rng.random() < 0.22:
            return f"with {self.mode()}: {statement}"
        return statement

    # ------------------------------------------------------------------------------------------------------- pieces

    def mode(self) -> str:
        modes = ["torch.no_grad()"] * 5 + ["torch.enable_grad()"]
        if self.features.inference:
            modes += ["torch.inference_mode()"] * 2
        if self.features.saved_hooks:
            modes.append("torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x)")
        if self.features.saved_hooks and self.features.odd:
            # The first of these lets saved tensors be modified unnoticed.
            modes.append("torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)")
            modes.append("torch.autograd.graph.allow_mutation_on_saved_tensors()")
        return self.rng.choice(modes)

    def new(self) -> str:
        """A name to assign to: a free one, or any when all are taken."""
        free = [f"t{i}" for i in range(NAMES) if f"t{i}" not in self.tensors]
        return free[0] if free else self.rng.choice(sorted(self.tensors))

    def pick(self, test: Callable[[Any], bool] = lambda t: True) -> str:
        """The name of a tensor, newer ones more often."""
        names = [name for name, t in self.tensors.items() if test(t)] or list(self.tensors)
        return names[-1] if self.rng.random() < 0.3 else self.rng.choice(names)

    def is_complex(self, name: str) -> bool:
        return self.tensors[name].is_complex()

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.tensors[name].shape)

    def share(self, one: str, other: str) -> bool:
        """Do two tensors share memory?"""
        return np.shares_memory(_memory(self.tensors[one]), _memory(self.tensors[other]))

    def number(self) -> str:
        return self.rng.choice(["2", "0.5", "-1", "1.5", "3", "0.25"])

    def values(self, shape: tuple[int, ...], complex: bool = False) -> str:
        if shape:
            return "[" + ", ".join(self.values(shape[1:], complex) for _ in range(shape[0])) + "]"
        number = f"{self.rng.randint(-12, 12) / 8}"  # eighths, so that sums are exact
        return number + f"{self.rng.randint(-12, 12) / 8:+}j" if complex else number

    def leaf(self) -> str:
        shape = self.rng.choices(SHAPES, WEIGHTS)[0]
        complex = self.features.complex and self.rng.random() < 0.12
        dtype = "complex128" if complex else "float64"
        grad = ", requires_grad=True" if self.rng.random() < 0.6 else ""
        values = f"torch.tensor({self.values(shape, complex)}, dtype=torch.{dtype}{grad})"
        if 0 in shape:
            values = f"torch.zeros({shape}, dtype=torch.{dtype}{grad})"
        return f"{self.new()} = {values}"

    def operand(self, name: str, exact: bool = False) -> str:
        """Something to combine with a tensor: another that broadcasts to it, or a number."""
        shape = self.shape(name)
        fitting = [
            other
            for other, t in self.tensors.items()
            if (tuple(t.shape) == shape if exact else _broadcasts(tuple(t.shape), shape))
            and (not t.is_complex() or self.is_complex(name))
            and not _overlap_oddly(t, self.tensors[name])
        ]
        if fitting and self.rng.random() < 0.8:
            other = self.rng.choice(fitting)
            return other
        others = [o for o, t in self.tensors.items() if not t.is_complex() or self.is_complex(name)]
        others = [o for o in others if not self.share(name, o)]
        if others and self.rng.random() < 0.1:
            return self.rng.choice(others)
        return self.number()

    def dim(self, name: str) -> int:
        n = len(self.shape(name))
        return self.rng.randint(-n, n - 1) if n else 0

    # ---------------------------------------------------------------------------------------------------- statements

    def view(self) -> str:
        name = self.pick()
        dims = [d for d, n in enumerate(self.shape(name)) if n == 2]
        if dims and self.rng.random() < 0.1:
            free = [f"t{i}" for i in range(NAMES) if f"t{i}" not in self.tensors]
            several = self.rng.choice(["unbind({})", "split(1, {})", "chunk(2, {})"]).format(self.rng.choice(dims))
            if len(free) > 1:
                return f"{free[0]}, {free[1]} = {name}.{several}"
        return f"{self.new()} = {self.view_of(name)}"

    def custom(self) -> str:
        name = self.pick(lambda t: not t.is_inference())
        function = self.rng.choice(["Square", "View", "AsIs", "Write", "Views"])
        if function == "Write" and (_is_leaf(self.tensors[name]) or _overlaps_itself(self.tensors[name])):
            function = "Square"
        part = f"[{self.rng.randrange(2)}]" if function == "Views" else ""
        return f"{self.new()} = {function}({name}){part}"

    def view_of(self, name: str) -> str:
        """An expression that is a view of a tensor."""
        rng, shape = self.rng, self.shape(name)
        n, size = len(shape), _product(shape)
        choices = [f"{name}[...]", f"{name}.view({self.factors(size)})", f"{name}.unsqueeze({rng.randint(0, n)})"]
        choices += [f"{name}.reshape({self.factors(size)})", f"{name}[None]", f"{name}.squeeze()"]
        if self.rng.random() < 0.3:
            choices += [f"{name}.view_as({name})", f"{name}.flatten()", f"{name}.expand_as({name})"]
        if self.is_complex(name) and size:
            choices += [f"torch.view_as_real({name})", f"{name}.real", f"{name}.imag"] * 3
            choices += [f"{name}.view(torch.float64)"]
        elif shape and shape[-1] == 2 and size and self.features.complex:
            choices += [f"torch.view_as_complex({name})"] * 2 + [f"{name}.view(torch.complex128)"]
        choices += [f"{name}.expand({(rng.randint(1, 2), *shape)})"]
        if n:
            dim = self.dim(name)
            length = shape[dim]
            i = rng.randint(-length, max(length - 1, 0)) if length else 0
            start = rng.randint(0, length)
            stop = rng.randint(start, length)
            choices += [f"{name}[{start}:{stop}]", f"{name}[{rng.randint(0, 1)}:]", f"{name}[::2]"]
            choices += [f"{name}[..., {start}:]", f"{name}.split({rng.randint(1, 2)}, {dim})[0]"]
            choices += [f"{name}.narrow({dim}, {start}, {stop - start})", f"{name}.squeeze({dim})"]
            if 0 not in shape:
                choices += [f"{name}.select({dim}, {i})", f"{name}[{i if dim in (0, -n) else 0}]"] * 2
                choices += [f"{name}[..., {i if dim in (-1, n - 1) else 0}]", f"{name}.unbind({dim})[{i}]"]
            choices += [f"{name}.chunk(2, {dim})[-1]", f"{name}.tensor_split(2, {dim})[0]"]
            if length:
                window = rng.randint(1, length)
                choices += [f"{name}.unfold({dim}, {window}, {rng.randint(1, 2)})"]
        if n > 1:
            choices += [f"{name}.transpose({self.dim(name)}, {self.dim(name)})", f"{name}.mT", f"{name}.diagonal()"]
            choices += [f"{name}.permute({rng.sample(range(n), n)})", f"{name}.movedim(0, {self.dim(name)})"]
        base = self.tensors[name]._base
        plain = all(t is None or t.is_contiguous() for t in (self.tensors[name], base))
        if size and (base is None or base.dtype == self.tensors[name].dtype) and (plain or self.features.odd):
            count = rng.randint(1, size)
            choices += [f"{name}.as_strided(({count},), (1,))", f"{name}.as_strided(({count},), (1,), 0)"]
            choices += [f"{name}.as_strided((2, {max(count // 2, 1)}), ({rng.randint(1, 2)}, 1))"]
        return rng.choice(choices)

    def factors(self, size: int) -> str:
        """A shape of so many elements, as the arguments of view()."""
        shapes = [(size,), (-1,), (1, size)] if size else [(0,), (0, 3)]
        shapes += [(d, size // d) for d in range(2, size) if size % d == 0]
        shapes += [()] if size == 1 else []
        return str(self.rng.choice(shapes))

    def key(self, name: str) -> str:
        """What may stand between the brackets of ``t[...] = ``."""
        rng, shape = self.rng, self.shape(name)
        if not shape or 0 in shape:
            return rng.choice(["...", "()", "None"]) if not shape else "..."
        i, last = rng.randrange(shape[0]), rng.randrange(shape[-1])
        keys = [str(i), f"{i}:", ":", "...", f"..., {last}", f"[{i}, {rng.randrange(shape[0])}]", f"None, {i}", "::2"]
        keys += [f"torch.tensor([{i}])", f"{name} > 0.3" if not self.is_complex(name) else "...", f"[{i}]"]
        if len(shape) > 1:
            j = rng.randrange(shape[1])
            keys += [f"{i}, {j}", f":, {j}", f":, {j}:", f"[{i}, 0], [{j}, 0]", f":, [{j}]", f"{i}, [{j}, 0]"]
        return rng.choice(keys)

    def write(self) -> str:
        rng = self.rng
        name = self.pick(lambda t: not (t.requires_grad and _is_leaf(t)) or rng.random() < 0.1)
        if _overlaps_itself(self.tensors[name]):
            return self.compute()
        if rng.random() < 0.25 and NAMES:
            return self.assign_item(name)
        other, shape = self.operand(name), self.shape(name)
        real = not self.is_complex(name)
        choices = [f"{name}.add_({other})", f"{name}.mul_({other})", f"{name}.sub_({other}, alpha=0.5)"] * 2
        choices += [f"{name} += {other}", f"{name} *= {other}", f"{name}.mul_({name})", f"{name}.add_({name})"]
        choices += [f"{name}.fill_({self.number()})", f"{name}.zero_()", f"{name}.neg_()"]
        copies = other in self.tensors and other != name
        choices += [f"{name}.copy_({other})" if copies else f"{name}.fill_({other})"] * 2
        if real:
            choices += [f"{name}.exp_()", f"{name}.sin_()", f"{name}.tanh_()", f"{name}.relu_()", f"{name}.sigmoid_()"]
            choices += [f"{name}.clamp_(-0.5, 0.5)", f"{name}.clamp_(min=0.1)", f"{name}.pow_(2)", f"{name}.abs_()"]
            choices += [f"{name}.masked_fill_({name} > 0, {self.scalar(name)})", f"{name}.addcmul_({other}, {other})"]
            choices += [f"torch.relu_({name})", f"{name}.sqrt_()", f"{name}.div_(2)"]
            if copies and not self.share(name, other):
                choices += [f"{name}.lerp_({other}, 0.25)"]
                choices += [f"{name}.masked_scatter_({name} > 0, {other}.expand_as({name}))"]
        if shape and 0 not in shape:
            i = rng.randrange(shape[0])
            choices += [f"{name}.index_fill_(0, torch.tensor([{i}]), {self.scalar(name)})"]
            choices += [f"{name}.index_put_((torch.tensor([{i}]),), {self.cell(name)})"]
            index = _nested(shape, lambda: rng.randrange(shape[0]))
            if other in self.tensors and self.shape(other) == shape and not self.share(name, other):
                choices += [f"{name}.scatter_(0, torch.tensor({index}), {other})"]
                choices += [f"{name}.scatter_add_(0, torch.tensor({index}), {other})"]
            choices += [f"{name}.scatter_(0, torch.tensor({index}), 0.5)", f"{name}.cumsum_(0)"]
            choices += [f"{name}.index_add_(0, torch.tensor([{i}]), {self.row(name)})"]
        aliases = [t for other, t in self.tensors.items() if self.share(name, other)]
        same = all(t.dtype == self.tensors[name].dtype for t in aliases)
        if same and not self.tensors[name].retains_grad:  # else torch mixes up histories of different shapes
            if len(shape) > 1:
                choices += [f"{name}.transpose_(0, 1)", f"{name}.squeeze_()", f"{name}.tril_()"]
            choices += [f"{name}.unsqueeze_(0)"] if rng.random() < 0.3 else []
        return rng.choice(choices)

    def cell(self, name: str) -> str:
        """A value for one element or slice of a tensor: a 0-d tensor as an expression."""
        others = [o for o, t in self.tensors.items() if t.numel() and not t.is_complex()]
        others = [o for o in others if not self.share(name, o)]
        if others and not self.is_complex(name) and self.rng.random() < 0.7:
            other = self.rng.choice(others)
            return self.rng.choice([f"{other}.sum()", f"{other}.reshape(-1)[0]"])
        return f"torch.tensor({self.number()}, dtype={name}.dtype)"

    def row(self, name: str) -> str:
        others = [o for o, t in self.tensors.items() if tuple(t.shape)[1:] == self.shape(name)[1:] and t.ndim]
        others = [o for o in others if not self.share(name, o)]
        others = [o for o in others if self.shape(o)[0] and self.tensors[o].dtype == self.tensors[name].dtype]
        return f"{self.rng.choice([*others, name])}[:1].clone()"  # torch saves it

    def scalar(self, name: str) -> str:
        if self.is_complex(name):
            return self.number()
        scalars = [o for o, t in self.tensors.items() if not t.ndim and not t.is_complex()]
        return self.rng.choice([self.number(), *scalars])

    def assign_item(self, name: str) -> str:
        key = self.key(name)
        value = self.rng.choice([self.number(), self.cell(name), self.operand(name)])
        if self.rng.random() < 0.3 and key not in ("...", "None") and len(self.shape(name)):
            other = self.pick(lambda t: t is not self.tensors[name])
            fits = self.is_complex(name) or not self.is_complex(other)
            if ">" not in key and fits and not self.share(name, other):
                value = f"{other}[{key}]"
        value = self.number() if value == name else value
        operator = self.rng.choice(["=", "=", "=", "+=", "*="])
        return f"{name}[{key}] {operator} {value}"

    def compute(self) -> str:
        rng, name = self.rng, self.pick()
        other, shape = self.operand(name), self.shape(name)
        if self.tensors[name].is_inference():  # torch counts the write that makes a copy of one
            return f"{self.new()} = {rng.choice([f'{name} * {other}', f'{name} * 2', f'{name}.sum()'])}"
        choices = [f"{name} * {other}", f"{name} + {other}", f"{name} * {name}", f"{name}.clone()", f"{name} * 2"] * 2
        choices += [f"{name}.sum()", f"-{name}", f"{name} - {other}"]
        if not self.is_complex(name):
            choices += [f"{name}.exp()", f"{name}.tanh()", f"{name}.sin()", f"{name}.sigmoid()", f"{name}.relu()"]
            choices += [f"{name}.clamp(-0.5, 0.5)", f"{name} / ({name} * {name} + 1)", f"{name}.pow(2)"]
            choices += [f"torch.where({name} > 0, {name}, {other})", f"{name}.abs()"]
        if len(shape) == 2:
            choices += [f"{name} @ {name}.mT", f"{name}.mT @ {name}"]
        if shape and 0 not in shape:
            if self.tensors[name].is_contiguous():  # the order in memory is torch's secret otherwise
                choices += [f"{name}[[0, -1]]"]
            choices += [f"torch.cat([{name}, {name}])", f"torch.stack([{name}, {name}])[1]"]
            choices += [f"{name}.cumsum(0)", f"{name}.sum(0)", f"{name}.expand(2, *{name}.shape).reshape(-1)"]
            choices += [f"{name}.mul({name}).sum(-1, keepdim=True)", f"{name}.contiguous()", f"{name}.flip(0)"]
        return f"{self.new()} = {rng.choice(choices)}"

    def root(self, name: str) -> str:
        if self.is_complex(name) and not _product(self.shape(name)):
            return f"{name}.abs().sum()"  # torch stumbles over the real part of nothing
        if self.is_complex(name):
            return self.rng.choice([f"{name}.real.sum()", f"({name} * {name}).imag.sum()"])
        return self.rng.choice([f"{name}.sum()", f"({name} * {name}).sum()", f"{name}.sum()"])

    def backward(self) -> str:
        rng = self.rng
        name = self.pick(lambda t: t.requires_grad)
        retain = rng.random() < 0.6
        options = ["retain_graph=True"] if retain else []
        if rng.random() < 0.5:
            if self.features.create_graph and rng.random() < 0.1:
                options = ["create_graph=True"]
            if rng.random() < 0.15:
                options.append(f"inputs=[{self.pick(lambda t: t.requires_grad and _is_leaf(t))}]")
            return f"{self.root(name)}.backward({', '.join(options)})"
        inner = self.features.inner_gradients
        wanted = self.pick(lambda t: t.requires_grad and (inner or (_is_leaf(t) and not t._is_view())))
        if self.features.create_graph and all(t.numel() for t in self.tensors.values()) and rng.random() < 0.5:
            options = ["create_graph=True"]
        options.append("allow_unused=True")
        gradient = f"torch.autograd.grad({self.root(name)}, {wanted}, {', '.join(options)})[0]"
        return f"{self.new()} = {gradient}.contiguous().clone()"

    def detach(self) -> str:
        name = self.pick(lambda t: not t.is_inference())
        how = self.rng.choice(["detach()", "detach()", "data"]) if self.features.odd else "detach()"
        return f"{self.new()} = {name}.{how}"

    def flag(self) -> str:
        name = self.pick(lambda t: _is_leaf(t) and (self.features.odd or not t._is_view()))
        if not self.features.odd and self.tensors[name]._is_view():
            return self.leaf()
        return f"{name}.requires_grad_({self.rng.choice(['', '', 'False'])})"

    def hook(self) -> str:
        name = self.pick(lambda t: t.requires_grad)
        if not _has_gradient(self.tensors[name]):
            return self.compute()
        return self.rng.choice(
            [
                # (torch 2.13 crashes on a hook for a view whose history is out of date: look at it first)
                f"{name}.grad_fn; {name}.register_hook(log)",
                f"{name}.grad_fn; {name}.register_hook(log)",
                f"{name}.grad_fn; {name}.register_hook(lambda g: g * 2)",
                f"{name}.retain_grad()",
                f"{name}.retain_grad()",
                f"{name}.grad_fn and {name}.grad_fn.register_prehook(lambda grads: log(grads[0]))",
                f"{name}.grad_fn and {name}.grad_fn.register_hook(lambda grads, given: log(given[0]))",
                f"{name}.is_leaf and {name}.register_post_accumulate_grad_hook(lambda t: log(t.grad))",
            ]
        )

    def forget(self) -> str:
        name = self.pick()
        return self.rng.choice([f"del {name}", f"{name}.grad = None"])

    def odd(self) -> str:
        name = self.pick(lambda t: not t.is_inference() and not _overlaps_itself(t))
        other = self.operand(name)
        if other in self.tensors and not _broadcasts(self.shape(other), self.shape(name)):
            other = self.number()  # out= would take another shape
        choices = [f"{name}.detach_()", f"{name}.data.mul_(2)", f"{name}.detach().add_(1)", f"{name}.requires_grad_()"]
        fitting = [o for o, t in self.tensors.items() if tuple(t.shape) == self.shape(name)]
        fitting = [o for o in fitting if not _overlap_oddly(self.tensors[o], self.tensors[name])]
        fitting = [o for o in fitting if not _overlaps_itself(self.tensors[o])]
        if other in self.tensors:
            fitting = [o for o in fitting if not _overlap_oddly(self.tensors[o], self.tensors[other])]
        out = self.rng.choice(fitting or [name])
        choices += [f"torch.mul({name}, {other}, out={out})", f"torch.exp({name}, out={out})"]
        choices += [f"{self.new()} = torch.ones_like({name})", f"{name}.requires_grad_(False)"]
        choices += [f"{name}.grad.mul_(2)", f"{name}.detach().requires_grad_()"]
        choices += [f"torch.autograd.graph.increment_version({name})"]
        if other in self.tensors and self.shape(other) == self.shape(name) and not self.tensors[other].is_inference():
            choices += [f"{name}.data = {other}"]
            if not self.tensors[name]._is_view():
                choices += [f"with torch.no_grad(): {name}.set_({other})"]
        return self.rng.choice(choices)


def _memory(tensor: Any) -> np.ndarray:
    """The memory of a tensor as an array, whatever its conj and neg bits say of it."""
    tensor = tensor.detach()
    tensor = tensor.conj() if tensor.is_conj() else tensor
    return (tensor._neg_view() if tensor.is_neg() else tensor).numpy()


def _overlap_oddly(one: Any, other: Any) -> bool:
    """Do two tensors show the same memory in different ways? What torch then computes depends on the weather."""
    a, b = _memory(one), _memory(other)
    same = a.shape == b.shape and a.strides == b.strides and one.data_ptr() == other.data_ptr()
    return not same and np.shares_memory(a, b)


def _overlaps_itself(tensor: Any) -> bool:
    """Do elements share memory in another way than those of an expanded tensor do?"""
    positions = np.zeros(1, int)
    for n, stride in zip(tensor.shape, tensor.stride()):
        if stride or n == 1:
            positions = (positions[:, None] + np.arange(n) * stride).reshape(-1)
    return len(np.unique(positions)) < len(positions)


def _has_gradient(tensor: Any) -> bool:
    """Not so for a view from no_grad, which requires grad because its base does: torch crashes on a hook there."""
    return tensor._has_edge_() or (tensor._grad_meta_ is not None and tensor._grad_meta_.requires_grad)


def _is_leaf(tensor: Any) -> bool:
    """``tensor.is_leaf``, which looking at a view would change."""
    return not tensor._has_edge_()


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape[::-1], to[::-1]))


def _product(shape: tuple[int, ...]) -> int:
    result = 1
    for n in shape:
        result *= n
    return result


def _nested(shape: tuple[int, ...], value: Callable[[], Any]) -> Any:
    return [_nested(shape[1:], value) for _ in range(shape[0])] if shape else value()
