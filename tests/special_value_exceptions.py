"""Where an operator differs from torch at special values, and why ours is right.

test_special_values.py compares, test_special_value_reasons.py has a test for each reason.
"""

from __future__ import annotations

#: The reasons.
WHY = {
    "as the gradient": (
        "torch's tangent is not the one that its own gradient says: at a tie, a NaN, the origin, -0 or between "
        "infinities the two differ. Ours is the gradient's."
    ),
    "limit": (
        "The limit at infinity or at the pole exists, or is infinite, and is what we give; torch has inf / inf, "
        "inf - inf, or a large finite number."
    ),
    "nan propagates": (
        "A NaN among the inputs is a NaN in the result; torch's comparison with it is false, and takes that for "
        "an answer."
    ),
    "uninitialized": (
        "torch ends the recurrence at a NaN and returns the variable that it has not written to (the numbers "
        "change from call to call); NaN is the answer."
    ),
    "bfloat16 kernels": (
        "torch's convolution in bfloat16 fills blocks with zeros, which meet the NaN or infinity of other cells, "
        "where its float32 kernel does as ours; its bicubic weights are computed in bfloat16, ours in float32, "
        "and there inf - inf is NaN."
    ),
    "denormal": (
        "Denormal intermediate results: torch's have fewer digits than ours."
    ),
    "which of equals": (
        "Several elements are equal: which one's index is given, and who gets the gradient, is not specified."
    ),
    "bits of nan": (
        "The sign and the other bits of a NaN carry no meaning; torch rounds it to bfloat16 with all bits set."
    ),
    "zero weight": (
        "An element with the weight 0 takes no part; torch multiplies it, and 0 * NaN is NaN."
    ),
    "vectorized": (
        "torch's vectorized and plain loops differ at this number (float32 and float64, or long and short "
        "tensors); ours is the one that is right by the definition."
    ),
    "sign of nan": (
        "The same: the slope of |x| at a NaN is sgn(NaN), which is 0 in torch, in its vector_norm and abs; but "
        "not in this operator."
    ),
    "clamped": (
        "The forward clamps logarithms at -100, so that the loss is linear in the target with the slope 100; "
        "torch's gradient is that of a loss without clamping."
    ),
    "not sorted": (
        "A sequence with a NaN or out of order is not sorted: there is no right answer, and ours is NumPy's "
        "binary search."
    ),
    "nan place": (
        "A NaN in a grid is taken for -1, the first pixel, as torch documents it and does in two dimensions."
    ),
    "singular": (
        "What is divided by the pivot that is 0 is infinite; torch multiplies it with a permutation matrix, whose "
        "zeros make NaN of it."
    ),
    "shares": (
        "Equal elements share the gradient, as they do in torch along the first dimension; along others it gives "
        "each the whole."
    ),
    "stuck": (
        "The largest eigenvalue of diag(1, 2, 3) is 3; torch stays at the eigenvector that it happens to start "
        "from."
    ),
    "no key": (
        "A query whose scores are all -inf gives zeros, in torch too, whatever it is: its tangent is 0, where "
        "torch's is NaN."
    ),
    "amax of nan": (
        "The gradient of a largest element that is NaN goes to the NaN, as max() and segment_reduce() have it; "
        "torch finds no element that equals it, and divides by their number, 0."
    ),
    "attention": (
        "torch's fused kernel loses a NaN among the keys; with need_weights=True, where it computes the softmax "
        "itself, torch has NaN as we do."
    ),
    "definition": (
        "Ours is what torch itself computes if the operator is written in others, as it is defined: "
        "special_value_definitions.py. torch's own loop counts zeros, multiplies out, compares with NaN, or "
        "divides infinities."
    ),
    "order of a transform": (
        "Of a transform's terms, the grouping decides whether inf - inf comes about: in torch for most lengths, "
        "in ours for others."
    ),
    "order of a sum": (
        "The numbers cancel, but some of them add up to infinity first: which, and whether the infinities of both "
        "signs meet, is a matter of the order, in which torch's own sums differ."
    ),
    "complex infinity": (
        "The direction of a complex number with one infinite part is that part's, its size is infinite: torch "
        "divides inf by inf."
    ),
    "power of 0": (
        "x ** 0 is 1 and x ** 1 has the slope 1, whatever x is, in torch for real numbers; for complex ones it "
        "multiplies by log(0), or log(NaN)."
    ),
}

