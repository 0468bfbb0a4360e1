/* A plugin that brings kernels for a device of another plugin: here for `cpu`, whose memory the host may read and write.
 *
 * `Relu` competes with the kernel that the device has; `ScaledAdd` is an op of our own, so it says what its output looks like.
 * The quoted rules, such as K-4, are those of the contract. */
#include "oarlock/plugin.h"

#define DOMAIN "sample_npu"

/* One part of a loop over elements; the host's threads run the parts. */
struct relu_loop {
    const float *from;
    float *to;
};

static void relu_part(void *user, uint64_t begin, uint64_t end, uint32_t worker) {
    const struct relu_loop *loop = user;
    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        loop->to[i] = loop->from[i] < 0 ? 0 : loop->from[i];
    }
}

/* The host calls a kernel only with operands that fit its record: here contiguous ones of f32, aligned to an element (K-5).
 * Several threads may run it at once (K-4), and it writes its output and nothing else (K-3). */
static oarlock_error run_relu(void *context, void *state, const oarlock_call *call) {
    struct relu_loop loop = {.from = oarlock_data(call->inputs[0]), .to = oarlock_data(call->outputs[0])};
    (void)context;
    (void)state;
    return oarlock_parallel_for(oarlock_element_count(call->inputs[0]), 16384, relu_part, &loop);
}

/* The attribute `alpha`, which is 1 if it is absent: for an op of its own, a plugin states its defaults itself. */
static float alpha_of(const oarlock_call *call) {
    const oarlock_attribute *alpha = oarlock_find_attribute(call, "alpha");
    return alpha == NULL || alpha->floats_count == 0 ? 1 : (float)alpha->floats[0];
}

/* Says what the output looks like. A dimension of -1 is not known yet. */
static oarlock_error infer_scaled_add(void *context, const oarlock_call *call) {
    const oarlock_tensor *x = call->inputs[0], *y = call->inputs[1];
    (void)context;
    OARLOCK_ENFORCE_EQ(x->dims_count, y->dims_count, OARLOCK_CODE_INVALID_ARGUMENT, "the inputs have different ranks");
    for (uint64_t i = 0; i < x->dims_count; i++) {
        OARLOCK_ENFORCE(x->dims[i] == y->dims[i] || x->dims[i] < 0 || y->dims[i] < 0, OARLOCK_CODE_INVALID_ARGUMENT,
            "expected inputs of one shape");
    }
    return oarlock_allocate_output(call, 0, x->dtype, x->dims, x->dims_count);
}

/* sum = x + alpha * y */
static oarlock_error run_scaled_add(void *context, void *state, const oarlock_call *call) {
    const float *x = oarlock_data(call->inputs[0]), *y = oarlock_data(call->inputs[1]);
    float *sum = oarlock_data(call->outputs[0]);
    const float alpha = alpha_of(call);
    const uint64_t count = oarlock_element_count(call->outputs[0]);
    (void)context;
    (void)state;
    for (uint64_t i = 0; i < count; i++) {
        sum[i] = x[i] + alpha * y[i];
    }
    return 0;
}

static const oarlock_operand numbers = {
    OARLOCK_HEADER(oarlock_operand),
    .dtypes = OARLOCK_DTYPE_SET_F32,
    .rank_max = OARLOCK_RANK_ANY,
};
static const oarlock_operand *const two_numbers[] = {&numbers, &numbers};
static const oarlock_in_place first_in_first[] = {{.output = 0, .input = 0}};

static const oarlock_kernel relu = {
    OARLOCK_HEADER(oarlock_kernel),
    .op = OARLOCK_STR("Relu"),
    .device_type = OARLOCK_STR("cpu"),
    .version_min = 6,
    .score = 100,
    .bits = OARLOCK_KERNEL_FLAGS_DETERMINISTIC,
    .inputs = two_numbers,
    .inputs_count = 1,
    .outputs = two_numbers,
    .outputs_count = 1,
    .in_place = first_in_first,
    .in_place_count = 1,
    .run = run_relu,
};

static const oarlock_kernel scaled_add = {
    OARLOCK_HEADER(oarlock_kernel),
    .op = OARLOCK_STR("ScaledAdd"),
    .domain = OARLOCK_STR(DOMAIN),
    .device_type = OARLOCK_STR("cpu"),
    .version_min = 1,
    .score = 100,
    .bits = OARLOCK_KERNEL_FLAGS_DETERMINISTIC,
    .inputs = two_numbers,
    .inputs_count = 2,
    .outputs = two_numbers,
    .outputs_count = 1,
    .infer = infer_scaled_add,
    .run = run_scaled_add,
};

static const oarlock_kernel *const all_kernels[] = {&relu, &scaled_add};

static const oarlock_kernel_table kernel_table = {
    OARLOCK_TABLE(oarlock_kernel_table),
    .kernels = all_kernels,
    .kernels_count = sizeof all_kernels / sizeof all_kernels[0],
};

static oarlock_error unload(void *context) {
    (void)context;
    return 0;
}

/* A host may call this at any time and more than once (E-3). No code of this plugin runs after `unload`, and nothing refers to
 * it, so the host may unmap it. */
static oarlock_error describe(oarlock_plugin *plugin) {
    plugin->offers = OARLOCK_PLUGIN_FLAGS_UNLOADABLE;
    plugin->name = oarlock_string("sample-npu");
    plugin->version = oarlock_string("0.1.0");
    plugin->vendor = oarlock_string("Sample Vendor");
    plugin->package = oarlock_string("oarlock-sample-npu");
    plugin->kernels = &kernel_table;
    plugin->unload = unload;
    return 0;
}

OARLOCK_PLUGIN(describe);
