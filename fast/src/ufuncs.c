/* NumPy's functions of elements, on several threads: parallel(ufunc) is a ufunc with the loops of another, which share
 * long rows of elements among the threads of the pool.
 *
 * The loops are NumPy's own, and so are all results, to the last bit; what a division by zero or an overflow leaves in the
 * flags of a worker's processor is raised again on the thread that called, where NumPy looks for it.
 *
 * NumPy gives a loop one row at a time where an operand is spread over another, a row over all rows, say, and rows may be
 * short. Such calls are taken before NumPy sees them: `spread`.
 */
#define NO_IMPORT_ARRAY
#include "module.h"

#include <fenv.h>
#include <numpy/ufuncobject.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LONG_ROW (1 << 15) /* elements from which on a row is shared */
#define GRAIN (1 << 14)    /* elements that are worth a thread */
#define MOST_OPERANDS 6

static _Atomic int most_threads = 1; /* 0: they are turned off */

typedef struct {
    PyUFuncGenericFunction function;
    void *data;
    int operands;
} Loop;

typedef struct {
    const Loop *loop;
    char **operands;
    const npy_intp *steps;
    _Atomic int exceptions;
} Row;

static void some_elements(Size begin, Size end, const Arg *args)
{
    Row *row = args[0].p;
    const Loop *loop = row->loop;
    char *operands[MOST_OPERANDS];
    npy_intp count = end - begin;
    for (int i = 0; i < loop->operands; i++) operands[i] = row->operands[i] + begin * row->steps[i];
    loop->function(operands, &count, row->steps, loop->data);
    int raised = fetestexcept(FE_ALL_EXCEPT);
    if (raised) {
        atomic_fetch_or(&row->exceptions, raised);
        feclearexcept(FE_ALL_EXCEPT); /* a worker starts anew, and the caller gets them all below */
    }
}

static void shared_loop(char **operands, npy_intp const *count, npy_intp const *steps, void *data)
{
    const Loop *loop = data;
    int threads = atomic_load_explicit(&most_threads, memory_order_relaxed);
    if (*count < LONG_ROW || threads < 2 || !steps[loop->operands - 1]) { /* (a step of 0 is a reduction) */
        loop->function(operands, count, steps, loop->data);
        return;
    }
    Row row = {loop, operands, steps, 0};
    Arg args[1] = {{.p = &row}};
    Size worth = *count / GRAIN;
    retrograd_run(some_elements, *count, args, threads < worth ? threads : (int)worth);
    if (row.exceptions) feraiseexcept(row.exceptions);
}

/* ------------------------------------------------------------------------------------------------ operands that are spread */

#define MOST_DIMS 8

typedef struct {
    const Loop *loop;
    char *from[2], *to;
    int dims;
    Size shape[MOST_DIMS], steps[2][MOST_DIMS], result; /* in bytes; the result is contiguous */
    _Atomic int exceptions;
} Spread;

/* A task: one row of the last dimension. */
static void some_lines(Size begin, Size end, const Arg *args)
{
    Spread *s = args[0].p;
    int last = s->dims - 1;
    Size at[MOST_DIMS], rest = begin, first = 0, second = 0;
    npy_intp count = s->shape[last], steps[] = {s->steps[0][last], s->steps[1][last], s->result};
    for (int d = last - 1; d >= 0; d--) {
        at[d] = rest % s->shape[d];
        rest /= s->shape[d];
        first += at[d] * s->steps[0][d];
        second += at[d] * s->steps[1][d];
    }
    for (Size line = begin; line < end; line++) {
        char *operands[] = {s->from[0] + first, s->from[1] + second, s->to + line * count * s->result};
        s->loop->function(operands, &count, steps, s->loop->data);
        for (int d = last - 1; d >= 0; d--) { /* the next line */
            first += s->steps[0][d];
            second += s->steps[1][d];
            if (++at[d] < s->shape[d]) break;
            at[d] = 0;
            first -= s->shape[d] * s->steps[0][d];
            second -= s->shape[d] * s->steps[1][d];
        }
    }
    int raised = fetestexcept(FE_ALL_EXCEPT);
    if (raised) {
        atomic_fetch_or(&s->exceptions, raised);
        feclearexcept(FE_ALL_EXCEPT);
    }
}

/* Whether these have memory in common; `b` may be spread. */
static int meet(PyArrayObject *a, PyArrayObject *b)
{
    const char *start = PyArray_BYTES(a), *low = PyArray_BYTES(b), *high = low;
    for (int d = 0; d < PyArray_NDIM(b); d++) {
        Size reach = (PyArray_DIM(b, d) - 1) * PyArray_STRIDE(b, d);
        if (reach < 0) low += reach;
        else high += reach;
    }
    return low < start + PyArray_NBYTES(a) && start < high + PyArray_ITEMSIZE(b);
}

