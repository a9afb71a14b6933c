/* Threads that kernels share: retrograd_run divides the tasks of a kernel among the caller and some workers.
 *
 * The tasks are cut into pieces, and every thread has its own, the same part of the tasks in each call: what it wrote in
 * the last call lies in its caches, and processors may be so far apart that to read it from there takes longer than to
 * compute it (on two processors without a cache in common, `var` of a million numbers took 1.5 times as long as on one when
 * pieces went to whoever had time). Who is done with its own takes what others have left, their last ones first.
 *
 * All there is to claim of a thread's pieces is one number, its ticket: which call this is, the first piece that nobody
 * has, and the one after the last. Who has changed it may read the job, for the call cannot end before that piece is
 * done; and it ends when all pieces are, so that nobody waits for a worker that has found nothing to do, or that the
 * system lets sleep.
 *
 * Not OpenMP, whose calls wait for each of its threads: with another process on one of the processors that takes
 * milliseconds. Workers spin for a while after a call, since the next one mostly comes soon, and sleep then.
 *
 * One call has the workers at a time; another thread's call meanwhile runs on that thread alone. After a fork the child
 * has no workers, and starts its own when it needs them.
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "pool.h"

#define MOST_WORKERS 255
#define PIECES 4         /* for each thread: they are never equally fast */
#define SPINS_OF_FEW 20000
#define SPINS_OF_MANY 3000

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ __volatile__("yield")
#else
#define PAUSE() ((void)0)
#endif

static struct {
    Kernel kernel;
    const Arg *args;
    Size tasks, pieces;
} job;
static struct {
    _Alignas(64) _Atomic uint64_t ticket; /* the call (32 bits), the first piece that is left (16), the end (16) */
} own[MOST_WORKERS + 1];                  /* of the caller, and of each worker */
static _Alignas(64) _Atomic uint32_t finished; /* pieces */
static _Alignas(64) _Atomic uint32_t calls;    /* which workers wait for */
static _Atomic int sleepers, wanted, spins;
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER; /* held by the call that has the workers */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int workers;

/* ------------------------------------------------------------------------------------------------------------ sleep */

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static void sleep_until_after(uint32_t heard)
{
    syscall(SYS_futex, &calls, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, heard, NULL, NULL, 0);
}
static void wake_all(void) { syscall(SYS_futex, &calls, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0); }
static void reset_sleep(void) {}
#else
static pthread_mutex_t bed = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;

static void sleep_until_after(uint32_t heard)
{
    pthread_mutex_lock(&bed);
    while (atomic_load(&calls) == heard) pthread_cond_wait(&bell, &bed);
    pthread_mutex_unlock(&bed);
}
static void wake_all(void)
{
    pthread_mutex_lock(&bed);
    pthread_cond_broadcast(&bell);
    pthread_mutex_unlock(&bed);
}
static void reset_sleep(void)
{
    pthread_mutex_init(&bed, NULL);
    pthread_cond_init(&bell, NULL);
}
#endif

/* ------------------------------------------------------------------------------------------------------------- work */

