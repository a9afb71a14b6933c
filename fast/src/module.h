/* What the parts of the extension module share. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL retrograd_array_api
#define PY_UFUNC_UNIQUE_SYMBOL retrograd_ufunc_api
#include <numpy/arrayobject.h>

#include "pool.h"

PyObject *product(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *update(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *reduce(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *arguments(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *copy(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *draw(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *join(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *take(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *parallel(PyObject *module, PyObject *original);
PyObject *use_threads(PyObject *module, PyObject *number);
int import_ufuncs(void);
