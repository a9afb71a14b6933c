"""Stands in for gym: its successor, gymnasium, which has its interface since gym 0.26.

Programs that do not seed their environment get one that is seeded, so that two runs of them can be compared.
"""

from gymnasium import *  # noqa: F403
from gymnasium import Wrapper
from gymnasium import make as _make

__version__ = "0.26.0"


class _Seeded(Wrapper):
    _fresh = True

    def reset(self, *, seed=None, options=None):
        if self._fresh and seed is None:
            seed = 0
            self.action_space.seed(0)
        self._fresh = False
        return self.env.reset(seed=seed, options=options)


def make(*args, **options):
    return _Seeded(_make(*args, **options))
