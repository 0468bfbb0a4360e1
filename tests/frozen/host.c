/* SPDX-License-Identifier: Apache-2.0
 *
 * A host of an older minor version: compiled with the headers of that version, it knows nothing of later slots and fields.
 *
 *     host PLUGIN
 *
 * It loads the plugin, starts its devices, uses every required slot of `core` and `async`, runs `Add` of a device or `Mix` of a
 * plugin that has kernels only, wraps a table with a layer, and ends the plugin. It prints a line for each of these, and ends
 * with 1 where something went wrong. Right after what the plugin may write lies a fence, which the plugin must leave as it is. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oarlock/contract.h"

enum { COUNT = 6, BYTES = COUNT * sizeof(float) };

#define EXPECT(condition, ...)                                                   \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "line %d: expected `%s`: ", __LINE__, #condition);   \
            fprintf(stderr, __VA_ARGS__);                                        \
            fprintf(stderr, "; last error: %s\n", last_error);                   \
            exit(1);                                                             \
        }                                                                        \
    } while (0)
#define TRY(call) EXPECT((call) == 0, "success")

static char last_error[512] = "none";
static oarlock_error errors;

/* ------------------------------------------------------------------------------------------------------------------
 * The services of version 1.0 */

static oarlock_error error_create(void *context, const oarlock_error_info *info) {
    (void)context;
    snprintf(last_error, sizeof last_error, "%.*s", (int)info->message.size, info->message.data);
    return ++errors;
}

static oarlock_error error_read(void *context, oarlock_error failure, oarlock_error_info *info) {
    (void)context;
    (void)failure;
    info->code = OARLOCK_CODE_FATAL;
    info->message.data = last_error;
    info->message.size = strlen(last_error);
    return 0;
}

static oarlock_error error_release(void *context, oarlock_error failure) {
    (void)context;
    (void)failure;
    return 0;
}

static oarlock_error log_message(void *context, oarlock_log_level level, oarlock_str message) {
    (void)context;
    (void)level;
    (void)message;
    return 0;
}

static oarlock_error option(void *context, oarlock_str key, oarlock_str *value) {
    (void)context;
    (void)key;
    value->data = NULL;
    value->size = 0;
    return 0;
}

static oarlock_error worker_count(void *context, uint32_t *count) {
    (void)context;
    *count = 1;
    return 0;
}

static oarlock_error parallel_for(void *context, uint64_t count, uint64_t grain, oarlock_task task, void *user) {
    (void)context;
    (void)grain;
    task(user, 0, count, 0);
    return 0;
}

static oarlock_error output_allocate(void *context, const oarlock_call *call, uint32_t index, oarlock_dtype dtype,
    const int64_t *dims, uint64_t dims_count) {
    (void)context;
    (void)dims;
    EXPECT(index < call->outputs_count && dtype == OARLOCK_DTYPE_F32 && dims_count == 1, "an output like the first input");
    return 0;
}

static oarlock_error experimental(void *context, oarlock_str name, void **function) {
    (void)context;
    (void)name;
    *function = NULL;
    return 0;
}

/* Slots that came after 1.0 are optional and stay empty. The fence is where a later host has more of them: a plugin that calls one
 * although the size of the table denies it ends the process. */
static struct {
    oarlock_host_table table;
    uint64_t fence[32];
} services = {
    {
        .size = sizeof(oarlock_host_table),
        .features = (2ull << OARLOCK_CONTRACT_MINOR) - 1,
        .error_create = error_create,
        .error_read = error_read,
        .error_release = error_release,
        .log = log_message,
        .option = option,
        .worker_count = worker_count,
        .parallel_for = parallel_for,
        .output_allocate = output_allocate,
        .experimental = experimental,
    },
    {0},
};

/* ------------------------------------------------------------------------------------------------------------------ */

static oarlock_tensor tensor_at(oarlock_memory block) {
    static const int64_t dims[1] = {COUNT};
    oarlock_tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.size = sizeof tensor;
    tensor.block = block;
    tensor.size_in_bytes = BYTES;
    tensor.dtype = OARLOCK_DTYPE_F32;
    tensor.dims = dims;
    tensor.dims_count = 1;
    return tensor;
}

