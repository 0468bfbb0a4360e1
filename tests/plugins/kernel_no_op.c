/* The kernel does not name its op. */
#include "minimal_kernel.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe_kernel(plugin, "KernelNoOp"));
    minimal_kernel.op = oarlock_string("");
    return 0;
}

OARLOCK_PLUGIN(describe);
