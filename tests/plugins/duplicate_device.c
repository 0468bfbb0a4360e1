/* Has the device type of `good.c` under another name. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "DuplicateDevice"));
    plugin->device_type = oarlock_string("Good");
    return 0;
}

OARLOCK_PLUGIN(describe);
