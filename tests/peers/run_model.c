/* Measures runs of a model through the C API: `run_model MODEL`. Each input line is the seconds to spend; the answer is the shortest
 * mean time of many consecutive runs, in seconds. The input of the model is a tensor with one f32. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <oarlock.h>

enum { IN_A_ROW = 2000 };

/* Exits with the message of an error. */
static void check(oarlock_error *error) {
    if (error != NULL) {
        fprintf(stderr, "error: %s\n", oarlock_error_message(error));
        exit(EXIT_FAILURE);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: %s MODEL\n", arguments[0]);
        return EXIT_FAILURE;
    }
    oarlock_runtime *runtime;
    check(oarlock_runtime_start(NULL, &runtime));
    const oarlock_device *cpu;
    check(oarlock_runtime_find_device(runtime, "cpu", &cpu));
    oarlock_model *model;
    check(oarlock_model_load(arguments[1], &model));
    oarlock_session *session;
    check(oarlock_session_create(runtime, model, NULL, &session));
    const int64_t dims[1] = {1};
    const float element[1] = {1};
    oarlock_value *input, *output;
    check(oarlock_tensor_create(cpu, OARLOCK_DTYPE_F32, dims, 1, element, sizeof element, &input));
    const oarlock_value *inputs[1] = {input};

    double seconds;
    while (scanf("%lf", &seconds) == 1) {
        double best = 1e9, end = now() + seconds;
        do {
            double begin = now();
            for (int run = 0; run < IN_A_ROW; run++) {
                check(oarlock_session_run(session, inputs, 1, &output, 1));
                oarlock_value_free(output);
            }
            double taken = (now() - begin) / IN_A_ROW;
            best = taken < best ? taken : best;
        } while (now() < end);
        printf("%.9g\n", best);
        fflush(stdout);
    }
    oarlock_value_free(input);
    oarlock_session_free(session);
    oarlock_model_free(model);
    oarlock_runtime_free(runtime);
    return EXIT_SUCCESS;
}
