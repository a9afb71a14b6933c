/* What captured programs share: memory that kernels get back as they left it, and threads for long loops.
 *
 * Memory. While a program runs, arrays that NumPy and the kernels make come from here (NumPy lets one choose who hands
 * out memory, NEP 49). A large block that is freed is kept for the next array of about its size, since the system would
 * take it away and hand it out again page by page, zeroed: for steps on large arrays that is a fifth of the time. Blocks
 * in use and blocks kept together are never more than what was in use at once at some time.
 *
 * Threads. `share` divides the rounds of a loop among the caller and workers. They claim pieces, and the caller goes on
 * as soon as all pieces are done and nobody is at one. One loop has the workers at a time; another thread's meanwhile
 * runs on that thread alone. After a fork the child has no workers and starts its own.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif

/* ----------------------------------------------------------------------------------------------------------- memory */

#define LARGE (1 << 15)  /* bytes of a block that is kept */
#define MAPPED (1 << 18) /* and of one that the system is asked for, so that it leaves no hole when it is given back */
#define HEADER 64 /* bytes before a block, which is aligned as much */
#define MOST 512  /* blocks that are kept */
#define HUGE_PAGES ((size_t)1 << 22)

typedef struct {
    void *start;
    size_t size, mapped;
    int large;
} Header;

static struct {
    void *block[MOST];
    size_t size[MOST];
    int count;
} kept;
static size_t in_use, in_kept, most_in_use;
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static Header *header_of(void *block) { return (Header *)((char *)block - HEADER); }

static void forget(int i)
{
    in_kept -= kept.size[i];
    kept.count--;
    memmove(kept.block + i, kept.block + i + 1, (kept.count - i) * sizeof(void *));
    memmove(kept.size + i, kept.size + i + 1, (kept.count - i) * sizeof(size_t));
}

static void *new_block(size_t size, int large, int zeroed)
{
    void *start = NULL;
    size_t whole = size + 2 * HEADER, mapped = 0;
#ifdef MAP_ANONYMOUS
    if (size >= MAPPED) {
        start = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED) return NULL;
        mapped = whole;
    }
#endif
    if (!start) start = zeroed ? calloc(1, whole) : malloc(whole);
    if (!start) return NULL;
    char *block = (char *)(((uintptr_t)start + 2 * HEADER - 1) & ~(uintptr_t)(HEADER - 1));
    *header_of(block) = (Header){start, size, mapped, large};
#ifdef MADV_HUGEPAGE
    if (size >= HUGE_PAGES) {
        uintptr_t first = ((uintptr_t)block + 4095) & ~(uintptr_t)4095;
        madvise((void *)first, size - (first - (uintptr_t)block), MADV_HUGEPAGE);
    }
#endif
    return block;
}

static void give_back(void *block)
{
    Header *header = header_of(block);
#ifdef MAP_ANONYMOUS
    if (header->mapped) {
        munmap(header->start, header->mapped);
        return;
    }
#endif
    free(header->start);
}

/* The smallest kept block that will do and is not much larger. */
static void *take(size_t size)
{
    int best = -1;
    for (int i = kept.count - 1; i >= 0; i--)
        if (kept.size[i] >= size && kept.size[i] <= size + size / 4 && (best < 0 || kept.size[i] < kept.size[best])) best = i;
    if (best < 0) return NULL;
    void *block = kept.block[best];
    in_use += kept.size[best];
    forget(best);
    return block;
}

static void *allocate(size_t size, int zeroed)
{
    if (size < LARGE) return new_block(size, 0, zeroed);
    void *given_up[MOST];
    int many = 0;
    pthread_mutex_lock(&memory_lock);
    void *block = take(size);
    if (!block) {
        in_use += size;
        if (in_use > most_in_use) most_in_use = in_use;
        while (kept.count && in_use + in_kept > most_in_use) {
            given_up[many++] = kept.block[0];
            forget(0);
        }
    } else if (in_use > most_in_use) most_in_use = in_use;
    pthread_mutex_unlock(&memory_lock);
    while (many) give_back(given_up[--many]);
    if (block) return zeroed ? memset(block, 0, size) : block;
    block = new_block(size, 1, zeroed);
    if (!block) {
        pthread_mutex_lock(&memory_lock);
        in_use -= size;
        pthread_mutex_unlock(&memory_lock);
    }
    return block;
}

static void release(void *ctx, void *block, size_t size)
{
    (void)ctx, (void)size;
    if (!block) return;
    Header *header = header_of(block);
    if (header->large) {
        int keep;
        pthread_mutex_lock(&memory_lock);
        in_use -= header->size;
        keep = kept.count < MOST && in_use + in_kept + header->size <= most_in_use;
        if (keep) {
            kept.block[kept.count] = block;
            kept.size[kept.count++] = header->size;
            in_kept += header->size;
        }
        pthread_mutex_unlock(&memory_lock);
        if (keep) return;
    }
    give_back(block);
}

