/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sources of the plugin share. Hidden, because a plugin exports `oarlock_plugin_query` and nothing else. */
#ifndef CUSTOM_CPU_H
#define CUSTOM_CPU_H

#include "oarlock/plugin.h"

#pragma GCC visibility push(hidden)

/* All the memory the device has, as if it were soldered on: 1 GiB. */
#define MEMORY_SIZE (UINT64_C(1) << 30)

/* What every block is aligned to: a cache line. */
#define MEMORY_ALIGNMENT 64u

extern const oarlock_core_table custom_cpu_core;
extern const oarlock_async_table custom_cpu_async;
extern const oarlock_kernel_table custom_cpu_kernels;

/* An error unless `device` is the one device there is. */
oarlock_error check_device(uint32_t device);

#pragma GCC visibility pop

#endif
