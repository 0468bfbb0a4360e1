/* Has an extension that no host knows and that must be understood. */
#include "minimal.h"

static oarlock_extension extension = {
    .size = sizeof(oarlock_extension),
    .kind = 9999,
    .flags = OARLOCK_HEADER_FLAGS_MUST_UNDERSTAND,
};

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "MustUnderstand"));
    minimal_core.next = &extension;
    return 0;
}

OARLOCK_PLUGIN(describe);
