"""The engine of docs/engine_from_nothing.md passes a part of the tests of the real one."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from website import blocks

PAGE = blocks.DOCS / "engine_from_nothing.md"
TESTS = Path(__file__).resolve().parents[1] / "autograd"
#: Tests that need no more than is on the page. They take the library as their argument.
PASSED = {
    "test_engine": """
        nodes_made_later_run_first leaves_run_as_soon_as_they_are_ready a_node_waits_for_all_its_gradients
        a_late_node_below_an_early_one several_outputs the_same_output_twice one_output_above_another a_leaf_as_output
        leaf_and_non_leaf_inputs_together the_same_input_twice the_output_as_its_own_input an_input_that_is_not_there
        what_was_pruned_keeps_its_saved_tensors a_second_backward_is_refused nodes_that_save_nothing_can_run_again
        retain_graph_as_often_as_one_likes create_graph_retains_unless_told_otherwise
        an_error_of_a_node_does_not_free_what_it_did_not_run""",
    "test_run_backward": "empty_outputs_need_a_gradient",
    "test_accumulate_grad": """
        under_create_graph_the_sum_is_a_new_tensor a_plain_pass_after_a_recorded_one
        no_gradient_of_grad_without_create_graph grad_set_to_none_starts_again leaf_hooks_before_accumulation
        leaf_hooks_see_the_sum_once leaf_hooks_run_for_captured_gradients_too a_removed_leaf_hook_is_gone
        a_hook_that_keeps_the_gradient_owns_it a_hook_may_return_a_tensor_of_the_user""",
    "test_hooks": """
        hooks_run_in_order_of_registration a_hook_that_returns_nothing_changes_nothing
        prehooks_replace_what_the_node_gets a_hook_may_remove_itself hooks_outlive_their_tensor
        hooks_take_part_in_double_backward retained_gradients_under_create_graph
        retain_grad_sees_what_tensor_hooks_made""",
}


def library() -> Any:
    """The blocks of the page but the last, with the names that tests look for."""
    module = ModuleType("engine_from_nothing")
    programs = [block for block in blocks.blocks(PAGE) if block.kind == "python"]
    for block in programs[:-1]:
        exec(compile(block.text, block.where, "exec"), module.__dict__)
    made: Any = module
    made.float32, made.float64 = np.float32, np.float64
    made.autograd = SimpleNamespace(backward=made.backward, grad=made.grad)
    made.no_grad = lambda: made.grad_mode(False)
    made.ones = lambda *shape, **options: made.tensor(np.ones(shape), **options)
    return made


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"borrowed_{name}", TESTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CASES = [(file, f"test_{name}") for file, names in PASSED.items() for name in names.split()]
LOADED = {file: load(file) for file in PASSED}


@pytest.mark.parametrize(("file", "name"), CASES, ids=[name for _, name in CASES])
def test_of_the_real_engine(file: str, name: str) -> None:
    test: Callable[[Any], None] = getattr(LOADED[file], name)
    test(library())


def test_it_is_short() -> None:
    """About 200 lines, as the page says, without the program at its end; and none of them is long."""
    programs = [block.text for block in blocks.blocks(PAGE) if block.kind == "python"]
    lines = [line for text in programs[:-1] for line in text.splitlines() if line.strip()]
    assert len(lines) <= 212 and max(map(len, lines)) <= 120


def test_second_derivatives_beside_finite_differences() -> None:
    tiny = library()
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 2))

    def loss(array: Any) -> Any:
        x = tiny.tensor(array, dtype=np.float64, requires_grad=True)
        y = ((x @ tiny.tensor(b, dtype=np.float64)) ** 2 + (x.sum() * 0.1).exp()).sum()
        return x, y

    def slope(array: Any) -> Any:
        x, y = loss(array)
        (g,) = tiny.grad(y, x, create_graph=True)
        return x, g

    def numerical(f: Callable[[Any], float]) -> Any:
        found, eps = np.zeros_like(a), 1e-6
        for index in np.ndindex(a.shape):
            step = np.zeros_like(a)
            step[index] = eps
            found[index] = (f(a + step) - f(a - step)) / (2 * eps)
        return found

    x, g = slope(a)
    assert np.allclose(g.data, numerical(lambda v: loss(v)[1].item()), atol=1e-6)
    (second,) = tiny.grad((g * g).sum(), x)
    assert np.allclose(second.data, numerical(lambda v: (slope(v)[1].data ** 2).sum()), rtol=1e-5)
