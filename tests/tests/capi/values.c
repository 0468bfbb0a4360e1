/* Values, models in memory, slots, ops and devices: `values SUMS PAIR`. */
#include "expect.h"

static int released = 0;

static void release(void *context, const void *data, uint64_t size) {
    EXPECT(context == &released && data != NULL && size > 0);
    released++;
}

static void tensors_lie_where_they_were_lent(const oarlock_device *cpu) {
    static const float elements[4] = {1, 2, 3, 4};
    const int64_t dims[2] = {2, 2};
    oarlock_value *value, *shared;
    const void *data;
    WORKS(oarlock_tensor_borrow(cpu, OARLOCK_DTYPE_F32, dims, 2, elements, sizeof elements, release, &released, &value));
    EXPECT(released == 0 && oarlock_device_shares_host_memory(cpu) == 1);
    WORKS(oarlock_tensor_data(value, &data));
    EXPECT(data == elements);
    WORKS(oarlock_value_share(value, &shared));
    oarlock_value_free(value);
    EXPECT(released == 0 && oarlock_tensor_count(shared) == 4 && oarlock_tensor_dims(shared)[1] == 2);
    oarlock_value_free(shared);
    EXPECT(released == 1);

    /* The memory is released even after an error. */
    FAILS(oarlock_tensor_borrow(NULL, OARLOCK_DTYPE_F32, dims, 2, elements, sizeof elements, release, &released, &value),
          OARLOCK_CODE_INVALID_ARGUMENT, "`device`");
    EXPECT(released == 2);
    FAILS(oarlock_tensor_borrow(cpu, OARLOCK_DTYPE_F64, dims, 2, elements, sizeof elements, release, &released, &value),
          OARLOCK_CODE_INVALID_ARGUMENT, "32 bytes");
    EXPECT(released == 3);
    FAILS(oarlock_tensor_borrow(cpu, OARLOCK_DTYPE_F32, dims, 2, elements, sizeof elements, NULL, NULL, &value),
          OARLOCK_CODE_INVALID_ARGUMENT, "`release`");
    /* Unaligned memory, which kernels cannot read, is copied. */
    const char *beside = (const char *)elements + 1;
    const int64_t one[1] = {1};
    WORKS(oarlock_tensor_borrow(cpu, OARLOCK_DTYPE_F32, one, 1, beside, 4, release, &released, &value));
    EXPECT(released == 4);
    oarlock_value_free(value);
}

static void tensors_of_every_rank_and_strings(const oarlock_device *cpu) {
    const double scalar = 2.5;
    const int64_t none[2] = {0, 3}, two[1] = {2};
    double read = 0;
    oarlock_value *value;
    WORKS(oarlock_tensor_create(cpu, OARLOCK_DTYPE_F64, NULL, 0, &scalar, sizeof scalar, &value));
    EXPECT(oarlock_tensor_rank(value) == 0 && oarlock_tensor_dims(value) == NULL && oarlock_tensor_count(value) == 1);
    WORKS(oarlock_tensor_wait(value));
    WORKS(oarlock_tensor_read(value, &read, sizeof read));
    EXPECT(memcmp(&read, &scalar, sizeof read) == 0);
    oarlock_value_free(value);

    WORKS(oarlock_tensor_create(cpu, OARLOCK_DTYPE_F32, none, 2, NULL, 0, &value));
    EXPECT(oarlock_tensor_size(value) == 0 && oarlock_tensor_rank(value) == 2);
    WORKS(oarlock_tensor_read(value, NULL, 0));
    oarlock_value_free(value);

    const oarlock_text texts[2] = {{"a\0b", 3}, {NULL, 0}};
    oarlock_text text;
    WORKS(oarlock_tensor_of_texts(cpu, two, 1, texts, 2, &value));
    EXPECT(oarlock_tensor_dtype(value) == OARLOCK_DTYPE_STRING && oarlock_tensor_size(value) == 0);
    WORKS(oarlock_tensor_text(value, 0, &text));
    EXPECT(text.size == 3 && memcmp(text.data, "a\0b", 3) == 0);
    WORKS(oarlock_tensor_text(value, 1, &text));
    EXPECT(text.size == 0);
    FAILS(oarlock_tensor_text(value, 2, &text), OARLOCK_CODE_OUT_OF_RANGE, "below 2");
    const void *data;
    FAILS(oarlock_tensor_data(value, &data), OARLOCK_CODE_UNIMPLEMENTED, "oarlock_tensor_text");
    EXPECT(data == NULL);
    oarlock_value_free(value);
}

