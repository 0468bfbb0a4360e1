/* Measures the peaks of the machine: memory bandwidth, and floating-point operations per second.
 *
 *     cc -O3 -march=native -fopenmp tests/peers/peaks.c -o peaks
 *
 * Each input line is `copy`, `add`, `triad`, `sum` or `fma`, a tab, and the seconds to spend on it. The answer is the highest rate of
 * all threads together: bytes read and written per second, or operations per second. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* The number of elements in the cases of elementwise kernels and reductions, so that caches have the same effect. */
enum { COUNT = 16 << 20, LANES = 16, SUMS = 20, ROUNDS = 200000 };

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

static float *a, *b, *c;
/* Results are stored here, so that the compiler removes no loop. */
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

/* Independent accumulators, all in registers. */
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
    /* The kernels request huge pages too. */
    madvise(elements, COUNT * sizeof(float), MADV_HUGEPAGE);
    /* First touch: each thread initializes the memory that it will use. */
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
