/* The table is longer than the host knows, and the rest is not zero. */
#include "minimal.h"

static struct {
    oarlock_core_table known;
    void *unknown[4];
} longer;

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "LongStructNonzero"));
    longer.known = minimal_core;
    longer.known.size = sizeof longer;
    longer.unknown[3] = &longer;
    plugin->core = &longer.known;
    return 0;
}

OARLOCK_PLUGIN(describe);
