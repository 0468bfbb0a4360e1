/* Good: as one that was built before there were drafts, when a table of the profile `graph` had a place of its own. The table
 * points nowhere, so a host that reads it crashes. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "DraftAtOldPlace"));
    plugin->reserved_graph = (void *)(uintptr_t)0x10;
    return 0;
}

OARLOCK_PLUGIN(describe);
