"""The small modes: counts of operations, a log, NaNs, memory, modules."""

from __future__ import annotations

import importlib

import pytest

import retrograd


def flops(torch, run, **options):
    counter = importlib.import_module(f"{torch.__name__}.utils.flop_counter").FlopCounterMode(display=False, **options)
    with counter:
        run()
    return {
        module: {str(op).removeprefix("torch.ops."): n for op, n in counts.items()}
        for module, counts in counter.get_flop_counts().items()
    }


def test_counts_of_operations(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2)))
    found = flops(torch, lambda: model(torch.ones(2, 3)).sum().backward())
    assert found["Global"] == {"aten.addmm": 80, "aten.mm": 112}
    assert found["Sequential.0"] == {"aten.addmm": 48, "aten.mm": 48}
    assert found["Sequential.2.0"] == {"aten.addmm": 32, "aten.mm": 64}
    convolution = nn.Conv2d(2, 6, 3, bias=False)
    images = torch.ones(2, 2, 5, 5)
    assert flops(torch, lambda: convolution(images))["Global"] == {"aten.convolution": 2 * 2 * 6 * 9 * 9 * 2}
    a, b = torch.ones(2, 3, 5, requires_grad=True), torch.ones(2, 5, 4)
    assert flops(torch, lambda: torch.bmm(a, b).sum().backward())["Global"] == {"aten.bmm": 480}


def test_gradients_of_a_convolution_are_counted():
    """One more convolution for each of the two. (torch counts that for the weight without regard to groups.)"""
    layer = retrograd.nn.Conv2d(4, 6, 3, groups=2, bias=False)
    images = retrograd.ones(1, 4, 5, 5, requires_grad=True)
    found = flops(retrograd, lambda: layer(images).sum().backward())["Global"]
    forward = found["aten.convolution"]
    assert forward == 9 * 6 * 2 * 9 * 2
    assert found["aten.convolution_backward"] == 2 * forward


def test_other_products(torch):
    functional = torch.nn.functional
    x, weight = torch.ones(1, 2, 4, 4, requires_grad=True), torch.ones(2, 3, 2, 2, requires_grad=True)
    found = flops(torch, lambda: functional.conv_transpose2d(x, weight).sum().backward())["Global"]
    assert found == {"aten.convolution": 768, "aten.convolution_backward": 1536}
    a, b, c = torch.ones(6, 7), torch.ones(7, 8), torch.ones(8, 2)
    for equation, operands, expected in (
        ("ab,bc->ac", (a, b), 2 * 6 * 7 * 8),
        ("ab,bc,cd->ad", (a, b, c), 2 * 6 * 7 * 8 + 2 * 6 * 8 * 2),
        ("...b,bc->...c", (torch.ones(3, 6, 7), b), 2 * 3 * 6 * 7 * 8),
    ):
        counts = flops(torch, lambda e=equation, o=operands: torch.einsum(e, *o))["Global"]
        assert sum(counts.values()) == expected
    count = importlib.import_module(f"{torch.__name__}.utils.flop_counter").sdpa_flop_count
    query, shared = (2, 32, 128, 64), (2, 8, 128, 64)
    assert count(query, shared, shared) == count(query, query, query) == 4 * 2 * 32 * 128 * 128 * 64
    with pytest.raises(AssertionError):
        count(query, (2, 5, 128, 64), (2, 5, 128, 64))


def test_formulas_of_a_program_and_the_table(torch, capsys):
    counter = importlib.import_module(f"{torch.__name__}.utils.flop_counter")

    @counter.register_flop_formula(torch.ops.aten.cumsum)
    def formula(shape, dim, *args, out_shape=None, **kwargs):
        return out_shape[0] * 10

    try:
        assert flops(torch, lambda: torch.cumsum(torch.ones(3), 0))["Global"] == {"aten.cumsum": 30}
    finally:
        for key in [key for key in counter.flop_registry if str(key).endswith("cumsum")]:
            del counter.flop_registry[key]
    custom = {torch.ops.aten.exp: lambda *args, out_shape: 5 * args[0][0] + out_shape[0]}
    assert flops(torch, lambda: torch.ones(2).exp(), custom_mapping=custom)["Global"] == {"aten.exp": 12}
    with pytest.raises(ValueError, match="OpOverloadPacket"):
        counter.register_flop_formula(torch.ops.aten.exp.default)(formula)
    with pytest.raises(ValueError, match="OpOverloadPacket"):
        counter.register_flop_formula(torch.exp)(formula)


