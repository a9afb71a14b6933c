"""``torch.utils.deterministic``: is memory without values filled, where results have to be deterministic?

>>> import retrograd as torch
>>> torch.utils.deterministic.fill_uninitialized_memory
True
>>> torch.use_deterministic_algorithms(True)
>>> torch.empty(2), torch.empty(1, dtype=torch.int8)
(tensor([nan, nan]), tensor([127], dtype=torch.int8))
>>> torch.use_deterministic_algorithms(False)
"""

from __future__ import annotations

import sys
from types import ModuleType

from ..ops.uninitialized import memory


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Is new memory filled with NaN and the largest integers while deterministic algorithms are asked for?"""
        return memory.wanted

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, wanted: bool) -> None:
        if not isinstance(wanted, bool):
            raise RuntimeError(f"expected a bool, but got {type(wanted).__name__}")
        memory.switch(wanted=wanted)


#: Set by users: ``torch.utils.deterministic.fill_uninitialized_memory = False``.
fill_uninitialized_memory: bool
__all__ = ["fill_uninitialized_memory"]
sys.modules[__name__].__class__ = _Deterministic