static void run_kernel(const oarlock_kernel *kernel, uint32_t device, oarlock_stream queue, const oarlock_memory blocks[3]) {
    oarlock_tensor tensors[3];
    const oarlock_tensor *const inputs[2] = {&tensors[0], &tensors[1]}, *const outputs[1] = {&tensors[2]};
    oarlock_call call;
    void *state = NULL;
    memset(&call, 0, sizeof call);
    call.size = sizeof call;
    call.device = device;
    call.queue = queue;
    call.inputs = inputs;
    call.inputs_count = 2;
    call.outputs = outputs;
    call.outputs_count = 1;
    for (int i = 0; i < 3; i++) {
        tensors[i] = tensor_at(blocks[i]);
    }
    if (kernel->supports != NULL) {
        TRY(kernel->supports(kernel->context, &call));
    }
    if (kernel->infer != NULL) {
        TRY(kernel->infer(kernel->context, &call));
    }
    if (kernel->prepare != NULL) {
        TRY(kernel->prepare(kernel->context, &call, &state));
    }
    TRY(kernel->run(kernel->context, state, &call));
    if (kernel->prepare != NULL) {
        TRY(kernel->release(kernel->context, state));
    }
}

static const oarlock_kernel *find_kernel(const oarlock_plugin *plugin, const char *op) {
    for (uint64_t i = 0; plugin->kernels != NULL && i < plugin->kernels->kernels_count; i++) {
        const oarlock_kernel *const kernel = plugin->kernels->kernels[i];
        const int takes_f32 = kernel->inputs_count == 2 && (kernel->inputs[0]->dtypes & (1ull << OARLOCK_DTYPE_F32)) != 0;
        if (kernel->op.size == strlen(op) && memcmp(kernel->op.data, op, kernel->op.size) == 0 && takes_f32) {
            return kernel;
        }
    }
    return NULL;
}

static const float left[COUNT] = {1, 2, 3, 4, 5, 6}, right[COUNT] = {0.5f, -2, 1e20f, 0, 7, -6};

static void expect_numbers(const float *found, float factor, const char *op) {
    for (int i = 0; i < COUNT; i++) {
        EXPECT(found[i] == factor * left[i] + right[i], "element %d of %s is %g", i, op, (double)found[i]);
    }
    printf("kernel %s\n", op);
}

static void use_async(const oarlock_plugin *plugin, uint32_t device) {
    const oarlock_async_table *const async = plugin->async;
    void *const context = plugin->context;
    oarlock_stream queue = 0;
    oarlock_event point = 0;
    TRY(async->stream_create(context, device, 0, &queue));
    TRY(async->event_create(context, device, &point));
    TRY(async->event_record(context, device, queue, point));
    TRY(async->stream_wait_event(context, device, queue, point));
    TRY(async->event_synchronize(context, device, point));
    TRY(async->stream_synchronize(context, device, queue));
    TRY(async->event_destroy(context, device, point));
    TRY(async->stream_destroy(context, device, queue));
    printf("async\n");
}

static void use_device(const oarlock_plugin *plugin, uint32_t device) {
    const oarlock_core_table *const core = plugin->core;
    void *const context = plugin->context;
    const oarlock_kernel *const add = find_kernel(plugin, "Add");
    oarlock_memory blocks[3];
    float found[COUNT] = {0};
    oarlock_version version;
    uint64_t total = 0, free_now = 0, chunk = 0;
    if (core->device_init != NULL) {
        TRY(core->device_init(context, device));
    }
    TRY(core->compute_capability(context, device, &version));
    TRY(core->memory_stats(context, device, &total, &free_now));
    TRY(core->min_chunk_size(context, device, &chunk));
    EXPECT(free_now <= total && chunk > 0, "%llu of %llu bytes", (unsigned long long)free_now, (unsigned long long)total);
    for (int i = 0; i < 3; i++) {
        TRY(core->memory_allocate(context, device, BYTES, &blocks[i]));
    }
    TRY(core->memory_copy_h2d(context, device, blocks[0], 0, left, BYTES));
    TRY(core->memory_copy_h2d(context, device, blocks[1], 0, right, BYTES));
    TRY(core->memory_copy_d2d(context, device, blocks[2], 0, blocks[1], 0, BYTES));
    TRY(core->memory_copy_d2h(context, device, found, BYTES, blocks[2], 0));
    EXPECT(memcmp(found, right, BYTES) == 0, "the bytes that were written");
    printf("memory\n");
    if (add != NULL) {
        oarlock_stream queue = 0;
        if (plugin->async != NULL) {
            TRY(plugin->async->stream_create(context, device, 0, &queue));
        }
        run_kernel(add, device, queue, blocks);
        if (plugin->async != NULL) {
            TRY(plugin->async->stream_synchronize(context, device, queue));
            TRY(plugin->async->stream_destroy(context, device, queue));
        }
        TRY(core->memory_copy_d2h(context, device, found, BYTES, blocks[2], 0));
        expect_numbers(found, 1, "Add");
    }
    if (plugin->async != NULL) {
        use_async(plugin, device);
    }
    for (int i = 0; i < 3; i++) {
        TRY(core->memory_deallocate(context, device, blocks[i], BYTES));
    }
    TRY(core->device_synchronize(context, device));
    if (core->device_deinit != NULL) {
        TRY(core->device_deinit(context, device));
    }
}

