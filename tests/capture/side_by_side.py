"""A script run eagerly and captured: what it returns has to be the same, to the bit, with strides and histories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import retrograd as torch


def seen(tree: Any) -> list[Any]:
    """What can be seen of what a script returns."""
    if isinstance(tree, torch.Tensor):
        array = tree.detach().numpy()
        return [(array.tobytes(), array.dtype, tree.shape, tree.stride(), tree.requires_grad, tree.is_leaf)]
    if isinstance(tree, (list, tuple)):
        return [one for part in tree for one in seen(part)]
    if isinstance(tree, dict):
        return [one for part in tree.values() for one in seen(part)]
    return [tree]


def run(script: Callable[..., Any], capture: Callable[..., Any]) -> list[Any]:
    torch.manual_seed(0)
    return [*seen(script(capture)), *seen(torch.rand(2))]


def compare(script: Callable[..., Any], replays: bool = True, **options: Any) -> None:
    """`script` is given what captures a step; `replays`: there has to be a program in the end."""
    made: list[Any] = []

    def capture(step: Callable[..., Any]) -> Any:
        made.append(torch.capture(step, **{"backend": "plain", **options}))
        return made[-1]

    expected, found = run(script, lambda step: step), run(script, capture)
    assert len(expected) == len(found)
    for position, (one, two) in enumerate(zip(expected, found, strict=True)):
        assert one == two, f"number {position}"
    assert not replays or all(one.source for one in made)


def switched(step: Callable[..., Any], change: Callable[[], Any]) -> Callable[..., Any]:
    """A script that calls a step five times, changes something, and calls it four times more."""

    def script(capture: Callable[..., Any]) -> list[Any]:
        captured = capture(step)
        found = []
        for call in range(9):
            if call == 5:
                change()
            found.append(captured(torch.full((3,), call + 1.0)))
        return found

    return script
