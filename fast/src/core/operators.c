/* Operators: the straight-line wrappers of _generated/functions.py, for plain tensors on plain arrays.
 *
 * Only of float32 and float64: what operators are for other dtypes, Python knows (ops/stored_dtypes.py may stand before a
 * kernel, for one). What an operator does (kernel, node, what it saves and when) is told by `define_operators`, from a
 * description that the generator has written; nothing here knows one operator from another but for the arithmetic of small
 * arrays.
 */
#include "core.h"

#include <string.h>

#define MOST_ARGUMENTS 8
#define MOST_SAVES 8

typedef struct {
    /* t: a tensor; s, d, p: the shape, dtype, strides of one; a: an argument; r: the result, and its counter; k: what the
     * kernel gave besides it, at this place */
    char kind;
    int argument;
    unsigned edges; /* t: saved if one of these edges is there */
    Py_ssize_t offset, counter;
} Save;

typedef struct {
    int arguments;
    /* T: a tensor; O: one or None; N: one or a number; A: one that is not of floats; S: a number; I: an int; F: a float; B: a
     * bool; L: an int or a tuple of them; C: a constant */
    char kinds[MOST_ARGUMENTS];
    PyObject *constants[MOST_ARGUMENTS];
    int kernel; /* one of those in arrays.c, or -1 */
    PyObject *callable;
    int edges, of[MOST_EDGES];
    PyTypeObject *node; /* NULL: nothing is ever recorded */
    int saves, besides; /* (how many of them the kernel gives beside the result) */
    Save save[MOST_SAVES];
} Operator;

static const char *kernel_names[] = {"mul", "add", "sub", "div", "neg", "sum_all", "rsub", "pow"};

/* The signs of Python: with a Tensor on the left, and with a number on the left; and what Python calls them. */
typedef struct {
    const char *name, *reflected_name;
    Operator *straight, *reflected;
    PyObject *python, *python_reflected;
} Sign;
static Sign signs[] = {
    {.name = "__mul__", .reflected_name = "__rmul__"}, {.name = "__add__", .reflected_name = "__radd__"},
    {.name = "__sub__", .reflected_name = "__rsub__"}, {.name = "__truediv__", .reflected_name = "__rtruediv__"},
    {.name = "__neg__"}, {.name = "__pow__", .reflected_name = "__rpow__"}, {.name = "__getitem__"},
    {.name = "sum"},
};
enum { SIGN_MUL, SIGN_ADD, SIGN_SUB, SIGN_DIV, SIGN_NEG, SIGN_POW, SIGN_ITEM, SIGN_SUM, SIGNS };

/* The view operators that are written here: their arguments after the tensor are what their nodes keep beside its shape. */
typedef struct {
    const char *name;
    int slots;
    const char *slot_names[4];
    PyTypeObject *node;
    PyObject *kernel, *function;
    Py_ssize_t shape, offsets[4];
} View;
static View views[] = {
    {.name = "select", .slots = 2, .slot_names = {"dim_", "index_"}},
    {.name = "slice", .slots = 4, .slot_names = {"dim_", "start_", "end_", "step_"}},
    {.name = "view"},
};
enum { VIEW_SELECT, VIEW_SLICE, VIEW_VIEW, VIEWS };

static PyObject *state_name;

/* Does somebody want to know of this thread's operators? */
static int is_watched(PyObject *state)
{
    PyObject *modes = SLOT(state, ThreadState, function_modes);
    return SLOT(state, ThreadState, interceptor) != Py_None || !modes || PyTuple_Size(modes);
}

/* The same for operators on recorded arrays, which the recorder alone may watch: alone() of capture/recording.py. */
static int is_watched_by_others(PyObject *state)
{
    PyObject *modes = SLOT(state, ThreadState, function_modes), *observers = SLOT(state, ThreadState, observers);
    if (!modes || PyTuple_Size(modes)) return 1;
    if (SLOT(state, ThreadState, interceptor) == Py_None) return 0;
    return !observers || PyTuple_Size(observers) != 1 || !is_recorder(PyTuple_GetItem(observers, 0)) ||
           SLOT(state, ThreadState, known_modes) != SLOT(core.process, Process, modes);
}

int is_unwatched(void)
{
    PyObject *state = PyObject_GetAttr(core.local, state_name);
    int unwatched = state && !is_watched(state);
    Py_XDECREF(state);
    return unwatched;
}

/* What a kernel refuses, Python will refuse in its own words. But Python runs the handlers of signals wherever it runs, in
 * kernels as well: Ctrl-C, and whatever else they raise, is for the program. */
