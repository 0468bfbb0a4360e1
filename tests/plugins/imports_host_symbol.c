/* Calls a function that it expects the host program to export. */
#include "minimal.h"

void oarlock_secret_of_the_host(void);

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "ImportsHostSymbol"));
    oarlock_secret_of_the_host();
    return 0;
}

OARLOCK_PLUGIN(describe);
