"""Convolutions of each channel by itself, where a product of columns has next to nothing to multiply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .conv import Windows

_BLOCK_BYTES = 1 << 22  # of shifted images and of what their products are, to stay in the cache


def by_rows(input: np.ndarray, weight: np.ndarray, windows: Windows, groups: int, result: np.ndarray) -> None:
    """The convolution of each channel by itself, written to `result`.

    There is one channel to a product, so that columns would be most of the work.  Here they are those of one row of
    the kernel: a product gives what each of its rows gives of each row of the image, and these are added.  (Where a
    channel becomes many, these are more than the columns would be.)
    """
    before = [side for side, _ in windows.padding]
    if any(side < 0 for sides in windows.padding for side in sides):
        input, before = windows.pad(input), [0, 0]
    (rows, width), (high, wide) = windows.out, windows.kernel
    (down, right), (apart, beside) = windows.stride, windows.dilation
    height, times = windows.padded[0], weight.shape[0] // groups
    matrix = weight.reshape(groups, times * high, wide)
    each = (wide + times * high) * height * width * result.dtype.itemsize  # bytes, of a channel
    some = max(1, min(groups, _BLOCK_BYTES // each))
    images = max(1, min(len(input), _BLOCK_BYTES // (each * groups)))
    # The padding is never written to, and stays zero.
    shifted = np.zeros((images, some, wide, height, width), result.dtype)
    sums = np.empty((images, some, times, high, height, width), result.dtype)
    lines = slice(before[0], before[0] + input.shape[2])
    for i in range(0, len(input), images):
        for c in range(0, groups, some):
            part = input[i : i + images, c : c + some]
            n, channels = part.shape[:2]
            ours, found = shifted[:n, :channels], sums[:n, :channels]
            for k in range(wide):
                start = k * beside - before[1]  # where in the image the first window reads; before it, perhaps
                first = max(0, -(start // right))
                last = min(width, (input.shape[3] - 1 - start) // right + 1)
                if first < last:
                    read = slice(start + first * right, start + (last - 1) * right + 1, right)
                    ours[:, :, k, lines, first:last] = part[..., read]
            flat = ours.reshape(n, channels, wide, -1)
            np.matmul(matrix[c : c + channels], flat, out=found.reshape(n, channels, times * high, -1))
            target = result[i : i + n, c * times : (c + channels) * times].reshape(n, channels, times, rows, width)
            of_rows = [found[:, :, :, k, k * apart : k * apart + (rows - 1) * down + 1 : down] for k in range(high)]
            if high == 1:
                np.copyto(target, of_rows[0])
                continue
            np.add(of_rows[0], of_rows[1], out=target)
            for one in of_rows[2:]:
                np.add(target, one, out=target)
