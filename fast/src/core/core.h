/* The compiled core: what its parts share.
 *
 * The classes are those of the package, written in Python. A slot of such a class lies at the same place in every object of
 * it, found out when the core is set up (slots.c); functions here read and write slots there, and Python goes on to do so
 * by name. So there is one Tensor and one graph, and any part of the work may be done on either side.
 *
 * A function here does the plain case of what a Python function does and declines all others before anything has changed;
 * then the Python function is called, which knows all cases and all errors.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL retrograd_core_array_api
#ifndef IMPORTS_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <stdint.h>

/* Since Python 3.12 objects that are always there (None, small ints, static classes) are not counted, but by extensions that
 * were compiled with older headers. Their counts drift then, and Python 3.14 takes an object for dead whose count has drifted
 * by a billion, which is an hour's work. So here, as in newer headers, counts from 2**31 on are left as they are. */
#if PY_VERSION_HEX < 0x030C0000 && !defined(Py_REF_DEBUG)
static inline int is_immortal(PyObject *object) { return (int32_t)object->ob_refcnt < 0; }
static inline void add_reference(PyObject *object) { if (!is_immortal(object)) object->ob_refcnt++; }
static inline void drop_reference(PyObject *object)
{
    if (!is_immortal(object) && !(uint32_t)--object->ob_refcnt) _Py_Dealloc(object);
}
static inline void drop_reference_if_any(PyObject *object) { if (object) drop_reference(object); }
static inline PyObject *new_reference(PyObject *object) { return add_reference(object), object; }
static inline PyObject *new_reference_if_any(PyObject *object) { return object ? new_reference(object) : NULL; }
#undef Py_INCREF
#undef Py_DECREF
#undef Py_XDECREF
#undef Py_NewRef
#undef Py_XNewRef
#undef Py_CLEAR
#undef Py_RETURN_NONE
#undef Py_RETURN_TRUE
#undef Py_RETURN_FALSE
#undef Py_RETURN_NOTIMPLEMENTED
#define Py_INCREF(object) add_reference((PyObject *)(object))
#define Py_DECREF(object) drop_reference((PyObject *)(object))
#define Py_XDECREF(object) drop_reference_if_any((PyObject *)(object))
#define Py_NewRef(object) new_reference((PyObject *)(object))
#define Py_XNewRef(object) new_reference_if_any((PyObject *)(object))
#define Py_CLEAR(name) SETREF(name, NULL)
#define Py_RETURN_NONE return Py_NewRef(Py_None)
#define Py_RETURN_TRUE return Py_NewRef(Py_True)
#define Py_RETURN_FALSE return Py_NewRef(Py_False)
#define Py_RETURN_NOTIMPLEMENTED return Py_NewRef(Py_NotImplemented)
#endif

/* Of the package, by the names under which `configure` is given them. */
#define OBJECTS(X) \
    X(Tensor) X(AutogradMeta) X(DifferentiableViewMeta) X(VersionCounter) X(ThreadState) X(Process) X(Node) X(AccumulateGrad) \
    X(InputBuffer) X(GraphTask) X(ExecInfo) X(SavedVariable) X(local) X(process) X(INFERENCE) X(gradient_edge) X(version_counter) X(as_view) \
    X(unpack_array) X(unpack_output_array) X(validate_array) X(validated) X(apply_node) X(run_node) X(run_late_hooks) \
    X(apply_special) X(NoArray) X(graph_lock) X(kernels) X(ops) X(formulas) X(unpack_tensor) \
    X(unpack_output_tensor) X(validate_tensor) X(shared_signs) X(BackwardCFunction) X(is_from_inside)

/* Slots of those classes that are read or written here. */
#define SLOTS(X) \
    X(Tensor, _numbers_) X(Tensor, _edge_) X(Tensor, _grad_meta_) X(Tensor, _vc_) \
    X(AutogradMeta, requires_grad) X(AutogradMeta, grad) X(AutogradMeta, grad_accumulator) \
    X(AutogradMeta, post_accumulate_grad_hooks) X(AutogradMeta, detached) \
    X(DifferentiableViewMeta, edge) X(DifferentiableViewMeta, attr_version) X(DifferentiableViewMeta, base) \
    X(DifferentiableViewMeta, step) \
    X(VersionCounter, version) \
    X(ThreadState, grad_enabled) X(ThreadState, interceptor) X(ThreadState, sequence_nr) X(ThreadState, new_vc) \
    X(ThreadState, current_node) X(ThreadState, late_hooks) X(ThreadState, function_modes) \
    X(ThreadState, graph_task) X(ThreadState, observers) X(ThreadState, known_modes) X(Process, modes) \
    X(Node, array_class) X(Node, dtype) X(Node, extras) X(Node, next_edges) X(Node, sequence_nr) X(Node, shape) \
    X(AccumulateGrad, variable) \
    X(InputBuffer, grads) X(InputBuffer, owned) X(InputBuffer, waiting) \
    X(GraphTask, dependencies) X(GraphTask, not_ready) X(GraphTask, exec_info) X(GraphTask, complete) X(GraphTask, keep_graph) \
    X(GraphTask, freed) X(GraphTask, root) X(GraphTask, leaves) X(GraphTask, captured) \
    X(ExecInfo, needed) X(ExecInfo, captures)

