/* Arithmetic of small arrays, to the last bit that of NumPy, without the cost of its calls. */
#include "core.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define SMALL 4096 /* elements; from there on NumPy's loops, and the compiled kernels behind them, are as good or better */

#define LONG (1 << 15) /* elements of rows that ufuncs share among threads (LONG_ROW of ufuncs.c) */

typedef struct {
    PyArrayObject *array; /* NULL for a number */
    double number;
    npy_intp step; /* 0: one element for all */
} Operand;

static int is_simple(PyArrayObject *a)
{
    return PyArray_ISCARRAY_RO(a) && PyArray_SIZE(a) <= SMALL;
}

static PyArrayObject *empty_like(PyArrayObject *a)
{
    PyArray_Descr *type = PyArray_DESCR(a);
    Py_INCREF((PyObject *)type);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, type, PyArray_NDIM(a), PyArray_DIMS(a), NULL, NULL, 0, NULL);
}

/* A Python number that is exact in the dtype of an array, or rounded to it as NumPy does it. */
static int as_number(PyObject *object, PyArray_Descr *type, double *number)
{
    if (PyFloat_CheckExact(object)) {
        *number = PyFloat_AsDouble(object);
        return type == core.f64 || !(fabs(*number) > FLT_MAX) || isinf(*number);
    }
    if (!PyLong_CheckExact(object)) return 0;
    int overflow;
    long long whole = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow || whole > 1 << 24 || whole < -(1 << 24)) return 0;
    *number = (double)whole;
    return 1;
}

#define LOOPS(real, suffix) \
    static void binary_##suffix(int operation, npy_intp n, const real *a, npy_intp da, const real *b, npy_intp db, real *r) \
    { \
        switch (operation) { \
        case MUL: for (npy_intp i = 0; i < n; i++) r[i] = a[i * da] * b[i * db]; break; \
        case ADD: for (npy_intp i = 0; i < n; i++) r[i] = a[i * da] + b[i * db]; break; \
        case SUB: for (npy_intp i = 0; i < n; i++) r[i] = a[i * da] - b[i * db]; break; \
        default: for (npy_intp i = 0; i < n; i++) r[i] = a[i * da] / b[i * db]; \
        } \
    } \
    static void run_##suffix(int operation, npy_intp n, const Operand *a, const Operand *b, PyArrayObject *r) \
    { \
        real x = (real)a->number, y = (real)b->number; \
        const real *p = a->array ? PyArray_DATA(a->array) : &x, *q = b->array ? PyArray_DATA(b->array) : &y; \
        real *to = PyArray_DATA(r); \
        if (a->step && b->step) binary_##suffix(operation, n, p, 1, q, 1, to); \
        else if (a->step) binary_##suffix(operation, n, p, 1, q, 0, to); \
        else if (b->step) binary_##suffix(operation, n, p, 0, q, 1, to); \
        else binary_##suffix(operation, n, p, 0, q, 0, to); \
    } \
    /* NumPy's order of additions: eight sums beside each other, halves of what is longer than 128. */ \
    static real pairwise_##suffix(const real *a, npy_intp n) \
    { \
        if (n < 8) { \
            real sum = -(real)0.0; \
            for (npy_intp i = 0; i < n; i++) sum += a[i]; \
            return sum; \
        } \
        if (n <= 128) { \
            real s[8]; \
            npy_intp i; \
            memcpy(s, a, sizeof s); \
            for (i = 8; i < n - n % 8; i += 8) \
                for (int j = 0; j < 8; j++) s[j] += a[i + j]; \
            real sum = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])); \
            for (; i < n; i++) sum += a[i]; \
            return sum; \
        } \
        npy_intp half = n / 2; \
        half -= half % 8; \
        return pairwise_##suffix(a, half) + pairwise_##suffix(a + half, n - half); \
    }
LOOPS(float, f32)
LOOPS(double, f64)

