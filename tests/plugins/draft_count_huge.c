/* Has one draft and claims four billion. */
#include "minimal.h"

static oarlock_draft_profile graph = {
    OARLOCK_HEADER(oarlock_draft_profile),
    .profile = OARLOCK_STR("graph"),
    .number = 1,
    .table = &graph,
};
static const oarlock_draft_profile *const drafts[] = {&graph};

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "DraftCountHuge"));
    plugin->drafts = drafts;
    plugin->drafts_count = UINT32_MAX;
    return 0;
}

OARLOCK_PLUGIN(describe);
