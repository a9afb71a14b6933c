"""Samples of options that those of the families leave at their defaults, and of inputs that once went wrong."""

from __future__ import annotations

from typing import Any

from samples.spec import Attr, E, Op, S, Sample, V, distinct, given, index, integers, mask, positive, real

F = "nn.functional."
X, Y = given([-0.7, 0.4, 1.7]), given([0.3, 1.9, -1.1])
WEIGHT = positive(3, requires_grad=False)
SIGNS = given([1.0, -1.0, 1.0], requires_grad=False)
MATRIX = given([[2.0, 0.3], [-0.4, 1.1], [0.5, -0.6]])
SQUARE = given([[2.0, 0.3, -0.4], [0.1, 1.7, 0.2], [-0.3, 0.5, 1.4]])


def more(name: str, *samples: Sample, **options: Any) -> Op:
    """Further samples of an operator that has an entry elsewhere."""
    return Op(f"{name}, options", options.pop("fn", name), list(samples), **options)


def _sorted_last(found: Any) -> Any:
    """The elements that `unique` finds, or how often it finds them, in an order that does not depend on the library."""
    return (found[-1] if isinstance(found, tuple) else found).sort()[0]


# ---------------------------------------------------------------------------------------------- losses


def _old_reductions(name: str, *args: Any) -> Op:
    """The arguments `size_average` and `reduce`, which came before `reduction`."""
    return more(
        F + name,
        V("not reduced", *args, reduce=False),
        V("summed", *args, size_average=False),
        V("averaged", *args, size_average=True, reduce=True),
    )


