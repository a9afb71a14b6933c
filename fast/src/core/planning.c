/* Programs of captured steps: _live() and _without_constants() of capture/program.py, plan() of capture/planning.py and steps()
 * of capture/plain.py, for calls of the most frequent kinds. What they give is what those give; None: not for these calls. */
#include "recorded.h"

#include <string.h>

/* Values of a call stand in tuples or lists. */
static Py_ssize_t size_of(PyObject *values) { return PyTuple_Check(values) ? PyTuple_Size(values) : PyList_Size(values); }
static PyObject *at(PyObject *values, Py_ssize_t i)
{
    return PyTuple_Check(values) ? PyTuple_GetItem(values, i) : PyList_GetItem(values, i);
}

static int is_for_here(PyObject *call)
{
    return (PyObject *)Py_TYPE(call) == known.Call && RSLOT(call, Call, kind) != known.python;
}

/* Zeros; NULL with an error. */
static void *zeros_of(Py_ssize_t count, size_t size)
{
    void *found = PyMem_Calloc(count, size);
    return found ? found : PyErr_NoMemory();
}

/* A byte for each storage, by its number: the numbers in `set` are 1. */
static char *flags(Py_ssize_t storages, PyObject *set)
{
    char *found = zeros_of(storages + 1, 1);
    PyObject *number, *all = found ? PyObject_GetIter(set) : NULL;
    if (!all) return PyMem_Free(found), NULL;
    while ((number = PyIter_Next(all))) {
        Py_ssize_t i = PyLong_AsSsize_t(number);
        if (i >= 0 && i < storages) found[i] = 1;
        Py_DECREF(number);
    }
    Py_DECREF(all);
    if (PyErr_Occurred()) PyMem_Free(found), found = NULL;
    return found;
}

static int takes(Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted) return 1;
    PyErr_Format(PyExc_TypeError, "%zd arguments in place of %zd", count, wanted);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------ calls that count */

static int is_wanted(PyObject *values, const char *wanted)
{
    for (Py_ssize_t i = 0, n = size_of(values); i < n; i++) {
        PyObject *value = at(values, i);
        if (value != Py_None && (wanted[number_of(storage_of(value))] || !is_new(storage_of(value)))) return 1;
    }
    return 0;
}

/* Are all values of a call in storages that have a number below `storages`? What follows looks and writes there; later functions
 * are given none but calls that were found to be so. */
static int is_within(PyObject *call, Py_ssize_t storages)
{
    PyObject *all[] = {RSLOT(call, Call, reads), RSLOT(call, Call, results), RSLOT(call, Call, writes)};
    for (int k = 0; k < 3; k++)
        for (Py_ssize_t i = 0, n = size_of(all[k]); i < n; i++) {
            PyObject *value = at(all[k], i);
            Py_ssize_t number = value == Py_None ? 0 : number_of(storage_of(value));
            if (number < 0 || number >= storages) return 0;
        }
    return 1;
}

/* live(calls, number of storages, wanted, names of calls that make memory and leave it as it is) */
PyObject *live_calls(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (!takes(count, 4)) return NULL;
    PyObject *calls = args[0], *kept = PyList_New(0);
    Py_ssize_t all = PyLong_AsSsize_t(args[1]);
    char *wanted = flags(all, args[2]);
    if (!kept || !wanted) goto failed;
    for (Py_ssize_t i = PyList_Size(calls) - 1; i >= 0; i--) {
        PyObject *call = PyList_GetItem(calls, i);
        if (!is_for_here(call) || !is_within(call, all)) {
            Py_DECREF(kept);
            PyMem_Free(wanted);
            Py_RETURN_NONE;
        }
        PyObject *results = RSLOT(call, Call, results), *writes = RSLOT(call, Call, writes);
        if (RSLOT(call, Call, impure) != Py_True && RSLOT(call, Call, looks) != Py_True) {
            Py_ssize_t made = size_of(results);
            if (made && RSLOT(call, Call, kind) == known.opaque) {
                int unfilled = PySet_Contains(args[3], RSLOT(call, Call, name));
                if (unfilled < 0) goto failed;
                if (unfilled) continue;
            }
            if (!is_wanted(made ? results : writes, wanted) && !(made && is_wanted(writes, wanted))) continue;
        }
        if (PyList_Append(kept, call)) goto failed;
        PyObject *both[] = {RSLOT(call, Call, reads), writes};
        for (int k = 0; k < 2; k++)
            for (Py_ssize_t j = 0, n = size_of(both[k]); j < n; j++) wanted[number_of(storage_of(at(both[k], j)))] = 1;
    }
    PyMem_Free(wanted);
    if (!PyErr_Occurred() && !PyList_Reverse(kept)) return kept;
    wanted = NULL;
failed:
    Py_XDECREF(kept);
    PyMem_Free(wanted);
    return NULL;
}