static void models_come_from_memory(const char *file, oarlock_model **model) {
    static char bytes[4096];
    FILE *opened = fopen(file, "rb");
    EXPECT(opened != NULL);
    size_t size = fread(bytes, 1, sizeof bytes, opened);
    EXPECT(size > 0 && size < sizeof bytes && fclose(opened) == 0);
    int before = released;
    FAILS(oarlock_model_decode(bytes, size / 2, release, &released, NULL, model), OARLOCK_CODE_INVALID_ARGUMENT, "");
    EXPECT(released == before + 1);
    WORKS(oarlock_model_decode(bytes, size, release, &released, NULL, model));
    oarlock_model_free(*model);
    EXPECT(released == before + 2);
    WORKS(oarlock_model_decode(bytes, size, NULL, NULL, NULL, model));
    memset(bytes, 0, sizeof bytes);
    EXPECT(strcmp(oarlock_model_format(*model), "ONNX, IR 8") == 0 && oarlock_model_producer(*model) != NULL);
}

static void told(void *context, uint64_t ready, uint64_t all) {
    EXPECT(ready <= all);
    (*(int *)context)++;
}

static oarlock_session *session_of(const oarlock_runtime *runtime, const oarlock_model *model, int *progress) {
    const oarlock_device *devices[1] = {cpu_of(runtime)};
    oarlock_session_options options = {0};
    options.size = sizeof options;
    options.devices = devices;
    options.device_count = 1;
    options.progress = told;
    options.progress_context = progress;
    oarlock_session *session;
    WORKS(oarlock_session_create(runtime, model, &options, &session));
    return session;
}

static void slots_say_what_a_model_wants(const oarlock_session *session) {
    EXPECT(oarlock_session_input_count(session) == 1 && oarlock_session_output_count(session) == 2);
    EXPECT(oarlock_session_input(session, 1) == NULL && oarlock_session_output(session, 2) == NULL);
    const oarlock_slot *slot = oarlock_session_input(session, 0);
    EXPECT(strcmp(oarlock_slot_name(slot), "x") == 0 && oarlock_slot_kind(slot) == OARLOCK_KIND_TENSOR);
    EXPECT(strcmp(oarlock_slot_description(slot), "x: f32[batch, 3]") == 0);
    EXPECT(oarlock_slot_dtype(slot) == OARLOCK_DTYPE_F32 && oarlock_slot_rank(slot) == 2);
    EXPECT(oarlock_slot_dims(slot)[0] == -1 && oarlock_slot_dims(slot)[1] == 3);
    EXPECT(strcmp(oarlock_slot_symbol(slot, 0), "batch") == 0 && oarlock_slot_symbol(slot, 1) == NULL);
}

/* Outputs stay valid after everything that made them is freed. */
static void values_outlive_what_made_them(oarlock_runtime *runtime, oarlock_session *session) {
    const char *input[1] = {"x"}, *output[1] = {"twice"};
    oarlock_value *row = row_of(cpu_of(runtime), 1), *twice;
    const oarlock_value *inputs[1] = {row};
    WORKS(oarlock_session_run_named(session, input, inputs, 1, output, &twice, 1));
    oarlock_value_free(row);
    oarlock_session_free(session);
    oarlock_runtime_free(runtime);
    const void *data;
    WORKS(oarlock_tensor_data(twice, &data));
    const float expected[3] = {4, 8, 12};
    EXPECT(oarlock_tensor_size(twice) == sizeof expected && memcmp(data, expected, sizeof expected) == 0);
    oarlock_value_free(twice);
}

