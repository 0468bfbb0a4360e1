/* A layer: a plugin that stands between the host and other plugins. This one counts how often each kernel runs.
 *
 * It hands out a table of its own for the tables that it wraps, and passes on what it does not know (L-1). */
#include <stdatomic.h>
#include <stdlib.h>

#include "oarlock/plugin.h"

/* A kernel as the host sees it, the kernel below, and the count. */
struct counted_kernel {
    oarlock_kernel record;
    const oarlock_kernel *next;
    _Atomic uint64_t runs;
};

struct wrapper {
    oarlock_kernel_table table;
    const oarlock_kernel **records;
    struct counted_kernel *kernels;
    uint64_t count;
};

/* Each function gets the context of its kernel, which is ours, and calls the one below with the context from there. */
static oarlock_error supports(void *context, const oarlock_call *call) {
    const struct counted_kernel *kernel = context;
    return kernel->next->supports(kernel->next->context, call);
}

static oarlock_error infer(void *context, const oarlock_call *call) {
    const struct counted_kernel *kernel = context;
    return kernel->next->infer(kernel->next->context, call);
}

static oarlock_error workspace(void *context, const oarlock_call *call, uint64_t *size) {
    const struct counted_kernel *kernel = context;
    return kernel->next->workspace(kernel->next->context, call, size);
}

static oarlock_error prepare(void *context, const oarlock_call *call, void **state) {
    const struct counted_kernel *kernel = context;
    return kernel->next->prepare(kernel->next->context, call, state);
}

/* Any thread may be here, several at once (K-4). */
static oarlock_error run(void *context, void *state, const oarlock_call *call) {
    struct counted_kernel *kernel = context;
    atomic_fetch_add(&kernel->runs, 1);
    return kernel->next->run(kernel->next->context, state, call);
}

static oarlock_error release(void *context, void *state) {
    const struct counted_kernel *kernel = context;
    return kernel->next->release(kernel->next->context, state);
}

/* A slot that is empty below stays empty. A newer kernel has more fields than ours, which we cannot wrap and leave out: our
 * record says with its size that it has no more. */
static void count_kernel(struct counted_kernel *kernel, const oarlock_kernel *next) {
    memcpy(&kernel->record, next, next->size < sizeof *next ? next->size : sizeof *next);
    kernel->next = next;
    kernel->record.size = sizeof kernel->record;
    kernel->record.next = NULL;
    kernel->record.context = kernel;
    kernel->record.supports = next->supports == NULL ? NULL : supports;
    kernel->record.infer = next->infer == NULL ? NULL : infer;
    kernel->record.workspace = next->workspace == NULL ? NULL : workspace;
    kernel->record.prepare = next->prepare == NULL ? NULL : prepare;
    kernel->record.run = next->run == NULL ? NULL : run;
    kernel->record.release = next->release == NULL ? NULL : release;
}

static void end_wrapper(struct wrapper *wrapper) {
    free(wrapper->records);
    free(wrapper->kernels);
    free(wrapper);
}

static oarlock_error wrap(void *context, oarlock_table_kind kind, oarlock_str plugin, void *next_context, void *next_table,
    void **wrapped_context, void **wrapped_table) {
    const oarlock_kernel_table *below = next_table;
    struct wrapper *wrapper;
    (void)context;
    (void)plugin;
    if (kind != OARLOCK_TABLE_KIND_KERNEL) {
        *wrapped_context = next_context;
        *wrapped_table = next_table;
        return 0;
    }
    wrapper = calloc(1, sizeof *wrapper);
    OARLOCK_ENFORCE_NOT_NULL(wrapper, OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected memory for a table, received none");
    wrapper->count = below->kernels_count;
    wrapper->records = calloc(wrapper->count + 1, sizeof *wrapper->records);
    wrapper->kernels = calloc(wrapper->count + 1, sizeof *wrapper->kernels);
    if (wrapper->records == NULL || wrapper->kernels == NULL) {
        end_wrapper(wrapper);
        return OARLOCK_FAIL(OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected memory for kernels, received none");
    }
    for (uint64_t i = 0; i < wrapper->count; i++) {
        count_kernel(&wrapper->kernels[i], below->kernels[i]);
        wrapper->records[i] = &wrapper->kernels[i].record;
    }
    wrapper->table = (oarlock_kernel_table){OARLOCK_TABLE(oarlock_kernel_table), .kernels = wrapper->records,
        .kernels_count = wrapper->count};
    *wrapped_context = wrapper;
    *wrapped_table = &wrapper->table;
    return 0;
}

/* A plugin prints nothing; what a layer logs as `info` reaches the user. */
static oarlock_error unwrap(void *context, oarlock_table_kind kind, void *wrapped_context, void *wrapped_table) {
    struct wrapper *wrapper = wrapped_context;
    (void)context;
    (void)kind;
    (void)wrapped_table;
    for (uint64_t i = 0; i < wrapper->count; i++) {
        const uint64_t runs = atomic_load(&wrapper->kernels[i].runs);
        const oarlock_str op = wrapper->kernels[i].record.op;
        if (runs > 0) {
            oarlock_log(OARLOCK_LOG_LEVEL_INFO, "runs of `%.*s`: %llu", (int)op.size, op.data, (unsigned long long)runs);
        }
    }
    end_wrapper(wrapper);
    return 0;
}

static const oarlock_layer_table layer_table = {
    OARLOCK_TABLE(oarlock_layer_table),
    .wrap = wrap,
    .unwrap = unwrap,
};

/* A host may call this at any time and more than once (E-3). */
static oarlock_error describe(oarlock_plugin *plugin) {
    plugin->name = oarlock_string("sample-npu");
    plugin->version = oarlock_string("0.1.0");
    plugin->vendor = oarlock_string("Sample Vendor");
    plugin->package = oarlock_string("oarlock-sample-npu");
    plugin->layer = &layer_table;
    return 0;
}

OARLOCK_PLUGIN(describe);
