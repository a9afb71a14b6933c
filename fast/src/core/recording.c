/* Steps that are captured: pair(), again(), zeros(), copy() and view_of() of capture/recording.py, for arrays of one floating
 * dtype. What is recorded are the package's own Storages, Values and Calls, in the recorder's own lists, so that any call may be
 * noted on either side. Values of calls that come again are in Storages of the earlier recording, with the same numbers: no
 * program is made of a recording that has an earlier one, it only has to be the same.
 *
 * At the end, what captures ask about objects of the package often enough: of nodes, storages, arrays, and the world.
 */
#include "recorded.h"

Known known;

/* Who records, in the one thread that does; all of it is NULL while nobody does. Calls of Python may change none of it: what a
 * thread captures while it records is not recorded for itself. */
static struct {
    PyObject *recorder, *calls, *storages, *unplaced, *earlier, *numbers, *token;
    unsigned long thread;
    PyObject *task, *place;  /* a backward pass (not held), and the line that all of its calls come from */
    PyObject *code, *places; /* the function that runs, if it is the user's, and its lines by instruction */
} now;

/* (the thread is asked for, since others may meet what this one has recorded) */
static int is_recording(void) { return now.recorder && PyThread_get_thread_ident() == now.thread; }

int is_recorder(PyObject *observer) { return observer == now.recorder; }
int somebody_records(void) { return now.recorder != NULL; }

PyArrayObject *array_behind(PyObject *boxed) { return (PyArrayObject *)RSLOT(boxed, RecordedArray, array); }

/* Of float32 or float64? Then it is a plain operand, for the thread that records. */
int is_recorded_float(PyObject *object)
{
    return is_recorded(object) && is_float_array((PyObject *)array_behind(object)) &&
           RSLOT(object, RecordedArray, recorder) == now.recorder && is_recording();
}

int recorded_fits(PyObject *boxed, PyObject *dtype, PyObject *shape)
{
    return RSLOT(boxed, RecordedArray, dtype) == dtype && has_shape(array_behind(boxed), shape);
}

/* ------------------------------------------------------------------------------------------------ storages and values */

static int append(PyObject *list, PyObject *stolen)
{
    int failed = !stolen || PyList_Append(list, stolen);
    Py_XDECREF(stolen);
    return failed;
}

/* A Storage of the memory that a new array owns, which is `held` itself or weakly; `like`, a value, may have as many bytes. */
static PyObject *new_storage(PyObject *array, int held, PyObject *like)
{
    PyObject *storage = PyType_GenericAlloc((PyTypeObject *)known.Storage, 0);
    if (!storage) return NULL;
    RSLOT(storage, Storage, _start) = Py_NewRef(Py_None);
    RSLOT(storage, Storage, kind) = Py_NewRef(known.new);
    RSLOT(storage, Storage, held) = held ? Py_NewRef(array) : PyWeakref_NewRef(array, NULL);
    RSLOT(storage, Storage, number) = PyLong_FromSsize_t(PyList_Size(now.storages));
    PyObject *size = RSLOT(storage_of(like), Storage, size);
    Py_ssize_t bytes = PyArray_NBYTES((PyArrayObject *)array);
    RSLOT(storage, Storage, size) = PyLong_AsSsize_t(size) == bytes ? Py_NewRef(size) : PyLong_FromSsize_t(bytes);
    if (!RSLOT(storage, Storage, held) || !RSLOT(storage, Storage, number) || !RSLOT(storage, Storage, size) ||
        PyList_Append(now.storages, storage) || PyList_Append(now.unplaced, storage))
        Py_CLEAR(storage);
    return storage;
}

static int has_strides(PyArrayObject *a, PyObject *strides)
{
    int dims = PyArray_NDIM(a);
    if (!strides || !PyTuple_Check(strides) || PyTuple_Size(strides) != dims) return 0;
    for (int i = 0; i < dims; i++)
        if (PyLong_AsSsize_t(PyTuple_GetItem(strides, i)) != PyArray_STRIDE(a, i)) return 0;
    return 1;
}

