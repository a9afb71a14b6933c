"""SummaryWriter: what it writes is read back by TensorBoard's own reader, and is what torch's writes."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd

needs_tensorboard = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="tensorboard is not installed"
)

random = np.random.default_rng(0)
POINTS = random.normal(size=(20, 3)).astype(np.float32)
IMAGES = random.random((5, 3, 6, 4)).astype(np.float32)
LABELS = (random.random(50) > 0.4).astype(np.int64)
CHANCES = random.random(50)

#: What is logged: the method, and its arguments, arrays standing for tensors.
CALLS: dict[str, tuple[str, tuple, dict]] = {
    "a number": ("add_scalar", ("loss", 0.25, 3), {}),
    "a tensor with a number": ("add_scalar", ("loss", np.array([[0.5]]), 4), {"walltime": 12.5}),
    "new style": ("add_scalar", ("new", 1.1, 0), {"new_style": True}),
    "in double precision": ("add_scalar", ("new", 1.1, 0), {"new_style": True, "double_precision": True}),
    "numbers": ("add_scalars", ("a/b", {"x": 1.0, "y": np.array(2.0)}, 7), {}),
    "a float tensor": ("add_tensor", ("t", POINTS, 1), {}),
    "a double tensor": ("add_tensor", ("t", POINTS.astype(np.float64), 1), {}),
    "an int tensor": ("add_tensor", ("t", LABELS, 1), {}),
    "a short tensor": ("add_tensor", ("t", LABELS.astype(np.int16), 1), {}),
    "a bool tensor": ("add_tensor", ("t", LABELS > 0, 1), {}),
    "a complex tensor": ("add_tensor", ("t", POINTS * 1j + 1, 1), {}),
    "a histogram": ("add_histogram", ("h", POINTS, 2), {}),
    "a histogram by NumPy": ("add_histogram", ("h", POINTS, 2), {"bins": "auto"}),
    "a histogram with bins": ("add_histogram", ("h", POINTS, 2), {"bins": [-10, -1, 0, 0.5, 1, 10, 11]}),
    "a histogram with few bins": ("add_histogram", ("h", POINTS, 2), {"bins": 50, "max_bins": 7}),
    "a histogram of integers": ("add_histogram", ("h", LABELS, 2), {"bins": "doane"}),
    "a histogram made elsewhere": ("add_histogram_raw", ("h", 0.0, 3.0, 4, 6.0, 14.0, [1.0, 2.0, 3.0], [1, 1, 2]), {}),
    "an image": ("add_image", ("i", IMAGES[0] * 1.2 - 0.1, 0), {}),
    "an image of bytes": ("add_image", ("i", (IMAGES[0] * 255).astype(np.uint8), 0), {}),
    "an image, channels last": ("add_image", ("i", IMAGES[0].transpose(1, 2, 0), 0), {"dataformats": "HWC"}),
    "a grey image": ("add_image", ("i", IMAGES[0, 0], 0), {"dataformats": "HW"}),
    "a grey image, turned": ("add_image", ("i", IMAGES[0, :1], 0), {"dataformats": "CWH"}),
    "images": ("add_images", ("i", IMAGES, 0), {}),
    "nine grey images": ("add_images", ("i", np.tile(IMAGES[:3, :1], (3, 1, 1, 1)), 0), {}),
    "images, channels last": ("add_images", ("i", IMAGES.transpose(0, 2, 3, 1), 0), {"dataformats": "NHWC"}),
    "boxes": (
        "add_image_with_boxes", ("i", np.tile(IMAGES[0], (1, 9, 12)), np.array([[2.0, 3, 30, 40], [5, 5, 20, 20]])),
        {"labels": ["one", "two"], "rescale": 2},
    ),
    "sound": ("add_audio", ("s", np.sin(np.arange(100) / 5), 3), {"sample_rate": 8000}),
    "text": ("add_text", ("t", "*größer* than", 1), {}),
    "a curve": ("add_pr_curve", ("p", LABELS, CHANCES, 3), {}),
    "a weighted curve": ("add_pr_curve", ("p", LABELS, CHANCES, 3), {"num_thresholds": 11, "weights": CHANCES + 1}),
    "a curve made elsewhere": ("add_pr_curve_raw", ("p", *np.arange(18.0).reshape(6, 3), 2), {"num_thresholds": 3}),
    "a chart": ("add_custom_scalars_multilinechart", (["a", "b"],), {"category": "c", "title": "t"}),
    "a margin chart": ("add_custom_scalars_marginchart", (["a", "b", "c"],), {}),
    "a layout": (
        "add_custom_scalars", ({"A": {"x": ["Multiline", ["u", "v"]], "y": ["Margin", ["1", "2", "3"]]}},), {},
    ),
    "a mesh": (
        "add_mesh", ("m", POINTS[None]),
        {"colors": (POINTS[None] > 0) * 255, "faces": np.arange(6).reshape(1, 2, 3), "config_dict": {"lights": []}},
    ),
    "hyperparameters": (
        "add_hparams", ({"lr": 0.1, "size": 3, "kind": "a", "none": None}, {"accuracy": 0.5, "loss": np.array(2.0)}),
        {"run_name": "run", "hparam_domain_discrete": {"kind": ["a", "b"]}, "global_step": 2},
    ),
}  # fmt: skip


def as_tensors(value: Any, torch: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, (tuple, list)):
        return type(value)(as_tensors(part, torch) for part in value)
    if isinstance(value, dict):
        return {key: as_tensors(part, torch) for key, part in value.items()}
    return value


def events(directory: Path) -> dict[str, list[Any]]:
    """What was written, in each of the directories, but for when."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    found: dict[str, list[Any]] = {}
    for path in sorted(directory.rglob("*tfevents*")):
        read = []
        for raw in RawEventFileLoader(str(path)).Load():
            event = Event.FromString(raw)
            if event.wall_time != 12.5:
                event.wall_time = 0
            event.source_metadata.Clear()
            read.append(event)
        found[str(path.parent.relative_to(directory))] = read
    return found


