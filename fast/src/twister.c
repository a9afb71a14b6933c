/* draw(key, position, to, limit, scale, threads): the next words of a Mersenne twister (MT19937), whose 624 words of state
 * are changed in their place; returns the position among them.
 *
 * What is written is decided by the dtype of `to`: words of 32 bits; of 64, the upper half drawn first; or floating numbers,
 * `scale` where the lower 53 bits of such a word are below `limit`, and 0 elsewhere.
 *
 * Each 624 words are made from the 624 before, by one thread after another: who has made some states leaves the last of them to
 * the next thread, and makes numbers of its own words while that one goes on.
 */
#define NO_IMPORT_ARRAY
#include "module.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 624
#define APART 397
#define STATES 64 /* that are made at a time */
#define BATCH (STATES * WORDS)

static inline uint32_t mixed(uint32_t a, uint32_t b)
{
    return (((a & 0x80000000u) | (b & 0x7fffffffu)) >> 1) ^ ((0u - (b & 1u)) & 0x9908b0dfu);
}

/* Of the words of one state, at x, those of the next ones behind them. (Not in their place: so there is one formula for all of
 * them, and whole vectors.) */
static void twist(uint32_t *x)
{
#pragma omp simd safelen(128)
    for (int i = 0; i < BATCH; i++) x[WORDS + i] = x[APART + i] ^ mixed(x[i], x[i + 1]);
}

static void temper(const uint32_t *key, uint32_t *to, Size count)
{
#pragma omp simd
    for (Size i = 0; i < count; i++) {
        uint32_t w = key[i];
        w ^= w >> 11;
        w ^= w << 7 & 0x9d2c5680u;
        w ^= w << 15 & 0xefc60000u;
        to[i] = w ^ w >> 18;
    }
}

typedef struct {
    int type;
    char *to;
    Size item, count, batches, offset, each; /* words of an element */
    int64_t limit;
    double scale;
    uint32_t (*states)[WORDS]; /* that each batch begins with; the last one is where all ends */
    _Atomic Size next, made;   /* the next batch; and how many states there are for one */
    Size position;
} Draw;

#define BELOW(real)                                                                                                     \
    real *to = (real *)place, scale = (real)d->scale;                                                                   \
    const uint32_t high = (uint32_t)(d->limit >> 32), low = (uint32_t)d->limit;                                         \
    _Pragma("omp simd") for (Size i = 0; i < count; i++)                                                                \
    {                                                                                                                   \
        uint32_t h = words[2 * i] & 0x1fffffu, l = words[2 * i + 1];                                                    \
        to[i] = (h < high) | ((h == high) & (l < low)) ? scale : 0;                                                     \
    }

static void make(const Draw *d, const uint32_t *words, Size at, Size count)
{
    char *place = d->to + at * d->item;
    if (d->type == NPY_FLOAT) { BELOW(float) }
    else if (d->type == NPY_DOUBLE) { BELOW(double) }
    else
        for (Size i = 0; i < count; i++) ((uint64_t *)place)[i] = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
}

/* The numbers of a batch from its words, of which the first `offset` have been drawn before. */
static void make_batch(const Draw *d, const uint32_t *x, Size batch)
{
    Size first = batch * BATCH / d->each, last = first + BATCH / d->each;
    if (last > d->count) last = d->count;
    x += d->offset;
    if (d->each == 1) {
        temper(x, (uint32_t *)d->to + first, last - first);
        return;
    }
    uint32_t words[2 * 512];
    for (Size at = first; at < last; at += 512, x += 1024) {
        Size count = last - at < 512 ? last - at : 512;
        temper(x, words, 2 * count);
        make(d, words, at, count);
    }
}

/* A task: whatever batches are left. */
static void some_batches(Size begin, Size end, const Arg *args)
{
    (void)begin, (void)end;
    Draw *d = args[0].p;
    uint32_t *x = retrograd_scratch(sizeof *x * (BATCH + WORDS + 64));
    for (;;) {
        Size batch = atomic_fetch_add(&d->next, 1);
        if (batch >= d->batches) return;
        for (int i = 0; atomic_load_explicit(&d->made, memory_order_acquire) <= batch; i++)
            if (i > 1000) sched_yield();
        memcpy(x, d->states[batch], sizeof *d->states);
        twist(x);
        if (batch + 1 < d->batches) {
            memcpy(d->states[batch + 1], x + BATCH, sizeof *d->states);
            atomic_store_explicit(&d->made, batch + 2, memory_order_release);
        } else {
            Size words = d->offset + d->count * d->each - batch * BATCH; /* from x on */
            Size state = words ? (words - 1) / WORDS : 0; /* that of the last word */
            memcpy(d->states[d->batches], x + state * WORDS, sizeof *d->states);
            d->position = words - state * WORDS;
        }
        make_batch(d, x, batch);
    }
}

PyObject *draw(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 6 || !PyArray_CheckExact(args[0]) || !PyArray_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "draw() takes a key, a position, an array, a limit, a scale and threads");
        return NULL;
    }
    PyArrayObject *key = (PyArrayObject *)args[0], *to = (PyArrayObject *)args[2];
    Draw d = {.type = PyArray_TYPE(to), .to = PyArray_DATA(to), .item = PyArray_ITEMSIZE(to), .count = PyArray_SIZE(to)};
    d.offset = d.position = PyLong_AsLongLong(args[1]);
    d.limit = PyLong_AsLongLong(args[3]);
    d.scale = PyFloat_AsDouble(args[4]);
    long threads = PyLong_AsLong(args[5]);
    if (PyErr_Occurred()) return NULL;
    d.each = d.item == 4 && d.type != NPY_FLOAT ? 1 : 2;
    if (PyArray_TYPE(key) != NPY_UINT32 || PyArray_SIZE(key) != WORDS || !PyArray_ISCARRAY(key) || !PyArray_ISCARRAY(to) ||
        d.offset < 0 || d.offset > WORDS ||
        (d.type != NPY_UINT32 && d.type != NPY_UINT64 && d.type != NPY_FLOAT && d.type != NPY_DOUBLE)) {
        PyErr_SetString(PyExc_ValueError, "draw() takes the state of a twister, and uint32, uint64, float32 or float64");
        return NULL;
    }
    d.batches = (d.count * d.each + BATCH - 1) / BATCH;
    if (d.batches) {
        d.states = malloc((size_t)(d.batches + 1) * sizeof *d.states);
        if (!d.states) return PyErr_NoMemory();
        memcpy(d.states[0], PyArray_DATA(key), sizeof *d.states);
        atomic_init(&d.next, 0);
        atomic_init(&d.made, 1);
        if (threads > d.batches) threads = (long)d.batches;
        Arg arg[1] = {{.p = &d}};
        Py_BEGIN_ALLOW_THREADS
        retrograd_run(some_batches, threads, arg, (int)threads);
        Py_END_ALLOW_THREADS
        memcpy(PyArray_DATA(key), d.states[d.batches], sizeof *d.states);
        free(d.states);
    }
    return PyLong_FromLongLong(d.position);
}
