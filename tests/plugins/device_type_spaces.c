/* The device type has characters that are not permitted in a name. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "DeviceTypeSpaces"));
    plugin->device_type = oarlock_string("Two words\n");
    return 0;
}

OARLOCK_PLUGIN(describe);