static void *plain(void *ctx, size_t size) { return (void)ctx, allocate(size, 0); }

static void *zeroed(void *ctx, size_t count, size_t each)
{
    (void)ctx;
    return each && count > SIZE_MAX / each ? NULL : allocate(count * each, 1);
}

static void *resized(void *ctx, void *block, size_t size)
{
    void *other = allocate(size, 0);
    if (other && block) {
        size_t before = header_of(block)->size;
        memcpy(other, block, before < size ? before : size);
        release(ctx, block, before);
    }
    return other;
}

/* Give back what is kept: no program is left. */
void retrograd_trim(void)
{
    pthread_mutex_lock(&memory_lock);
    while (kept.count) {
        give_back(kept.block[kept.count - 1]);
        forget(kept.count - 1);
    }
    most_in_use = in_use;
    pthread_mutex_unlock(&memory_lock);
}

/* As NumPy's headers have it: a name, a version, and the four functions. */
struct {
    char name[127];
    uint8_t version;
    struct {
        void *ctx;
        void *(*malloc)(void *, size_t);
        void *(*calloc)(void *, size_t, size_t);
        void *(*realloc)(void *, void *, size_t);
        void (*free)(void *, void *, size_t);
    } allocator;
} retrograd_handler = {"retrograd_capture", 1, {NULL, plain, zeroed, resized, release}};

/* ---------------------------------------------------------------------------------------------------------- threads */

#define MOST_WORKERS 63
#define PIECES 4 /* for each thread: they are never equally fast */

typedef void (*Part)(char **, long, long);

static struct {
    Part part;
    char **pointers;
    long rounds, pieces;
    _Atomic long next;
} job;
static int threads = 1, workers, wanted, at_work, open_;
static unsigned long turn;
static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER; /* held by the loop that has the workers */
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void claim_pieces(void)
{
    for (long i; (i = atomic_fetch_add(&job.next, 1)) < job.pieces;)
        job.part(job.pointers, job.rounds * i / job.pieces, job.rounds * (i + 1) / job.pieces);
}

static void *work(void *number)
{
    unsigned long seen = 0;
    pthread_mutex_lock(&door);
    for (;;) {
        while (!open_ || turn == seen || (long)(intptr_t)number >= wanted) {
            if (open_) seen = turn;
            pthread_cond_wait(&bell, &door);
        }
        seen = turn;
        at_work++;
        pthread_mutex_unlock(&door);
        claim_pieces();
        pthread_mutex_lock(&door);
        if (!--at_work) pthread_cond_signal(&done);
    }
    return NULL;
}

static void before_fork(void)
{
    pthread_mutex_lock(&taken);
    pthread_mutex_lock(&door);
    pthread_mutex_lock(&memory_lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&memory_lock);
    pthread_mutex_unlock(&door);
    pthread_mutex_unlock(&taken);
}

static void in_child(void)
{
    workers = 0;
    pthread_mutex_init(&taken, NULL);
    pthread_mutex_init(&door, NULL);
    pthread_mutex_init(&memory_lock, NULL);
    pthread_cond_init(&bell, NULL);
    pthread_cond_init(&done, NULL);
}

static void prepare(void) { pthread_atfork(before_fork, in_parent, in_child); }

void retrograd_use_threads(int many)
{
    pthread_once(&once, prepare);
    pthread_mutex_lock(&taken);
    threads = many < 1 ? 1 : many > MOST_WORKERS + 1 ? MOST_WORKERS + 1 : many;
    pthread_mutex_unlock(&taken);
}

static int start_workers(int many)
{
    while (workers < many) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)workers)) break;
        pthread_detach(thread);
        workers++;
    }
    return workers < many ? workers : many;
}

void retrograd_share(Part part, char **pointers, long rounds)
{
    if (threads == 1 || rounds < 2 || pthread_mutex_trylock(&taken)) {
        part(pointers, 0, rounds);
        return;
    }
    pthread_mutex_lock(&door);
    int helpers = start_workers(threads - 1);
    job.part = part, job.pointers = pointers, job.rounds = rounds;
    job.pieces = (long)PIECES * (helpers + 1) < rounds ? (long)PIECES * (helpers + 1) : rounds;
    atomic_store(&job.next, 0);
    wanted = helpers;
    turn++;
    open_ = 1;
    pthread_cond_broadcast(&bell);
    pthread_mutex_unlock(&door);
    claim_pieces();
    pthread_mutex_lock(&door);
    open_ = 0;
    while (at_work) pthread_cond_wait(&done, &door);
    pthread_mutex_unlock(&door);
    pthread_mutex_unlock(&taken);
}
