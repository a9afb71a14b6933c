/* Formulas of nodes, as trees: `apply` and `apply_tensors` of _generated/nodes.py, from the descriptions that the generator
 * wrote. Those over Tensors are evaluated alike: its signs and functions know what to do with them. */
#include "core.h"

enum Kind { GRAD, TENSOR, OUTPUT, SLOT_VALUE, CONSTANT, BINARY, NEGATIVE, CONJUGATE, POWER, EQUAL, CHOICE, CALL, METHOD, ATTRIBUTE };

struct Expression {
    enum Kind kind;
    int operation, parts;
    Py_ssize_t offset, counter;
    PyObject *object;                                 /* a constant, a function's name, the name of what was saved */
    PyObject *space, *function;                       /* where the function is found by its name, and what it is */
    PyObject *(*known)(PyObject *const *, Py_ssize_t); /* the function, written here; may decline */
    Expression *part[];
};

/* ------------------------------------------------------------------- functions that are written here as well */

static PyObject *sum_all_backward(PyObject *const *args, Py_ssize_t n)
{
    if (n != 3) return NULL;
    if (!is_plain(args[1])) return small_filled(args[1], args[2]);
    /* A constant, such as the 1 that a pass begins with, has no history for a view to share. */
    PyObject *grad = args[1];
    if (SLOT(grad, Tensor, _edge_) != Py_None || SLOT(grad, Tensor, _grad_meta_) != Py_None || !is_unwatched()) return NULL;
    return tensor_of(small_filled(SLOT(grad, Tensor, _numbers_), args[2]));
}

static PyObject *select_backward(PyObject *const *args, Py_ssize_t n)
{
    if (n != 4) return NULL;
    if (is_recorded(args[0])) return record_select_backward(args[0], args[1], args[2], args[3]);
    return small_select_backward(args[0], args[1], args[2], args[3]);
}

static const struct {
    const char *name;
    PyObject *(*function)(PyObject *const *, Py_ssize_t);
} known[] = {{"sum_all_backward", sum_all_backward}, {"select_backward", select_backward}};

/* ---------------------------------------------------------------------------------------------------- evaluation */

#define MOST_ARGUMENTS 8

/* The function of a call: while somebody records, a wrapper may stand for it. */
static PyObject *function_of(Expression *e)
{
    if (somebody_records()) return PyObject_GetAttr(e->space, e->object);
    if (!e->function && !(e->function = PyObject_GetAttr(e->space, e->object))) return NULL;
    return Py_NewRef(e->function);
}

static PyObject *call(Expression *e, Evaluation *run)
{
    PyObject *args[MOST_ARGUMENTS], *result = NULL;
    int made = 0;
    for (; made < e->parts; made++)
        if (!(args[made] = evaluate(e->part[made], run))) goto done;
    if (e->known) result = e->known(args, made);
    if (!result && !PyErr_Occurred()) {
        int first = e->kind == METHOD; /* whose object is the first part */
        PyObject *all = PyTuple_New(made - first), *function = first ? PyObject_GetAttr(args[0], e->object) : function_of(e);
        for (int i = first; all && i < made; i++) PyTuple_SetItem(all, i - first, Py_NewRef(args[i]));
        if (all && function) result = PyObject_Call(function, all, NULL);
        Py_XDECREF(all), Py_XDECREF(function);
    }
done:
    while (made) Py_DECREF(args[--made]);
    return result;
}

/* What is not plain is unpacked once for all formulas of a node: hooks may be behind it. */
static PyObject *unpacked(Expression *e, Evaluation *run, PyObject *unpack, PyObject *saved, PyObject *output_nr)
{
    for (int i = 0; i < run->count; i++)
        if (run->unpacked[i].offset == e->offset) return Py_NewRef(run->unpacked[i].value);
    PyObject *value = PyObject_CallFunctionObjArgs(unpack, run->node, e->object, saved, output_nr, NULL);
    if (value && run->count < MOST_SAVED)
        run->unpacked[run->count].offset = e->offset, run->unpacked[run->count++].value = Py_NewRef(value);
    return value;
}

void forget_unpacked(Evaluation *run)
{
    while (run->count) Py_DECREF(run->unpacked[--run->count].value);
}

static PyObject *saved_tensor(Expression *e, Evaluation *run)
{
    PyObject *saved = SLOT_AT(run->node, e->offset);
    if (!saved) {
        PyErr_Format(PyExc_AttributeError, "%U was not saved", e->object);
        return NULL;
    }
    if (is_plain(saved) && is_as_saved(saved)) return Py_XNewRef(run->tensors ? saved : SLOT(saved, Tensor, _numbers_));
    if (PyArray_CheckExact(saved) || is_recorded(saved)) /* what a kernel gave beside its result */
        return run->tensors ? tensor_of(Py_NewRef(saved)) : Py_NewRef(saved);
    return unpacked(e, run, run->tensors ? core.unpack_tensor : core.unpack_array, saved, NULL);
}

