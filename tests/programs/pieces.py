"""What a random program is made of: statements, and the pieces of text that they are put together from.

`Writer` has a model of what each name of the program stands for, and draws names, numbers and operands that fit it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

FLOATS = ["float32"] * 5 + ["float64"] * 4 + ["float16"] * 2 + ["bfloat16"] * 2
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["int64"] * 3 + ["int32", "int16", "int8", "uint8"]
LETTER = {**dict.fromkeys(FLOATS, "f"), **dict.fromkeys(COMPLEX, "c"), **dict.fromkeys(INTEGERS, "i"), "bool": "b"}
ORDER = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
SHAPES = [(3,)] * 5 + [(2, 3)] * 6 + [(2, 2)] * 4 + [()] * 3 + [(1,), (1, 3), (2, 1), (2, 1, 3), (3, 3), (4,)] * 2
SHAPES += [(0,), (0, 2), (1, 1), (2, 2, 2)]


@dataclass
class Statement:
    """A line, the head of a block with a body, or (`raw`) lines that stand by themselves."""

    text: str
    body: list[Statement] | None = None
    raw: bool = False


def render(program: list[Statement]) -> str:
    """The program as Python; the statements are numbered in the order in which they stand."""
    lines: list[str] = []
    counter = iter(range(10**9))

    def write(statements: list[Statement], margin: str) -> None:
        for statement in statements:
            if statement.raw:
                lines.extend(margin + line for line in statement.text.split("\n"))
            elif statement.body is None:
                lines.append(f"{margin}with at({next(counter)}): {statement.text}")
            else:
                lines.append(f"{margin}with at({next(counter)}), {statement.text}:")
                if not statement.body:
                    lines.append(f"{margin}    pass")
                write(statement.body, margin + "    ")

    write(program, "")
    return "\n".join(lines) + "\n"


def size(program: list[Statement]) -> int:
    """How many statements there are, bodies included."""
    return sum(1 + (size(s.body) if s.body is not None else 0) for s in program)


@dataclass
class Variable:
    """What the generator believes of a name."""

    name: str
    shape: tuple[int, ...] | None
    dtype: str
    requires_grad: bool = False
    leaf: bool = True
    memory: int = 0  # the same number: the same memory
    stretched: bool = False  # elements share memory
    inference: bool = False

    @property
    def letter(self) -> str:
        return LETTER[self.dtype]


@dataclass
class Modes:
    """Where in the program we are."""

    grad: bool = True
    inference: bool = False
    dual: bool = False
    depth: int = 0


@dataclass
class Style:
    """What one program is about: each has some of the features, so that those meet which it has."""

    special: float  # share of special values among numbers
    dtypes: list[str]
    looks: float
    weights: dict[str, float] = field(default_factory=dict)


class Writer:
    """Draws the pieces of one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random
        self.variables: dict[str, Variable] = {}
        self.handles: list[str] = []
        self.functions: dict[str, tuple[int, int, bool]] = {}  # custom: inputs, outputs, is the last input a number
        self.count = {"v": 0, "h": 0, "C": 0, "memory": 0}
        self.modes = Modes()
        self.style: Style

    # ----------------------------------------------------------------------------------------------------- drawing

    def one(self, items: Sequence[Any]) -> Any:
        return items[int(self.random() * len(items))]

    def chance(self, share: float) -> bool:
        return self.random() < share

    def weighted(self, weights: dict[str, float]) -> str:
        at = self.random() * sum(weights.values())
        for name, weight in weights.items():
            if at < weight:
                return name
            at -= weight
        return next(iter(weights))

    def new(self, shape: tuple[int, ...] | None, dtype: str, **flags: Any) -> Variable:
        """A name that stands for something from here on."""
        self.count["v"] += 1
        variable = Variable(f"v{self.count['v']}", shape, dtype, **flags)
        if not variable.memory:
            variable.memory = self.fresh()
        if self.modes.inference:
            variable.requires_grad = False
            variable.inference = True
        self.variables[variable.name] = variable
        return variable

    def fresh(self) -> int:
        self.count["memory"] += 1
        return self.count["memory"]

    def pick(self, test: Callable[[Variable], bool] = lambda v: True) -> Variable:
        """A variable; the newer, the likelier; one that passes the test, if there is one."""
        found = [v for v in self.variables.values() if test(v)] or list(self.variables.values())
        return found[-1 - int(self.random() * self.random() * len(found))]

    # ------------------------------------------------------------------------------------------------------ pieces

    def number(self, letter: str, scalar: bool = False) -> str:
        """A number that a tensor of such a dtype may hold; as an argument (`scalar`), of any dtype now and then."""
        if scalar and self.chance(0.08):
            letter = self.one("fcib")
        if letter == "b":
            return self.one(["True", "False"])
        if letter == "i":
            return self.one(["0", "1", "2", "3", "-1", "-2", "5"])
        if letter == "c":
            return f"({self.number('f')}{self.one(['+', '-'])}{self.one(['0.5', '1.25', '0.0', '2.0'])}j)"
        if self.chance(self.style.special):
            return self.one(["float('nan')", "float('inf')", "-float('inf')", "0.0", "-0.0", "1.0", "-1.0"])
        return self.one(
            ["0.5", "1.5", "-0.75", "2.0", "0.25", "-1.25", "1.0", "0.625", "-0.375", "0.875", "2", "0.125"]
        )

    def values(self, shape: tuple[int, ...], letter: str) -> str:
        if not shape:
            text = self.number(letter)
            return text[1:] if letter == "i" and text.startswith("-") and self.unsigned else text
        return "[" + ", ".join(self.values(shape[1:], letter) for _ in range(shape[0])) + "]"

    def literal(self, shape: tuple[int, ...], dtype: str) -> str:
        if 0 in shape:
            return f"torch.zeros({shape}, dtype=torch.{dtype})"
        self.unsigned = dtype == "uint8"
        return f"torch.tensor({self.values(shape, LETTER[dtype])}, dtype=torch.{dtype})"

    def like(self, a: Variable) -> str:
        """A tensor of the same shape, as an expression."""
        same = [v.name for v in self.variables.values() if v.shape == a.shape and v is not a and a.shape is not None]
        if same and self.chance(0.75):
            return self.one(same)
        if a.shape is not None and self.chance(0.5):
            dtype = a.dtype if self.chance(0.6) else self.one(self.style.dtypes)
            return self.literal(a.shape, dtype)
        return self.one([a.name, f"{a.name}.clone()", f"{a.name}.detach()", f"torch.ones_like({a.name})"])

    def operand(self, a: Variable) -> str:
        """Something that broadcasts with a tensor, as an expression."""
        if self.chance(0.3):
            return self.number(a.letter, scalar=True)
        fitting = [v.name for v in self.variables.values() if v is not a and broadcast(v.shape, a.shape)]
        if fitting and self.chance(0.85):
            return self.one(fitting)
        if self.chance(0.2):
            return self.literal((), self.one(self.style.dtypes))
        return self.like(a)

    def within(self, a: Variable) -> str:
        """Something that may be written into a tensor: broadcasts to it, and lies elsewhere in memory."""
        fitting = [
            v.name
            for v in self.variables.values()
            if v.memory != a.memory and broadcast(v.shape, a.shape) == a.shape and a.shape is not None
            and (ORDER.index(v.dtype) <= ORDER.index(a.dtype) or self.chance(0.1))
        ]  # fmt: skip
        if fitting and self.chance(0.8):
            return self.one(fitting)
        return self.number(a.letter, scalar=True)

    def dim(self, a: Variable) -> str:
        n = len(a.shape) if a.shape is not None else 1
        return str(int(self.random() * n)) if n and self.chance(0.5) else "-1"

    def filled(self, text: str, a: Variable, writes: bool = False) -> str:
        """An operator's text with its holes filled."""
        holes = {
            "a": a.name,
            "k": self.one(["True", "False"]),
            "t": "torch." + self.one(FLOATS),
        }
        if "{s}" in text:
            holes["s"] = self.elsewhere(a) if writes else self.like(a)
        if "{b}" in text:
            holes["b"] = self.within(a) if writes else self.operand(a)
        if "{d}" in text:
            holes["d"] = self.dim(a)
        if "{i}" in text:
            holes["i"] = self.positions(a)
        if "{m}" in text:
            masks = [v.name for v in self.variables.values() if v.dtype == "bool" and v.shape == a.shape is not None]
            holes["m"] = self.one(masks) if masks and self.chance(0.5) else f"({a.name} != {self.number('f')})"
        while "{n}" in text:
            text = text.replace("{n}", self.number(a.letter), 1)
        for hole, filling in holes.items():
            text = text.replace("{" + hole + "}", filling)
        return text

    def elsewhere(self, a: Variable) -> str:
        """Like `like`, but not in the memory of `a`."""
        same = [v.name for v in self.variables.values() if v.shape == a.shape is not None and v.memory != a.memory]
        same = [name for name in same if ORDER.index(self.variables[name].dtype) <= ORDER.index(a.dtype)]
        if same and self.chance(0.8):
            return self.one(same)
        return f"{a.name}.clone()" if self.chance(0.5) else f"torch.ones_like({a.name})"

    def positions(self, a: Variable) -> str:
        n = a.shape[0] if a.shape else 1
        choices = ["0", *map(str, range(n))]  # none that is refused: torch's kernels write some before they refuse
        return f"torch.tensor([{', '.join(self.one(choices) for _ in range(self.one([1, 1, 2, 2, 3])))}])"

    def assigned(self, text: str, a: Variable, shape: tuple[int, ...] | None, **flags: Any) -> Statement:
        """``v7 = text``."""
        dtype = flags.pop("dtype", a.dtype)
        words = ("abs()", "angle()", "norm(", ".std(", ".var(", "real(")
        if LETTER[dtype] == "c" and any(word in text for word in words):
            dtype = {"complex64": "float32", "complex128": "float64"}[dtype]
        names = [v for v in self.variables.values() if v.name in names_in(text)]
        needs = self.modes.grad and LETTER[dtype] in "fc" and any(v.requires_grad for v in names)
        needs = needs and ".detach()" not in text and not text.endswith(".data")
        variable = self.new(shape, dtype, requires_grad=needs, leaf=not needs, **flags)
        return Statement(f"{variable.name} = {text}")

    def choose(self, table: dict[str, Any], a: Variable, writes: bool = False) -> str:
        """The text of an entry that fits the tensor's dtype and dimensions, most of the time."""
        text = ""
        for _ in range(6):
            text = self.one(list(table))
            kinds = table[text] if isinstance(table[text], str) else table[text][0]
            if a.letter in kinds and least_dimensions(text) <= (2 if a.shape is None else len(a.shape)):
                break
        return text


