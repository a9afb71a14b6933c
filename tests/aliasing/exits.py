"""Where the comparison of a program ends before the program does.

Some statements leave the two libraries in states that differ for a reason that is known and is not what the programs
are about; what follows cannot be compared. Each such place has a name here, the reason, and a budget: the share of
programs of twelve statements that may end there. A test that runs programs counts and calls `check`, which fails when a
budget is exceeded, so that a new difference cannot hide behind an old reason; in the long run `check_met` fails if
programs never end at a place any more, for then it has to go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

#: name -> (share of programs of twelve statements that may end there, why). All but those under "either" are faults or
#: habits of torch's.
EXITS: dict[str, tuple[float, str]] = {
    # ---------------------------------------------------------------------------------------------- torch's alone
    "inference view": (0.01, "torch takes x.view(dtype) of inference mode for a new tensor"),
    "other shape": (0.001, "after base.unsqueeze_(), torch gives a view of it another shape's history"),
    "internal assert": (0.001, "torch trips over itself"),
    "nameless error": (0.001, "torch cannot say what a view is: the base of a view with history does not require grad"),
    "checked too much": (0.001, "torch checks what a node has saved even if no gradient is wanted that needs it"),
    "view as leaf": (0.002, "torch takes a view for a leaf until it has looked at what became of its base"),
    "forgotten gradient": (0.001, "torch forgets the .grad of a tensor that retains it and that a function modifies"),
    "half a NaN": (0.005, "torch multiplies by alpha=1 in complex sums, so that half a NaN becomes a whole one"),
    "refused too late": (0.045, "torch refuses a write to an inference tensor when it has written"),
    # ------------------------------------------------------------------------------------------- either of the two
    "order in memory": (0.01, "the order in memory of new results, and so what can be viewed, is torch's own affair"),
    "overlap": (0.002, "which arguments may overlap depends on the operator (test_inplace.py)"),
    "two reasons": (0.002, "two views that may not be what they are: one of them is told first"),
    # ------------------------------------------------------------------------------------------- of tangents alone
    "shared by a copy": (0.01, "torch: a copy that broadcasts shares the tangent of its source"),
    "misfit": (0.02, "torch: a real tangent of a complex tensor, after a copy; or one that another has reshaped"),
    "refused by torch": (0.02, "a tangent that itself has a tangent, where torch does not let it be one"),
    "refused here": (0.002, "the same, where it is noticed here and later in torch"),
    "flags of a tangent": (0.03, "version and requires_grad: torch writes to tangents even where that changes nothing"),
}

#: Those that only programs with dual tensors can come to.
OF_TANGENTS = (
    "shared by a copy", "misfit", "refused by torch", "refused here", "flags of a tangent",
)  # fmt: skip


class OutOfStep(Exception):
    """The two libraries agree, but what follows can not be compared. `name`: why, see `EXITS`."""

    def __init__(self, name: str) -> None:
        super().__init__(EXITS[name][1])
        self.name = name


def check(counts: Counter[str], programs: int, steps: int) -> None:
    """Fail if programs of so many statements ended early more often than they may."""
    # A few programs more than the share are chance; the longer a program, the more places at which it may end.
    over = {name: n for name, n in counts.items() if n > 3 + EXITS[name][0] * programs * steps / 12}
    assert not over, f"of {programs} programs more ended early than may: {over} ({ {n: EXITS[n] for n in over} })"


def check_met(counts: Counter[str], names: Iterable[str]) -> None:
    """Fail if none of many programs ended at one of these places."""
    stale = [name for name in names if not counts[name]]
    assert not stale, f"no program ends early here any more, take it out: {stale}"
