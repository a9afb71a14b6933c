/* The kernels, as one function of Python: run(number of the kernel, tasks, threads, arguments …).
 *
 * Arrays become the addresses of their memory, None becomes NULL, ints and floats themselves. What the arguments must be is
 * known in retrograd/kernels/compiled.py, which has checked them: of arrays nothing is looked at here. The interpreter goes
 * on with other threads meanwhile.
 */
#include "module.h"

#define MOST_ARGUMENTS 16

#define KERNEL(name) void name##_f32(Size, Size, const Arg *), name##_f64(Size, Size, const Arg *);
#include "kernels.list"
#undef KERNEL
extern const int retrograd_lanes_f32, retrograd_panel_f32, retrograd_tile_rows_f32;
extern const int retrograd_lanes_f64, retrograd_panel_f64, retrograd_tile_rows_f64;

static const struct {
    const char *name;
    Kernel kernel;
} kernels[] = {
#define KERNEL(name) {#name "_f32", name##_f32}, {#name "_f64", name##_f64},
#include "kernels.list"
#undef KERNEL
};
#define KERNELS ((Py_ssize_t)(sizeof kernels / sizeof *kernels))

static PyObject *run(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    Arg given[MOST_ARGUMENTS];
    if (count < 3 || count > 3 + MOST_ARGUMENTS) {
        PyErr_Format(PyExc_TypeError, "run() takes a kernel, tasks, threads and up to %d arguments", MOST_ARGUMENTS);
        return NULL;
    }
    Py_ssize_t which = PyLong_AsSsize_t(args[0]);
    Size tasks = PyLong_AsLongLong(args[1]);
    long threads = PyLong_AsLong(args[2]);
    if (PyErr_Occurred()) return NULL;
    if (which < 0 || which >= KERNELS) {
        PyErr_SetString(PyExc_IndexError, "run(): there is no kernel of this number");
        return NULL;
    }
    for (Py_ssize_t i = 3; i < count; i++) {
        PyObject *arg = args[i];
        if (arg == Py_None) given[i - 3].p = NULL;
        else if (PyArray_Check(arg)) given[i - 3].p = PyArray_DATA((PyArrayObject *)arg);
        else if (PyFloat_Check(arg)) given[i - 3].d = PyFloat_AsDouble(arg);
        else {
            given[i - 3].i = PyLong_AsLongLong(arg);
            if (given[i - 3].i == -1 && PyErr_Occurred()) return NULL;
        }
    }
    Py_BEGIN_ALLOW_THREADS
    retrograd_run(kernels[which].kernel, tasks, given, (int)threads);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, "Run a kernel: run(kernel, tasks, threads, *arguments)."},
    {"product", (PyCFunction)(void (*)(void))product, METH_FASTCALL, "a @ b + bias: product(a, b, bias, threads)."},
    {"update", (PyCFunction)(void (*)(void))update, METH_FASTCALL, "A step: update(rule, rows, settings, threads)."},
    {"reduce", (PyCFunction)(void (*)(void))reduce, METH_FASTCALL, "reduce(ufunc, a, n, inner, threads): (outer, pieces, inner)."},
    {"arguments", (PyCFunction)(void (*)(void))arguments, METH_FASTCALL, "arguments(a, n, largest, threads)."},
    {"copy", (PyCFunction)(void (*)(void))copy, METH_FASTCALL, "copy(to, from, threads)."},
    {"join", (PyCFunction)(void (*)(void))join, METH_FASTCALL, "join(to, arrays, outer, threads)."},
    {"draw", (PyCFunction)(void (*)(void))draw, METH_FASTCALL, "draw(key, position, to, limit, scale, threads)."},
    {"take", (PyCFunction)(void (*)(void))take, METH_FASTCALL, "take(to, from, index, threads)."},
    {"parallel", parallel, METH_O, "A ufunc of one result with the same loops, shared among threads; None of others."},
    {"use_threads", use_threads, METH_O, "How many threads such ufuncs use."},
    {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module)
{
    PyObject *names = PyDict_New();
    if (!names) return -1;
    for (Py_ssize_t i = 0; i < KERNELS; i++) {
        PyObject *number = PyLong_FromSsize_t(i);
        if (!number || PyDict_SetItemString(names, kernels[i].name, number)) return -1;
        Py_DECREF(number);
    }
    if (PyModule_AddObjectRef(module, "KERNELS", names)) return -1;
    Py_DECREF(names);
    return PyModule_AddIntConstant(module, "LANES_f32", retrograd_lanes_f32) ||
           PyModule_AddIntConstant(module, "LANES_f64", retrograd_lanes_f64) ||
           PyModule_AddIntConstant(module, "PANEL_f32", retrograd_panel_f32) ||
           PyModule_AddIntConstant(module, "PANEL_f64", retrograd_panel_f64) ||
           PyModule_AddIntConstant(module, "TILE_ROWS", retrograd_tile_rows_f32)
        ? -1 : 0;
}

static int import_numpy(PyObject *module)
{
    (void)module;
    import_array1(-1);
    return import_ufuncs();
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, import_numpy},
    {Py_mod_exec, prepare},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_kernels", .m_doc = "Kernels in C.", .m_methods = functions, .m_slots = slots,
};

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
PyMODINIT_FUNC JOIN(PyInit__kernels_, LEVEL)(void) { return PyModuleDef_Init(&definition); }
