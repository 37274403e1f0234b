/* Statistics of many tensors in one read of each: the fused kernel of whygrad.stats.
 *
 * Plain pointers in, plain numbers out: nothing here knows torch or Python, so one library fits every version of both. The
 * columns of a row are those of `whygrad.model.STATISTICS`, the bins those of `HISTOGRAM_BINS`.
 */

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define EXPORT __attribute__((visibility("default")))
#define COLUMNS 8
#define BINS 32
#define LOWEST_EXPONENT (-48)
#define BLOCK 2048          /* elements: with their bins and a float32 copy they stay in the level 1 cache */
#define CHUNK (32 * BLOCK)  /* elements that one thread takes at a time */
#define RUN 64              /* elements of a sample that lie side by side */
#define MOST_THREADS 64
#define PREFETCH_BYTES 1024 /* what the processor fetches by itself is too late by a third of the time */
#define INF32 0x7f800000
#define INF64 0x7ff0000000000000LL

enum { F32, F64, F16, BF16 };

typedef double f64x2 __attribute__((vector_size(16)));
typedef int32_t bits32 __attribute__((may_alias));
typedef int64_t bits64 __attribute__((may_alias));

struct tensor {
    int64_t address, count, type;
};

struct sums {
    double sum, squares, sizes, largest;
    int64_t zeros, nans, infs;
};

struct passes {
    void (*sums_f32)(const float *, int, struct sums *);
    void (*sums_f64)(const double *, int, struct sums *);
    void (*bins_f32)(const float *, int, uint8_t *);
    void (*bins_f64)(const double *, int, uint8_t *);
    void (*count_bins)(uint8_t *, int, const struct sums *, uint32_t *);
    void (*widen_bf16)(const uint16_t *, int, float *);
    void (*widen_f16)(const uint16_t *, int, float *);
};

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

static void add_sums(struct sums *into, double sum, double squares, double sizes, double largest, int64_t zeros)
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

static const struct passes *chosen;

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

/* -- element types --------------------------------------------------------------------------------------------------- */

static int size_of(int64_t type)
{
    return type == F64 ? 8 : type == F32 ? 4 : 2;
}

/* Return n elements from `address` on as float32: in place, or as a copy in `wide`. */
static const float *as_f32(const void *address, int64_t type, int n, float *wide)
{
    if (type == BF16)
        chosen->widen_bf16(address, n, wide);
    else if (type == F16)
        chosen->widen_f16(address, n, wide);
    return type == F32 ? address : wide;
}

static void read_block(const void *address, int64_t type, int n, struct sums *into, uint32_t *counts)
{
    float wide[BLOCK];
    uint8_t bins[BLOCK];
    struct sums block = {0};
    if (type == F64) {
        chosen->sums_f64(address, n, &block);
        if (counts)
            chosen->bins_f64(address, n, bins);
    } else {
        const float *x = as_f32(address, type, n, wide);
        chosen->sums_f32(x, n, &block);
        if (counts)
            chosen->bins_f32(x, n, bins);
    }
    if (counts)
        chosen->count_bins(bins, n, &block, counts);
    add_sums(into, block.sum, block.squares, block.sizes, block.largest, block.zeros);
    into->nans += block.nans;
    into->infs += block.infs;
}

/* -- one tensor ------------------------------------------------------------------------------------------------------ */

/* Return whether a block of a large tensor is counted in its histogram: one of every `share`, at a place that moves, so
 * that no column of a matrix is favoured. */
static int is_sampled(int64_t block, int64_t share)
{
    uint32_t stretch = (uint32_t)(block / share);
    return block % share == (int64_t)((stretch * 2654435769u >> 8) % (uint32_t)share);
}

static void read_range(const struct tensor *tensor, int64_t from, int64_t to, int64_t share, struct sums *into,
                       uint32_t *counts)
{
    for (int64_t at = from; at < to; at += BLOCK) {
        int n = (int)(to - at < BLOCK ? to - at : BLOCK);
        const char *address = (const char *)(intptr_t)tensor->address + at * size_of(tensor->type);
        int counted = counts && (share == 1 || is_sampled(at / BLOCK, share));
        read_block(address, tensor->type, n, into, counted ? counts : NULL);
    }
}

static void write_row(double *row, int64_t count, const struct sums *sums)
{
    row[0] = (double)count;
    row[1] = sums->sum;
    row[2] = sums->squares;
    row[3] = sums->sizes;
    row[4] = sums->largest;
    row[5] = (double)sums->zeros;
    row[6] = (double)sums->nans;
    row[7] = (double)sums->infs;
}

