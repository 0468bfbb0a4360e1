/* The kernel cannot be run. */
#include "minimal_kernel.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe_kernel(plugin, "KernelNoRun"));
    minimal_kernel.run = NULL;
    return 0;
}

OARLOCK_PLUGIN(describe);