int declines(void)
{
    PyObject *type, *error, *trace, *inside = NULL;
    if (!PyErr_Occurred()) return 1;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return 0;
_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
    PyErr_Fetch(&type, &error, &trace);
    if (trace) inside = PyObject_CallFunctionObjArgs(core.is_from_inside, trace, NULL);
    int declined = !trace || inside == Py_True;
    if (inside == Py_False) PyErr_Restore(type, error, trace);
    else Py_XDECREF(type), Py_XDECREF(error), Py_XDECREF(trace);
_Pragma("GCC diagnostic pop")
    Py_XDECREF(inside);
    return declined;
}

/* ------------------------------------------------------------------------------------------------------ pieces */

PyObject *tensor_of(PyObject *array)
{
    PyObject *tensor = array ? PyType_GenericAlloc((PyTypeObject *)core.Tensor, 0) : NULL;
    if (!tensor) {
        Py_XDECREF(array);
        return NULL;
    }
    SLOT(tensor, Tensor, _numbers_) = array;
    SLOT(tensor, Tensor, _vc_) = Py_NewRef(Py_None);
    SLOT(tensor, Tensor, _grad_meta_) = Py_NewRef(Py_None);
    SLOT(tensor, Tensor, _edge_) = Py_NewRef(Py_None);
    return tensor;
}

/* Where the gradient of a tensor goes, or None: gradient_edge() of autograd/edge.py. */
PyObject *edge_of(PyObject *tensor)
{
    PyObject *edge = SLOT(tensor, Tensor, _edge_), *meta = SLOT(tensor, Tensor, _grad_meta_);
    if (is_there(edge)) return Py_NewRef(edge);
    if (!is_there(meta)) Py_RETURN_NONE;
    if ((PyObject *)Py_TYPE(meta) == core.AutogradMeta) {
        PyObject *reference = SLOT(meta, AutogradMeta, grad_accumulator);
        if (SLOT(meta, AutogradMeta, requires_grad) == Py_False) Py_RETURN_NONE;
        if (is_there(reference) && PyWeakref_Check(reference)) {
            PyObject *node = behind(reference);
            if (node) {
                edge = PyTuple_Pack(2, node, core.zero);
                Py_DECREF(node);
                return edge;
            }
        }
    } else if ((PyObject *)Py_TYPE(meta) == core.DifferentiableViewMeta) {
        PyObject *counter = SLOT(tensor, Tensor, _vc_);
        edge = SLOT(meta, DifferentiableViewMeta, edge);
        /* (two ints may be equal and not the same: then Python looks) */
        if (is_there(edge) && counter && (PyObject *)Py_TYPE(counter) == core.VersionCounter &&
            SLOT(counter, VersionCounter, version) == SLOT(meta, DifferentiableViewMeta, attr_version))
            return Py_NewRef(edge);
    }
    return PyObject_CallFunctionObjArgs(core.gradient_edge, tensor, NULL);
}

static PyObject *next_number(PyObject *number)
{
    long long value = PyLong_AsLongLong(number);
    return value == -1 && PyErr_Occurred() ? NULL : PyLong_FromLongLong(value + 1);
}

static PyArrayObject *bare(PyObject *array) { return is_recorded(array) ? array_behind(array) : (PyArrayObject *)array; }

/* A node of a class with these edges (stolen), for a result: init_node() of autograd/node.py and what wrappers do. */
static PyObject *new_node(PyTypeObject *type, PyObject *state, PyObject *edges, PyObject *array)
{
    PyArrayObject *result = bare(array);
    PyObject *node = edges ? PyType_GenericAlloc(type, 0) : NULL;
    if (!node) {
        Py_XDECREF(edges);
        return NULL;
    }
    SLOT(node, Node, next_edges) = edges;
    PyObject *shared = NULL;
    for (Py_ssize_t i = 0, n = PyTuple_Size(edges); i < n; i++) {
        PyObject *edge = PyTuple_GetItem(edges, i);
        if (edge == Py_None) continue;
        PyObject *next = PyTuple_GetItem(edge, 0);
        /* One tuple for all nodes of a shape, where that is in reach. */
        if (!shared && is_there(SLOT(next, Node, array_class)) && has_shape(result, SLOT(next, Node, shape)))
            shared = SLOT(next, Node, shape);
    }
    PyObject *number = SLOT(state, ThreadState, sequence_nr), *following = number ? next_number(number) : NULL;
    if (!following) goto failed;
    SLOT(node, Node, sequence_nr) = number;
    SLOT(state, ThreadState, sequence_nr) = following;
    SLOT(node, Node, extras) = Py_NewRef(Py_None);
    SLOT(node, Node, shape) =
        shared ? Py_NewRef(shared) : PyArray_IntTupleFromIntp(PyArray_NDIM(result), PyArray_DIMS(result));
    SLOT(node, Node, dtype) = Py_NewRef((PyObject *)PyArray_DESCR(result));
    SLOT(node, Node, array_class) = Py_NewRef((PyObject *)Py_TYPE(array));
    if (SLOT(node, Node, shape)) return node;
failed:
    Py_DECREF(node);
    return NULL;
}

