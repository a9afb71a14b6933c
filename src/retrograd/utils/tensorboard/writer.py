"""SummaryWriter: where training programs log what they do."""

from __future__ import annotations

import os
import socket
import time
import warnings
from datetime import datetime
from typing import Any, NoReturn, Self

from google.protobuf import text_format
from tensorboard.compat.proto.event_pb2 import Event, SessionLog, TaggedRunMetadata
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from . import summary
from ._convert_np import make_np
from ._embedding import write_embedding
from ._pytorch_graph import graph
from ._utils import figure_to_image

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """One file of events. TensorBoard's own writer does the writing, on a thread of its own."""

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""
    ) -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The directory that the file is in."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write an event, of now or of another time."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a summary."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: tuple[Any, Any], walltime: float | None = None) -> None:
        """Write a graph, and what is known of its run."""
        graph, stats = graph_profile
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        run = TaggedRunMetadata(tag="step1", run_metadata=stats.SerializeToString())
        self.add_event(Event(tagged_run_metadata=run), None, walltime)

    def flush(self) -> None:
        """Have everything on disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """The last event has been written."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Go on, in a new file."""
        self.event_writer.reopen()


def _default_bins() -> list[float]:
    """TensorFlow's bins of histograms: each a tenth wider than the last, from 1e-12 to 1e20, on both sides of zero."""
    positive = []
    limit = 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    return [-limit for limit in reversed(positive)] + [0.0] + positive


