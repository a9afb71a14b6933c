/* What captured programs share: memory that kernels get back as they left it, and threads for long loops.
 *
 * Memory. While a program runs, arrays that NumPy and the kernels make come from here (NumPy lets one choose who hands
 * out memory, NEP 49). Large ones lie in a region of addresses of which they take the smallest free part that will do;
 * what is freed stays memory, for the next array, since the system would take it away and hand it out again page by
 * page, zeroed: for steps on large arrays that is a fifth of the time. A step that frees what it makes finds the same
 * places each time.
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

#define LARGE ((size_t)1 << 15)  /* bytes of a block that comes from the region */
#define HEADER 64                /* bytes before a block, which is aligned as much */
#define PAGE ((size_t)1 << 12)
#define HUGE_PAGES ((size_t)1 << 22)
#define REGION ((size_t)1 << 37) /* bytes, of addresses: what is not touched takes no memory */

typedef struct {
    void *start;
    size_t size; /* with the header */
} Header;

typedef struct {
    char *start;
    size_t size;
} Extent;

static char *region;
static size_t region_size;
static int is_serving; /* is there a program that will use again what is freed? */
static struct {
    Extent *extents; /* what is free of the region, by address; no two touch */
    size_t count, room;
} spare;
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static Header *header_of(void *block) { return (Header *)((char *)block - HEADER); }

static int is_of_region(void *block) { return region && (char *)block >= region && (char *)block < region + region_size; }

static int has_room(size_t count)
{
    if (count <= spare.room) return 1;
    Extent *more = realloc(spare.extents, 2 * count * sizeof(Extent));
    if (!more) return 0;
    spare.extents = more, spare.room = 2 * count;
    return 1;
}

static void reserve(void)
{
#ifdef MAP_NORESERVE
    static int tried;
    if (tried) return;
    tried = 1;
    if (!has_room(64)) return;
    for (size_t size = REGION; size >= (size_t)1 << 28 && !region; size /= 2) {
        void *found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (found == MAP_FAILED) continue;
        region = found, region_size = size;
        spare.extents[0] = (Extent){region, size};
        spare.count = 1;
    }
#endif
}

/* The smallest part that is free and will do: its beginning. */
static char *take(size_t size)
{
    size_t best = spare.count;
    for (size_t i = 0; i < spare.count; i++)
        if (spare.extents[i].size >= size && (best == spare.count || spare.extents[i].size < spare.extents[best].size))
            best = i;
    if (best == spare.count) return NULL;
    char *start = spare.extents[best].start;
    spare.extents[best].start += size;
    spare.extents[best].size -= size;
    if (!spare.extents[best].size) {
        spare.count--;
        memmove(spare.extents + best, spare.extents + best + 1, (spare.count - best) * sizeof(Extent));
    }
    return start;
}

static void put_back(char *start, size_t size)
{
    size_t low = 0, high = spare.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (spare.extents[middle].start < start) low = middle + 1;
        else high = middle;
    }
    Extent *next = spare.extents + low;
    int after = low < spare.count && start + size == next->start;
    int before = low && next[-1].start + next[-1].size == start;
    if (before && after) {
        next[-1].size += size + next->size;
        spare.count--;
        memmove(next, next + 1, (spare.count - low) * sizeof(Extent));
    } else if (before) {
        next[-1].size += size;
    } else if (after) {
        next->start = start, next->size += size;
    } else if (has_room(spare.count + 1)) {
        next = spare.extents + low;
        memmove(next + 1, next, (spare.count - low) * sizeof(Extent));
        *next = (Extent){start, size};
        spare.count++;
    } /* else these addresses are lost */
}

static void *allocate(size_t size, int zeroed)
{
    if (size > SIZE_MAX - 2 * PAGE) return NULL;
    if (size >= LARGE) {
        size_t whole = (size + HEADER + PAGE - 1) & ~(PAGE - 1);
        pthread_mutex_lock(&memory_lock);
        reserve();
        char *start = region ? take(whole) : NULL;
        pthread_mutex_unlock(&memory_lock);
        if (start) {
            char *block = start + HEADER;
#ifdef MADV_HUGEPAGE
            if (size >= HUGE_PAGES) madvise(start, whole, MADV_HUGEPAGE);
#endif
            *header_of(block) = (Header){start, whole};
            return zeroed ? memset(block, 0, size) : block;
        }
    }
    size_t whole = size + 2 * HEADER;
    void *start = zeroed ? calloc(1, whole) : malloc(whole);
    if (!start) return NULL;
    char *block = (char *)(((uintptr_t)start + 2 * HEADER - 1) & ~(uintptr_t)(HEADER - 1));
    *header_of(block) = (Header){start, size + HEADER};
    return block;
}

static void release(void *ctx, void *block, size_t size)
{
    (void)ctx, (void)size;
    if (!block) return;
    Header *header = header_of(block);
    if (is_of_region(block)) {
        char *start = header->start;
        size_t whole = header->size;
        pthread_mutex_lock(&memory_lock);
#ifdef MAP_NORESERVE
        if (!is_serving) madvise(start, whole, MADV_DONTNEED);
#endif
        put_back(start, whole);
        pthread_mutex_unlock(&memory_lock);
    } else free(header->start);
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
        size_t before = header_of(block)->size - HEADER;
        memcpy(other, block, before < size ? before : size);
        release(ctx, block, before);
    }
    return other;
}

void retrograd_serve(void)
{
    pthread_mutex_lock(&memory_lock);
    is_serving = 1;
    pthread_mutex_unlock(&memory_lock);
}

/* Give back the memory of what is free, and from now on of what is freed: no program is left. */
void retrograd_trim(void)
{
    pthread_mutex_lock(&memory_lock);
    is_serving = 0;
#ifdef MAP_NORESERVE
    for (size_t i = 0; i < spare.count; i++) madvise(spare.extents[i].start, spare.extents[i].size, MADV_DONTNEED);
#endif
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
