/* Good: may be unloaded. */
#include "minimal.h"

static oarlock_error unload(void *context) {
    (void)context;
    return 0;
}

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "Unloadable"));
    plugin->offers = OARLOCK_PLUGIN_FLAGS_UNLOADABLE;
    plugin->unload = unload;
    return 0;
}

OARLOCK_PLUGIN(describe);