/* -- many tensors, and threads --------------------------------------------------------------------------------------- */

struct part { /* what one thread found in one chunk: added up in order, so that threads change no bit */
    struct sums sums;
    uint32_t counts[BINS];
};

struct work {
    const struct tensor *tensors;
    const int64_t *first; /* chunk of each tensor, [many + 1] */
    int64_t many, limit, share;
    int with_counts;
    struct part *parts;
    atomic_llong next;
};

static void read_chunk(struct work *work, int64_t index, int64_t chunk)
{
    const struct tensor *tensor = &work->tensors[index];
    struct part *part = &work->parts[chunk];
    int64_t from = (chunk - work->first[index]) * CHUNK;
    int64_t to = tensor->count - from < CHUNK ? tensor->count : from + CHUNK;
    int64_t share = tensor->count > work->limit ? work->share : 1;
    read_range(tensor, from, to, share, &part->sums, work->with_counts ? part->counts : NULL);
}

static void *take_chunks(void *argument)
{
    struct work *work = argument;
    int64_t total = work->first[work->many], index = 0, chunk;
    while ((chunk = atomic_fetch_add(&work->next, 1)) < total) {
        while (work->first[index + 1] <= chunk)
            index++;
        read_chunk(work, index, chunk);
    }
    return NULL;
}

static void run_threads(struct work *work, int threads)
{
    pthread_t others[MOST_THREADS];
    int started = 0;
    while (started < threads - 1 && started < MOST_THREADS &&
           !pthread_create(&others[started], NULL, take_chunks, work))
        started++;
    take_chunks(work);
    while (started)
        pthread_join(others[--started], NULL);
}

static void add_parts(const struct work *work, double *rows, uint32_t *histograms)
{
    for (int64_t i = 0; i < work->many; i++) {
        struct sums total = {0};
        for (int64_t chunk = work->first[i]; chunk < work->first[i + 1]; chunk++) {
            const struct part *part = &work->parts[chunk];
            const struct sums *sums = &part->sums;
            add_sums(&total, sums->sum, sums->squares, sums->sizes, sums->largest, sums->zeros);
            total.nans += sums->nans;
            total.infs += sums->infs;
            for (int bin = 0; histograms && bin < BINS; bin++)
                histograms[i * BINS + bin] += part->counts[bin];
        }
        write_row(rows + i * COLUMNS, work->tensors[i].count, &total);
    }
}

static int read_in_threads(const struct tensor *tensors, int64_t many, double *rows, uint32_t *histograms, int64_t limit,
                           int64_t share, int threads)
{
    int64_t *first = malloc((size_t)(many + 1) * sizeof *first);
    if (!first)
        return -1;
    first[0] = 0;
    for (int64_t i = 0; i < many; i++)
        first[i + 1] = first[i] + (tensors[i].count + CHUNK - 1) / CHUNK;
    struct part *parts = calloc((size_t)first[many] + 1, sizeof *parts);
    if (!parts) {
        free(first);
        return -1;
    }
    struct work work = {tensors, first, many, limit, share, histograms != NULL, parts, 0};
    run_threads(&work, threads);
    add_parts(&work, rows, histograms);
    free(parts);
    free(first);
    return 0;
}

static void read_alone(const struct tensor *tensors, int64_t many, double *rows, uint32_t *histograms, int64_t limit,
                       int64_t share)
{
    for (int64_t i = 0; i < many; i++) {
        struct sums sums = {0};
        uint32_t *counts = histograms ? histograms + i * BINS : NULL;
        read_range(&tensors[i], 0, tensors[i].count, tensors[i].count > limit ? share : 1, &sums, counts);
        write_row(rows + i * COLUMNS, tensors[i].count, &sums);
    }
}

/* Fill `rows`, [many, COLUMNS], and `histograms`, [many, BINS] of zeros, unless that is NULL: of tensors of more than
 * `limit` elements one block in `share` is counted there. Return 0, or -1 where there is no memory. */
EXPORT int whygrad_statistics(const struct tensor *tensors, int64_t many, double *rows, uint32_t *histograms,
                              int64_t limit, int64_t share, int threads)
{
    if (threads > 1)
        return read_in_threads(tensors, many, rows, histograms, limit, share, threads);
    read_alone(tensors, many, rows, histograms, limit, share);
    return 0;
}

/* -- updates: a sample before a step, compared after it -------------------------------------------------------------- */

