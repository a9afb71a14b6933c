"""Functions that a user writes: custom Functions with options at random, and functions that are checkpointed."""

from __future__ import annotations

from .pieces import Statement, Writer, broadcast


class FunctionWriter(Writer):
    """Writes custom Functions, checkpoints, and their calls."""

    def expression(self, names: list[str]) -> str:
        """A small differentiable expression over names."""
        text = self.one(names)
        for _ in range(1 + int(self.random() * 3)):
            other = self.one([*names, "2", "0.5"])
            text = self.one(
                [f"({text}).tanh()", f"({text} * {other})", f"({text} + {other})", f"({text}).exp()", f"({text}).sin()",
                 f"({text}).abs()", f"({text}).clone()", f"({text} * {text})"]
            )  # fmt: skip
        return text

    def checkpoint(self) -> Statement:
        a = self.pick(lambda v: v.letter in "fc")
        b = self.pick(lambda v: v.letter in "fc")
        inner = self.expression(["x", "y"] + (["x.detach()"] if self.chance(0.1) else []))
        two = self.chance(0.2)
        if two:
            inner = f"({inner}, {self.expression(['x', 'y'])})"
        if self.chance(0.15):
            inner = f"note('inside', torch.is_grad_enabled(), x.requires_grad) or {inner}"
        call = f"checkpoint(lambda x, y: {inner}, {a.name}, {b.name}, use_reentrant={self.one(['True', 'False'])})"
        if two:
            return self.assigned(call + "[0]", a, None)
        return self.assigned(call, a, broadcast(a.shape, b.shape))

    def custom(self) -> list[Statement]:
        """A custom function, a new one or one that there is, and a call of it."""
        made: list[Statement] = []
        if not self.functions or self.chance(0.4):
            made.append(self.function_class())
        name = self.one(list(self.functions))
        inputs, outputs, number = self.functions[name]
        a = self.pick(lambda v: v.letter in "fc" and v.shape is not None)
        arguments = [a.name, *(self.like(a) for _ in range(inputs - 1))]
        if number:
            arguments[-1] = self.number("f")
        call = f"{name}.apply({', '.join(arguments)})"
        results = [self.assigned(call, a, a.shape, stretched=True).text.split(" = ")[0] for _ in range(outputs)]
        made.append(Statement(f"{', '.join(results)} = {call}"))
        return made

    def function_class(self) -> Statement:
        """A class with options at random: how it saves, what it marks, what its backward gives and refuses."""
        self.count["C"] += 1
        name = f"C{self.count['C']}"
        inputs, outputs = self.one([1, 1, 2, 2, 3]), self.one([1, 1, 1, 2])
        number = inputs > 1 and self.chance(0.25)
        self.functions[name] = inputs, outputs, number
        xs, ys = ["x", "y", "z"][:inputs], ["p", "q"][:outputs]
        tensors = xs[:-1] if number else xs
        separate, dirty = self.chance(0.35), self.chance(0.15)
        body, marks = [], []
        for y in ys:
            value = self.one(
                [f"{self.one(tensors)} * 2", f"{self.one(tensors)}.clone()", f"{xs[0]}.sin()", f"{xs[0]} * {xs[-1]}"]
                * 3
                + [self.one(tensors), f"{xs[0]}.view_as({xs[0]})", f"{xs[0]}.detach()", f"{xs[0]} > 0"]
            )
            body.append(f"{y} = {value}")
        if dirty:
            body[0] = self.one([f"{ys[0]} = {xs[0]}.mul_(2)", f"{ys[0]} = {xs[0]}.add_(1)"])
            marks.append(f"ctx.mark_dirty({xs[0]})")
        saved: list[str] = []
        if self.chance(0.7):
            saved = [v for v in tensors + ys if self.chance(0.5)] or [xs[0]]
            marks.append(f"ctx.save_for_backward({', '.join(saved)})")
        if self.chance(0.2):
            marks.append(f"ctx.mark_non_differentiable({self.one(ys)})")
        if self.chance(0.3):
            marks.append("ctx.set_materialize_grads(False)")
        returned = ", ".join(ys)
        lines = [f"class {name}(torch.autograd.Function):", "    @staticmethod"]
        if separate:
            lines += [f"    def forward({', '.join(xs)}):", *(f"        {line}" for line in body)]
            lines += [f"        return {returned}", "    @staticmethod", "    def setup_context(ctx, given, made):"]
            lines += [f"        {', '.join(xs)}, = given", f"        {returned} = made"]
            lines += [f"        {mark}" for mark in marks]
        else:
            lines += [f"    def forward(ctx, {', '.join(xs)}):", *(f"        {line}" for line in body + marks)]
            lines += [f"        return {returned}"]
        if self.chance(0.9):
            gs = ["g", "h"][:outputs]
            lines += ["    @staticmethod"] + ["    @once_differentiable"] * self.chance(0.2)
            lines += [f"    def backward(ctx, {', '.join(gs)}):"]
            lines += [f"        note('{name}.backward', ctx.needs_input_grad, {', '.join(gs)})"]
            if saved:
                lines += [f"        {', '.join(f's{i}' for i in range(len(saved)))}, = ctx.saved_tensors"]
            answers = []
            for i in range(inputs):
                g = self.one(gs)
                answer = self.one(
                    [f"{g} * 2", g, f"-{g}", f"{g} * {3 + i}"] * 2
                    + ["None", f"{g}.sum()", f"{g} * s0" if saved else g, f"{g}.expand_as({g})"]
                )
                if number and i == inputs - 1:
                    answer = "None"
                guard = self.one(["", f" if ctx.needs_input_grad[{i}] else None", f" if {g} is not None else None"])
                answers.append(answer + guard)
            if self.chance(0.05):
                answers.append("None")
            lines += [f"        return {', '.join(answers)}"]
        if self.chance(0.25):
            lines += ["    @staticmethod", "    def jvp(ctx, *ts):"]
            lines += [f"        return {', '.join(['ts[0] * 2'] * outputs)}"]
        return Statement("\n".join(lines), raw=True)
