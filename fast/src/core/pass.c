/* The engine's loop: run_pass_fast() of autograd/fast_loop.py, in the same order. Read run_pass() of autograd/engine.py
 * first; tests/autograd/test_loops.py holds them all together.
 */
#include "core.h"

#include <stdint.h>

/* -------------------------------------------------------------------------------------------- nodes that are ready */

typedef struct {
    long long sequence_nr;
    unsigned long long arrival;
    PyObject *node, *grads;
} Ready;

typedef struct {
    Ready *items;
    Py_ssize_t count, room;
} Heap;

static int comes_first(const Ready *a, const Ready *b)
{
    return a->sequence_nr != b->sequence_nr ? a->sequence_nr > b->sequence_nr : a->arrival < b->arrival;
}

HEAP(Ready, push_ready, pop_ready, comes_first)

static int push(Heap *heap, Ready ready) /* references are stolen */
{
    if (heap->count == heap->room) {
        Py_ssize_t room = heap->room ? 2 * heap->room : 32;
        Ready *items = PyMem_Realloc(heap->items, room * sizeof *items);
        if (!items) {
            Py_DECREF(ready.node), Py_DECREF(ready.grads);
            PyErr_NoMemory();
            return -1;
        }
        heap->items = items, heap->room = room;
    }
    push_ready(heap->items, &heap->count, ready);
    return 0;
}

static Ready pop(Heap *heap) { return pop_ready(heap->items, &heap->count); }

static long long sequence_of(PyObject *node)
{
    PyObject *number = SLOT(node, Node, sequence_nr);
    int overflow = 0;
    long long value = number ? PyLong_AsLongLongAndOverflow(number, &overflow) : 0;
    return overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : value; /* (an accumulator has 2**64 - 1) */
}

/* ------------------------------------------------------------------------------------------------- AccumulateGrad */

/* The first gradient of a leaf that nobody else can see becomes its .grad: `apply` of autograd/accumulate_grad.py, with
 * Note [Ownership]. 1: done; 0: declined; -1: an error. */
static int keep_gradient(PyObject *node, PyObject *grads)
{
    PyObject *variable = SLOT(node, AccumulateGrad, variable);
    if (!core.counts || !variable || !is_plain(variable)) return 0;
    PyObject *meta = SLOT(variable, Tensor, _grad_meta_), *like = SLOT(variable, Tensor, _numbers_);
    if (!meta || (PyObject *)Py_TYPE(meta) != core.AutogradMeta || !like || !PyArray_CheckExact(like)) return 0;
    if (SLOT(meta, AutogradMeta, requires_grad) != Py_True || SLOT(meta, AutogradMeta, grad) != Py_None ||
        SLOT(meta, AutogradMeta, post_accumulate_grad_hooks) != Py_None || is_there(SLOT(variable, Tensor, _edge_)))
        return 0;
    PyObject *grad = PyTuple_CheckExact(grads)  ? PyTuple_GetItem(grads, 0)
                     : PyList_CheckExact(grads) ? PyList_GetItem(grads, 0)
                                                : NULL;
    if (!grad || !PyArray_CheckExact(grad) || (uint32_t)Py_REFCNT(grad) != 1) return PyErr_Clear(), 0;
    PyArrayObject *array = (PyArrayObject *)grad, *leaf = (PyArrayObject *)like;
    PyObject *base = PyArray_BASE(array);
    if (base && (!PyArray_CheckExact(base) || PyArray_BASE((PyArrayObject *)base) || (uint32_t)Py_REFCNT(base) != 1)) return 0;
    if (!PyArray_ISWRITEABLE(array) || !PyArray_IS_C_CONTIGUOUS(leaf) || PyArray_NDIM(array) != PyArray_NDIM(leaf)) return 0;
    for (int i = 0; i < PyArray_NDIM(leaf); i++)
        if (PyArray_STRIDE(array, i) != PyArray_STRIDE(leaf, i)) return 0;
    Py_INCREF(meta); /* others may run from here on: finalizers, and threads while the lock is waited for */
    PyObject *tensor = tensor_of(Py_NewRef(grad));
    if (!tensor) return Py_DECREF(meta), -1;
    PyObject *taken = PyObject_CallNoArgs(core.acquire);
    if (!taken) {
        Py_DECREF(meta), Py_DECREF(tensor);
        return -1;
    }
    Py_DECREF(taken);
    int done = SLOT(meta, AutogradMeta, grad) == Py_None; /* another thread may have been first */
    if (done) set_slot(&SLOT(meta, AutogradMeta, grad), tensor);
    PyObject *freed = PyObject_CallNoArgs(core.release);
    Py_DECREF(meta);
    if (!done) Py_DECREF(tensor);
    if (!freed) return -1;
    Py_DECREF(freed);
    return done;
}

