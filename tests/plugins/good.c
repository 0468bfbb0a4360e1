/* Good: one device. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    return minimal_describe(plugin, "Good");
}

OARLOCK_PLUGIN(describe);
