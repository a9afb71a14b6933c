"""The DataLoader: the same batches as torch's, with and without workers; errors, deaths, interrupts."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

HERE = [pytest.param("fork", marks=pytest.mark.skipif(os.name != "posix", reason="fork is POSIX's")), "thread"]
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def words(thing: Any) -> Any:
    if hasattr(thing, "untyped_storage"):
        return str(thing.dtype), tuple(thing.shape), thing.tolist()
    if isinstance(thing, dict):
        return {key: words(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [words(part) for part in thing]
    return thing


class Squares(Dataset):
    def __init__(self, n: int = 11) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return i * i, {"x": np.full(3, i, np.float32), "name": str(i)}


class Slow(Squares):
    """Even samples take longer."""

    def __getitem__(self, i: int) -> Any:
        time.sleep(0.05 if i % 2 == 0 else 0)
        return i


class Failing(Squares):
    def __init__(self, error: Any) -> None:
        super().__init__(10)
        self.error = error

    def __getitem__(self, i: int) -> Any:
        if i == 5:
            self.act()
        return i

    def act(self) -> None:
        raise self.error


class Killed(Failing):
    def act(self) -> None:
        os.kill(os.getpid(), self.error)


class Quits(Failing):
    def act(self) -> None:
        os._exit(self.error)


class Odd(Exception):
    """Cannot be made from a text."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


class Count(IterableDataset):
    """Each worker has its share of a count."""

    def __init__(self, n: int, shared: bool = True) -> None:
        self.n = n
        self.shared = shared

    def __iter__(self) -> Any:
        info = get_worker_info()
        if info is None or not self.shared:
            return iter(range(self.n))
        return iter(range(info.id, self.n, info.num_workers))


def children() -> list[int]:
    return [process.pid for process in multiprocessing.active_children()]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
    before = set(threading.enumerate())
    yield
    gc.collect()
    deadline = time.monotonic() + 60
    while (children() or set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert children() == [] and set(threading.enumerate()) <= before


# ------------------------------------------------------------------------------------------------------- what comes out


@pytest.mark.parametrize("how", [None, *HERE])
@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
def test_batches(options: dict, how: Any) -> None:
    plain = [words(batch) for batch in DataLoader(Squares(), **options)]
    workers = {} if how is None else {"num_workers": 2, "multiprocessing_context": how, "prefetch_factor": 3}
    loader = DataLoader(Squares(), **options, **workers)
    assert [words(batch) for batch in loader] == plain == [words(batch) for batch in loader]
    assert len(loader) == len(plain)


@pytest.mark.parity
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 3}, {"batch_size": 4, "drop_last": True}, {"batch_size": None}, {"sampler": [3, 1, 4, 1, 5]},
        {"batch_sampler": [[1, 2], [0], [3, 4, 5]]}, {"batch_size": 2, "collate_fn": lambda batch: len(batch)},
    ],
)  # fmt: skip
def test_batches_beside_torch(options: dict, workers: int) -> None:
    theirs = pytest.importorskip("torch")
    more = {"num_workers": workers, "multiprocessing_context": "fork"} if workers else {}
    mine = [words(batch) for batch in DataLoader(Squares(), **options, **more)]
    assert mine == [words(batch) for batch in theirs.utils.data.DataLoader(Squares(), **options)]


