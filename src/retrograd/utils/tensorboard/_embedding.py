"""Points for TensorBoard's projector: files beside the events, and a list of them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

from ._convert_np import make_np
from ._utils import make_grid, picture_bytes, pillow

__all__ = ["write_embedding"]


def write_embedding(
    directory: str, subdirectory: str, tag: str, step: int, points: np.ndarray, metadata: Any, header: Any, images: Any
) -> Any:
    """Write the points, what is known of each, and its picture; where they lie."""
    if points.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    if metadata is not None and len(metadata) != len(points):
        raise AssertionError("#labels should equal with #data points")
    if images is not None and len(images) != len(points):
        raise AssertionError("#images should equal with #data points")
    if metadata is not None and header and any(len(header) != len(row) for row in metadata):
        raise AssertionError("len of header must be equal to the number of columns in metadata")
    sprite = None if images is None else _sprite(make_np(images))

    path = os.path.join(directory, subdirectory)
    os.makedirs(path, exist_ok=True)
    info = EmbeddingInfo(tensor_name=f"{tag}:{step:05}", tensor_path=f"{subdirectory}/tensors.tsv")
    _write(path, "tensors.tsv", "".join("\t".join(map(str, row)) + "\n" for row in points.tolist()).encode())
    if metadata is not None:
        rows = ["\t".join(map(str, row)) for row in (header, *metadata)] if header else [str(row) for row in metadata]
        _write(path, "metadata.tsv", ("\n".join(rows) + "\n").encode())
        info.metadata_path = f"{subdirectory}/metadata.tsv"
    if sprite is not None:
        _write(path, "sprite.png", sprite)
        info.sprite.image_path = f"{subdirectory}/sprite.png"
        info.sprite.single_image_dim.extend([images.shape[3], images.shape[2]])
    return info


def _sprite(images: np.ndarray) -> bytes:
    """All pictures in one that is square, as the projector cuts it up again."""
    PIL = pillow("add_embedding with label_img")
    columns = int(np.ceil(len(images) ** 0.5))
    laid_out = make_grid(images, columns).transpose(1, 2, 0)
    width = laid_out.shape[1]
    square = np.zeros((width, width, 3))
    square[: len(laid_out)] = laid_out
    return picture_bytes([PIL.Image.fromarray((square * 255).clip(0, 255).astype(np.uint8))])


def _write(path: str, name: str, content: bytes) -> None:
    with open(os.path.join(path, name), "wb") as file:
        file.write(content)