/* A Value: an array at an offset of a storage; `like`, another one, may look the same. */
static PyObject *new_value(PyObject *storage, Py_ssize_t offset, PyArrayObject *array, PyObject *like)
{
    PyObject *value = PyType_GenericAlloc((PyTypeObject *)known.Value, 0);
    if (!value) return NULL;
    int dims = PyArray_NDIM(array);
    PyObject *shape = RSLOT(like, Value, shape), *strides = RSLOT(like, Value, strides);
    shape = has_shape(array, shape) ? Py_NewRef(shape) : PyArray_IntTupleFromIntp(dims, PyArray_DIMS(array));
    strides = has_strides(array, strides) ? Py_NewRef(strides) : PyArray_IntTupleFromIntp(dims, PyArray_STRIDES(array));
    RSLOT(value, Value, storage) = Py_NewRef(storage);
    PyObject *kind = RSLOT(storage, Storage, kind);
    RSLOT(value, Value, array) = Py_NewRef(kind == known.outside || kind == known.number ? (PyObject *)array : Py_None);
    RSLOT(value, Value, dtype) = Py_NewRef((PyObject *)PyArray_DESCR(array));
    RSLOT(value, Value, shape) = shape;
    RSLOT(value, Value, strides) = strides;
    RSLOT(value, Value, offset) = PyLong_FromSsize_t(offset);
    if (!shape || !strides || !RSLOT(value, Value, offset)) Py_CLEAR(value);
    return value; /* (its key is made when somebody asks for it) */
}

/* A RecordedArray of an array and its value. */
static PyObject *box(PyObject *array, PyObject *value)
{
    PyObject *boxed = PyType_GenericAlloc((PyTypeObject *)known.RecordedArray, 0);
    if (!boxed) return NULL;
    RSLOT(boxed, RecordedArray, array) = Py_NewRef(array);
    RSLOT(boxed, RecordedArray, recorder) = Py_NewRef(now.recorder);
    RSLOT(boxed, RecordedArray, value) = Py_NewRef(value);
    RSLOT(boxed, RecordedArray, shape) = Py_NewRef(RSLOT(value, Value, shape));
    RSLOT(boxed, RecordedArray, dtype) = Py_NewRef(RSLOT(value, Value, dtype));
    RSLOT(boxed, RecordedArray, token) = Py_NewRef(now.token);
    return boxed;
}

/* The value of a recorded array, new. */
static PyObject *value_of(PyObject *boxed)
{
    PyObject *value = RSLOT(boxed, RecordedArray, value);
    return is_there(value) ? Py_NewRef(value) : PyObject_CallMethodObjArgs(now.recorder, known.of, boxed, NULL);
}

/* The value of a number beside arrays of a dtype: number() of the recorder, which makes it once. */
static PyObject *value_of_number(PyObject *number, PyArray_Descr *dtype)
{
    PyObject *which = PyObject_IsTrue(number) ? Py_NewRef(number) : PyObject_Repr(number);
    PyObject *key = which ? PyTuple_Pack(3, (PyObject *)Py_TYPE(number), which, (PyObject *)dtype) : NULL;
    PyObject *value = key ? Py_XNewRef(PyDict_GetItemWithError(now.numbers, key)) : NULL;
    Py_XDECREF(which), Py_XDECREF(key);
    if (value || PyErr_Occurred()) return value;
    return PyObject_CallMethodObjArgs(now.recorder, known.number, number, (PyObject *)dtype, NULL);
}

/* ------------------------------------------------------------------------------------------------------------ calls */

static int are_equal(PyObject *one, PyObject *two)
{
    int same = one == two ? 1 : PyObject_RichCompareBool(one, two, Py_EQ);
    if (same < 0) PyErr_Clear();
    return same > 0;
}

static int are_same(PyObject *one, PyObject *two)
{
    if (one == two) return 1;
    if (Py_TYPE(one) != Py_TYPE(two)) return 0;
    if ((PyObject *)Py_TYPE(one) != known.Value)
        return (PyTuple_CheckExact(one) || PyArray_DescrCheck(one)) && are_equal(one, two);
    return number_of(storage_of(one)) == number_of(storage_of(two)) && /* what their keys consist of */
           are_equal(RSLOT(one, Value, offset), RSLOT(two, Value, offset)) &&
           are_equal(RSLOT(one, Value, shape), RSLOT(two, Value, shape)) &&
           are_equal(RSLOT(one, Value, strides), RSLOT(two, Value, strides)) &&
           are_equal(RSLOT(one, Value, dtype), RSLOT(two, Value, dtype));
}

