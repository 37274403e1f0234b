/* Passes over a block of elements, compiled once for each instruction set: ISA(name) is the name of that copy, LANES how
 * many float64 fit its vectors, LOAD_F32(x) the widened LANES float32 at x.
 *
 * Sums run in float64, so that squares neither vanish nor overflow. Zeros, the maximum and the bins are taken from the
 * bits of the numbers, which is exact whatever the compiler makes of it.
 */

typedef double ISA(f64v) __attribute__((vector_size(8 * LANES)));
typedef int64_t ISA(i64v) __attribute__((vector_size(8 * LANES)));
typedef uint64_t ISA(u64v) __attribute__((vector_size(8 * LANES)));
typedef uint8_t ISA(u8v) __attribute__((vector_size(8 * LANES)));

static double ISA(lanes)(ISA(f64v) vector)
{
    double sum = 0;
    for (int lane = 0; lane < LANES; lane++)
        sum += vector[lane];
    return sum;
}

static void ISA(sums_f32)(const float *x, int n, struct sums *into)
{
    ISA(f64v) s0 = {0}, s1 = {0}, q0 = {0}, q1 = {0}, a0 = {0}, a1 = {0};
    const bits32 *bits = (const bits32 *)x;
    int32_t top = 0, zeros = 0;
    int i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        ISA(f64v) d = LOAD_F32(x + i), e = LOAD_F32(x + i + LANES);
        __builtin_prefetch(x + i + PREFETCH_BYTES / 4);
        s0 += d;
        s1 += e;
        q0 += d * d;
        q1 += e * e;
        a0 += (ISA(f64v))((ISA(i64v))d & INT64_MAX);
        a1 += (ISA(f64v))((ISA(i64v))e & INT64_MAX);
    }
    double sum = ISA(lanes)(s0 + s1), squares = ISA(lanes)(q0 + q1), sizes = ISA(lanes)(a0 + a1);
    for (; i < n; i++) {
        double d = x[i];
        sum += d;
        squares += d * d;
        sizes += fabs(d);
    }
    for (i = 0; i < n; i++) {
        int32_t size = bits[i] & INT32_MAX;
        top = size > top ? size : top;
        zeros += size == 0;
    }
    if (top >= INF32)
        careful_f32(x, n, into);
    else
        add_sums(into, sum, squares, sizes, float_of(top), zeros);
}

static void ISA(sums_f64)(const double *x, int n, struct sums *into)
{
    ISA(f64v) s0 = {0}, q0 = {0}, a0 = {0};
    const bits64 *bits = (const bits64 *)x;
    int64_t top = 0, zeros = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        ISA(f64v) d;
        __builtin_prefetch(x + i + PREFETCH_BYTES / 8);
        memcpy(&d, x + i, sizeof d);
        s0 += d;
        q0 += d * d;
        a0 += (ISA(f64v))((ISA(i64v))d & INT64_MAX);
    }
    double sum = ISA(lanes)(s0), squares = ISA(lanes)(q0), sizes = ISA(lanes)(a0);
    for (; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
        sizes += fabs(x[i]);
    }
    for (i = 0; i < n; i++) {
        int64_t size = bits[i] & INT64_MAX;
        top = size > top ? size : top;
        zeros += size == 0;
    }
    if (top >= INF64)
        careful_f64(x, n, into);
    else
        add_sums(into, sum, squares, sizes, double_of(top), zeros);
}

/* Bins of the log2-size histogram: two exponents each from 2**-48 on, clamped. Zeros land in bin 0, NaN and Inf in the
 * last one; `count_bins` takes both out again. */
static void ISA(bins_f32)(const float *x, int n, uint8_t *bins)
{
    const bits32 *bits = (const bits32 *)x;
    for (int i = 0; i < n; i++) {
        int32_t bin = ((bits[i] & INT32_MAX) - ((127 + LOWEST_EXPONENT) << 23)) >> 24;
        bin = bin < 0 ? 0 : bin;
        bins[i] = (uint8_t)(bin > BINS - 1 ? BINS - 1 : bin);
    }
}

