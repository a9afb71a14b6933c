/* NumPy's reductions and copies of contiguous arrays, on several threads.
 *
 * reduce(ufunc, a, n, inner, threads): `a` taken as (outer, n, inner) and reduced over the middle by the ufunc's own loop,
 * in the order in which NumPy goes; over the whole of a long row, by pieces. arguments(a, n, largest, threads): where the
 * largest or smallest number of each row of n is. copy(to, from, threads): what lies in another order is read by tiles.
 * join(to, arrays, outer, threads): arrays one after the other. take(to, from, index, threads): the rows at indices that are known to be in bounds. None or False where an operand is not
 * taken.
 */
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#include "module.h"

#include <fenv.h>
#include <numpy/ufuncobject.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define GRAIN ((Size)1 << 14) /* elements that are worth a thread */

typedef struct {
    PyUFuncGenericFunction function;
    void *data;
    const char *from;
    char *to;
    Size outer, n, inner, item, pieces, blocks;
} Reduction;

/* A task: one piece of the middle, and one block of the inner dimension, of one outer part. */
static void some_reductions(Size begin, Size end, const Arg *args)
{
    const Reduction *r = args[0].p;
    for (Size task = begin; task < end; task++) {
        Size o = task / (r->pieces * r->blocks), piece = task / r->blocks % r->pieces, block = task % r->blocks;
        Size first = r->n * piece / r->pieces, last = r->n * (piece + 1) / r->pieces;
        Size left = r->inner * block / r->blocks, right = r->inner * (block + 1) / r->blocks;
        const char *from = r->from + ((o * r->n + first) * r->inner + left) * r->item;
        char *to = r->to + ((o * r->pieces + piece) * r->inner + left) * r->item;
        memcpy(to, from, (size_t)((right - left) * r->item));
        if (r->inner == 1) {
            char *operands[] = {to, (char *)from + r->item, to};
            npy_intp count = last - first - 1, steps[] = {0, r->item, 0};
            if (count) r->function(operands, &count, steps, r->data);
            continue;
        }
        npy_intp count = right - left, steps[] = {r->item, r->item, r->item};
        for (Size j = first + 1; j < last; j++) {
            from += r->inner * r->item;
            char *operands[] = {to, (char *)from, to};
            r->function(operands, &count, steps, r->data);
        }
    }
    feclearexcept(FE_ALL_EXCEPT);
}

/* The loop of a ufunc of two operands for this dtype alone. */
static int find_loop(PyUFuncObject *ufunc, int type, Reduction *r)
{
    if (ufunc->nargs != 3 || ufunc->core_enabled || type >= NPY_OBJECT) return 0;
    for (int i = 0; i < ufunc->ntypes; i++) {
        const char *kinds = ufunc->types + 3 * i;
        if (kinds[0] != type || kinds[1] != type || kinds[2] != type || !ufunc->functions[i]) continue;
        r->function = ufunc->functions[i];
        r->data = ufunc->data ? (void *)ufunc->data[i] : NULL;
        return 1;
    }
    return 0;
}

static int is_plain(PyObject *object)
{
    if (!PyArray_CheckExact(object)) return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    return PyArray_ISCARRAY_RO(array) && (PyArray_TYPE(array) < NPY_OBJECT || PyArray_TYPE(array) == NPY_HALF);
}

PyObject *reduce(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 5 || !PyObject_TypeCheck(args[0], &PyUFunc_Type)) {
        PyErr_SetString(PyExc_TypeError, "reduce() takes a ufunc, an array, two sizes and the number of threads");
        return NULL;
    }
    Reduction r = {.n = PyLong_AsLongLong(args[2]), .inner = PyLong_AsLongLong(args[3])};
    Size threads = PyLong_AsLongLong(args[4]);
    if (PyErr_Occurred()) return NULL;
    PyArrayObject *a = (PyArrayObject *)args[1];
    if (!is_plain(args[1]) || r.n < 1 || r.inner < 1 || !PyArray_SIZE(a) || PyArray_SIZE(a) % (r.n * r.inner) ||
        !find_loop((PyUFuncObject *)args[0], PyArray_TYPE(a), &r))
        Py_RETURN_NONE;
    Size size = PyArray_SIZE(a);
    if (threads > size / GRAIN) threads = size / GRAIN < 1 ? 1 : size / GRAIN;
    r.outer = size / (r.n * r.inner);
    r.item = PyArray_ITEMSIZE(a);
    r.from = PyArray_DATA(a);
    r.pieces = r.blocks = 1;
    if (r.outer < 2 * threads) { /* there is too little to share */
        Size least = r.inner == 1 ? 8192 : 16; /* of a piece, so that what is begun anew does not count */
        r.pieces = r.n < least * threads ? 1 : 2 * threads;
        if (r.pieces == 1 && r.inner >= 256 * threads) r.blocks = 2 * threads;
    }
    npy_intp shape[] = {r.outer, r.pieces, r.inner};
    PyObject *out = PyArray_SimpleNew(3, shape, PyArray_TYPE(a));
    if (!out) return NULL;
    r.to = PyArray_DATA((PyArrayObject *)out);
    Arg arg[1] = {{.p = &r}};
    Py_BEGIN_ALLOW_THREADS
    retrograd_run(some_reductions, r.outer * r.pieces * r.blocks, arg, (int)threads);
    Py_END_ALLOW_THREADS
    return out;
}