static PyObject *saved_input(PyObject *tensor)
{
    if (!is_plain(tensor) || is_as_saved(tensor)) return Py_NewRef(tensor); /* (or a number) */
    return PyObject_CallFunctionObjArgs(core.SavedVariable, tensor, NULL);
}

static PyObject *saved_value(const Save *save, PyObject *const *args, PyObject *const *arrays)
{
    PyArrayObject *array = bare(arrays[save->argument]); /* (if it is one) */
    switch (save->kind) {
    case 't': return saved_input(args[save->argument]);
    case 's': return PyArray_IntTupleFromIntp(PyArray_NDIM(array), PyArray_DIMS(array));
    case 'd': return Py_NewRef((PyObject *)PyArray_DESCR(array));
    case 'p': return PyArray_IntTupleFromIntp(PyArray_NDIM(array), PyArray_STRIDES(array));
    default: return Py_NewRef(arrays[save->argument]);
    }
}

/* The history of a result: 0, or -1 with an error. */
static int record(const Operator *op, PyObject *state, PyObject *const *args, PyObject *const *arrays, PyObject *result,
                  PyObject *given)
{
    PyObject *edges = PyTuple_New(op->edges), *array = SLOT(result, Tensor, _numbers_);
    unsigned there = 0;
    if (!edges) return -1;
    for (int i = 0; i < op->edges; i++) {
        PyObject *arg = args[op->of[i]];
        PyObject *edge = is_plain(arg) ? edge_of(arg) : Py_NewRef(Py_None);
        if (!edge || PyTuple_SetItem(edges, i, edge)) goto failed;
        if (edge != Py_None) there |= 1u << i;
    }
    if (!there) {
        Py_DECREF(edges);
        return 0;
    }
    PyObject *node = new_node(op->node, state, edges, array);
    if (!node) return -1;
    for (int i = 0; i < op->saves; i++) {
        const Save *save = &op->save[i];
        if (save->kind == 'r') {
            PyObject *counter = PyType_GenericAlloc((PyTypeObject *)core.VersionCounter, 0);
            if (!counter) goto node_failed;
            SLOT(counter, VersionCounter, version) = Py_NewRef(core.zero);
            SLOT_AT(node, save->offset) = Py_NewRef(array);
            SLOT_AT(node, save->counter) = Py_NewRef(counter);
            set_slot(&SLOT(result, Tensor, _vc_), counter);
        } else if (save->kind == 'k') {
            SLOT_AT(node, save->offset) = Py_NewRef(PyTuple_GetItem(given, save->argument));
        } else if (save->kind != 't' || there & save->edges) {
            if (!(SLOT_AT(node, save->offset) = saved_value(save, args, arrays))) goto node_failed;
        }
    }
    PyObject *edge = PyTuple_Pack(2, node, core.zero);
    if (!edge) goto node_failed;
    Py_DECREF(node);
    set_slot(&SLOT(result, Tensor, _edge_), edge);
    return 0;
failed:
    Py_DECREF(edges);
    return -1;
node_failed:
    Py_DECREF(node);
    return -1;
}

static PyObject *run_kernel(const Operator *op, PyObject *const *arrays)
{
    PyObject *result = NULL;
    switch (op->kernel) {
    case MUL: case ADD: case SUB: case DIV: result = small_binary(op->kernel, arrays[0], arrays[1]); break;
    case NEG: result = small_neg(arrays[0]); break;
    case SUM: result = small_sum(arrays[0]); break;
    case RSUB: result = small_binary(SUB, arrays[1], arrays[0]); break;
    case SQUARE:
        if (PyLong_CheckExact(arrays[1]) && PyLong_AsLong(arrays[1]) == 2) result = small_binary(MUL, arrays[0], arrays[0]);
        PyErr_Clear();
        break;
    }
    if (result || PyErr_Occurred()) return result;
    PyObject *all = PyTuple_New(op->arguments);
    if (!all) return NULL;
    for (int i = 0; i < op->arguments; i++) PyTuple_SetItem(all, i, Py_NewRef(arrays[i]));
    result = PyObject_Call(op->callable, all, NULL);
    Py_DECREF(all);
    return result;
}