/* Add to the count of those who write to each storage, a few at the most. */
static void count_writers(PyObject *values, char *writers)
{
    for (Py_ssize_t i = 0, n = size_of(values); i < n; i++) {
        PyObject *value = at(values, i);
        if (value == Py_None) continue;
        char *its = &writers[number_of(storage_of(value))];
        if (*its < 2) ++*its;
    }
}

static int are_all(PyObject *values, const char *constant)
{
    for (Py_ssize_t i = 0, n = size_of(values); i < n; i++) {
        PyObject *value = at(values, i);
        if (value != Py_None && !constant[number_of(storage_of(value))]) return 0;
    }
    return 1;
}

static int are_written_once(PyObject *values, const char *writers, const char *seen)
{
    for (Py_ssize_t i = 0, n = size_of(values); i < n; i++) {
        PyObject *value = at(values, i);
        if (value == Py_None) continue;
        PyObject *storage = storage_of(value);
        Py_ssize_t number = number_of(storage);
        if (!is_new(storage) || !may_be_constant(storage) || writers[number] != 1 || seen[number]) return 0;
    }
    return 1;
}

static void mark(PyObject *values, char *constant)
{
    for (Py_ssize_t i = 0, n = size_of(values); i < n; i++)
        if (at(values, i) != Py_None) constant[number_of(storage_of(at(values, i)))] = 1;
}

static int makes_something(PyObject *values)
{
    for (Py_ssize_t i = 0, n = size_of(values); i < n; i++)
        if (at(values, i) != Py_None) return 1;
    return 0;
}

/* without_constants(calls, storages, seen): (the numbers of constants, the calls that do not make such) */
PyObject *without_constants(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (!takes(count, 3)) return NULL;
    PyObject *calls = args[0], *storages = args[1], *found = PySet_New(NULL), *others = PyList_New(0), *result = NULL;
    Py_ssize_t all = PyList_Size(storages), many = PyList_Size(calls);
    char *seen = flags(all, args[2]), *constant = zeros_of(all + 1, 1), *writers = zeros_of(all + 1, 1);
    if (!found || !others || !seen || !constant || !writers) goto done;
    for (Py_ssize_t i = 0; i < all; i++)
        constant[i] = RSLOT(PyList_GetItem(storages, i), Storage, kind) == known.number;
    for (Py_ssize_t i = 0; i < many; i++) {
        PyObject *call = PyList_GetItem(calls, i);
        if (!is_for_here(call)) {
            result = Py_NewRef(Py_None);
            goto done;
        }
        count_writers(RSLOT(call, Call, results), writers);
        count_writers(RSLOT(call, Call, writes), writers);
    }
    for (Py_ssize_t i = 0; i < many; i++) {
        PyObject *call = PyList_GetItem(calls, i), *results = RSLOT(call, Call, results), *writes = RSLOT(call, Call, writes);
        if (RSLOT(call, Call, impure) == Py_True || !are_all(RSLOT(call, Call, reads), constant)) continue;
        if (!are_written_once(results, writers, seen) || !are_written_once(writes, writers, seen)) continue;
        mark(results, constant);
        mark(writes, constant);
    }
    for (Py_ssize_t i = 0; i < many; i++) {
        PyObject *call = PyList_GetItem(calls, i), *results = RSLOT(call, Call, results), *writes = RSLOT(call, Call, writes);
        int folded = are_all(results, constant) && are_all(writes, constant) &&
                     (makes_something(results) || makes_something(writes));
        if (!folded && PyList_Append(others, call)) goto done;
    }
    for (Py_ssize_t i = 0; i < all; i++)
        if (constant[i] && PySet_Add(found, RSLOT(PyList_GetItem(storages, i), Storage, number))) goto done;
    if (!PyErr_Occurred()) result = PyTuple_Pack(2, found, others);
done:
    Py_XDECREF(found), Py_XDECREF(others);
    PyMem_Free(seen), PyMem_Free(constant), PyMem_Free(writers);
    return result;
}