PyObject *small_binary(int operation, PyObject *a, PyObject *b)
{
    Operand p = {NULL, 0, 0}, q = {NULL, 0, 0};
    PyArrayObject *shaped;
    if (is_float_array(a)) {
        p.array = shaped = (PyArrayObject *)a;
        if (!is_simple(shaped)) return NULL;
        p.step = 1;
        if (PyArray_CheckExact(b)) {
            q.array = (PyArrayObject *)b;
            if (PyArray_DESCR(q.array) != PyArray_DESCR(p.array) || !is_simple(q.array)) return NULL;
            q.step = 1;
            if (PyArray_NDIM(q.array) == 0) q.step = 0;
            else if (PyArray_NDIM(p.array) == 0) p.step = 0, shaped = q.array;
            else if (!PyArray_SAMESHAPE(p.array, q.array)) return NULL;
        } else if (!as_number(b, PyArray_DESCR(shaped), &q.number)) return NULL;
    } else {
        if (!is_float_array(b)) return NULL;
        q.array = shaped = (PyArrayObject *)b;
        if (!is_simple(shaped) || !as_number(a, PyArray_DESCR(shaped), &p.number)) return NULL;
        q.step = 1;
    }
    PyArrayObject *result = empty_like(shaped);
    if (!result) return NULL;
    npy_intp n = PyArray_SIZE(result);
    if (PyArray_DESCR(shaped) == core.f32) run_f32(operation, n, &p, &q, result);
    else run_f64(operation, n, &p, &q, result);
    return (PyObject *)result;
}

/* Large enough to be shared among threads, which NumPy's own signs are not. */
static int is_long(PyObject *a) { return PyArray_CheckExact(a) && PyArray_SIZE((PyArrayObject *)a) >= LONG; }

PyObject *binary(int operation, PyObject *a, PyObject *b)
{
    PyObject *result = small_binary(operation, a, b);
    if (!result && !PyErr_Occurred()) result = record_binary(operation, a, b);
    if (result || PyErr_Occurred()) return result;
    if ((is_long(a) && (PyArray_CheckExact(b) || PyFloat_CheckExact(b))) ||
        (is_long(b) && (PyArray_CheckExact(a) || PyFloat_CheckExact(a))))
        return PyObject_CallFunctionObjArgs(PyTuple_GetItem(core.shared_signs, operation), a, b, NULL);
    switch (operation) {
    case MUL: return PyNumber_Multiply(a, b);
    case ADD: return PyNumber_Add(a, b);
    case SUB: return PyNumber_Subtract(a, b);
    default: return PyNumber_TrueDivide(a, b);
    }
}

PyObject *small_neg(PyObject *a)
{
    if (!is_float_array(a) || !is_simple((PyArrayObject *)a)) return NULL;
    PyArrayObject *result = empty_like((PyArrayObject *)a);
    if (!result) return NULL;
    npy_intp n = PyArray_SIZE(result);
    if (PyArray_DESCR(result) == core.f32) {
        const float *from = PyArray_DATA((PyArrayObject *)a);
        float *to = PyArray_DATA(result);
        for (npy_intp i = 0; i < n; i++) to[i] = -from[i];
    } else {
        const double *from = PyArray_DATA((PyArrayObject *)a);
        double *to = PyArray_DATA(result);
        for (npy_intp i = 0; i < n; i++) to[i] = -from[i];
    }
    return (PyObject *)result;
}

PyObject *negative(PyObject *a)
{
    PyObject *result = small_neg(a);
    if (!result && !PyErr_Occurred()) result = record_unary(NEG, a);
    if (result || PyErr_Occurred()) return result;
    return is_long(a) ? PyObject_CallFunctionObjArgs(PyTuple_GetItem(core.shared_signs, NEG), a, NULL) : PyNumber_Negative(a);
}