/* The same of recorded arrays; NULL without an error: another kernel. */
static PyObject *record_kernel(const Operator *op, PyObject *const *arrays)
{
    switch (op->kernel) {
    case MUL: case ADD: case SUB: case DIV: return record_binary(op->kernel, arrays[0], arrays[1]);
    case RSUB: return record_binary(SUB, arrays[1], arrays[0]);
    case NEG: return record_unary(NEG, arrays[0]);
    case SQUARE: return arrays[1] == core.two ? record_unary(SQUARE, arrays[0]) : NULL;
    default: return NULL;
    }
}

static int is_number(PyObject *arg)
{
    if (PyFloat_CheckExact(arg)) return 1;
    int overflow;
    return PyLong_CheckExact(arg) && (PyLong_AsLongLongAndOverflow(arg, &overflow), !overflow);
}

static int is_ints(PyObject *arg)
{
    if (PyLong_CheckExact(arg)) return 1;
    if (!PyTuple_CheckExact(arg)) return 0;
    for (Py_ssize_t i = 0, n = PyTuple_Size(arg); i < n; i++)
        if (!PyLong_CheckExact(PyTuple_GetItem(arg, i))) return 0;
    return 1;
}

/* The array of an argument, or what stands in its place; NULL: not for this function. */
static PyObject *array_of(char kind, PyObject *arg)
{
    if (kind == 'T' || kind == 'A' || ((kind == 'N' || kind == 'O') && is_plain(arg))) {
        PyObject *array = is_plain(arg) ? SLOT(arg, Tensor, _numbers_) : NULL;
        if (kind != 'A') return array && (is_float_array(array) || is_recorded_float(array)) ? array : NULL;
        return array && PyArray_CheckExact(array) &&
               (PyArray_ISINTEGER((PyArrayObject *)array) || PyArray_ISBOOL((PyArrayObject *)array)) ? array : NULL;
    }
    switch (kind) {
    case 'O': return arg == Py_None ? arg : NULL;
    case 'N': case 'S': return is_number(arg) ? arg : NULL;
    case 'I': return is_number(arg) && PyLong_CheckExact(arg) ? arg : NULL;
    case 'F': return PyFloat_CheckExact(arg) ? arg : NULL;
    case 'B': return arg == Py_True || arg == Py_False ? arg : NULL;
    case 'L': return is_ints(arg) ? arg : NULL;
    default: return arg;
    }
}

/* NULL without an error: declined. */
static PyObject *operate(const Operator *op, PyObject *const *given)
{
    PyObject *args[MOST_ARGUMENTS], *arrays[MOST_ARGUMENTS], *state, *kernels_result = NULL, *result = NULL;
    int recorded = 0;
    for (int i = 0; i < op->arguments; i++) {
        args[i] = op->kinds[i] == 'C' ? op->constants[i] : given[i];
        if (!(arrays[i] = array_of(op->kinds[i], args[i]))) return NULL;
        recorded |= is_recorded(arrays[i]);
    }
    for (int i = 0; i < op->arguments; i++) Py_INCREF(arrays[i]); /* another thread may set x.data meanwhile */
    state = PyObject_GetAttr(core.local, state_name);
    if (!state || (recorded ? is_watched_by_others(state) : is_watched(state))) goto done;
    kernels_result = recorded ? record_kernel(op, arrays) : run_kernel(op, arrays);
    PyObject *array = !kernels_result || !op->besides ? kernels_result
                      : PyTuple_CheckExact(kernels_result) && PyTuple_Size(kernels_result) == 1 + op->besides
                          ? PyTuple_GetItem(kernels_result, 0)
                          : NULL;
    if (!array || !(recorded || PyArray_CheckExact(array))) goto done;
    result = tensor_of(Py_NewRef(array));
    if (!result) goto done;
    set_slot(&SLOT(result, Tensor, _vc_), Py_XNewRef(SLOT(state, ThreadState, new_vc)));
    if (op->node && SLOT(state, ThreadState, grad_enabled) == Py_True &&
        record(op, state, args, arrays, result, kernels_result))
        Py_CLEAR(result);
done:
    Py_XDECREF(state), Py_XDECREF(kernels_result);
    for (int i = 0; i < op->arguments; i++) Py_DECREF(arrays[i]);
    if (!result && !recorded) declines();
    return result;
}