static int raise_exceptions(const char *name, int raised)
{
    int kinds = (raised & FE_DIVBYZERO ? NPY_FPE_DIVIDEBYZERO : 0) | (raised & FE_OVERFLOW ? NPY_FPE_OVERFLOW : 0) |
                (raised & FE_UNDERFLOW ? NPY_FPE_UNDERFLOW : 0) | (raised & FE_INVALID ? NPY_FPE_INVALID : 0);
    return kinds ? PyUFunc_GiveFloatingpointErrors(name, kinds) : 0;
}

/* ufunc(a, b, out) of floating dtype, where one operand is spread over the other, or each over the other, and a result of NumPy's
 * is contiguous: both are, or one and of its shape. NULL without an error: NumPy shall do it. */
static PyObject *spread(PyUFuncObject *ufunc, PyArrayObject *a, PyArrayObject *b, PyArrayObject *out, int threads)
{
    int type = PyArray_TYPE(a), dims = PyArray_NDIM(a) > PyArray_NDIM(b) ? PyArray_NDIM(a) : PyArray_NDIM(b);
    if (type != PyArray_TYPE(b) || (type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_CFLOAT && type != NPY_CDOUBLE))
        return NULL;
    if (PyArray_SIZE(a) < 2 || PyArray_SIZE(b) < 2 || dims > MOST_DIMS) return NULL;
    PyArrayObject *both[] = {a, b};
    Spread s = {.from = {PyArray_DATA(a), PyArray_DATA(b)}};
    npy_intp shape[MOST_DIMS];
    Size size = 1;
    for (int d = 0; d < dims; d++) {
        Size n[2], step[2];
        for (int i = 0; i < 2; i++) {
            int own = d - dims + PyArray_NDIM(both[i]);
            n[i] = own < 0 ? 1 : PyArray_DIM(both[i], own);
            step[i] = n[i] == 1 ? 0 : PyArray_STRIDE(both[i], own);
        }
        if (n[0] != n[1] && n[0] != 1 && n[1] != 1) return NULL;
        Size one = shape[d] = n[0] == 1 ? n[1] : n[0];
        size *= one;
        if (one == 1) continue;
        int before = s.dims - 1;
        if (s.dims && s.steps[0][before] == one * step[0] && s.steps[1][before] == one * step[1]) {
            s.shape[before] *= one; /* both are one dimension */
        } else {
            s.shape[before = s.dims++] = one;
        }
        s.steps[0][before] = step[0];
        s.steps[1][before] = step[1];
    }
    if (size < LONG_ROW || !s.dims || s.shape[s.dims - 1] >= LONG_ROW) return NULL; /* a loop that is shared as it is */
    for (int i = 0; i < 2; i++) {
        if (!PyArray_ISALIGNED(both[i]) || !PyArray_ISNOTSWAPPED(both[i])) return NULL;
        if (!PyArray_ISCARRAY_RO(both[i]) && !(PyArray_ISCARRAY_RO(both[1 - i]) && PyArray_SIZE(both[1 - i]) == size))
            return NULL;
    }
    int kind = 0;
    while (kind < ufunc->ntypes && (ufunc->types[3 * kind] != type || ufunc->types[3 * kind + 1] != type)) kind++;
    if (kind == ufunc->ntypes) return NULL;
    s.loop = ufunc->data[kind];
    int made = ufunc->types[3 * kind + 2];
    if (out) {
        if (PyArray_TYPE(out) != made || !PyArray_ISCARRAY(out) || PyArray_NDIM(out) != dims ||
            !PyArray_CompareLists(PyArray_DIMS(out), shape, dims))
            return NULL;
        for (int i = 0; i < 2; i++) { /* an operand may be written to in its place */
            int same = PyArray_DATA(out) == s.from[i] && PyArray_ISCARRAY_RO(both[i]) && PyArray_SIZE(both[i]) == size &&
                       PyArray_ITEMSIZE(out) == PyArray_ITEMSIZE(both[i]);
            if (!same && meet(out, both[i])) return NULL;
        }
        Py_INCREF((PyObject *)out);
    } else {
        out = (PyArrayObject *)PyArray_SimpleNew(dims, shape, made);
        if (!out) return NULL;
    }
    s.to = PyArray_DATA(out);
    s.result = PyArray_ITEMSIZE(out);
    Arg args[1] = {{.p = &s}};
    Size worth = size / GRAIN;
    Py_BEGIN_ALLOW_THREADS
    retrograd_run(some_lines, size / s.shape[s.dims - 1], args, threads < worth ? threads : (int)worth);
    Py_END_ALLOW_THREADS
    if (s.exceptions && raise_exceptions(ufunc->name, s.exceptions)) Py_CLEAR(out);
    return (PyObject *)out;
}

