/* Aborts the process in the query. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    (void)plugin;
    abort();
}

OARLOCK_PLUGIN(describe);