/* The call that the earlier recording has here (borrowed), if it is of this function with these arguments; else NULL. */
static PyObject *earlier_call(PyObject *function, PyObject *args)
{
    Py_ssize_t position = PyList_Size(now.calls), n = PyTuple_Size(args);
    if (position >= PyList_Size(now.earlier)) return NULL;
    PyObject *call = PyList_GetItem(now.earlier, position), *others = RSLOT(call, Call, args);
    if (RSLOT(call, Call, function) != function || RSLOT(call, Call, kwargs) != known.NOTHING) return NULL;
    if (!PyTuple_CheckExact(others) || PyTuple_Size(others) != n) return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!are_same(PyTuple_GetItem(others, i), PyTuple_GetItem(args, i))) return NULL;
    return call;
}

/* The value (borrowed) of what an earlier call has made, if a new array takes its place; else NULL. */
static PyObject *made_earlier(PyObject *call)
{
    PyObject *results = RSLOT(call, Call, results);
    if (!PyTuple_CheckExact(results) || PyTuple_Size(results) != 1) return NULL;
    PyObject *value = PyTuple_GetItem(results, 0);
    if (value == Py_None || RSLOT(value, Value, array) != Py_None) return NULL;
    return number_of(storage_of(value)) == PyList_Size(now.storages) ? value : NULL;
}

/* The user's line that runs: here() of the recorder, which is asked where it is not the function that called. */
static PyObject *where(void)
{
    if (now.task) {
        PyObject *state = PyObject_GetAttr(core.local, known.state), *task = state ? SLOT(state, ThreadState, graph_task) : NULL;
        Py_XDECREF(state);
        if (!task) return NULL;
        if (task == now.task) return Py_NewRef(now.place);
    }
    PyFrameObject *frame = PyEval_GetFrame();
    PyObject *code = frame ? (PyObject *)PyFrame_GetCode(frame) : NULL, *found = NULL, *instruction = NULL;
    if (!code) return PyObject_CallMethodObjArgs(now.recorder, known.here, NULL);
    if (code != now.code) {
        PyObject *users = PyObject_CallFunctionObjArgs(known.is_user_code, code, NULL);
        if (users == Py_True) {
            SETREF(now.code, Py_NewRef(code));
            SETREF(now.places, PyDict_New());
        }
        Py_XDECREF(users);
        if (users != Py_True) {
            Py_DECREF(code);
            return users ? PyObject_CallMethodObjArgs(now.recorder, known.here, NULL) : NULL;
        }
    }
    Py_DECREF(code);
    if (now.places && (instruction = PyObject_GetAttr((PyObject *)frame, known.f_lasti))) {
        found = Py_XNewRef(PyDict_GetItemWithError(now.places, instruction));
        if (!found && !PyErr_Occurred() && (found = PyObject_CallMethodObjArgs(now.recorder, known.here, NULL)) &&
            PyDict_SetItem(now.places, instruction, found))
            Py_CLEAR(found);
        Py_DECREF(instruction);
    }
    return found;
}

/* Note a call: its arguments (a tuple), those of them that are read, what is made or written (a Value, which the other is not). */
static int note(PyObject *kind, PyObject *name, PyObject *function, PyObject *args, PyObject *reads, PyObject *made,
                PyObject *written)
{
    PyObject *call = PyType_GenericAlloc((PyTypeObject *)known.Call, 0);
    if (!call) return -1;
    RSLOT(call, Call, kind) = Py_NewRef(kind);
    RSLOT(call, Call, name) = Py_NewRef(name);
    RSLOT(call, Call, function) = Py_NewRef(function);
    RSLOT(call, Call, args) = Py_NewRef(args);
    RSLOT(call, Call, reads) = Py_NewRef(reads);
    RSLOT(call, Call, kwargs) = Py_NewRef(known.NOTHING);
    RSLOT(call, Call, impure) = Py_NewRef(Py_False);
    RSLOT(call, Call, looks) = Py_NewRef(Py_False);
    RSLOT(call, Call, may_raise) = Py_NewRef(kind == known.opaque ? Py_True : Py_False);
    RSLOT(call, Call, results) = made ? PyTuple_Pack(1, made) : Py_NewRef(known.empty);
    RSLOT(call, Call, writes) = written ? PyTuple_Pack(1, written) : Py_NewRef(known.empty);
    RSLOT(call, Call, where) = where();
    if (!RSLOT(call, Call, results) || !RSLOT(call, Call, writes) || !RSLOT(call, Call, where)) {
        Py_DECREF(call);
        return -1;
    }
    return append(now.calls, call) ? -1 : 0;
}

