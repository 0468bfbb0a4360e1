/* The name has 65 letters, one too many. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    return minimal_describe(plugin, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
}

OARLOCK_PLUGIN(describe);
