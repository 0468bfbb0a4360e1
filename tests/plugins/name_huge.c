/* The name claims to be larger than any memory. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "NameHuge"));
    plugin->name.size = UINT64_C(1) << 40;
    return 0;
}

OARLOCK_PLUGIN(describe);
