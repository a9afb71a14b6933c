"""Must results be the same in every run: what ``use_deterministic_algorithms`` (ops/settings.py) has asked for."""

from __future__ import annotations


class Asked:
    """0: nobody has; 1: warn of what would differ; 2: refuse it."""

    mode: int = 0


asked: Asked = Asked()