typedef struct {
#define OBJECT(name) PyObject *name;
    OBJECTS(OBJECT)
#undef OBJECT
#define OFFSET(type, slot) Py_ssize_t type##_##slot;
    SLOTS(OFFSET)
#undef OFFSET
    PyObject *Parameter;       /* may be NULL: it is told when there is one */
    PyObject *RecordedArray;   /* the same: what arrays are while a step is captured */
    PyObject *acquire, *release; /* of the lock */
    PyArray_Descr *f32, *f64;
    PyObject *zero, *one, *two;
    int counts;                /* are references counted as Note [Ownership] needs it? */
} Core;
extern Core core;

/* The slot of an object, which may be NULL: not set. */
#define SLOT(object, type, slot) (*(PyObject **)((char *)(object) + core.type##_##slot))
#define SLOT_AT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

static inline void set_slot(PyObject **slot, PyObject *stolen)
{
    PyObject *old = *slot;
    *slot = stolen;
    Py_XDECREF(old);
}

/* (Py_SETREF is not in the interface that all versions of Python share) */
#define SETREF(name, value) \
    do { \
        PyObject *new_value = (value), *old_value = (name); \
        (name) = new_value; \
        Py_XDECREF(old_value); \
    } while (0)

/* push() and pop() of a heap that lies in an array, which has room for what is pushed: comes_first(a, b) says whether an item
 * is taken before another. */
#define HEAP(Item, push, pop, comes_first) \
    static void push(Item *items, Py_ssize_t *count, Item one) \
    { \
        Py_ssize_t at = (*count)++; \
        for (Py_ssize_t above = (at - 1) / 2; at && comes_first(&one, &items[above]); at = above, above = (at - 1) / 2) \
            items[at] = items[above]; \
        items[at] = one; \
    } \
    static Item pop(Item *items, Py_ssize_t *count) \
    { \
        Item first = items[0], last = items[--*count]; \
        Py_ssize_t at = 0, below; \
        for (; (below = 2 * at + 1) < *count; at = below) { \
            if (below + 1 < *count && comes_first(&items[below + 1], &items[below])) below++; \
            if (!comes_first(&items[below], &last)) break; \
            items[at] = items[below]; \
        } \
        items[at] = last; \
        return first; \
    }

/* What a weak reference leads to, held (another call might let go of it); NULL if it is gone. Newer Pythons want another
 * function for it, which older ones do not have. */
static inline PyObject *behind(PyObject *reference)
{
_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
    PyObject *object = PyWeakref_GetObject(reference);
_Pragma("GCC diagnostic pop")
    return object && object != Py_None ? Py_NewRef(object) : NULL;
}

/* Neither NULL nor None. */
static inline int is_there(PyObject *object) { return object && object != Py_None; }

/* Is it a Tensor, or a Parameter, and nothing else? Other classes mean other things by operators. */
static inline int is_plain(PyObject *object)
{
    PyObject *type = (PyObject *)Py_TYPE(object);
    return type == core.Tensor || type == core.Parameter;
}

static inline int is_float_array(PyObject *object)
{
    if (!object || !PyArray_CheckExact(object)) return 0;
    PyArray_Descr *type = PyArray_DESCR((PyArrayObject *)object);
    return type == core.f32 || type == core.f64;
}

static inline int is_recorded(PyObject *object) { return (PyObject *)Py_TYPE(object) == core.RecordedArray; }

/* A saved tensor that nobody has written to or detached since: it stands in its slot as it is (save() of
 * autograd/saved_variable.py), and is read so. */