/* ------------------------------------------------------------------------------------------------------ one round */

typedef struct {
    PyObject *state, *task, *call, *dependencies, *not_ready, *freed;
    PyObject *exec_info;              /* None: everything is wanted */
    int complete;                     /* what is wanted are leaves, and all of them: every node with edges runs */
    PyObject *as_tensors;             /* True: gradients are Tensors; False: arrays */
    int keep_graph;
    Heap heap;
    unsigned long long arrival, turn;
    PyObject *node, *grads, *edges;   /* the node that runs, and its edges, None where no gradient is wanted */
    int whole;                        /* does it run, and hands out nothing before? */
    PyObject *following, *following_grads;
    PyObject *outputs[MOST_EDGES];    /* what its formula gave */
    PyObject *given;                  /* what Python gave, in place of `outputs` */
    Formula *formula;
} Pass;

static PyObject *number_minus_one(PyObject *number)
{
    long long value = PyLong_AsLongLong(number);
    return value == -1 && PyErr_Occurred() ? NULL : PyLong_FromLongLong(value - 1);
}

/* Does a selective pass run this node or capture something from it? -1: an error. */
static int is_wanted(PyObject *exec_info, PyObject *node)
{
    PyObject *info = PyDict_GetItemWithError(exec_info, node);
    if (!info) return PyErr_Occurred() ? -1 : 0;
    return SLOT(info, ExecInfo, captures) != Py_None || PyObject_IsTrue(SLOT(info, ExecInfo, needed));
}

/* A node's edges without those that lead to nothing that was asked for: wanted_edges(). */
static PyObject *wanted_edges(PyObject *exec_info, PyObject *edges)
{
    Py_ssize_t n = PyTuple_Size(edges);
    PyObject *result = PyTuple_New(n);
    for (Py_ssize_t i = 0; result && i < n; i++) {
        PyObject *edge = PyTuple_GetItem(edges, i);
        int wanted = edge == Py_None ? 0 : is_wanted(exec_info, PyTuple_GetItem(edge, 0));
        if (wanted < 0) Py_CLEAR(result);
        else PyTuple_SetItem(result, i, Py_NewRef(wanted ? edge : Py_None));
    }
    return result;
}

/* A leaf whose gradient is asked for once, most often: what run_node() does with it. 0: declined. */
static int capture(Pass *p, PyObject *captures)
{
    PyObject *captured = SLOT(p->task, GraphTask, captured);
    PyObject *pair = PyList_CheckExact(captures) && PyList_Size(captures) == 1 ? PyList_GetItem(captures, 0) : NULL;
    if (!pair || PyTuple_GetItem(pair, 0) != core.zero || !captured || !PyList_CheckExact(captured)) return 0;
    PyObject *grad = PySequence_GetItem(p->grads, 0);
    Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GetItem(pair, 1));
    if (!grad || PyList_SetItem(captured, position, grad)) return PyErr_Clear(), 0;
    set_slot(&SLOT(p->state, ThreadState, current_node), Py_NewRef(p->node));
    return (p->edges = PyTuple_New(0)) != NULL;
}

