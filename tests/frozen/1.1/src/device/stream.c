/* SPDX-License-Identifier: Apache-2.0
 *
 * Profile `async`: streams and events of a device that finishes all work synchronously.
 *
 * No work is ever pending, so waits return immediately. The only task left is to detect invalid handles. The asynchronous
 * copies and the callback are omitted: the host's defaults, which synchronize first, cost nothing here. */
#include <stdatomic.h>

#include "custom_cpu.h"

enum { MOST_HANDLES = 4096 };

/* Live handles. Each handle is a new number, stored in the slot that its remainder selects, so the lookup fails for a handle
 * that was destroyed, was never made or belongs to the other set. */
struct handles {
    const char *kind;
    _Atomic uint64_t alive[MOST_HANDLES];
};

static _Atomic uint64_t handles_made;
static struct handles streams = {.kind = "stream"};
static struct handles events = {.kind = "event"};

static oarlock_error make(struct handles *handles, uint32_t device, uint64_t *handle) {
    OARLOCK_TRY(check_device(device));
    for (int tries = 0; tries < MOST_HANDLES; tries++) {
        const uint64_t number = atomic_fetch_add(&handles_made, 1) + 1;
        uint64_t empty = 0;
        if (atomic_compare_exchange_strong(&handles->alive[number % MOST_HANDLES], &empty, number)) {
            *handle = number;
            return 0;
        }
    }
    return OARLOCK_FAIL(OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected fewer than %d %ss at once; destroy some of them",
        MOST_HANDLES, handles->kind);
}

static oarlock_error unknown(const struct handles *handles, uint64_t handle) {
    return OARLOCK_FAIL(OARLOCK_CODE_INVALID_ARGUMENT,
        "expected a live %s, received the handle %llu, which was destroyed or never made", handles->kind,
        (unsigned long long)handle);
}

static oarlock_error destroy(struct handles *handles, uint32_t device, uint64_t handle) {
    uint64_t expected = handle;
    OARLOCK_TRY(check_device(device));
    if (handle == 0 || !atomic_compare_exchange_strong(&handles->alive[handle % MOST_HANDLES], &expected, 0)) {
        return unknown(handles, handle);
    }
    return 0;
}

static oarlock_error check(struct handles *handles, uint32_t device, uint64_t handle) {
    OARLOCK_TRY(check_device(device));
    if (handle == 0 || atomic_load(&handles->alive[handle % MOST_HANDLES]) != handle) {
        return unknown(handles, handle);
    }
    return 0;
}

/* Stream 0 is the device's own queue; it always exists. */
static oarlock_error check_stream(uint32_t device, oarlock_stream queue) {
    return queue == 0 ? check_device(device) : check(&streams, device, queue);
}

static oarlock_error stream_create(void *context, uint32_t device, int32_t priority, oarlock_stream *queue) {
    (void)context;
    (void)priority;
    return make(&streams, device, queue);
}

static oarlock_error stream_destroy(void *context, uint32_t device, oarlock_stream queue) {
    (void)context;
    return destroy(&streams, device, queue);
}

static oarlock_error stream_query(void *context, uint32_t device, oarlock_stream queue, uint32_t *done) {
    (void)context;
    OARLOCK_TRY(check_stream(device, queue));
    *done = 1;
    return 0;
}

static oarlock_error stream_synchronize(void *context, uint32_t device, oarlock_stream queue) {
    (void)context;
    return check_stream(device, queue);
}

/* Records an event in a stream, or makes a stream wait for one. There is nothing to do: all earlier work is already done. */
static oarlock_error stream_meets_event(void *context, uint32_t device, oarlock_stream queue, oarlock_event point) {
    (void)context;
    OARLOCK_TRY(check_stream(device, queue));
    return check(&events, device, point);
}

static oarlock_error event_create(void *context, uint32_t device, oarlock_event *point) {
    (void)context;
    return make(&events, device, point);
}

static oarlock_error event_destroy(void *context, uint32_t device, oarlock_event point) {
    (void)context;
    return destroy(&events, device, point);
}

static oarlock_error event_query(void *context, uint32_t device, oarlock_event point, uint32_t *done) {
    (void)context;
    OARLOCK_TRY(check(&events, device, point));
    *done = 1;
    return 0;
}

static oarlock_error event_synchronize(void *context, uint32_t device, oarlock_event point) {
    (void)context;
    return check(&events, device, point);
}

const oarlock_async_table custom_cpu_async = {
    OARLOCK_TABLE(oarlock_async_table),
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait_event = stream_meets_event,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = stream_meets_event,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
};