@pytest.mark.parity
@pytest.mark.parametrize("how", HERE)
@pytest.mark.parametrize(
    ("n", "options"), [(7, {"batch_size": 3}), (7, {"batch_size": 2, "drop_last": True}), (0, {"batch_size": None})]
)
def test_streams(n: int, options: dict, how: str) -> None:
    theirs = pytest.importorskip("torch")

    class Theirs(theirs.utils.data.IterableDataset):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Any:
            info = theirs.utils.data.get_worker_info()
            return iter(range(n)) if info is None else iter(range(info.id, n, info.num_workers))

    loader = DataLoader(Count(n), num_workers=3, multiprocessing_context=how, **options)
    expected = theirs.utils.data.DataLoader(Theirs(), num_workers=3, multiprocessing_context="fork", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [words(batch) for batch in loader] == [words(batch) for batch in expected]
        assert [words(b) for b in DataLoader(Count(n), **options)] == [
            words(b) for b in theirs.utils.data.DataLoader(Theirs(), **options)
        ]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_ways_to_start(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    x = retrograd.arange(60000.0).reshape(6, 10000)
    loader = DataLoader(TensorDataset(x), batch_size=2, num_workers=1, multiprocessing_context=method)
    assert retrograd.equal(retrograd.cat([batch for (batch,) in loader]), x)
    assert loader.multiprocessing_context.get_start_method() == method
    with pytest.raises(Exception, match=r"[Pp]ickle|local"), pytest.warns(UserWarning, match="Got pickle error"):
        list(DataLoader(TensorDataset(x), num_workers=1, multiprocessing_context=method, collate_fn=lambda b: b))


@pytest.mark.parametrize("how", HERE)
def test_order(how: str) -> None:
    workers = {"num_workers": 2, "multiprocessing_context": how, "batch_size": None}
    assert list(DataLoader(Slow(), **workers)) == list(range(11))
    found = list(DataLoader(Slow(), in_order=False, **workers))
    assert sorted(found) == list(range(11)) and found != list(range(11))


@pytest.mark.skipif(os.name != "posix", reason="fork is POSIX's")
@pytest.mark.parametrize("size", [0, 1, 100, 100_000])
def test_tensors_arrive_as_they_were(size: int) -> None:
    sent = []
    for dtype in ("bool", "int64", "float32", "bfloat16", "complex64"):
        x = (retrograd.arange(2 * size) % 7).to(getattr(retrograd, dtype)).reshape(2, size)
        sent += [x, x.t().contiguous().t()]
    sent.append(retrograd.nn.Parameter(retrograd.ones(size)))
    found = list(DataLoader(sent, batch_size=None, num_workers=1, multiprocessing_context="fork"))
    for before, after in zip(sent, found, strict=True):
        assert type(after) is type(before) and after.dtype is before.dtype and after.stride() == before.stride()
        assert retrograd.equal(after, before)
        after.detach().zero_()  # it is ours to write to
        assert not after.any()


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the memory is looked for in /proc/self/maps")
def test_large_tensors_lie_in_memory_that_was_shared_and_goes_with_them() -> None:
    def shared() -> int:
        with open("/proc/self/maps") as maps:
            return sum("memfd:retrograd" in line for line in maps)

    x = retrograd.ones(1000, 100)
    before = shared()
    batches = list(DataLoader([x, x, x], batch_size=None, num_workers=1, multiprocessing_context="fork"))
    assert shared() == before + 3
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd"))
    kept = batches.pop()[3]
    del batches
    gc.collect()
    assert shared() == before + 1 and kept.sum() == 100 and len(os.listdir("/proc/self/fd")) <= descriptors
    del kept
    gc.collect()
    assert shared() == before


@pytest.mark.parametrize("how", HERE)
def test_large_indices_and_large_answers_do_not_wait_for_each_other(how: str) -> None:
    class Echo(Dataset):
        def __getitem__(self, index: Any) -> Any:
            return index, "x" * 300_000

    indices = ["i" * 300_000 + str(i) for i in range(30)]
    loader = DataLoader(
        Echo(), batch_size=None, sampler=indices, num_workers=2, multiprocessing_context=how, prefetch_factor=10
    )
    assert [index for index, _ in loader] == indices


# ---------------------------------------------------------------------------------------------------- seeds and workers


class Told(Dataset):
    """What a worker knows, and its random numbers."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> Any:
        info = get_worker_info()
        assert info is not None
        numbers = random.random(), float(np.random.rand()), float(retrograd.rand(()))
        return info.id, info.num_workers, info.seed, numbers, info.dataset is self, retrograd.get_num_threads()


@pytest.mark.skipif(os.name != "posix", reason="fork is POSIX's")
def test_seeds() -> None:
    def told(seed: int) -> Any:
        loader = DataLoader(
            Told(), batch_size=None, num_workers=2, multiprocessing_context="fork",
            generator=retrograd.Generator().manual_seed(seed), collate_fn=lambda sample: sample,
        )  # fmt: skip
        return list(loader)

    first = told(1)
    assert [sample[0] for sample in first] == [0, 1, 0, 1]
    assert all(sample[1] == 2 and sample[4] and sample[5] == 1 for sample in first)
    assert first[1][2] == first[0][2] + 1
    assert len({number for sample in first for number in sample[3]}) == 12
    assert told(1) == first and told(2)[0][2:4] != first[0][2:4]
    assert get_worker_info() is None


class Draw(Dataset):
    """Random numbers of a worker, of either library."""

    def __init__(self, T: Any) -> None:
        self.T = T

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> Any:
        info = self.T.utils.data.get_worker_info()
        return info.id, info.seed, random.random(), float(np.random.rand()), float(self.T.rand(()))


@pytest.mark.parity
@pytest.mark.skipif(os.name != "posix", reason="fork is POSIX's")
def test_workers_draw_what_torchs_draw() -> None:
    theirs = pytest.importorskip("torch")
    found = []
    for T in (retrograd, theirs):
        T.manual_seed(7)
        options = {"batch_size": None, "num_workers": 2, "multiprocessing_context": "fork", "shuffle": True}
        found.append([words(sample) for sample in T.utils.data.DataLoader(Draw(T), collate_fn=list, **options)])
    assert found[0] == found[1]


def test_threads_know_which_they_are() -> None:
    loader = DataLoader(Told(), batch_size=None, num_workers=2, multiprocessing_context="thread")
    assert [(sample[0], sample[1]) for sample in loader] == [(0, 2), (1, 2), (0, 2), (1, 2)]
    assert get_worker_info() is None


def test_threads_have_random_streams_of_their_own() -> None:
    class Draws(Squares):
        def __getitem__(self, i: int) -> Any:
            info = get_worker_info()
            assert info is not None and info.rng is not None and info.worker_method == "thread"
            rng = info.rng
            number = retrograd.rand((), generator=rng.torch_generator)
            return rng.random_generator.random(), float(number), float(rng.numpy_generator.random())

    def draw(seed: int) -> Any:
        options = {"num_workers": 2, "multiprocessing_context": "thread", "batch_size": None}
        generator = retrograd.Generator().manual_seed(seed)
        return [words(sample) for sample in DataLoader(Draws(6), generator=generator, **options)]

    first = draw(1)
    assert draw(1) == first and draw(2) != first and len({n for sample in first for n in sample}) == 18


@pytest.mark.parity
@pytest.mark.parametrize("seed", [0, 5, 2**40 + 3, 2**63 - 2])
def test_the_seed_of_numpy_is_torchs(seed: int) -> None:
    theirs = pytest.importorskip("torch")
    for worker in (0, 1, 7):
        expected = theirs.utils.data._utils.worker._generate_state(seed, worker)
        assert retrograd.utils.data._utils.worker._generate_state(seed, worker) == expected


def test_worker_info_is_not_for_writing(torch: Any) -> None:
    info = torch.utils.data._utils.worker.WorkerInfo(id=1, num_workers=2, seed=3, dataset=None)
    assert (info.id, info.num_workers, info.seed) == (1, 2, 3) and repr(info).startswith("WorkerInfo(id=1")
    with pytest.raises(AttributeError, match="cannot assign to field 'id'"):
        info.id = 2


@pytest.mark.parametrize("how", HERE)
def test_worker_init_fn(how: str) -> None:
    seen: list[Any] = []

    def init(worker_id: int) -> None:
        seen.append(worker_id)
        info = get_worker_info()
        assert info is not None
        info.dataset.n = 100 + worker_id

    class Asked(Squares):
        def __getitem__(self, i: int) -> Any:
            return self.n, list(seen)

    found = list(
        DataLoader(Asked(4), batch_size=None, num_workers=1, multiprocessing_context=how, worker_init_fn=init)
    )
    assert found == [[100, [0]]] * 4


@pytest.mark.parametrize("how", HERE)
@pytest.mark.parametrize("dataset", [Squares(8), Count(8)])
def test_persistent_workers(how: str, dataset: Any) -> None:
    options = {"num_workers": 2, "batch_size": 3, "multiprocessing_context": how}
    once = [words(batch) for batch in DataLoader(dataset, **options)]
    loader = DataLoader(dataset, persistent_workers=True, **options)
    workers = None
    for _ in range(3):
        assert [words(batch) for batch in loader] == once
        next(iter(loader))  # and left in the middle
        assert workers is None or loader._iterator._workers == workers  # type: ignore[union-attr]
        workers = list(loader._iterator._workers)  # type: ignore[union-attr]
        assert all(worker.is_alive() for worker in workers)
    del loader
    gc.collect()
    assert not any(worker.is_alive() for worker in workers or [])


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("how", HERE)
@pytest.mark.parametrize(
    ("error", "kind"),
    [(ValueError("oh no"), ValueError), (KeyError("k"), KeyError), (IndexError("i"), IndexError),
     (Odd(1, 2), RuntimeError), (FileNotFoundError(2, "No such file"), FileNotFoundError)],
)  # fmt: skip
def test_errors_of_workers(how: str, error: Exception, kind: type) -> None:
    loader = DataLoader(Failing(error), batch_size=None, num_workers=2, multiprocessing_context=how)
    found = []
    with pytest.raises(kind) as caught:
        for sample in loader:
            found.append(sample)
    assert found == [0, 1, 2, 3, 4]
    text = str(caught.value)
    assert f"Caught {type(error).__name__} in DataLoader worker {'thread' if how == 'thread' else 'process'} 1" in text
    assert "Original Traceback (most recent call last)" in text and "raise self.error" in text and "\\n" not in text


@pytest.mark.parametrize("workers", [0, 1])
def test_a_dataset_that_stops_by_itself_is_not_taken_for_the_end(workers: int) -> None:
    # In torch the samples from the fifth on are silently left out.
    how = {"num_workers": 1, "multiprocessing_context": "thread"} if workers else {}
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        list(DataLoader(Failing(StopIteration()), batch_size=None, **how))


@pytest.mark.parametrize("how", HERE)
def test_after_an_error_the_others_come(how: str) -> None:
    iterator = iter(DataLoader(Failing(ValueError("x")), batch_size=None, num_workers=2, multiprocessing_context=how))
    found: list[Any] = []
    while True:
        try:
            found.append(next(iterator))
        except ValueError:
            found.append("error")
        except StopIteration:
            break
    assert found == [0, 1, 2, 3, 4, "error", 6, 7, 8, 9]


@pytest.mark.parametrize("how", HERE)
def test_errors_before_the_first_sample(how: str) -> None:
    def init(worker_id: int) -> None:
        raise ValueError("no beginning")

    class NoStream(Count):
        def __iter__(self) -> Any:
            raise ValueError("no stream")

    options = {"num_workers": 2, "multiprocessing_context": how}
    with pytest.raises(ValueError, match=r"Caught ValueError in DataLoader worker[\s\S]*no beginning"):
        list(DataLoader(Squares(), worker_init_fn=init, **options))
    with pytest.raises(ValueError, match=r"[\s\S]*no stream"):
        list(DataLoader(NoStream(3), **options))


@pytest.mark.skipif(os.name != "posix", reason="fork is POSIX's")
def test_what_cannot_be_sent() -> None:
    class Unsendable(Squares):
        def __getitem__(self, i: int) -> Any:
            return lambda: i

    class Local(Exception):
        pass

    options: dict[str, Any] = {"batch_size": None, "num_workers": 1, "multiprocessing_context": "fork"}
    with pytest.raises(Exception, match=r"which cannot be pickled"):
        list(DataLoader(Unsendable(3), **options))
    with pytest.raises(RuntimeError, match=r"of the class .*Local, which cannot be pickled[\s\S]*mine"):
        list(DataLoader(Failing(Local("mine")), **options))


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize(
    ("dataset", "how", "persistent"),
    [(Killed(signal.SIGKILL), "SIGKILL", True), (Killed(signal.SIGTERM), "SIGTERM", False),
     (Quits(3), "status 3", False), (Quits(0), "status 0", True), (Failing(SystemExit(4)), "status 4", False)],
)  # fmt: skip
def test_workers_that_die(dataset: Any, how: str, persistent: bool) -> None:
    loader = DataLoader(
        dataset, batch_size=None, num_workers=2, multiprocessing_context="fork", persistent_workers=persistent
    )
    took = []
    for _ in range(2):  # and it can be begun again
        iterator = iter(loader)
        begun = time.monotonic()
        found = []
        with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly[\s\S]*{how}"):
            for sample in iterator:
                found.append(sample)
        took.append(time.monotonic() - begun)
        assert found == [0, 1, 2, 3, 4][: len(found)]
        assert children() == []
        with pytest.raises(StopIteration):
            next(iterator)
    assert min(took) < 5  # the patience with workers that do not end; a busy machine may take that long now and then


@pytest.mark.parametrize("how", HERE)
def test_timeout(how: str) -> None:
    class Stuck(Squares):
        def __getitem__(self, i: int) -> Any:
            time.sleep(seconds + 0.7 if i == 2 else 0)
            return i

    for seconds in (0.3, 5.0):  # a busy machine may take more than a moment to start a worker
        loader = DataLoader(Stuck(), batch_size=None, num_workers=1, multiprocessing_context=how, timeout=seconds)
        found = []
        with pytest.raises(RuntimeError, match=rf"DataLoader timed out after {seconds} seconds"):
            for sample in loader:
                found.append(sample)
        if found == [0, 1]:
            break
    assert found == [0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiprocessing"),
        ({"num_workers": 1, "prefetch_factor": -1}, "prefetch_factor option should be non-negative"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"multiprocessing_context": "fork"}, "multiprocessing_context can only be used with multi-process loading"),
        ({"num_workers": 1, "multiprocessing_context": "x"}, "should specify a valid start method"),
        ({"num_workers": 1, "multiprocessing_context": 3}, "should be a valid context object or a string"),
        ({"sampler": [1], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive with batch_size"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"batch_size": 0}, "batch_size should be a positive integer value"),
    ],
)  # fmt: skip
def test_wrong_options(torch: Any, options: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        torch.utils.data.DataLoader(range(3), **options)


def test_streams_have_no_order(torch: Any) -> None:
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(range(3))

        def __len__(self) -> int:
            return 1

    for options in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}):
        with pytest.raises(ValueError, match=f"expected unspecified {next(iter(options))} option"):
            torch.utils.data.DataLoader(Stream(), **options)
    loader = torch.utils.data.DataLoader(Stream(), shuffle=False)
    assert len(loader) == 1
    with pytest.warns(UserWarning, match="Length of IterableDataset .* was reported to be 1"):
        list(loader)


def test_attributes(torch: Any) -> None:
    loader = torch.utils.data.DataLoader(range(5), batch_size=2)
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, getattr(loader, name))
    assert type(loader.sampler) is torch.utils.data.SequentialSampler and loader.num_workers == 0
    assert type(loader.batch_sampler) is torch.utils.data.BatchSampler and loader.prefetch_factor is None
    assert loader.collate_fn is torch.utils.data.default_collate and loader.multiprocessing_context is None
    assert torch.utils.data.DataLoader(range(5), batch_size=None).collate_fn is torch.utils.data.default_convert


def test_pinned_memory_is_warned_about(torch: Any) -> None:
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"):
        assert len(list(torch.utils.data.DataLoader(range(3), pin_memory=True))) == 3


def test_too_many_workers(torch: Any) -> None:
    with pytest.warns(UserWarning, match="This DataLoader will create 1000 worker processes in total"):
        torch.utils.data.DataLoader(range(3), num_workers=1000)


# ------------------------------------------------------------------------------------------------------- ends of things


@pytest.mark.parametrize("how", HERE)
@pytest.mark.parametrize("persistent", [False, True])
def test_leaving_in_the_middle(how: str, persistent: bool) -> None:
    gc.collect()
    gc.freeze()  # what other tests have left is not looked through below, which would take seconds
    for attempt in range(3):
        loader = DataLoader(
            Slow(100), batch_size=None, num_workers=2, multiprocessing_context=how, persistent_workers=persistent
        )
        for sample in loader:
            if sample == 3:
                break
        begun = time.monotonic()
        del loader
        gc.collect()
        if time.monotonic() - begun < 4:  # less than the patience with workers that do not end
            break
        assert attempt < 2, "it took too long, not only because the machine is busy"
    # the fixture looks whether something is left


def script(body: str, *arguments: str) -> subprocess.Popen:
    """A Python program in a process group of its own, as a terminal has it."""
    package = os.path.dirname(os.path.dirname(retrograd.__file__))
    # A test may be run in the background of a shell, where Ctrl-C is ignored by all that is started from there.
    source = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + textwrap.dedent(body)
    environment = {**os.environ, "PYTHONPATH": package, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", source, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment,
    )


def group_is_empty(group: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


ENDLESS = """
    import sys, time, retrograd
    from retrograd.utils.data import DataLoader, Dataset
    class Endless(Dataset):
        def __len__(self): return 10**6
        def __getitem__(self, i):
            time.sleep(float(sys.argv[2]) if i > 4 else 0)
            return retrograd.ones(100_000)
    loader = DataLoader(Endless(), batch_size=None, num_workers=2, multiprocessing_context=sys.argv[1],
                        persistent_workers=sys.argv[3] == "persistent")
    try:
        for i, x in enumerate(loader):
            if i == 3:
                print("going", flush=True)
    finally:
        print("left", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX's")
@pytest.mark.parametrize(
    ("how", "seconds", "kept"), [("fork", "0.001", "no"), ("fork", "60", "persistent"), ("thread", "0.01", "no")]
)
def test_interrupts(how: str, seconds: str, kept: str) -> None:
    process = script(ENDLESS, how, seconds, kept)
    assert process.stdout is not None and process.stdout.readline() == "going\n"
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: to all of them
    out, err = process.communicate(timeout=120)
    assert out == "left\n" and err.rstrip().endswith("KeyboardInterrupt") and err.count("Traceback") == 1, err
    assert group_is_empty(process.pid)


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX's")
def test_workers_end_with_the_process_that_started_them() -> None:
    process = script(ENDLESS, "fork", "0.001", "no")
    assert process.stdout is not None and process.stdout.readline() == "going\n"
    process.kill()
    process.wait()
    assert group_is_empty(process.pid)
    process.communicate()


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX's")
def test_an_interrupt_that_was_caught_leaves_kept_workers_useful() -> None:
    process = script(
        """
        import os, signal, retrograd
        from retrograd.utils.data import DataLoader
        options = {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True}
        loader = DataLoader(range(40), batch_size=4, **options)
        def again():
            return [x for batch in loader for x in batch.tolist()] == list(range(40))
        print(again())
        pids = [w.pid for w in loader._iterator._workers]
        try:
            os.killpg(0, signal.SIGINT)
            import time; time.sleep(5)
        except KeyboardInterrupt:
            pass
        print(again(), pids == [w.pid for w in loader._iterator._workers])
        """
    )
    out, err = process.communicate(timeout=120)
    assert out.split() == ["True"] * 3, err


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX's")
@pytest.mark.parametrize("how", ["fork", "thread"])
def test_interrupts_at_any_time(how: str) -> None:
    for delay in np.linspace(0, 0.5, 10):
        process = script(ENDLESS.replace("if i == 3:", "if i == 0:"), how, "0.0005", "no")
        assert process.stdout is not None and process.stdout.readline() == "going\n"
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=120)
        assert group_is_empty(process.pid)