static PyObject *saved_output(Expression *e, Evaluation *run)
{
    PyObject *saved = SLOT_AT(run->node, e->offset), *counter = SLOT_AT(run->node, e->counter);
    int as_saved = saved && PyArray_CheckExact(saved) && counter && (PyObject *)Py_TYPE(counter) == core.VersionCounter &&
                   SLOT(counter, VersionCounter, version) == core.zero;
    if (!run->tensors)
        return as_saved ? Py_NewRef(saved) : unpacked(e, run, core.unpack_output_array, saved ? saved : Py_None, NULL);
    if (!as_saved) return unpacked(e, run, core.unpack_output_tensor, saved ? saved : Py_None, core.zero);
    PyObject *edge = PyTuple_Pack(2, run->node, core.zero), *result = edge ? tensor_of(Py_NewRef(saved)) : NULL;
    if (result) {
        set_slot(&SLOT(result, Tensor, _vc_), Py_NewRef(counter));
        set_slot(&SLOT(result, Tensor, _edge_), Py_NewRef(edge));
    }
    Py_XDECREF(edge);
    return result;
}

static PyObject *conjugate(PyObject *value)
{
    if (PyFloat_CheckExact(value) || PyLong_CheckExact(value) || is_float_array(value)) return Py_NewRef(value);
    if (is_recorded_float(value)) return Py_NewRef(value);
    if (is_plain(value) && is_float_array(SLOT(value, Tensor, _numbers_))) return Py_NewRef(value);
    return PyObject_CallMethod(value, "conjugate", NULL);
}

PyObject *evaluate(Expression *e, Evaluation *run)
{
    PyObject *a = NULL, *b = NULL, *result = NULL;
    switch (e->kind) {
    case GRAD: return Py_NewRef(run->grad);
    case TENSOR: return saved_tensor(e, run);
    case OUTPUT: return saved_output(e, run);
    case SLOT_VALUE:
        result = SLOT_AT(run->node, e->offset);
        if (!result) PyErr_SetString(PyExc_AttributeError, "a slot of a node is not set");
        return Py_XNewRef(result);
    case CONSTANT: return Py_NewRef(e->object);
    case CALL: case METHOD: return call(e, run);
    default: break;
    }
    if (!(a = evaluate(e->part[0], run))) return NULL;
    if (e->kind == CHOICE) {
        int yes = PyObject_IsTrue(a);
        Py_DECREF(a);
        return yes < 0 ? NULL : evaluate(e->part[yes ? 1 : 2], run);
    }
    if (e->parts > 1 && !(b = evaluate(e->part[1], run))) goto done;
    switch (e->kind) {
    case BINARY: result = binary(e->operation, a, b); break;
    case NEGATIVE:
        result = negative(a);
        break;
    case CONJUGATE: result = conjugate(a); break;
    case POWER: result = PyNumber_Power(a, b, Py_None); break;
    case EQUAL: result = PyObject_RichCompare(a, b, Py_EQ); break;
    case ATTRIBUTE: result = PyObject_GetAttr(a, e->object); break;
    default: PyErr_SetString(PyExc_SystemError, "no such expression");
    }
done:
    Py_DECREF(a);
    Py_XDECREF(b);
    return result;
}

/* ------------------------------------------------------------------------------------------------- descriptions */

static void free_expression(Expression *e)
{
    for (int i = 0; e && i < e->parts; i++) free_expression(e->part[i]);
    if (e) Py_XDECREF(e->object), Py_XDECREF(e->space), Py_XDECREF(e->function);
    PyMem_Free(e);
}

static PyObject *space_of(PyObject *name)
{
    if (!PyUnicode_CompareWithASCIIString(name, "kernels")) return core.kernels;
    return PyUnicode_CompareWithASCIIString(name, "ops") ? core.formulas : core.ops;
}

/* ("grad",) ("tensor", slot, name) ("output", slot, name, counter's slot) ("slot", slot) ("constant", value) ("kernels",) ("ops",)
 * ("*", a, b) … ("neg", a) ("conj", a) ("**", a, b) ("==", a, b) ("if", test, yes, no) ("attribute", name, a)
 * ("call", "kernels", "ops" or "formulas", name, arguments …) ("method", name, a, arguments …) */