/* Which of the node's edges count, and whether it is for this loop. */
static int look_at_node(Pass *p)
{
    PyObject *edges = SLOT(p->node, Node, next_edges);
    p->whole = 1;
    if (p->exec_info == Py_None || (p->complete && PyTuple_Size(edges))) {
        p->edges = Py_NewRef(edges);
        return 0;
    }
    PyObject *info = PyDict_GetItemWithError(p->exec_info, p->node);
    if (!info) {
        if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, p->node);
        return -1;
    }
    PyObject *captures = SLOT(info, ExecInfo, captures);
    int needed = PyObject_IsTrue(SLOT(info, ExecInfo, needed));
    p->whole = captures == Py_None && needed;
    if (p->whole) return (p->edges = wanted_edges(p->exec_info, edges)) ? 0 : -1;
    if (!needed && !is_there(SLOT(p->node, Node, extras)) && capture(p, captures)) return 0;
    PyObject *both = PyObject_CallFunctionObjArgs(core.run_node, p->state, p->task, p->node, p->grads, p->as_tensors, p->call, NULL);
    if (both) p->edges = Py_NewRef(PyTuple_GetItem(both, 0)), p->given = Py_NewRef(PyTuple_GetItem(both, 1));
    Py_XDECREF(both);
    return both ? 0 : -1;
}

/* 1: `outputs` are there; 0: it cannot compute with a special tensor that was saved (NoArray); -1: an error. */
static int run_formula(Pass *p, PyObject *grad)
{
    Evaluation run = {.node = p->node, .grad = grad, .tensors = p->as_tensors == Py_True};
    Expression **formulas = run.tensors ? p->formula->over_tensors : p->formula->formulas;
    int done = 1;
    for (int i = 0; done == 1 && i < p->formula->edges; i++) {
        if (PyTuple_GetItem(p->edges, i) == Py_None) continue;
        if (!(p->outputs[i] = evaluate(formulas[i], &run)))
            done = !run.tensors && PyErr_ExceptionMatches(core.NoArray) ? 0 : -1;
    }
    forget_unpacked(&run);
    if (!done) {
        PyErr_Clear();
        for (int i = 0; i < MOST_EDGES; i++) Py_CLEAR(p->outputs[i]);
    }
    return done;
}

/* Run the node: `outputs` or `given` is what it gave. */
static int run_node(Pass *p)
{
    p->formula = NULL;
    if (look_at_node(p)) return -1;
    if (!p->whole) return 0;
    PyObject *node = p->node, *edges = p->edges, *extras = SLOT(node, Node, extras);
    set_slot(&SLOT(p->state, ThreadState, current_node), Py_NewRef(node));
    int ran = 0;
    if (is_there(extras)) {
        p->given = PyObject_CallFunctionObjArgs(p->call, node, edges, p->grads, p->as_tensors, NULL);
    } else {
        if ((PyObject *)Py_TYPE(node) == core.AccumulateGrad && p->as_tensors == Py_False) {
            ran = keep_gradient(node, p->grads);
            if (ran < 0) return -1;
            if (ran) return 0;
        }
        p->formula = formula_of(Py_TYPE(node));
        if (p->formula) {
            PyObject *grad = PyTuple_CheckExact(p->grads) && PyTuple_Size(p->grads) == 1 ? PyTuple_GetItem(p->grads, 0)
                             : PyList_CheckExact(p->grads) && PyList_Size(p->grads) == 1 ? PyList_GetItem(p->grads, 0)
                                                                                         : NULL;
            int plain = grad && (p->as_tensors == Py_True ? is_plain(grad) && p->formula->over_tensors[0]
                                                                  : PyArray_CheckExact(grad) || is_recorded_float(grad));
            if (plain && PyTuple_Size(edges) == p->formula->edges) {
                if ((ran = run_formula(p, grad)) < 0) return -1;
                if (!ran && !(p->given = PyObject_CallFunctionObjArgs(core.apply_special, node, edges, p->grads, NULL))) return -1;
            }
        } else if (PyErr_Occurred()) return -1;
        if (!ran && !p->given) p->given = PyObject_CallFunctionObjArgs(core.apply_node, node, edges, p->grads, p->as_tensors, NULL);
    }
    if (!ran && !p->given) return -1;
    if (SLOT(p->state, ThreadState, late_hooks) == Py_False) return 0;
    /* The node got its first hooks while it was running. */
    if (ran) {
        if (!(p->given = PyTuple_New(p->formula->edges))) return -1;
        for (int i = 0; i < p->formula->edges; i++) {
            PyTuple_SetItem(p->given, i, p->outputs[i] ? p->outputs[i] : Py_NewRef(Py_None));
            p->outputs[i] = NULL;
        }
    }
    SETREF(p->given, PyObject_CallFunctionObjArgs(core.validated, node, p->given, p->as_tensors, NULL));
    if (!p->given) return -1;
    PyObject *number = PyLong_FromSsize_t(PyObject_Size(p->grads));
    if (!number) return -1;
    SETREF(p->given, PyObject_CallFunctionObjArgs(core.run_late_hooks, p->state, node, p->given, number, p->as_tensors, NULL));
    Py_DECREF(number);
    return p->given ? 0 : -1;
}

