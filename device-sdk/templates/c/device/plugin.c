/* Who the plugin is. */
#include "sample_npu.h"

/* A host may call this at any time and more than once, so it starts no thread and touches no device (E-3). */
static oarlock_error describe(oarlock_plugin *plugin) {
    plugin->name = oarlock_string("sample-npu");
    plugin->version = oarlock_string("0.1.0");
    plugin->vendor = oarlock_string("Sample Vendor");
    plugin->package = oarlock_string("oarlock-sample-npu");
    plugin->device_type = oarlock_string("SampleNpu");
    plugin->core = &sample_npu_core;
    plugin->async = &sample_npu_async;
    plugin->kernels = &sample_npu_kernels;
    return 0;
}

OARLOCK_PLUGIN(describe);