static void use_kernels(const oarlock_plugin *plugin) {
    const oarlock_kernel *const mix = find_kernel(plugin, "Mix");
    float a[COUNT], b[COUNT], mixed[COUNT] = {0};
    const oarlock_memory blocks[3] = {(uintptr_t)a, (uintptr_t)b, (uintptr_t)mixed};
    memcpy(a, left, BYTES);
    memcpy(b, right, BYTES);
    if (mix != NULL) {
        run_kernel(mix, 0, 0, blocks);
        expect_numbers(mixed, 2, "Mix");
    }
}

static oarlock_error stats_below(void *context, uint32_t device, uint64_t *total, uint64_t *free_now) {
    (void)device;
    EXPECT(context == &services, "the context of the wrapped table");
    *total = *free_now = 1 << 20;
    return 0;
}

static void use_layer(const oarlock_plugin *plugin) {
    oarlock_core_table below;
    void *context = NULL, *table = NULL;
    const oarlock_core_table *wrapped;
    const oarlock_str name = {"below", 5};
    uint64_t total = 0, free_now = 0;
    memset(&below, 0, sizeof below);
    below.size = sizeof below;
    below.features = services.table.features;
    below.memory_stats = stats_below;
    TRY(plugin->layer->wrap(plugin->context, OARLOCK_TABLE_KIND_CORE, name, &services, &below, &context, &table));
    wrapped = table;
    EXPECT(wrapped != NULL && wrapped->memory_stats != NULL, "a table");
    EXPECT(wrapped->memory_set == NULL, "a slot that is empty below stays empty");
    TRY(wrapped->memory_stats(context, 0, &total, &free_now));
    EXPECT(free_now <= total, "%llu bytes", (unsigned long long)total);
    if (table != &below) {
        TRY(plugin->layer->unwrap(plugin->context, OARLOCK_TABLE_KIND_CORE, context, table));
    }
    printf("layer\n");
}

int main(int count, char **arguments) {
    struct {
        oarlock_plugin plugin;
        unsigned char fence[512];
    } answer;
    oarlock_host host;
    oarlock_error (*query)(const oarlock_host *, oarlock_plugin *);
    void *library;
    EXPECT(count == 2, "the file of a plugin");
    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(library != NULL, "%s", dlerror());
    *(void **)&query = dlsym(library, "oarlock_plugin_query");
    EXPECT(query != NULL, "%s", dlerror());
    memset(&host, 0, sizeof host);
    host.size = sizeof host;
    host.contract_major = OARLOCK_CONTRACT_MAJOR;
    host.contract_minor = OARLOCK_CONTRACT_MINOR;
    host.name.data = "an older host";
    host.name.size = 13;
    host.context = &services;
    host.services = &services.table;
    memset(&answer, 0, sizeof answer);
    answer.plugin.size = sizeof answer.plugin;
    memset(answer.fence, 0xA5, sizeof answer.fence);
    TRY(query(&host, &answer.plugin));
    for (size_t i = 0; i < sizeof answer.fence; i++) {
        EXPECT(answer.fence[i] == 0xA5, "nothing is written past the struct of this host");
    }
    EXPECT(answer.plugin.contract_major == OARLOCK_CONTRACT_MAJOR &&
            answer.plugin.contract_minor_oldest <= OARLOCK_CONTRACT_MINOR && answer.plugin.name.size > 0,
        "a plugin that works with contract 1.%u", OARLOCK_CONTRACT_MINOR);
    printf("plugin %.*s\n", (int)answer.plugin.name.size, answer.plugin.name.data);
    if (answer.plugin.core != NULL) {
        uint32_t ids[16], devices = 0;
        uint64_t listed = 0;
        if (answer.plugin.core->initialize != NULL) {
            TRY(answer.plugin.core->initialize(answer.plugin.context));
        }
        TRY(answer.plugin.core->device_count(answer.plugin.context, &devices));
        TRY(answer.plugin.core->device_list(answer.plugin.context, ids, 16, &listed));
        EXPECT(devices > 0 && listed == devices, "%u devices", devices);
        use_device(&answer.plugin, ids[0]);
        if (answer.plugin.core->finalize != NULL) {
            TRY(answer.plugin.core->finalize(answer.plugin.context));
        }
    } else {
        use_kernels(&answer.plugin);
    }
    if (answer.plugin.layer != NULL) {
        use_layer(&answer.plugin);
    }
    if (answer.plugin.unload != NULL) {
        TRY(answer.plugin.unload(answer.plugin.context));
    }
    for (size_t i = 0; i < sizeof services.fence / sizeof *services.fence; i++) {
        EXPECT(services.fence[i] == 0, "nothing is written past the services");
    }
    printf("done\n");
    return 0;
}