LOSSES = [
    _old_reductions("cosine_embedding_loss", real(3, 2), real(3, 2), SIGNS),
    _old_reductions("cross_entropy", real(3, 2), index([0, 1, 1])),
    _old_reductions("nll_loss", real(3, 2), index([0, 1, 1])),
    _old_reductions("hinge_embedding_loss", X, SIGNS),
    _old_reductions("l1_loss", X, Y),
    _old_reductions("mse_loss", X, Y),
    _old_reductions("margin_ranking_loss", X, Y, SIGNS),
    _old_reductions("multi_margin_loss", real(3, 2), index([0, 1, 1])),
    _old_reductions("multilabel_margin_loss", real(2, 3), index([[0, -1, 0], [2, 1, -1]])),
    _old_reductions("multilabel_soft_margin_loss", real(2, 2), given([[0.0, 1.0], [1.0, 1.0]], requires_grad=False)),
    _old_reductions("soft_margin_loss", X, SIGNS),
    _old_reductions("binary_cross_entropy", given([0.2, 0.7]), given([0.9, 0.1])),
    _old_reductions("kl_div", X, given([0.9, 0.1, 0.4])),
    _old_reductions("poisson_nll_loss", X, positive(3)),
    _old_reductions("smooth_l1_loss", X, Y),
    _old_reductions("binary_cross_entropy_with_logits", X, given([0.2, 0.5, 0.9])),
    _old_reductions("triplet_margin_loss", real(2, 3), real(2, 3), real(2, 3)),
    Op(
        "binary_cross_entropy_with_logits, weights",
        F + "binary_cross_entropy_with_logits",
        [
            S("weight", X, given([0.2, 0.5, 0.9]), WEIGHT),
            S("positive", X, given([0.2, 0.5, 0.9]), pos_weight=WEIGHT),
            S("both", real(1, 3), given([[0.2, 0.5, 0.9]]), WEIGHT, pos_weight=WEIGHT, reduction="sum"),
        ],
        [
            E("weight", RuntimeError, "not differentiable with respect to argument 'weight'", X, Y, positive(3)),
            E(
                "positive",
                RuntimeError,
                "not differentiable with respect to argument 'pos_weight'",
                X,
                Y,
                pos_weight=positive(3),
            ),
        ],
    ),
    Op(
        "nll_loss, weight",
        F + "nll_loss",
        [S("weight", real(2, 3), index([0, 2]), WEIGHT)],
        [
            E(
                "weight",
                RuntimeError,
                "not differentiable with respect to argument 'weight'",
                real(2, 3),
                index([0, 2]),
                positive(3),
            )
        ],
    ),
    Op(
        "batch_norm, running",
        F + "batch_norm",
        [S("running", real(2, 3), given([0.1, 0.2, 0.3], requires_grad=False), WEIGHT)],
        [
            E(
                "mean",
                RuntimeError,
                "not differentiable with respect to argument 'running_mean'",
                real(2, 3),
                real(3),
                WEIGHT,
            )
        ],
    ),
    Op("l1_loss, weight", F + "l1_loss", [S("weight", X, Y, weight=positive(3, requires_grad=False))]),
    Op("smooth_l1_loss, beta", F + "smooth_l1_loss", [S("half", X, Y, beta=0.5), V("none", X, Y, beta=0.0)]),
    Op(
        "gaussian_nll_loss, eps",
        F + "gaussian_nll_loss",
        [V("eps", X, Y, given([0.1, 0.5, 2.0]), eps=0.3), S("full", X, Y, positive(3), full=True)],
        [E("size", ValueError, "var is of incorrect size", real(2, 2, 3), real(2, 2, 3), positive(2, 2, 2))],
    ),
    Op("poisson_nll_loss, eps", F + "poisson_nll_loss", [S("eps", positive(3), positive(3), log_input=False, eps=0.5)]),
    Op(
        "triplet_margin_loss, eps",
        F + "triplet_margin_loss",
        [
            S("eps", real(2, 3), real(2, 3), real(2, 3), eps=0.1),
            S("swap", real(2, 3), real(2, 3), real(2, 3), swap=True),
        ],
    ),
    Op(
        "triplet_margin_with_distance_loss, options",
        lambda torch, *args, **kwargs: torch.nn.functional.triplet_margin_with_distance_loss(
            *args, distance_function=lambda a, b: (a - b).abs().sum(-1), **kwargs
        ),
        [
            S("distance", real(2, 3), real(2, 3), real(2, 3)),
            S("swap", real(2, 3), real(2, 3), real(2, 3), swap=True, margin=2.0),
        ],
        [
            E(
                "ranks",
                RuntimeError,
                "are expected to have the same number of dimensions",
                real(3),
                real(2, 3),
                real(2, 3),
            )
        ],
    ),
    Op(
        "multi_margin_loss, shapes",
        F + "multi_margin_loss",
        [S("0-d", real(), index(0), torch_second=False), S("vector", real(3), index(1), torch_second=False)],
        [
            E("empty", RuntimeError, "Expected non-empty vector or matrix", real(2, 0), index([0, 0])),
            E(
                "weight",
                RuntimeError,
                "inconsistent weight size",
                real(2, 3),
                index([0, 0]),
                weight=positive(2, requires_grad=False),
            ),
            E("target", RuntimeError, "target tensor should be 1-D|inconsistent target size", real(2, 3), index([0])),
        ],
    ),
    Op(
        "multilabel_margin_loss, shapes",
        F + "multilabel_margin_loss",
        [S("vector", real(3), index([2, -1, 0]), torch_second=False)],
        [
            E("target", RuntimeError, "inconsistent target size", real(2, 3), index([0, 1, 2])),
            E("empty", RuntimeError, "Expected non-empty vector or matrix", real(2, 0), index([[0], [0]])),
        ],
    ),
]

# ---------------------------------------------------------------------------------------------- networks

