"""``torch._library.infer_schema``: the types that parameters of an operator may have."""

from __future__ import annotations

from ..library.schemas import SUPPORTED_PARAM_TYPES, SUPPORTED_RETURN_TYPES, infer_schema, tuple_to_list
from ..tensor import Tensor as _TestTensor

__all__ = ["SUPPORTED_PARAM_TYPES", "SUPPORTED_RETURN_TYPES", "_TestTensor", "infer_schema", "tuple_to_list"]
