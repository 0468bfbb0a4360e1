/* May be unloaded, but leaves `unload` empty. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "UnloadableWithoutUnload"));
    plugin->offers = OARLOCK_PLUGIN_FLAGS_UNLOADABLE;
    return 0;
}

OARLOCK_PLUGIN(describe);
