/* One EM iteration as anyone would write it in C: the yardstick of benchmarks/likelihood.py. */
#include <math.h>
#include <stddef.h>
#include <string.h>

double em_iteration(const signed char *codes, int n_rows, int n_variables, int size, int rank,
                    const double *weights, const double *factors,
                    double *new_weights, double *new_factors)
{
    double posterior[64], log_likelihood = 0.0;
    memset(new_weights, 0, rank * sizeof(double));
    memset(new_factors, 0, (size_t)n_variables * size * rank * sizeof(double));
    for (int m = 0; m < n_rows; m++) {
        const signed char *row = codes + (size_t)m * n_variables;
        double total = 0.0;
        for (int f = 0; f < rank; f++) posterior[f] = weights[f];
        for (int n = 0; n < n_variables; n++) {
            if (row[n] < 0) continue;
            const double *level = factors + ((size_t)n * size + row[n]) * rank;
            for (int f = 0; f < rank; f++) posterior[f] *= level[f];
        }
        for (int f = 0; f < rank; f++) total += posterior[f];
        log_likelihood += log(total);
        for (int f = 0; f < rank; f++) {
            posterior[f] /= total;
            new_weights[f] += posterior[f];
        }
        for (int n = 0; n < n_variables; n++) {
            if (row[n] < 0) continue;
            double *level = new_factors + ((size_t)n * size + row[n]) * rank;
            for (int f = 0; f < rank; f++) level[f] += posterior[f];
        }
    }
    for (int f = 0; f < rank; f++) new_weights[f] /= n_rows;
    for (int n = 0; n < n_variables; n++)
        for (int f = 0; f < rank; f++) {
            double total = 0.0;
            for (int i = 0; i < size; i++) total += new_factors[((size_t)n * size + i) * rank + f];
            for (int i = 0; i < size && total > 0; i++) new_factors[((size_t)n * size + i) * rank + f] /= total;
        }
    return log_likelihood;
}
