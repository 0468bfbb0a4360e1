/* Crashes in the query. */
#include "minimal.h"

static int *volatile nowhere;

static oarlock_error describe(oarlock_plugin *plugin) {
    (void)plugin;
    *nowhere = 1;
    return 0;
}

OARLOCK_PLUGIN(describe);
