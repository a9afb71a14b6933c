"""Which modules are running: ``torch.utils.module_tracker``.

>>> import retrograd as torch
>>> from retrograd.utils.module_tracker import ModuleTracker
>>> class Shown(torch.nn.Module):
...     def forward(self, x):
...         print(sorted(tracker.parents))
...         return x
>>> with ModuleTracker() as tracker:
...     y = torch.nn.Sequential(Shown())(torch.ones(1))
['Global', 'Sequential', 'Sequential.0']
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..autograd.engine import engine
from ..autograd.graph import register_multi_grad_hook
from ..core.state import local
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ..tensor import Tensor
from ._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Knows, within ``with ModuleTracker() as tracker:``, the modules whose forward or backward pass is running.

    ``tracker.parents`` is a set of their names as in a state_dict, below the class of the outermost one, and "Global".
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._handles: list[Any] = []
        self._called_at_the_end = False

    @property
    def is_bw(self) -> bool:
        """Is a backward pass running?"""
        return local.state.graph_task is not None

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after, always_call=True),
        ]  # fmt: skip
        return self

    def __exit__(self, *exc_info: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _name_of(self, module: Any) -> str:
        if module not in self._seen:
            # One that is called before those in it: it is an outermost one, and their names come from it.  (A
            # ModuleList is never called itself.)
            self._names.setdefault(module, type(module).__name__)
            below = [module]
            while below:
                parent = below.pop()
                self._seen.add(parent)
                for child, submodule in parent.named_children():
                    self._names[submodule] = f"{self._names[parent]}.{child}"
                    below.append(submodule)
        return self._names[module]

    def _before(self, module: Any, inputs: Any) -> None:
        name = self._name_of(module)
        self.parents.add(name)
        self._hook(inputs, lambda: self.parents.discard(name))

    def _after(self, module: Any, inputs: Any, output: Any) -> None:
        name = self._name_of(module)
        self.parents.discard(name)
        self._hook(output, lambda: self.parents.add(name))

    def _hook(self, values: Any, call: Callable[[], Any]) -> None:
        """Call a function when the gradients of these tensors are known."""
        tensors = [value for value in tree_leaves(values) if isinstance(value, Tensor) and value.requires_grad]
        if not tensors:
            return

        def hook(grads: Any) -> None:
            if not self._called_at_the_end:
                self._called_at_the_end = True
                engine.queue_callback(self._end_of_pass)
            call()

        register_multi_grad_hook(tensors, hook)

    def _end_of_pass(self) -> None:
        self.parents = {"Global"}
        self._called_at_the_end = False