PyObject *small_sum(PyObject *a)
{
    PyArrayObject *array = (PyArrayObject *)a;
    if (!is_float_array(a) || !is_simple(array) || !PyArray_SIZE(array)) return NULL;
    PyArrayObject *result = (PyArrayObject *)PyArray_SimpleNew(0, NULL, PyArray_TYPE(array));
    if (!result) return NULL;
    if (PyArray_DESCR(array) == core.f32) /* (0 is where NumPy begins: a sum is never -0) */
        *(float *)PyArray_DATA(result) = 0 + pairwise_f32(PyArray_DATA(array), PyArray_SIZE(array));
    else *(double *)PyArray_DATA(result) = 0 + pairwise_f64(PyArray_DATA(array), PyArray_SIZE(array));
    return (PyObject *)result;
}

/* The sizes in a tuple of ints; -1 if there are too many, or other things. */
static int sizes_of(PyObject *shape, npy_intp *sizes)
{
    if (!PyTuple_Check(shape)) return -1;
    Py_ssize_t n = PyTuple_Size(shape);
    if (n > 8) return -1;
    npy_intp all = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *size = PyTuple_GetItem(shape, i);
        if (!PyLong_CheckExact(size)) return -1;
        sizes[i] = PyLong_AsSsize_t(size);
        if (sizes[i] < 0 || sizes[i] > SMALL || (all *= sizes[i]) > SMALL) {
            PyErr_Clear();
            return -1;
        }
    }
    return (int)n;
}

PyObject *small_filled(PyObject *number, PyObject *shape)
{
    npy_intp sizes[8];
    PyArrayObject *from = (PyArrayObject *)number;
    if (!is_float_array(number) || PyArray_NDIM(from) || !PyArray_ISALIGNED(from)) return NULL;
    int dims = sizes_of(shape, sizes);
    if (dims < 0) return NULL;
    PyArrayObject *result = (PyArrayObject *)PyArray_SimpleNew(dims, sizes, PyArray_TYPE(from));
    if (!result) return NULL;
    npy_intp n = PyArray_SIZE(result);
    if (PyArray_DESCR(from) == core.f32) {
        float value = *(float *)PyArray_DATA(from), *to = PyArray_DATA(result);
        for (npy_intp i = 0; i < n; i++) to[i] = value;
    } else {
        double value = *(double *)PyArray_DATA(from), *to = PyArray_DATA(result);
        for (npy_intp i = 0; i < n; i++) to[i] = value;
    }
    return (PyObject *)result;
}

/* An array in the memory of another. */
static PyObject *view_in(PyObject *a, int dims, const npy_intp *sizes, const npy_intp *strides, char *data)
{
    PyArrayObject *array = (PyArrayObject *)a;
    PyArray_Descr *type = PyArray_DESCR(array);
    Py_INCREF((PyObject *)type);
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, type, dims, sizes, strides, data,
                                          PyArray_ISWRITEABLE(array) ? NPY_ARRAY_WRITEABLE : 0, NULL);
    if (!view) return NULL;
    Py_INCREF(a);
    if (PyArray_SetBaseObject((PyArrayObject *)view, a)) Py_CLEAR(view);
    return view;
}

PyObject *small_select(PyObject *a, Py_ssize_t index)
{
    PyArrayObject *array = (PyArrayObject *)a;
    if (!a || !PyArray_CheckExact(a) || !PyArray_NDIM(array)) return NULL;
    npy_intp size = PyArray_DIM(array, 0);
    if (index < 0) index += size;
    if (index < 0 || index >= size) return NULL;
    return view_in(a, PyArray_NDIM(array) - 1, PyArray_DIMS(array) + 1, PyArray_STRIDES(array) + 1,
                   PyArray_BYTES(array) + index * PyArray_STRIDE(array, 0));
}

