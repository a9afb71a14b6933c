#define REAL double
#define SUFFIX _f64
#include "real.h"
#include "tile.h"
#include "pointwise.inc"
#include "rows.inc"
#include "channels.inc"
#include "windows.inc"
#include "gemm.inc"
#include "recurrent.inc"
#include "conv.inc"
#include "indexing.inc"
#include "updates.h"
#include "updates.inc"

/* How wide vectors and tiles are, for those who divide the work. */
const int NAME(retrograd_lanes) = LANES, NAME(retrograd_panel) = PANEL, NAME(retrograd_tile_rows) = TILE_ROWS;