/* (The limited API has no name for this before Python 3.12.) */
typedef PyObject *(*Call)(PyObject *, PyObject *const *, size_t, PyObject *);
static Call call_numpy; /* the same for all ufuncs */

static PyObject *call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    int threads = atomic_load_explicit(&most_threads, memory_order_relaxed);
    Py_ssize_t given = (Py_ssize_t)(flags & ~((size_t)1 << (8 * sizeof(size_t) - 1))); /* the first bit says something else */
    Py_ssize_t named = names ? PyTuple_Size(names) : 0, all = given + named;
    if (threads && (given == 2 || given == 3) && all <= 3 && PyArray_CheckExact(args[0]) &&
        PyArray_CheckExact(args[1]) && (all == 2 || PyArray_CheckExact(args[2]) || args[2] == Py_None) &&
        (!named || !PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "out"))) {
        PyArrayObject *out = all == 2 || args[2] == Py_None ? NULL : (PyArrayObject *)args[2];
        PyObject *found = spread((PyUFuncObject *)self, (PyArrayObject *)args[0], (PyArrayObject *)args[1], out, threads);
        if (found || PyErr_Occurred()) return found;
    }
    return call_numpy(self, args, flags, names);
}

/* -------------------------------------------------------------------------------------------------------------------------- */

/* The loops for other packages' dtypes (bfloat16), as they are. */
static int add_foreign_loops(PyUFuncObject *to, PyObject *loops)
{
    PyObject *number, *capsule;
    Py_ssize_t position = 0;
    while (PyDict_Next(loops, &position, &number, &capsule)) {
        long type = PyLong_AsLong(number);
        if (type == -1 && PyErr_Occurred()) return -1;
        PyUFunc_Loop1d *loop = PyCapsule_GetPointer(capsule, NULL);
        if (!loop) return -1;
        for (; loop; loop = loop->next)
            if (PyUFunc_RegisterLoopForType(to, (int)type, loop->func, loop->arg_types, loop->data)) return -1;
    }
    return 0;
}

PyObject *parallel(PyObject *module, PyObject *original)
{
    (void)module;
    if (!PyObject_TypeCheck(original, &PyUFunc_Type)) {
        PyErr_SetString(PyExc_TypeError, "parallel() takes a ufunc");
        return NULL;
    }
    PyUFuncObject *ufunc = (PyUFuncObject *)original;
    int kinds = ufunc->ntypes, operands = ufunc->nargs;
    if (operands > MOST_OPERANDS || ufunc->core_enabled || ufunc->nout != 1) Py_RETURN_NONE;
    /* These live as long as the process, like the ufunc itself. */
    PyUFuncGenericFunction *functions = malloc(sizeof *functions * kinds);
    void **data = malloc(sizeof *data * kinds);
    char *types = malloc((size_t)kinds * operands);
    Loop *loops = malloc(sizeof *loops * kinds);
    if (!functions || !data || !types || !loops) return PyErr_NoMemory();
    int kept = 0;
    for (int i = 0; i < kinds; i++) {
        const char *kind = ufunc->types + (size_t)i * operands;
        int numbers = ufunc->functions[i] != NULL;
        for (int j = 0; j < operands; j++) numbers &= kind[j] < NPY_OBJECT || kind[j] == NPY_HALF;
        if (!numbers) continue;
        loops[kept] = (Loop){ufunc->functions[i], ufunc->data ? (void *)ufunc->data[i] : NULL, operands};
        functions[kept] = shared_loop;
        data[kept] = &loops[kept];
        memcpy(types + (size_t)kept * operands, kind, operands);
        kept++;
    }
    PyObject *made = PyUFunc_FromFuncAndData(functions, data, types, kept, ufunc->nin, ufunc->nout, PyUFunc_None, ufunc->name,
                                             ufunc->doc, 0);
    /* What it takes and refuses (two bools subtracted, say) is what the other one does. */
    if (made) ((PyUFuncObject *)made)->type_resolver = ufunc->type_resolver;
    if (made && ufunc->nin == 2) {
        call_numpy = (Call)((PyUFuncObject *)made)->vectorcall;
        ((PyUFuncObject *)made)->vectorcall = (void *)call;
    }
    if (made && ufunc->userloops && add_foreign_loops((PyUFuncObject *)made, ufunc->userloops)) Py_CLEAR(made);
    return made;
}

PyObject *use_threads(PyObject *module, PyObject *number)
{
    (void)module;
    long threads = PyLong_AsLong(number);
    if (threads == -1 && PyErr_Occurred()) return NULL;
    atomic_store(&most_threads, (int)threads);
    Py_RETURN_NONE;
}

int import_ufuncs(void)
{
    import_umath1(-1);
    return 0;
}