PyObject *small_slice(PyObject *a, Py_ssize_t first, Py_ssize_t last)
{
    npy_intp sizes[8];
    PyArrayObject *array = (PyArrayObject *)a;
    if (!a || !PyArray_CheckExact(a) || !PyArray_NDIM(array) || PyArray_NDIM(array) > 8) return NULL;
    Py_ssize_t length = PySlice_AdjustIndices(PyArray_DIM(array, 0), &first, &last, 1);
    if (!length) return NULL; /* (where an empty one lies, Python knows) */
    memcpy(sizes, PyArray_DIMS(array), PyArray_NDIM(array) * sizeof *sizes);
    sizes[0] = length;
    return view_in(a, PyArray_NDIM(array), sizes, PyArray_STRIDES(array),
                   PyArray_BYTES(array) + first * PyArray_STRIDE(array, 0));
}

PyObject *small_reshape(PyObject *a, PyObject *shape)
{
    npy_intp sizes[8], all = 1;
    PyArrayObject *array = (PyArrayObject *)a;
    Py_ssize_t dims = PyTuple_Size(shape);
    if (!a || !PyArray_CheckExact(a) || !PyArray_IS_C_CONTIGUOUS(array) || dims < 1 || dims > 8) return NULL;
    for (Py_ssize_t i = 0; i < dims; i++) {
        PyObject *size = PyTuple_GetItem(shape, i);
        if (!PyLong_CheckExact(size)) return NULL;
        sizes[i] = PyLong_AsSsize_t(size);
        if (sizes[i] < 1 || sizes[i] > PyArray_SIZE(array) / all) return NULL; /* (no product may be too large to count) */
        all *= sizes[i];
    }
    return all == PyArray_SIZE(array) ? view_in(a, (int)dims, sizes, NULL, PyArray_BYTES(array)) : NULL;
}

PyObject *small_select_backward(PyObject *grad, PyObject *shape, PyObject *dim, PyObject *index)
{
    npy_intp sizes[8];
    PyArrayObject *from = (PyArrayObject *)grad;
    if (dim != core.zero || !PyLong_CheckExact(index) || !is_float_array(grad) || !PyArray_ISCARRAY_RO(from)) return NULL;
    int dims = sizes_of(shape, sizes);
    Py_ssize_t at = PyLong_AsSsize_t(index);
    if (at == -1 && PyErr_Occurred()) PyErr_Clear(), dims = -1;
    if (dims < 1 || dims != PyArray_NDIM(from) + 1) return NULL;
    if (at < 0) at += sizes[0];
    if (at < 0 || at >= sizes[0]) return NULL;
    for (int i = 1; i < dims; i++)
        if (sizes[i] != PyArray_DIM(from, i - 1)) return NULL;
    PyArrayObject *result = (PyArrayObject *)PyArray_ZEROS(dims, sizes, PyArray_TYPE(from), 0);
    if (result) memcpy(PyArray_BYTES(result) + at * PyArray_STRIDE(result, 0), PyArray_DATA(from), PyArray_NBYTES(from));
    return (PyObject *)result;
}

int small_accumulate(PyObject *sum, PyObject *a)
{
    PyArrayObject *to = (PyArrayObject *)sum, *from = (PyArrayObject *)a;
    if (!is_float_array(sum) || !is_float_array(a) || PyArray_DESCR(to) != PyArray_DESCR(from)) return 0;
    if (!is_simple(to) || !is_simple(from) || !PyArray_ISWRITEABLE(to) || !PyArray_SAMESHAPE(to, from)) return 0;
    Operand p = {to, 0, 1}, q = {from, 0, 1};
    if (PyArray_DESCR(to) == core.f32) run_f32(ADD, PyArray_SIZE(to), &p, &q, to);
    else run_f64(ADD, PyArray_SIZE(to), &p, &q, to);
    return 1;
}

int has_shape(PyArrayObject *a, PyObject *shape)
{
    int dims = PyArray_NDIM(a);
    if (!shape || !PyTuple_Check(shape) || PyTuple_Size(shape) != dims) return 0;
    for (int i = 0; i < dims; i++) {
        PyObject *size = PyTuple_GetItem(shape, i);
        if (!PyLong_CheckExact(size) || PyLong_AsSsize_t(size) != PyArray_DIM(a, i)) return PyErr_Clear(), 0;
    }
    return 1;
}
