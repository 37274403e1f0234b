/* What the files of the kernel share. */

#ifndef WHYGRAD_KERNEL_H
#define WHYGRAD_KERNEL_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define COLUMNS 8
#define BINS 32
#define LOWEST_EXPONENT (-48)
#define BLOCK 2048          /* elements: with their bins and a float32 copy they stay in the level 1 cache */
#define CHUNK (32 * BLOCK)  /* elements that one thread takes at a time */
#define RUN 16              /* elements of a sample that lie side by side: a cache line of float32 */
#define AHEAD 8             /* runs that are asked for before they are needed */
#define MOST_THREADS 64
#define PREFETCH_BYTES 1024 /* what the processor fetches by itself is too late by a third of the time */
#define INF32 0x7f800000
#define INF64 0x7ff0000000000000LL

enum { F32, F64, F16, BF16 };

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

/* The passes for this processor, see dispatch.c. */
extern const struct passes *chosen;

int size_of(int64_t type);
const float *as_f32(const void *address, int64_t type, int n, float *wide);
void read_block(const void *address, int64_t type, int n, struct sums *into, uint32_t *counts);
void add_sums(struct sums *into, double sum, double squares, double sizes, double largest, int64_t zeros);
void write_row(double *row, int64_t count, const struct sums *sums);

#endif
