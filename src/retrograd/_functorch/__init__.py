"""Where torch keeps the insides of `func`, for code that reaches for them there. Nothing in the package imports
this."""

from __future__ import annotations

from .make_functional import combine_state_for_ensemble, make_functional, make_functional_with_buffers

__all__ = ["combine_state_for_ensemble", "make_functional", "make_functional_with_buffers"]