/* -------------------------------------------------------------------------------------------------------- arguments */

typedef struct {
    PyArray_ArgFunc *find;
    void *array;
    char *from;
    npy_intp *to;
    Size n, item;
} Search;

static void some_searches(Size begin, Size end, const Arg *args)
{
    const Search *s = args[0].p;
    for (Size row = begin; row < end; row++) s->find(s->from + row * s->n * s->item, s->n, s->to + row, s->array);
}

PyObject *arguments(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "arguments() takes an array, a size, which to find and the number of threads");
        return NULL;
    }
    Size n = PyLong_AsLongLong(args[1]), threads = PyLong_AsLongLong(args[3]);
    int largest = PyObject_IsTrue(args[2]);
    if (PyErr_Occurred()) return NULL;
    PyArrayObject *a = (PyArrayObject *)args[0];
    if (!is_plain(args[0]) || n < 1 || !PyArray_SIZE(a) || PyArray_SIZE(a) % n) Py_RETURN_NONE;
    PyArray_ArrFuncs *functions = PyDataType_GetArrFuncs(PyArray_DESCR(a));
    Search s = {largest ? functions->argmax : functions->argmin, a, PyArray_DATA(a), NULL, n, PyArray_ITEMSIZE(a)};
    if (!s.find) Py_RETURN_NONE;
    npy_intp rows = PyArray_SIZE(a) / n, worth = PyArray_SIZE(a) / GRAIN;
    PyObject *out = PyArray_SimpleNew(1, &rows, NPY_INTP);
    if (!out) return NULL;
    s.to = PyArray_DATA((PyArrayObject *)out);
    Arg arg[1] = {{.p = &s}};
    if (threads > worth) threads = worth < 1 ? 1 : worth;
    Py_BEGIN_ALLOW_THREADS
    retrograd_run(some_searches, rows, arg, (int)threads);
    Py_END_ALLOW_THREADS
    return out;
}

/* ------------------------------------------------------------------------------------------------------------- copies */

#define MOST_DIMS 8
#define TILE 8 /* of so many by so many elements: the lines that are written to may all want one place in the cache */

typedef struct {
    const char *from;
    char *to;
    int dims, across; /* the dimension that is innermost in what is read, where it is not the last one; else -1 */
    Size shape[MOST_DIMS], steps[MOST_DIMS], item;
} Copy;

#define COPY_TILE(type)                                                                                                 \
    for (Size j = 0; j < columns; j++) {                                                                                \
        const char *source = from + j * column_step;                                                                    \
        type *target = (type *)(to + j * item);                                                                         \
        for (Size i = 0; i < rows; i++) target[i * pitch] = *(const type *)(source + i * row_step);                     \
    }

static void copy_tile(const char *from, Size row_step, Size column_step, char *to, Size pitch, Size rows, Size columns,
                      Size item)
{
    if (item == 4) { COPY_TILE(uint32_t) }
    else if (item == 8) { COPY_TILE(uint64_t) }
    else if (item == 2) { COPY_TILE(uint16_t) }
    else { COPY_TILE(uint8_t) }
}

static void copy_line(const char *from, Size step, char *to, Size n, Size item)
{
    if (step == item) memcpy(to, from, (size_t)(n * item));
    else copy_tile(from, 0, step, to, 0, 1, n, item);
}

/* A task: one line of the result. Where they come from is counted on, for divisions cost as much as a short line. */
static void some_lines(Size begin, Size end, const Arg *args)
{
    const Copy *c = args[0].p;
    int last = c->dims - 1;
    Size columns = c->shape[last], at[MOST_DIMS], rest = begin, from = 0;
    for (int d = last - 1; d >= 0; d--) {
        at[d] = rest % c->shape[d];
        rest /= c->shape[d];
        from += at[d] * c->steps[d];
    }
    for (Size line = begin; line < end; line++) {
        copy_line(c->from + from, c->steps[last], c->to + line * columns * c->item, columns, c->item);
        for (int d = last - 1; d >= 0; d--) {
            from += c->steps[d];
            if (++at[d] < c->shape[d]) break;
            at[d] = 0;
            from -= c->shape[d] * c->steps[d];
        }
    }
}

