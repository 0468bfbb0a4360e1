/* Has a draft, but does not name its profile. */
#include "minimal.h"

static const oarlock_draft_profile nameless = {
    OARLOCK_HEADER(oarlock_draft_profile),
    .number = 1,
    .table = &minimal_core,
};
static const oarlock_draft_profile *const drafts[] = {&nameless};

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "DraftWithoutName"));
    plugin->drafts = drafts;
    plugin->drafts_count = 1;
    return 0;
}

OARLOCK_PLUGIN(describe);
