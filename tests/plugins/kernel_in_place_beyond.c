/* The kernel pairs operands that do not exist. */
#include "minimal_kernel.h"

static const oarlock_in_place beyond = {0, 7};

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe_kernel(plugin, "KernelInPlaceBeyond"));
    minimal_kernel.in_place = &beyond;
    minimal_kernel.in_place_count = 1;
    return 0;
}

OARLOCK_PLUGIN(describe);
