"""What ``Node._input_metadata`` shows of one incoming gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.devices import device as Device
    from ..core.dtypes import dtype as DType
    from ..core.size import Size


class _InputMetadata:
    """Shape, dtype and device that a gradient must have."""

    __slots__ = ("device", "dtype", "is_cpp_nested_tensor", "is_nested_tensor", "is_tensor_subclass", "shape")

    def __init__(
        self,
        shape: Size,
        dtype: DType,
        device: Device,
        is_tensor_subclass: bool = False,
        is_cpp_nested_tensor: bool = False,
        is_nested_tensor: bool = False,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.is_tensor_subclass = is_tensor_subclass
        #: Is it a nested tensor, of the strided kind, or of either?
        self.is_cpp_nested_tensor = is_cpp_nested_tensor
        self.is_nested_tensor = is_nested_tensor

    def __repr__(self) -> str:
        return f"_InputMetadata(shape={self.shape}, dtype={self.dtype}, device={self.device})"
