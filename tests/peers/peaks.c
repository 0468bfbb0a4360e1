/* What the machine can do: bytes a second of the memory, and floating-point operations a second of the processor.
 *
 *     cc -O3 -march=native -fopenmp tests/peers/peaks.c -o peaks
 *
 * Each line of the input is `copy`, `add`, `triad`, `sum` or `fma` and a number of seconds to spend on it, with a tab between
 * them. The answer is the highest rate: bytes read and written, or operations, of all threads in a second. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* As many elements as the cases of elementwise kernels and reductions have, so that caches help both alike. */
enum { COUNT = 16 << 20, LANES = 16, SUMS = 20, ROUNDS = 200000 };

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

static float *a, *b, *c;
/* Results go here, so that no loop is left out. */
static volatile float sink;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static double copy(void) {
#pragma omp parallel for
    for (int i = 0; i < COUNT; i++) a[i] = -b[i];
    return 2.0 * sizeof(float) * COUNT;
}

static double add(void) {
#pragma omp parallel for
    for (int i = 0; i < COUNT; i++) a[i] = b[i] + c[i];
    return 3.0 * sizeof(float) * COUNT;
}

static double triad(void) {
#pragma omp parallel for
    for (int i = 0; i < COUNT; i++) a[i] = b[i] + 3.0f * c[i];
    return 3.0 * sizeof(float) * COUNT;
}

static double sum(void) {
    float total = 0;
#pragma omp parallel reduction(+ : total)
    {
        vector sums[8] = {0};
#pragma omp for
        for (int i = 0; i < COUNT; i += 8 * LANES)
            for (int k = 0; k < 8; k++) sums[k] += *(const vector *)(b + i + k * LANES);
        for (int k = 0; k < 8; k++)
            for (int lane = 0; lane < LANES; lane++) total += sums[k][lane];
    }
    sink = total;
    return 1.0 * sizeof(float) * COUNT;
}

/* Sums that do not wait for each other, all in registers. */
static double multiply_add(void) {
    double operations = 0;
#pragma omp parallel reduction(+ : operations)
    {
        vector sums[SUMS], factor, summand;
        for (int lane = 0; lane < LANES; lane++) factor[lane] = 0.999999f, summand[lane] = 1e-7f;
#pragma GCC unroll 20
        for (int k = 0; k < SUMS; k++) sums[k] = factor * (float)k;
        for (int round = 0; round < ROUNDS; round++) {
#pragma GCC unroll 20
            for (int k = 0; k < SUMS; k++) sums[k] = sums[k] * factor + summand;
            __asm__ volatile("");
        }
#pragma GCC unroll 20
        for (int k = 1; k < SUMS; k++) sums[0] += sums[k];
        sink = sums[0][0];
        operations += 2.0 * LANES * SUMS * ROUNDS;
    }
    return operations;
}

static float *array(float value) {
    float *elements = aligned_alloc(2 << 20, COUNT * sizeof(float));
    if (!elements) exit(1);
    /* What the kernels ask for as well. */
    madvise(elements, COUNT * sizeof(float), MADV_HUGEPAGE);
    /* Each thread is the first to touch what it will read and write. */
#pragma omp parallel for
    for (int i = 0; i < COUNT; i++) elements[i] = value;
    return elements;
}

int main(void) {
    const struct {
        const char *name;
        double (*run)(void);
    } peaks[] = {{"copy", copy}, {"add", add}, {"triad", triad}, {"sum", sum}, {"fma", multiply_add}};
    a = array(1), b = array(2), c = array(3);
    char line[64], name[32];
    double seconds;
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%31s %lf", name, &seconds) == 2) {
        double best = 0;
        for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++) {
            if (strcmp(name, peaks[i].name)) continue;
            for (double begin = now(); now() - begin < seconds;) {
                double start = now(), work = peaks[i].run(), rate = work / (now() - start);
                if (rate > best) best = rate;
            }
        }
        printf("%.6g\n", best);
        fflush(stdout);
    }
    return 0;
}