NETWORKS = [
    more(
        F + "hardtanh",
        S("bounds", given([-2.0, -0.4, 0.7, 3.0]), -0.5, 0.6),
        S("by name", given([-2.0, -0.4, 0.7, 3.0]), min_val=-1.5, max_val=2.5),
    ),
    more(
        F + "rms_norm",
        V("float16", given([[300.0, -100.0], [2.0, 1.0]], "float16"), (2,)),
        errors=[
            E("no shape", RuntimeError, "at least 1-dimensional", real(2), ()),
            E("weight", RuntimeError, "Expected weight to be of same shape", real(2, 3), (3,), real(2)),
        ],
    ),
    more(
        F + "batch_norm",
        V("nothing", real(0, 2), None, None, real(2), real(2), True),
        V("nothing, running", real(0, 2), real(2, requires_grad=False), positive(2, requires_grad=False)),
    ),
    more(F + "group_norm", V("nothing", real(0, 2), 1, real(2), real(2))),
    more(
        F + "instance_norm",
        S("eps", real(1, 2, 3), eps=0.5),
        S("momentum", real(1, 2, 3), momentum=0.5),
        V(
            "running",
            real(2, 2, 3),
            given([0.1, 0.2], requires_grad=False),
            given([1.0, 2.0], requires_grad=False),
            use_input_stats=False,
        ),
    ),
    more(F + "fold", S("dilated", real(1, 4, 1), (3, 3), 2, dilation=2)),
    more(F + "unfold", V("no batch", real(0, 1, 3, 3), 2)),
    more(
        F + "max_unpool1d",
        S("stride", real(1, 2), index([[0, 3]]), 2, 3),
        S("padding", real(1, 2), index([[0, 2]]), 3, stride=2, padding=1),
    ),
    more(F + "max_unpool2d", S("size", real(1, 1, 1), index([[[3]]]), 2, output_size=(3, 3))),
    more(
        F + "max_unpool3d",
        S("size", real(1, 1, 1, 1), index([[[[5]]]]), 2, 2, 0, output_size=(2, 2, 2)),
        S("padding", real(1, 1, 1, 1), index([[[[0]]]]), 3, 2, padding=1),
    ),
    more(
        F + "adaptive_avg_pool2d",
        V("float16", real(1, 3, 3, dtype="float16"), 2),
        errors=[E("matrix", ValueError, "Input dimension should be at least 3", real(2, 2), (2, 2))],
    ),
    more(
        F + "adaptive_max_pool2d",
        S("window", distinct(1, 3, 3), (2, 1)),
        errors=[
            E("matrix", ValueError, "Input dimension should be at least 3", real(2, 2), (2, 2)),
            E("negative", RuntimeError, "negative dimension -1", real(1, 2, 2), (-1, 2)),
        ],
    ),
    more(
        F + "max_pool3d",
        V("uint8", given([[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]], "uint8"), 2),
        errors=[E("padding", RuntimeError, "pad must be non-negative", real(1, 2, 2, 2), 2, padding=-1)],
    ),
    more(
        F + "interpolate",
        V("float16", real(1, 1, 4, dtype="float16"), 3, mode="linear"),
        V("float16, nearest", real(1, 1, 4, dtype="float16"), 3),
        V("bytes", given([[[[0, 200], [100, 50]]]], "uint8"), (4, 4), mode="bilinear"),
    ),
    more(F + "pad", V("float16", real(1, 3, dtype="float16"), (1, 2), "replicate")),
    more(
        F + "embedding",
        V(
            "renormalised",
            index([0, 2]),
            given([[3.0, 4.0], [1.0, 0.0], [0.1, 0.2]], requires_grad=False),
            max_norm=1.0,
            norm_type=1.0,
        ),
        fn=lambda torch, i, w, **kwargs: torch.nn.functional.embedding(i, w.clone(), **kwargs),
    ),
    more(
        F + "embedding_bag",
        V(
            "renormalised",
            index([0, 2]),
            given([[3.0, 4.0], [1.0, 0.0], [0.1, 0.2]], requires_grad=False),
            index([0]),
            max_norm=1.0,
            norm_type=1.0,
        ),
        # (Torch divides by the frequency of another index.)
        V("by frequency", index([0, 2, 0]), real(3, 2), index([0, 2]), scale_grad_by_freq=True, torch_first=False),
        fn=lambda torch, i, w, o, **kwargs: torch.nn.functional.embedding_bag(
            i, w.clone() if "max_norm" in kwargs else w, o, **kwargs
        ),
    ),
    more(
        F + "threshold_",
        S("in place", given([-1.0, 0.5, 2.0]), 0.4, 7.0),
        fn=lambda torch, x, *args: torch.nn.functional.threshold(x * 1, *args, inplace=True),
    ),
    more(
        F + "elu_",
        S("in place", given([-1.0, 0.5, 2.0]), 0.4, second=False),
        S("factors", given([-1.0, 0.5, 2.0]), 0.4, 2.0, 3.0, second=False),
        fn=lambda torch, x, *args: torch.nn.functional.elu_(x * 1, *args),
    ),
    more(
        F + "celu_",
        S("in place", given([-1.0, 0.5, 2.0]), 0.5, second=False),
        fn=lambda torch, x, *args: torch.nn.functional.celu_(x * 1, *args),
    ),
    more(
        F + "max_pool_with_indices",
        S("1-d", distinct(1, 4), 1),
        S("2-d", distinct(1, 2, 4), 2),
        S("3-d", distinct(1, 2, 2, 2), 3),
        fn=lambda torch, x, d: getattr(torch.nn.functional, f"max_pool{d}d_with_indices")(x, 2),
    ),
    more(F + "upsample_bilinear", S("factor", real(1, 1, 1, 2), scale_factor=2)),
    more(F + "upsample_nearest", S("size", real(1, 1, 2), 3)),
    more(
        F + "upsample",
        S("nearest", real(1, 1, 2), 3),
        S("factor", real(1, 1, 2), scale_factor=2),
        S("linear", real(1, 1, 2), 3, mode="linear", align_corners=True),
    ),
    more(
        "conv",
        S("asymmetric", real(1, 1, 3, 4), real(1, 1, 2, 2), stride=(1, 2), padding=(1, 0), dilation=(1, 2)),
        fn=F + "conv2d",
    ),
]

