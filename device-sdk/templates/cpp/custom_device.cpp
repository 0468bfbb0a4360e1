// SPDX-License-Identifier: Apache-2.0
//
// A minimal device plugin in C++17. Every slot that can throw runs its body in `oarlock::guard`, since an exception must not
// propagate into the host.

#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "oarlock/plugin.h"

namespace {

// A device with separate memory. Its blocks are stored here; a handle is a number that the device assigns.
class Device {
public:
    // Throws `std::bad_alloc` when the device is out of memory, as `new` does when the host is.
    oarlock_memory allocate(uint64_t size) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (size > size_ - used_) {
            throw std::bad_alloc();
        }
        blocks_.emplace(last_ + 1, std::vector<unsigned char>(size));
        used_ += size;
        return ++last_;
    }

    // Throws `std::out_of_range` for an unknown block.
    void deallocate(oarlock_memory block) {
        const std::lock_guard<std::mutex> lock(mutex_);
        used_ -= blocks_.at(block).size();
        blocks_.erase(block);
    }

    void stats(uint64_t &total, uint64_t &free) {
        const std::lock_guard<std::mutex> lock(mutex_);
        total = size_;
        free = size_ - used_;
    }

    // The bytes of a block from `offset` on; throws `std::out_of_range` for an unknown block or a range outside of it.
    unsigned char *range(oarlock_memory block, uint64_t offset, uint64_t size) {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::vector<unsigned char> &bytes = blocks_.at(block);
        if (offset > bytes.size() || size > bytes.size() - offset) {
            throw std::out_of_range("a range of bytes that lies outside its block");
        }
        return bytes.data() + offset;
    }

private:
    std::mutex mutex_;
    std::map<oarlock_memory, std::vector<unsigned char>> blocks_;
    oarlock_memory last_ = 0;
    uint64_t size_ = uint64_t{1} << 30;
    uint64_t used_ = 0;
};

Device device;

oarlock_error check(uint32_t id) {
    OARLOCK_ENFORCE_EQ(id, 0u, OARLOCK_CODE_NOT_FOUND, "there is one device, with the id 0");
    return 0;
}

oarlock_error synchronize(void *, uint32_t id) {
    return check(id);
}

oarlock_error count(void *, uint32_t *count) {
    *count = 1;
    return 0;
}

oarlock_error list(void *, uint32_t *ids, uint64_t capacity, uint64_t *count) {
    if (capacity > 0) {
        ids[0] = 0;
    }
    *count = 1;
    return 0;
}

oarlock_error capability(void *, uint32_t id, oarlock_version *capability) {
    OARLOCK_TRY(check(id));
    *capability = {1, 0, 0, 0};
    return 0;
}

oarlock_error version(void *, oarlock_version *installed) {
    *installed = {0, 1, 0, 0};
    return 0;
}

oarlock_error allocate(void *, uint32_t id, uint64_t size, oarlock_memory *block) {
    return oarlock::guard([&]() -> oarlock_error {
        OARLOCK_TRY(check(id));
        try {
            *block = device.allocate(size);
        } catch (const std::bad_alloc &) {
            return OARLOCK_FAIL(OARLOCK_CODE_RESOURCE_EXHAUSTED, "the device has less memory left than was asked for");
        }
        return 0;
    });
}

oarlock_error deallocate(void *, uint32_t id, oarlock_memory block, uint64_t) {
    return oarlock::guard([&]() -> oarlock_error {
        OARLOCK_TRY(check(id));
        device.deallocate(block);
        return 0;
    });
}

oarlock_error copy_h2d(void *, uint32_t id, oarlock_memory target, uint64_t offset, const void *source, uint64_t size) {
    return oarlock::guard([&]() -> oarlock_error {
        OARLOCK_TRY(check(id));
        memcpy(device.range(target, offset, size), source, size);
        return 0;
    });
}

oarlock_error copy_d2h(void *, uint32_t id, void *target, uint64_t size, oarlock_memory source, uint64_t offset) {
    return oarlock::guard([&]() -> oarlock_error {
        OARLOCK_TRY(check(id));
        memcpy(target, device.range(source, offset, size), size);
        return 0;
    });
}

oarlock_error copy_d2d(void *, uint32_t id, oarlock_memory target, uint64_t target_offset, oarlock_memory source,
    uint64_t source_offset, uint64_t size) {
    return oarlock::guard([&]() -> oarlock_error {
        OARLOCK_TRY(check(id));
        memcpy(device.range(target, target_offset, size), device.range(source, source_offset, size), size);
        return 0;
    });
}

oarlock_error stats(void *, uint32_t id, uint64_t *total, uint64_t *free) {
    return oarlock::guard([&]() -> oarlock_error {
        OARLOCK_TRY(check(id));
        device.stats(*total, *free);
        return 0;
    });
}

oarlock_error chunk(void *, uint32_t id, uint64_t *size) {
    OARLOCK_TRY(check(id));
    *size = 64;
    return 0;
}

constexpr oarlock_core_table core = [] {
    auto table = oarlock::make_table<oarlock_core_table>();
    table.device_synchronize = synchronize;
    table.device_count = count;
    table.device_list = list;
    table.compute_capability = capability;
    table.runtime_version = version;
    table.driver_version = version;
    table.memory_allocate = allocate;
    table.memory_deallocate = deallocate;
    table.memory_copy_h2d = copy_h2d;
    table.memory_copy_d2h = copy_d2h;
    table.memory_copy_d2d = copy_d2d;
    table.memory_stats = stats;
    table.min_chunk_size = chunk;
    return table;
}();

oarlock_error describe(oarlock_plugin *plugin) {
    plugin->name = oarlock_string("custom-device");
    plugin->version = oarlock_string("0.1.0");
    plugin->vendor = oarlock_string("Oarlock");
    plugin->device_type = oarlock_string("CustomDevice");
    plugin->core = &core;
    return 0;
}

} // namespace

OARLOCK_PLUGIN(describe);