/* Add a gradient to what has arrived in a buffer: InputBuffer.add(). */
static int add_to_buffer(PyObject *buffer, PyObject *input_nr, PyObject *grad, PyObject *as_tensors)
{
    PyObject *grads = SLOT(buffer, InputBuffer, grads), *owned = SLOT(buffer, InputBuffer, owned);
    if (grads && PyList_CheckExact(grads) && PyList_Size(grads) == 1 && owned) {
        PyObject *old = PyList_GetItem(grads, 0);
        if (owned == core.one) {
            if (small_accumulate(old, grad)) return 0;
            int done = is_recorded(old) ? record_accumulate(old, grad) : 0;
            if (done) return done < 0 ? -1 : 0;
        } else if (owned == core.zero && Py_TYPE(old) == Py_TYPE(grad) && (PyArray_CheckExact(old) || is_recorded(old))) {
            PyObject *sum = is_recorded(old) ? record_binary(ADD, old, grad) : small_binary(ADD, old, grad);
            if (sum) {
                set_slot(&SLOT(buffer, InputBuffer, owned), Py_NewRef(core.one));
                return PyList_SetItem(grads, 0, sum);
            }
            if (PyErr_Occurred()) return -1;
        } else if (owned == core.zero && is_plain(old) && is_plain(grad)) {
            PyObject *sum = PyNumber_Add(old, grad);
            return sum ? PyList_SetItem(grads, 0, sum) : -1;
        }
    }
    PyObject *none = PyObject_CallMethod(buffer, "add", "OOO", input_nr, grad, as_tensors);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

static PyObject *new_buffer(Py_ssize_t inputs, PyObject *input_nr, PyObject *grad, PyObject *waiting)
{
    PyObject *buffer = PyType_GenericAlloc((PyTypeObject *)core.InputBuffer, 0), *grads = PyList_New(inputs);
    PyObject *left = number_minus_one(waiting);
    Py_ssize_t at = PyLong_AsSsize_t(input_nr);
    if (!buffer || !grads || !left || at < 0 || at >= inputs) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "list assignment index out of range");
        Py_XDECREF(buffer), Py_XDECREF(grads), Py_XDECREF(left);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < inputs; i++) PyList_SetItem(grads, i, Py_NewRef(i == at ? grad : Py_None));
    SLOT(buffer, InputBuffer, grads) = grads;
    SLOT(buffer, InputBuffer, owned) = Py_NewRef(core.zero);
    SLOT(buffer, InputBuffer, waiting) = left;
    return buffer;
}

static Py_ssize_t inputs_of(PyObject *node)
{
    if (is_there(SLOT(node, Node, array_class))) return 1;
    PyObject *metadata = PyObject_GetAttrString(node, "input_metadata");
    Py_ssize_t inputs = metadata ? PyObject_Size(metadata) : -1;
    Py_XDECREF(metadata);
    return inputs;
}

