/* SPDX-License-Identifier: Apache-2.0
 *
 * CustomCPU, a device plugin to copy: it presents the host's processor as a device with 1 GiB of memory.
 *
 * This file has the plugin's identity, `memory.c` the device and its memory, `stream.c` its streams and events, `add.c` a
 * kernel. To make it yours, change the names here and then go through the other files slot by slot. */
#include "custom_cpu.h"

/* The plugin has no threads and no state, so the host may unmap it as soon as it no longer needs it. A plugin with threads
 * joins them here; one that cannot be stopped does not offer `UNLOADABLE` and leaves `unload` empty. */
static oarlock_error unload(void *context) {
    (void)context;
    return 0;
}

static oarlock_error describe(oarlock_plugin *plugin) {
    plugin->offers = OARLOCK_PLUGIN_FLAGS_UNLOADABLE;
    plugin->name = oarlock_string("custom-cpu");
    plugin->version = oarlock_string("0.1.0");
    plugin->vendor = oarlock_string("Oarlock");
    plugin->device_type = oarlock_string("CustomCPU");
    plugin->device_subtype = oarlock_string("V1");
    plugin->core = &custom_cpu_core;
    plugin->async = &custom_cpu_async;
    plugin->kernels = &custom_cpu_kernels;
    plugin->unload = unload;
    return 0;
}

OARLOCK_PLUGIN(describe);