static void sequences_come_out(const oarlock_runtime *runtime, const char *file) {
    oarlock_model *model;
    oarlock_session *session;
    WORKS(oarlock_model_load(file, &model));
    WORKS(oarlock_session_create(runtime, model, NULL, &session));
    EXPECT(oarlock_slot_kind(oarlock_session_output(session, 0)) == OARLOCK_KIND_SEQUENCE);
    oarlock_value *row = row_of(cpu_of(runtime), 7), *pair, *element;
    const oarlock_value *inputs[1] = {row};
    WORKS(oarlock_session_run(session, inputs, 1, &pair, 1));
    EXPECT(oarlock_value_kind(pair) == OARLOCK_KIND_SEQUENCE && oarlock_sequence_size(pair) == 2);
    EXPECT(oarlock_tensor_dtype(pair) == 0 && oarlock_tensor_count(pair) == 0);
    float read[3];
    FAILS(oarlock_tensor_read(pair, read, sizeof read), OARLOCK_CODE_INVALID_ARGUMENT, "a sequence");
    FAILS(oarlock_sequence_element(pair, 2, &element), OARLOCK_CODE_OUT_OF_RANGE, "below 2");
    WORKS(oarlock_sequence_element(pair, 1, &element));
    WORKS(oarlock_tensor_read(element, read, sizeof read));
    EXPECT(read[0] > 6.5F && read[0] < 7.5F);
    oarlock_value *nothing;
    WORKS(oarlock_nothing_create(&nothing));
    EXPECT(oarlock_value_kind(nothing) == OARLOCK_KIND_NOTHING);
    oarlock_value_free(nothing);
    oarlock_value_free(element);
    oarlock_value_free(pair);
    oarlock_value_free(row);
    oarlock_session_free(session);
    oarlock_model_free(model);
}

static void ops_run_alone(const oarlock_runtime *runtime) {
    oarlock_attributes *attributes;
    oarlock_op *op;
    oarlock_value *row = row_of(cpu_of(runtime), 1), *output;
    float read[3];
    WORKS(oarlock_attributes_create(&attributes));
    WORKS(oarlock_attributes_set_int(attributes, "axis", 0));
    WORKS(oarlock_op_create(runtime, NULL, "Softmax", 13, attributes, &op));
    oarlock_attributes_free(attributes);
    const oarlock_value *one[1] = {row};
    WORKS(oarlock_op_run(op, NULL, one, 1, &output, 1));
    WORKS(oarlock_tensor_read(output, read, sizeof read));
    EXPECT(read[0] > 0.99F && read[2] > 0.99F);
    oarlock_value_free(output);
    oarlock_op_free(op);

    /* Clip to at most 2, with the lower limit omitted. */
    const float two = 2;
    oarlock_value *most;
    WORKS(oarlock_tensor_create(cpu_of(runtime), OARLOCK_DTYPE_F32, NULL, 0, &two, sizeof two, &most));
    const oarlock_value *clip[3] = {row, NULL, most};
    WORKS(oarlock_op_create(runtime, "", "Clip", 0, NULL, &op));
    WORKS(oarlock_op_run(op, cpu_of(runtime), clip, 3, &output, 1));
    WORKS(oarlock_tensor_read(output, read, sizeof read));
    EXPECT(read[0] < 1.5F && read[2] < 2.5F);
    oarlock_value_free(output);
    clip[0] = NULL;
    FAILS(oarlock_op_run(op, NULL, clip, 3, &output, 1), OARLOCK_CODE_INVALID_ARGUMENT, "");
    EXPECT(output == NULL);
    oarlock_op_free(op);
    oarlock_value_free(most);
    oarlock_value_free(row);
    FAILS(oarlock_op_create(runtime, NULL, "Softmux", 0, NULL, &op), OARLOCK_CODE_NOT_FOUND, "Softmux");
    EXPECT(op == NULL);
}

