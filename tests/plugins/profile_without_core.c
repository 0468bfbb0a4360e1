/* Brings a profiler and no device to watch. */
#include "minimal_kernel.h"

static oarlock_error nothing(void *context) {
    (void)context;
    return 0;
}

static oarlock_error collect(void *context, oarlock_activity_sink sink, void *user) {
    (void)context;
    (void)sink;
    (void)user;
    return 0;
}

static const oarlock_profile_table profile = {
    OARLOCK_TABLE(oarlock_profile_table),
    .profiler_initialize = nothing,
    .profiler_finalize = nothing,
    .profiler_prepare = nothing,
    .profiler_start = nothing,
    .profiler_stop = nothing,
    .profiler_collect = collect,
};

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe_kernel(plugin, "ProfileWithoutCore"));
    plugin->core = NULL;
    plugin->device_type = oarlock_string("");
    plugin->kernels = &minimal_kernels;
    plugin->profile = &profile;
    return 0;
}

OARLOCK_PLUGIN(describe);
