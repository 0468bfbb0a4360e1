/* Answers the query with an error. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    (void)plugin;
    return OARLOCK_FAIL(OARLOCK_CODE_UNAVAILABLE, "expected a license, found none; buy one");
}

OARLOCK_PLUGIN(describe);
