/* product(a, b, bias, threads): a @ b + bias of matrices, or of batches of them in one or two dimensions; any strides.
 *
 * Here the work is divided: into how many tasks, on how many threads. None where BLAS is as fast, or for operands that the
 * kernels do not take.
 */
#define NO_IMPORT_ARRAY
#include "module.h"

#include <stdlib.h>

#define SMALL_PRODUCT ((Size)1 << 12) /* multiply-adds below which BLAS is as fast */
#define PRODUCT_GRAIN ((Size)1 << 18) /* that are worth a thread */
#define LARGE_PRODUCT ((Size)1 << 25) /* from which on threads pack together */
#define CEILING(a, b) (((a) + (b)-1) / (b))
#define LESSER(a, b) ((a) < (b) ? (a) : (b))

void gemm_f32(Size, Size, const Arg *), gemm_pack_f32(Size, Size, const Arg *), gemm_packed_f32(Size, Size, const Arg *);
void gemm_f64(Size, Size, const Arg *), gemm_pack_f64(Size, Size, const Arg *), gemm_packed_f64(Size, Size, const Arg *);
extern const int retrograd_panel_f32, retrograd_panel_f64, retrograd_tile_rows_f32;

/* The steps between the elements of an array, in elements; 0 where they are no whole number of them, or it lies anyhow. */
static int read_steps(PyArrayObject *array, Size item, int dims, Size *steps)
{
    if (!PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array)) return 0;
    int missing = dims - PyArray_NDIM(array);
    for (int i = 0; i < dims; i++) {
        Size step = i < missing ? 0 : PyArray_STRIDE(array, i - missing);
        if (step % item) return 0;
        steps[i] = step / item;
    }
    return 1;
}

PyObject *product(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "product() takes two arrays, a third or None, and the number of threads");
        return NULL;
    }
    if (!PyArray_CheckExact(args[0]) || !PyArray_CheckExact(args[1])) Py_RETURN_NONE;
    PyArrayObject *a = (PyArrayObject *)args[0], *b = (PyArrayObject *)args[1], *bias = NULL;
    int type = PyArray_TYPE(a), dims = PyArray_NDIM(a), b_dims = PyArray_NDIM(b);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || PyArray_TYPE(b) != type) Py_RETURN_NONE;
    if (dims < 2 || dims > 4 || (b_dims != 2 && b_dims != dims)) Py_RETURN_NONE;
    Size m = PyArray_DIM(a, dims - 2), k = PyArray_DIM(a, dims - 1), n = PyArray_DIM(b, b_dims - 1), batch = 1;
    if (PyArray_DIM(b, b_dims - 2) != k) Py_RETURN_NONE;
    for (int i = 0; i < dims - 2; i++) {
        batch *= PyArray_DIM(a, i);
        if (b_dims == dims && PyArray_DIM(b, i) != PyArray_DIM(a, i)) Py_RETURN_NONE;
    }
    Size work = m * n * k, item = type == NPY_FLOAT ? 4 : 8;
    if (work < SMALL_PRODUCT || m < 4 || n < 8 || !batch) Py_RETURN_NONE;
    if (args[2] != Py_None) {
        bias = (PyArrayObject *)args[2];
        if (!PyArray_CheckExact(args[2]) || PyArray_TYPE(bias) != type || PyArray_NDIM(bias) != 1 ||
            PyArray_DIM(bias, 0) != n || PyArray_STRIDE(bias, 0) != item || !PyArray_ISALIGNED(bias) ||
            !PyArray_ISNOTSWAPPED(bias))
            Py_RETURN_NONE;
    }
    Size a_steps[4], b_steps[4];
    if (!read_steps(a, item, 4, a_steps) || !read_steps(b, item, 4, b_steps)) Py_RETURN_NONE;
    Size most = PyLong_AsLong(args[3]);
    if (most == -1 && PyErr_Occurred()) return NULL;

    npy_intp shape[4];
    for (int i = 0; i < dims; i++) shape[i] = PyArray_DIM(a, i);
    shape[dims - 1] = n;
    PyArrayObject *out = (PyArrayObject *)PyArray_SimpleNew(dims, shape, type);
    if (!out) return NULL;

    int single = type == NPY_FLOAT;
    Size panel = single ? retrograd_panel_f32 : retrograd_panel_f64, tile_rows = retrograd_tile_rows_f32;
    Size worth = batch * work / PRODUCT_GRAIN, threads = LESSER(most, worth < 1 ? 1 : worth);
    Size panels = CEILING(n, panel), tiles = CEILING(m, tile_rows);
    int together = batch == 1 && threads > 1 && work >= LARGE_PRODUCT;
    Size row_parts = 1, column_parts = 1;
    if (together) { /* some panels at a time stay in the cache, while all the rows of a part go over them */
        column_parts = CEILING(panels, 6);
        row_parts = LESSER(tiles, CEILING(4 * threads, column_parts));
    } else if (threads > 1 && batch < 2 * threads) {
        /* Each part of the rows packs the same columns: as few of them as keep the threads busy. */
        column_parts = LESSER(panels, CEILING(4 * threads, batch));
        row_parts = LESSER(tiles, CEILING(threads, column_parts * batch));
    }
    Size inner = dims > 2 ? PyArray_DIM(a, dims - 3) : 1;
    Size sizes[] = {m, n, k, a_steps[2], a_steps[3], b_steps[2], b_steps[3], n, inner, a_steps[0], b_steps[0],
                    a_steps[1], b_steps[1], row_parts, column_parts}; /* the Product of gemm.inc */
    void *packed = NULL;
    if (together && !(packed = malloc((size_t)(k * panels * panel * item)))) {
        Py_DECREF(out);
        return PyErr_NoMemory();
    }
    void *from_a = PyArray_DATA(a), *from_b = PyArray_DATA(b), *start = bias ? PyArray_DATA(bias) : NULL;
    void *to = PyArray_DATA(out);
    Py_BEGIN_ALLOW_THREADS
    if (together) {
        Arg first[] = {{.p = from_b}, {.p = packed}, {.p = sizes}};
        Arg second[] = {{.p = from_a}, {.p = packed}, {.p = start}, {.p = to}, {.p = sizes}};
        retrograd_run(single ? gemm_pack_f32 : gemm_pack_f64, CEILING(k, 1536 / item) * panels, first, (int)threads);
        retrograd_run(single ? gemm_packed_f32 : gemm_packed_f64, row_parts * column_parts, second, (int)threads);
        free(packed);
    } else {
        Arg all[] = {{.p = from_a}, {.p = from_b}, {.p = start}, {.p = to}, {.p = sizes}};
        retrograd_run(single ? gemm_f32 : gemm_f64, batch * row_parts * column_parts, all, (int)threads);
    }
    Py_END_ALLOW_THREADS
    return (PyObject *)out;
}
