/* Uses a device from a plugin, the simulated device: `devices PLUGIN CONFIGURATION SUMS`. */
#include "expect.h"

static int released = 0;

static void release(void *context, const void *data, uint64_t size) {
    EXPECT(context == NULL && data != NULL && size == 12);
    released++;
}

/* The device has separate memory, so borrowed tensors are copied to it, and outputs are read from it. */
static void tensors_are_copied(const oarlock_device *sim, const oarlock_device *cpu) {
    static const float elements[3] = {5, 6, 7};
    const int64_t dims[1] = {3};
    oarlock_value *value, *copy;
    const void *data;
    float read[3];
    EXPECT(oarlock_device_shares_host_memory(sim) == 0 && oarlock_device_shares_host_memory(cpu) == 1);
    WORKS(oarlock_tensor_borrow(sim, OARLOCK_DTYPE_F32, dims, 1, elements, sizeof elements, release, NULL, &value));
    EXPECT(released == 1);
    FAILS(oarlock_tensor_data(value, &data), OARLOCK_CODE_UNIMPLEMENTED, "oarlock_tensor_read");
    WORKS(oarlock_tensor_read(value, read, sizeof read));
    EXPECT(memcmp(read, elements, sizeof read) == 0);
    WORKS(oarlock_tensor_to(value, cpu, &copy));
    WORKS(oarlock_tensor_data(copy, &data));
    EXPECT(data != elements && memcmp(data, elements, sizeof elements) == 0);
    oarlock_value_free(copy);
    oarlock_value_free(value);
}

static void a_model_runs(const oarlock_runtime *runtime, const oarlock_device *sim, const char *file) {
    oarlock_model *model;
    oarlock_session *session;
    oarlock_session_options options = {0};
    options.size = sizeof options;
    options.devices = &sim;
    options.device_count = 1;
    WORKS(oarlock_model_load(file, &model));
    WORKS(oarlock_session_create(runtime, model, &options, &session));
    oarlock_value *row = row_of(sim, 1), *outputs[2];
    const oarlock_value *inputs[1] = {row};
    WORKS(oarlock_session_run(session, inputs, 1, outputs, 2));
    WORKS(oarlock_device_synchronize(sim));
    const float expected[3] = {4, 8, 12};
    float read[3];
    WORKS(oarlock_tensor_read(outputs[1], read, sizeof read));
    EXPECT(memcmp(read, expected, sizeof read) == 0);
    oarlock_value_free(outputs[0]);
    oarlock_value_free(outputs[1]);
    oarlock_value_free(row);
    oarlock_session_free(session);
    oarlock_model_free(model);
}

static void operands_are_on_one_device(const oarlock_runtime *runtime, const oarlock_device *sim) {
    oarlock_op *add;
    oarlock_value *here = row_of(sim, 0), *there = row_of(cpu_of(runtime), 0), *sum;
    const oarlock_value *inputs[2] = {here, there};
    WORKS(oarlock_op_create(runtime, NULL, "Add", 0, NULL, &add));
    FAILS(oarlock_op_run(add, NULL, inputs, 2, &sum, 1), OARLOCK_CODE_INVALID_ARGUMENT, "`sim:3`");
    inputs[1] = here;
    WORKS(oarlock_op_run(add, NULL, inputs, 2, &sum, 1));
    WORKS(oarlock_tensor_wait(sum));
    oarlock_value_free(sum);
    oarlock_value_free(there);
    oarlock_value_free(here);
    oarlock_op_free(add);
}

int main(int count, char **arguments) {
    EXPECT(count == 4);
    const char *plugins[1] = {arguments[1]};
    oarlock_runtime_options options = {0};
    options.size = sizeof options;
    options.plugin_paths = plugins;
    options.plugin_path_count = 1;
    options.config = arguments[2];
    options.device = "sim:3";
    oarlock_runtime *runtime;
    WORKS(oarlock_runtime_start(&options, &runtime));
    const oarlock_device *sim;
    WORKS(oarlock_runtime_find_device(runtime, NULL, &sim));
    EXPECT(strcmp(oarlock_device_name(sim), "sim:3") == 0 && strcmp(oarlock_device_type(sim), "sim") == 0);
    tensors_are_copied(sim, cpu_of(runtime));
    a_model_runs(runtime, sim, arguments[3]);
    operands_are_on_one_device(runtime, sim);
    oarlock_runtime_free(runtime);
    return EXIT_SUCCESS;
}
