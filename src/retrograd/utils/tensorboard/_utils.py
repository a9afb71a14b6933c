"""Pictures: images in any order of dimensions, grids of them, videos, figures."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

__all__ = [
    "_prepare_video", "convert_to_HWC", "figure_to_image", "make_grid", "picture_bytes", "pillow", "to_bytes",
]  # fmt: skip


def to_bytes(image: np.ndarray) -> np.ndarray:
    """Colours from 0 to 255, of such or of those from 0 to 1; what lies outside goes to the nearest."""
    factor = 1 if image.dtype == np.uint8 else 255
    return (image.astype(np.float32) * factor).clip(0, 255).astype(np.uint8)


def convert_to_HWC(image: np.ndarray, order: str) -> np.ndarray:
    """An image whose dimensions are in another `order`, or several of them (with N), which are laid out in a grid."""
    if len(set(order)) != len(order):
        raise AssertionError(f"You can not use the same dimension shorthand twice. input_format: {order}")
    if image.ndim != len(order):
        raise AssertionError(
            "size of input tensor and input format are different. "
            f"tensor shape: {image.shape}, input_format: {order}"
        )
    order = order.upper()
    wanted = {2: "HW", 3: "HWC", 4: "NCHW"}.get(len(order), "")
    if set(order) != set(wanted):
        raise AssertionError(
            f"dataformats={order!r}: an image has the dimensions H and W, H, W and C, or N, C, H and W, in any order"
        )
    image = image.transpose([order.index(dim) for dim in wanted])
    if len(order) == 4:
        return make_grid(image).transpose(1, 2, 0)
    if len(order) == 2:
        image = image[:, :, None]
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image


def make_grid(images: np.ndarray, columns: int = 8) -> np.ndarray:
    """Many images beside and below each other: (N, 1 or 3, H, W) becomes (3, rows of H, columns of W)."""
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        raise AssertionError(f"Input should be a 4D numpy array with 3 channels, but its shape is {images.shape}")
    count, _, height, width = images.shape
    columns = min(count, columns)
    rows = -(-count // columns)
    places = np.zeros((rows * columns, 3, height, width), images.dtype)
    places[:count] = images
    places = places.reshape(rows, columns, 3, height, width)
    return places.transpose(2, 0, 3, 1, 4).reshape(3, rows * height, columns * width)


def _prepare_video(videos: np.ndarray) -> np.ndarray:
    """Videos that run side by side: (N, T, C, H, W) becomes T frames, whose height and width hold all N."""
    if videos.ndim != 5:
        raise AssertionError(
            f"a video has five dimensions, (N, T, C, H, W), but the shape of this one is {videos.shape}"
        )
    count, frames, channels, height, width = videos.shape
    padded = 1 << (count - 1).bit_length()
    rows = 1 << ((count.bit_length() - 1) // 2)
    places = np.zeros((padded, frames, channels, height, width), videos.dtype)
    places[:count] = videos
    places = places.reshape(rows, padded // rows, frames, channels, height, width)
    return places.transpose(2, 0, 4, 1, 5, 3).reshape(frames, rows * height, padded // rows * width, channels)


def pillow(wanted_by: str) -> Any:
    """The module PIL.Image."""
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageFont
    except ImportError as error:
        raise ImportError(
            f"{wanted_by} needs the package pillow, which is not installed: pip install pillow"
        ) from error
    return PIL


def picture_bytes(frames: list[Any], **options: Any) -> bytes:
    """The file, as PNG or, if there are several pictures, as a moving GIF."""
    output = io.BytesIO()
    if len(frames) > 1:
        frames[0].save(output, format="GIF", save_all=True, append_images=frames[1:], loop=0, **options)
    else:
        frames[0].save(output, format=options.pop("format", "PNG"), **options)
    return output.getvalue()


def figure_to_image(figures: Any, close: bool = True) -> np.ndarray:
    """What matplotlib draws: (3, H, W), or (N, 3, H, W) for a list of figures."""
    try:
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise ImportError(
            "add_figure needs the package matplotlib, which is not installed: pip install matplotlib"
        ) from error
    if isinstance(figures, list):
        return np.stack([figure_to_image(figure, close) for figure in figures])
    canvas = FigureCanvasAgg(figures)
    canvas.draw()
    image = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1).copy()
    if close:
        pyplot.close(figures)
    return image
