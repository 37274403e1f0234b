/* What is read of a few elements only: updates from a sample, and which rows hold anything. */

#include <string.h>

#include "kernel.h"

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

/* Ask for the run of a sample that comes a few runs after the one at `at`: runs lie far apart, and waiting for each takes
 * several times as long as copying it. */
static void ask_ahead(const char *from, int64_t size, int64_t count, int64_t limit, int64_t at)
{
    if (at + AHEAD * RUN < limit / RUN * RUN) {
        const char *next = from + run_start(count, limit, at + AHEAD * RUN) * size;
        for (int64_t byte = 0; byte < RUN * size; byte += 64)
            __builtin_prefetch(next + byte);
    }
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
            for (int64_t at = 0; at < taken; at += RUN) {
                ask_ahead(from, size, count, limit, at);
                memcpy(into + at * size, from + run_start(count, limit, at) * size, (size_t)(RUN * size));
            }
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
    for (int i = 0; i < n; i += RUN) {
        ask_ahead(from, size, tensor->count, limit, at + i);
        memcpy(into + i * size, from + run_start(tensor->count, limit, at + i) * size, (size_t)(RUN * size));
    }
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
