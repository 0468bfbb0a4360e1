/* Invalid calls return errors that explain them, and many threads share one session: `misuse SUMS PAIR`. */
#include <pthread.h>

#include "expect.h"

#define INVALID OARLOCK_CODE_INVALID_ARGUMENT
#define THREADS 8
#define RUNS 100

static void nothing_may_be_null(void) {
    oarlock_session *session;
    oarlock_model *model;
    oarlock_value *value;
    const oarlock_device *device;
    FAILS(oarlock_runtime_start(NULL, NULL), INVALID, "`runtime`, found NULL");
    FAILS(oarlock_runtime_find_device(NULL, "cpu", &device), INVALID, "`runtime`");
    FAILS(oarlock_model_load(NULL, &model), INVALID, "`path`");
    FAILS(oarlock_model_decode(NULL, 4, NULL, NULL, NULL, &model), INVALID, "`data`");
    FAILS(oarlock_session_create(NULL, NULL, NULL, &session), INVALID, "`runtime`");
    FAILS(oarlock_session_run(NULL, NULL, 0, NULL, 0), INVALID, "`session`");
    FAILS(oarlock_session_run(NULL, NULL, 0, NULL, 1), INVALID, "`outputs`");
    FAILS(oarlock_tensor_create(NULL, OARLOCK_DTYPE_F32, NULL, 0, NULL, 0, &value), INVALID, "`device`");
    FAILS(oarlock_tensor_read(NULL, NULL, 0), INVALID, "`value`");
    FAILS(oarlock_value_share(NULL, &value), INVALID, "`value`");
    FAILS(oarlock_device_synchronize(NULL), INVALID, "`device`");
    FAILS(oarlock_attributes_set_int(NULL, "axis", 1), INVALID, "`attributes`");
    FAILS(oarlock_op_run(NULL, NULL, NULL, 0, NULL, 0), INVALID, "`op`");
    EXPECT(value == NULL && session == NULL && model == NULL);

    EXPECT(oarlock_error_code(NULL) == 0 && oarlock_error_message(NULL) == NULL);
    EXPECT(oarlock_runtime_device_count(NULL) == 0 && oarlock_runtime_device(NULL, 0) == NULL);
    EXPECT(oarlock_session_input_count(NULL) == 0 && oarlock_session_input(NULL, 0) == NULL);
    EXPECT(oarlock_slot_name(NULL) == NULL && oarlock_slot_rank(NULL) == -1);
    EXPECT(oarlock_value_kind(NULL) == 0 && oarlock_tensor_rank(NULL) == -1 && oarlock_tensor_dims(NULL) == NULL);
    oarlock_error_free(NULL);
    oarlock_runtime_free(NULL);
    oarlock_model_free(NULL);
    oarlock_session_free(NULL);
    oarlock_value_free(NULL);
    oarlock_attributes_free(NULL);
    oarlock_op_free(NULL);
}

static void options_are_checked(void) {
    oarlock_runtime *runtime;
    oarlock_runtime_options options = {0};
    FAILS(oarlock_runtime_start(&options, &runtime), INVALID, "`sizeof`");
    EXPECT(runtime == NULL);
    options.size = sizeof options;
    options.device = "gpgpu";
    FAILS(oarlock_runtime_start(&options, &runtime), OARLOCK_CODE_NOT_FOUND, "`gpgpu`");
    options.device = "c\xff";
    FAILS(oarlock_runtime_start(&options, &runtime), INVALID, "UTF-8");
    options.device = NULL;
    const char *flags[] = {"determinstic=1"};
    options.flags = flags;
    options.flag_count = 1;
    FAILS(oarlock_runtime_start(&options, &runtime), OARLOCK_CODE_NOT_FOUND, "`deterministic`");
    flags[0] = "deterministic";
    FAILS(oarlock_runtime_start(&options, &runtime), INVALID, "NAME=VALUE");
    options.flag_count = 0;
    options.config = "/nowhere.toml";
    FAILS(oarlock_runtime_start(&options, &runtime), INVALID, "/nowhere.toml");
    options.config = NULL;

    /* A program that is newer than the library must not use fields that the library does not know. */
    struct {
        oarlock_runtime_options known;
        uint64_t more;
    } newer = {options, 0};
    newer.known.size = sizeof newer;
    WORKS(oarlock_runtime_start(&newer.known, &runtime));
    oarlock_runtime_free(runtime);
    newer.more = 1;
    FAILS(oarlock_runtime_start(&newer.known, &runtime), OARLOCK_CODE_UNIMPLEMENTED, "newer");
    /* An older program passes fewer fields. */
    options.size = 16;
    WORKS(oarlock_runtime_start(&options, &runtime));
    oarlock_runtime_free(runtime);
}

