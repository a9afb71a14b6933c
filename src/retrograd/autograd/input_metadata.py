"""What ``Node._input_metadata`` shows of one incoming gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..core.devices import device as Device
    from ..core.dtypes import dtype as DType
    from ..core.size import Size


class NodeInputMetadata(NamedTuple):
    """Shape, dtype and device that a gradient must have."""

    shape: Size
    dtype: DType
    device: Device

    is_tensor_subclass: bool = False
    is_cpp_nested_tensor: bool = False