static int fits(PyObject *grad, PyObject *node, PyObject *as_tensors)
{
    if (as_tensors == Py_True && !(is_plain(grad) && (grad = SLOT(grad, Tensor, _numbers_)))) return 0;
    if (SLOT(node, Node, array_class) != (PyObject *)Py_TYPE(grad)) return 0;
    if (is_recorded(grad)) return recorded_fits(grad, SLOT(node, Node, dtype), SLOT(node, Node, shape));
    if (!PyArray_CheckExact(grad)) return 0;
    PyArrayObject *array = (PyArrayObject *)grad;
    return (PyObject *)PyArray_DESCR(array) == SLOT(node, Node, dtype) && has_shape(array, SLOT(node, Node, shape));
}

/* A gradient for a number that was broadcast: validate_array() of the most frequent case that does not fit. */
static int was_summed(PyObject **grad, PyObject *node)
{
    PyObject *shape = SLOT(node, Node, shape);
    if (!is_float_array(*grad) || SLOT(node, Node, array_class) != (PyObject *)&PyArray_Type || !shape ||
        !PyTuple_Check(shape) || PyTuple_Size(shape) || (PyObject *)PyArray_DESCR((PyArrayObject *)*grad) != SLOT(node, Node, dtype))
        return 0;
    PyObject *sum = small_sum(*grad);
    if (sum) SETREF(*grad, sum);
    return sum != NULL;
}

/* All gradients of a node, if this one was the last that it waited for; else `*ready` is NULL. */
static int arrive(Pass *p, PyObject *node, PyObject *input_nr, PyObject *grad, PyObject **ready)
{
    *ready = NULL;
    PyObject *buffer = PyDict_GetItemWithError(p->not_ready, node);
    if (!buffer && PyErr_Occurred()) return -1;
    if (buffer) {
        if (grad != Py_None && add_to_buffer(buffer, input_nr, grad, p->as_tensors)) return -1;
        PyObject *waiting = number_minus_one(SLOT(buffer, InputBuffer, waiting));
        if (!waiting) return -1;
        set_slot(&SLOT(buffer, InputBuffer, waiting), waiting);
        if (waiting != core.zero) return 0;
        *ready = Py_NewRef(SLOT(buffer, InputBuffer, grads));
        return PyDict_DelItem(p->not_ready, node);
    }
    PyObject *waiting = PyDict_GetItemWithError(p->dependencies, node);
    if (!waiting) {
        if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, node);
        return -1;
    }
    int single = is_there(SLOT(node, Node, array_class));
    if (waiting == core.one && single) {
        *ready = PyTuple_Pack(1, grad);
        return *ready ? 0 : -1;
    }
    Py_ssize_t inputs = inputs_of(node);
    if (inputs < 0 || !(buffer = new_buffer(inputs, input_nr, grad, waiting))) return -1;
    int failed = 0;
    if (waiting == core.one) *ready = Py_NewRef(SLOT(buffer, InputBuffer, grads));
    else failed = PyDict_SetItem(p->not_ready, node, buffer);
    Py_DECREF(buffer);
    return failed;
}

/* What is not wanted must be right all the same. */
static int check_unwanted(Pass *p, Py_ssize_t i)
{
    PyObject *grad = PySequence_GetItem(p->given, i), *valid = NULL;
    if (grad && grad != Py_None) valid = PyObject_CallFunctionObjArgs(core.validated, p->node, p->given, p->as_tensors, NULL);
    int failed = !grad || (grad != Py_None && !valid);
    Py_XDECREF(grad), Py_XDECREF(valid);
    return failed;
}

