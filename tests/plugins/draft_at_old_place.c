/* Good: has a table of `graph` in its place from before it became a draft. The table is an invalid pointer, so a host that reads it
 * crashes. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "DraftAtOldPlace"));
    plugin->reserved_graph = (void *)(uintptr_t)0x10;
    return 0;
}

OARLOCK_PLUGIN(describe);
