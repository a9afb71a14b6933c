/* Threads that kernels share: retrograd_run divides the tasks of a kernel among the caller and some workers.
 *
 * Not OpenMP, whose workers spin for milliseconds after each call, on the processors that the workers of BLAS need next.
 * These spin for as long as it takes to wake a sleeping thread, and sleep then.
 *
 * One call has the workers at a time; another thread's call meanwhile runs on that thread alone. After a fork the child
 * has no workers, and starts its own when it needs them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "pool.h"

#define MOST_WORKERS 255
#define SPINS 4000

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() ((void)0)
#endif

typedef struct {
    Kernel kernel;
    const Arg *args;
    Size tasks;
    int threads;
} Job;

static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER; /* held by the call that has the workers */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  /* of everything below */
static pthread_cond_t started = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static Job job;
static atomic_long jobs; /* how many there have been */
static atomic_int unfinished;
static int workers;

static void run_share(const Job *j, int share)
{
    j->kernel(j->tasks * share / j->threads, j->tasks * (share + 1) / j->threads, j->args);
}

static void *work(void *number)
{
    int share = (int)(intptr_t)number;
    long seen = 0;
    for (;;) {
        for (int i = 0; i < SPINS && atomic_load(&jobs) == seen; i++) PAUSE();
        pthread_mutex_lock(&lock);
        while (atomic_load(&jobs) == seen) pthread_cond_wait(&started, &lock);
        seen = atomic_load(&jobs);
        Job mine = job;
        pthread_mutex_unlock(&lock);
        if (share >= mine.threads) continue;
        run_share(&mine, share);
        if (atomic_fetch_sub(&unfinished, 1) == 1) {
            pthread_mutex_lock(&lock);
            pthread_cond_signal(&finished);
            pthread_mutex_unlock(&lock);
        }
    }
    return NULL;
}

static void after_fork(void)
{
    pthread_mutex_init(&taken, NULL);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&started, NULL);
    pthread_cond_init(&finished, NULL);
    atomic_store(&jobs, 0);
    atomic_store(&unfinished, 0);
    workers = 0;
}

static void register_fork_handler(void) { pthread_atfork(NULL, NULL, after_fork); }

/* As many workers as asked for, or as many as the system gives. */
static int have_workers(int wanted)
{
    while (workers < wanted && workers < MOST_WORKERS) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)(workers + 1))) break;
        pthread_detach(thread);
        workers++;
    }
    return workers < wanted ? workers : wanted;
}

void retrograd_run(Kernel kernel, Size tasks, const Arg *args, int threads)
{
    if (threads > tasks) threads = (int)tasks;
    if (threads < 2 || pthread_mutex_trylock(&taken)) {
        kernel(0, tasks, args);
        return;
    }
    pthread_once(&once, register_fork_handler);
    pthread_mutex_lock(&lock);
    /* A new worker has to wait for the lock, and then finds this job. */
    int helpers = have_workers(threads - 1);
    Job mine = {kernel, args, tasks, helpers + 1};
    job = mine;
    atomic_store(&unfinished, helpers);
    atomic_fetch_add(&jobs, 1);
    pthread_cond_broadcast(&started);
    pthread_mutex_unlock(&lock);
    run_share(&mine, 0);
    for (int i = 0; i < SPINS && atomic_load(&unfinished); i++) PAUSE();
    if (atomic_load(&unfinished)) {
        pthread_mutex_lock(&lock);
        while (atomic_load(&unfinished)) pthread_cond_wait(&finished, &lock);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&taken);
}
