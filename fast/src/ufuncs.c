/* NumPy's functions of elements, on several threads: parallel(ufunc) is a ufunc with the loops of another, which share
 * long rows of elements among the threads of the pool.
 *
 * The loops are NumPy's own, and so are all results, to the last bit; what a division by zero or an overflow leaves in the
 * flags of a worker's processor is raised again on the thread that called, where NumPy looks for it.
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

static _Atomic int most_threads = 1;

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