# ---------------------------------------------------------------------------------------------- linear algebra

LINALG = [
    *[
        more(
            name,
            S("pivots", SQUARE, pivot=True),
            errors=[E("no pivots", RuntimeError, "without pivoting is not implemented", SQUARE, pivot=False)],
        )
        for name in ("linalg.lu", "linalg.lu_factor")
    ],
    more("linalg.lu_factor_ex", S("checked", SQUARE, check_errors=True)),
    more("linalg.inv_ex", S("checked", SQUARE, check_errors=True)),
    more(
        "linalg.cholesky_ex",
        S("upper, checked", SQUARE, upper=True, check_errors=True),
        fn=lambda torch, a, **kwargs: torch.linalg.cholesky_ex(a @ a.mT + torch.eye(3, dtype=a.dtype), **kwargs),
    ),
    more(
        "linalg.eigvalsh",
        S("upper", SQUARE, UPLO="U"),
        S("lower", SQUARE, UPLO="L"),
        fn=lambda torch, a, **kwargs: torch.linalg.eigvalsh(a + a.mT, **kwargs),
    ),
    more("linalg.matrix_norm", V("dtype", real(2, 2, dtype="float32"), dtype=Attr("float64"))),
    more("linalg.vector_norm", V("dtype", real(3, dtype="float32"), dtype=Attr("float64"))),
    more(
        "linalg.norm", S("kept", MATRIX, keepdim=True), V("dtype", real(2, 2, dtype="float32"), dtype=Attr("float64"))
    ),
    more(
        "linalg.matrix_rank",
        V("atol", given([[1.0, 0.0], [0.0, 1e-3]], requires_grad=False), atol=1e-2),
        differentiable=False,
    ),
    more(
        "linalg.pinv",
        S("atol", MATRIX, atol=1e-3),
        S("hermitian", SQUARE, hermitian=True),
        fn=lambda torch, a, **kwargs: torch.linalg.pinv(a + a.mT if "hermitian" in kwargs else a, **kwargs),
    ),
    more("linalg.tensorinv", S("ind", SQUARE, ind=1)),
    more(
        "linalg.diagonal",
        S("dims", real(2, 2, 2), offset=1, dim1=0, dim2=1),
        fn=lambda torch, a, **kwargs: torch.linalg.diagonal(a, **kwargs) * 1,
    ),
    more(
        "linalg.vander", S("0-d", positive(), N=3), errors=[E("one", RuntimeError, "N must be greater than 1", real(1))]
    ),
    more(
        "linalg.lstsq",
        V("rcond", MATRIX, real(3, 1), rcond=1e-3),
        fn=lambda torch, *args, **kwargs: torch.linalg.lstsq(*args, **kwargs).solution,
    ),
    more(
        "lu_unpack",
        V("data only", SQUARE, unpack_pivots=False),
        V("pivots only", SQUARE, unpack_data=False, torch_first=False),
        fn=lambda torch, a, **kwargs: torch.lu_unpack(*torch.linalg.lu_factor(a), **kwargs),
    ),
    more("pinverse", S("rcond", MATRIX, rcond=1e-3)),
    more(
        "qr",
        S("reduced", MATRIX),
        S("not reduced", SQUARE, some=False),
        fn=lambda torch, a, **kwargs: torch.qr(a, **kwargs)[1],
    ),
    more(
        "svd",
        S("values", MATRIX),
        V("all", MATRIX, some=False),
        V("no vectors", MATRIX, compute_uv=False),
        fn=lambda torch, a, **kwargs: torch.svd(a, **kwargs)[1],
    ),
    more("norm", S("nuclear", MATRIX, "nuc"), S("nuclear, dims", real(2, 2, 2), "nuc", (0, 2), True)),
    more("svd_lowrank", S("steps", MATRIX, niter=1), fn=lambda torch, x, **k: torch.svd_lowrank(x, 2, **k)[1]),
    more("pca_lowrank", S("steps", MATRIX, niter=1), fn=lambda torch, x, **k: torch.pca_lowrank(x, 2, **k)[1]),
    more("norm_except_dim", S("power", MATRIX, 3, 1)),
    more("diag_embed", S("dims", real(2, 2), offset=1, dim1=0, dim2=2)),
    more(
        "tensordot",
        V("repeated", given([[[200]]], "uint8"), given([[[1, 1]], [[2, 3]]], "uint8"), dims=([0, 1], [2, 0])),
    ),
    more(
        "einsum",
        V("uint8", given([200, 100], "uint8")),
        V("bool", mask([True, True])),
        fn=lambda torch, x: torch.einsum("i->", x),
    ),
]

