/* The kernel requires a dtype that does not exist. */
#include "minimal_kernel.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe_kernel(plugin, "KernelUnknownDtype"));
    minimal_operand.dtypes |= UINT64_C(1) << 60;
    return 0;
}

OARLOCK_PLUGIN(describe);
