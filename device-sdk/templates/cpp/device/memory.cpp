// The profile `core`: the device, its memory, and synchronous copies.
//
// `oarlock::slot` makes a slot of a function: what it throws becomes an error, since no exception may cross into the host.

#include "sample_npu.h"

#include <atomic>
#include <cstring>
#include <new>

namespace sample_npu {

HandleTable<Block> blocks;

namespace {

std::atomic<uint64_t> memory_used{0};

} // namespace

void check(uint32_t device) {
    if (device != 0) {
        OARLOCK_THROW(OARLOCK_CODE_NOT_FOUND, "expected device 0, received %u", device);
    }
}

/// A request that cannot be met fails with `resource_exhausted` and changes nothing (M-3).
Block::Block(uint64_t bytes) : data(nullptr), size(bytes) {
    uint64_t used = memory_used;
    do {
        if (size > MEMORY_SIZE - used) {
            OARLOCK_THROW(OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected at most %zu bytes; free some", size_t{MEMORY_SIZE - used});
        }
    } while (!memory_used.compare_exchange_weak(used, used + size));
    data = static_cast<unsigned char *>(::operator new(size, std::align_val_t{MEMORY_ALIGNMENT}, std::nothrow));
    if (data == nullptr) {
        memory_used -= size;
        OARLOCK_THROW(OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected memory of the system, received none");
    }
}

Block::~Block() {
    ::operator delete(data, std::align_val_t{MEMORY_ALIGNMENT});
    memory_used -= size;
}

Range::Range(oarlock_memory handle, uint64_t offset, uint64_t size) {
    if (size == 0) {
        return;
    }
    block = blocks.find(handle);
    if (offset > block->size || size > block->size - offset) {
        OARLOCK_THROW(OARLOCK_CODE_OUT_OF_RANGE, "expected a range in a block of %zu bytes", size_t{block->size});
    }
    data = block->data + offset;
}

namespace {

void device_count(uint32_t *count) {
    *count = 1;
}

/// Writes as many ids as fit, and says how many there are.
void device_list(uint32_t *ids, uint64_t capacity, uint64_t *count) {
    if (capacity > 0) {
        ids[0] = 0;
    }
    *count = 1;
}

/// No flag is set: blocks are numbers, and the host cannot look into them.
void device_info(uint32_t device, oarlock_device_info *info) {
    check(device);
    info->name = oarlock::str("SampleNpu, simulated");
    info->vendor = oarlock::str("Sample Vendor");
    info->memory_alignment = MEMORY_ALIGNMENT;
}

void device_synchronize(uint32_t device) {
    Failure first;
    check(device);
    for (const auto &entry : streams.all()) {
        const Failure failure = entry.second->synchronize();
        first = first ? first : failure;
    }
    rethrow(first);
}

void compute_capability(uint32_t device, oarlock_version *capability) {
    check(device);
    *capability = {0, 1, 0, 0};
}

/// There is no library and no driver below this plugin, so both versions are its own.
void own_version(oarlock_version *installed) {
    *installed = {0, 1, 0, 0};
}

void memory_allocate(uint32_t device, uint64_t size, oarlock_memory *block) {
    check(device);
    *block = blocks.add(std::make_shared<Block>(size));
}

/// A block is freed once, with the size that it was allocated with (M-1).
void memory_deallocate(uint32_t device, oarlock_memory block, uint64_t) {
    check(device);
    blocks.remove(block);
}

void copy_bytes(void *target, const void *source, uint64_t size) {
    if (size > 0) {
        std::memcpy(target, source, size);
    }
}

void memory_copy_h2d(uint32_t device, oarlock_memory target, uint64_t offset, const void *source, uint64_t size) {
    check(device);
    copy_bytes(Range(target, offset, size).data, source, size);
}

void memory_copy_d2h(uint32_t device, void *target, uint64_t size, oarlock_memory source, uint64_t offset) {
    check(device);
    copy_bytes(target, Range(source, offset, size).data, size);
}

void memory_copy_d2d(uint32_t device, oarlock_memory target, uint64_t target_offset, oarlock_memory source,
    uint64_t source_offset, uint64_t size) {
    check(device);
    copy_bytes(Range(target, target_offset, size).data, Range(source, source_offset, size).data, size);
}

void memory_stats(uint32_t device, uint64_t *total, uint64_t *free) {
    check(device);
    *total = MEMORY_SIZE;
    *free = MEMORY_SIZE - memory_used;
}

void min_chunk_size(uint32_t device, uint64_t *size) {
    check(device);
    *size = MEMORY_ALIGNMENT;
}

} // namespace

/// Slots that stay empty, such as `memory_set`, have a default, which `oarlock/contract.h` describes. Find and open hardware
/// in `initialize` and `device_init`, which this chip does not need.
const oarlock_core_table core_table = [] {
    auto table = oarlock::make_table<oarlock_core_table>();
    table.device_synchronize = oarlock::slot<device_synchronize>;
    table.device_count = oarlock::slot<device_count>;
    table.device_list = oarlock::slot<device_list>;
    table.device_info = oarlock::slot<device_info>;
    table.compute_capability = oarlock::slot<compute_capability>;
    table.runtime_version = oarlock::slot<own_version>;
    table.driver_version = oarlock::slot<own_version>;
    table.memory_allocate = oarlock::slot<memory_allocate>;
    table.memory_deallocate = oarlock::slot<memory_deallocate>;
    table.memory_copy_h2d = oarlock::slot<memory_copy_h2d>;
    table.memory_copy_d2h = oarlock::slot<memory_copy_d2h>;
    table.memory_copy_d2d = oarlock::slot<memory_copy_d2d>;
    table.memory_stats = oarlock::slot<memory_stats>;
    table.min_chunk_size = oarlock::slot<min_chunk_size>;
    return table;
}();

} // namespace sample_npu
