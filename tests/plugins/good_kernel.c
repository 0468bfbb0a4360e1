/* Good: a device and a kernel. */
#include "minimal_kernel.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    return minimal_describe_kernel(plugin, "GoodKernel");
}

OARLOCK_PLUGIN(describe);
