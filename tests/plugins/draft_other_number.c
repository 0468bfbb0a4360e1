/* Good: provides drafts by numbers and names that no host has. Their tables point nowhere, so a host that reads one crashes. */
#include "minimal.h"

static oarlock_draft_profile drafts[] = {
    {OARLOCK_HEADER(oarlock_draft_profile), .profile = OARLOCK_STR("graph"), .number = 4711},
    {OARLOCK_HEADER(oarlock_draft_profile), .profile = OARLOCK_STR("core"), .number = 1},
    {OARLOCK_HEADER(oarlock_draft_profile), .profile = OARLOCK_STR("telepathy"), .number = 1},
};
static const oarlock_draft_profile *const list[] = {&drafts[0], &drafts[1], &drafts[2]};

static oarlock_error describe(oarlock_plugin *plugin) {
    size_t i;
    OARLOCK_TRY(minimal_describe(plugin, "DraftOtherNumber"));
    for (i = 0; i < sizeof drafts / sizeof drafts[0]; i++) {
        drafts[i].table = (const void *)(uintptr_t)0x10;
    }
    plugin->drafts = list;
    plugin->drafts_count = sizeof list / sizeof list[0];
    return 0;
}

OARLOCK_PLUGIN(describe);