# ---------------------------------------------------------------------------------------------- the rest


def _set_part(torch: Any, x: Any, y: Any) -> Any:
    result = x * 1
    result[1:] = y
    return result


OTHERS = [
    more(
        "allclose",
        V("tolerances", given([1.0, 2.0]), given([1.1, 2.1]), 0.2, 0.0),
        V("nan", given([float("nan")]), given([float("nan")]), rtol=0.0, atol=0.1, equal_nan=True),
        differentiable=False,
        view=None,
    ),
    more("multilabel_soft_margin_loss", S("broadcast", real(3), real(1, 3)), fn=F + "multilabel_soft_margin_loss"),
    more("div", S("number first", 2.0, positive(2), rounding_mode="trunc", method=False)),
    more("view_copy", S("not contiguous", real(3, 2, layout="transposed"), (2, 3))),
    more("mT", V("0-d", real()), fn=lambda torch, x: [x.mT * 1, x.mH * 1]),
    more("linalg.vecdot", S("0-d", real(), real(2))),
    more("cosine_similarity", S("integers", given([[1, 2]], "int64"), real(1, 2)), fn=F + "cosine_similarity"),
    more("adaptive_max_pool2d, empty", V("no batch", real(0, 1, 3, 3), (2, 2)), fn=F + "adaptive_max_pool2d"),
    more(
        "cdist",
        S("without products", real(2, 2), real(3, 2), compute_mode="donot_use_mm_for_euclid_dist", torch_second=False),
        S("with products", real(2, 2), real(3, 2), compute_mode="use_mm_for_euclid_dist"),
    ),
    more("diff", V("not at all, prepended", real(3), 0, prepend=real(1))),
    more(
        "gradient",
        S("no spacing", real(4), spacing=None),
        errors=[
            E("dims", RuntimeError, "appears multiple times in the list of dims", real(3, 3), dim=(1, 1)),
            E(
                "lengths",
                RuntimeError,
                "spacing and dim arguments to have the same length",
                real(3, 3),
                spacing=(0.1,),
                dim=(0, 1),
            ),
        ],
    ),
    more(
        "histogram",
        V("one value", given([3.0, 3.0], requires_grad=False), 2),
        V("point range", given([3.0], requires_grad=False), bins=1, range=(2.0, 2.0)),
        V("empty", real(0, requires_grad=False), 2),
        differentiable=False,
    ),
    more(
        "cov",
        V("0 of 1", given([1.0])),
        errors=[
            E("weights", RuntimeError, "same numel as there are observations", real(3), fweights=index([1])),
            E("matrix of weights", RuntimeError, "one or fewer dimensions", real(3), aweights=positive(3, 3)),
        ],
    ),
    more(
        "istft",
        S("both sides, real", real(6, 3), onesided=False),
        S("window", real(4, 3), window=positive(4), win_length=4),
        S("both sides, complex", real(6, 3), return_complex=True),
        fn=lambda torch, x, **kwargs: torch.istft(torch.complex(x, x.flip(0) * 0.5), 6, **kwargs),
    ),
    more("nextafter", V("gradient", given([1.0, 2.0]), given([3.0, 2.0]))),
    more("repeat_interleave", S("size", real(3), index([1, 0, 2]), output_size=3)),
    more("rot90", S("dims", real(2, 3), 1, (1, 0))),
    more("rsub", S("alpha", real(3), real(3), alpha=2.0)),
    more(
        "scatter",
        S("value", real(3), 0, index([1]), 2.0),
        S("by name", real(3), dim=0, index=index([1]), value=2.0),
        V("reduced", real(3, requires_grad=False), 0, index([1]), 2.0, reduce="multiply"),
    ),
    more(
        "slice_scatter", S("dim", real(2, 3), real(2, 1), 1, 1, 2), S("step", real(4), real(2), start=0, end=4, step=2)
    ),
    more("std_mean", S("biased", real(4), 0, False), S("correction", real(4), dim=0, correction=2)),
    more("var_mean", S("kept", real(2, 3), 1, False, True)),
    more(
        "tensor_split",
        S("dim", real(2, 3), 2, dim=1),
        fn=lambda torch, x, *args, **kwargs: [part * 1 for part in torch.tensor_split(x, *args, **kwargs)],
    ),
    more("nanmean", V("dtype", given([1.0, float("nan")], "float32"), dtype=Attr("float64"))),
    more(
        "unique",
        V("unsorted", given([3, 1, 3], "int64"), sorted=False),
        V("unsorted slices", given([[3, 1], [1, 2], [3, 1]], "int64"), False, True, True, 0),
        differentiable=False,
        fn=lambda torch, *args, **kwargs: _sorted_last(torch.unique(*args, **kwargs)),
    ),
    more(
        "topk",
        S("unsorted", distinct(4), 2, sorted=False),
        fn=lambda torch, *args, **kwargs: torch.topk(*args, **kwargs)[0].sort()[0],
    ),
    more(
        "div_",
        S("floor", real(2), 0.3, rounding_mode="trunc", second=False),
        fn=lambda torch, x, *args, **kwargs: (x * 1).div_(*args, **kwargs),
    ),
    more(
        "index_put_",
        S("accumulated", real(3), (index([1, 1]),), real(2), accumulate=True),
        fn=lambda torch, x, *args, **kwargs: (x * 1).index_put_(*args, **kwargs),
    ),
    more(
        "index_reduce_",
        V("without self", real(3), 0, index([1]), real(1), "prod", include_self=False),
        fn=lambda torch, x, *args, **kwargs: (x * 1).index_reduce_(*args, **kwargs),
    ),
    more(
        "scatter_",
        S("value", real(3), 0, index([1]), value=2.0),
        V("reduced", real(3, requires_grad=False), 0, index([1]), 2.0, reduce="add"),
        fn=lambda torch, x, *args, **kwargs: (x * 1).scatter_(*args, **kwargs),
    ),
    more(
        "logit_",
        S("eps", given([0.2, 0.6]), eps=0.1, second=False),
        fn=lambda torch, x, **kwargs: (x * 1).logit_(**kwargs),
    ),
    more(
        "view",
        V("dtype", given([1.0], requires_grad=False), dtype=Attr("int64")),
        V("size", real(4), size=(2, 2)),
        fn=lambda torch, x, *args, **kwargs: x.view(*args, **kwargs).clone(),
    ),
    more(
        "float_power_",
        S("square", positive(2), 2.0),
        fn=lambda torch, x, *args: (x * 1).float_power_(*args),
        supports_float32=False,
    ),
    more("__ipow__", S("square", positive(2), 2.0, second=False), fn=lambda torch, x, *args: (x * 1).__ipow__(*args)),
    more("__setitem__", S("part", real(3), real(2)), fn=_set_part),
    more(
        "eq_",
        V("tensors", given([1.0, 2.0], requires_grad=False), given([1.0, 3.0], requires_grad=False)),
        fn=lambda torch, x, y: x.clone().eq_(y),
        differentiable=False,
    ),
    more("method polygamma", S("first", positive(2), 1), fn=lambda torch, x, n: x.polygamma(n)),
    more(
        "arccosh_",
        S("all three", given([1.5, 2.5]), second=False, torch_first=False),
        fn=lambda torch, x: torch.stack(
            [(x * 1).arccosh_(), (x * 1).arcsinh_(), (x * 0.3).arctanh_(), (x * 1).conj_physical_()]
        ),
    ),
    more(
        "histogramdd",
        V("bins", real(5, 2, requires_grad=False), [2, 3]),
        V(
            "weight",
            real(5, 2, requires_grad=False),
            [2, 2],
            range=[-2.0, 2.0, -2.0, 2.0],
            weight=positive(5, requires_grad=False),
            density=True,
        ),
        fn=lambda torch, *args, **kwargs: (lambda found: [found[0], *found[1]])(torch.histogramdd(*args, **kwargs)),
        errors=[
            E("bins", RuntimeError, "must be equal to the innermost dimension", real(3, 2, requires_grad=False), [1])
        ],
        differentiable=False,
    ),
    more(
        "gcd_",
        V("int64", given([12, 9], "int64"), given([8, 6], "int64")),
        fn=lambda torch, x, y: x.clone().gcd_(y),
        differentiable=False,
    ),
    more(
        "new tensors",
        V("all", real(2, requires_grad=False)),
        differentiable=False,
        fn=lambda torch, x: [
            x.new_full((2,), 3.0),
            x.new_ones(2, dtype=torch.float32),
            x.new_zeros((1, 2), dtype=torch.int64),
            x.new_tensor([1, 2]),
            x.new_empty((0, 2)),
            x.type(torch.float32),
            x.cpu() + 1,
            x.bfloat16().float(),
        ],
    ),
    more("zero_", V("all", real(2, requires_grad=False)), fn=lambda torch, x: x.clone().zero_(), differentiable=False),
    more("nansum", V("dtype", given([1.0, float("nan")], "float32"), dtype=Attr("float64"))),
    more("max", S("other", distinct(3), other=given([-5.0, 0.05, 5.0]))),
    more("windows", V("hamming", 6, True, 0.4, 0.6), fn="hamming_window", differentiable=False),
    more(
        "kaiser_window",
        V("beta", 6, True, 3.0),
        fn=lambda torch, *args, **kwargs: torch.kaiser_window(*args, **kwargs),
        differentiable=False,
    ),
    more(
        "fft.fftfreq",
        V("dtype", 4, 0.5, dtype=Attr("float64")),
        V("half", 4, dtype=Attr("float32")),
        differentiable=False,
    ),
    more("fft.rfftfreq", V("dtype", 4, 0.5, dtype=Attr("float64")), differentiable=False),
    more("squeeze", S("axis", real(1, 2), axis=0), fn=lambda torch, x, axis: torch.squeeze(x, axis=axis) * 1),
    more(
        "index_add",
        V("bool", mask([True, False]), 0, index([1]), mask([True])),
        V("0-d", mask(True), 0, index([0]), mask(True)),
    ),
    more("__rsub__", S("reflected", real(2), real(2)), fn=lambda torch, x, y: x.__rsub__(y)),
    more("__rtruediv__", S("reflected", real(2), positive(2)), fn=lambda torch, x, y: y.__rtruediv__(x)),
    more("__rmatmul__", S("reflected", real(2, 2), real(2, 2)), fn=lambda torch, x, y: x.__rmatmul__(y)),
    more("eq", V("number first", given([1.0]), 2), errors=[E("number first", TypeError, "", 2, real(2))]),
    more(
        "special.xlog1py",
        S("tensors", real(2), positive(2)),
        errors=[E("numbers", TypeError, "invalid combination", 2, 3)],
    ),
    more(
        "ldexp",
        S("tensors", real(2), given([1.0, 2.0])),
        errors=[E("number first", TypeError, "must be Tensor", 2, integers(2))],
    ),
    more(
        "narrow",
        S("tensor", real(4), 0, index(1), 2),
        fn=lambda torch, *args: torch.narrow(*args) * 1,
        errors=[E("float start", RuntimeError, "start must be an 0-dim integral Tensor", real(4), 0, given(1.0), 2)],
    ),
]

OPS = [*LOSSES, *NETWORKS, *LINALG, *OTHERS]