/* --------------------------------------------------------------------------------------------- x[i], x[a:b], x.view */

/* A Tensor on `view`, an array in the memory of a tensor's array, made by this operator with these arguments (both stolen; NULL:
 * declined): what wrappers of views do. */
static PyObject *view_of(const View *what, PyObject *tensor, PyObject *view, PyObject *args)
{
    PyObject *edge = NULL, *result = NULL, *step = NULL, *done = NULL, *kernel = NULL;
    PyObject *array = Py_XNewRef(SLOT(tensor, Tensor, _numbers_)), *meta = Py_XNewRef(SLOT(tensor, Tensor, _grad_meta_));
    PyObject *counter = Py_XNewRef(SLOT(tensor, Tensor, _vc_));
    PyObject *state = PyObject_GetAttr(core.local, state_name);
    if (!view || !args || !state || !array || !counter || !meta) goto done;
    if (is_recorded(view) ? is_watched_by_others(state) : is_watched(state)) goto done;
    if (counter == Py_None) {
        PyObject *made = PyObject_CallFunctionObjArgs(core.version_counter, tensor, NULL);
        if (!made) goto done;
        SETREF(counter, made);
    }
    if ((PyObject *)Py_TYPE(counter) != core.VersionCounter) goto done;
    edge = SLOT(state, ThreadState, grad_enabled) == Py_True ? edge_of(tensor) : Py_NewRef(Py_None);
    if (!edge) goto done;
    if (edge != Py_None) {
        PyObject *node = new_node(what->node, state, PyTuple_Pack(1, edge), view);
        if (!node) goto done;
        PyArrayObject *from = bare(array);
        PyObject *next = PyTuple_GetItem(edge, 0), *shape = SLOT(next, Node, shape);
        if (is_there(SLOT(next, Node, array_class)) && has_shape(from, shape)) Py_INCREF(shape);
        else shape = PyArray_IntTupleFromIntp(PyArray_NDIM(from), PyArray_DIMS(from));
        SLOT_AT(node, what->shape) = shape;
        for (int i = 0; i < what->slots; i++) SLOT_AT(node, what->offsets[i]) = Py_NewRef(PyTuple_GetItem(args, i));
        SETREF(edge, PyTuple_Pack(2, node, core.zero));
        Py_DECREF(node);
        if (!edge || !shape) goto done;
    }
    kernel = is_recorded(view) ? PyObject_GetAttrString(core.kernels, what->name) : Py_NewRef(what->kernel); /* (a wrapper) */
    step = kernel ? PyTuple_Pack(4, kernel, what->function, args, Py_None) : NULL;
    result = step ? tensor_of(Py_NewRef(view)) : NULL;
    if (!result) goto done;
    set_slot(&SLOT(result, Tensor, _vc_), Py_NewRef(counter));
    if (edge != Py_None && (meta == Py_None || (PyObject *)Py_TYPE(meta) == core.AutogradMeta)) {
        PyObject *own = PyType_GenericAlloc((PyTypeObject *)core.DifferentiableViewMeta, 0);
        if (!own) goto done;
        SLOT(own, DifferentiableViewMeta, edge) = Py_NewRef(edge);
        SLOT(own, DifferentiableViewMeta, attr_version) = Py_XNewRef(SLOT(counter, VersionCounter, version));
        SLOT(own, DifferentiableViewMeta, base) = Py_NewRef(tensor);
        SLOT(own, DifferentiableViewMeta, step) = Py_NewRef(step);
        set_slot(&SLOT(result, Tensor, _grad_meta_), own);
        done = Py_NewRef(result);
    } else {
        PyObject *none = PyObject_CallFunctionObjArgs(core.as_view, state, tensor, result, step, edge, NULL);
        if (none) done = Py_NewRef(result);
        Py_XDECREF(none);
    }
done:
    if (!done) declines();
    Py_XDECREF(array), Py_XDECREF(meta), Py_XDECREF(counter), Py_XDECREF(state), Py_XDECREF(view), Py_XDECREF(edge), Py_XDECREF(result);
    Py_XDECREF(step), Py_XDECREF(args), Py_XDECREF(kernel);
    return done;
}

static PyObject *select_first(PyObject *tensor, PyObject *index)
{
    Py_ssize_t at = PyLong_AsSsize_t(index);
    if (at == -1 && PyErr_Occurred()) return PyErr_Clear(), NULL;
    PyObject *array = Py_XNewRef(SLOT(tensor, Tensor, _numbers_)), *view; /* (while Python runs, x.data may be set) */
    if (array && is_recorded_float(array)) {
        view = small_select((PyObject *)array_behind(array), at);
        SETREF(view, record_view(array, view));
    } else view = small_select(array, at);
    Py_XDECREF(array);
    return view ? view_of(&views[VIEW_SELECT], tensor, view, PyTuple_Pack(2, core.zero, index)) : (declines(), NULL);
}

