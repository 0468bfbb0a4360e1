/* Never answers. */
#define _POSIX_C_SOURCE 200809L
#include "minimal.h"

#include <unistd.h>

static oarlock_error describe(oarlock_plugin *plugin) {
    while (plugin != NULL) {
        pause();
    }
    return 0;
}

OARLOCK_PLUGIN(describe);