/* let_go(storages, constants): of memory that a step has made or was given, but for the constants */
PyObject *let_go_of(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (!takes(count, 2)) return NULL;
    Py_ssize_t all = PyList_Size(args[0]);
    char *constant = flags(all, args[1]);
    if (!constant) return NULL;
    for (Py_ssize_t i = 0; i < all; i++) {
        PyObject *storage = PyList_GetItem(args[0], i);
        if ((is_new(storage) || RSLOT(storage, Storage, kind) == known.argument) && !constant[number_of(storage)])
            set_slot(&RSLOT(storage, Storage, held), Py_NewRef(Py_None));
    }
    PyMem_Free(constant);
    Py_RETURN_NONE;
}

/* others(calls): (position, call) of those that are more than a ufunc with a new result */
PyObject *other_calls(PyObject *self, PyObject *calls)
{
    (void)self;
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0, n = PyList_Size(calls); found && i < n; i++) {
        PyObject *call = PyList_GetItem(calls, i);
        if (RSLOT(call, Call, kind) == known.ufunc && !size_of(RSLOT(call, Call, writes))) continue;
        PyObject *pair = Py_BuildValue("(nO)", i, call);
        if (!pair || PyList_Append(found, pair)) Py_CLEAR(found);
        Py_XDECREF(pair);
    }
    return found;
}

/* ------------------------------------------------------------------------------------------------------------ places */

#define ALIGNED 64
#define SMALL_BYTES (1 << 10) /* (_SMALL of planning.py) */
#define CLASSES_OF_SIZE (SMALL_BYTES / ALIGNED + 1)

typedef struct {
    Py_ssize_t last, place, size;
} Busy;

/* Those of the places that are in use, as a heap: which is free first, and of those the first. */
static int is_before(const Busy *a, const Busy *b) { return a->last != b->last ? a->last < b->last : a->place < b->place; }

HEAP(Busy, push_busy, pop_busy, is_before)

typedef struct {
    Py_ssize_t *first, *last, *order, used; /* of storages, by number: -1 where it is not used; in the order of their first uses */
} Lifetimes;

static void use(PyObject *values, Py_ssize_t position, Lifetimes *lives)
{
    for (Py_ssize_t i = 0, n = size_of(values); i < n; i++) {
        PyObject *value = at(values, i);
        if (value == Py_None || !is_new(storage_of(value))) continue;
        Py_ssize_t number = number_of(storage_of(value));
        if (lives->last[number] < 0) lives->first[number] = position, lives->order[lives->used++] = number;
        lives->last[number] = position;
    }
}

/* place_small(calls, storages, numbers of those that have their memory elsewhere, numbers of those that outlive the program):
 * ({number: place}, bytes, bytes without a plan); None if there are larger ones. */
PyObject *place_small(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (!takes(count, 4)) return NULL;
    PyObject *calls = args[0], *storages = args[1], *places = PyDict_New(), *result = NULL;
    Py_ssize_t all = PyList_Size(storages), many = PyList_Size(calls), bytes = 0, unplanned = 0, busy = 0, stack = 0;
    char *elsewhere = flags(all, args[2]), *escaping = flags(all, args[3]);
    Py_ssize_t *numbers = zeros_of(4 * all + 4, sizeof *numbers);
    Busy *heap = zeros_of(all + 1, sizeof *heap);
    /* Free places, as stacks in one list: the one below each, and the last of each size. */
    Py_ssize_t top[CLASSES_OF_SIZE], *below = numbers ? numbers + 3 * all + 3 : NULL, *freed = NULL;
    if (!places || !elsewhere || !escaping || !numbers || !heap || !(freed = zeros_of(all + 1, sizeof *freed))) goto done;
    Lifetimes lives = {numbers, numbers + all + 1, numbers + 2 * all + 2, 0};
    memset(lives.last, -1, (all + 1) * sizeof *lives.last);
    memset(top, -1, sizeof top);
    for (Py_ssize_t i = 0; i < many; i++) {
        PyObject *call = PyList_GetItem(calls, i);
        if (!is_for_here(call)) goto declined;
        use(RSLOT(call, Call, reads), i, &lives);
        use(RSLOT(call, Call, results), i, &lives);
        use(RSLOT(call, Call, writes), i, &lives);
    }
    for (Py_ssize_t i = 0; i < lives.used; i++) {
        Py_ssize_t number = lives.order[i];
        if (elsewhere[number]) continue;
        PyObject *storage = PyList_GetItem(storages, number);
        Py_ssize_t size = PyLong_AsSsize_t(RSLOT(storage, Storage, size)), place;
        size = (size + ALIGNED - 1) / ALIGNED * ALIGNED;
        if (size > SMALL_BYTES || size < 0) goto declined;
        unplanned += size;
        while (busy && heap[0].last < lives.first[number]) {
            Busy gone = pop_busy(heap, &busy);
            freed[stack] = gone.place, below[stack] = top[gone.size / ALIGNED], top[gone.size / ALIGNED] = stack;
            stack++;
        }
        Py_ssize_t *free_one = &top[size / ALIGNED];
        if (*free_one >= 0) place = freed[*free_one], *free_one = below[*free_one];
        else place = bytes, bytes += size;
        push_busy(heap, &busy, (Busy){escaping[number] ? many : lives.last[number], place, size});
        PyObject *its = PyLong_FromSsize_t(place);
        int failed = !its || PyDict_SetItem(places, RSLOT(storage, Storage, number), its);
        Py_XDECREF(its);
        if (failed) goto done;
    }
    if (!PyErr_Occurred()) result = Py_BuildValue("(Onn)", places, bytes, unplanned);
    goto done;
declined:
    if (!PyErr_Occurred()) result = Py_NewRef(Py_None);
done:
    Py_XDECREF(places);
    PyMem_Free(elsewhere), PyMem_Free(escaping), PyMem_Free(numbers), PyMem_Free(heap), PyMem_Free(freed);
    return result;
}

