/* Where the slots of Python's classes lie, found out by looking. */
#include "core.h"

#include <stdint.h>

static Py_ssize_t found_at(PyObject *object, Py_ssize_t size, PyObject *value)
{
    Py_ssize_t place = -1;
    for (Py_ssize_t at = sizeof(PyObject); at + (Py_ssize_t)sizeof(PyObject *) <= size; at += sizeof(PyObject *)) {
        if (SLOT_AT(object, at) != value) continue;
        if (place != -1) return -1;
        place = at;
    }
    return place;
}

/* An object of the class is made, and two things put into the slot by name, one after the other: the one place in the
 * object's memory that holds now this, now that, is the slot. */
Py_ssize_t slot_offset(PyObject *type, const char *name)
{
    Py_ssize_t place = -1;
    PyObject *object = NULL, *first = NULL, *second = NULL, *basicsize = PyObject_GetAttrString(type, "__basicsize__");
    if (!basicsize) return -1;
    Py_ssize_t size = PyLong_AsSsize_t(basicsize);
    Py_DECREF(basicsize);
    object = PyType_GenericAlloc((PyTypeObject *)type, 0);
    first = PyList_New(0), second = PyList_New(0);
    if (!object || !first || !second) goto done;
    if (PyObject_SetAttrString(object, name, first)) goto done;
    place = found_at(object, size, first);
    if (PyObject_SetAttrString(object, name, second)) place = -1;
    if (place != -1 && found_at(object, size, second) != place) place = -1;
    if (place == -1 && !PyErr_Occurred())
        PyErr_Format(PyExc_ImportError, "%R keeps its slot %s where the compiled core does not find it", type, name);
done:
    Py_XDECREF(object), Py_XDECREF(first), Py_XDECREF(second);
    return place;
}

/* Does the count of an object's references say what Note [Ownership] needs? */
static int counts_references(void)
{
    PyObject *array = PyArray_SimpleNew(0, NULL, NPY_DOUBLE);
    if (!array) return -1;
    int right = (uint32_t)Py_REFCNT(array) == 1;
    PyObject *holder = PyTuple_Pack(1, array), *other = PyList_New(0);
    if (!holder || !other) return -1;
    right &= (uint32_t)Py_REFCNT(array) == 2;
    Py_DECREF(array); /* the tuple alone holds it now */
    array = PyTuple_GetItem(holder, 0);
    right &= (uint32_t)Py_REFCNT(array) == 1;
    if (PyList_Append(other, array)) return -1;
    right &= (uint32_t)Py_REFCNT(array) == 2;
    Py_DECREF(other);
    right &= (uint32_t)Py_REFCNT(array) == 1;
    Py_DECREF(holder);
    return right;
}

int configure_slots(void)
{
#define OFFSET(type, slot) \
    if ((core.type##_##slot = slot_offset(core.type, #slot)) == -1) return -1;
    SLOTS(OFFSET)
#undef OFFSET
    core.counts = counts_references();
    return core.counts < 0 ? -1 : 0;
}
