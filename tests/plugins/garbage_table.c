/* The pointer to the table is invalid. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "GarbageTable"));
    const uintptr_t nowhere = 16;
    memcpy(&plugin->core, &nowhere, sizeof nowhere);
    return 0;
}

OARLOCK_PLUGIN(describe);