def logged(torch: Any, directory: Path, method: str, args: tuple, options: dict) -> dict[str, list[Any]]:
    writer_class = importlib.import_module(f"{torch.__name__}.utils.tensorboard").SummaryWriter
    if method == "add_pr_curve":  # torch takes arrays for the weights alone
        args = as_tensors(args, torch)
    else:
        args, options = as_tensors(args, torch), as_tensors(options, torch)
    with writer_class(directory) as writer:
        getattr(writer, method)(*args, **options)
    return events(directory)


@needs_tensorboard
@pytest.mark.parity
@pytest.mark.parametrize("name", CALLS)
def test_what_is_written_is_what_torch_writes(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    ours = logged(retrograd, tmp_path / "ours", *CALLS[name])
    assert sum(len(read) for read in ours.values()) > 1  # the first only says which version of the format it is
    assert ours == logged(torch, tmp_path / "torch", *CALLS[name])


@needs_tensorboard
def test_every_method_of_torch_is_logged_here() -> None:
    from retrograd.utils.tensorboard import SummaryWriter

    elsewhere = {"add_graph", "add_onnx_graph", "add_embedding", "add_figure", "add_video"}
    methods = {name for name in vars(SummaryWriter) if name.startswith("add_")}
    assert methods - elsewhere == {method for method, _, _ in CALLS.values()}
    assert len(methods) == 22


@needs_tensorboard
@pytest.mark.parametrize("dtype", ["float16", "uint8", "int8", "float32", "bool", "complex128"])
def test_tensors_are_read_back(dtype: str, tmp_path: Path) -> None:
    """By TensorBoard's own reader, which cannot read what torch writes for halves and bytes."""
    from tensorboard.util.tensor_util import make_ndarray

    import retrograd as torch
    from retrograd.utils.tensorboard import SummaryWriter

    tensor = torch.tensor([[0, 1, 3], [5, 2, 0]]).to(getattr(torch, dtype))
    with SummaryWriter(tmp_path) as writer:
        writer.add_tensor("t", tensor, 5)
    (event,) = events(tmp_path)["."][1:]
    assert event.step == 5
    read = make_ndarray(event.summary.value[0].tensor)
    assert read.shape == (2, 3) and read.astype(complex).tolist() == tensor.to(torch.complex64).tolist()


@needs_tensorboard
def test_bfloat16_is_written_in_its_own_bits() -> None:
    from retrograd.utils.tensorboard.summary import tensor_proto

    written = tensor_proto("t", retrograd.tensor([1.0, -2.5]).bfloat16()).value[0].tensor
    assert list(written.half_val) == [0x3F80, 0xC020]  # the upper halves of the same numbers in single precision


@needs_tensorboard
def test_a_bool_is_a_bool(tmp_path: Path) -> None:
    """torch asks whether a hyperparameter is an int before it asks whether it is a bool, and every bool is."""
    from tensorboard.plugins.hparams.api_pb2 import DataType
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    from retrograd.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"flag": True, "t": retrograd.tensor(2.5)}, {}, {"flag": [True, False]}, run_name="r")
    content = [
        HParamsPluginData.FromString(event.summary.value[0].metadata.plugin_data.content)
        for event in events(tmp_path)["r"][1:]
    ]
    (flag, number) = content[0].experiment.hparam_infos
    assert flag.type == DataType.Value("DATA_TYPE_BOOL") and number.type == DataType.Value("DATA_TYPE_FLOAT64")
    assert [choice.bool_value for choice in flag.domain_discrete.values] == [True, False]
    assert content[1].session_start_info.hparams["flag"].bool_value is True
    assert content[1].session_start_info.hparams["t"].number_value == 2.5


