/* Was built with the major version before the first. */
#include "oarlock/contract.h"

oarlock_error oarlock_plugin_query(const oarlock_host *host, oarlock_plugin *plugin) {
    (void)host;
    plugin->contract_major = 0;
    plugin->contract_minor = 9;
    plugin->contract_minor_oldest = 9;
    return 0;
}
