/* Aborts the process when it is asked who it is. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    (void)plugin;
    abort();
}

OARLOCK_PLUGIN(describe);
