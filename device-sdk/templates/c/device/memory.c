/* The profile `core`: the device, its memory, and synchronous copies.
 *
 * For an empty slot, such as `memory_set`, the host uses the default that `oarlock/contract.h` describes. */
#include <stdlib.h>

#include "sample_npu.h"

static _Atomic uint64_t memory_used;
static struct table blocks = {.kind = "block", .lock = PTHREAD_MUTEX_INITIALIZER};

oarlock_error check_device(uint32_t device) {
    OARLOCK_ENFORCE_EQ(device, 0u, OARLOCK_CODE_NOT_FOUND, "there is one device, with the id 0");
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Tables of items. */

static atomic_uint_fast64_t last_number;

uint64_t table_add(struct table *table, struct item *item) {
    item->number = atomic_fetch_add(&last_number, 1) + 1;
    atomic_store(&item->uses, 1);
    pthread_mutex_lock(&table->lock);
    item->next = table->first;
    table->first = item;
    pthread_mutex_unlock(&table->lock);
    return item->number;
}

/* The link to the item in its table, or to the null at the end. The lock is held. */
static struct item **find_link(struct table *table, uint64_t number) {
    struct item **link = &table->first;
    while (*link != NULL && (*link)->number != number) {
        link = &(*link)->next;
    }
    return link;
}

static oarlock_error unknown(const struct table *table, uint64_t number) {
    return OARLOCK_FAIL(OARLOCK_CODE_INVALID_ARGUMENT, "expected a %s that is alive, received the number %llu", table->kind,
        (unsigned long long)number);
}

oarlock_error table_find(struct table *table, uint64_t number, struct item **item) {
    pthread_mutex_lock(&table->lock);
    *item = *find_link(table, number);
    if (*item != NULL) {
        atomic_fetch_add(&(*item)->uses, 1);
    }
    pthread_mutex_unlock(&table->lock);
    return *item == NULL ? unknown(table, number) : 0;
}

oarlock_error table_remove(struct table *table, uint64_t number) {
    struct item **link, *item;
    pthread_mutex_lock(&table->lock);
    link = find_link(table, number);
    item = *link;
    if (item != NULL) {
        *link = item->next;
    }
    pthread_mutex_unlock(&table->lock);
    if (item == NULL) {
        return unknown(table, number);
    }
    item_release(item);
    return 0;
}

void item_release(struct item *item) {
    if (item != NULL && atomic_fetch_sub(&item->uses, 1) == 1) {
        item->end(item);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * The device. Find and open hardware in `initialize` and `device_init`, which this chip does not need. */

static oarlock_error device_count(void *context, uint32_t *count) {
    (void)context;
    *count = 1;
    return 0;
}

/* Writes as many ids as fit, and says how many there are. */
static oarlock_error device_list(void *context, uint32_t *ids, uint64_t capacity, uint64_t *count) {
    (void)context;
    if (capacity > 0) {
        ids[0] = 0;
    }
    *count = 1;
    return 0;
}

/* No flag is set: blocks are numbers, and the host cannot look into them. */
static oarlock_error device_info(void *context, uint32_t device, oarlock_device_info *info) {
    (void)context;
    OARLOCK_TRY(check_device(device));
    info->name = oarlock_string("SampleNpu, simulated");
    info->vendor = oarlock_string("Sample Vendor");
    info->memory_alignment = MEMORY_ALIGNMENT;
    return 0;
}

static oarlock_error device_synchronize(void *context, uint32_t device) {
    (void)context;
    OARLOCK_TRY(check_device(device));
    return synchronize_all_streams();
}

static oarlock_error compute_capability(void *context, uint32_t device, oarlock_version *capability) {
    const oarlock_version first = {0, 1, 0, 0};
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
 * Memory. The host has a pool, and calls these functions only for the pool's large chunks. */

static void block_end(struct item *item) {
    struct block *block = (struct block *)item;
    atomic_fetch_sub(&memory_used, block->size);
    free(block->data);
    free(block);
}

/* A request that cannot be met fails with `resource_exhausted` and changes nothing (M-3). */
static oarlock_error memory_allocate(void *context, uint32_t device, uint64_t size, oarlock_memory *handle) {
    struct block *block;
    uint64_t used = atomic_load(&memory_used);
    (void)context;
    OARLOCK_TRY(check_device(device));
    do {
        OARLOCK_ENFORCE_LE(size, MEMORY_SIZE - used, OARLOCK_CODE_RESOURCE_EXHAUSTED, "free memory, or ask for less");
    } while (!atomic_compare_exchange_weak(&memory_used, &used, used + size));
    block = calloc(1, sizeof *block);
    if (block != NULL) {
        block->data = aligned_alloc(MEMORY_ALIGNMENT, (size + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT);
    }
    if (block == NULL || block->data == NULL) {
        free(block);
        atomic_fetch_sub(&memory_used, size);
        return OARLOCK_FAIL(OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected memory of the system, received none");
    }
    block->size = size;
    block->item.end = block_end;
    *handle = table_add(&blocks, &block->item);
    return 0;
}

/* A block is freed once, with the size that it was allocated with (M-1). */
static oarlock_error memory_deallocate(void *context, uint32_t device, oarlock_memory block, uint64_t size) {
    (void)context;
    (void)size;
    OARLOCK_TRY(check_device(device));
    return table_remove(&blocks, block);
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

oarlock_error range_find(oarlock_memory handle, uint64_t offset, uint64_t size, struct range *range) {
    const struct block *block;
    struct item *item;
    range->block = NULL;
    range->data = NULL;
    if (size == 0) {
        return 0;
    }
    OARLOCK_TRY(table_find(&blocks, handle, &item));
    block = (const struct block *)item;
    if (offset > block->size || size > block->size - offset) {
        const unsigned long long bytes = block->size;
        item_release(item);
        return OARLOCK_FAIL(OARLOCK_CODE_OUT_OF_RANGE, "expected a range in a block of %llu bytes", bytes);
    }
    range->block = item;
    range->data = block->data + offset;
    return 0;
}

static oarlock_error memory_copy_h2d(void *context, uint32_t device, oarlock_memory target, uint64_t offset,
    const void *source, uint64_t size) {
    struct range range;
    (void)context;
    OARLOCK_TRY(check_device(device));
    OARLOCK_TRY(range_find(target, offset, size, &range));
    if (size > 0) {
        memcpy(range.data, source, size);
    }
    item_release(range.block);
    return 0;
}

static oarlock_error memory_copy_d2h(void *context, uint32_t device, void *target, uint64_t size, oarlock_memory source,
    uint64_t offset) {
    struct range range;
    (void)context;
    OARLOCK_TRY(check_device(device));
    OARLOCK_TRY(range_find(source, offset, size, &range));
    if (size > 0) {
        memcpy(target, range.data, size);
    }
    item_release(range.block);
    return 0;
}

static oarlock_error memory_copy_d2d(void *context, uint32_t device, oarlock_memory target, uint64_t target_offset,
    oarlock_memory source, uint64_t source_offset, uint64_t size) {
    struct range from;
    oarlock_error failure;
    (void)context;
    OARLOCK_TRY(check_device(device));
    OARLOCK_TRY(range_find(source, source_offset, size, &from));
    failure = memory_copy_h2d(context, device, target, target_offset, from.data, size);
    item_release(from.block);
    return failure;
}

const oarlock_core_table sample_npu_core = {
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
    .memory_stats = memory_stats,
    .min_chunk_size = min_chunk_size,
};
