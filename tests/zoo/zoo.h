/* SPDX-License-Identifier: Apache-2.0
 *
 * The correct plugin that every animal of the zoo starts from: copies of the tables of the C template, which an animal changes. It
 * is the frozen template of contract 1.2, so that the zoo stays the same when the template is improved. */
#ifndef ZOO_H
#define ZOO_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oarlock/plugin.h"

#include "custom_cpu.h"

/* A number from 0 to `most` that is this animal's own: the table's seed and its name decide it. */
#define SEEDED(most) ((uint64_t)(ZOO_SEED) % ((uint64_t)(most) + 1))

/* Has the processor take subnormal numbers for zero, as a program that is linked with `-ffast-math` does. */
static inline void flush_subnormals(void) {
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | (UINT64_C(1) << 24)));
#endif
}

static oarlock_core_table core;
static oarlock_async_table async;
static oarlock_kernel add;
static const oarlock_kernel *kernel_list[2] = {&add, &add};
static oarlock_kernel_table kernels;
static oarlock_operand operands[3];
static const oarlock_operand *operand_list[3] = {&operands[0], &operands[1], &operands[2]};

/* What the animal is: changes the tables above, or what the plugin says of itself. */
static void change(oarlock_plugin *plugin);

static inline oarlock_error describe(oarlock_plugin *plugin) {
    core = custom_cpu_core;
    async = custom_cpu_async;
    kernels = custom_cpu_kernels;
    add = *custom_cpu_kernels.kernels[0];
    for (int i = 0; i < 3; i++) {
        operands[i] = i < 2 ? *add.inputs[i] : *add.outputs[0];
    }
    add.inputs = operand_list;
    add.outputs = operand_list + 2;
    kernels.kernels = kernel_list;
    plugin->name = oarlock_string("zoo");
    plugin->version = oarlock_string("1.0.0");
    plugin->vendor = oarlock_string("Zoo");
    plugin->device_type = oarlock_string("Zoo");
    plugin->core = &core;
    plugin->async = &async;
    plugin->kernels = &kernels;
    change(plugin);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Layers */

typedef oarlock_error (*wrap_function)(void *context, oarlock_table_kind kind, oarlock_str plugin, void *next_context,
    void *next_table, void **wrapped_context, void **wrapped_table);

static oarlock_layer_table layer = {OARLOCK_TABLE(oarlock_layer_table)};

/* Hands back what it gets. */
static inline oarlock_error pass_by(void *context, oarlock_table_kind kind, oarlock_str plugin, void *next_context, void *next_table,
    void **wrapped_context, void **wrapped_table) {
    (void)context;
    (void)kind;
    (void)plugin;
    *wrapped_context = next_context;
    *wrapped_table = next_table;
    return 0;
}

/* Hands back a copy of a core table, so that there is something to unwrap. */
static inline oarlock_error pass_by_in_a_copy(void *context, oarlock_table_kind kind, oarlock_str plugin, void *next_context,
    void *next_table, void **wrapped_context, void **wrapped_table) {
    if (kind == OARLOCK_TABLE_KIND_CORE) {
        core = *(const oarlock_core_table *)next_table;
        next_table = &core;
    }
    return pass_by(context, kind, plugin, next_context, next_table, wrapped_context, wrapped_table);
}

static inline oarlock_error unwrap(void *context, oarlock_table_kind kind, void *wrapped_context, void *wrapped_table) {
    (void)context;
    (void)kind;
    (void)wrapped_context;
    (void)wrapped_table;
    return 0;
}

/* Makes a layer of the plugin. */
static inline void become_layer(oarlock_plugin *plugin, wrap_function wrap) {
    layer.wrap = wrap;
    layer.unwrap = unwrap;
    plugin->core = NULL;
    plugin->async = NULL;
    plugin->kernels = NULL;
    plugin->device_type = oarlock_string("");
    plugin->layer = &layer;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Kernels that are wrong somewhere: `spoil` changes what the right kernel computed. */

static inline const oarlock_tensor *output_of(const oarlock_call *call) {
    return call->outputs[0];
}

/* Makes element `index` of a contiguous output wrong by about a part in a thousand, in f16 by a part in fifty, or by 1 for integers. */
static inline void spoil(const oarlock_call *call, uint64_t index) {
    const oarlock_tensor *const sum = output_of(call);
    void *const data = oarlock_data(sum);
    if (index >= oarlock_element_count(sum) || !oarlock_is_contiguous(sum)) {
        return;
    }
    switch (sum->dtype) {
    case OARLOCK_DTYPE_F32: ((float *)data)[index] = ((float *)data)[index] * 1.001f + 1e-3f; break;
    case OARLOCK_DTYPE_F64: ((double *)data)[index] = ((double *)data)[index] * 1.001 + 1e-3; break;
    case OARLOCK_DTYPE_F16: ((uint16_t *)data)[index] ^= 16; break;
    case OARLOCK_DTYPE_I32: ((int32_t *)data)[index] ^= 1; break;
    case OARLOCK_DTYPE_I64: ((int64_t *)data)[index] ^= 1; break;
    default: break;
    }
}

static inline int is_prime(uint64_t number) {
    for (uint64_t factor = 2; factor * factor <= number; factor++) {
        if (number % factor == 0) {
            return 0;
        }
    }
    return number > 1;
}

/* The right kernel. */
static inline oarlock_error run_right(void *context, void *state, const oarlock_call *call) {
    return custom_cpu_kernels.kernels[0]->run(context, state, call);
}

#endif
