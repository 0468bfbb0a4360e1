/* Has streams, but no device for them. */
#include "minimal_kernel.h"

static oarlock_error stream(void *context, uint32_t device, oarlock_stream queue) {
    (void)context;
    (void)device;
    (void)queue;
    return 0;
}

static oarlock_error stream_create(void *context, uint32_t device, int32_t priority, oarlock_stream *queue) {
    (void)context;
    (void)device;
    (void)priority;
    *queue = 1;
    return 0;
}

static oarlock_error stream_and_event(void *context, uint32_t device, oarlock_stream queue, oarlock_event point) {
    (void)point;
    return stream(context, device, queue);
}

static oarlock_error event_create(void *context, uint32_t device, oarlock_event *point) {
    return stream_create(context, device, 0, point);
}

static const oarlock_async_table streams = {
    OARLOCK_TABLE(oarlock_async_table),
    .stream_create = stream_create,
    .stream_destroy = stream,
    .stream_synchronize = stream,
    .stream_wait_event = stream_and_event,
    .event_create = event_create,
    .event_destroy = stream,
    .event_record = stream_and_event,
    .event_synchronize = stream,
};

static oarlock_error describe(oarlock_plugin *plugin) {
    OARLOCK_TRY(minimal_describe_kernel(plugin, "AsyncWithoutCore"));
    plugin->core = NULL;
    plugin->device_type = oarlock_string("");
    plugin->async = &streams;
    return 0;
}

OARLOCK_PLUGIN(describe);
