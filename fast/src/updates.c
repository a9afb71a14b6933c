/* update(kernel, rows, settings, threads): one step of an optimizer on a list of rows (parameter, gradient, state …), arrays
 * of one dtype that are contiguous, or None; settings are numbers or None. What is no such row is refused before anything
 * is written. */
#define NO_IMPORT_ARRAY
#include "module.h"

#include <stdlib.h>

#include "updates.h"

#define MOST_SETTINGS 16

#define KERNEL(name) void name##_f32(Size, Size, const Arg *), name##_f64(Size, Size, const Arg *);
KERNEL(sgd_plain)
KERNEL(sgd_step)
KERNEL(adam_step)
KERNEL(rmsprop_step)
KERNEL(adagrad_step)
KERNEL(adadelta_step)
KERNEL(adamax_step)
KERNEL(nadam_step)
KERNEL(radam_step)
KERNEL(rprop_step)
KERNEL(asgd_step)
#undef KERNEL
static const struct {
    const char *name;
    Kernel single, both;
} rules[] = {
#define RULE(name) {#name, name##_f32, name##_f64}
    RULE(sgd_plain), RULE(sgd_step), RULE(adam_step), RULE(rmsprop_step), RULE(adagrad_step), RULE(adadelta_step),
    RULE(adamax_step), RULE(nadam_step), RULE(radam_step), RULE(rprop_step), RULE(asgd_step),
#undef RULE
};

static int read_row(PyObject *row, Size columns, int *type, void **arrays, Size *size)
{
    if (!PyList_Check(row) || PyList_Size(row) != columns) return 0;
    for (Size i = 0; i < columns; i++) {
        PyObject *item = PyList_GetItem(row, i);
        if (item == Py_None && i > 1) {
            arrays[i] = NULL;
            continue;
        }
        if (!PyArray_CheckExact(item)) return 0;
        PyArrayObject *array = (PyArrayObject *)item;
        if (!*type) *type = PyArray_TYPE(array);
        if (PyArray_TYPE(array) != *type || !PyArray_ISCARRAY_RO(array) || (i != 1 && !PyArray_ISWRITEABLE(array))) return 0;
        if (!i) *size = PyArray_SIZE(array);
        else if (PyArray_SIZE(array) != *size) return 0;
        arrays[i] = PyArray_DATA(array);
    }
    return *type == NPY_FLOAT || *type == NPY_DOUBLE;
}

PyObject *update(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 4 || !PyUnicode_Check(args[0]) || !PyList_Check(args[1]) || !PyTuple_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "update() takes a rule's name, a list of rows, a tuple of settings and threads");
        return NULL;
    }
    Size which = 0, kinds = (Size)(sizeof rules / sizeof *rules);
    while (which < kinds && PyUnicode_CompareWithASCIIString(args[0], rules[which].name)) which++;
    Size rows = PyList_Size(args[1]), numbers = PyTuple_Size(args[2]);
    long threads = PyLong_AsLong(args[3]);
    if (PyErr_Occurred()) return NULL;
    if (which == kinds || numbers > MOST_SETTINGS || !rows || !PyList_Check(PyList_GetItem(args[1], 0))) Py_RETURN_FALSE;
    Size columns = PyList_Size(PyList_GetItem(args[1], 0));
    double settings[MOST_SETTINGS];
    int given[MOST_SETTINGS];
    for (Size i = 0; i < numbers; i++) {
        PyObject *number = PyTuple_GetItem(args[2], i);
        given[i] = number != Py_None;
        settings[i] = given[i] ? PyFloat_AsDouble(number) : 0;
        if (PyErr_Occurred()) return NULL;
    }
    void **arrays = malloc(sizeof *arrays * (size_t)(rows * columns) + sizeof(Size) * (size_t)(2 * rows + 1));
    if (!arrays) return PyErr_NoMemory();
    Size *sizes = (Size *)(arrays + rows * columns), *first = sizes + rows, elements = 0;
    int type = 0, fits = 1;
    first[0] = 0;
    for (Size r = 0; r < rows && fits; r++) {
        fits = read_row(PyList_GetItem(args[1], r), columns, &type, arrays + r * columns, sizes + r);
        first[r + 1] = first[r] + (fits ? (sizes[r] + UPDATE_BLOCK - 1) / UPDATE_BLOCK : 0);
        elements += fits ? sizes[r] : 0;
    }
    if (fits) {
        Updates all = {arrays, sizes, first, columns, settings, given};
        Arg arg[1] = {{.p = &all}};
        Size worth = elements / UPDATE_BLOCK;
        if (threads > worth) threads = worth < 1 ? 1 : (long)worth;
        Kernel kernel = type == NPY_FLOAT ? rules[which].single : rules[which].both;
        Py_BEGIN_ALLOW_THREADS
        retrograd_run(kernel, first[rows], arg, (int)threads);
        Py_END_ALLOW_THREADS
    }
    free(arrays);
    return PyBool_FromLong(fits);
}