/* Return how many elements of a tensor are in a sample of at most `limit`. */
static int64_t sample_size(int64_t count, int64_t limit)
{
    return count <= limit ? count : limit / RUN * RUN;
}

/* Return where the run of a sample begins that holds its element `at`: one run from each of equal stretches, at a place
 * that moves from stretch to stretch. */
static int64_t run_start(int64_t count, int64_t limit, int64_t at)
{
    int64_t runs = count / RUN, stretches = limit / RUN, stretch = at / RUN;
    return (stretch * runs / stretches + stretch * 2654435769LL % (runs / stretches)) * RUN;
}

/* Copy a sample of each tensor, one behind the other, to `into`; tensors without an address are passed over. */
EXPORT void whygrad_samples(const struct tensor *tensors, int64_t many, int64_t limit, char *into)
{
    for (int64_t i = 0; i < many; i++) {
        const char *from = (const char *)(intptr_t)tensors[i].address;
        if (!from)
            continue;
        int64_t count = tensors[i].count, size = size_of(tensors[i].type), taken = sample_size(count, limit);
        if (count <= limit)
            memcpy(into, from, (size_t)(taken * size));
        else
            for (int64_t at = 0; at < taken; at += RUN)
                memcpy(into + at * size, from + run_start(count, limit, at) * size, (size_t)(RUN * size));
        into += taken * size;
    }
}

static void gather(const struct tensor *tensor, int64_t limit, int64_t at, int n, char *into)
{
    const char *from = (const char *)(intptr_t)tensor->address;
    int64_t size = size_of(tensor->type);
    if (tensor->count <= limit) {
        memcpy(into, from + at * size, (size_t)(n * size));
        return;
    }
    for (int i = 0; i < n; i += RUN)
        memcpy(into + i * size, from + run_start(tensor->count, limit, at + i) * size, (size_t)(RUN * size));
}

static void read_change(const struct tensor *tensor, const char *old, const void *new, int n, struct sums *into)
{
    double change64[BLOCK];
    float change[BLOCK], wide_old[BLOCK], wide_new[BLOCK];
    if (tensor->type == F64) {
        for (int i = 0; i < n; i++)
            change64[i] = ((const double *)new)[i] - ((const double *)(const void *)old)[i];
        read_block(change64, F64, n, into, NULL);
        return;
    }
    const float *before = as_f32(old, tensor->type, n, wide_old), *after = as_f32(new, tensor->type, n, wide_new);
    for (int i = 0; i < n; i++)
        change[i] = after[i] - before[i];
    read_block(change, F32, n, into, NULL);
}

/* Fill `rows` with the statistics of what changed since `whygrad_samples` filled `old`; zeros are what did not. A tensor
 * without an address is passed over, with what `old` holds of it. */
EXPORT void whygrad_updates(const struct tensor *tensors, int64_t many, int64_t limit, const char *old, double *rows)
{
    double new[BLOCK];
    for (int64_t i = 0; i < many; i++) {
        struct sums total = {0};
        int64_t size = size_of(tensors[i].type), kept = sample_size(tensors[i].count, limit);
        int64_t taken = tensors[i].address ? kept : 0;
        for (int64_t at = 0; at < taken; at += BLOCK) {
            int n = (int)(taken - at < BLOCK ? taken - at : BLOCK);
            gather(&tensors[i], limit, at, n, (char *)new);
            read_change(&tensors[i], old + at * size, new, n, &total);
        }
        old += kept * size;
        write_row(rows + i * COLUMNS, taken, &total);
    }
}

/* -- rows ------------------------------------------------------------------------------------------------------------ */

/* Set `alive[row]` where a row of `width` elements holds one that is not zero; rows that are set already are not read.
 * Return how many rows are not set. */
EXPORT int64_t whygrad_rows(const struct tensor *tensor, int64_t rows, int64_t width, uint8_t *alive)
{
    int64_t silent = 0, size = size_of(tensor->type), words = width * size / 2;
    const uint16_t *row = (const uint16_t *)(intptr_t)tensor->address;
    int64_t per_element = size / 2;
    for (int64_t i = 0; i < rows; i++, row += words) {
        for (int64_t at = 0; at < words && !alive[i]; at += per_element) {
            uint16_t bits = row[at + per_element - 1] & 0x7fff; /* -0.0 is zero; the sign is in the last word */
            for (int64_t word = 0; word < per_element - 1; word++)
                bits |= row[at + word];
            alive[i] = bits != 0;
        }
        silent += !alive[i];
    }
    return silent;
}
