"""Writes random programs: whole scripts as data, before anything runs.

A program is a list of `Statement`, some of which are blocks with statements of their own (``with torch.no_grad():``)
or classes (a custom Function).  `render` makes the Python text that is run, and printed: what is compared is what the
script writes down by itself (recorder.py).

The generator (tests/aliasing looks at running tensors; this one cannot) has a model of its own of what each name stands
for: a shape, if it is known, a dtype and some flags.  The model may be wrong: then the statement fails, in both
libraries or in one of them, and that is an event like others.

Only `Random.random` is used, whose sequence Python promises to keep: a seed is one program, on every version.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from . import operators as ops
from .functions import FunctionWriter
from .pieces import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    LETTER,
    SHAPES,
    Statement,
    Style,
    Variable,
    broadcast,
    names_in,
    view_shape,
)


class Generator(FunctionWriter):
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.style = self.draw_style()

    def draw_style(self) -> Style:
        dtypes = list(FLOATS)
        dtypes += COMPLEX * (4 if self.chance(0.4) else 0)
        dtypes += INTEGERS * (2 if self.chance(0.5) else 0) + ["bool"] * self.chance(0.5)
        if self.chance(0.35):
            dtypes = ["float64"] * 8 + dtypes[-3:]
        special = self.one([0.0, 0.0, 0.0, 0.15])
        weights = {
            "leaf": 1.0, "unary": 2, "same": 4, "binary": 5, "tensors": 2, "reduce": 2, "total": 1.5, "several": 1.5,
            "matrix": 1.5, "parts": 2, "view": 5, "write": 5, "convert": 1.0, "backward": 4, "flag": 1.0,
            "gradient": 0.7, "block": 2.0, "delete": 0.2,
        }  # fmt: skip
        for name, weight in [("hook", 4.0), ("custom", 2.5), ("checkpoint", 2.0), ("out", 1.0), ("dual", 1.5)]:
            weights[name] = weight if self.chance(0.4) else 0.1
        return Style(special, dtypes, self.one([0.0, 0.25, 1.0]), weights)

    # ------------------------------------------------------------------------------------------------------ programs

    def program(self) -> list[Statement]:
        body: list[Statement] = []
        self.fill(body, 4 + int(self.random() * 14), start=True)
        if not body or body[-1].text != "look()":
            body.append(Statement("look()"))
        return body

    def fill(self, body: list[Statement], length: int, start: bool = False) -> None:
        """Append statements."""
        if start:
            for _ in range(1 + int(self.random() * 3)):
                body.append(self.leaf())
        for _ in range(length):
            kind = self.weighted(self.style.weights)
            made = getattr(self, kind)()
            body.extend(made if isinstance(made, list) else [made])
            if self.chance(self.style.looks):
                body.append(Statement("look()"))

    # -------------------------------------------------------------------------------------------------- statements

    def leaf(self) -> Statement:
        shape, dtype = self.one(SHAPES), self.one(self.style.dtypes)
        text = self.literal(shape, dtype)
        if len(shape) > 1 and self.chance(0.15):
            text, shape = f"{text}.transpose(0, -1)", (shape[-1], *shape[1:-1], shape[0])
        stretched = False
        if shape and self.chance(0.05):
            text, shape, stretched = f"{text}.expand(2, *{shape})", (2, *shape), True
        elif shape and self.chance(0.08):
            text = f"torch.stack([{text}] * 2, -1)[..., 0]"
        requires = LETTER[dtype] in "fc" and self.chance(0.7)
        if requires:
            text += ".detach().requires_grad_()" if text[-2:] != "))" and self.chance(0.5) else ".requires_grad_()"
        v = self.new(shape, dtype, requires_grad=requires, stretched=stretched)
        return Statement(f"{v.name} = {text}")

    def unary(self) -> Statement:
        a = self.pick()
        kinds = [kind for kind in ops.UNARY if a.letter in kind] or list(ops.UNARY)
        name = self.one([name for kind in kinds for name in ops.UNARY[kind]])
        dtype = "float32" if a.letter in "ib" and name not in ops.UNARY["fi"] else a.dtype
        return self.assigned(self.one([f"{a.name}.{name}()", f"torch.{name}({a.name})"]), a, a.shape, dtype=dtype)

    def same(self) -> Statement:
        a = self.pick()
        text = self.choose(ops.SAME_SHAPE, a)
        memory = a.memory if text in ("{a}.contiguous()", "{a}.conj()", "{a}.positive()", "torch.real({a})") else 0
        return self.assigned(self.filled(text, a), a, a.shape, memory=memory, stretched=a.stretched and bool(memory))

    def binary(self) -> Statement:
        a = self.pick()
        text = self.filled(self.choose(ops.BINARY, a), a)
        others = [v for v in self.variables.values() if v.name in names_in(text)]
        shape: Any = a.shape
        for v in others:
            shape = broadcast(shape, v.shape)
        dtype = "bool" if any(c in text for c in (" > ", " <= ", " == ", ".ne(")) else a.dtype
        return self.assigned(text, a, shape, dtype=dtype)

    def tensors(self) -> Statement:
        a = self.pick()
        text = self.choose(ops.TENSORS, a)
        dtype = "bool" if "logical" in text else a.dtype
        return self.assigned(self.filled(text, a), a, None if "kron" in text else a.shape, dtype=dtype)

    def reduce(self) -> Statement:
        a = self.pick(lambda v: v.shape != ())
        text = self.choose(ops.REDUCE, a)
        filled = self.filled(text, a)
        shape, dtype = a.shape, a.dtype
        if shape is not None and "{k}" in text:
            shape = (*shape[:-1], 1) if "keepdim=True" in filled else shape[:-1]
            if "-1" not in filled and len(shape) != 1 - ("keepdim=True" not in filled):
                shape = None
        else:
            shape = None
        if ".all(" in text or ".any(" in text:
            dtype = "bool"
        elif "arg" in text or "count" in text:
            dtype = "int64"
        return self.assigned(filled, a, shape, dtype=dtype)

    def total(self) -> Statement:
        a = self.pick()
        text = self.choose(ops.TOTAL, a)
        dtype = "int64" if "arg" in text else "bool" if "any" in text else a.dtype
        return self.assigned(self.filled(text, a), a, (), dtype=dtype)

    def several(self) -> Statement:
        a = self.pick(lambda v: v.shape is None or len(v.shape) > 0)
        text = self.choose(ops.SEVERAL, a)
        count = ops.SEVERAL[text][1]
        filled = self.filled(text, a)
        view = any(word in text for word in ("unbind", "split", "chunk", "broadcast_tensors", "meshgrid"))
        memory = a.memory if view else 0
        first = self.assigned(filled, a, None, memory=memory, stretched=True)
        names = [first.text.split(" = ")[0]]
        for _ in range(count - 1):
            indices = not view and not any(word in text for word in ("aminmax", "mean", "logdet"))
            more = self.assigned(filled, a, None, dtype="int64" if indices else a.dtype, memory=memory, stretched=True)
            names.append(more.text.split(" = ")[0])
        return Statement(f"{', '.join(names)} = {filled}")

    def matrix(self) -> Statement:
        a = self.pick(lambda v: v.shape is not None and len(v.shape) > 1)
        return self.assigned(self.filled(self.choose(ops.MATRIX, a), a), a, None)

    def parts(self) -> Statement:
        a = self.pick(lambda v: v.shape != ())
        text = self.choose(ops.PARTS, a)
        dtype = "int64" if any(word in text for word in ("nonzero", "one_hot", "bincount")) else a.dtype
        return self.assigned(self.filled(text, a), a, None, dtype=dtype)

    def view(self) -> Statement:
        a = self.pick()
        text = self.choose(ops.VIEWS, a)
        shape = view_shape(text, a.shape)
        dtype = a.dtype
        if text in ("{a}.real", "{a}.imag", "torch.view_as_real({a})"):
            dtype = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
        stretched = a.stretched or text.startswith("!")
        filled = self.filled(text.lstrip("!"), a)
        return self.assigned(filled, a, shape, dtype=dtype, memory=a.memory, stretched=stretched)

    def write(self) -> Statement:
        def writable(v: Variable) -> bool:
            if v.stretched or (v.inference and not self.modes.inference):
                return False
            return not (v.leaf and v.requires_grad and self.modes.grad)

        a = self.pick(writable if self.chance(0.93) else lambda v: True)
        if not writable(a) and self.chance(0.8):
            return self.binary()
        chance = self.random()
        if chance < 0.2:
            kinds = [kind for kind in ops.UNARY if a.letter in kind] or list(ops.UNARY)
            text = f"{a.name}.{self.one([name for kind in kinds for name in ops.UNARY[kind]])}_()"
        elif chance < 0.4:
            text = f"{a.name}.{self.one(ops.IN_PLACE_BINARY)}({self.within(a)})"
        else:
            text = self.filled(self.choose(ops.WRITES, a), a, writes=True)
        if any(word in text for word in ("squeeze_", "t_()", "transpose_", "swapdims_")):
            a.shape = None
        if (
            self.modes.grad
            and "detach_" not in text
            and any(v.requires_grad and v.name in names_in(text) for v in self.variables.values())
        ):
            for v in self.variables.values():
                if v.memory == a.memory and v.letter in "fc":
                    v.requires_grad, v.leaf = True, False
        return Statement(text)

    def convert(self) -> Statement:
        a = self.pick()
        dtype = self.one(self.style.dtypes)
        text = self.one([f"{a.name}.to(torch.{dtype})", f"{a.name}.to(torch.{dtype}, copy=True)"])
        if self.chance(0.3):
            return self.assigned(f"{a.name}.float()", a, a.shape, dtype="float32", memory=a.memory)
        return self.assigned(text, a, a.shape, dtype=dtype, memory=a.memory if a.dtype == dtype else 0)

    def out(self) -> Statement:
        a = self.pick(lambda v: not v.requires_grad)
        text = self.choose(ops.OUT, a)
        text = self.filled(text, a)
        into = [
            v.name
            for v in self.variables.values()
            if v.memory != a.memory and not v.stretched and not v.requires_grad and v.shape == a.shape is not None
        ]
        into = [name for name in into if name not in names_in(text)]
        out = self.one(into) if into and self.chance(0.5) else f"torch.empty(0, dtype=torch.{a.dtype})"
        return self.assigned(text.replace("{o}", out), a, None, stretched=True)

    def flag(self) -> Statement:
        a = self.pick()
        choice = self.random()
        if choice < 0.3:
            return Statement(f"hookable({a.name}).retain_grad()")
        if choice < 0.45:
            a.requires_grad = True
            return Statement(f"{a.name}.requires_grad_()")
        if choice < 0.55:
            return Statement(f"{a.name}.requires_grad_(False)")
        if choice < 0.7:
            return self.assigned(f"{a.name}.detach()", a, a.shape, memory=a.memory, stretched=a.stretched)
        if choice < 0.8:
            return self.assigned(f"{a.name}.detach().clone().requires_grad_()", a, a.shape)
        return Statement(f"note('flags', {a.name}.requires_grad, {a.name}.is_leaf, torch.is_grad_enabled())")

    def delete(self) -> Statement:
        a = self.pick()
        if len(self.variables) > 3:
            del self.variables[a.name]
            return Statement(f"del {a.name}")
        return self.leaf()

    def gradient(self) -> Statement:
        """What is done to .grad between backward passes."""
        a = self.pick(lambda v: v.requires_grad and v.leaf)
        name = a.name
        return Statement(
            self.one(
                [
                    f"{name}.grad = None",
                    f"{name}.grad.zero_()",
                    f"{name}.grad = torch.ones_like({name})",
                    f"{name}.grad = {self.like(a)}",
                    f"{name}.grad *= 2",
                    f"{name}.grad = {name}.grad.clone()",
                    f"{name}.grad.detach_()",
                    f"{name}.grad = {name}.grad.expand_as({name})",
                    f"{name}.grad = torch.ones(2)",
                    f"{name}.grad = {name}",
                ]
            )
        )

    def root(self, a: Variable) -> str:
        """A scalar made of a tensor, to start a backward pass from."""
        if a.shape == () and a.letter == "f" and self.chance(0.7):
            return a.name
        if a.letter == "c":
            return self.one([f"{a.name}.abs().sum()", f"{a.name}.real.sum()", f"({a.name} * {a.name}).imag.sum()"])
        return self.one([f"{a.name}.sum()", f"({a.name} * {a.name}).sum()", f"{a.name}.float().sum()"])

    def backward(self) -> Statement:
        a = self.pick(lambda v: v.requires_grad and not v.leaf)
        leaves = [v.name for v in self.variables.values() if v.requires_grad]
        options = [self.one(["", "", "retain_graph=True", "retain_graph=True", "create_graph=True"])]
        if self.chance(0.55):
            if leaves and self.chance(0.2):
                options.append(f"inputs=[{', '.join(dict.fromkeys(self.one(leaves) for _ in range(2)))}]")
            if self.chance(0.25):
                weight = self.one([f"torch.ones_like({a.name})", f"{self.like(a)}.detach().clone()", "None"])
                options.insert(0, weight)
                return Statement(f"{a.name}.backward({', '.join(filter(None, options))})")
            return Statement(f"{self.root(a)}.backward({', '.join(filter(None, options))})")
        wanted = list(dict.fromkeys(self.one(leaves or [a.name]) for _ in range(self.one([1, 1, 2]))))
        options.append(self.one(["", "allow_unused=True", "allow_unused=True", "materialize_grads=True"]))
        if self.chance(0.3):
            outputs = f"[{a.name}], [{', '.join(wanted)}], [{self.like(a)}.detach().clone()]"
        else:
            outputs = f"{self.root(a)}, [{', '.join(wanted)}]"
        call = f"torch.autograd.grad({', '.join(filter(None, [outputs, *options]))})"
        results = []
        for name in wanted:
            v = self.variables[name]
            graph = "create_graph" in call
            results.append(self.new(v.shape, v.dtype, requires_grad=graph, leaf=not graph, stretched=True).name)
        return Statement(f"{', '.join(results)}, = own({call})")

    def hook(self) -> Statement:
        if self.handles and self.chance(0.25):
            return Statement(f"{self.one(self.handles)}.remove()")
        a = self.pick(lambda v: v.requires_grad)
        self.count["h"] += 1
        handle = f"h{self.count['h']}"
        name = f"hookable({a.name})"
        answer = self.one(
            ["", "", ", lambda g: g * 2", ", lambda g: g.clone()", ", lambda g: g + 1", ", lambda g: g.detach()"]
            + ([f", lambda g: {self.one(self.handles)}.remove()"] * 2 if self.handles else [])
            + [", lambda g: g.mul_(2) if torch.is_grad_enabled() else None", f", lambda g: {handle}.remove()"]
        )
        with_two = answer.replace("lambda g: g", "lambda g, _: g[0] is not None and (g[0]").replace(
            "lambda g:", "lambda g, _:"
        )
        if "(g[0]" in with_two:
            with_two = f"{with_two}, *g[1:]) or None"
        with_one = with_two.replace("lambda g, _", "lambda g")
        kinds = {
            f"{name}.register_hook(hook('{handle}'{answer}))": 4.0,
            f"{name}.grad_fn.register_prehook(hook('{handle}'{with_one}))": 1.5,
            f"{name}.grad_fn.register_hook(hook('{handle}'{with_two}))": 1.5,
            f"{name}.register_post_accumulate_grad_hook(hook('{handle}'{self.after(handle)}))": 2,
        }
        others = [v.name for v in self.variables.values() if v.requires_grad]
        if len(others) > 1:
            two = f"[hookable({self.one(others)}), {name}]"
            mode = self.one(["all", "any"])
            kinds[f"torch.autograd.graph.register_multi_grad_hook({two}, hook('{handle}'), mode='{mode}')"] = 1.0
        self.handles.append(handle)
        return Statement(f"{handle} = {self.weighted(kinds)}")

    def after(self, handle: str) -> str:
        """What a hook does after a gradient has been accumulated."""
        choices = ["", ", lambda t: setattr(t, 'grad', None)", ", lambda t: t.grad.mul_(2) and None"]
        choices += [f", lambda t: {handle}.remove()", ", lambda t: t.data.sub_(t.grad, alpha=0.5) and None"]
        return self.one(choices)

    # ------------------------------------------------------------------------------------------------------- blocks

    def block(self) -> Statement:
        before = replace(self.modes)
        if before.depth > 2:
            return self.view()
        head = self.weighted(
            {
                "torch.no_grad()": 4,
                "torch.enable_grad()": 3,
                "torch.set_grad_enabled(False)": 1,
                "torch.set_grad_enabled(True)": 1,
                "torch.inference_mode()": 2.5,
                "torch.inference_mode(False)": 1,
                "torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x)": 1,
                "torch.autograd.set_multithreading_enabled(False)": 0.3,
            }
        )
        self.modes.depth += 1
        if head in ("torch.no_grad()", "torch.set_grad_enabled(False)"):
            self.modes.grad = False
        elif head in ("torch.enable_grad()", "torch.set_grad_enabled(True)"):
            self.modes.grad = True
        elif head == "torch.inference_mode()":
            self.modes.grad, self.modes.inference = False, True
        elif head == "torch.inference_mode(False)":
            self.modes.grad, self.modes.inference = True, False
        body: list[Statement] = []
        self.fill(body, 1 + int(self.random() * 4))
        self.modes = before
        return Statement(head, body)

    def dual(self) -> Statement | list[Statement]:
        """A dual level with what happens in it; in one, something that makes or takes apart a dual tensor."""
        if self.modes.dual:
            if self.chance(0.7):
                a = self.pick(lambda v: v.letter in "fc" and not v.stretched)
                tangent = f"torch.ones_like({a.name})" if a.shape is None else self.literal(a.shape, a.dtype)
                made = f"fw.make_dual({a.name}, {tangent}.to({a.name}.dtype))"
                return self.assigned(made, a, a.shape, memory=a.memory, stretched=a.stretched)
            a = self.pick()
            part = self.one(["fw.unpack_dual({}).primal", "tangent({})", "tangent({})"])
            return self.assigned(part.format(a.name), a, a.shape, stretched=True)
        if self.modes.depth > 2:
            return self.view()
        before = replace(self.modes)
        self.modes.dual = True
        self.modes.depth += 1
        weights, self.style.weights = self.style.weights, {**self.style.weights, "dual": 3.0}
        body: list[Statement] = []
        first = self.dual()
        body.extend(first if isinstance(first, list) else [first])
        self.fill(body, 2 + int(self.random() * 6))
        body.append(Statement("look()"))
        self.style.weights = weights
        self.modes = before
        return Statement("fw.dual_level()", body)