static inline int is_as_saved(PyObject *tensor)
{
    PyObject *counter = SLOT(tensor, Tensor, _vc_), *meta = SLOT(tensor, Tensor, _grad_meta_);
    if (counter == Py_None) return 1;
    if (!counter || (PyObject *)Py_TYPE(counter) != core.VersionCounter || counter == core.INFERENCE) return 0;
    if (SLOT(counter, VersionCounter, version) != core.zero) return 0;
    /* (of a view's meta, what nobody has asked for is not set) */
    return meta == Py_None || (meta && SLOT(meta, AutogradMeta, detached) != Py_True);
}

/* slots.c */
int configure_slots(void);
Py_ssize_t slot_offset(PyObject *type, const char *name); /* -1 with an error if it is nowhere */

/* arrays.c: small arrays of float32 or float64. NULL without an error: not for these operands. */
enum { MUL, ADD, SUB, DIV, NEG, SUM, RSUB, SQUARE };
PyObject *small_binary(int operation, PyObject *a, PyObject *b);
PyObject *small_neg(PyObject *a);
PyObject *negative(PyObject *a);                           /* of any operand */
PyObject *small_sum(PyObject *a);
PyObject *small_filled(PyObject *number, PyObject *shape); /* an array of `shape`, every element that of a 0-d array */
PyObject *small_select(PyObject *a, Py_ssize_t index);     /* a view; of arrays of any dtype */
PyObject *small_slice(PyObject *a, Py_ssize_t first, Py_ssize_t last); /* the same, of some elements */
PyObject *small_reshape(PyObject *a, PyObject *sizes);     /* the same, of a contiguous array in another shape */
PyObject *small_select_backward(PyObject *grad, PyObject *shape, PyObject *dim, PyObject *index);
int small_accumulate(PyObject *sum, PyObject *a);          /* sum += a: 1 if it was done */
PyObject *binary(int operation, PyObject *a, PyObject *b); /* of any operands, by Python where they are not small */
int has_shape(PyArrayObject *a, PyObject *shape);          /* is its shape this tuple? */

/* recording.c: the same while a step is captured. NULL without an error: not for these operands. */
PyObject *record_binary(int operation, PyObject *a, PyObject *b);
PyObject *record_unary(int operation, PyObject *a);        /* NEG or SQUARE */
PyObject *record_view(PyObject *boxed, PyObject *view);    /* an array in its memory */
PyObject *record_select_backward(PyObject *grad, PyObject *shape, PyObject *dim, PyObject *index);
int record_accumulate(PyObject *sum, PyObject *a);         /* sum += a: 1 if it was done, 0, or -1 with an error */
int is_recorded_float(PyObject *object);                   /* by this thread, of float32 or float64? */
int recorded_fits(PyObject *boxed, PyObject *dtype, PyObject *shape);
int is_recorder(PyObject *observer);
int somebody_records(void);                                /* in some thread: wrappers stand for kernels meanwhile */
PyArrayObject *array_behind(PyObject *boxed);

/* operators.c */
extern PyType_Spec signs_spec;
PyObject *define_operators(PyObject *self, PyObject *definitions);
PyObject *make_operator(PyObject *self, PyObject *description);
PyObject *edge_of(PyObject *tensor);
PyObject *tensor_of(PyObject *array); /* a Tensor on an array (stolen), without history */
int is_unwatched(void);               /* does nobody want to know of this thread's operators? */
int declines(void);                   /* may Python find out what went wrong? The error is forgotten, else stays: 0 */

/* formulas.c */
#define MOST_EDGES 4
typedef struct Expression Expression;
typedef struct {
    int edges, slots;
    Expression *formulas[MOST_EDGES];
    Expression *over_tensors[MOST_EDGES]; /* for passes that are recorded; NULL: it is left to Python */
    Py_ssize_t released[8]; /* slots that are let go */
} Formula;
PyObject *define_formulas(PyObject *self, PyObject *describe);
Formula *formula_of(PyTypeObject *node); /* NULL if there is none */
#define MOST_SAVED 8
typedef struct {
    PyObject *node, *grad;
    int tensors; /* else arrays */
    int count;   /* of what hooks have unpacked */
    struct {
        Py_ssize_t offset;
        PyObject *value;
    } unpacked[MOST_SAVED];
} Evaluation;
PyObject *evaluate(Expression *e, Evaluation *run);
void forget_unpacked(Evaluation *run);

/* pass.c */
PyObject *run_pass(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *compute_dependencies(PyObject *task, PyObject *const *args, Py_ssize_t count);