/* Hand the gradients that a node gave to the next nodes. */
static int hand_out(Pass *p)
{
    for (Py_ssize_t i = 0, n = PyTuple_Size(p->edges); i < n; i++) {
        PyObject *edge = PyTuple_GetItem(p->edges, i);
        if (edge == Py_None) {
            if (p->given && p->exec_info != Py_None && !p->complete && check_unwanted(p, i)) return -1;
            continue;
        }
        PyObject *next = PyTuple_GetItem(edge, 0), *input_nr = PyTuple_GetItem(edge, 1), *grad, *ready;
        if (!p->given) grad = p->outputs[i], p->outputs[i] = NULL;
        else grad = PySequence_GetItem(p->given, i);
        if (!grad) return -1;
        if (grad != Py_None && !fits(grad, next, p->as_tensors) && !was_summed(&grad, next)) {
            if (PyErr_Occurred()) return Py_DECREF(grad), -1;
            PyObject *position = PyLong_FromSsize_t(i);
            PyObject *validate = p->as_tensors == Py_True ? core.validate_tensor : core.validate_array;
            PyObject *valid = PyObject_CallFunctionObjArgs(validate, grad, edge, p->node, position, NULL);
            Py_XDECREF(position);
            SETREF(grad, valid);
            if (!grad) return -1;
        }
        int failed = arrive(p, next, input_nr, grad, &ready);
        Py_DECREF(grad);
        if (failed) return -1;
        if (!ready) continue;
        if (!p->following) p->following = Py_NewRef(next), p->following_grads = ready;
        else if (push(&p->heap, (Ready){sequence_of(next), ++p->arrival, Py_NewRef(next), ready})) return -1;
    }
    return 0;
}

/* Let go of what the node has saved. */
static int release(Pass *p)
{
    if ((PyObject *)Py_TYPE(p->node) == core.AccumulateGrad) return 0;
    Formula *formula = p->formula ? p->formula : formula_of(Py_TYPE(p->node));
    if (formula) {
        for (int i = 0; i < formula->slots; i++) set_slot(&SLOT_AT(p->node, formula->released[i]), Py_NewRef(p->freed));
        return 0;
    }
    if (PyErr_Occurred()) return -1;
    PyObject *none = PyObject_CallMethod(p->node, "release_variables", "O", p->freed);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

static void forget_outputs(Pass *p)
{
    Py_CLEAR(p->given);
    Py_CLEAR(p->edges);
    for (int i = 0; i < MOST_EDGES; i++) Py_CLEAR(p->outputs[i]);
}

/* The node that comes next, in `node` and `grads`: 0 if there is none. */
static int choose(Pass *p)
{
    Py_CLEAR(p->node);
    Py_CLEAR(p->grads);
    if (p->following) {
        p->node = p->following, p->grads = p->following_grads;
        p->following = p->following_grads = NULL;
        if (!p->heap.count) return 1;
        Ready own = {sequence_of(p->node), p->turn, p->node, p->grads};
        p->arrival = p->turn = p->arrival + 1;
        if (comes_first(&own, &p->heap.items[0])) return 1;
        Ready first = pop(&p->heap);
        p->node = first.node, p->grads = first.grads;
        push(&p->heap, own); /* there is room */
        return 1;
    }
    if (!p->heap.count) return 0;
    Ready first = pop(&p->heap);
    p->node = first.node, p->grads = first.grads;
    return 1;
}

/* run_pass(state, task, node, grads, as_tensors, call) */
PyObject *run_pass(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "run_pass() takes state, task, node, grads, as_tensors and call");
        return NULL;
    }
    PyObject *task = args[1];
    Pass p = {.state = args[0], .task = task, .call = args[5], .exec_info = Py_NewRef(SLOT(task, GraphTask, exec_info)),
              .as_tensors = PyObject_IsTrue(args[4]) ? Py_True : Py_False};
    p.dependencies = SLOT(task, GraphTask, dependencies), p.not_ready = SLOT(task, GraphTask, not_ready);
    p.freed = SLOT(task, GraphTask, freed), p.keep_graph = PyObject_IsTrue(SLOT(task, GraphTask, keep_graph));
    p.complete = PyObject_IsTrue(SLOT(task, GraphTask, complete));
    p.node = Py_NewRef(args[2]), p.grads = Py_NewRef(args[3]);
    int failed = 0;
    for (unsigned long rounds = 1;; rounds++) {
        if ((failed = run_node(&p) || hand_out(&p) || (p.whole && !p.keep_graph && release(&p)))) break;
        forget_outputs(&p);
        if (!choose(&p)) break;
        if (rounds % 256 == 0) { /* other threads, and Ctrl-C, which Python's own loops look for */
            Py_BEGIN_ALLOW_THREADS
            Py_END_ALLOW_THREADS
            if ((failed = PyErr_CheckSignals())) break;
        }
    }
    forget_outputs(&p);
    Py_DECREF(p.exec_info);
    Py_XDECREF(p.node), Py_XDECREF(p.grads), Py_XDECREF(p.following), Py_XDECREF(p.following_grads);
    while (p.heap.count) {
        Ready left = p.heap.items[--p.heap.count];
        Py_DECREF(left.node), Py_DECREF(left.grads);
    }
    PyMem_Free(p.heap.items);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* -------------------------------------------------------------------------------------------------- dependencies */

