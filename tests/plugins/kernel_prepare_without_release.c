/* The kernel allocates states and cannot free them. */
#include "minimal_kernel.h"

static oarlock_error prepare(void *context, const oarlock_call *call, void **state) {
    (void)context;
    (void)call;
    (void)state;
    return 0;
}

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe_kernel(plugin, "KernelPrepareWithoutRelease"));
    minimal_kernel.prepare = prepare;
    return 0;
}

OARLOCK_PLUGIN(describe);
