/* Forks in the query; the child keeps every file open for a minute. */
#define _POSIX_C_SOURCE 200809L
#include "minimal.h"

#include <unistd.h>

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe(plugin, "ProbeFork"));
    if (fork() == 0) {
        sleep(60);
        _exit(0);
    }
    return 0;
}

OARLOCK_PLUGIN(describe);
