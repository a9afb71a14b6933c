/* What this processor can do, as the name of the library that is made for it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* Which registers the system saves when it goes from one thread to another: bits 1 and 2 those of AVX, 5 to 7 of AVX-512. */
static unsigned saved_registers(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static const char *find_level(void)
{
    unsigned a, b, c, d;
    const unsigned fma = 1u << 12, saves = 1u << 27, avx = 1u << 28;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (fma | saves | avx)) != (fma | saves | avx)) return "plain";
    unsigned saved = saved_registers();
    if ((saved & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & 1u << 5)) return "plain";
    const unsigned needed = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F, DQ, CD, BW and VL */
    return (saved & 0xe6) == 0xe6 && (b & needed) == needed ? "avx512" : "avx2";
}
#else
static const char *find_level(void) { return "plain"; }
#endif

static PyObject *best(PyObject *self, PyObject *nothing)
{
    (void)self, (void)nothing;
    return PyUnicode_FromString(find_level());
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
