/* What this processor can do, as the name of the library that is made for it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *best(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    const char *name = "plain";
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
        name = "avx512";
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        name = "avx2";
#endif
    return PyUnicode_FromString(name);
}

static PyMethodDef functions[] = {{"best", best, METH_NOARGS, "The best that this processor can do."}, {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_levels", .m_methods = functions, .m_slots = slots,
};
PyMODINIT_FUNC PyInit__levels(void) { return PyModuleDef_Init(&definition); }
