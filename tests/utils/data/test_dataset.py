"""Datasets, samplers and collation, beside torch."""

from __future__ import annotations

import warnings
from collections import Counter, OrderedDict, UserDict, namedtuple
from typing import Any

import numpy as np
import pytest

import retrograd

Point = namedtuple("Point", "x y")


def words(thing: Any) -> Any:
    """What an object is, in words that have nothing of either library."""
    if hasattr(thing, "untyped_storage"):
        return str(thing.dtype), tuple(thing.shape), thing.tolist()
    if isinstance(thing, (dict, UserDict)):
        return type(thing).__name__, [(key, words(value)) for key, value in thing.items()]
    if isinstance(thing, (list, tuple)):
        return type(thing).__name__, [words(part) for part in thing]
    return type(thing).__name__, repr(thing)


# ------------------------------------------------------------------------------------------------------------- datasets


def test_datasets(torch: Any) -> None:
    data = torch.utils.data
    x, y = torch.arange(6).reshape(3, 2), torch.arange(3.0)
    pairs = data.TensorDataset(x, y)
    assert len(pairs) == 3 and words(pairs[1]) == words((x[1], y[1]))
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        data.TensorDataset(x, y[:2])
    both = pairs + data.TensorDataset(x)
    assert type(both) is data.ConcatDataset and len(both) == 6 and both.cumulative_sizes == [3, 6]
    assert words(both[3]) == words((x[0],)) and words(both[-1]) == words((x[2],))
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        both[-7]
    with pytest.raises(IndexError):
        both[6]
    with pytest.raises(AssertionError, match="should not be an empty iterable"):
        data.ConcatDataset([])
    part = data.Subset("abcdef", [4, 2, 0])
    assert len(part) == 3 and part[1] == "c" and part.__getitems__([0, 2]) == ["e", "a"]
    with pytest.raises(NotImplementedError):
        data.Dataset()[0]
    stacked = data.StackDataset("ab", [1, 2])
    assert stacked[1] == ("b", 2) and stacked.__getitems__([1, 0]) == [("b", 2), ("a", 1)] and len(stacked) == 2
    assert data.StackDataset(a="ab", b=part.__getitems__([0, 1])).__getitems__([0]) == [{"a": "a", "b": "e"}]
    for wrong in (((), {}), (("ab", "abc"), {}), (("ab",), {"b": "ab"}), ((), {"a": "ab", "b": "a"})):
        with pytest.raises(ValueError):
            data.StackDataset(*wrong[0], **wrong[1])


def test_streams(torch: Any) -> None:
    data = torch.utils.data

    class Count(data.IterableDataset):
        def __init__(self, n: int) -> None:
            self.n = n

        def __iter__(self) -> Any:
            return iter(range(self.n))

        def __len__(self) -> int:
            return self.n

    chain = Count(2) + Count(3)
    assert type(chain) is data.ChainDataset and list(chain) == [0, 1, 0, 1, 2] and len(chain) == 5
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        list(data.ChainDataset([range(3)]))
    with pytest.raises(AssertionError, match="ConcatDataset does not support IterableDataset"):
        data.ConcatDataset([Count(2)])


def test_a_subset_that_overrides_half(torch: Any) -> None:
    class Half(torch.utils.data.Subset):
        def __getitem__(self, i: Any) -> Any:
            return 1

    with pytest.raises(NotImplementedError, match="__getitems__"):
        Half("abc", [0])