class SummaryWriter:
    """Writes what a program logs into a directory that TensorBoard shows: ``tensorboard --logdir runs``.

    Without `log_dir`, that is ``runs/`` and the time, the machine's name and `comment`. Events from `purge_step` on
    that an earlier run left in the directory are hidden. ::

        with SummaryWriter("runs/first") as writer:
            for step, batch in enumerate(batches):
                writer.add_scalar("loss", train_on(batch), step)
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: float = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.default_bins: list[float] = _default_bins()
        #: By directory; none while the writer is closed. It opens again when something is logged.
        self.all_writers: dict[str, FileWriter] | None = None
        self.file_writer: FileWriter | None = None
        self._projector = ProjectorConfig()
        self._get_file_writer()

    def _new_writer(self, directory: Any) -> FileWriter:
        return FileWriter(directory, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = self._new_writer(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                start = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=self.purge_step, session_log=start))
                self.purge_step = None
        return self.file_writer

    def _add(self, made: Any, step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(made, step, walltime)

    def get_logdir(self) -> Any:
        """The directory that everything is written to."""
        return self.log_dir

    # ------------------------------------------------------------------------------------------------------- numbers

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """One number: a point of the curve `tag`."""
        self._add(
            summary.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision),
            global_step,
            walltime,
        )

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Several numbers: a point of each of several curves in one chart."""
        walltime = time.time() if walltime is None else walltime
        directory = self._get_file_writer().get_logdir()
        assert self.all_writers is not None
        made = {tag: summary.scalar(main_tag, value) for tag, value in tag_scalar_dict.items()}
        for tag, one in made.items():
            of_tag = f"{directory}/{main_tag.replace('/', '_')}_{tag}"
            if of_tag not in self.all_writers:
                self.all_writers[of_tag] = self._new_writer(of_tag)
            self.all_writers[of_tag].add_summary(one, global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """A tensor as it is."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow", walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """How values are distributed. `bins` is what `numpy.histogram` takes, or TensorFlow's."""
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        self._add(summary.histogram(tag, values, bins, max_bins=max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any,
        bucket_counts: Any, global_step: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A histogram that was counted elsewhere: the right limit and the count of each bucket."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                "len(bucket_limits) != len(bucket_counts), see the document: each bucket has a right limit and a "
                f"count, but there are {len(bucket_limits)} and {len(bucket_counts)}"
            )
        self._add(
            summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts),
            global_step,
            walltime,
        )

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: Any = None,
        run_name: str | None = None, global_step: Any = None,
    ) -> None:  # fmt: skip
        """The hyperparameters of a run and what came of them, in a directory of its own."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        made = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        directory = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=directory) as writer:
            for one in made:
                writer._add(one, global_step, None)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    # ---------------------------------------------------------------------------------------- pictures, sounds, text

    def add_image(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """A picture: numbers from 0 to 1, or bytes."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Pictures, in a grid."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: Any = None, walltime: float | None = None,
        rescale: float = 1, dataformats: str = "CHW", labels: Any = None,
    ) -> None:  # fmt: skip
        """A picture with boxes on it, each as left, top, right, bottom."""
        if isinstance(labels, str):
            labels = [labels]
        if labels is not None and len(labels) != len(box_tensor):
            warnings.warn(
                f"add_image_with_boxes: {len(labels)} labels for {len(box_tensor)} boxes; the boxes get none",
                UserWarning,
                stacklevel=2,
            )
            labels = None
        made = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(made, global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A figure of matplotlib, or a list of them."""
        image = figure_to_image(figure, close)
        self.add_image(tag, image, global_step, walltime, "NCHW" if image.ndim == 4 else "CHW")

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: Any = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """A moving picture, (N, T, C, H, W): numbers from 0 to 1, or bytes."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: Any = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A sound: numbers from -1 to 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate=sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Text, in Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    # ----------------------------------------------------------------------------------------- models and embeddings

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """The operators that a call of the model runs, `input_to_model` being its argument, or a tuple of them.

        `use_strict_trace` is about what torch's tracer refuses; nothing is traced here, and nothing refused.
        """
        self._get_file_writer().add_graph(graph(model, input_to_model, verbose))

    def add_onnx_graph(self, prototxt: Any) -> NoReturn:
        """Refused."""
        raise NotImplementedError(
            f"add_onnx_graph({prototxt!r}): retrograd neither writes nor reads ONNX; add_graph(model, input) shows a "
            "model"
        )

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Any = None, tag: str = "default",
        metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Points for the projector, a row of `mat` for each, with what is known of it and its picture."""
        step = 0 if global_step is None else int(global_step)
        directory = self._get_file_writer().get_logdir()
        subdirectory = f"{step:05}/{_as_file_name(tag)}"
        path = os.path.join(directory, subdirectory)
        if os.path.isdir(path):
            warnings.warn(
                f"Embedding dir {path} exists and is written again: did you set global_step for add_embedding()?",
                UserWarning,
                stacklevel=2,
            )
        elif os.path.exists(path):
            raise NotADirectoryError(f"Path: `{path}` exists, but is a file. Cannot proceed.")
        info = write_embedding(
            directory, subdirectory, tag, step, make_np(mat), metadata, metadata_header, label_img
        )
        self._projector.embeddings.append(info)
        with open(os.path.join(directory, "projector_config.pbtxt"), "w") as file:
            file.write(text_format.MessageToString(self._projector))

    # ------------------------------------------------------------------------------------------- curves, layouts, space

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: Any = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Precision over recall, of predictions from 0 to 1 of labels that are 0 or 1."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
        false_negative_counts: Any, precision: Any, recall: Any, global_step: Any = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Precision over recall that was counted elsewhere, with `weights` if there were any."""
        made = summary.pr_curve_raw(
            tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision,
            recall, num_thresholds, weights,
        )  # fmt: skip
        self._add(made, global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Curves that share a chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A curve between two others: the tags of value, lower and upper limit."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: dict[str, dict[str, Any]]) -> None:
        """Charts by category: ``{category: {title: ["Multiline", tags] or ["Margin", tags]}}``."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None,
        global_step: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Points in space, (N, number, 3), with colours and triangles."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    # ------------------------------------------------------------------------------------------------------- the end

    def flush(self) -> None:
        """Have everything on disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Have everything on disk and close the files; what is logged later goes to new ones."""
        writers, self.all_writers, self.file_writer = self.all_writers, None, None
        for writer in (writers or {}).values():
            writer.flush()
            writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _as_file_name(tag: str) -> str:
    """A tag without characters that would make it a path."""
    return tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")
