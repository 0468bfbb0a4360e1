/* Needs a library that is not installed. Built by `missing_soname.sh`. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    return minimal_describe(plugin, "MissingSoname");
}

OARLOCK_PLUGIN(describe);