/* ------------------------------------------------------------------------------------------------------------- steps */

typedef struct {
    PyObject *offsets, *arena, *views, *view; /* {number: place}, the memory, {value: array}, a function that finds any array */
    PyObject *at;                             /* {place: the value whose array lies there} */
} Arrays;

/* Do two arrays at one place look the same, as far as one can tell at once? */
static int look_alike(PyObject *one, PyObject *two)
{
    return RSLOT(one, Value, shape) == RSLOT(two, Value, shape) && RSLOT(one, Value, strides) == RSLOT(two, Value, strides) &&
           RSLOT(one, Value, dtype) == RSLOT(two, Value, dtype) && RSLOT(one, Value, offset) == RSLOT(two, Value, offset);
}

/* The array of a value, new. */
static PyObject *array_for(PyObject *value, const Arrays *arrays)
{
    PyObject *array = RSLOT(value, Value, array);
    if (array != Py_None) return Py_NewRef(array);
    if ((array = PyDict_GetItemWithError(arrays->views, value)) || PyErr_Occurred()) return Py_XNewRef(array);
    PyObject *place = PyDict_GetItemWithError(arrays->offsets, RSLOT(storage_of(value), Storage, number));
    if (!place) return PyErr_Occurred() ? NULL : PyObject_CallFunctionObjArgs(arrays->view, value, NULL);
    PyObject *other = PyDict_GetItemWithError(arrays->at, place);
    if (other && look_alike(value, other)) {
        array = PyDict_GetItemWithError(arrays->views, other);
        return !array || PyDict_SetItem(arrays->views, value, array) ? NULL : Py_NewRef(array);
    }
    npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    PyObject *shape = RSLOT(value, Value, shape), *steps = RSLOT(value, Value, strides);
    int dims = (int)PyTuple_Size(shape);
    for (int i = 0; i < dims; i++) {
        sizes[i] = PyLong_AsSsize_t(PyTuple_GetItem(shape, i));
        strides[i] = PyLong_AsSsize_t(PyTuple_GetItem(steps, i));
    }
    PyArrayObject *arena = (PyArrayObject *)arrays->arena;
    PyArray_Descr *dtype = (PyArray_Descr *)RSLOT(value, Value, dtype);
    Py_ssize_t start = PyLong_AsSsize_t(place) + PyLong_AsSsize_t(RSLOT(value, Value, offset));
    if (!PyArray_CheckStrides((int)PyDataType_ELSIZE(dtype), dims, PyArray_NBYTES(arena), start, sizes, strides))
        return PyObject_CallFunctionObjArgs(arrays->view, value, NULL); /* it would lie outside, which NumPy refuses */
    Py_INCREF(dtype);
    array = PyArray_NewFromDescr(&PyArray_Type, dtype, dims, sizes, strides, PyArray_BYTES(arena) + start, NPY_ARRAY_WRITEABLE, NULL);
    if (!array) return NULL;
    if (PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef(arrays->arena)) || PyDict_SetItem(arrays->views, value, array) ||
        PyDict_SetItem(arrays->at, place, value))
        Py_CLEAR(array);
    return array;
}

