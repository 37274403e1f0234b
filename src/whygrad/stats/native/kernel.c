/* Statistics of many tensors in one read of each: the fused kernel of whygrad.stats.
 *
 * Plain pointers in, plain numbers out: nothing here knows torch or Python, so one library fits every version of both. The
 * columns of a row are those of `whygrad.model.STATISTICS`, the bins those of `HISTOGRAM_BINS`.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "kernel.h"

/* -- element types --------------------------------------------------------------------------------------------------- */

int size_of(int64_t type)
{
    return type == F64 ? 8 : type == F32 ? 4 : 2;
}

/* Return n elements from `address` on as float32: in place, or as a copy in `wide`. */
const float *as_f32(const void *address, int64_t type, int n, float *wide)
{
    if (type == BF16)
        chosen->widen_bf16(address, n, wide);
    else if (type == F16)
        chosen->widen_f16(address, n, wide);
    return type == F32 ? address : wide;
}

static void merge_sums(struct sums *into, const struct sums *part)
{
    add_sums(into, part->sum, part->squares, part->sizes, part->largest, part->zeros);
    into->nans += part->nans;
    into->infs += part->infs;
}

void read_block(const void *address, int64_t type, int n, struct sums *into, uint32_t *counts)
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
    merge_sums(into, &block);
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

void write_row(double *row, int64_t count, const struct sums *sums)
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
            merge_sums(&total, &part->sums);
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
        int64_t count = tensors[i].count;
        struct sums total = {0};
        uint32_t *counts = histograms ? histograms + i * BINS : NULL;
        for (int64_t from = 0; from < count; from += CHUNK) { /* as threads do, to the last bit */
            struct sums part = {0};
            int64_t to = count - from < CHUNK ? count : from + CHUNK;
            read_range(&tensors[i], from, to, count > limit ? share : 1, &part, counts);
            merge_sums(&total, &part);
        }
        write_row(rows + i * COLUMNS, count, &total);
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

/* Fill `row`, [COLUMNS], for one tensor. Return 0, or -1 where there is no memory. */
EXPORT int whygrad_one(int64_t address, int64_t count, int64_t type, double *row, int threads)
{
    struct tensor tensor = {address, count, type};
    return whygrad_statistics(&tensor, 1, row, NULL, 0, 1, threads);
}
