"""Results of captured steps are what they are eagerly: whose memory they share, how they lie, and what they can do."""

import pytest

import retrograd as torch
from capture.side_by_side import compare
from retrograd import nn
from retrograd.capture import CaptureError


def tensor(number):
    return torch.full((3,), number + 1.0)


def test_results_that_share_memory_do_so_after_a_replay():
    def script(capture):
        def step(x):
            y = x + 1
            return y, y[0], y.view(3), [y]

        captured = capture(step)
        found = []
        for call in range(5):
            whole, first, again, (twin,) = captured(tensor(call))
            first.fill_(7.0)
            again[1] = 9.0
            found += [whole, first, again, twin is whole]
        return found

    compare(script)


def test_versions_of_results_are_those_of_eager_ones():
    def script(capture):
        factor = torch.ones(3, requires_grad=True)

        def step(x):
            y = x + 1
            y[0] = 5.0
            return y, y[1:], (x * 2).add_(1), x * 3

        captured = capture(step)
        found = []
        for call in range(5):
            results = captured(tensor(call))
            found += [one._version for one in results]
            total = (results[0] * factor).sum()
            results[1].mul_(2)
            found += [one._version for one in results]
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                total.backward()
        return found

    compare(script)


def test_results_lie_as_they_do_eagerly():
    def script(capture):
        def step(x):
            y = x.reshape(3, 1) * torch.ones(3, 4)
            return y.t(), (y * 2)[:, ::2], (y[0] * 2).expand(5, 4), (y + 1)[1:, 1:3], torch.ones(0, 3).t() * x[0]

        captured = capture(step)
        return [captured(tensor(call)) for call in range(5)]

    compare(script)


@pytest.mark.parametrize("check", [False, True])
def test_a_gradient_that_is_returned_is_the_gradient(check):
    def script(capture):
        w = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)

        def step(x):
            optimizer.zero_grad()
            (w * x).square().sum().backward()
            return w.grad, w.grad.view(3)

        captured = capture(step)
        found = []
        for call in range(6):
            grad, view = captured(tensor(call))
            grad.div_(2)
            view[0] = 0.5
            optimizer.step()
            found += [grad is w.grad, w.detach().clone(), w.grad, view]
        return found

    compare(script, check=check)


def test_results_that_are_memory_of_the_world():
    def script(capture):
        buffer, model = torch.zeros(3), nn.Linear(3, 3)

        def step(x):
            buffer.add_(x)
            return buffer.view(3), buffer[:2], model.weight.detach(), model.weight.data, x * 2

        captured = capture(step)
        found, kept = [], []
        for call in range(5):
            view, part, detached, data, _ = captured(tensor(call))
            view.mul_(2)
            part.add_(1)
            detached.add_(1)
            data.mul_(0.5)
            kept.append(view)
            found += [buffer.clone(), model.weight.detach().clone(), buffer._version, model.weight._version]
        return found, kept

    compare(script)


def test_leaves_that_are_made_inside():
    def script(capture):
        captured = capture(lambda x: (x * 2).requires_grad_())
        found = []
        for call in range(5):
            leaf = captured(tensor(call))
            (leaf * 3).sum().backward()
            found += [leaf, leaf.grad]
        return found

    compare(script)

    def with_grad(x):
        z = x.detach().clone().requires_grad_()
        (z * z).sum().backward()
        return z

    with pytest.raises(CaptureError, match=r"a result that is a leaf with a \.grad.*return it detached"):
        torch.capture(with_grad, backend="plain")(tensor(0))
    with pytest.raises(CaptureError, match="a result of class Parameter that was made inside"):
        torch.capture(lambda x: nn.Parameter(x * 2), backend="plain")(tensor(0))


def test_numbers_among_the_results_that_change_are_found():
    hidden = [iter(range(10))] * 5000  # so many that nobody looks into them
    captured = torch.capture(lambda x: (x * 2, next(hidden[0])), backend="plain")
    captured(tensor(0))
    with pytest.raises(CaptureError, match="the result number 1 was 0 and then 1"):
        captured(tensor(0))


# ------------------------------------------------------------------------------------------- those with a history


def test_views_with_a_history():
    """Arguments and results that are views are parts of the graph around a captured function as others."""

    def script(capture):
        first, last = nn.Linear(3, 4), nn.Linear(2, 4)
        block, scale = capture(lambda x: last(x).view(2, -1)), capture(lambda x: x * 2)
        table = torch.randn(4, 3, requires_grad=True)
        found = []
        for _ in range(5):
            for one in (first, last):
                one.zero_grad()
            table.grad = None
            result = block(first(torch.randn(5, 3))[:, :2])
            result.square().sum().backward()
            scale(table[0]).square().sum().backward()
            found += [result.detach(), first.weight.grad, last.weight.grad, table.grad]
        return found

    compare(script)


def test_a_module_that_writes_to_its_argument():
    def script(capture):
        model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 1))
        captured = capture(model)
        found = []
        for call in range(5):
            x = tensor(call) - 3
            result = captured(x)
            result.sum().backward()
            found += [x, x._version, result.detach(), model[1].weight.grad.clone()]
        return found

    compare(script)
    first, model = nn.Linear(3, 3), nn.ReLU(inplace=True)
    with pytest.raises(CaptureError, match="writes in place to an argument that requires grad"):
        torch.capture(model, backend="plain")(first(tensor(0)))


@pytest.mark.parametrize("what", ["backward", "step", "aliases"])
def test_what_a_node_would_not_repeat_is_refused(what):
    model, other = nn.Linear(3, 1), nn.Linear(3, 1)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)

    def step(x):
        if what != "aliases":
            optimizer.zero_grad()
            other(x).square().sum().backward()
        if what == "step":
            optimizer.step()
        result = model(x)
        return (result, result.view(1)) if what == "aliases" else result

    before = other.weight.detach().clone()
    with pytest.raises(CaptureError, match=r"backward\(\) that sets \.grad|an optimizer's step at|share memory with"):
        torch.capture(step, backend="plain")(tensor(0))
    assert torch.equal(other.weight, before)
    assert other.weight.grad is None


@pytest.mark.parametrize("backend", ["plain", "native"])
def test_out_with_a_tensor_that_the_step_has_not_used(backend):
    total, positions = torch.zeros(3), torch.zeros(3, dtype=torch.int64)
    row = torch.zeros(2, 3)

    def step(x):
        torch.add(x, 1, out=total)
        torch.max(row, 0, out=(x.new_empty(3), positions))
        torch.arange(3, out=row[1])
        return total * 2, positions + 1

    captured = torch.capture(step, backend=backend)
    for call in range(5):
        before = total._version
        doubled, found = captured(torch.full((3,), float(call)))
        assert doubled.tolist() == [2 * call + 2] * 3
        assert found.tolist() == [1, 1 + (call > 0), 1 + (call > 0)]
        assert total.tolist() == [call + 1] * 3
        assert total._version == before + 1
    with pytest.raises(CaptureError, match=r"add\(\)|other memory"), pytest.warns(UserWarning, match="was resized"):
        torch.capture(lambda x: torch.add(x, 1, out=total) * 2, backend=backend)(torch.ones(4))
    assert total.tolist() == [5.0] * 3