static void tensors_are_checked(const oarlock_device *cpu) {
    const int64_t dims[2] = {1, 3}, negative[1] = {-1}, huge[2] = {INT64_MAX, 2};
    const float elements[3] = {0};
    const uint8_t truth[1] = {2};
    oarlock_value *value;
    FAILS(oarlock_tensor_create(cpu, 99, dims, 2, elements, sizeof elements, &value), INVALID, "found 99");
    FAILS(oarlock_tensor_create(cpu, OARLOCK_DTYPE_F32, dims, 2, elements, 8, &value), INVALID, "12 bytes");
    FAILS(oarlock_tensor_create(cpu, OARLOCK_DTYPE_F32, dims, 2, NULL, 12, &value), INVALID, "`data`");
    FAILS(oarlock_tensor_create(cpu, OARLOCK_DTYPE_F32, dims, UINT64_MAX, elements, 12, &value), INVALID, "`dims`");
    FAILS(oarlock_tensor_create(cpu, OARLOCK_DTYPE_BOOL, dims, 0, truth, 1, &value), INVALID, "bool");
    FAILS(oarlock_tensor_create(cpu, OARLOCK_DTYPE_F32, negative, 1, elements, 4, &value), INVALID, "[-1]");
    FAILS(oarlock_tensor_create(cpu, OARLOCK_DTYPE_F32, huge, 2, elements, 4, &value), OARLOCK_CODE_RESOURCE_EXHAUSTED, "memory");
    EXPECT(value == NULL);
    value = row_of(cpu, 0);
    float room[3];
    FAILS(oarlock_tensor_read(value, room, 8), INVALID, "12 bytes");
    FAILS(oarlock_tensor_read(value, NULL, 12), INVALID, "`target`");
    oarlock_value_free(value);
}

static void runs_are_checked(const oarlock_session *session, const oarlock_device *cpu) {
    const int64_t dims[2] = {1, 3}, wide[2] = {1, 4};
    const float elements[4] = {0};
    const int32_t integers[3] = {0};
    oarlock_value *row = row_of(cpu, 0), *other, *outputs[3] = {row, row, row};
    const oarlock_value *inputs[2] = {row, row};
    FAILS(oarlock_session_run(session, inputs, 2, outputs, 2), INVALID, "1 inputs");
    FAILS(oarlock_session_run(session, inputs, 1, outputs, 3), INVALID, "room for 2 outputs");
    EXPECT(outputs[0] == NULL && outputs[2] == NULL);
    WORKS(oarlock_tensor_create(cpu, OARLOCK_DTYPE_I32, dims, 2, integers, sizeof integers, &other));
    inputs[0] = other;
    FAILS(oarlock_session_run(session, inputs, 1, outputs, 2), INVALID, "expected f32[batch, 3], found i32[1, 3]");
    oarlock_value_free(other);
    WORKS(oarlock_tensor_create(cpu, OARLOCK_DTYPE_F32, wide, 2, elements, sizeof elements, &other));
    inputs[0] = other;
    FAILS(oarlock_session_run(session, inputs, 1, outputs, 2), INVALID, "f32[1, 4]");
    oarlock_value_free(other);
    inputs[0] = NULL;
    FAILS(oarlock_session_run(session, inputs, 1, outputs, 2), INVALID, "input 0");
    WORKS(oarlock_sequence_create(NULL, 0, &other));
    inputs[0] = other;
    FAILS(oarlock_session_run(session, inputs, 1, outputs, 2), INVALID, "a sequence");
    oarlock_value_free(other);

    const char *names[2] = {"y", "sums"}, *right[1] = {"x"};
    inputs[0] = row;
    FAILS(oarlock_session_run_named(session, names, inputs, 1, NULL, NULL, 0), OARLOCK_CODE_NOT_FOUND, "`y`");
    FAILS(oarlock_session_run_named(session, right, inputs, 1, &names[1], outputs, 1), OARLOCK_CODE_NOT_FOUND,
          "did you mean `sum`");
    FAILS(oarlock_session_run_named(session, NULL, NULL, 0, NULL, NULL, 0), INVALID, "input `x");
    oarlock_value_free(row);
}

