/* The kernel requires an operand of no dtype at all. */
#include "minimal_kernel.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe_kernel(plugin, "KernelNoDtype"));
    minimal_operand.dtypes = 0;
    return 0;
}

OARLOCK_PLUGIN(describe);
