/* Good: knows later minor versions, and also works with the first. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "NewerMinor"));
    plugin->contract_minor = 1000;
    return 0;
}

OARLOCK_PLUGIN(describe);
