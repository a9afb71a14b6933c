#define SINGLE
#define REAL float
#define SUFFIX _f32
#include "real.h"
#include "pointwise.inc"
#include "rows.inc"
#include "channels.inc"
#include "windows.inc"
#include "indexing.inc"
