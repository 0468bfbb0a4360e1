/* The device cannot be initialized. */
#include "minimal.h"

static oarlock_error fail(void *context, uint32_t device) {
    (void)context;
    (void)device;
    return OARLOCK_FAIL(OARLOCK_CODE_UNAVAILABLE, "expected the device to answer, received nothing; is it switched on?");
}

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "InitFails"));
    minimal_core.device_init = fail;
    return 0;
}

OARLOCK_PLUGIN(describe);
