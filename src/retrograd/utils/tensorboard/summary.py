"""Summaries: the messages that TensorBoard's files are made of, one function for each kind of thing that is logged.

`writer.py` calls these. The names of fields, plugins and tags are TensorBoard's.
"""

from __future__ import annotations

import io
import json
import warnings
import wave
from typing import Any

import numpy as np
from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.hparams import plugin_data_pb2 as hparams_data
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from ...tensor import Tensor
from ._convert_np import make_np
from ._utils import _prepare_video, convert_to_HWC, picture_bytes, pillow, to_bytes

__all__ = [
    "audio", "compute_curve", "custom_scalars", "histogram", "histogram_raw", "hparams", "image", "image_boxes",
    "make_histogram", "mesh", "pr_curve", "pr_curve_raw", "scalar", "tensor_proto", "text", "video",
]  # fmt: skip


def _plugin(name: str, content: Any = None) -> Any:
    """Which part of TensorBoard shows a value."""
    encoded = b"" if content is None else content.SerializeToString()
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=name, content=encoded))


def _shape(shape: Any) -> Any:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in shape])


def _one(tag: str, **value: Any) -> Any:
    return Summary(value=[Summary.Value(tag=tag, **value)])


# ------------------------------------------------------------------------------------------------------------ numbers


def scalar(name: str, tensor: Any, *, new_style: bool = False, double_precision: bool = False) -> Any:
    """One number. `new_style` puts it into a tensor, in double precision if that is asked for."""
    array = make_np(tensor)
    if array.size != 1:
        raise AssertionError(
            f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and "
            f"{array.ndim} dimensions."
        )
    number = float(array.reshape(()))
    if not new_style:
        return _one(name, simple_value=number)
    if double_precision:
        return _one(name, tensor=TensorProto(double_val=[number], dtype="DT_DOUBLE"), metadata=_plugin("scalars"))
    return _one(name, tensor=TensorProto(float_val=[number], dtype="DT_FLOAT"), metadata=_plugin("scalars"))


#: NumPy's name of a dtype: TensorFlow's, and the field of a TensorProto that has its numbers.
_FIELDS = {
    "float16": ("DT_HALF", "half_val"),
    "bfloat16": ("DT_BFLOAT16", "half_val"),
    "float32": ("DT_FLOAT", "float_val"),
    "float64": ("DT_DOUBLE", "double_val"),
    "int8": ("DT_INT8", "int_val"),
    "uint8": ("DT_UINT8", "int_val"),
    "int16": ("DT_INT16", "int_val"),
    "int32": ("DT_INT32", "int_val"),
    "int64": ("DT_INT64", "int64_val"),
    "bool": ("DT_BOOL", "bool_val"),
    "complex64": ("DT_COMPLEX64", "scomplex_val"),
    "complex128": ("DT_COMPLEX128", "dcomplex_val"),
}


def tensor_proto(tag: str, tensor: Tensor) -> Any:
    """A whole tensor."""
    if tensor.numel() * tensor.element_size() >= 1 << 31:
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    array = tensor.detach().cpu()._numbers_
    if array.dtype.name not in _FIELDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    dtype, field = _FIELDS[array.dtype.name]
    flat = np.ascontiguousarray(array).reshape(-1)
    if field == "half_val":  # the bits of each number; torch writes those of the number in single precision
        flat = flat.view(np.uint16)
    elif flat.dtype.kind == "c":  # real and imaginary parts in turn
        flat = flat.view(flat.real.dtype)
    proto = TensorProto(**{"dtype": dtype, "tensor_shape": _shape(array.shape), field: flat.tolist()})
    return _one(tag, metadata=_plugin("tensor"), tensor=proto)


def histogram_raw(
    name: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any, bucket_counts: Any
) -> Any:
    """A histogram that was counted elsewhere."""
    return _one(
        name,
        histo=HistogramProto(
            min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=_numbers(bucket_limits),
            bucket=_numbers(bucket_counts),
        ),
    )  # fmt: skip


def _numbers(values: Any) -> list[Any]:
    return make_np(values).tolist() if isinstance(values, (Tensor, np.ndarray)) else list(values)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """How often values fall into each of some bins."""
    return _one(name, histo=make_histogram(make_np(values).astype(float), bins, max_bins))


def make_histogram(values: np.ndarray, bins: Any, max_bins: int | None = None) -> Any:
    """Count, join bins until there are at most about `max_bins`, and leave out the empty ones at both ends."""
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        each = len(counts) // max_bins
        starts = np.arange(0, len(counts), each)
        counts = np.add.reduceat(counts, starts)
        limits = np.append(limits[starts], limits[-1])
    (filled,) = counts.nonzero()
    if len(filled) == 0:
        raise ValueError("The histogram is empty: no value lies in any of its bins.")
    first, last = filled[0], filled[-1]
    # A bucket is known by its right limit; an empty one in front says where the first begins.
    before = counts[first - 1] if first > 0 else 0
    counts = np.append(before, counts[first : last + 1])
    return HistogramProto(
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(), sum_squares=values.dot(values),
        bucket_limit=limits[first : last + 2].tolist(), bucket=counts.tolist(),
    )  # fmt: skip