/* (function, arguments), both stolen */
static PyObject *step_of(PyObject *function, PyObject *args)
{
    PyObject *step = function && args ? PyTuple_Pack(2, function, args) : NULL;
    Py_XDECREF(function), Py_XDECREF(args);
    return step;
}

/* A ufunc's step: its arrays, and the one that it writes to. */
static PyObject *ufunc_step(PyObject *call, PyObject *made, PyObject *positional, const Arrays *arrays)
{
    PyObject *args = RSLOT(call, Call, args), *function = RSLOT(call, Call, function);
    Py_ssize_t n = PyTuple_Size(args);
    PyObject *all = PyTuple_New(n + 1), *other = PyDict_GetItemWithError(positional, function);
    if (!all || (!other && PyErr_Occurred())) goto failed;
    for (Py_ssize_t i = 0; i <= n; i++) {
        PyObject *arg = i < n ? PyTuple_GetItem(args, i) : made;
        PyObject *array = (PyObject *)Py_TYPE(arg) == known.Value ? array_for(arg, arrays) : Py_NewRef(arg);
        if (!array || PyTuple_SetItem(all, i, array)) goto failed;
    }
    return step_of(Py_NewRef(other ? other : function), all);
failed:
    Py_XDECREF(all);
    return NULL;
}

/* One call as a step; `is_known` is set if it is of a kind that is written here. */
static PyObject *known_step(PyObject *call, PyObject *positional, const Arrays *arrays, int *is_known)
{
    PyObject *kind = RSLOT(call, Call, kind), *results = RSLOT(call, Call, results), *writes = RSLOT(call, Call, writes);
    PyObject *reads = RSLOT(call, Call, reads), *name = RSLOT(call, Call, name);
    PyObject *made = size_of(results) == 1 ? at(results, 0) : size_of(results) == 0 && size_of(writes) == 1 ? at(writes, 0) : Py_None;
    *is_known = 1;
    if (made != Py_None && kind == known.ufunc && !PyDict_Size(RSLOT(call, Call, kwargs)))
        return ufunc_step(call, made, positional, arrays);
    if (made != Py_None && kind == known.copy) {
        PyObject *to = array_for(made, arrays), *from = to ? array_for(at(reads, 0), arrays) : NULL;
        PyObject *args = from ? PyTuple_Pack(3, to, from, known.unsafe) : NULL;
        Py_XDECREF(to), Py_XDECREF(from);
        return step_of(Py_NewRef(known.copyto), args);
    }
    if (made != Py_None && kind == known.opaque && !size_of(reads) && (name == known.zeros_name || name == known.ones_name)) {
        PyObject *to = array_for(made, arrays), *fill = to ? PyObject_GetAttr(to, known.fill) : NULL;
        Py_XDECREF(to);
        return step_of(fill, PyTuple_Pack(1, name == known.ones_name ? core.one : core.zero));
    }
    *is_known = 0;
    return NULL;
}

/* steps(calls, offsets, arena, views, view, positional, others): a list of them; `others(call)` gives those of other kinds, and
 * an empty list if it is none: then there is None. */
PyObject *make_steps(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (!takes(count, 7)) return NULL;
    PyObject *calls = args[0], *found = PyList_New(0);
    Arrays arrays = {args[1], args[2], args[3], args[4], PyDict_New()};
    if (!arrays.at) Py_CLEAR(found);
    for (Py_ssize_t i = 0, n = PyList_Size(calls); found && i < n; i++) {
        PyObject *call = PyList_GetItem(calls, i);
        int is_known;
        PyObject *step = known_step(call, args[5], &arrays, &is_known);
        if (is_known) {
            if (!step || PyList_Append(found, step)) Py_CLEAR(found);
            Py_XDECREF(step);
            continue;
        }
        PyObject *some = PyObject_CallFunctionObjArgs(args[6], call, NULL);
        Py_ssize_t many = some ? PyList_Size(some) : -1;
        for (Py_ssize_t j = 0; found && j < many; j++)
            if (PyList_Append(found, PyList_GetItem(some, j))) Py_CLEAR(found);
        Py_XDECREF(some);
        if (many > 0) continue;
        Py_CLEAR(found);
        if (!many) found = Py_NewRef(Py_None);
        break;
    }
    Py_XDECREF(arrays.at);
    return found;
}