def test_random_split(torch: Any) -> None:
    split = torch.utils.data.random_split
    thirds, quarters = [1 / 3] * 3, [0.25, 0.5, 0.25]
    for lengths, sizes in (([3, 7], [3, 7]), ([0.3, 0.7], [3, 7]), (thirds, [4, 3, 3]), (quarters, [3, 5, 2])):
        parts = split(range(10), lengths, generator=torch.Generator().manual_seed(1))
        assert [len(part) for part in parts] == sizes
        assert sorted(i for part in parts for i in part) == list(range(10))
        again = split(range(10), lengths, generator=torch.Generator().manual_seed(1))
        assert [list(part) for part in again] == [list(part) for part in parts]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        split(range(10), [3, 6])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        split(range(10), [-0.5, 1.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        split(range(1), [0.5, 0.5])


# ------------------------------------------------------------------------------------------------------------- samplers


def test_samplers(torch: Any) -> None:
    data = torch.utils.data
    assert list(data.SequentialSampler("abc")) == [0, 1, 2] and len(data.SequentialSampler("abc")) == 3
    shuffled = data.RandomSampler(range(50))
    a, b = list(shuffled), list(shuffled)
    assert sorted(a) == sorted(b) == list(range(50)) and a != b and len(shuffled) == 50
    g = torch.Generator().manual_seed(3)
    first = list(data.RandomSampler(range(50), generator=g))
    assert list(data.RandomSampler(range(50), generator=g.manual_seed(3))) == first
    torch.manual_seed(5)
    first = list(data.RandomSampler(range(50)))
    torch.manual_seed(5)
    assert list(data.RandomSampler(range(50))) == first
    counts = Counter(data.RandomSampler(range(4), num_samples=10))
    assert sorted(counts.values()) == [2, 2, 3, 3]
    drawn = list(data.RandomSampler(range(4), replacement=True, num_samples=100))
    assert len(drawn) == 100 and set(drawn) == {0, 1, 2, 3}
    assert sorted(data.SubsetRandomSampler([7, 8, 9])) == [7, 8, 9]
    weighted = data.WeightedRandomSampler([0.0, 1.0, 3.0], 2000)
    counts = Counter(weighted)
    assert counts[0] == 0 and 380 < counts[1] < 620 and len(weighted) == 2000
    assert sorted(data.WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False)) == [0, 1, 2]
    for drop, expected in ((False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])):
        batches = data.BatchSampler(data.SequentialSampler(range(5)), 2, drop)
        assert list(batches) == expected and len(batches) == len(expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda data: data.RandomSampler(range(3), num_samples=0),
        lambda data: data.RandomSampler(range(0)),
        lambda data: data.RandomSampler(range(3), num_samples=1.5),
        lambda data: data.RandomSampler(range(3), replacement=1),
        lambda data: data.WeightedRandomSampler([1.0], 0),
        lambda data: data.WeightedRandomSampler([1.0], True),
        lambda data: data.WeightedRandomSampler([[1.0]], 1),
        lambda data: data.WeightedRandomSampler([1.0], 1, replacement=1),
        lambda data: data.BatchSampler(range(3), 0, False),
        lambda data: data.BatchSampler(range(3), 2.0, False),
        lambda data: data.BatchSampler(range(3), True, False),
        lambda data: data.BatchSampler(range(3), 2, 1),
        lambda data: data.DistributedSampler(range(3), num_replicas=2, rank=2),
        lambda data: data.DistributedSampler(range(3), num_replicas=2, rank=-1),
    ],
)
def test_wrong_samplers(torch: Any, call: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        call(torch.utils.data)


@pytest.mark.parity
@pytest.mark.parametrize("n", [1, 3, 5, 7])
@pytest.mark.parametrize("num_samples", [None, 1, 4, 7, 100])
def test_the_same_order_given_the_same_permutation(n: int, num_samples: int | None, monkeypatch: Any) -> None:
    theirs = pytest.importorskip("torch")
    orders = []
    for T in (retrograd, theirs):
        rng = [np.random.default_rng(0)]

        def randperm(n: int, *, generator: Any = None, T: Any = T, rng: Any = rng, **more: Any) -> Any:
            return T.from_numpy(rng[0].permutation(n))

        def randint(*args: Any, T: Any = T, rng: Any = rng, generator: Any = None, **more: Any) -> Any:
            high = more.get("high", args[0] if args else None)
            size = more.get("size", args[1] if len(args) > 1 else None)
            return T.from_numpy(rng[0].integers(0, high, size))

        where = retrograd.ops.random_factories if T is retrograd else theirs
        with monkeypatch.context() as patch:
            patch.setattr(where, "randperm", randperm)
            patch.setattr(where, "randint", randint)
            data = T.utils.data
            orders.append([])
            for make in (
                lambda data: data.RandomSampler(range(n), num_samples=num_samples),
                lambda data: data.RandomSampler(range(n), replacement=True, num_samples=num_samples),
                lambda data: data.SubsetRandomSampler(list("abcdefg"[:n])),
                lambda data: data.DistributedSampler(range(n), num_replicas=3, rank=1),
                lambda data: data.DistributedSampler(range(n), num_replicas=2, rank=1, drop_last=True),
                lambda data: data.DataLoader(range(n), batch_size=2, shuffle=True),
            ):
                rng[0] = np.random.default_rng(0)  # torch draws a permutation that it does not need
                orders[-1].append([words(thing) for thing in make(data)])
                orders[-1].append(len(make(data)))
    assert orders[0] == orders[1]


def test_distributed(torch: Any) -> None:
    make = torch.utils.data.DistributedSampler
    for n in (0, 1, 5, 8):
        for drop in (False, True):
            shares = [list(make(range(n), 3, rank, shuffle=False, drop_last=drop)) for rank in range(3)]
            assert len({len(share) for share in shares}) == 1
            assert set().union(*shares) <= set(range(n)) and (drop or set().union(*shares) == set(range(n)))
    sampler = make(range(20), 2, 0)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first
    other = make(range(20), 2, 1)
    assert sorted(first + list(other)) == list(range(20))


def test_distributed_needs_numbers() -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        retrograd.utils.data.DistributedSampler(range(3))


# ------------------------------------------------------------------------------------------------------------ collation

BATCHES: dict[str, Any] = {
    "tensors": lambda T: [T.ones(2), T.zeros(2)],
    "arrays": lambda T: [np.ones(2), np.zeros(2)],
    "an array of bytes": lambda T: [np.array([1, 2], np.uint8)] * 2,
    "NumPy's numbers": lambda T: [np.float32(1.5), np.float32(2)],
    "NumPy's truth values": lambda T: [np.bool_(True), np.bool_(False)],
    "0-d arrays": lambda T: [np.array(1), np.array(2)],
    "floats": lambda T: [1.5, 2.0],
    "ints": lambda T: [1, 2],
    "bools": lambda T: [True, False],
    "text": lambda T: ["a", "b"],
    "bytes": lambda T: [b"a", b"b"],
    "dicts": lambda T: [{"x": 1, "y": T.ones(1)}, {"y": T.zeros(1), "x": 3}],
    "ordered dicts": lambda T: [OrderedDict(b=1, a=2)] * 2,
    "user dicts": lambda T: [UserDict(b=1)] * 2,
    "tuples": lambda T: [(1, 2.5), (3, 4.5)],
    "lists": lambda T: [[1, "a"], [3, "b"]],
    "named tuples": lambda T: [Point(1, 2), Point(3, 4)],
    "nests": lambda T: [{"a": [(1, {"b": T.ones(1)})]}] * 3,
    "ranges": lambda T: [range(2), range(2)],
    "one": lambda T: [5],
}


@pytest.mark.parity
@pytest.mark.parametrize("name", BATCHES)
def test_collation(name: str) -> None:
    theirs = pytest.importorskip("torch")
    mine = retrograd.utils.data.default_collate(BATCHES[name](retrograd))
    assert words(mine) == words(theirs.utils.data.default_collate(BATCHES[name](theirs)))
    mine = retrograd.utils.data.default_convert(BATCHES[name](retrograd))
    assert words(mine) == words(theirs.utils.data.default_convert(BATCHES[name](theirs)))


def test_what_cannot_be_collated(torch: Any) -> None:
    collate = torch.utils.data.default_collate
    with pytest.raises(TypeError, match="batch must contain tensors, numpy arrays, numbers, dicts or lists"):
        collate([object()])
    with pytest.raises(TypeError, match="batch must contain tensors"):
        collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        collate([[1, 2], [3]])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        collate([torch.ones(2), torch.ones(3)])


def test_classes_of_ones_own(torch: Any) -> None:
    class Mine:
        pass

    module = torch.utils.data._utils.collate
    table = {Mine: lambda batch, *, collate_fn_map=None: len(batch), **module.default_collate_fn_map}
    assert module.collate([Mine(), Mine()], collate_fn_map=table) == 2
    assert module.collate([{"a": Mine()}], collate_fn_map=table) == {"a": 1}
    assert module.collate([(Mine(), 1)], collate_fn_map={(Mine, int): table[Mine]}) == [1, 1]
    for name in ("tensor", "numpy_array", "numpy_scalar", "float", "int", "str"):
        assert callable(getattr(module, f"collate_{name}_fn"))


def test_collated_dicts_keep_their_class_and_what_they_carry() -> None:
    class Tagged(dict):
        pass

    sample = Tagged(x=1)
    sample.tag = "mine"  # type: ignore[attr-defined]
    batch = retrograd.utils.data.default_collate([sample, sample])
    assert type(batch) is Tagged and batch.tag == "mine" and sample["x"] == 1  # type: ignore[attr-defined]


def test_no_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(retrograd.utils.data.DataLoader(range(4), batch_size=2, num_workers=0))


# ---------------------------------------------------------------------------------------------- the same random numbers


@pytest.mark.parity
@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_the_same_order_from_the_same_seed(seed: int) -> None:
    theirs = pytest.importorskip("torch")
    found = []
    for T in (retrograd, theirs):
        data = T.utils.data
        T.manual_seed(seed)
        orders = [[words(batch) for batch in data.DataLoader(range(23), batch_size=4, shuffle=True)] for _ in range(2)]
        g = T.Generator().manual_seed(seed)
        orders += [
            list(data.RandomSampler(range(9), num_samples=30, generator=g)),
            list(data.RandomSampler(range(9), replacement=True, num_samples=70, generator=g)),
            list(data.SubsetRandomSampler(range(10, 30), generator=g)),
            [list(part) for part in data.random_split(range(30), [0.2, 0.8], generator=g)],
            list(data.DistributedSampler(range(17), 2, 1, seed=seed)),
            [words(batch) for batch in data.DataLoader(range(23), batch_size=4, shuffle=True, generator=g)],
        ]
        found.append(orders)
    assert found[0] == found[1]
