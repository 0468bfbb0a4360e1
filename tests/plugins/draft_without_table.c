/* Names a draft and provides no table of it. */
#include "minimal.h"

static const oarlock_draft_profile graph = {
    OARLOCK_HEADER(oarlock_draft_profile),
    .profile = OARLOCK_STR("graph"),
    .number = 1,
};
static const oarlock_draft_profile *const drafts[] = {&graph};

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "DraftWithoutTable"));
    plugin->drafts = drafts;
    plugin->drafts_count = 1;
    return 0;
}

OARLOCK_PLUGIN(describe);
