/* Ends the process, as if all were well, when it is asked who it is. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    (void)plugin;
    exit(0);
}

OARLOCK_PLUGIN(describe);
