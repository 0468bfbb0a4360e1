/* Exports a function beside the entry. */
#include "minimal.h"

int leaked_helper(void);
int leaked_helper(void) {
    return 1;
}

static oarlock_error describe(oarlock_plugin *plugin) {
    return minimal_describe(plugin, "SymbolLeak");
}

OARLOCK_PLUGIN(describe);