static void ISA(bins_f64)(const double *x, int n, uint8_t *bins)
{
    const bits64 *bits = (const bits64 *)x;
    for (int i = 0; i < n; i++) {
        int32_t bin = ((int32_t)((bits[i] & INT64_MAX) >> 52) - (1023 + LOWEST_EXPONENT)) >> 1;
        bin = bin < 0 ? 0 : bin;
        bins[i] = (uint8_t)(bin > BINS - 1 ? BINS - 1 : bin);
    }
}

/* Return how many of `n` bytes, a multiple of the vector and at most BLOCK, are equal to `bin`. */
static int ISA(count_equal)(const uint8_t *bins, int n, uint8_t bin)
{
    const uint64_t low = 0x00ff00ff00ff00ffULL;
    ISA(u8v) found = {0};
    for (int i = 0; i < n; i += 8 * LANES) {
        ISA(u8v) v;
        memcpy(&v, bins + i, sizeof v);
        found -= (ISA(u8v))(v == bin);
    }
    ISA(u64v) pairs = ((ISA(u64v))found & low) + (((ISA(u64v))found >> 8) & low);
    uint64_t sum = 0;
    for (int lane = 0; lane < LANES; lane++)
        sum += (pairs[lane] & 0x0000ffff0000ffffULL) + ((pairs[lane] >> 16) & 0x0000ffff0000ffffULL);
    return (int)((sum & 0xffffffffULL) + (sum >> 32));
}

/* Add the bins of a block. Gradients of a block lie within a few bins: counting starts at the bin of the largest and ends
 * when every nonzero element is found. */
static void ISA(count_bins)(uint8_t *bins, int n, const struct sums *block, uint32_t *counts)
{
    int padded = (n + 63) / 64 * 64;
    int64_t left = n - block->zeros;
    memset(bins + n, 0xff, (size_t)(padded - n));
    int bin = block->nans || block->infs ? BINS - 1 : bin_of(block->largest);
    for (; bin > 0 && left > 0; bin--) {
        int count = ISA(count_equal)(bins, padded, (uint8_t)bin);
        left -= count;
        counts[bin] += (uint32_t)count;
    }
    counts[0] += (uint32_t)left;
    counts[BINS - 1] -= (uint32_t)(block->nans + block->infs);
}

static void ISA(widen_bf16)(const uint16_t *x, int n, float *wide)
{
    bits32 *bits = (bits32 *)wide;
    for (int i = 0; i < n; i++)
        bits[i] = (int32_t)((uint32_t)x[i] << 16);
}

static void ISA(widen_f16)(const uint16_t *x, int n, float *wide)
{
    bits32 *bits = (bits32 *)wide;
    int i = 0;
#ifdef WIDEN_8_F16
    for (; i + 8 <= n; i += 8)
        WIDEN_8_F16(x + i, wide + i);
#endif
    for (; i < n; i++) {
        int32_t size = x[i] & 0x7fff;
        float tiny = (float)size * 0x1p-24f; /* subnormal numbers are multiples of it */
        int32_t subnormal;
        memcpy(&subnormal, &tiny, sizeof subnormal);
        int32_t normal = (size << 13) + (112 << 23) + (size >= 0x7c00 ? 112 << 23 : 0);
        bits[i] = (size < 0x0400 ? subnormal : normal) | (int32_t)((uint32_t)(x[i] & 0x8000) << 16);
    }
}

static const struct passes ISA(passes) = {
    ISA(sums_f32), ISA(sums_f64), ISA(bins_f32), ISA(bins_f64), ISA(count_bins), ISA(widen_bf16), ISA(widen_f16),
};

#undef ISA
#undef LANES
#undef LOAD_F32
