/* Assertions for the programs of this test. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <oarlock.h>

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);                                   \
            exit(EXIT_FAILURE);                                                                                        \
        }                                                                                                              \
    } while (0)

/* Expects success. */
#define WORKS(call) expect_success((call), #call, __LINE__)
/* Expects an error with a code, whose message or hint contains a text. */
#define FAILS(call, code, text) expect_failure((call), (code), (text), #call, __LINE__)

static inline void expect_success(oarlock_error *error, const char *call, int line) {
    if (error != NULL) {
        fprintf(stderr, "line %d: %s: %s\n", line, call, oarlock_error_message(error));
        exit(EXIT_FAILURE);
    }
}

static inline void expect_failure(oarlock_error *error, oarlock_code code, const char *text, const char *call, int line) {
    const char *message = oarlock_error_message(error), *hint = oarlock_error_hint(error);
    if (error == NULL || oarlock_error_code(error) != code ||
        (strstr(message, text) == NULL && (hint == NULL || strstr(hint, text) == NULL))) {
        fprintf(stderr, "line %d: %s: expected %u and `%s`, found %u and `%s`, `%s`\n", line, call, code, text,
                oarlock_error_code(error), message == NULL ? "no error" : message, hint == NULL ? "" : hint);
        exit(EXIT_FAILURE);
    }
    oarlock_error_free(error);
}

/* The CPU of a runtime. */
static inline const oarlock_device *cpu_of(const oarlock_runtime *runtime) {
    const oarlock_device *cpu;
    expect_success(oarlock_runtime_find_device(runtime, "cpu", &cpu), "find_device", __LINE__);
    return cpu;
}

/* A tensor of shape [1, 3]. */
static inline oarlock_value *row_of(const oarlock_device *device, float first) {
    const float elements[3] = {first, first + 1, first + 2};
    const int64_t dims[2] = {1, 3};
    oarlock_value *value;
    expect_success(oarlock_tensor_create(device, OARLOCK_DTYPE_F32, dims, 2, elements, sizeof elements, &value),
                   "tensor_create", __LINE__);
    return value;
}

#endif
