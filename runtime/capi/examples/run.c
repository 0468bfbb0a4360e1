/* Runs a model on an input that is made up, and prints the outputs: `run MODEL [DEVICE]`. */
#include <stdio.h>
#include <stdlib.h>

#include <oarlock.h>

/* Ends the program with what an error says. */
static void check(oarlock_error *error) {
    if (error == NULL) {
        return;
    }
    fprintf(stderr, "error: %s\n", oarlock_error_message(error));
    if (oarlock_error_hint(error) != NULL) {
        fprintf(stderr, "hint: %s\n", oarlock_error_hint(error));
    }
    oarlock_error_free(error);
    exit(EXIT_FAILURE);
}

/* Makes 0, 1, 2, … for an input; a dimension that may be of any size gets 1. */
static oarlock_value *count_up(const oarlock_slot *slot, const oarlock_device *device) {
    if (oarlock_slot_dtype(slot) != OARLOCK_DTYPE_F32 || oarlock_slot_rank(slot) < 0) {
        fprintf(stderr, "error: expected an input of f32, found `%s`\n", oarlock_slot_description(slot));
        exit(EXIT_FAILURE);
    }
    uint64_t rank = (uint64_t)oarlock_slot_rank(slot), count = 1;
    int64_t *dims = calloc(rank + 1, sizeof *dims);
    for (uint64_t at = 0; dims != NULL && at < rank; at++) {
        dims[at] = oarlock_slot_dims(slot)[at] < 0 ? 1 : oarlock_slot_dims(slot)[at];
        count *= (uint64_t)dims[at];
    }
    float *elements = calloc(count + 1, sizeof *elements);
    if (dims == NULL || elements == NULL) {
        abort();
    }
    for (uint64_t at = 0; at < count; at++) {
        elements[at] = (float)at;
    }
    oarlock_value *value;
    check(oarlock_tensor_create(device, OARLOCK_DTYPE_F32, dims, rank, elements, count * sizeof *elements, &value));
    free(elements);
    free(dims);
    return value;
}

static void print(const oarlock_slot *slot, const oarlock_value *value) {
    printf("%s =", oarlock_slot_description(slot));
    if (oarlock_tensor_dtype(value) == OARLOCK_DTYPE_F32) {
        uint64_t size = oarlock_tensor_size(value);
        float *elements = malloc(size + 1);
        if (elements == NULL) {
            abort();
        }
        check(oarlock_tensor_read(value, elements, size));
        for (uint64_t at = 0; at < oarlock_tensor_count(value); at++) {
            printf(" %g", (double)elements[at]);
        }
        free(elements);
    }
    printf("\n");
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: %s MODEL [DEVICE]\n", arguments[0]);
        return EXIT_FAILURE;
    }
    oarlock_runtime_options options = {0};
    options.size = sizeof options;
    options.program = "run.c 1.0";
    options.device = count > 2 ? arguments[2] : NULL;
    oarlock_runtime *runtime;
    check(oarlock_runtime_start(&options, &runtime));
    const oarlock_device *device;
    check(oarlock_runtime_find_device(runtime, NULL, &device));
    printf("Oarlock %s on %s\n", oarlock_version(), oarlock_device_name(device));

    oarlock_model *model;
    check(oarlock_model_load(arguments[1], &model));
    oarlock_session *session;
    check(oarlock_session_create(runtime, model, NULL, &session));
    oarlock_model_free(model);

    uint64_t input_count = oarlock_session_input_count(session);
    uint64_t output_count = oarlock_session_output_count(session);
    oarlock_value **inputs = calloc(input_count + 1, sizeof *inputs);
    oarlock_value **outputs = calloc(output_count + 1, sizeof *outputs);
    if (inputs == NULL || outputs == NULL) {
        abort();
    }
    for (uint64_t at = 0; at < input_count; at++) {
        inputs[at] = count_up(oarlock_session_input(session, at), device);
    }
    check(oarlock_session_run(session, (const oarlock_value *const *)inputs, input_count, outputs, output_count));
    for (uint64_t at = 0; at < output_count; at++) {
        print(oarlock_session_output(session, at), outputs[at]);
        oarlock_value_free(outputs[at]);
    }
    for (uint64_t at = 0; at < input_count; at++) {
        oarlock_value_free(inputs[at]);
    }
    free(outputs);
    free(inputs);
    oarlock_session_free(session);
    oarlock_runtime_free(runtime);
    return EXIT_SUCCESS;
}