@needs_tensorboard
def test_a_video_is_a_moving_picture(tmp_path: Path) -> None:
    """torch needs a package for this that no longer has what it asks for, and then writes an empty summary."""
    import io

    image = pytest.importorskip("PIL.Image")

    from retrograd.utils.tensorboard import SummaryWriter

    video = retrograd.zeros(4, 4, 3, 6, 8)
    for frame in range(4):
        video[:, frame, :, :, 2 * frame : 2 * frame + 2] = 1
    video[3] = 0
    with SummaryWriter(tmp_path) as writer:
        writer.add_video("v", video, 1, fps=10)
    (event,) = events(tmp_path)["."][1:]
    written = event.summary.value[0].image
    assert (written.height, written.width, written.colorspace) == (12, 16, 3)  # two by two places
    gif = image.open(io.BytesIO(written.encoded_image_string))
    assert gif.n_frames == 4 and gif.info["duration"] == 100
    for frame in range(4):
        gif.seek(frame)
        shown = np.asarray(gif.convert("L")) > 128
        expected = np.zeros((12, 16), bool)
        expected[:, [2 * frame, 2 * frame + 1, 2 * frame + 8, 2 * frame + 9]] = True
        expected[6:, 8:] = False
        assert (shown == expected).all()


@needs_tensorboard
@pytest.mark.parity
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_videos_lie_beside_each_other_as_in_torch(count: int) -> None:
    pytest.importorskip("torch")
    from torch.utils.tensorboard import _utils as theirs

    from retrograd.utils.tensorboard import _utils as ours

    videos = np.random.default_rng(1).random((count, 2, 3, 4, 5))
    assert (ours._prepare_video(videos) == theirs._prepare_video(videos)).all()


@needs_tensorboard
def test_figures(tmp_path: Path) -> None:
    import io

    matplotlib = pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    from matplotlib.figure import Figure

    from retrograd.utils.tensorboard import SummaryWriter

    matplotlib.use("agg")
    figures = [Figure(figsize=(1, 0.5), dpi=40, facecolor=colour) for colour in ("red", "blue")]
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("f", figures[0], close=False)
        writer.add_figure("g", figures)
    one, two = (event.summary.value[0].image for event in events(tmp_path)["."][1:])
    assert (one.height, one.width, two.height, two.width) == (20, 40, 20, 80)
    shown = np.asarray(image.open(io.BytesIO(two.encoded_image_string)))
    assert shown[10, 20].tolist() == [255, 0, 0] and shown[10, 60].tolist() == [0, 0, 255]