/* An array (stolen) that a call has made, recorded: a call of the earlier recording comes again, or is new. `reads` are those of
 * its arguments that are Values; `held`: it may be a constant. */
static PyObject *made(PyObject *kind, PyObject *name, PyObject *function, PyObject *args, PyObject *reads, PyObject *array,
                      PyObject *like, int held)
{
    PyObject *call = earlier_call(function, args), *value = call ? made_earlier(call) : NULL, *result = NULL;
    PyObject *storage = new_storage(array, held && !value, like);
    if (!storage) goto done;
    if (value) {
        if (!PyList_Append(now.calls, call)) result = box(array, value);
    } else if ((value = new_value(storage, 0, (PyArrayObject *)array, like))) {
        if (!note(kind, name, function, args, reads, value, NULL)) result = box(array, value);
        Py_DECREF(value);
    }
done:
    Py_XDECREF(storage);
    Py_DECREF(array);
    return result;
}

/* ------------------------------------------------------------------------------------------------------- operations */

typedef struct {
    PyArrayObject *array;
    PyObject *value;
} Operand;

/* An operand of an array's dtype, recorded or a number: 0; or -1, if there is no error: for neither. */
static int find(PyObject *object, PyArray_Descr *dtype, Operand *found)
{
    if (is_recorded_float(object)) {
        found->array = array_behind(object);
        if (PyArray_DESCR(found->array) != dtype || !PyArray_SIZE(found->array)) return -1;
        return (found->value = value_of(object)) ? 0 : -1;
    }
    double number = PyFloat_CheckExact(object)  ? PyFloat_AsDouble(object)
                    : PyLong_CheckExact(object) ? PyLong_AsDouble(object)
                                                : 1e30;
    if (PyErr_Occurred() || !(number > -1e30 && number < 1e30)) return PyErr_Clear(), -1; /* (_MUCH) */
    if (!(found->value = value_of_number(object, dtype))) return -1;
    found->array = (PyArrayObject *)RSLOT(found->value, Value, array);
    return 0;
}

static PyObject *as_array(PyObject *stolen) { return stolen ? PyArray_EnsureArray(stolen) : NULL; }

PyObject *record_binary(int operation, PyObject *a, PyObject *b)
{
    PyObject *first = is_recorded_float(a) ? a : is_recorded_float(b) ? b : NULL, *result = NULL, *array = NULL, *args = NULL;
    if (!first) return NULL;
    PyArray_Descr *dtype = PyArray_DESCR(array_behind(first));
    Operand x = {NULL, NULL}, y = {NULL, NULL};
    if (find(a, dtype, &x) || find(b, dtype, &y)) goto done;
    int dims = PyArray_NDIM(x.array);
    if (dims && PyArray_NDIM(y.array) && !PyArray_SAMESHAPE(x.array, y.array)) goto done;
    array = small_binary(operation, (PyObject *)x.array, (PyObject *)y.array);
    if (!array && !PyErr_Occurred())
        array = as_array(PyObject_CallFunctionObjArgs(known.ufuncs[operation], x.array, y.array, NULL));
    args = array ? PyTuple_Pack(2, x.value, y.value) : NULL;
    if (args)
        result = made(known.ufunc, known.names[operation], known.ufuncs[operation], args, args, Py_NewRef(array),
                      dims ? x.value : y.value, may_be_constant(storage_of(x.value)) && may_be_constant(storage_of(y.value)));
done:
    Py_XDECREF(x.value), Py_XDECREF(y.value), Py_XDECREF(array), Py_XDECREF(args);
    return result;
}

PyObject *record_unary(int operation, PyObject *a)
{
    if (!is_recorded_float(a) || !PyArray_SIZE(array_behind(a))) return NULL;
    PyObject *result = NULL, *array, *args = NULL, *value = value_of(a), *from = (PyObject *)array_behind(a);
    if (!value) return NULL;
    array = operation == NEG ? small_neg(from) : small_binary(MUL, from, from);
    if (!array && !PyErr_Occurred()) array = as_array(PyObject_CallFunctionObjArgs(known.ufuncs[operation], from, NULL));
    args = array ? PyTuple_Pack(1, value) : NULL;
    if (args)
        result = made(known.ufunc, known.names[operation], known.ufuncs[operation], args, args, Py_NewRef(array), value,
                      may_be_constant(storage_of(value)));
    Py_DECREF(value);
    Py_XDECREF(array), Py_XDECREF(args);
    return result;
}

