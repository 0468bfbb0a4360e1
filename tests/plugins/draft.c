/* Good: provides a draft of the profile `profile`, by the number that the header has. */
#include "minimal.h"
#include "oarlock/contract_draft.h"

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

static const oarlock_profile_table profiler = {
    OARLOCK_TABLE(oarlock_profile_table),
    .profiler_initialize = nothing,
    .profiler_finalize = nothing,
    .profiler_prepare = nothing,
    .profiler_start = nothing,
    .profiler_stop = nothing,
    .profiler_collect = collect,
};

static const oarlock_draft_profile profiler_draft = {
    OARLOCK_HEADER(oarlock_draft_profile),
    .profile = OARLOCK_STR("profile"),
    .number = OARLOCK_PROFILE_DRAFT,
    .table = &profiler,
};
static const oarlock_draft_profile *const drafts[] = {&profiler_draft};

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "Draft"));
    plugin->drafts = drafts;
    plugin->drafts_count = 1;
    return 0;
}

OARLOCK_PLUGIN(describe);