def test_the_table_is_printed(capsys):
    from retrograd.utils.flop_counter import FlopCounterMode

    with FlopCounterMode() as counter:
        retrograd.nn.Linear(30, 40)(retrograd.ones(20, 30))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Module", "FLOP", "%", "Total"]
    assert lines[2].split() == ["Global", "48.000K", "100.00%"] and counter.get_total_flops() == 48000


def test_modules_that_run(torch):
    tracker_class = importlib.import_module(f"{torch.__name__}.utils.module_tracker").ModuleTracker
    seen = []

    class Inner(torch.nn.Module):
        def forward(self, x):
            seen.append(sorted(tracker.parents))
            x = x * 2
            x.register_hook(lambda grad: seen.append(sorted(tracker.parents)))
            return x * 3

    model = torch.nn.Sequential(torch.nn.Identity(), Inner())
    with tracker_class() as tracker:
        model(torch.ones(1, requires_grad=True)).sum().backward()
    assert seen == [["Global", "Sequential", "Sequential.1"]] * 2
    assert tracker.parents == {"Global"}


def test_a_log():
    from retrograd.utils.modes import LoggingMode

    with LoggingMode(show=False) as log:
        x = retrograd.zeros(2, 3)
        retrograd.cat([x, x + 1], dim=1)
    assert log.lines == [
        "$0: float32[2, 3] = aten.zeros.default([2, 3], device=device(type='cpu'), pin_memory=False)",
        "$1: float32[2, 3] = aten.add.Tensor($0, 1)",
        "$2: float32[2, 6] = aten.cat.default([$0, $1], 1)",
    ]


def test_where_a_nan_comes_from():
    from retrograd.utils.modes import NanWatcher

    x = retrograd.zeros(3, requires_grad=True)
    with NanWatcher():
        y = x.sqrt().sum() * 0
        with pytest.raises(RuntimeError, match=r"mul.*NaN in 3 of 3.*backward pass of SqrtBackward0|NaN in 3 of 3"):
            y.backward()  # 0 * inf
    with NanWatcher():
        retrograd.tensor([float("nan")]) + 1  # it was there before
    with pytest.raises(RuntimeError, match="infinity in 1 of 2"), NanWatcher(infinite=True):
        1 / retrograd.tensor([0.0, 1.0])


def test_memory_is_counted_while_it_is_alive():
    from retrograd.utils.modes import MemoryTracker

    model = retrograd.nn.Sequential(retrograd.nn.Linear(10, 100, bias=False), retrograd.nn.ReLU())
    x = retrograd.ones(5, 10)
    with MemoryTracker() as memory:
        y = model(x)
        assert memory.current == 5 * 100 * 4  # ReLU needs its result for the gradient, and not what it was given
        assert memory.peak == 2 * 5 * 100 * 4
        assert memory.at_peak["Sequential.0"] == memory.at_peak["Sequential.1"] == 5 * 100 * 4
        view = y.detach()[0]
        del y
        assert memory.current == 5 * 100 * 4  # a view keeps it
        del view
        assert memory.current == 0


def test_memory_is_known_before_there_is_any():
    """A step on meta has the counts of one on the CPU: of the forward pass at its peak, of gradients at the end."""
    from retrograd.utils.modes import MemoryTracker

    found = {}
    for place in ("cpu", "meta"):
        with retrograd.device(place):
            layers = retrograd.nn.Linear(64, 128), retrograd.nn.ReLU(), retrograd.nn.Linear(128, 8)
            model = retrograd.nn.Sequential(*layers)
            x = retrograd.ones(32, 64)
        with MemoryTracker() as memory:
            loss = model(x).sum()
            forward = memory.peak
            loss.backward()
        found[place] = forward, memory.current
        assert memory.current == sum(p.nbytes for p in model.parameters()) + loss.nbytes
    assert found["cpu"] == found["meta"]
