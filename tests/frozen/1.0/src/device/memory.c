/* SPDX-License-Identifier: Apache-2.0
 *
 * Profile `core`: the device, its memory, and copies that are done when they return.
 *
 * Slots that are left out get the default that `oarlock/contract.h` names beside each. */
#include <stdatomic.h>
#include <stdlib.h>

#include "custom_cpu.h"

enum { THE_DEVICE = 0 };

static _Atomic uint64_t memory_used;

oarlock_error check_device(uint32_t device) {
    OARLOCK_ENFORCE_EQ(device, THE_DEVICE, OARLOCK_CODE_NOT_FOUND, "there is one CustomCPU, with the id 0");
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------
 * The device. One that has to be found and readied does so in `initialize` and `device_init`, which are left out here. */

static oarlock_error device_count(void *context, uint32_t *count) {
    (void)context;
    *count = 1;
    return 0;
}

static oarlock_error device_list(void *context, uint32_t *ids, uint64_t capacity, uint64_t *count) {
    (void)context;
    if (capacity > 0) {
        ids[0] = THE_DEVICE;
    }
    *count = 1;
    return 0;
}

static oarlock_error device_info(void *context, uint32_t device, oarlock_device_info *info) {
    (void)context;
    OARLOCK_TRY(check_device(device));
    info->name = oarlock_string("CustomCPU V1");
    info->vendor = oarlock_string("Oarlock");
    /* A block's handle is its address, so the host may read and write it. A device with memory of its own sets neither. */
    info->bits = OARLOCK_DEVICE_FLAGS_HOST_ADDRESSABLE | OARLOCK_DEVICE_FLAGS_SHARES_HOST_MEMORY;
    info->memory_alignment = MEMORY_ALIGNMENT;
    return 0;
}

static oarlock_error device_synchronize(void *context, uint32_t device) {
    (void)context;
    return check_device(device);
}

static oarlock_error compute_capability(void *context, uint32_t device, oarlock_version *capability) {
    const oarlock_version first = {1, 0, 0, 0};
    (void)context;
    OARLOCK_TRY(check_device(device));
    *capability = first;
    return 0;
}

/* There is no library and no driver below this plugin, so both versions are its own. */
static oarlock_error own_version(void *context, oarlock_version *installed) {
    const oarlock_version own = {0, 1, 0, 0};
    (void)context;
    *installed = own;
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Memory. The host keeps a pool of its own, and calls these for the large blocks the pool is made of. */

/* Takes `size` bytes out of the budget, or none at all. */
static oarlock_error reserve(uint64_t size) {
    uint64_t used = atomic_load(&memory_used);
    do {
        OARLOCK_ENFORCE_LE(size, MEMORY_SIZE - used, OARLOCK_CODE_RESOURCE_EXHAUSTED,
            "CustomCPU has 1 GiB of memory; free some of it or ask for less");
    } while (!atomic_compare_exchange_weak(&memory_used, &used, used + size));
    return 0;
}

static oarlock_error memory_allocate(void *context, uint32_t device, uint64_t size, oarlock_memory *block) {
    void *address;
    (void)context;
    OARLOCK_TRY(check_device(device));
    OARLOCK_TRY(reserve(size));
    address = aligned_alloc(MEMORY_ALIGNMENT, (size + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT);
    if (address == NULL) {
        atomic_fetch_sub(&memory_used, size);
        return OARLOCK_FAIL(OARLOCK_CODE_RESOURCE_EXHAUSTED,
            "expected %llu bytes from the operating system, received none; close other programs",
            (unsigned long long)size);
    }
    *block = (oarlock_memory)(uintptr_t)address;
    return 0;
}

/* That a block is given back once, with its size, is the caller's promise (rule M-1); the validation layer checks it. */
static oarlock_error memory_deallocate(void *context, uint32_t device, oarlock_memory block, uint64_t size) {
    (void)context;
    OARLOCK_TRY(check_device(device));
    free((void *)(uintptr_t)block);
    atomic_fetch_sub(&memory_used, size);
    return 0;
}

static oarlock_error memory_stats(void *context, uint32_t device, uint64_t *total, uint64_t *free_now) {
    (void)context;
    OARLOCK_TRY(check_device(device));
    *total = MEMORY_SIZE;
    *free_now = MEMORY_SIZE - atomic_load(&memory_used);
    return 0;
}

static oarlock_error min_chunk_size(void *context, uint32_t device, uint64_t *size) {
    (void)context;
    OARLOCK_TRY(check_device(device));
    *size = MEMORY_ALIGNMENT;
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Copies. That a range lies inside its block is the caller's promise too (rule M-2). A range of no bytes may come with a
 * null pointer, which `memcpy` must not see. */

static void *at(oarlock_memory block, uint64_t offset) {
    return (void *)(uintptr_t)(block + offset);
}

static oarlock_error copy(uint32_t device, void *target, const void *source, uint64_t size) {
    OARLOCK_TRY(check_device(device));
    if (size > 0) {
        memcpy(target, source, size);
    }
    return 0;
}

static oarlock_error memory_copy_h2d(void *context, uint32_t device, oarlock_memory target, uint64_t target_offset,
    const void *source, uint64_t source_size) {
    (void)context;
    return copy(device, at(target, target_offset), source, source_size);
}

static oarlock_error memory_copy_d2h(void *context, uint32_t device, void *target, uint64_t target_size,
    oarlock_memory source, uint64_t source_offset) {
    (void)context;
    return copy(device, target, at(source, source_offset), target_size);
}

static oarlock_error memory_copy_d2d(void *context, uint32_t device, oarlock_memory target, uint64_t target_offset,
    oarlock_memory source, uint64_t source_offset, uint64_t size) {
    (void)context;
    return copy(device, at(target, target_offset), at(source, source_offset), size);
}

static oarlock_error memory_set(void *context, uint32_t device, oarlock_memory target, uint64_t target_offset,
    uint8_t byte, uint64_t size) {
    (void)context;
    OARLOCK_TRY(check_device(device));
    if (size > 0) {
        memset(at(target, target_offset), byte, size);
    }
    return 0;
}

const oarlock_core_table custom_cpu_core = {
    OARLOCK_TABLE(oarlock_core_table),
    .device_synchronize = device_synchronize,
    .device_count = device_count,
    .device_list = device_list,
    .device_info = device_info,
    .compute_capability = compute_capability,
    .runtime_version = own_version,
    .driver_version = own_version,
    .memory_allocate = memory_allocate,
    .memory_deallocate = memory_deallocate,
    .memory_copy_h2d = memory_copy_h2d,
    .memory_copy_d2h = memory_copy_d2h,
    .memory_copy_d2d = memory_copy_d2d,
    .memory_set = memory_set,
    .memory_stats = memory_stats,
    .min_chunk_size = min_chunk_size,
};
