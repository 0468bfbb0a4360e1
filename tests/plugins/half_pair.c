/* Allocates pinned memory and cannot free it. */
#include "minimal.h"

static oarlock_error allocate(void *context, uint32_t device, uint64_t size, void **address) {
    (void)context;
    (void)device;
    (void)size;
    (void)address;
    return OARLOCK_FAIL(OARLOCK_CODE_UNIMPLEMENTED, "expected never to be called");
}

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "HalfPair"));
    minimal_core.host_memory_allocate = allocate;
    return 0;
}

OARLOCK_PLUGIN(describe);
