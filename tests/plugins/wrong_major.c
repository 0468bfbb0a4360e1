/* Was built with the next major version of the contract. */
#include "oarlock/contract.h"

oarlock_error oarlock_plugin_query(const oarlock_host *host, oarlock_plugin *plugin) {
    (void)host;
    plugin->contract_major = 2;
    plugin->contract_minor = 0;
    plugin->contract_minor_oldest = 0;
    return 0;
}
