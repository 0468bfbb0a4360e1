/* The table claims to be shorter than in version 1.0. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "ShortStruct"));
    minimal_core.size = offsetof(oarlock_core_table, memory_stats);
    return 0;
}

OARLOCK_PLUGIN(describe);
