/* Claims to be built with AddressSanitizer. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "AsanTagged"));
    plugin->sanitizer = OARLOCK_SANITIZER_ADDRESS;
    return 0;
}

OARLOCK_PLUGIN(describe);
