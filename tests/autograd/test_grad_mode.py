"""Grad modes: as context managers, as decorators on all kinds of functions, per thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


def records(torch):
    return (torch.ones(1, requires_grad=True) * 2).requires_grad


# ------------------------------------------------------------------------------------------------------------- with


def test_no_grad(torch):
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        assert not records(torch)
    assert records(torch)


def test_nesting(torch):
    seen = []
    with torch.no_grad():
        seen.append(torch.is_grad_enabled())
        with torch.enable_grad():
            seen.append(torch.is_grad_enabled())
            with torch.set_grad_enabled(False):
                seen.append(torch.is_grad_enabled())
                with torch.set_grad_enabled(True):
                    seen.append(torch.is_grad_enabled())
                seen.append(torch.is_grad_enabled())
            seen.append(torch.is_grad_enabled())
        seen.append(torch.is_grad_enabled())
    assert seen == [False, True, False, True, False, True, False]


@pytest.mark.parametrize("mode", ["no_grad", "enable_grad"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_the_mode_is_restored_after_an_error(torch, mode, error):
    with pytest.raises(error), getattr(torch, mode)():
        raise error
    assert torch.is_grad_enabled()


def test_an_instance_can_be_used_again(torch):
    mode = torch.no_grad()
    for _ in range(3):
        with mode:
            assert not torch.is_grad_enabled()
        assert torch.is_grad_enabled()


def test_an_instance_inside_itself():
    mode = retrograd.no_grad()
    with mode:
        with retrograd.enable_grad(), mode:
            assert not retrograd.is_grad_enabled()
        assert not retrograd.is_grad_enabled()
    assert retrograd.is_grad_enabled()


def test_leaves_made_under_no_grad_can_require_grad(torch):
    with torch.no_grad():
        x = torch.ones(1, requires_grad=True)
        y = x * 2
    assert x.requires_grad and not y.requires_grad and y.is_leaf
    assert (x * 2).requires_grad


def test_results_of_no_grad_have_no_history(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        for y in (x + 1, x.exp(), x.sum(), torch.cat([x, x]), x.detach()):
            assert not y.requires_grad and y.grad_fn is None and y.is_leaf


def test_in_place_on_a_leaf_under_no_grad(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        x.add_(1)
        x -= 0.5
        x *= 2
    assert x.tolist() == [3.0, 3.0] and x.requires_grad and x.is_leaf and x._version == 3


def test_backward_works_under_no_grad(torch):
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    with torch.no_grad():
        y.backward()
    assert x.grad.item() == 6.0


# ---------------------------------------------------------------------------------------- set_grad_enabled as function


def test_set_grad_enabled_acts_at_once(torch):
    try:
        torch.set_grad_enabled(False)
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_set_grad_enabled_restores_what_was_before_it_was_made(torch):
    with torch.no_grad():
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()


def test_set_grad_enabled_as_decorator_leaves_the_mode_alone(torch):
    @torch.set_grad_enabled(False)
    def function():
        return torch.is_grad_enabled()

    assert torch.is_grad_enabled()
    assert function() is False
    assert torch.is_grad_enabled()


# -------------------------------------------------------------------------------------------------------- decorators


def test_with_and_without_brackets(torch):
    @torch.no_grad()
    def first():
        return torch.is_grad_enabled()

    @torch.no_grad
    def second():
        return torch.is_grad_enabled()

    assert first() is False and second() is False
    with torch.no_grad():
        assert torch.enable_grad()(torch.is_grad_enabled)() is True


def test_a_decorated_function_keeps_its_name_and_arguments(torch):
    @torch.no_grad()
    def function(a, *, b=2):
        """Says what it does."""
        return a, b, torch.is_grad_enabled()

    assert function.__name__ == "function" and function.__doc__ == "Says what it does."
    assert function(1, b=5) == (1, 5, False)


def test_a_decorated_method(torch):
    class Thing:
        @torch.no_grad()
        def method(self):
            return self, torch.is_grad_enabled()

    thing = Thing()
    assert thing.method() == (thing, False)


def test_a_decorated_function_that_raises(torch):
    @torch.no_grad()
    def function():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        function()
    assert torch.is_grad_enabled()


def test_a_decorated_function_that_calls_itself(torch):
    @torch.no_grad()
    def countdown(n):
        assert not torch.is_grad_enabled()
        with torch.enable_grad():
            if n:
                countdown(n - 1)
            assert torch.is_grad_enabled()

    countdown(5)


# ---------------------------------------------------------------------------------------------------------- generators


def test_a_generator_runs_under_the_mode_and_its_caller_does_not(torch):
    @torch.no_grad()
    def generator():
        for _ in range(3):
            assert not torch.is_grad_enabled()
            yield torch.is_grad_enabled()

    for mode in generator():
        assert mode is False
        assert torch.is_grad_enabled()


def test_two_generators_interleaved(torch):
    @torch.no_grad()
    def off():
        while True:
            yield torch.is_grad_enabled()

    @torch.enable_grad()
    def on():
        while True:
            yield torch.is_grad_enabled()

    a, b = off(), on()
    assert [next(a), next(b), next(a), next(b)] == [False, True, False, True]
    with torch.no_grad():
        assert [next(a), next(b), next(a)] == [False, True, False]
    a.close()
    b.close()


def test_values_are_sent_to_a_generator(torch):
    @torch.no_grad()
    def generator():
        got = []
        while len(got) < 3:
            got.append((yield len(got)))
            assert not torch.is_grad_enabled()
        return got

    g = generator()
    assert [next(g), g.send("a"), g.send("b")] == [0, 1, 2]
    with pytest.raises(StopIteration) as stop:
        g.send("c")
    assert stop.value.value == ["a", "b", "c"]


def test_the_return_value_of_a_generator(torch):
    @torch.no_grad()
    def inner():
        yield 1
        return "done"

    def outer():
        return (yield from inner())

    g = outer()
    next(g)
    with pytest.raises(StopIteration) as stop:
        next(g)
    assert stop.value.value == "done"


def test_errors_are_thrown_into_a_generator(torch):
    @torch.no_grad()
    def generator():
        try:
            yield 1
        except KeyError as error:
            assert not torch.is_grad_enabled()
            yield ("caught", error.args)

    g = generator()
    next(g)
    assert g.throw(KeyError("x")) == ("caught", ("x",))
    assert torch.is_grad_enabled()


def test_errors_come_out_of_a_generator(torch):
    @torch.no_grad()
    def generator():
        yield 1
        raise ValueError("no")

    g = generator()
    next(g)
    with pytest.raises(ValueError, match="no"):
        next(g)
    assert torch.is_grad_enabled()


def test_closing_a_generator_runs_its_cleanup_under_the_mode(torch):
    log = []

    @torch.no_grad()
    def generator():
        try:
            yield 1
        finally:
            log.append(torch.is_grad_enabled())

    g = generator()
    next(g)
    g.close()
    assert log == [False]
    assert torch.is_grad_enabled()


# ---------------------------------------------------------------------------------------- coroutines, async generators
# torch leaves these undecorated; retrograd promises them.


@retrograd.no_grad()
async def step(log):
    log.append(retrograd.is_grad_enabled())
    await asyncio.sleep(0)
    log.append(retrograd.is_grad_enabled())
    return "result"


def test_a_coroutine():
    log = []
    assert asyncio.run(step(log)) == "result"
    assert log == [False, False]


def test_coroutines_interleaved():
    log, outside = [], []

    async def other():
        for _ in range(4):
            outside.append(retrograd.is_grad_enabled())
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(step(log), other(), step(log))

    asyncio.run(main())
    assert log == [False] * 4
    assert outside == [True] * 4


def test_a_coroutine_that_raises():
    @retrograd.no_grad()
    async def fails():
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(fails())


def test_a_coroutine_that_is_cancelled():
    log = []

    @retrograd.no_grad()
    async def waits():
        try:
            await asyncio.sleep(60)
        finally:
            log.append(retrograd.is_grad_enabled())

    async def main():
        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert retrograd.is_grad_enabled()

    asyncio.run(main())
    assert log == [False]


def test_an_async_generator():
    log = []

    @retrograd.no_grad()
    async def generator():
        try:
            for n in range(3):
                log.append(retrograd.is_grad_enabled())
                got = yield n
                await asyncio.sleep(0)
                log.append((got, retrograd.is_grad_enabled()))
        finally:
            log.append(("end", retrograd.is_grad_enabled()))

    async def main():
        g = generator()
        assert await g.asend(None) == 0
        assert retrograd.is_grad_enabled()
        assert await g.asend("sent") == 1
        await g.aclose()
        assert retrograd.is_grad_enabled()

    asyncio.run(main())
    assert log == [False, ("sent", False), False, ("end", False)]


def test_errors_are_thrown_into_an_async_generator():
    @retrograd.no_grad()
    async def generator():
        try:
            yield 1
        except KeyError:
            yield ("caught", retrograd.is_grad_enabled())

    async def main():
        g = generator()
        await g.asend(None)
        assert await g.athrow(KeyError("x")) == ("caught", False)
        assert [item async for item in g] == []

    asyncio.run(main())


def test_an_async_generator_in_a_loop():
    @retrograd.no_grad()
    async def generator():
        for n in range(3):
            yield n, retrograd.is_grad_enabled()

    async def main():
        return [item async for item in generator()]

    assert asyncio.run(main()) == [(0, False), (1, False), (2, False)]


# -------------------------------------------------------------------------------------------------------------- threads


def test_a_mode_belongs_to_its_thread(torch):
    inside, go = threading.Event(), threading.Event()
    seen = []

    def work():
        with torch.no_grad():
            seen.append(torch.is_grad_enabled())
            inside.set()
            go.wait(60)
        seen.append(torch.is_grad_enabled())

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(60)
    assert torch.is_grad_enabled()
    go.set()
    thread.join()
    assert seen == [False, True]


def test_a_new_thread_starts_with_recording_on(torch):
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_grad_layout_policy(torch):
    def strides():
        x = torch.ones(2, 3).t().requires_grad_()
        (x * torch.ones(3, 2)).sum().backward()
        return x.stride(), x.grad.stride()

    assert strides() == ((1, 3), (1, 3))
    with torch.autograd.enforce_grad_layout_policy(False):
        relaxed = strides()
        with torch.autograd.enforce_grad_layout_policy(True):
            assert strides() == ((1, 3), (1, 3))
        assert strides() == relaxed == ((1, 3), (2, 1))
    assert strides() == ((1, 3), (1, 3))
    assert torch.autograd.enforce_grad_layout_policy(False)(strides)() == relaxed
    assert strides() == ((1, 3), (1, 3))


@pytest.mark.parametrize("mode", ["x", 1, None])
def test_grad_mode_is_a_bool(torch, mode):
    for switch in (torch.set_grad_enabled, torch.autograd.set_detect_anomaly):
        with pytest.raises(TypeError, match=r"argument 'enabled' \(position 1\) must be bool, not"):
            switch(mode)
    assert torch.is_grad_enabled() and not torch.is_anomaly_enabled()