static void files_are_checked(void) {
    oarlock_model *model;
    FAILS(oarlock_model_load("/nowhere.onnx", &model), OARLOCK_CODE_NOT_FOUND, "`/nowhere.onnx`");
    FAILS(oarlock_model_decode("no model", 8, NULL, NULL, NULL, &model), INVALID, "ONNX");
    EXPECT(model == NULL);
}

static void devices_are_of_the_same_runtime(const oarlock_runtime *runtime, const oarlock_model *model) {
    oarlock_runtime *other;
    oarlock_session *session;
    WORKS(oarlock_runtime_start(NULL, &other));
    const oarlock_device *devices[1] = {cpu_of(other)};
    oarlock_session_options options = {0};
    options.size = sizeof options;
    options.devices = devices;
    options.device_count = 1;
    FAILS(oarlock_session_create(runtime, model, &options, &session), INVALID, "same runtime");
    oarlock_runtime_free(other);
}

struct work {
    const oarlock_session *session;
    const oarlock_device *cpu;
    float first;
    oarlock_error *error;
};

/* Runs a session repeatedly, and leaves an error for another thread to read. */
static void *work(void *given) {
    struct work *own = given;
    for (int at = 0; at < RUNS; at++) {
        oarlock_value *row = row_of(own->cpu, own->first), *outputs[2];
        const oarlock_value *inputs[1] = {row};
        WORKS(oarlock_session_run(own->session, inputs, 1, outputs, 2));
        float twice[3];
        WORKS(oarlock_tensor_read(outputs[1], twice, sizeof twice));
        for (int column = 0; column < 3; column++) {
            float sum = own->first + (float)column + (float)(column + 1);
            EXPECT(twice[column] > 2 * sum - 0.5F && twice[column] < 2 * sum + 0.5F);
        }
        oarlock_value_free(outputs[0]);
        oarlock_value_free(outputs[1]);
        oarlock_value_free(row);
    }
    own->error = oarlock_session_run(own->session, NULL, 0, NULL, 0);
    return NULL;
}

static void threads_share_a_session(const oarlock_session *session, const oarlock_device *cpu) {
    pthread_t threads[THREADS];
    struct work all[THREADS];
    for (int at = 0; at < THREADS; at++) {
        all[at] = (struct work){session, cpu, (float)(10 * at), NULL};
        EXPECT(pthread_create(&threads[at], NULL, work, &all[at]) == 0);
    }
    for (int at = 0; at < THREADS; at++) {
        EXPECT(pthread_join(threads[at], NULL) == 0);
        FAILS(all[at].error, INVALID, "room for 2 outputs");
    }
}

int main(int count, char **arguments) {
    EXPECT(count == 3);
    nothing_may_be_null();
    options_are_checked();
    files_are_checked();
    oarlock_runtime *runtime;
    oarlock_model *model;
    oarlock_session *session;
    WORKS(oarlock_runtime_start(NULL, &runtime));
    WORKS(oarlock_model_load(arguments[1], &model));
    WORKS(oarlock_session_create(runtime, model, NULL, &session));
    tensors_are_checked(cpu_of(runtime));
    runs_are_checked(session, cpu_of(runtime));
    devices_are_of_the_same_runtime(runtime, model);
    threads_share_a_session(session, cpu_of(runtime));
    oarlock_session_free(session);
    oarlock_model_free(model);
    oarlock_runtime_free(runtime);
    return EXIT_SUCCESS;
}