/* A task: of what is read across, TILE lines along that dimension. */
static void some_tiles(Size begin, Size end, const Arg *args)
{
    const Copy *c = args[0].p;
    int last = c->dims - 1;
    Size columns = c->shape[last], item = c->item;
    for (Size task = begin; task < end; task++) {
        Size rest = task, from = 0, line = 0, pitch = 1, high = 1;
        for (int d = last - 1; d >= 0; d--) {
            Size n = d == c->across ? (c->shape[d] + TILE - 1) / TILE : c->shape[d], at = rest % n;
            rest /= n;
            if (d == c->across) {
                at *= TILE;
                high = c->shape[d] - at < TILE ? c->shape[d] - at : TILE;
            }
            from += at * c->steps[d];
            line += at * pitch;
            pitch *= c->shape[d];
        }
        char *to = c->to + line * columns * item;
        Size apart = columns; /* elements from one line of the tile to the next */
        for (int d = last - 1; d > c->across; d--) apart *= c->shape[d];
        for (Size j = 0; j < columns; j += TILE) {
            Size wide = columns - j < TILE ? columns - j : TILE;
            copy_tile(c->from + from + j * c->steps[last], c->steps[c->across], c->steps[last], to + j * item, apart, high,
                      wide, item);
        }
    }
}

PyObject *copy(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 3 || !PyArray_Check(args[0]) || !PyArray_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "copy() takes two arrays and the number of threads");
        return NULL;
    }
    PyArrayObject *to = (PyArrayObject *)args[0], *from = (PyArrayObject *)args[1];
    Size threads = PyLong_AsLongLong(args[2]), size = PyArray_SIZE(to);
    if (PyErr_Occurred()) return NULL;
    int dims = PyArray_NDIM(from);
    Copy c = {.from = PyArray_DATA(from), .to = PyArray_DATA(to), .across = -1, .item = PyArray_ITEMSIZE(from)};
    if (!is_plain(args[0]) || !PyArray_ISWRITEABLE(to) || PyArray_TYPE(from) != PyArray_TYPE(to) || dims > MOST_DIMS ||
        !PyArray_ISALIGNED(from) || !PyArray_ISNOTSWAPPED(from) || PyArray_NDIM(to) != dims || !size ||
        (c.item != 1 && c.item != 2 && c.item != 4 && c.item != 8))
        Py_RETURN_FALSE;
    for (int d = 0; d < dims; d++) {
        Size n = PyArray_DIM(from, d), step = PyArray_STRIDE(from, d);
        if (n != PyArray_DIM(to, d)) Py_RETURN_FALSE;
        if (n == 1) continue;
        if (c.dims && c.steps[c.dims - 1] == n * step) { /* both are one dimension */
            c.shape[c.dims - 1] *= n;
            c.steps[c.dims - 1] = step;
        } else {
            c.shape[c.dims] = n;
            c.steps[c.dims++] = step;
        }
    }
    if (!c.dims) c.shape[c.dims] = 1, c.steps[c.dims++] = c.item;
    Size lines = 1;
    if (c.dims == 1 && c.steps[0] == c.item) { /* one long line: cut into some */
        Size parts = size / 32768;
        while (parts > 1 && size % parts) parts--;
        if (parts > 1) {
            c.shape[1] = size / parts, c.steps[1] = c.item, c.dims = 2;
            c.shape[0] = parts, c.steps[0] = size / parts * c.item;
        }
    }
    for (int d = 0; d < c.dims - 1; d++) {
        if (c.steps[c.dims - 1] != c.item && c.steps[d] == c.item && c.shape[d] >= 4) c.across = d;
    }
    for (int d = 0; d < c.dims - 1; d++) lines *= d == c.across ? (c.shape[d] + TILE - 1) / TILE : c.shape[d];
    Size worth = size / GRAIN;
    if (threads > worth) threads = worth < 1 ? 1 : worth;
    if (threads == 1 && c.across < 0) Py_RETURN_FALSE; /* NumPy is as fast */
    Arg arg[1] = {{.p = &c}};
    Py_BEGIN_ALLOW_THREADS
    retrograd_run(c.across < 0 ? some_lines : some_tiles, lines, arg, (int)threads);
    Py_END_ALLOW_THREADS
    Py_RETURN_TRUE;
}

