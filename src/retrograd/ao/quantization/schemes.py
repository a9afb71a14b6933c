"""Names of quantized dtypes and of the ways to map numbers to them."""

from __future__ import annotations

from typing import NamedTuple


class QuantizedType(NamedTuple):
    """Eight bits that stand for numbers by a scale and a zero point."""

    name: str
    low: int
    high: int

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class QScheme(NamedTuple):
    """One scale or one for each channel; a zero point in the middle or anywhere."""

    name: str
    per_channel: bool
    symmetric: bool

    def __repr__(self) -> str:
        return f"torch.{self.name}"


qint8: QuantizedType
quint8: QuantizedType
qint8, quint8 = QuantizedType("qint8", -128, 127), QuantizedType("quint8", 0, 255)
per_tensor_affine: QScheme = QScheme("per_tensor_affine", False, False)
per_tensor_symmetric: QScheme = QScheme("per_tensor_symmetric", False, True)
per_channel_affine: QScheme = QScheme("per_channel_affine", True, False)
per_channel_symmetric: QScheme = QScheme("per_channel_symmetric", True, True)