# ----------------------------------------------------------------------------------------------------- texts and shapes


def names_in(text: str) -> set[str]:
    """The variables that a text speaks of."""
    return set(re.findall(r"\bv\d+\b", text))


def least_dimensions(text: str) -> int:
    """How many dimensions an operator's text asks for."""
    if any(
        word in text for word in (".mT", ".mH", "@", "diagonal", "tril", ".T", "t_()", "fill_diag", "trace", "cdist")
    ):
        return 2
    if any(
        word in text for word in ("[0]", "[-1", "{i}", "[...,", "unfold", "[:1]", "cat(", "split(1", "unbind", "{d}")
    ):
        return 1
    if any(word in text for word in ("permute", "transpose", "movedim", "swapaxes", "flip(0)", "unflatten", "renorm")):
        return 1
    return 0


def broadcast(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The shape that two shapes broadcast to; None if they do not, or if one is not known."""
    if a is None or b is None:
        return None
    if len(a) < len(b):
        a, b = b, a
    shape = list(a)
    for i in range(1, len(b) + 1):
        if b[-i] != 1 and shape[-i] == 1:
            shape[-i] = b[-i]
        elif b[-i] not in (1, shape[-i]):
            return None
    return tuple(shape)


def view_shape(text: str, shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The shape of a view, where it is easily told."""
    if shape is None:
        return None
    count = 1
    for n in shape:
        count *= n
    known: dict[str, Any] = {
        "{a}[None]": (1, *shape),
        "{a}[0]": shape[1:],
        "{a}[-1:]": (min(1, shape[0]), *shape[1:]) if shape else None,
        "{a}[..., 0]": shape[:-1],
        "{a}.view(-1)": (count,),
        "{a}.reshape(-1)": (count,),
        "{a}.flatten()": (count,),
        "{a}.mT": (*shape[:-2], *shape[:-3:-1]),
        "{a}.mH": (*shape[:-2], *shape[:-3:-1]),
        "{a}.T": shape[::-1],
        "{a}.squeeze()": tuple(n for n in shape if n != 1),
        "!{a}.expand(2, *{a}.shape)": (2, *shape),
        "!{a}.expand_as({s})": shape,
        "!{a}.broadcast_to((2, *{a}.shape))": (2, *shape),
        "torch.view_as_real({a})": (*shape, 2),
    }
    same = (
        "[...]",
        ".real",
        ".imag",
        ".conj()",
        "view_as({a})",
        "detach()",
        ".data",
        "contiguous()",
        "{a}.dtype)",
        "_conj()",
    )
    if text.endswith(same):
        return shape
    return known.get(text)