# ---------------------------------------------------------------------------------------- pictures, sounds and text


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """A picture, or several in a grid."""
    return _one(tag, image=_picture(to_bytes(convert_to_HWC(make_np(tensor), dataformats)), rescale))


def image_boxes(
    tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1, dataformats: str = "CHW", labels: Any = None
) -> Any:
    """A picture with boxes drawn on it, each as left, top, right, bottom."""
    colours = to_bytes(convert_to_HWC(make_np(tensor_image), dataformats))
    return _one(tag, image=_picture(colours, rescale, make_np(tensor_boxes), labels))


def _picture(colours: np.ndarray, rescale: float, boxes: np.ndarray | None = None, labels: Any = None) -> Any:
    PIL = pillow("add_image")
    height, width, channels = colours.shape
    drawn = PIL.Image.fromarray(np.ascontiguousarray(colours))
    for place in range(0 if boxes is None else len(boxes)):
        assert boxes is not None
        _draw_box(PIL, drawn, boxes[place].tolist(), None if labels is None else labels[place])
    drawn = drawn.resize((int(width * rescale), int(height * rescale)), PIL.Image.Resampling.LANCZOS)
    return Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=picture_bytes([drawn])
    )


def _draw_box(PIL: Any, picture: Any, box: list[float], label: str | None) -> None:
    """A red box, with its label in the lower left corner."""
    left, top, right, bottom = box[:4]
    draw = PIL.ImageDraw.Draw(picture)
    draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=2, fill="Red")
    if not label:
        return
    font = PIL.ImageFont.load_default()
    x0, y0, x1, y1 = font.getbbox(label)
    wide, high = x1 - x0, y1 - y0
    margin = np.ceil(0.05 * high)
    draw.rectangle([(left, bottom - high - 2 * margin), (left + wide, bottom)], fill="Red")
    draw.text((left + margin, bottom - high - margin), label, fill="black", font=font)


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """A moving picture (GIF)."""
    PIL = pillow("add_video")
    frames = to_bytes(_prepare_video(make_np(tensor)))
    _, height, width, channels = frames.shape
    pictures = [PIL.Image.fromarray(frame[:, :, 0] if channels == 1 else frame) for frame in frames]
    encoded = picture_bytes(pictures, **({"duration": 1000 / fps} if len(pictures) > 1 else {"format": "GIF"}))
    return _one(
        tag, image=Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=encoded)
    )


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """A sound: samples from -1 to 1, one channel."""
    samples = make_np(tensor).squeeze()
    if samples.ndim != 1:
        raise AssertionError(f"input tensor should be 1 dimensional, but its shape is {samples.shape}.")
    if len(samples) and abs(samples).max() > 1:
        warnings.warn("audio amplitude out of range, auto clipped.", UserWarning, stacklevel=3)
        samples = samples.clip(-1, 1)
    encoded = io.BytesIO()
    with wave.open(encoded, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes((samples * np.iinfo(np.int16).max).astype("<i2").tobytes())
    sound = Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=len(samples), content_type="audio/wav",
        encoded_audio_string=encoded.getvalue(),
    )  # fmt: skip
    return _one(tag, audio=sound)


def text(tag: str, text: str) -> Any:
    """Text, in Markdown."""
    proto = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=_shape([1]))
    return _one(tag + "/text_summary", metadata=_plugin("text", TextPluginData(version=0)), tensor=proto)


# ------------------------------------------------------------------------------------------------- curves and layouts


def custom_scalars(layout: dict[str, dict[str, Any]]) -> Any:
    """Which scalars share a chart: ``{category: {title: ["Multiline", tags]}}``, or ``["Margin", three tags]``."""
    categories = []
    for category, charts in layout.items():
        made = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(f"a margin chart has three tags (value, lower, upper), got {len(tags)}")
                series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                content = {"margin": layout_pb2.MarginChartContent(series=[series])}
            else:
                content = {"multiline": layout_pb2.MultilineChartContent(tag=tags)}
            made.append(layout_pb2.Chart(title=title, **content))
        categories.append(layout_pb2.Category(title=category, chart=made))
    encoded = layout_pb2.Layout(category=categories).SerializeToString()
    proto = TensorProto(dtype="DT_STRING", string_val=[encoded], tensor_shape=TensorShapeProto())
    return _one("custom_scalars__config__", tensor=proto, metadata=_plugin("custom_scalars"))


#: TensorBoard shows no more.
_MOST_THRESHOLDS = 127


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """Precision and recall of predictions from 0 to 1, at evenly spaced thresholds."""
    num_thresholds = min(num_thresholds, _MOST_THRESHOLDS)
    rows = compute_curve(make_np(labels), make_np(predictions), num_thresholds, weights)
    return _curve(tag, rows, num_thresholds)


