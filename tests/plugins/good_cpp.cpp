// Good: in C++; refuses every allocation with an exception that the guard turns into an error with the code `fatal`.
#include <stdexcept>

#include "oarlock/plugin.h"

namespace {

template <class... Arguments>
oarlock_error done(void *, Arguments...) {
    return 0;
}

oarlock_error one(void *, uint32_t *count) {
    *count = 1;
    return 0;
}

oarlock_error list(void *, uint32_t *ids, uint64_t, uint64_t *count) {
    *ids = 0;
    *count = 1;
    return 0;
}

oarlock_error refuse(void *, uint32_t, uint64_t, oarlock_memory *) {
    return oarlock::guard([]() -> oarlock_error { throw std::runtime_error("there is no memory in this device"); });
}

oarlock_error stats(void *, uint32_t, uint64_t *total, uint64_t *free) {
    *total = *free = 0;
    return 0;
}

oarlock_error chunk(void *, uint32_t, uint64_t *size) {
    *size = 16;
    return 0;
}

constexpr oarlock_core_table core = [] {
    auto table = oarlock::make_table<oarlock_core_table>();
    table.device_synchronize = done;
    table.device_count = one;
    table.device_list = list;
    table.compute_capability = done;
    table.runtime_version = done;
    table.driver_version = done;
    table.memory_allocate = refuse;
    table.memory_deallocate = done;
    table.memory_copy_h2d = done;
    table.memory_copy_d2h = done;
    table.memory_copy_d2d = done;
    table.memory_stats = stats;
    table.min_chunk_size = chunk;
    return table;
}();

oarlock_error describe(oarlock_plugin *plugin) {
    plugin->name = oarlock_string("GoodCpp");
    plugin->version = oarlock_string("1.0.0");
    plugin->vendor = oarlock_string("Test");
    plugin->device_type = oarlock_string("GoodCpp");
    plugin->core = &core;
    return 0;
}

} // namespace

OARLOCK_PLUGIN(describe);