/* ----------------------------------------------------------------------------------------------------------- one by one */

#define CHUNK ((Size)1 << 16) /* bytes of a task */

typedef struct {
    char *to;
    const char **from;
    Size *ends; /* of each array's part, among the bytes of an outer part */
    Size row, bytes;
} Join;

static void some_parts(Size begin, Size end, const Arg *args)
{
    const Join *j = args[0].p;
    Size at = begin * CHUNK, last = end * CHUNK < j->bytes ? end * CHUNK : j->bytes;
    Size outer = at / j->row, within = at % j->row, which = 0;
    while (at < last) {
        while (j->ends[which] <= within) which++;
        Size start = which ? j->ends[which - 1] : 0, width = j->ends[which] - start, many = j->ends[which] - within;
        if (many > last - at) many = last - at;
        memcpy(j->to + at, j->from[which] + outer * width + within - start, (size_t)many);
        at += many;
        within += many;
        if (within == j->row) within = 0, which = 0, outer++;
    }
}

/* The arrays, each taken as (outer, …), one after the other in each outer part of `to`. */
PyObject *join(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 4 || !PyList_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "join() takes an array, a list of arrays, a size and the number of threads");
        return NULL;
    }
    Size outer = PyLong_AsLongLong(args[2]), threads = PyLong_AsLongLong(args[3]), many = PyList_Size(args[1]);
    if (PyErr_Occurred()) return NULL;
    if (!is_plain(args[0]) || outer < 1 || many < 1) Py_RETURN_FALSE;
    PyArrayObject *to = (PyArrayObject *)args[0];
    Join j = {.to = PyArray_DATA(to), .bytes = PyArray_NBYTES(to)};
    j.from = malloc((size_t)many * (sizeof *j.from + sizeof *j.ends));
    if (!j.from) return PyErr_NoMemory();
    j.ends = (Size *)(j.from + many);
    int fits = PyArray_ISWRITEABLE(to);
    for (Size i = 0; i < many && fits; i++) {
        PyObject *item = PyList_GetItem(args[1], i);
        fits = is_plain(item) && PyArray_TYPE((PyArrayObject *)item) == PyArray_TYPE(to) &&
               PyArray_NBYTES((PyArrayObject *)item) % outer == 0;
        if (!fits) break;
        j.from[i] = PyArray_DATA((PyArrayObject *)item);
        j.row += PyArray_NBYTES((PyArrayObject *)item) / outer;
        j.ends[i] = j.row;
    }
    fits = fits && j.row && j.row * outer == j.bytes;
    if (fits) {
        Arg arg[1] = {{.p = &j}};
        Size tasks = (j.bytes + CHUNK - 1) / CHUNK;
        Py_BEGIN_ALLOW_THREADS
        retrograd_run(some_parts, tasks, arg, (int)threads);
        Py_END_ALLOW_THREADS
    }
    free(j.from);
    return PyBool_FromLong(fits);
}

typedef struct {
    const char *from;
    char *to;
    const int64_t *index;
    Size bytes;
} Rows;

static void some_rows(Size begin, Size end, const Arg *args)
{
    const Rows *r = args[0].p;
    for (Size i = begin; i < end; i++) memcpy(r->to + i * r->bytes, r->from + r->index[i] * r->bytes, (size_t)r->bytes);
}

PyObject *take(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "take() takes three arrays and the number of threads");
        return NULL;
    }
    Size threads = PyLong_AsLongLong(args[3]);
    if (PyErr_Occurred()) return NULL;
    if (!is_plain(args[0]) || !is_plain(args[1]) || !is_plain(args[2])) Py_RETURN_FALSE;
    PyArrayObject *to = (PyArrayObject *)args[0], *from = (PyArrayObject *)args[1], *index = (PyArrayObject *)args[2];
    Size rows = PyArray_SIZE(index), size = PyArray_SIZE(to), worth = size / GRAIN;
    if (PyArray_TYPE(index) != NPY_INT64 || PyArray_TYPE(to) != PyArray_TYPE(from) || !rows || size % rows) Py_RETURN_FALSE;
    Rows r = {PyArray_DATA(from), PyArray_DATA(to), PyArray_DATA(index), size / rows * PyArray_ITEMSIZE(to)};
    if (threads > worth) threads = worth < 1 ? 1 : worth;
    Arg arg[1] = {{.p = &r}};
    Py_BEGIN_ALLOW_THREADS
    retrograd_run(some_rows, rows, arg, (int)threads);
    Py_END_ALLOW_THREADS
    Py_RETURN_TRUE;
}
