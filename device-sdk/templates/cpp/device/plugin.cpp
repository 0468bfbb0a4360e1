// Who the plugin is.

#include "sample_npu.h"

namespace {

/// A host may call this at any time and more than once, so it starts no thread and touches no device (E-3).
oarlock_error describe(oarlock_plugin *plugin) {
    plugin->name = oarlock::str("sample-npu");
    plugin->version = oarlock::str("0.1.0");
    plugin->vendor = oarlock::str("Sample Vendor");
    plugin->package = oarlock::str("oarlock-sample-npu");
    plugin->device_type = oarlock::str("SampleNpu");
    plugin->core = &sample_npu::core_table;
    plugin->async = &sample_npu::async_table;
    plugin->kernels = &sample_npu::kernel_table;
    return 0;
}

} // namespace

OARLOCK_PLUGIN(describe);
