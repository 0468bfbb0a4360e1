/* Claims four billion devices. */
#include "minimal.h"

static oarlock_error count_devices(void *context, uint32_t *count) {
    (void)context;
    *count = UINT32_MAX;
    return 0;
}

static oarlock_error list_devices(void *context, uint32_t *ids, uint64_t capacity, uint64_t *count) {
    (void)context;
    if (capacity > 0) {
        ids[0] = 0;
    }
    *count = UINT32_MAX;
    return 0;
}

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "CountHuge"));
    minimal_core.device_count = count_devices;
    minimal_core.device_list = list_devices;
    return 0;
}

OARLOCK_PLUGIN(describe);
