/* Prints text that looks like an answer, to both streams. */
#include "minimal.h"

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "ProbePrints"));
    printf("{}\n");
    fprintf(stderr, "{}\n");
    fflush(NULL);
    return 0;
}

OARLOCK_PLUGIN(describe);
