/* SPDX-License-Identifier: Apache-2.0
 *
 * A correct plugin with MINIMAL_DEVICES devices, by default one, and nothing else. The plugins beside this file include it and break
 * one thing each. The tables are writable, so that a plugin can break them before it passes them to the host. */
#ifndef MINIMAL_H
#define MINIMAL_H

#include <stdlib.h>

#include "oarlock/plugin.h"

/* The number of devices; their indices start at 0. */
#ifndef MINIMAL_DEVICES
#define MINIMAL_DEVICES 1
#endif

static inline oarlock_error minimal_check(uint32_t device) {
    OARLOCK_ENFORCE_LT(device, MINIMAL_DEVICES, OARLOCK_CODE_NOT_FOUND, "there is no device with this id");
    return 0;
}

static inline oarlock_error minimal_synchronize(void *context, uint32_t device) {
    (void)context;
    return minimal_check(device);
}

static inline oarlock_error minimal_count(void *context, uint32_t *count) {
    (void)context;
    *count = MINIMAL_DEVICES;
    return 0;
}

static inline oarlock_error minimal_list(void *context, uint32_t *ids, uint64_t capacity, uint64_t *count) {
    uint32_t id;
    (void)context;
    for (id = 0; id < MINIMAL_DEVICES && id < capacity; ++id) {
        ids[id] = id;
    }
    *count = MINIMAL_DEVICES;
    return 0;
}

static inline oarlock_error minimal_capability(void *context, uint32_t device, oarlock_version *capability) {
    (void)context;
    OARLOCK_TRY(minimal_check(device));
    memset(capability, 0, sizeof *capability);
    return 0;
}

static inline oarlock_error minimal_version(void *context, oarlock_version *installed) {
    (void)context;
    memset(installed, 0, sizeof *installed);
    return 0;
}

static inline oarlock_error minimal_allocate(void *context, uint32_t device, uint64_t size, oarlock_memory *block) {
    void *address;
    (void)context;
    OARLOCK_TRY(minimal_check(device));
    address = malloc(size);
    OARLOCK_ENFORCE_NOT_NULL(address, OARLOCK_CODE_RESOURCE_EXHAUSTED, "there is no memory left");
    *block = (oarlock_memory)(uintptr_t)address;
    return 0;
}

static inline oarlock_error minimal_deallocate(void *context, uint32_t device, oarlock_memory block, uint64_t size) {
    (void)context;
    (void)size;
    OARLOCK_TRY(minimal_check(device));
    free((void *)(uintptr_t)block);
    return 0;
}

static inline oarlock_error minimal_h2d(void *context, uint32_t device, oarlock_memory target, uint64_t offset,
    const void *source, uint64_t size) {
    (void)context;
    OARLOCK_TRY(minimal_check(device));
    memcpy((char *)(uintptr_t)target + offset, source, size);
    return 0;
}

static inline oarlock_error minimal_d2h(void *context, uint32_t device, void *target, uint64_t size,
    oarlock_memory source, uint64_t offset) {
    (void)context;
    OARLOCK_TRY(minimal_check(device));
    memcpy(target, (const char *)(uintptr_t)source + offset, size);
    return 0;
}

static inline oarlock_error minimal_d2d(void *context, uint32_t device, oarlock_memory target, uint64_t target_offset,
    oarlock_memory source, uint64_t source_offset, uint64_t size) {
    (void)context;
    OARLOCK_TRY(minimal_check(device));
    memcpy((char *)(uintptr_t)target + target_offset, (const char *)(uintptr_t)source + source_offset, size);
    return 0;
}

static inline oarlock_error minimal_stats(void *context, uint32_t device, uint64_t *total, uint64_t *free_now) {
    (void)context;
    OARLOCK_TRY(minimal_check(device));
    *total = *free_now = UINT64_C(1) << 20;
    return 0;
}

static inline oarlock_error minimal_chunk(void *context, uint32_t device, uint64_t *size) {
    (void)context;
    OARLOCK_TRY(minimal_check(device));
    *size = 16;
    return 0;
}

static oarlock_core_table minimal_core = {
    OARLOCK_TABLE(oarlock_core_table),
    .device_synchronize = minimal_synchronize,
    .device_count = minimal_count,
    .device_list = minimal_list,
    .compute_capability = minimal_capability,
    .runtime_version = minimal_version,
    .driver_version = minimal_version,
    .memory_allocate = minimal_allocate,
    .memory_deallocate = minimal_deallocate,
    .memory_copy_h2d = minimal_h2d,
    .memory_copy_d2h = minimal_d2h,
    .memory_copy_d2d = minimal_d2d,
    .memory_stats = minimal_stats,
    .min_chunk_size = minimal_chunk,
};

/* Describes a correct plugin; `name` is its name and its device type. */
static inline oarlock_error minimal_describe(oarlock_plugin *plugin, const char *name) {
    plugin->name = oarlock_string(name);
    plugin->version = oarlock_string("1.0.0");
    plugin->vendor = oarlock_string("Test");
    plugin->device_type = oarlock_string(name);
    plugin->core = &minimal_core;
    return 0;
}

#endif
