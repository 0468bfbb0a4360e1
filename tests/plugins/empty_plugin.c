/* Has no device, no kernels and no layer. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "EmptyPlugin"));
    plugin->device_type = oarlock_string("");
    plugin->core = NULL;
    return 0;
}

OARLOCK_PLUGIN(describe);
