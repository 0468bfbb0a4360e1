/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the plugin's sources share. They are hidden, because a plugin exports only `oarlock_plugin_query`. */
#ifndef CUSTOM_CPU_H
#define CUSTOM_CPU_H

#include "oarlock/plugin.h"

#pragma GCC visibility push(hidden)

/* The total memory of the device: 1 GiB. */
#define MEMORY_SIZE (UINT64_C(1) << 30)

/* The alignment of every block: a cache line. */
#define MEMORY_ALIGNMENT 64u

extern const oarlock_core_table custom_cpu_core;
extern const oarlock_async_table custom_cpu_async;
extern const oarlock_kernel_table custom_cpu_kernels;

/* Returns an error unless `device` is the only device. */
oarlock_error check_device(uint32_t device);

#pragma GCC visibility pop

#endif
