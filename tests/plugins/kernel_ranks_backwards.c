/* The kernel requires at least four dimensions and at most two. */
#include "minimal_kernel.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe_kernel(plugin, "KernelRanksBackwards"));
    minimal_operand.rank_min = 4;
    minimal_operand.rank_max = 2;
    return 0;
}

OARLOCK_PLUGIN(describe);