PyObject *record_view(PyObject *boxed, PyObject *view)
{
    if (!view || !PyArray_SIZE((PyArrayObject *)view)) return NULL;
    PyObject *whole = value_of(boxed), *result = NULL, *value = NULL;
    if (!whole) return NULL;
    /* (not the storage of an earlier recording) */
    PyObject *storage = PyList_GetItem(now.storages, number_of(storage_of(whole)));
    Py_ssize_t offset = PyLong_AsSsize_t(RSLOT(whole, Value, offset)) +
                        (PyArray_BYTES((PyArrayObject *)view) - PyArray_BYTES(array_behind(boxed)));
    if (storage && (value = new_value(storage, offset, (PyArrayObject *)view, whole))) result = box(view, value);
    Py_DECREF(whole);
    Py_XDECREF(value);
    return result;
}

/* Note that a value was written: the earlier recording's call, or a new one. */
static int wrote(PyObject *kind, PyObject *name, PyObject *function, PyObject *args, PyObject *written)
{
    PyObject *call = earlier_call(function, args);
    PyObject *writes = call ? RSLOT(call, Call, writes) : NULL;
    if (writes && PyTuple_CheckExact(writes) && PyTuple_Size(writes) == 1 && are_same(PyTuple_GetItem(writes, 0), written))
        return PyList_Append(now.calls, call);
    return note(kind, name, function, args, args, NULL, written);
}

PyObject *record_select_backward(PyObject *grad, PyObject *shape, PyObject *dim, PyObject *index)
{
    if (!is_recorded_float(grad)) return NULL;
    PyArrayObject *from = array_behind(grad);
    PyObject *result = NULL, *place = NULL, *part = NULL, *args = NULL, *read = NULL, *failed = NULL;
    PyObject *array = PyArray_SIZE(from) ? small_select_backward((PyObject *)from, shape, dim, index) : NULL;
    if (!array) return NULL;
    Py_ssize_t at = PyLong_AsSsize_t(index);
    if (!(read = value_of(grad)) || !(place = small_select(array, at))) goto done;
    args = PyTuple_Pack(2, shape, (PyObject *)PyArray_DESCR(from));
    failed = result = args ? made(known.opaque, known.zeros_name, known.zeros, args, known.empty, Py_NewRef(array), read, 1) : NULL;
    if (!result) goto done;
    Py_ssize_t offset = PyArray_BYTES((PyArrayObject *)place) - PyArray_BYTES((PyArrayObject *)array);
    part = new_value(storage_of(RSLOT(result, RecordedArray, value)), offset, (PyArrayObject *)place, read);
    SETREF(args, PyTuple_Pack(1, read));
    if (part && args && !wrote(known.copy, known.copyto_name, known.copyto, args, part)) failed = NULL;
done:
    if (failed) Py_CLEAR(result);
    Py_DECREF(array);
    Py_XDECREF(place), Py_XDECREF(part), Py_XDECREF(args), Py_XDECREF(read);
    return result;
}

int record_accumulate(PyObject *sum, PyObject *a)
{
    if (!is_recorded_float(sum) || !is_recorded_float(a)) return 0;
    PyObject *to = value_of(sum), *from = to ? value_of(a) : NULL, *args = from ? PyTuple_Pack(2, to, from) : NULL;
    int done = args ? 0 : -1;
    if (args && is_new(storage_of(to)) && /* else it is kept for a step that fails */
        small_accumulate((PyObject *)array_behind(sum), (PyObject *)array_behind(a)))
        done = wrote(known.ufunc, known.names[ADD], known.ufuncs[ADD], args, to) ? -1 : 1;
    Py_XDECREF(to), Py_XDECREF(from), Py_XDECREF(args);
    return done;
}

/* ----------------------------------------------------------------------------------------------------------- set-up */

