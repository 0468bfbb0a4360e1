/* Returns an error that no host made. */
#include "minimal.h"

static oarlock_error fail(void *context, uint32_t device) {
    (void)context;
    (void)device;
    return UINT64_C(0xDEADBEEFDEADBEEF);
}

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "ErrorJunk"));
    minimal_core.device_init = fail;
    return 0;
}

OARLOCK_PLUGIN(describe);
