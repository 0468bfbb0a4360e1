/* A required slot, `memory_stats`, is empty. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "MissingRequiredSlot"));
    minimal_core.memory_stats = NULL;
    return 0;
}

OARLOCK_PLUGIN(describe);
