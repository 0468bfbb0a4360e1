/* The name is not UTF-8. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    return minimal_describe(plugin, "\xFF\xFE");
}

OARLOCK_PLUGIN(describe);
