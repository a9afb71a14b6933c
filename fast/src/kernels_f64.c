#define REAL double
#define SUFFIX _f64
#include "real.h"
#include "pointwise.inc"
#include "rows.inc"
#include "channels.inc"
#include "windows.inc"
#include "indexing.inc"
