/* The passes, compiled once for each instruction set, and the choice among them. */

#include <math.h>
#include <stddef.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernel.h"

typedef double f64x2 __attribute__((vector_size(16)));

/* -- what every copy of the passes uses ------------------------------------------------------------------------------ */

static float float_of(int32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static double double_of(int64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

void add_sums(struct sums *into, double sum, double squares, double sizes, double largest, int64_t zeros)
{
    into->sum += sum;
    into->squares += squares;
    into->sizes += sizes;
    into->largest = largest > into->largest ? largest : into->largest;
    into->zeros += zeros;
}

static void careful(double d, int64_t size, struct sums *into)
{
    if (size > INF64)
        into->nans++;
    else if (size == INF64)
        into->infs++;
    else
        add_sums(into, d, d * d, fabs(d), fabs(d), size == 0);
}

static void careful_f64(const double *x, int n, struct sums *into)
{
    for (int i = 0; i < n; i++)
        careful(x[i], ((const bits64 *)x)[i] & INT64_MAX, into);
}

static void careful_f32(const float *x, int n, struct sums *into)
{
    for (int i = 0; i < n; i++) {
        int32_t size = ((const bits32 *)x)[i] & INT32_MAX;
        careful(x[i], size > INF32 ? INF64 + 1 : size == INF32 ? INF64 : size ? 1 : 0, into);
    }
}

static int bin_of(double largest)
{
    int64_t bits;
    memcpy(&bits, &largest, sizeof bits);
    int bin = ((int)(bits >> 52) - (1023 + LOWEST_EXPONENT)) >> 1;
    return bin < 0 ? 0 : bin > BINS - 1 ? BINS - 1 : bin;
}

/* -- the passes, once for each instruction set ----------------------------------------------------------------------- */

#define ISA(name) name##_any
#define LANES 2
#define LOAD_F32(x) ((f64x2){(x)[0], (x)[1]})
#include "passes.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE 1
#define WIDEN_8_F16(x, wide) _mm256_storeu_ps(wide, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(x))))
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#define ISA(name) name##_avx2
#define LANES 4
#define LOAD_F32(x) _mm256_cvtps_pd(_mm_loadu_ps(x))
#include "passes.h"
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,prefer-vector-width=512")
#define ISA(name) name##_avx512
#define LANES 8
#define LOAD_F32(x) _mm512_cvtps_pd(_mm256_loadu_ps(x))
#include "passes.h"
#pragma GCC pop_options
#endif

static const struct passes *best_passes(void)
{
#ifdef WIDE
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return &passes_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
        return &passes_avx2;
#endif
    return &passes_any;
}

const struct passes *chosen;

/* Choose the copy: 0 the best for this processor, 1 the one for any, 2 AVX2, 3 AVX-512. Return 0 if there is none such. */
EXPORT int whygrad_choose(int copy)
{
    const struct passes *best = best_passes();
    chosen = copy == 0 ? best : copy == 1 ? &passes_any : NULL;
#ifdef WIDE
    if (copy == 2 && best != &passes_any)
        chosen = &passes_avx2;
    if (copy == 3 && best == &passes_avx512)
        chosen = &passes_avx512;
#endif
    int found = chosen != NULL;
    chosen = found ? chosen : best;
    return found;
}