@needs_tensorboard
@pytest.mark.parity
def test_embeddings(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("PIL.Image")
    for library in (retrograd, torch):
        writer_class = importlib.import_module(f"{library.__name__}.utils.tensorboard").SummaryWriter
        points = library.from_numpy(POINTS[:5])
        with writer_class(tmp_path / library.__name__) as writer:
            writer.add_embedding(points, metadata=list("abcde"), label_img=library.from_numpy(IMAGES), global_step=3)
            rows = [[i, i * i] for i in range(5)]
            writer.add_embedding(points, metadata=rows, metadata_header=["n", "square"], tag="a/b%")
            writer.add_embedding(points.double())
    paths = sorted(path.relative_to(tmp_path / "torch") for path in (tmp_path / "torch").rglob("*.*sv"))
    assert len(paths) == 5
    for path in [*paths, Path("projector_config.pbtxt"), Path("00003/default/sprite.png")]:
        assert (tmp_path / "retrograd" / path).read_text("latin1") == (tmp_path / "torch" / path).read_text("latin1")


@needs_tensorboard
def test_refused_embeddings_write_nothing(tmp_path: Path) -> None:
    from retrograd.utils.tensorboard import SummaryWriter

    points = retrograd.from_numpy(POINTS)
    with SummaryWriter(tmp_path) as writer:
        for wrong in ({"mat": points[0]}, {"mat": points, "metadata": ["a"]}, {"mat": points, "label_img": points[:1]}):
            with pytest.raises(AssertionError, match=r"2D|#labels|#images"):
                writer.add_embedding(**wrong)
    assert [path.name for path in tmp_path.iterdir() if "tfevents" not in path.name] == []


class Net(retrograd.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = retrograd.nn.Linear(3, 4)
        self.rest = retrograd.nn.Sequential(retrograd.nn.Dropout(), retrograd.nn.Linear(4, 2))

    def forward(self, x: Any, y: Any) -> Any:
        return self.rest(self.first(x).relu() * y)


@needs_tensorboard
def test_the_graph_of_a_model(tmp_path: Path) -> None:
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    from retrograd.utils.tensorboard import SummaryWriter

    net = Net()
    net.rest.eval()
    before = retrograd.get_rng_state()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(net, (retrograd.ones(5, 3), retrograd.ones(4)))
    assert net.training and not net.rest.training and retrograd.get_rng_state().equal(before)
    assert not net._forward_hooks and not net.first._forward_pre_hooks
    graph_event, run_event = events(tmp_path)["."][1:]
    assert run_event.tagged_run_metadata.tag == "step1"
    nodes = {node.name: node for node in GraphDef.FromString(graph_event.graph_def).node}
    assert "Net/Sequential[rest]/Linear[1]/weight" in nodes and nodes["Net/relu"].op == "aten::relu"
    assert all(source in nodes for node in nodes.values() for source in node.input)
    assert list(nodes["Net/mul"].input) == ["Net/relu", "input/input.2"]
    shape = nodes["Net/mul"].attr["_output_shapes"].list.shape[0]
    assert [dim.size for dim in shape.dim] == [5, 4]
    seen, waiting = set(), ["output/output.1"]
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting.extend(nodes[name].input)
    assert seen == set(nodes)  # everything the model has takes part in its output


@needs_tensorboard
def test_closing_and_going_on(tmp_path: Path) -> None:
    from retrograd.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(tmp_path, purge_step=7, filename_suffix=".end")
    assert writer.get_logdir() == tmp_path
    writer.add_scalar("a", 1)
    writer.flush()
    first = events(tmp_path)["."]
    assert first[2].session_log.status == 1 and first[2].step == 7  # START: what came later is hidden
    writer.close()
    writer.close()
    writer.add_scalar("a", 2)
    writer.close()
    assert all(path.name.endswith(".end") for path in tmp_path.iterdir())


@needs_tensorboard
def test_what_is_refused(tmp_path: Path) -> None:
    from retrograd.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(AssertionError, match="should contain one element"):
            writer.add_scalar("a", retrograd.ones(2))
        with pytest.raises(NotImplementedError, match="numpy array or torch tensor are expected"):
            writer.add_histogram("a", [1, 2])
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("a", retrograd.ones(0))
        with pytest.raises(ValueError, match="no value lies in any of its bins"):
            writer.add_histogram("a", retrograd.ones(3), bins=[2, 3])
        with pytest.raises(AssertionError, match="size of input tensor and input format are different"):
            writer.add_image("a", retrograd.ones(2, 3))
        with pytest.raises(AssertionError, match="same dimension shorthand twice"):
            writer.add_image("a", retrograd.ones(2, 3), dataformats="HH")
        with pytest.raises(ValueError, match=r"hparam_dict\['x'\] is a list"):
            writer.add_hparams({"x": []}, {})
        with pytest.raises(TypeError, match="should be dictionary"):
            writer.add_hparams([], {})
        with pytest.raises(TypeError, match="list of same type"):
            writer.add_hparams({"x": 1}, {}, {"x": ["a"]})
        with pytest.raises(AssertionError, match="Expected 3 tags"):
            writer.add_custom_scalars_marginchart(["a"])
        with pytest.raises(NotImplementedError, match="add_graph"):
            writer.add_onnx_graph("file")
        with pytest.warns(UserWarning, match="out of range"):
            writer.add_audio("a", 2 * retrograd.ones(3))
    assert len(events(tmp_path)["."]) == 2  # the version, and the sound


def test_without_the_package_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['tensorboard'] = None\n"
        "import retrograd\n"
        "try: import retrograd.utils.tensorboard\n"
        "except ImportError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install tensorboard" in said
