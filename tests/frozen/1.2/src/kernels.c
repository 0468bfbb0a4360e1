/* SPDX-License-Identifier: Apache-2.0
 *
 * One kernel for the CPU, in a domain of its own: `Mix` computes 2a + b of two tensors of one shape. */
#include "oarlock/plugin.h"

static oarlock_error infer(void *context, const oarlock_call *call) {
    const oarlock_tensor *const like = call->inputs[0];
    (void)context;
    return oarlock_services()->output_allocate(oarlock_services_context(), call, 0, like->dtype, like->dims,
        like->dims_count);
}

static oarlock_error run(void *context, void *state, const oarlock_call *call) {
    const float *const a = oarlock_data(call->inputs[0]);
    const float *const b = oarlock_data(call->inputs[1]);
    float *const mixed = oarlock_data(call->outputs[0]);
    const uint64_t count = oarlock_element_count(call->outputs[0]);
    (void)context;
    (void)state;
    OARLOCK_ENFORCE_EQ(oarlock_element_count(call->inputs[0]), count, OARLOCK_CODE_INVALID_ARGUMENT, "Mix does not broadcast");
    OARLOCK_ENFORCE_EQ(oarlock_element_count(call->inputs[1]), count, OARLOCK_CODE_INVALID_ARGUMENT, "Mix does not broadcast");
    for (uint64_t i = 0; i < count; i++) {
        mixed[i] = 2 * a[i] + b[i];
    }
    return 0;
}

static const oarlock_operand number = {
    OARLOCK_HEADER(oarlock_operand), .name = OARLOCK_STR("x"), .dtypes = OARLOCK_DTYPE_SET_F32, .dtype_group = 1, .rank_max = 8};
static const oarlock_operand *const inputs[] = {&number, &number};
static const oarlock_operand *const outputs[] = {&number};
static const oarlock_kernel mix = {
    OARLOCK_HEADER(oarlock_kernel),
    .op = OARLOCK_STR("Mix"),
    .domain = OARLOCK_STR("test.frozen"),
    .device_type = OARLOCK_STR("cpu"),
    .version_min = 1,
    .score = 100,
    .bits = OARLOCK_KERNEL_FLAGS_DETERMINISTIC,
    .inputs = inputs,
    .inputs_count = 2,
    .outputs = outputs,
    .outputs_count = 1,
    .infer = infer,
    .run = run,
};
static const oarlock_kernel *const kernels[] = {&mix};
static const oarlock_kernel_table table = {OARLOCK_TABLE(oarlock_kernel_table), .kernels = kernels, .kernels_count = 1};

static oarlock_error describe(oarlock_plugin *plugin) {
    plugin->name = oarlock_string("frozen-kernels-c");
    plugin->version = oarlock_string("1.0.0");
    plugin->vendor = oarlock_string("Oarlock");
    plugin->kernels = &table;
    return 0;
}

OARLOCK_PLUGIN(describe);
