"""Sets up the compiled core, where there is one (core/compiled.py): once, when all operators are there.

Note [The compiled core]
The classes are the same with and without it: Tensor, Node, AutogradMeta are written in Python, and their slots lie at
fixed places in their objects, which the core finds out when it is set up.  What it adds is functions in C that do what
functions of this package do, for plain tensors on arrays of NumPy:

* Python's signs between Tensors, ``x[i]``, ``x[a:b]``, ``x.view()`` and ``x.sum()``, and the wrappers of operators with
  one result;
* the formulas of nodes, over bare arrays and over Tensors;
* the loop of a pass (`run_pass_fast`), the count of its dependencies, and the keeping of first gradients;
* of captured steps, what operators on small arrays record, and the plan of programs of such (capture/recording.py,
  capture/program.py): the Storages, Values and Calls are the same, whoever has made them.

Each looks first whether all is plain: the classes, the arrays, no interceptor (so nobody watches), no hooks.  If it is
not, or anything at all goes wrong, nothing has happened yet, and the Python function is called, which knows all cases
and all errors.  So there is no second place where rules stand, and the Python of this package is what to read.  Only
what the handler of a signal raises meanwhile, Ctrl-C first of all, has not gone wrong: it goes on to the program.

What operators and nodes do it is told: the generator writes descriptions from the table (codegen/compiled.py).

Wrappers stay the objects that they are, since programs have imported them and others look them up: they get other code,
which asks the core first and then the wrapper as it was, the function's `body`.
"""

from __future__ import annotations

from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from .. import kernels
from .._generated import functions, nodes
from ..autograd import (
    accumulate_grad,
    edge,
    engine,
    function_ctx,
    graph_task,
    input_buffer,
    node,
    node_call,
    saved_variable,
    validation,
    view_meta,
)
from ..core import compiled, description, late, locks, meta, state, version_counter
from ..derivatives import formulas
from ..kernels.compiled import on_threads
from ..tensor import Tensor
from . import accidents
from .registry import SPACES, put_in_front

#: The special methods that the core has, and the operators that they are where the table does not say it.
_SIGNS = ("mul", "add", "sub", "truediv", "pow")
_OPERATORS = {"__pow__": "pow_Tensor_Scalar"}


def _describe_node(cls: type) -> Any:
    """What a node of the table computes, for the core; None for any other."""
    from .._generated.compiled_formulas import FORMULAS  # read when the first pass runs

    return FORMULAS.get(cls.__name__) if getattr(nodes, cls.__name__, None) is cls else None


def _describe(operators: dict[str, Any], name: str) -> Any:
    found = operators.get(_OPERATORS.get(name, name))
    if found is None:
        return None
    kinds, constants, kernel, node_class, edges, saves = found
    made = None if node_class is None else getattr(nodes, node_class)
    return (kinds, constants, kernel, getattr(kernels, kernel), made, edges, saves)


def _put_functions_in_front(core: Any, fronts: Any) -> None:
    """Have wrappers ask the core first, and their copies that are methods."""
    scope = vars(functions)
    scope["in_python"] = in_python = SimpleNamespace()  # (apart from the operators, which others go through)
    before: dict[CodeType, tuple[CodeType, FunctionType]] = {}
    for name, front in vars(fronts).items():
        if isinstance(front, FunctionType):
            wrapper = scope[name]
            body = FunctionType(wrapper.__code__, scope, name, wrapper.__defaults__)
            body.__kwdefaults__, body.__doc__ = wrapper.__kwdefaults__, wrapper.__doc__
            scope[f"core_{name}"] = core.make_operator(_describe(fronts.OPERATORS, name))
            setattr(in_python, name, body)
            before[wrapper.__code__] = front.__code__, body
    for names in (scope, *SPACES.values()):
        for f in names.values():
            if isinstance(f, FunctionType) and f.__code__ in before:
                f.__code__, f.body = before[f.__code__]  # type: ignore[attr-defined]


def _set_up(core: Any) -> None:
    from .._generated import compiled_operators  # nobody else reads it

    classes: dict[str, Any] = {
        "Tensor": Tensor,
        "AutogradMeta": meta.AutogradMeta,
        "DifferentiableViewMeta": view_meta.DifferentiableViewMeta,
        "VersionCounter": version_counter.VersionCounter,
        "ThreadState": state.ThreadState,
        "Process": state.Process,
        "Node": node.Node,
        "AccumulateGrad": accumulate_grad.AccumulateGrad,
        "InputBuffer": input_buffer.InputBuffer,
        "GraphTask": graph_task.GraphTask,
        "ExecInfo": graph_task.ExecInfo,
        "SavedVariable": saved_variable.SavedVariable,
        "BackwardCFunction": function_ctx.BackwardCFunction,
    }
    parts: dict[str, Any] = {
        "local": state.local,
        "process": state.process,
        "INFERENCE": version_counter.INFERENCE,
        "graph_lock": locks.graph_lock,
        "kernels": kernels,
        "ops": late.operators,
        "formulas": formulas,
        "gradient_edge": edge.gradient_edge,
        "version_counter": version_counter.version_counter,
        "as_view": view_meta.as_view,
        "unpack_array": saved_variable.unpack_array,
        "unpack_output_array": saved_variable.unpack_output_array,
        "unpack_tensor": saved_variable.unpack_tensor,
        "unpack_output_tensor": saved_variable.unpack_output_tensor,
        "validate_array": validation.validate_array,
        "validate_tensor": validation.validate_tensor,
        "validated": node_call.validated,
        "apply_node": node_call.apply_node,
        "run_node": node_call.run_node,
        "run_late_hooks": node_call.run_late_hooks,
        "apply_special": node_call.apply_special,
        "NoArray": description.NoArray,
        "is_from_inside": accidents.is_from_inside,
        "shared_signs": tuple(map(on_threads, (np.multiply, np.add, np.subtract, np.true_divide, np.negative))),
    }
    compute_dependencies = core.configure({**classes, **parts})
    names = ["__neg__", "__getitem__", "sum"]
    names += [f"__{reflected}{sign}__" for sign in _SIGNS for reflected in ("", "r")]
    described = compiled_operators.OPERATORS
    methods: dict[str, Any] = {name: (getattr(Tensor, name), _describe(described, name)) for name in names}
    methods["select"] = (nodes.SelectBackward0, kernels.select, functions.select)
    methods["slice"] = (nodes.SliceBackward0, kernels.slice, functions.slice)
    methods["view"] = (nodes.ViewBackward0, kernels.view, functions.view)
    core.define_formulas(_describe_node)
    total, view = core.define_operators(methods)
    _put_functions_in_front(core, compiled_operators)
    # From here on it is used.
    put_in_front({**{name: core.Signs.__dict__.get(name, total) for name in names}, "view": view})
    graph_task.GraphTask.compute_dependencies = compute_dependencies  # type: ignore[method-assign]
    engine.run_pass_fast = core.run_pass


if compiled.library is not None:
    _set_up(compiled.library)