static void devices_say_what_they_are(const oarlock_runtime *runtime) {
    uint64_t count = oarlock_runtime_device_count(runtime);
    EXPECT(count > 0 && oarlock_runtime_device(runtime, count) == NULL);
    const oarlock_device *cpu = cpu_of(runtime), *missing;
    EXPECT(strcmp(oarlock_device_name(cpu), "cpu:0") == 0 && strcmp(oarlock_device_type(cpu), "cpu") == 0);
    EXPECT(strlen(oarlock_device_description(cpu)) > 0 && oarlock_device_vendor(cpu) != NULL);
    EXPECT(oarlock_device_support_level(cpu) <= OARLOCK_SUPPORT_LEVEL_HARDWARE_VERIFIED);
    FAILS(oarlock_runtime_find_device(runtime, "abacus", &missing), OARLOCK_CODE_NOT_FOUND, "`abacus`");
    EXPECT(missing == NULL);
    WORKS(oarlock_device_synchronize(cpu));

    /* An older program knows fewer fields. */
    oarlock_value *row = row_of(cpu, 0);
    oarlock_memory_statistics statistics = {0};
    statistics.size = sizeof statistics;
    WORKS(oarlock_device_memory(cpu, &statistics));
    EXPECT(statistics.total > 0 && statistics.allocated >= 12 && statistics.size == sizeof statistics);
    statistics.size = 16;
    statistics.free = UINT64_MAX;
    WORKS(oarlock_device_memory(cpu, &statistics));
    EXPECT(statistics.free == UINT64_MAX);
    oarlock_value_free(row);
}

static void heard(void *context, oarlock_log_level level, const char *source, const char *message) {
    EXPECT(level > 0 && source != NULL && message != NULL);
    (*(int *)context)++;
}

int main(int count, char **arguments) {
    EXPECT(count == 3);
    EXPECT(oarlock_abi() == OARLOCK_ABI && strlen(oarlock_version()) > 0);
    EXPECT(strcmp(oarlock_dtype_name(OARLOCK_DTYPE_BF16), "bf16") == 0 && oarlock_dtype_name(0) == NULL);
    EXPECT(oarlock_dtype_bits(OARLOCK_DTYPE_I4) == 4 && oarlock_dtype_bits(OARLOCK_DTYPE_STRING) == 0);
    int messages = 0, progress = 0;
    const char *paths[] = {arguments[1]}, *flags[] = {"deterministic=true"};
    oarlock_runtime_options options = {0};
    options.size = sizeof options;
    options.program = "values 1.0";
    options.plugin_paths = paths;
    options.plugin_path_count = 1;
    options.flags = flags;
    options.flag_count = 1;
    options.log = heard;
    options.log_context = &messages;
    options.log_level = OARLOCK_LOG_LEVEL_DEBUG;
    options.threads = 2;
    oarlock_runtime *runtime;
    WORKS(oarlock_runtime_start(&options, &runtime));
    /* A model is not a plugin; the runtime reports a refusal without failing. */
    EXPECT(oarlock_runtime_refusal_count(runtime) > 0 && oarlock_runtime_refusal(runtime, UINT64_MAX) == NULL);
    EXPECT(strstr(oarlock_runtime_refusal(runtime, 0), "sums.onnx") != NULL);

    devices_say_what_they_are(runtime);
    tensors_lie_where_they_were_lent(cpu_of(runtime));
    tensors_of_every_rank_and_strings(cpu_of(runtime));
    sequences_come_out(runtime, arguments[2]);
    ops_run_alone(runtime);
    oarlock_model *model;
    models_come_from_memory(arguments[1], &model);
    oarlock_session *session = session_of(runtime, model, &progress);
    oarlock_model_free(model);
    slots_say_what_a_model_wants(session);
    values_outlive_what_made_them(runtime, session);
    EXPECT(progress > 0);
    return EXIT_SUCCESS;
}
