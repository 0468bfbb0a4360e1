/* Fallback to the CPU: `fallback PLUGIN CONFIGURATION SUMS`, where the simulated device has no kernel for any op of the model. */
#include "expect.h"

static int told = 0;

static void hear(void *context, oarlock_log_level level, const char *source, const char *message) {
    EXPECT(context == &told && source != NULL);
    if (strstr(message, "has no kernel for") != NULL) {
        EXPECT(level == OARLOCK_LOG_LEVEL_WARNING && strcmp(source, "core") == 0);
        EXPECT(strstr(message, "2 of the 2 nodes that take a kernel run on `cpu:0`, as `sim:0` has no kernel for `Add` (2)"));
        told++;
    }
}

static oarlock_runtime *started(char **arguments, const char *setting) {
    const char *plugins[1] = {arguments[1]};
    oarlock_runtime_options options = {0};
    options.size = sizeof options;
    options.plugin_paths = plugins;
    options.plugin_path_count = 1;
    options.config = arguments[2];
    options.flags = &setting;
    options.flag_count = 1;
    options.log = hear;
    options.log_context = &told;
    oarlock_runtime *runtime;
    WORKS(oarlock_runtime_start(&options, &runtime));
    return runtime;
}

/* A session on the simulated device and, with a device count of 2, also on the CPU. */
static oarlock_session *session_of(const oarlock_runtime *runtime, const char *file, uint64_t device_count) {
    const oarlock_device *devices[2] = {NULL, cpu_of(runtime)};
    WORKS(oarlock_runtime_find_device(runtime, "sim", &devices[0]));
    oarlock_session_options options = {0};
    options.size = sizeof options;
    options.devices = devices;
    options.device_count = device_count;
    oarlock_model *model;
    oarlock_session *session;
    WORKS(oarlock_model_load(file, &model));
    WORKS(oarlock_session_create(runtime, model, &options, &session));
    oarlock_model_free(model);
    return session;
}

static oarlock_error *run(const oarlock_runtime *runtime, const oarlock_session *session) {
    oarlock_value *row = row_of(cpu_of(runtime), 1), *outputs[2];
    const oarlock_value *inputs[1] = {row};
    oarlock_error *error = oarlock_session_run(session, inputs, 1, outputs, 2);
    for (int i = 0; i < 2 && error == NULL; i++) { oarlock_value_free(outputs[i]); }
    oarlock_value_free(row);
    return error;
}

int main(int count, char **arguments) {
    EXPECT(count == 4);
    oarlock_runtime *runtime = started(arguments, "kernel_fallback=models");
    oarlock_session *alone = session_of(runtime, arguments[3], 1), *both = session_of(runtime, arguments[3], 2);
    WORKS(run(runtime, both));
    EXPECT(told == 0);
    WORKS(run(runtime, alone));
    WORKS(run(runtime, alone));
    EXPECT(told == 1);
    oarlock_session_free(alone);
    oarlock_session_free(both);
    oarlock_runtime_free(runtime);

    runtime = started(arguments, "kernel_fallback=error");
    alone = session_of(runtime, arguments[3], 1);
    FAILS(run(runtime, alone), OARLOCK_CODE_UNIMPLEMENTED, "found none for 2 of 2: `Add` (2 nodes)");
    EXPECT(told == 1);
    oarlock_session_free(alone);
    oarlock_runtime_free(runtime);
    return EXIT_SUCCESS;
}