#: For each reason, the operators and the aspects in which they differ.
_BY_REASON: dict[str, dict[str, str]] = {
    "as the gradient": {
        "lerp": "tangent",
        "nn.functional.mse_loss": "tangent",
        "atan2": "tangent",
        "maximum": "tangent",
        "minimum": "tangent",
        "max.other": "tangent",
        "min.other": "tangent",
        "fmax": "tangent",
        "clamp": "tangent",
        "clamp_min": "tangent",
        "clamp_max": "tangent",
        "max": "tangent",
        "min": "tangent",
        "nanmedian": "tangent",
        "linalg.det": "tangent",
        "nn.functional.prelu": "tangent",
        "median": "tangent",
        "det": "tangent",
        "logit_, options": "tangent",
        "max, options": "tangent",
        "logit": "tangent",
    },
    "limit": {
        "log_ndtr": "gradient, recorded gradient, tangent",
        "psi": "gradient, recorded gradient, tangent",
        "special.airy_ai": "result",
        "special.zeta": "result, gradient, recorded gradient",
        "nn.functional.softsign": "gradient, recorded gradient, tangent",
        "polygamma": "result, gradient, recorded gradient, tangent",
        "polygamma_": "result, gradient, recorded gradient, tangent",
        "method polygamma, options": "result, gradient, recorded gradient, tangent",
    },
    "nan propagates": {
        "nn.functional.scaled_dot_product_attention, heads": "result",
        "i1": "gradient, recorded gradient, tangent",
        "i1e": "gradient, recorded gradient, tangent",
        "igamma": "result",
        "igammac": "result",
        "torch.embedding_bag, all results": "result",
    },
    "uninitialized": {
        "special.chebyshev_polynomial_u": "result",
        "special.chebyshev_polynomial_w": "result",
        "special.shifted_chebyshev_polynomial_u": "result",
        "special.shifted_chebyshev_polynomial_w": "result",
        "special.laguerre_polynomial_l": "result",
        "special.legendre_polynomial_p": "result",
    },
    "bfloat16 kernels": {
        "nn.functional.conv1d": "result",
        "nn.functional.conv2d": "result",
        "nn.functional.conv3d": "result",
        "grid_sampler_2d": "result",
        "conv, options": "result",
    },
    "denormal": {
        "addcdiv": "result",
        "hypot": "gradient, recorded gradient, tangent",
    },
    "which of equals": {
        "kthvalue": "result, gradient, recorded gradient, tangent",
        "topk, options": "gradient, recorded gradient, tangent",
    },
    "bits of nan": {
        "signbit": "result",
        "copysign": "result",
        "view, options": "result",
        "hash_tensor": "result",
    },
    "zero weight": {
        "nn.functional.upsample_bilinear": "result",
        "nn.functional.upsample_bilinear, options": "result",
    },
    "vectorized": {
        "nn.functional.gelu": "result",
        "nn.functional.hardtanh": "gradient, recorded gradient, tangent",
        "nn.functional.relu6": "gradient, recorded gradient, tangent",
        "nn.functional.hardshrink": "gradient, recorded gradient, tangent",
        "nn.functional.softshrink": "gradient, recorded gradient, tangent",
        "nn.functional.hardtanh, options": "gradient, recorded gradient, tangent",
    },
    "sign of nan": {
        "norm_except_dim": "tangent",
        "cdist": "gradient, recorded gradient",
        "pdist": "gradient, recorded gradient",
    },
    "clamped": {
        "nn.functional.binary_cross_entropy": "gradient, recorded gradient, tangent",
        "nn.functional.binary_cross_entropy, options": "gradient, recorded gradient, tangent",
    },
    "not sorted": {
        "searchsorted": "result",
        "bucketize": "result",
    },
    "nan place": {
        "grid_sampler_3d": "result, gradient, recorded gradient",
    },
    "singular": {
        "linalg.logdet of negative": "tangent",
        "linalg.solve_ex": "gradient, recorded gradient",
    },
    "shares": {
        "segment_reduce": "gradient, recorded gradient",
    },
    "stuck": {
        "lobpcg": "result",
        "lobpcg of a pair": "result",
    },
    "no key": {
        "nn.functional.scaled_dot_product_attention": "tangent",
    },
    "amax of nan": {
        "index_reduce": "gradient, recorded gradient",
    },
    "attention": {
        "multi_head_attention_forward": "result, gradient, recorded gradient",
    },
    "definition": {
        "prod": "gradient, recorded gradient",
        "cumprod": "gradient, recorded gradient",
        "masked.cumprod": "gradient, recorded gradient, tangent",
        "masked.logaddexp": "tangent",
        "var_mean": "result",
        "std_mean": "result",
        "sorted parts": "result",
        "std_mean, options": "result",
        "var_mean, options": "result",
        "logcumsumexp": "gradient, recorded gradient, tangent",
        "trapezoid": "result",
        "polar": "gradient, recorded gradient",
        "cdist, options": "result, gradient, recorded gradient",
        "nn.functional.multi_margin_loss": "result",
        "nn.functional.multilabel_margin_loss": "result",
        "nn.functional.multi_margin_loss, options": "result",
        "nn.functional.multilabel_margin_loss, options": "result",
        "multi_margin_loss, shapes": "result",
        "multilabel_margin_loss, shapes": "result",
        "nn.functional.group_norm": "result",
        "nn.functional.bilinear": "gradient, recorded gradient",
        "__rtruediv__, options": "tangent",
        "linalg.vander": "gradient, recorded gradient, tangent",
        "linalg.vander, options": "gradient, recorded gradient, tangent",
    },
    "order of a transform": {
        "fft.hfft": "result",
        "fft.irfft": "result",
        "istft, options": "result",
    },
    "order of a sum": {
        "_log_softmax_backward_data": "result, gradient, recorded gradient, tangent",
    },
    "complex infinity": {
        "abs": "gradient, recorded gradient, tangent",
        "sgn": "result, gradient, recorded gradient, tangent",
        "norm": "gradient, recorded gradient, tangent",
        "nn.functional.pairwise_distance": "result",
    },
    "power of 0": {
        "pow": "result, gradient, recorded gradient, tangent",
        "__pow__": "result",
    },
}

#: The same for what differs from torch in double precision as well: of the extreme numbers that are exact there.
_EXACTLY = {
    "atan2": "tangent",
    "fmax": "tangent",
    "hypot": "gradient, recorded gradient, tangent",
    "log_ndtr": "gradient, recorded gradient, tangent",
    "psi": "gradient, recorded gradient, tangent",
    "special.zeta": "result, gradient, recorded gradient",
    "polar": "gradient, recorded gradient",
    "polygamma": "gradient, recorded gradient, tangent",
    "polygamma_": "result",
    "method polygamma, options": "result",
    "__rtruediv__, options": "tangent",
}

MEANT = {
    name: (
        {*aspects.split(", "), *(f"{one}, exactly" for one in _EXACTLY.get(name, "").split(", ") if one)},
        why,
    )
    for why, names in _BY_REASON.items()
    for name, aspects in names.items()
}

#: How many there may be.
MOST = 112
