/* SPDX-License-Identifier: Apache-2.0
 *
 * A correct plugin that provides one kernel to its device. The plugins that include it break one thing of the kernel. */
#ifndef MINIMAL_KERNEL_H
#define MINIMAL_KERNEL_H

#include "minimal.h"

static inline oarlock_error minimal_run(void *context, void *state, const oarlock_call *call) {
    (void)context;
    (void)state;
    memcpy(oarlock_data(call->outputs[0]), oarlock_data(call->inputs[0]), call->inputs[0]->size_in_bytes);
    return 0;
}

static oarlock_operand minimal_operand = {
    OARLOCK_HEADER(oarlock_operand),
    .dtypes = OARLOCK_DTYPE_SET_F32,
    .dtype_group = 1,
    .rank_max = 8,
};
static const oarlock_operand *const minimal_operands[] = {&minimal_operand};

static oarlock_kernel minimal_kernel = {
    OARLOCK_HEADER(oarlock_kernel),
    .op = OARLOCK_STR("Identity"),
    .version_min = 1,
    .score = 100,
    .inputs = minimal_operands,
    .inputs_count = 1,
    .outputs = minimal_operands,
    .outputs_count = 1,
    .run = minimal_run,
};
static const oarlock_kernel *const minimal_kernel_list[] = {&minimal_kernel};

static oarlock_kernel_table minimal_kernels = {
    OARLOCK_TABLE(oarlock_kernel_table),
    .kernels = minimal_kernel_list,
    .kernels_count = 1,
};

/* Like `minimal_describe`, with the kernel. */
static inline oarlock_error minimal_describe_kernel(oarlock_plugin *plugin, const char *name) {
    plugin->kernels = &minimal_kernels;
    return minimal_describe(plugin, name);
}

#endif