/* GraphTask.compute_dependencies(root, min_topological_nr) */
PyObject *compute_dependencies(PyObject *task, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "compute_dependencies() takes a root and a number");
        return NULL;
    }
    long long minimum = PyLong_AsLongLong(args[1]);
    if (minimum == -1 && PyErr_Occurred()) return NULL;
    PyObject *dependencies = SLOT(task, GraphTask, dependencies), *seen = PyList_New(0), *edges = NULL;
    set_slot(&SLOT(task, GraphTask, root), Py_NewRef(args[0]));
    if (!seen || PyList_Append(seen, args[0])) goto failed;
    int sinks = 0;
    Py_ssize_t leaves = 0;
    for (Py_ssize_t i = 0; i < PyList_Size(seen); i++) {
        PyObject *node = PyList_GetItem(seen, i);
        SETREF(edges, Py_XNewRef(SLOT(node, Node, next_edges))); /* (others may set them while Python runs) */
        if (!edges || !PyTuple_Check(edges)) {
            PyErr_SetString(PyExc_AttributeError, "next_edges");
            goto failed;
        }
        Py_ssize_t n = PyTuple_Size(edges);
        leaves += !n;
        if (!n && (PyObject *)Py_TYPE(node) != core.AccumulateGrad) {
            PyObject *is_sink = PyObject_GetAttrString(node, "is_sink");
            if (!is_sink) goto failed;
            sinks |= is_sink == Py_True;
            Py_DECREF(is_sink);
        }
        for (Py_ssize_t j = 0; j < n; j++) {
            PyObject *edge = PyTuple_GetItem(edges, j);
            if (edge == Py_None) continue;
            PyObject *next = PyTuple_GetItem(edge, 0), *old = PyDict_GetItemWithError(dependencies, next);
            if (old) {
                PyObject *more = PyLong_FromLongLong(PyLong_AsLongLong(old) + 1);
                int stored = more ? PyDict_SetItem(dependencies, next, more) : -1;
                Py_XDECREF(more);
                if (stored) goto failed;
                continue;
            }
            if (PyErr_Occurred()) goto failed;
            if (minimum) {
                PyObject *number = PyObject_GetAttrString(next, "topological_nr");
                long long value = number ? PyLong_AsLongLong(number) : -1;
                Py_XDECREF(number);
                if (value == -1) goto failed;
                if (value < minimum) continue;
            }
            if (PyDict_SetItem(dependencies, next, core.one) || PyList_Append(seen, next)) goto failed;
        }
    }
    PyObject *counted = PyLong_FromSsize_t(leaves);
    if (!counted) goto failed;
    set_slot(&SLOT(task, GraphTask, leaves), counted);
    if (sinks) {
        PyObject *none = PyObject_CallMethod(task, "_leave_out_sinks", "O", seen);
        Py_XDECREF(none);
        if (!none) goto failed;
    }
    Py_XDECREF(edges);
    return seen;
failed:
    Py_XDECREF(seen), Py_XDECREF(edges);
    return NULL;
}
