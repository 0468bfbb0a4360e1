/* Exits successfully in the query. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    (void)plugin;
    exit(0);
}

OARLOCK_PLUGIN(describe);
