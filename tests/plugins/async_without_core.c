/* Brings streams and no device to have them on. */
#include "minimal_kernel.h"

static const oarlock_async_table async = {OARLOCK_TABLE(oarlock_async_table), .stream_create = NULL};

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe_kernel(plugin, "AsyncWithoutCore"));
    plugin->core = NULL;
    plugin->kernels = &minimal_kernels;
    plugin->async = &async;
    return 0;
}

OARLOCK_PLUGIN(describe);
