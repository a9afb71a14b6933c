/* What the kernels share: each .inc file is compiled once for float and once for double, as REAL.
 *
 * A kernel does the tasks from `begin` to `end` (elements, rows, planes …); pool.c shares them among threads and hands
 * on the arguments. Inner loops are written so that the compiler makes vector instructions of them: no branches, no
 * calls. Reductions are marked `omp simd`, which allows their reordering, and nothing else gives up IEEE semantics
 * (no -ffast-math): NaN and infinity come out as in the NumPy kernels that these are tested against.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define NAME(name) JOIN(name, SUFFIX)

/* e to the power of x: x = n ln 2 + r, a Taylor polynomial of r, and 2^n in two factors so that results may be
 * denormal. Beyond the clamps the result is 0 or infinite in any case; a NaN passes through the comparisons. */
#ifdef SINGLE
static inline float exp_(float x)
{
    union { int32_t i; float f; } low, high;
    float c = x < -104.0f ? -104.0f : x;
    c = c > 89.0f ? 89.0f : c;
    float n = rintf(c * 1.44269504088896341f);
    float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int32_t whole = (int32_t)n, half = whole >> 1;
    low.i = (half + 127) << 23;
    high.i = (whole - half + 127) << 23;
    return p * low.f * high.f;
}
/* erf(x) = x P(x^2) / Q(x^2) for |x| <= 3.95, beyond which it is 1 in single precision: the NumPy kernel's fit. */
static inline float erf_(float x)
{
    float c = x < -3.95f ? -3.95f : x;
    c = c > 3.95f ? 3.95f : c;
    float s = c * c;
    float p = -1.296703148260837e-08f;
    p = p * s + 4.640426903012106e-06f;
    p = p * s + 3.7793669180085607e-04f;
    p = p * s + 3.843375915822796e-03f;
    p = p * s + 5.4274782719881245e-02f;
    p = p * s + 1.8516920963687986e-01f;
    p = p * s + 1.1283791692365284e00f;
    float q = 6.26924327873033e-05f;
    q = q * s + 1.304063437527573e-03f;
    q = q * s + 1.5443728571169844e-02f;
    q = q * s + 1.13911059040417e-01f;
    q = q * s + 4.9743534858856553e-01f;
    q = q * s + 1.0f;
    float r = c * p / q;
    r = r < -1.0f ? -1.0f : r;
    return r > 1.0f ? 1.0f : r;
}
#define SQRT sqrtf
#define BITS int32_t
/* tanh |x| = -e / (e + 2) with e = exp(-2 |x|) - 1 = 2^n (exp(r) - 1) + (2^n - 1), which is exact to the last digits near 0. */
static inline float tanh_(float x)
{
    union { int32_t i; float f; } power;
    float c = -2.0f * fabsf(x);
    c = c < -40.0f ? -40.0f : c;
    float n = rintf(c * 1.44269504088896341f);
    float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    power.i = ((int32_t)n + 127) << 23;
    float e = power.f * (p * r) + (power.f - 1.0f);
    return copysignf(e / (e + 2.0f), x);
}
#else
static inline double exp_(double x)
{
    union { int64_t i; double f; } low, high;
    double c = x < -746.0 ? -746.0 : x;
    c = c > 710.0 ? 710.0 : c;
    double n = rint(c * 1.44269504088896340736);
    double r = (c - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    int64_t whole = (int32_t)n, half = whole >> 1;
    low.i = (half + 1023) << 52;
    high.i = (whole - half + 1023) << 52;
    return p * low.f * high.f;
}
#define erf_ erf
#define SQRT sqrt
#define BITS int64_t
static inline double tanh_(double x)
{
    union { int64_t i; double f; } power;
    double c = -2.0 * fabs(x);
    c = c < -80.0 ? -80.0 : c;
    double n = rint(c * 1.44269504088896340736);
    double r = (c - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    power.i = ((int64_t)(int32_t)n + 1023) << 52;
    double e = power.f * (p * r) + (power.f - 1.0);
    return copysign(e / (e + 2.0), x);
}
#endif

/* The sum of n numbers: short stretches in REAL, added up in double. */
static inline double sum_(const REAL *x, Size n)
{
    double total = 0;
    for (Size first = 0; first < n; first += 1024) {
        Size last = first + 1024 < n ? first + 1024 : n;
        REAL part = 0;
#pragma omp simd reduction(+ : part)
        for (Size i = first; i < last; i++) part += x[i];
        total += part;
    }
    return total;
}

/* The sum of x * y. */
static inline double dot_(const REAL *x, const REAL *y, Size n)
{
    double total = 0;
    for (Size first = 0; first < n; first += 1024) {
        Size last = first + 1024 < n ? first + 1024 : n;
        REAL part = 0;
#pragma omp simd reduction(+ : part)
        for (Size i = first; i < last; i++) part += x[i] * y[i];
        total += part;
    }
    return total;
}

/* The sum of y * (x - center); with y = NULL, of the square of x - center. */
static inline double centered_dot_(const REAL *x, REAL center, const REAL *y, Size n)
{
    double total = 0;
    for (Size first = 0; first < n; first += 1024) {
        Size last = first + 1024 < n ? first + 1024 : n;
        REAL part = 0;
        if (y) {
#pragma omp simd reduction(+ : part)
            for (Size i = first; i < last; i++) part += y[i] * (x[i] - center);
        } else {
#pragma omp simd reduction(+ : part)
            for (Size i = first; i < last; i++) part += (x[i] - center) * (x[i] - center);
        }
        total += part;
    }
    return total;
}