/* The pieces of a thread that are left, from the first on or from the last. */
static void claim_pieces(_Atomic uint64_t *ticket, int from_last)
{
    uint32_t done = 0;
    uint64_t now = atomic_load_explicit(ticket, memory_order_acquire);
    for (;;) {
        Size first = now >> 16 & 0xffff, end = now & 0xffff;
        if (first >= end) break;
        if (!atomic_compare_exchange_weak_explicit(ticket, &now, from_last ? now - 1 : now + (1 << 16), memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        Size piece = from_last ? end - 1 : first;
        job.kernel(job.tasks * piece / job.pieces, job.tasks * (piece + 1) / job.pieces, job.args);
        done++;
        now = atomic_load_explicit(ticket, memory_order_acquire);
    }
    if (done) atomic_fetch_add_explicit(&finished, done, memory_order_release);
}

/* Those of this thread, then those of the others. */
static void share_pieces(int mine, int threads)
{
    for (int i = 0; i < threads; i++) claim_pieces(&own[(mine + i) % threads].ticket, i > 0);
}

static void *work(void *number)
{
    int mine = (int)(intptr_t)number;
    for (;;) {
        uint32_t heard = atomic_load(&calls);
        int threads = atomic_load(&wanted);
        if (mine < threads) share_pieces(mine, threads);
        int most = atomic_load_explicit(&spins, memory_order_relaxed);
        for (int i = 0; i < most && atomic_load_explicit(&calls, memory_order_relaxed) == heard; i++) PAUSE();
        if (atomic_load(&calls) == heard) {
            atomic_fetch_add(&sleepers, 1);
            while (atomic_load(&calls) == heard) sleep_until_after(heard);
            atomic_fetch_sub(&sleepers, 1);
        }
    }
    return NULL;
}

static void after_fork(void)
{
    pthread_mutex_init(&taken, NULL);
    reset_sleep();
    for (int i = 0; i <= MOST_WORKERS; i++) atomic_store(&own[i].ticket, 0);
    atomic_store(&finished, 0);
    atomic_store(&sleepers, 0);
    atomic_store(&wanted, 0);
    workers = 0;
}

static void register_fork_handler(void) { pthread_atfork(NULL, NULL, after_fork); }

/* As many workers as asked for, or as many as the system gives. */
static int have_workers(int number)
{
    while (workers < number && workers < MOST_WORKERS) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)(workers + 1))) break;
        pthread_detach(thread);
        workers++;
    }
    return workers < number ? workers : number;
}

void retrograd_run(Kernel kernel, Size tasks, const Arg *args, int threads)
{
    if (threads > tasks) threads = (int)tasks;
    if (threads < 2 || pthread_mutex_trylock(&taken)) {
        kernel(0, tasks, args);
        return;
    }
    pthread_once(&once, register_fork_handler);
    threads = have_workers(threads - 1) + 1;
    Size pieces = tasks < 2 * threads ? threads : PIECES * threads;
    if (pieces > tasks) pieces = tasks;
    job.kernel = kernel;
    job.args = args;
    job.tasks = tasks;
    job.pieces = pieces;
    atomic_store_explicit(&spins, threads <= 4 ? SPINS_OF_FEW : SPINS_OF_MANY, memory_order_relaxed);
    atomic_store(&finished, 0);
    atomic_store(&wanted, threads);
    uint64_t call = atomic_load(&calls) + 1;
    for (int i = 0; i < threads; i++) {
        uint64_t first = (uint64_t)(pieces * i / threads), end = (uint64_t)(pieces * (i + 1) / threads);
        atomic_store_explicit(&own[i].ticket, call << 32 | first << 16 | end, memory_order_release);
    }
    atomic_fetch_add(&calls, 1);
    if (atomic_load(&sleepers)) wake_all();
    share_pieces(0, threads);
    for (int i = 0; atomic_load_explicit(&finished, memory_order_acquire) < (uint32_t)pieces; i++)
        if (i < SPINS_OF_FEW) PAUSE();
        else sched_yield(); /* a worker has a piece and no processor */
    pthread_mutex_unlock(&taken);
}

/* ---------------------------------------------------------------------------------------------------------- scratch */

static _Thread_local void *scratch;
static _Thread_local size_t scratch_bytes;

void *retrograd_scratch(size_t bytes)
{
    if (bytes > scratch_bytes) {
        free(scratch);
        scratch_bytes = 0;
        size_t size = (bytes + bytes / 4 + 63) / 64 * 64;
        scratch = aligned_alloc(64, size);
        if (!scratch) {
            fprintf(stderr, "retrograd_fast: no memory for %zu bytes that a kernel works in\n", size);
            abort();
        }
        scratch_bytes = size;
    }
    return scratch;
}
