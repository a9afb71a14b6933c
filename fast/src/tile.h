/* Vectors, and the tile of sums that stays in registers: TILE_ROWS by TILE_VECTORS vectors of LANES numbers.
 *
 * The sizes are those that fill the registers and no more: 24 sums of 32 registers with AVX-512 and on arm64, 12 of 16
 * elsewhere. All loops over a tile have constant bounds and disappear.
 */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define TILE_ROWS 8
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define TILE_ROWS 4
#elif defined(__aarch64__)
#define VECTOR_BYTES 16
#define TILE_ROWS 8
#else
#define VECTOR_BYTES 16
#define TILE_ROWS 4
#endif
#define TILE_VECTORS 3
#define LANES ((int)(VECTOR_BYTES / sizeof(REAL)))
#define PANEL (TILE_VECTORS * LANES)

typedef REAL Vector __attribute__((vector_size(VECTOR_BYTES)));
typedef REAL Anywhere __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define UP_TO(n, step) (((n) + (step)-1) / (step) * (step))
#define UNROLL _Pragma("GCC unroll 16")

INLINE Vector load_(const REAL *p) { return *(const Anywhere *)p; }
INLINE void store_(REAL *p, Vector v) { *(Anywhere *)p = v; }
INLINE Vector all_(REAL x) { return x - (Vector){0}; }

/* `rows` rows of `columns` numbers, `pitch` apart, written as columns: to[c * to_pitch + r]. Four by four at a time. */
typedef REAL NAME(Four) __attribute__((vector_size(4 * sizeof(REAL))));
typedef REAL NAME(FourAnywhere) __attribute__((vector_size(4 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));

static void NAME(transpose)(const REAL *from, Size pitch, Size rows, Size columns, REAL *to, Size to_pitch)
{
    Size r = 0;
    for (; r + 4 <= rows; r += 4) {
        const REAL *at = from + r * pitch;
        REAL *into = to + r;
        Size c = 0;
        for (; c + 4 <= columns; c += 4) {
            NAME(Four) row[4], half[4];
            for (int i = 0; i < 4; i++) row[i] = *(const NAME(FourAnywhere) *)(at + i * pitch + c);
            half[0] = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
            half[1] = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
            half[2] = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
            half[3] = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
            REAL *into_c = into + c * to_pitch;
            *(NAME(FourAnywhere) *)into_c = __builtin_shufflevector(half[0], half[2], 0, 1, 4, 5);
            *(NAME(FourAnywhere) *)(into_c + to_pitch) = __builtin_shufflevector(half[0], half[2], 2, 3, 6, 7);
            *(NAME(FourAnywhere) *)(into_c + 2 * to_pitch) = __builtin_shufflevector(half[1], half[3], 0, 1, 4, 5);
            *(NAME(FourAnywhere) *)(into_c + 3 * to_pitch) = __builtin_shufflevector(half[1], half[3], 2, 3, 6, 7);
        }
        for (; c < columns; c++)
            for (int i = 0; i < 4; i++) into[c * to_pitch + i] = at[i * pitch + c];
    }
    for (; r < rows; r++)
        for (Size c = 0; c < columns; c++) to[c * to_pitch + r] = from[r * pitch + c];
}
