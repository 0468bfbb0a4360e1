/* Crashes when it is loaded, before the query. */
#include "minimal.h"

static int *volatile nowhere;

__attribute__((constructor)) static void crash(void) {
    *nowhere = 1;
}

static oarlock_error describe(oarlock_plugin *plugin) {
    return minimal_describe(plugin, "ConstructorCrash");
}

OARLOCK_PLUGIN(describe);
