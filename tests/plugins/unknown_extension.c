/* Good: has an extension that no host knows and that may be ignored. */
#include "minimal.h"

static oarlock_extension extension = {
    .size = sizeof(oarlock_extension),
    .kind = 9999,
};

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "UnknownExtension"));
    minimal_core.next = &extension;
    return 0;
}

OARLOCK_PLUGIN(describe);