static int is_bound(PyObject *bound)
{
    return bound && (bound == Py_None || (PyLong_CheckExact(bound) && is_number(bound)));
}

static PyObject *slice_first(PyObject *tensor, PyObject *key)
{
    Py_ssize_t first, last, step;
    PyObject *done = NULL, *start = PyObject_GetAttrString(key, "start"), *stop = PyObject_GetAttrString(key, "stop");
    PyObject *steps = PyObject_GetAttrString(key, "step");
    if (steps == Py_None && is_bound(start) && is_bound(stop) && !PySlice_Unpack(key, &first, &last, &step)) {
        PyObject *view = small_slice(SLOT(tensor, Tensor, _numbers_), first, last);
        if (view) done = view_of(&views[VIEW_SLICE], tensor, view, PyTuple_Pack(4, core.zero, start, stop, core.one));
    }
    if (!done) declines();
    Py_XDECREF(start), Py_XDECREF(stop), Py_XDECREF(steps);
    return done;
}

/* -------------------------------------------------------------------------------------------- Python's own signs */

static int is_tensor(PyObject *object)
{
    return core.Tensor && PyObject_TypeCheck(object, (PyTypeObject *)core.Tensor);
}

static PyObject *binary_sign(const Sign *sign, PyObject *a, PyObject *b)
{
    PyObject *result = NULL;
    if (is_plain(a)) {
        PyObject *args[2] = {a, b};
        if (sign->straight) result = operate(sign->straight, args);
    } else if (sign->reflected && is_plain(b)) {
        PyObject *args[2] = {b, a};
        result = operate(sign->reflected, args);
    }
    if (result || PyErr_Occurred()) return result;
    int left = is_tensor(a), right = is_tensor(b);
    if (left && sign->python) {
        result = PyObject_CallFunctionObjArgs(sign->python, a, b, NULL);
        if (result != Py_NotImplemented || !right || Py_TYPE(a) == Py_TYPE(b)) return result;
        Py_DECREF(result);
    }
    if (right && sign->python_reflected) return PyObject_CallFunctionObjArgs(sign->python_reflected, b, a, NULL);
    Py_RETURN_NOTIMPLEMENTED;
}

static PyObject *multiply(PyObject *a, PyObject *b) { return binary_sign(&signs[SIGN_MUL], a, b); }
static PyObject *add(PyObject *a, PyObject *b) { return binary_sign(&signs[SIGN_ADD], a, b); }
static PyObject *subtract(PyObject *a, PyObject *b) { return binary_sign(&signs[SIGN_SUB], a, b); }
static PyObject *divide(PyObject *a, PyObject *b) { return binary_sign(&signs[SIGN_DIV], a, b); }

static PyObject *power(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None && !is_tensor(a)) { /* the exponent is asked since Python 3.14 */
        if (Py_Version < 0x030E0000 || !is_tensor(b)) Py_RETURN_NOTIMPLEMENTED;
        return PyObject_CallFunctionObjArgs(signs[SIGN_POW].python_reflected, b, a, modulus, NULL);
    }
    if (modulus != Py_None) return PyObject_CallFunctionObjArgs(signs[SIGN_POW].python, a, b, modulus, NULL);
    return binary_sign(&signs[SIGN_POW], a, b);
}

static PyObject *minus(PyObject *a)
{
    PyObject *result = signs[SIGN_NEG].straight ? operate(signs[SIGN_NEG].straight, &a) : NULL;
    return result || PyErr_Occurred() ? result : PyObject_CallFunctionObjArgs(signs[SIGN_NEG].python, a, NULL);
}

static PyObject *item(PyObject *a, PyObject *key)
{
    if (is_plain(a) && (PyLong_CheckExact(key) || PySlice_Check(key))) {
        PyObject *result = PySlice_Check(key) ? slice_first(a, key) : select_first(a, key);
        if (result || PyErr_Occurred()) return result;
    }
    return PyObject_CallFunctionObjArgs(signs[SIGN_ITEM].python, a, key, NULL);
}

