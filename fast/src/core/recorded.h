/* What captured steps are made of: the slots of Storage, Value and Call (capture/values.py) and of RecordedArray
 * (capture/arrays.py); and what Python asks about them. */
#include "core.h"

#define CLASSES(X) X(RecordedArray) X(Storage) X(Value) X(Call)
#define PARTS(X) X(NOTHING) X(copyto) X(zeros) X(is_user_code)
#define RECORD_SLOTS(X) \
    X(RecordedArray, array) X(RecordedArray, dtype) X(RecordedArray, recorder) X(RecordedArray, shape) X(RecordedArray, token) \
    X(RecordedArray, value) \
    X(Storage, _start) X(Storage, held) X(Storage, kind) X(Storage, number) X(Storage, size) \
    X(Value, array) X(Value, dtype) X(Value, offset) X(Value, shape) X(Value, storage) X(Value, strides) \
    X(Call, args) X(Call, function) X(Call, impure) X(Call, kind) X(Call, kwargs) X(Call, looks) X(Call, may_raise) \
    X(Call, name) X(Call, reads) X(Call, results) X(Call, where) X(Call, writes)
#define TEXTS(X) \
    X(new) X(number) X(outside) X(argument) X(ufunc) X(copy) X(opaque) X(python) X(here) X(of) X(state) X(f_lasti) X(unsafe) \
    X(fill) X(cell_contents)

typedef struct {
#define OBJECT(name) PyObject *name;
    CLASSES(OBJECT)
    PARTS(OBJECT)
    TEXTS(OBJECT)
#undef OBJECT
#define OFFSET(type, slot) Py_ssize_t type##_##slot;
    RECORD_SLOTS(OFFSET)
#undef OFFSET
    PyObject *ufuncs[SQUARE + 1], *names[SQUARE + 1]; /* by operation */
    PyObject *copyto_name, *zeros_name, *ones_name, *empty;
} Known;
extern Known known;

#define RSLOT(object, type, slot) SLOT_AT(object, known.type##_##slot)

/* The storage of a value, its number, and whether the step has made it. */
static inline PyObject *storage_of(PyObject *value) { return RSLOT(value, Value, storage); }
static inline Py_ssize_t number_of(PyObject *storage) { return PyLong_AsSsize_t(RSLOT(storage, Storage, number)); }
static inline int is_new(PyObject *storage) { return RSLOT(storage, Storage, kind) == known.new; }

/* May what is in it be the same in every run? */
static inline int may_be_constant(PyObject *storage)
{
    return PyArray_Check(RSLOT(storage, Storage, held)) && (is_new(storage) || RSLOT(storage, Storage, kind) == known.number);
}

/* recording.c */
PyObject *know_recordings(PyObject *self, PyObject *names);
PyObject *record_with(PyObject *self, PyObject *recorder);
PyObject *are_plain_nodes(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *holders(PyObject *self, PyObject *recorder);
PyObject *address_of(PyObject *self, PyObject *array);
PyObject *living(PyObject *self, PyObject *storages);
PyObject *is_same_world(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *pass_at(PyObject *self, PyObject *const *args, Py_ssize_t count);

/* planning.c */
PyObject *live_calls(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *without_constants(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *let_go_of(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *other_calls(PyObject *self, PyObject *calls);
PyObject *place_small(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *make_steps(PyObject *self, PyObject *const *args, Py_ssize_t count);
