"""The operators that act on each element by itself, by their names in the table: of nested tensors, on the values."""

from __future__ import annotations

#: Of one tensor; further arguments are numbers.
UNARY = frozenset(
    """
    abs acos acosh angle asin asinh atan atanh bitwise_not ceil cos cosh _conj _conj_physical _neg_view deg2rad digamma
    elu erf erfc erfinv exp exp2 expm1 floor frac frexp gelu hardshrink hardsigmoid hardswish hardtanh i0 isfinite isinf
    isnan isneginf isposinf isreal leaky_relu lgamma log log10 log1p log2 log_sigmoid logical_not logit mish nan_to_num
    neg polygamma rad2deg reciprocal relu round rsqrt sgn sigmoid sign signbit silu sin sinc sinh softplus softshrink
    softsign special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_entr
    special_erfcx special_i0e special_i1 special_i1e special_log_ndtr special_modified_bessel_k0
    special_modified_bessel_k1 special_ndtr special_ndtri special_scaled_modified_bessel_k0
    special_scaled_modified_bessel_k1 special_spherical_bessel_j0 sqrt tan tanh threshold trunc
    """.split()
)
#: Of one tensor and a number, of two tensors, or of more: what is not nested is spread over the components.
SEVERAL = frozenset(
    """
    add addcdiv addcmul atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor clamp clamp_max
    clamp_min complex copysign div div_rounding_mode eq floor_divide fmax fmin fmod gcd ge gelu_backward gt heaviside
    hypot igamma igammac isclose lcm ldexp le lerp logaddexp logaddexp2 logical_and logical_or logical_xor lt
    masked_fill_Scalar masked_fill_Tensor maximum minimum mul ne nextafter polar pow_Scalar pow_Tensor_Scalar
    pow_Tensor_Tensor remainder rsub_Scalar rsub_Tensor sigmoid_backward silu_backward special_xlog1py special_zeta sub
    tanh_backward threshold_backward where_self xlogy
    """.split()
)
#: The same, written into the first argument.
UNARY_IN_PLACE = frozenset(f"{name}_" for name in UNARY) | {"zero_", "fill_Scalar_"}
SEVERAL_IN_PLACE = frozenset(f"{name}_" for name in SEVERAL) | frozenset(
    ["greater_", "greater_equal_", "less_", "less_equal_", "not_equal_"]
)
#: New tensors like another one.
LIKE = frozenset(
    ["zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like", "bernoulli"]
)
#: Random numbers and others, written into the one argument.
FILLED_IN_PLACE = frozenset(
    ["normal_", "uniform_", "bernoulli_", "exponential_", "random_", "cauchy_", "geometric_", "log_normal_"]
)
#: Parts of which only some are kept: what happens to one element does not depend on the others.
DROPOUTS = frozenset(["dropout", "dropout_", "alpha_dropout", "alpha_dropout_"])
