/* Adding the rows of a step to the totals of a run: a dozen calls of torch would cost more than the rows themselves. */

#include "kernel.h"

static void add_row(const double *row, double *total)
{
    double largest = total[4] > row[4] ? total[4] : row[4];
    for (int column = 0; column < COLUMNS; column++)
        total[column] += row[column];
    total[4] = largest;
}

/* Add `rows`, [many, COLUMNS], to the totals of their ids: `totals` [ids, COLUMNS], `steps` [ids, 3] (seen, all zero, with
 * NaN or Inf), and `first`, the first step with NaN or Inf, -1 where there was none; steps may come in any order. */
EXPORT void whygrad_add(const int64_t *ids, int64_t many, const double *rows, int64_t step, double *totals,
                        int64_t *steps, int64_t *first)
{
    for (int64_t i = 0; i < many; i++) {
        const double *row = rows + i * COLUMNS;
        int64_t id = ids[i];
        int broken = row[6] + row[7] > 0;
        add_row(row, totals + id * COLUMNS);
        steps[3 * id] += row[0] > 0;
        steps[3 * id + 1] += row[0] > 0 && row[5] == row[0];
        steps[3 * id + 2] += broken;
        if (broken && (first[id] < 0 || step < first[id]))
            first[id] = step;
    }
}