def pr_curve_raw(
    tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any, num_thresholds: int = 127,
    weights: Any = None,
) -> Any:  # fmt: skip
    """Precision and recall that were counted elsewhere, with weights if there were any."""
    if weights is not None:
        warnings.warn("pr_curve_raw: counts are written as they are, and weights= changes none", stacklevel=3)
    rows = np.stack([row.tolist() if isinstance(row, Tensor) else row for row in (tp, fp, tn, fn, precision, recall)])
    return _curve(tag, rows, min(num_thresholds, _MOST_THRESHOLDS))


def _curve(tag: str, rows: np.ndarray, num_thresholds: int) -> Any:
    proto = TensorProto(dtype="DT_FLOAT", float_val=rows.reshape(-1).tolist(), tensor_shape=_shape(rows.shape))
    plugin = _plugin("pr_curves", PrCurvePluginData(version=0, num_thresholds=num_thresholds))
    return _one(tag, metadata=plugin, tensor=proto)


def compute_curve(labels: np.ndarray, predictions: np.ndarray, num_thresholds: int, weights: Any = None) -> np.ndarray:
    """Six rows, a column for each threshold: true and false positives, true and false negatives, precision, recall."""
    weight = 1.0 if weights is None else make_np(weights)
    positive = labels.astype(np.float64)
    bucket = np.floor(predictions * (num_thresholds - 1)).astype(np.int32)

    def above(share: np.ndarray) -> np.ndarray:
        """How much of it is at or above each threshold."""
        counts, _ = np.histogram(bucket, bins=num_thresholds, range=(0, num_thresholds - 1), weights=share * weight)
        return counts[::-1].cumsum()[::-1]

    tp, fp = above(positive), above(1 - positive)
    tn, fn = fp[0] - fp, tp[0] - tp
    least = 1e-7
    return np.stack([tp, fp, tn, fn, tp / np.maximum(least, tp + fp), tp / np.maximum(least, tp + fn)])


def mesh(
    tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Any, display_name: Any = None,
    description: Any = None,
) -> Any:  # fmt: skip
    """Points in space, their colours, and the triangles between them: each (N, number, 3)."""
    parts = [(vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR)]
    parts = [(make_np(part), kind) for part, kind in parts if part is not None]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in parts])
    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    values = []
    for array, kind in parts:
        if array.ndim != 3:
            raise ValueError(f"add_mesh: vertices, colors and faces are (N, number, 3), but one is {array.shape}")
        about = mesh_metadata.create_summary_metadata(
            tag, display_name, kind, components, array.shape, description, json_config=config
        )
        proto = TensorProto(dtype="DT_FLOAT", float_val=array.reshape(-1).tolist(), tensor_shape=_shape(array.shape))
        values.append(Summary.Value(tag=mesh_metadata.get_instance_name(tag, kind), tensor=proto, metadata=about))
    return Summary(value=values)


# ---------------------------------------------------------------------------------------------------- hyperparameters


def hparams(
    hparam_dict: Any = None, metric_dict: Any = None, hparam_domain_discrete: Any = None
) -> tuple[Any, Any, Any]:
    """Three summaries: what is varied and measured, the values of this run, and that it ended well."""
    domains = hparam_domain_discrete or {}
    for name, given in (
        ("hparam_dict", hparam_dict), ("metric_dict", metric_dict), ("hparam_domain_discrete", domains),
    ):  # fmt: skip
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    for name, choices in domains.items():
        if (
            name not in hparam_dict
            or not isinstance(choices, list)
            or not all(isinstance(choice, type(hparam_dict[name])) for choice in choices)
        ):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]."
            )
    start = hparams_data.SessionStartInfo()
    infos = []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        field, kind = _kind_of(name, value)
        if isinstance(value, Tensor):
            value = make_np(value).item()
        setattr(start.hparams[name], field, value)
        choices = domains.get(name)
        if choices is not None:
            choices = struct_pb2.ListValue(values=[struct_pb2.Value(**{field: choice}) for choice in choices])
        infos.append(api_pb2.HParamInfo(name=name, type=api_pb2.DataType.Value(kind), domain_discrete=choices))
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metric_dict]
    end = hparams_data.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)

    def summary(tag: str, **part: Any) -> Any:
        content = hparams_data.HParamsPluginData(version=hparams_metadata.PLUGIN_DATA_VERSION, **part)
        return _one(tag, metadata=_plugin(hparams_metadata.PLUGIN_NAME, content))

    return (
        summary(hparams_metadata.EXPERIMENT_TAG, experiment=experiment),
        summary(hparams_metadata.SESSION_START_INFO_TAG, session_start_info=start),
        summary(hparams_metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )


def _kind_of(name: str, value: Any) -> tuple[str, str]:
    if isinstance(value, bool):  # is an int too, and torch writes it as one
        return "bool_value", "DATA_TYPE_BOOL"
    if isinstance(value, (int, float, Tensor)):
        return "number_value", "DATA_TYPE_FLOAT64"
    if isinstance(value, str):
        return "string_value", "DATA_TYPE_STRING"
    raise ValueError(
        f"value should be one of int, float, str, bool, or torch.Tensor, but hparam_dict[{name!r}] is a "
        f"{type(value).__name__}"
    )