static PyType_Slot sign_slots[] = {
    {Py_nb_multiply, multiply}, {Py_nb_add, add}, {Py_nb_subtract, subtract}, {Py_nb_true_divide, divide},
    {Py_nb_power, power}, {Py_nb_negative, minus}, {Py_mp_subscript, item},
    {Py_tp_doc, "Python's signs between Tensors: what Tensor inherits where the compiled core is used."},
    {0, NULL},
};
PyType_Spec signs_spec = {
    .name = "retrograd_fast._core.Signs", .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, .slots = sign_slots,
};

/* The Python function of a method. */
static PyObject *call_python(PyObject *function, PyObject *self, PyObject *args, PyObject *keywords)
{
    Py_ssize_t n = PyTuple_Size(args);
    PyObject *all = PyTuple_New(1 + n);
    if (!all) return NULL;
    PyTuple_SetItem(all, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SetItem(all, i + 1, Py_NewRef(PyTuple_GetItem(args, i)));
    PyObject *result = PyObject_Call(function, all, keywords);
    Py_DECREF(all);
    return result;
}

static PyObject *sum_method(PyObject *self, PyObject *args, PyObject *keywords)
{
    if (is_plain(self) && !PyTuple_Size(args) && (!keywords || !PyDict_Size(keywords)) && signs[SIGN_SUM].straight) {
        PyObject *result = operate(signs[SIGN_SUM].straight, &self);
        if (result || PyErr_Occurred()) return result;
    }
    return call_python(signs[SIGN_SUM].python, self, args, keywords);
}
static PyMethodDef sum_definition = {
    "sum", (PyCFunction)(void (*)(void))sum_method, METH_VARARGS | METH_KEYWORDS,
    "sum($self, /, dim=None, keepdim=False, *, dtype=None, out=None, **aliases)\n--\n\n"
    "The sum of all elements, or along some dimensions.",
};

/* x.view(2, 3), of a contiguous array and sizes that are all given; anything else is Python's. */
static PyObject *python_view;
static PyObject *view_method(PyObject *self, PyObject *args, PyObject *keywords)
{
    if (is_plain(self) && (!keywords || !PyDict_Size(keywords))) {
        PyObject *view = small_reshape(SLOT(self, Tensor, _numbers_), args);
        PyObject *result = view ? view_of(&views[VIEW_VIEW], self, view, PyTuple_Pack(1, args)) : (PyErr_Clear(), NULL);
        if (result || PyErr_Occurred()) return result;
    }
    return call_python(python_view, self, args, keywords);
}
static PyMethodDef view_definition = {
    "view", (PyCFunction)(void (*)(void))view_method, METH_VARARGS | METH_KEYWORDS,
    "view($self, /, *shape, size=None, dtype=None)\n--\n\nThe same memory in another shape, or read as another dtype.",
};

/* ------------------------------------------------------------------------------------------------- descriptions */

static int find_kernel(PyObject *name)
{
    for (int i = 0; i < (int)(sizeof kernel_names / sizeof *kernel_names); i++)
        if (PyUnicode_CompareWithASCIIString(name, kernel_names[i]) == 0) return i;
    return -1;
}

/* (kinds, constants, kernel's name, kernel, node, edges, saves); a save is (kind, argument, edges, slot, counter's slot). */
static Operator *read_operator(PyObject *description)
{
    const char *kinds;
    PyObject *constants, *name, *kernel, *node, *edges, *saves;
    Operator *op = PyMem_Calloc(1, sizeof *op);
    if (!op) return (Operator *)PyErr_NoMemory();
    if (!PyArg_ParseTuple(description, "sO!OOOO!O!", &kinds, &PyTuple_Type, &constants, &name, &kernel, &node, &PyTuple_Type,
                          &edges, &PyTuple_Type, &saves))
        goto failed;
    op->arguments = (int)strlen(kinds);
    op->edges = (int)PyTuple_Size(edges), op->saves = (int)PyTuple_Size(saves);
    if (op->arguments > MOST_ARGUMENTS || op->edges > MOST_EDGES || op->saves > MOST_SAVES ||
        PyTuple_Size(constants) != op->arguments) {
        PyErr_SetString(PyExc_ValueError, "an operator of more than the compiled core was made for");
        goto failed;
    }
    for (int i = 0; i < op->arguments; i++) op->kinds[i] = kinds[i], op->constants[i] = Py_NewRef(PyTuple_GetItem(constants, i));
    op->kernel = find_kernel(name), op->callable = Py_NewRef(kernel);
    for (int i = 0; i < op->edges; i++) op->of[i] = (int)PyLong_AsLong(PyTuple_GetItem(edges, i));
    op->node = node == Py_None ? NULL : (PyTypeObject *)Py_NewRef(node);
    for (int i = 0; i < op->saves; i++) {
        const char *kind, *slot, *counter;
        Save *save = &op->save[i];
        if (!PyArg_ParseTuple(PyTuple_GetItem(saves, i), "siIsz", &kind, &save->argument, &save->edges, &slot, &counter))
            goto failed;
        save->kind = *kind;
        op->besides += *kind == 'k';
        if ((save->offset = slot_offset(node, slot)) == -1) goto failed;
        if (counter && (save->counter = slot_offset(node, counter)) == -1) goto failed;
    }
    if (!PyErr_Occurred()) return op;
failed:
    PyMem_Free(op);
    return NULL;
}

/* ------------------------------------------------------------------------------------------------ functions */

/* Read when it is first called: of hundreds of operators a program calls few. Lives as long as the process. */
typedef struct {
    PyObject *description;
    Operator *op;
} Described;

/* What a function of the package asks first: None where it declines. */
static PyObject *call_operator(PyObject *capsule, PyObject *const *args, Py_ssize_t count)
{
    Described *described = PyCapsule_GetPointer(capsule, NULL);
    if (!described || (!described->op && !(described->op = read_operator(described->description)))) return NULL;
    const Operator *op = described->op;
    int plain = core.Tensor && count == op->arguments;
    for (int i = 0; plain && i < op->arguments; i++) plain = op->kinds[i] != 'C' || args[i] == op->constants[i];
    PyObject *result = plain ? operate(op, args) : NULL;
    if (result || PyErr_Occurred()) return result;
    Py_RETURN_NONE;
}
static PyMethodDef call_definition = {"operator", (PyCFunction)(void (*)(void))call_operator, METH_FASTCALL, NULL};

/* A function of all arguments of an operator, from its description. */
PyObject *make_operator(PyObject *self, PyObject *description)
{
    (void)self;
    Described *described = PyMem_Calloc(1, sizeof *described);
    PyObject *capsule = described ? PyCapsule_New(described, NULL, NULL) : PyErr_NoMemory();
    if (!capsule) return NULL;
    described->description = Py_NewRef(description);
    PyObject *function = PyCFunction_NewEx(&call_definition, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}

/* {name of a special method: (Python's function, description or None)}; and {name of a view operator:
 * (node, kernel, function)}. Returns the methods for Tensor.sum and Tensor.view. */
PyObject *define_operators(PyObject *self, PyObject *definitions)
{
    (void)self;
    if (!state_name && !(state_name = PyUnicode_InternFromString("state"))) return NULL;
    for (int i = 0; i < SIGNS; i++) {
        for (int reflected = 0; reflected < 2; reflected++) {
            const char *name = reflected ? signs[i].reflected_name : signs[i].name;
            PyObject *python, *description, *given = name ? PyDict_GetItemString(definitions, name) : NULL;
            if (!name) continue;
            if (!given || !PyArg_ParseTuple(given, "OO", &python, &description)) {
                if (!PyErr_Occurred()) PyErr_Format(PyExc_KeyError, "%s is not defined", name);
                return NULL;
            }
            Operator *op = NULL;
            if (description != Py_None && !(op = read_operator(description))) return NULL;
            *(reflected ? &signs[i].reflected : &signs[i].straight) = op;
            *(reflected ? &signs[i].python_reflected : &signs[i].python) = Py_NewRef(python);
        }
    }
    for (View *view = views; view < views + VIEWS; view++) {
        PyObject *node, *kernel, *function, *given = PyDict_GetItemString(definitions, view->name);
        if (!given || !PyArg_ParseTuple(given, "OOO", &node, &kernel, &function)) return NULL;
        if ((view->shape = slot_offset(node, "self_shape")) == -1) return NULL;
        for (int i = 0; i < view->slots; i++)
            if ((view->offsets[i] = slot_offset(node, view->slot_names[i])) == -1) return NULL;
        view->kernel = Py_NewRef(kernel), view->function = Py_NewRef(function);
        view->node = (PyTypeObject *)Py_NewRef(node);
    }
    if (!(python_view = PyObject_GetAttrString(core.Tensor, "view"))) return NULL;
    PyObject *sum = PyDescr_NewMethod((PyTypeObject *)core.Tensor, &sum_definition);
    PyObject *view = PyDescr_NewMethod((PyTypeObject *)core.Tensor, &view_definition);
    PyObject *both = sum && view ? PyTuple_Pack(2, sum, view) : NULL;
    Py_XDECREF(sum), Py_XDECREF(view);
    return both;
}
