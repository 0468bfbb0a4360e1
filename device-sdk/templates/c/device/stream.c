/* The profile `async`: streams and events. A stream is a thread here that does its work in order; with a driver that has
 * queues of its own, it is one of those. */
#include <stdlib.h>

#include "sample_npu.h"

struct stream {
    struct item item;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    struct job *first, *last;
    int is_busy, is_closed;
    /* Why work failed; null once a synchronization has reported it. */
    const char *failure;
};

/* An event may be recorded again and again: each record is a turn. One that was never recorded has happened. */
struct event {
    struct item item;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t recorded, happened;
    const char *failure;
};

static struct table streams = {.kind = "stream", .lock = PTHREAD_MUTEX_INITIALIZER};
static struct table events = {.kind = "event", .lock = PTHREAD_MUTEX_INITIALIZER};

static oarlock_error report(const char *failure) {
    OARLOCK_ENFORCE(failure == NULL, OARLOCK_CODE_EXTERNAL, "%s", failure);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Jobs */

oarlock_error job_create(const char *(*run)(struct job *job, const char *failure), struct job **job) {
    *job = calloc(1, sizeof **job);
    OARLOCK_ENFORCE_NOT_NULL(*job, OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected memory for a job, received none");
    (*job)->run = run;
    return 0;
}

void job_end(struct job *job) {
    for (int i = 0; i < MOST_OPERANDS; i++) {
        item_release(job->operands[i].range.block);
    }
    item_release(job->scratch.block);
    item_release(job->used);
    free(job);
}

static void *work(void *argument) {
    struct stream *stream = argument;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        struct job *job = stream->first;
        const char *failure = stream->failure;
        if (job == NULL && stream->is_closed) {
            break;
        }
        if (job == NULL) {
            pthread_cond_wait(&stream->changed, &stream->lock);
            continue;
        }
        stream->first = job->next;
        stream->is_busy = 1;
        pthread_mutex_unlock(&stream->lock);
        failure = job->run(job, failure);
        job_end(job);
        pthread_mutex_lock(&stream->lock);
        if (stream->failure == NULL) {
            stream->failure = failure;
        }
        stream->is_busy = 0;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

oarlock_error job_launch(struct job *job, uint32_t device, oarlock_stream queue) {
    struct stream *stream;
    struct item *item;
    oarlock_error failure = check_device(device);
    if (failure == 0 && queue == 0) {
        failure = report(job->run(job, NULL));
        job_end(job);
        return failure;
    }
    failure = failure == 0 ? table_find(&streams, queue, &item) : failure;
    if (failure != 0) {
        job_end(job);
        return failure;
    }
    stream = (struct stream *)item;
    pthread_mutex_lock(&stream->lock);
    if (stream->first == NULL) {
        stream->first = job;
    } else {
        stream->last->next = job;
    }
    stream->last = job;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    item_release(item);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Streams */

/* Waits for the work in the stream. */
static void stream_end(struct item *item) {
    struct stream *stream = (struct stream *)item;
    pthread_mutex_lock(&stream->lock);
    stream->is_closed = 1;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

static oarlock_error stream_create(void *context, uint32_t device, int32_t priority, oarlock_stream *queue) {
    struct stream *stream;
    (void)context;
    (void)priority;
    OARLOCK_TRY(check_device(device));
    stream = calloc(1, sizeof *stream);
    OARLOCK_ENFORCE_NOT_NULL(stream, OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected memory for a stream, received none");
    stream->item.end = stream_end;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    if (pthread_create(&stream->thread, NULL, work, stream) != 0) {
        free(stream);
        return OARLOCK_FAIL(OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected a thread for a stream, received none");
    }
    *queue = table_add(&streams, &stream->item);
    return 0;
}

static oarlock_error stream_destroy(void *context, uint32_t device, oarlock_stream queue) {
    (void)context;
    OARLOCK_TRY(check_device(device));
    return table_remove(&streams, queue);
}

/* Waits for all work, and takes the failure. The lock is held. */
static const char *stream_wait(struct stream *stream) {
    const char *failure;
    while (stream->first != NULL || stream->is_busy) {
        pthread_cond_wait(&stream->changed, &stream->lock);
    }
    failure = stream->failure;
    stream->failure = NULL;
    return failure;
}

static oarlock_error stream_synchronize(void *context, uint32_t device, oarlock_stream queue) {
    struct stream *stream;
    struct item *item;
    const char *failure;
    (void)context;
    OARLOCK_TRY(check_device(device));
    if (queue == 0) {
        return 0;
    }
    OARLOCK_TRY(table_find(&streams, queue, &item));
    stream = (struct stream *)item;
    pthread_mutex_lock(&stream->lock);
    failure = stream_wait(stream);
    pthread_mutex_unlock(&stream->lock);
    item_release(item);
    return report(failure);
}

oarlock_error synchronize_all_streams(void) {
    const char *first = NULL;
    for (uint64_t below = UINT64_MAX;;) {
        struct stream *stream;
        struct item *item;
        const char *failure;
        pthread_mutex_lock(&streams.lock);
        item = streams.first;
        while (item != NULL && item->number >= below) { /* newer streams come first */
            item = item->next;
        }
        if (item != NULL) {
            atomic_fetch_add(&item->uses, 1);
        }
        pthread_mutex_unlock(&streams.lock);
        if (item == NULL) {
            return report(first);
        }
        below = item->number;
        stream = (struct stream *)item;
        pthread_mutex_lock(&stream->lock);
        failure = stream_wait(stream);
        pthread_mutex_unlock(&stream->lock);
        item_release(item);
        first = first == NULL ? failure : first;
    }
}

static oarlock_error stream_query(void *context, uint32_t device, oarlock_stream queue, uint32_t *done) {
    struct stream *stream;
    struct item *item;
    (void)context;
    OARLOCK_TRY(check_device(device));
    if (queue == 0) {
        *done = 1;
        return 0;
    }
    OARLOCK_TRY(table_find(&streams, queue, &item));
    stream = (struct stream *)item;
    pthread_mutex_lock(&stream->lock);
    *done = stream->first == NULL && !stream->is_busy;
    pthread_mutex_unlock(&stream->lock);
    item_release(item);
    return 0;
}

static const char *call_back(struct job *job, const char *failure) {
    job->reached(0, job->queue, job->user, report(failure));
    return NULL;
}

static void *call_back_at_once(void *argument) {
    struct job *job = argument;
    call_back(job, NULL);
    job_end(job);
    return NULL;
}

/* Returns without waiting; the callback runs exactly once, on a thread of the plugin (T-2). */
static oarlock_error stream_add_callback(void *context, uint32_t device, oarlock_stream queue,
    oarlock_stream_reached reached, void *user) {
    struct job *job;
    pthread_t thread;
    (void)context;
    OARLOCK_TRY(check_device(device));
    OARLOCK_TRY(job_create(call_back, &job));
    job->reached = reached;
    job->queue = queue;
    job->user = user;
    if (queue != 0) {
        return job_launch(job, device, queue);
    }
    if (pthread_create(&thread, NULL, call_back_at_once, job) != 0) {
        job_end(job);
        return OARLOCK_FAIL(OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected a thread for a callback, received none");
    }
    pthread_detach(thread);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Events */

static void event_end(struct item *item) {
    struct event *event = (struct event *)item;
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

static oarlock_error event_create(void *context, uint32_t device, oarlock_event *point) {
    struct event *event;
    (void)context;
    OARLOCK_TRY(check_device(device));
    event = calloc(1, sizeof *event);
    OARLOCK_ENFORCE_NOT_NULL(event, OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected memory for an event, received none");
    event->item.end = event_end;
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->changed, NULL);
    *point = table_add(&events, &event->item);
    return 0;
}

/* Work that waits for the event uses it, and goes on to. */
static oarlock_error event_destroy(void *context, uint32_t device, oarlock_event point) {
    (void)context;
    OARLOCK_TRY(check_device(device));
    return table_remove(&events, point);
}

static const char *event_wait(struct event *event, uint64_t turn) {
    const char *failure;
    pthread_mutex_lock(&event->lock);
    while (event->happened < turn) {
        pthread_cond_wait(&event->changed, &event->lock);
    }
    failure = event->failure;
    pthread_mutex_unlock(&event->lock);
    return failure;
}

/* The last turn that was recorded; with `more`, a new one. */
static uint64_t event_turn(struct event *event, uint64_t more) {
    uint64_t turn;
    pthread_mutex_lock(&event->lock);
    event->recorded += more;
    turn = event->recorded;
    pthread_mutex_unlock(&event->lock);
    return turn;
}

static const char *wait_in_stream(struct job *job, const char *failure) {
    return failure != NULL ? NULL : event_wait((struct event *)job->used, job->turn);
}

static const char *happen(struct job *job, const char *failure) {
    struct event *event = (struct event *)job->used;
    pthread_mutex_lock(&event->lock);
    event->happened = job->turn > event->happened ? job->turn : event->happened;
    event->failure = failure;
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
    return NULL;
}

/* Adds a job that uses an event. */
static oarlock_error launch_with_event(const char *(*run)(struct job *job, const char *failure), uint32_t device,
    oarlock_stream queue, oarlock_event point, uint64_t more) {
    struct job *job;
    struct item *item;
    oarlock_error failure;
    OARLOCK_TRY(check_device(device));
    if (queue != 0) {
        OARLOCK_TRY(table_find(&streams, queue, &item));
        item_release(item);
    }
    OARLOCK_TRY(job_create(run, &job));
    failure = table_find(&events, point, &job->used);
    if (failure != 0) {
        job_end(job);
        return failure;
    }
    job->turn = event_turn((struct event *)job->used, more);
    return job_launch(job, device, queue);
}

static oarlock_error stream_wait_event(void *context, uint32_t device, oarlock_stream queue, oarlock_event point) {
    (void)context;
    return launch_with_event(wait_in_stream, device, queue, point, 0);
}

static oarlock_error event_record(void *context, uint32_t device, oarlock_stream queue, oarlock_event point) {
    (void)context;
    return launch_with_event(happen, device, queue, point, 1);
}

static oarlock_error event_query(void *context, uint32_t device, oarlock_event point, uint32_t *done) {
    struct event *event;
    struct item *item;
    (void)context;
    OARLOCK_TRY(check_device(device));
    OARLOCK_TRY(table_find(&events, point, &item));
    event = (struct event *)item;
    pthread_mutex_lock(&event->lock);
    *done = event->happened >= event->recorded;
    pthread_mutex_unlock(&event->lock);
    item_release(item);
    return 0;
}

static oarlock_error event_synchronize(void *context, uint32_t device, oarlock_event point) {
    struct item *item;
    const char *failure;
    (void)context;
    OARLOCK_TRY(check_device(device));
    OARLOCK_TRY(table_find(&events, point, &item));
    failure = event_wait((struct event *)item, event_turn((struct event *)item, 0));
    item_release(item);
    return report(failure);
}

/* The asynchronous copies stay empty: the host then synchronizes the stream and uses those of `core`. */
const oarlock_async_table sample_npu_async = {
    OARLOCK_TABLE(oarlock_async_table),
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_add_callback = stream_add_callback,
    .stream_wait_event = stream_wait_event,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
};
