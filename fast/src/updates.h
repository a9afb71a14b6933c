/* What a step of an optimizer works on; see updates.inc. */
#include "pool.h"

#define UPDATE_BLOCK ((Size)1 << 14) /* elements of a task */

typedef struct {
    void **arrays;      /* rows of so many columns */
    const Size *sizes;  /* elements of each row's arrays */
    const Size *first;  /* the number of each row's first block, and of one beyond the last */
    Size columns;
    const double *settings;
    const int *given;
} Updates;
