"""Sizes that no memory has, how results lie in memory, and older ways to make tensors."""

from __future__ import annotations

import numpy as np
import pytest

OVERFLOWS = {
    "empty": lambda torch: torch.empty(2**40, 2**40),
    "empty, one": lambda torch: torch.empty(2**62),
    "zeros": lambda torch: torch.zeros((2**61, 8)),
    "resize_": lambda torch: torch.zeros(2).resize_(2**62),
    "new_empty": lambda torch: torch.zeros(2).new_empty(2**40, 2**40),
    "empty_strided": lambda torch: torch.empty_strided((2,), (2**62,)),
    "as_strided": lambda torch: torch.zeros(4).as_strided((2,), (2**62,)),
    "as_strided, size": lambda torch: torch.zeros(4).as_strided((2**62,), (8,)),
    "as_strided, offset": lambda torch: torch.zeros(4).as_strided((2,), (1,), 2**63 - 1),
    "set_": lambda torch: torch.zeros(4).set_(torch.zeros(4).untyped_storage(), 2**62, (2,), (1,)),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_sizes_whose_bytes_cannot_be_counted(torch, name):
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed with sizes="):
        OVERFLOWS[name](torch)


def test_a_storage_does_not_grow_for_what_is_refused():
    import retrograd  # alone: torch grows some of these first

    storage = retrograd.zeros(4).untyped_storage()
    for offset, size, stride in ((2**62, (2,), (1,)), (0, (-5, -5), (3, 3)), (0, (9,), (1, 1)), (-1, (9,), (1,))):
        with pytest.raises(RuntimeError):
            retrograd.zeros(4).set_(storage, offset, size, stride)
        assert storage.nbytes() == 16


@pytest.mark.parametrize("name", ["expand", "resize_"])
def test_more_elements_than_can_be_counted(torch, name):
    x = torch.zeros(1)
    with pytest.raises(RuntimeError, match="numel: integer multiplication overflow"):
        getattr(x, name)(2**32, 2**32)
    if torch.__name__ == "retrograd":  # where torch has changed the sizes before it finds out
        assert x.shape == (1,)


@pytest.mark.parametrize("function", ["softmax", "log_softmax", "logcumsumexp", "cummax", "cummin"])
@pytest.mark.parametrize("dim", [0, 1])
def test_results_that_are_contiguous_however_the_input_lies(torch, function, dim):
    x = torch.arange(6.0).reshape(2, 3).t()
    result = getattr(torch, function)(x, dim)
    for one in result if isinstance(result, tuple) else (result,):
        assert one.stride() == (2, 1)
        assert one.view(6).tolist() == one.flatten().tolist()
    if function.endswith("softmax"):
        assert torch.nn.functional.softmin(x, dim).is_contiguous()
        assert getattr(torch, function)(torch.zeros(3, 0, 2).transpose(0, 2), 0).is_contiguous()


def test_an_index_for_tensor_split_has_at_most_one_dimension(torch):
    with pytest.raises(RuntimeError, match="zero-dimensional or one-dimensional tensor, but got a tensor with 2 dims"):
        torch.tensor_split(torch.arange(6), torch.tensor([[1, 2]]))


def test_broadcast_shapes_of_negative_and_float_sizes(torch):
    for shapes in [(-1,), ((-1, 2),), ((3, 1), (1, -2))]:
        with pytest.raises(ValueError, match="broadcast a dimension with negative length"):
            torch.broadcast_shapes(*shapes)
    assert torch.broadcast_shapes((1.0, 2)) == torch.Size([1, 2])
    assert torch.broadcast_shapes((2,), (2.0,)) == torch.Size([2])
    with pytest.raises(TypeError):
        torch.broadcast_shapes((2.0,))
    with pytest.raises(RuntimeError, match="Input shapes should be of type ints"):
        torch.broadcast_shapes(1.0)


def test_histogramdd_names_its_results(torch):
    result = torch.histogramdd(torch.arange(8.0).reshape(4, 2), [2, 3])
    assert type(result).__name__ == "histogramdd"
    assert result.hist is result[0] and result.hist.shape == (2, 3)
    assert [len(edges) for edges in result.bin_edges] == [3, 4]


@pytest.mark.parametrize("edges", [[0.0, 2.0, 1.0, 3.0], [3.0, 2.0, 1.0, 0.0], [2.0, 0.0, 1.0, 3.0], [0.0, 1.0, 3.0]])
@pytest.mark.parametrize("weighed", [False, True])
def test_histogram_of_edges_in_any_order(edges, weighed):
    """Only torch's way to look for an edge says what such a histogram is."""
    torch = pytest.importorskip("torch")
    import retrograd

    values = [0.5, 1.5, 2.5, 1.0, 2.0, 3.0, 0.0, -1.0, 4.0, float("nan")]
    found = []
    for library in (retrograd, torch):
        weight = library.arange(10.0) if weighed else None
        found.append(library.histogram(library.tensor(values), library.tensor(edges), weight=weight))
    assert found[0].hist.tolist() == found[1].hist.tolist()
    assert found[0].bin_edges.tolist() == edges


def test_older_constructors_take_arrays(torch):
    array = np.array([1.0, 2.0], np.float32)
    for make in (torch.FloatTensor, torch.zeros(1).new, torch.Tensor):
        tensor = make(array)
        assert tensor.dtype == torch.float32
        tensor[0] += 1  # the array's own memory
    assert array.tolist() == [4.0, 2.0]
    assert torch.LongTensor(array).tolist() == [4, 2] and torch.LongTensor(array).dtype == torch.int64
    assert torch.FloatTensor(np.array(3.0)).item() == 3.0
    assert torch.BoolTensor(np.array([[True], [False]])).tolist() == [[True], [False]]
    with pytest.raises(TypeError, match="data must be a sequence"):
        torch.FloatTensor(np.float32(2))


def test_limits_of_pythons_types(torch):
    assert torch.finfo(float) == torch.finfo(torch.float64)
    assert torch.finfo(complex) == torch.finfo(torch.float64)
    assert torch.iinfo(int) == torch.iinfo(torch.int64)
    for call, kind in [(torch.finfo, int), (torch.iinfo, float), (torch.iinfo, bool), (torch.finfo, str)]:
        with pytest.raises(TypeError):
            call(kind)


@pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
def test_one_tensor_in_a_list_gives_a_tuple(torch, name):
    function = getattr(torch, name)
    x = torch.tensor(1)
    assert isinstance(function(x), torch.Tensor)
    for result, count in [(function([x]), 1), (function((x,)), 1), (function([x, x]), 2), (function(x, x), 2)]:
        assert isinstance(result, tuple) and len(result) == count


def test_nothing_read_as_another_dtype_keeps_its_strides(torch):
    x = torch.ones(0, 5, 64)
    assert x.view(torch.complex64).stride() == (160, 32, 1) and x.view(torch.uint8).stride() == (1280, 256, 1)
    assert x.view(torch.float64).view(torch.float32).stride() == (320, 64, 1)
