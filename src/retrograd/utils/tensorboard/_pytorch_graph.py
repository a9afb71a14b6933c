"""The graph of a model, as TensorBoard shows it: one node for each operator that a call of the model runs.

A mode watches the operators and hooks the modules, so that an operator's name begins with those of the modules
around it (``Net/Linear[first]/addmm``). Parameters and buffers are nodes of the module that has them.
"""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from ...autograd.grad_mode import no_grad
from ...autograd.intercept import observing, results_of
from ...ops.overload import overload_of
from ...tensor import Tensor

__all__ = ["graph"]


class _Recorder:
    """The nodes so far, and which of them each tensor comes from."""

    def __init__(self, model: Any) -> None:
        self.nodes: list[Any] = []
        self.names: set[str] = set()
        #: id of a tensor -> the tensor, so that the id stays its own, and the node that it comes from
        self.sources: dict[int, tuple[Tensor, str]] = {}
        root = type(model).__name__
        self.scopes = [root]
        self.scope_of: dict[int, str] = {}
        for path, module in model.named_modules():
            above = self.scope_of[id(model.get_submodule(path.rpartition(".")[0]))] + "/" if path else ""
            last = path.rpartition(".")[2]
            self.scope_of[id(module)] = f"{above}{type(module).__name__}[{last}]" if path else root
            held = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
            for name, tensor in held:
                self.add(f"{self.scope_of[id(module)]}/{name}", "prim::GetAttr", [], [tensor], f"name: {name}")

    def add(self, name: str, kind: str, inputs: list[str], results: list[Tensor], attributes: str = "") -> str:
        unique, number = name, 1
        while unique in self.names:
            number += 1
            unique = f"{name}_{number}"
        self.names.add(unique)
        node = NodeDef(name=unique, op=kind, input=inputs, attr={"attr": AttrValue(s=attributes.encode())})
        if results:
            shapes = [TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in t.shape]) for t in results]
            node.attr["_output_shapes"].CopyFrom(AttrValue(list=AttrValue.ListValue(shape=shapes)))
        self.nodes.append(node)
        for tensor in results:
            self.sources[id(tensor)] = (tensor, unique)
        return unique

    def source(self, tensor: Tensor) -> str:
        """The node that a tensor comes from; one that came from nowhere was made outside, and is a constant."""
        known = self.sources.get(id(tensor))
        if known is not None:
            return known[1]
        return self.add(f"{self.scopes[-1]}/constant", "prim::Constant", [], [tensor])

    def observe(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Any) -> Any:
        result = proceed()
        overload = overload_of(operator)
        values = [*args, *kwargs.values()]
        inputs = [self.source(t) for t in tensors_in(values)]
        numbers = [v for v in values if isinstance(v, (bool, int, float, str, tuple)) and not tensors_in([v])]
        name = overload.name().removeprefix("aten::").partition(".")[0]
        self.add(
            f"{self.scopes[-1]}/{name}", f"aten::{name}", inputs, results_of(result), ", ".join(map(str, numbers))
        )
        return result


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in lists, tuples and dictionaries, in order."""
    found: list[Tensor] = []
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))
    return found


def graph(model: Any, args: Any, verbose: bool = False) -> tuple[Any, Any]:
    """Call the model (in eval mode, as it is not to learn from this) and draw what it did; print it if `verbose`."""
    recorder = _Recorder(model)
    inputs = args if isinstance(args, tuple) else () if args is None else (args,)
    for number, tensor in enumerate(tensors_in(inputs)):
        recorder.add(f"input/input.{number + 1}", "IO Node", [], [tensor])

    def enter(module: Any, args: Any) -> None:
        recorder.scopes.append(recorder.scope_of[id(module)])

    def leave(module: Any, args: Any, output: Any) -> None:
        recorder.scopes.pop()

    training = {module: module.training for module in model.modules()}
    handles = []
    try:
        model.eval()
        for module in training:
            handles.append(module.register_forward_pre_hook(enter))
            handles.append(module.register_forward_hook(leave, always_call=True))
        with no_grad(), observing(recorder.observe):
            output = model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, was in training.items():
            module.training = was
    for number, tensor in enumerate(tensors_in(output)):
        recorder.add(f"output/output.{number + 1}", "IO Node", [recorder.source(tensor)], [])
    stats = RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")]))
    drawn = GraphDef(node=recorder.nodes, versions=VersionDef(producer=22))
    if verbose:
        print(drawn)
    return drawn, stats
