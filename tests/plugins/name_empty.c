/* The name is empty. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    return minimal_describe(plugin, "");
}

OARLOCK_PLUGIN(describe);