/* know_recordings(names): the classes, what NOTHING is, and functions of NumPy. */
PyObject *know_recordings(PyObject *self, PyObject *names)
{
    (void)self;
#define OBJECT(name) \
    if (!(known.name = Py_XNewRef(PyDict_GetItemString(names, #name)))) \
        return PyErr_Format(PyExc_KeyError, "the compiled core needs " #name);
    CLASSES(OBJECT)
    PARTS(OBJECT)
#undef OBJECT
#define OFFSET(type, slot) \
    if ((known.type##_##slot = slot_offset(known.type, #slot)) == -1) return NULL;
    RECORD_SLOTS(OFFSET)
#undef OFFSET
    static const struct {
        int operation;
        const char *name;
    } ufuncs[] = {{MUL, "multiply"}, {ADD, "add"}, {SUB, "subtract"}, {DIV, "true_divide"}, {NEG, "negative"}, {SQUARE, "square"}};
    for (size_t i = 0; i < sizeof ufuncs / sizeof *ufuncs; i++) {
        PyObject *ufunc = PyDict_GetItemString(names, ufuncs[i].name);
        if (!ufunc) return PyErr_Format(PyExc_KeyError, "the compiled core needs %s", ufuncs[i].name);
        PyObject *own = PyObject_GetAttrString(ufunc, "__name__"); /* (which may be another) */
        PyObject *name = own ? PyUnicode_FromFormat("np.%U", own) : NULL;
        Py_XDECREF(own);
        if (!name) return NULL;
        known.ufuncs[ufuncs[i].operation] = Py_NewRef(ufunc), known.names[ufuncs[i].operation] = name;
    }
#define OBJECT(name) \
    if (!(known.name = PyUnicode_InternFromString(#name))) return NULL;
    TEXTS(OBJECT)
#undef OBJECT
    known.copyto_name = PyUnicode_InternFromString("np.copyto"), known.zeros_name = PyUnicode_InternFromString("np.zeros");
    known.ones_name = PyUnicode_InternFromString("np.ones");
    if (!known.copyto_name || !known.zeros_name || !known.ones_name) return NULL;
    if (!(known.empty = PyTuple_New(0))) return NULL;
    core.RecordedArray = known.RecordedArray;
    Py_RETURN_NONE;
}

/* record_with(recorder): it records from now on, in this thread; record_with(None): nobody does. */
PyObject *record_with(PyObject *self, PyObject *recorder)
{
    (void)self;
    static const struct {
        PyObject **place;
        const char *name;
    } lists[] = {
        {&now.calls, "calls"}, {&now.storages, "storages"}, {&now.unplaced, "unplaced"},
        {&now.earlier, "earlier"}, {&now.numbers, "numbers"},
    };
    Py_CLEAR(now.recorder);
    Py_CLEAR(now.token);
    Py_CLEAR(now.place);
    Py_CLEAR(now.code);
    Py_CLEAR(now.places);
    now.task = NULL;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) Py_CLEAR(*lists[i].place);
    if (recorder == Py_None) Py_RETURN_NONE;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        PyObject *list = *lists[i].place = PyObject_GetAttrString(recorder, lists[i].name);
        if (!list) return NULL;
        if (!(lists[i].place == &now.numbers ? PyDict_CheckExact(list) : PyList_CheckExact(list)))
            return PyErr_Format(PyExc_TypeError, "%s of a recorder is no list", lists[i].name);
    }
    if (!(now.token = PyObject_GetAttrString(recorder, "token"))) return NULL;
    now.thread = PyThread_get_thread_ident();
    now.recorder = Py_NewRef(recorder);
    Py_RETURN_NONE;
}

/* are_plain_nodes(nodes, first): were all made since that number, by operators of the package, and do they have no hooks? None: of
 * some Python has to know. */
PyObject *are_plain_nodes(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 2 || !PyList_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "are_plain_nodes() takes a list of nodes and a number");
        return NULL;
    }
    long long first = PyLong_AsLongLong(args[1]);
    for (Py_ssize_t i = 0, n = PyList_Size(args[0]); i < n; i++) {
        PyObject *node = PyList_GetItem(args[0], i), *number = SLOT(node, Node, sequence_nr);
        int overflow = 0;
        if (is_there(SLOT(node, Node, extras)) || !number) Py_RETURN_FALSE;
        if (PyLong_AsLongLongAndOverflow(number, &overflow) < first && overflow <= 0) Py_RETURN_FALSE;
        if ((PyObject *)Py_TYPE(node) == core.AccumulateGrad) {
            PyObject *variable = SLOT(node, AccumulateGrad, variable), *meta = variable ? SLOT(variable, Tensor, _grad_meta_) : NULL;
            if (!meta || (PyObject *)Py_TYPE(meta) != core.AutogradMeta) Py_RETURN_NONE;
            if (SLOT(meta, AutogradMeta, post_accumulate_grad_hooks) != Py_None) Py_RETURN_FALSE;
        } else if (!formula_of(Py_TYPE(node))) { /* (which those of the package have) */
            if (PyErr_Occurred()) return NULL;
            Py_RETURN_NONE;
        }
    }
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_TRUE;
}

/* holders(recorder): how many hold its token, beside itself: the recorded arrays that were made here and are still there */
PyObject *holders(PyObject *self, PyObject *recorder)
{
    (void)self;
    PyObject *token = PyObject_GetAttrString(recorder, "token");
    if (!token) return NULL;
    Py_ssize_t many = (Py_ssize_t)(uint32_t)Py_REFCNT(token) - 2; /* (the recorder, and this function) */
    Py_DECREF(token);
    return PyLong_FromSsize_t(many);
}

/* Is each item of one list or tuple that of another, as far as both go? */
static int are_items(PyObject *found, PyObject *values)
{
    if (!PyTuple_Check(found) && !PyList_Check(found)) return 0;
    Py_ssize_t n = PyObject_Size(found), m = PyObject_Size(values);
    for (Py_ssize_t i = 0; i < n && i < m; i++) {
        PyObject *one = PyTuple_Check(found) ? PyTuple_GetItem(found, i) : PyList_GetItem(found, i);
        if (one != (PyTuple_Check(values) ? PyTuple_GetItem(values, i) : PyList_GetItem(values, i))) return 0;
    }
    return 1;
}

/* is_same_world(cells, contents, checks, sized, sizes): does each cell have its content, read(container) of each check (read,
 * container, values, …) give these values, and each of the sized things have its size? Another answer than True: Python looks. */
PyObject *is_same_world(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "is_same_world() takes cells, contents, checks, sized things and sizes");
        return NULL;
    }
    for (int i = 0; i < 5; i++)
        if (!PyList_Check(args[i])) Py_RETURN_FALSE;
    int same = 1;
    for (Py_ssize_t i = 0, n = PyList_Size(args[0]); same && i < n; i++) {
        PyObject *content = PyObject_GetAttr(PyList_GetItem(args[0], i), known.cell_contents);
        same = content == PyList_GetItem(args[1], i);
        Py_XDECREF(content);
    }
    for (Py_ssize_t i = 0, n = PyList_Size(args[2]); same && i < n; i++) {
        PyObject *check = PyList_GetItem(args[2], i);
        PyObject *found = PyObject_CallFunctionObjArgs(PyTuple_GetItem(check, 0), PyTuple_GetItem(check, 1), NULL);
        same = found && are_items(found, PyTuple_GetItem(check, 2));
        Py_XDECREF(found);
    }
    for (Py_ssize_t i = 0, n = PyList_Size(args[3]); same && i < n; i++)
        same = PyObject_Size(PyList_GetItem(args[3], i)) == PyLong_AsSsize_t(PyList_GetItem(args[4], i));
    if (!same && PyErr_Occurred()) { /* something that is not there; all else is not for a look at the world to forget */
        if (!PyErr_ExceptionMatches(PyExc_LookupError) && !PyErr_ExceptionMatches(PyExc_AttributeError) &&
            !PyErr_ExceptionMatches(PyExc_ValueError))
            return NULL;
        PyErr_Clear();
    }
    return PyBool_FromLong(same);
}

/* living(storages): those whose memory is still there */
PyObject *living(PyObject *self, PyObject *storages)
{
    (void)self;
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0, n = PyList_Size(storages); found && i < n; i++) {
        PyObject *storage = PyList_GetItem(storages, i), *held = RSLOT(storage, Storage, held);
        held = held && PyWeakref_Check(held) ? behind(held) : Py_XNewRef(held);
        if (is_there(held) && PyList_Append(found, storage)) Py_CLEAR(found);
        Py_XDECREF(held);
    }
    return found;
}

/* address(array): where its first element lies */
PyObject *address_of(PyObject *self, PyObject *array)
{
    (void)self;
    if (PyArray_Check(array)) return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)array));
    PyErr_SetString(PyExc_TypeError, "address() takes an array");
    return NULL;
}

/* pass_at(task, place): all calls of a backward pass come from this line; pass_at(None, None): of none. */
PyObject *pass_at(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "pass_at() takes a task and a place");
        return NULL;
    }
    now.task = args[0] == Py_None ? NULL : args[0];
    SETREF(now.place, Py_NewRef(args[1]));
    Py_RETURN_NONE;
}