static Expression *read_expression(PyObject *description, PyObject *type)
{
    static const struct {
        const char *word;
        enum Kind kind;
        int operation, first; /* which item is the first part */
    } words[] = {
        {"grad", GRAD, 0, 1}, {"tensor", TENSOR, 0, 3}, {"output", OUTPUT, 0, 4}, {"slot", SLOT_VALUE, 0, 2},
        {"constant", CONSTANT, 0, 2}, {"kernels", CONSTANT, 0, 1}, {"ops", CONSTANT, 0, 1}, {"*", BINARY, MUL, 1}, {"+", BINARY, ADD, 1}, {"-", BINARY, SUB, 1},
        {"/", BINARY, DIV, 1}, {"neg", NEGATIVE, 0, 1}, {"conj", CONJUGATE, 0, 1}, {"**", POWER, 0, 1},
        {"==", EQUAL, 0, 1}, {"if", CHOICE, 0, 1}, {"attribute", ATTRIBUTE, 0, 2}, {"call", CALL, 0, 3},
        {"method", METHOD, 0, 2},
    };
    Py_ssize_t items = PyTuple_Size(description);
    if (items < 1) return NULL;
    PyObject *word = PyTuple_GetItem(description, 0);
    int which = 0, all = sizeof words / sizeof *words;
    while (which < all && PyUnicode_CompareWithASCIIString(word, words[which].word)) which++;
    if (which == all || items < words[which].first || items - words[which].first > MOST_ARGUMENTS) {
        PyErr_Format(PyExc_ValueError, "a formula that the compiled core does not know: %R", description);
        return NULL;
    }
    int parts = (int)(items - words[which].first);
    Expression *e = PyMem_Calloc(1, sizeof *e + parts * sizeof *e->part);
    if (!e) return (Expression *)PyErr_NoMemory();
    e->kind = words[which].kind, e->operation = words[which].operation;
    const char *slot = NULL, *counter = NULL;
    PyObject *second = items > 1 ? PyTuple_GetItem(description, 1) : NULL;
    switch (e->kind) {
    case TENSOR: case OUTPUT: case SLOT_VALUE:
        if (!(slot = PyUnicode_AsUTF8AndSize(second, NULL)) || (e->offset = slot_offset(type, slot)) == -1) goto failed;
        if (e->kind == SLOT_VALUE) break;
        e->object = Py_NewRef(PyTuple_GetItem(description, 2));
        if (e->kind == OUTPUT && (!(counter = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(description, 3), NULL)) ||
                                  (e->counter = slot_offset(type, counter)) == -1))
            goto failed;
        break;
    case CONSTANT: case ATTRIBUTE: case METHOD: e->object = Py_NewRef(second ? second : space_of(word)); break;
    case CALL: {
        PyObject *name = PyTuple_GetItem(description, 2);
        e->space = Py_NewRef(space_of(second)), e->object = Py_NewRef(name);
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (!PyUnicode_CompareWithASCIIString(name, known[i].name)) e->known = known[i].function;
        break;
    }
    default: break;
    }
    for (; e->parts < parts; e->parts++)
        if (!(e->part[e->parts] = read_expression(PyTuple_GetItem(description, words[which].first + e->parts), type)))
            goto failed;
    return e;
failed:
    free_expression(e);
    return NULL;
}

static PyObject *by_type;  /* {node class: capsule of its Formula, or None} */
static PyObject *describe; /* what is asked for a description */

static int define(PyObject *type, PyObject *description)
{
    PyObject *formulas, *over_tensors, *released;
    if (!PyArg_ParseTuple(description, "O!OO!", &PyTuple_Type, &formulas, &over_tensors, &PyTuple_Type, &released)) return -1;
    Formula *made = PyMem_Calloc(1, sizeof *made); /* lives as long as the process, as its class does */
    if (!made) return PyErr_NoMemory(), -1;
    Py_ssize_t edges = PyTuple_Size(formulas), slots = PyTuple_Size(released);
    if (edges > MOST_EDGES || slots > 8) { /* left to Python */
        PyMem_Free(made);
        return PyDict_SetItem(by_type, type, Py_None);
    }
    for (; made->edges < edges; made->edges++)
        if (!(made->formulas[made->edges] = read_expression(PyTuple_GetItem(formulas, made->edges), type))) return -1;
    for (int i = 0; over_tensors != Py_None && i < made->edges; i++)
        if (!(made->over_tensors[i] = read_expression(PyTuple_GetItem(over_tensors, i), type))) return -1;
    for (; made->slots < slots; made->slots++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(released, made->slots), NULL);
        if (!name || (made->released[made->slots] = slot_offset(type, name)) == -1) return -1;
    }
    PyObject *capsule = PyCapsule_New(made, NULL, NULL);
    int failed = !capsule || PyDict_SetItem(by_type, type, capsule);
    Py_XDECREF(capsule);
    return failed ? -1 : 0;
}

/* define_formulas(describe): describe(node class) is its description, or None; asked when a class is first met. */
PyObject *define_formulas(PyObject *self, PyObject *function)
{
    (void)self;
    if (!by_type && !(by_type = PyDict_New())) return NULL;
    describe = Py_NewRef(function);
    Py_RETURN_NONE;
}

static PyObject *meet(PyObject *type)
{
    PyObject *description = PyObject_CallFunctionObjArgs(describe, type, NULL);
    int failed = !description || (description == Py_None ? PyDict_SetItem(by_type, type, Py_None) : define(type, description));
    Py_XDECREF(description);
    return failed ? NULL : PyDict_GetItemWithError(by_type, type);
}

Formula *formula_of(PyTypeObject *node)
{
    PyObject *found = PyDict_GetItemWithError(by_type, (PyObject *)node);
    if (!found && !PyErr_Occurred()) {
        /* (those of the user's Functions, which come and go: nothing here may hold them) */
        if (PyType_IsSubtype(node, (PyTypeObject *)core.BackwardCFunction)) return NULL;
        found = meet((PyObject *)node);
    }
    return is_there(found) ? PyCapsule_GetPointer(found, NULL) : NULL;
}
