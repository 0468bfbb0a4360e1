/* Requires a minor version of the host that does not exist yet. */
#include "oarlock/contract.h"

oarlock_error oarlock_plugin_query(const oarlock_host *host, oarlock_plugin *plugin) {
    (void)host;
    plugin->contract_major = 1;
    plugin->contract_minor = 1000;
    plugin->contract_minor_oldest = 1000;
    return 0;
}
