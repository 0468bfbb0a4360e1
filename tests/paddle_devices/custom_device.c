/* A custom device of PaddlePaddle whose memory is that of the host, written from the description of the interface in
   `plugins/paddle/src`. It refuses calls on a device that is not the current one, as a driver with a current device would, and
   returns null for all streams and events. Macros choose the release that it is for, and what is wrong with it. */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef DEVICE_TYPE
#define DEVICE_TYPE "test_npu"
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE 912
#endif
#ifndef PARAMS_SIZE
#define PARAMS_SIZE 88
#endif
#ifndef MAJOR_VERSION
#define MAJOR_VERSION 0
#endif
#ifndef FAILING_WORD
#define FAILING_WORD 0
#endif
#ifndef FAILING_STATUS
#define FAILING_STATUS 2
#endif
#ifdef CURRENT_OF_THREAD
#define CURRENT_SCOPE _Thread_local
#else
#define CURRENT_SCOPE
#endif

/* The places of the functions in the table, in words; the same in all releases. */
enum {
    INITIALIZE = 1,
    FINALIZE,
    INIT_DEVICE,
    SET_DEVICE,
    GET_DEVICE,
    DEINIT_DEVICE,
    CREATE_STREAM,
    DESTROY_STREAM,
    QUERY_STREAM,
    STREAM_ADD_CALLBACK,
    CREATE_EVENT,
    RECORD_EVENT,
    DESTROY_EVENT,
    QUERY_EVENT,
    SYNCHRONIZE_DEVICE,
    SYNCHRONIZE_STREAM,
    SYNCHRONIZE_EVENT,
    STREAM_WAIT_EVENT,
    MEMORY_ALLOCATE = 27,
    MEMORY_DEALLOCATE,
    MEMORY_SET,
    HOST_ALLOCATE,
    HOST_DEALLOCATE,
    COPY_H2D = 34,
    COPY_D2H,
    COPY_D2D,
    COPY_P2P,
    ASYNC_H2D,
    ASYNC_D2H,
    ASYNC_D2D,
    ASYNC_P2P,
    DEVICE_COUNT = 50,
    DEVICE_LIST,
    MEMORY_STATS,
    MIN_CHUNK,
    MAX_ALLOC = 55,
    CAPABILITY = 59
};

enum { SUCCESS = 0, FAILED = 2, WRONG_USE = 3 };

struct device {
    int id;
};
typedef void (*reached_function)(struct device *, void *stream, void *user, unsigned *status);

struct params {
    size_t size;
    uintptr_t *table;
    size_t version[3];
    const char *device_type, *sub_device_type;
};

/* The physical numbers are not those that a host knows. */
static const int FIRST_PHYSICAL = 40;
static CURRENT_SCOPE int current = -1;

#define FAIL_HERE(word) \
    if ((word) == FAILING_WORD) return FAILING_STATUS
#define ENTER(word, device)                                       \
    FAIL_HERE(word);                                              \
    if ((device)->id != current || (device)->id < FIRST_PHYSICAL) \
        return WRONG_USE

static unsigned initialize(void) {
    FAIL_HERE(INITIALIZE);
    return SUCCESS;
}
static unsigned finalize(void) {
    FAIL_HERE(FINALIZE);
    return SUCCESS;
}
static unsigned init_device(struct device *device) {
    FAIL_HERE(INIT_DEVICE);
    device->id += FIRST_PHYSICAL;
    current = device->id;
    return SUCCESS;
}
static unsigned set_device(struct device *device) {
    FAIL_HERE(SET_DEVICE);
    current = device->id;
    return SUCCESS;
}
static unsigned get_device(struct device *device) {
    FAIL_HERE(GET_DEVICE);
    device->id = current;
    return SUCCESS;
}
static unsigned deinit_device(struct device *device) {
    ENTER(DEINIT_DEVICE, device);
    return SUCCESS;
}
static unsigned create_stream(struct device *device, void **stream) {
    ENTER(CREATE_STREAM, device);
    *stream = NULL;
    return SUCCESS;
}
static unsigned destroy_stream(struct device *device, void *stream) {
    ENTER(DESTROY_STREAM, device);
    return stream ? WRONG_USE : SUCCESS;
}
static unsigned query_stream(struct device *device, void *stream) {
    ENTER(QUERY_STREAM, device);
    return stream ? WRONG_USE : SUCCESS;
}
struct call {
    reached_function reached;
    void *user;
};
static void *call_back(void *argument) {
    struct call *call = argument;
    unsigned status = 77;
    call->reached(NULL, NULL, call->user, &status);
#ifdef CALLS_BACK_TWICE
    call->reached(NULL, NULL, call->user, NULL);
#endif
    free(call);
    return NULL;
}
static unsigned stream_add_callback(struct device *device, void *stream, reached_function reached, void *user) {
    pthread_t thread;
    struct call *call;
    ENTER(STREAM_ADD_CALLBACK, device);
    call = malloc(sizeof *call);
    if (stream || !call) return FAILED;
    call->reached = reached;
    call->user = user;
    if (pthread_create(&thread, NULL, call_back, call)) return FAILED;
    pthread_detach(thread);
    return SUCCESS;
}
static unsigned create_event(struct device *device, void **event) {
    ENTER(CREATE_EVENT, device);
    *event = NULL;
    return SUCCESS;
}
static unsigned record_event(struct device *device, void *stream, void *event) {
    ENTER(RECORD_EVENT, device);
    return stream || event ? WRONG_USE : SUCCESS;
}
static unsigned destroy_event(struct device *device, void *event) {
    ENTER(DESTROY_EVENT, device);
    return event ? WRONG_USE : SUCCESS;
}
static unsigned query_event(struct device *device, void *event) {
    ENTER(QUERY_EVENT, device);
    return event ? WRONG_USE : SUCCESS;
}
/* What waits need not be on the current device: the others may go on meanwhile. */
static unsigned synchronize_device(struct device *device) {
    FAIL_HERE(SYNCHRONIZE_DEVICE);
    return device->id < FIRST_PHYSICAL ? WRONG_USE : SUCCESS;
}
static unsigned synchronize_stream(struct device *device, void *stream) {
    FAIL_HERE(SYNCHRONIZE_STREAM);
    return device->id < FIRST_PHYSICAL || stream ? WRONG_USE : SUCCESS;
}
static unsigned synchronize_event(struct device *device, void *event) {
    FAIL_HERE(SYNCHRONIZE_EVENT);
    return device->id < FIRST_PHYSICAL || event ? WRONG_USE : SUCCESS;
}
static unsigned stream_wait_event(struct device *device, void *stream, void *event) {
    ENTER(STREAM_WAIT_EVENT, device);
    return stream || event ? WRONG_USE : SUCCESS;
}
static unsigned memory_allocate(struct device *device, void **address, size_t size) {
    ENTER(MEMORY_ALLOCATE, device);
    *address = size > ((size_t)1 << 32) ? NULL : malloc(size);
    return *address ? SUCCESS : FAILED;
}
static unsigned memory_deallocate(struct device *device, void *address, size_t size) {
    ENTER(MEMORY_DEALLOCATE, device);
    (void)size;
    free(address);
    return SUCCESS;
}
static unsigned memory_set(struct device *device, void *address, unsigned char byte, size_t size) {
    ENTER(MEMORY_SET, device);
    memset(address, byte, size);
    return SUCCESS;
}
static unsigned host_allocate(struct device *device, void **address, size_t size) {
    ENTER(HOST_ALLOCATE, device);
    *address = malloc(size);
    return *address ? SUCCESS : FAILED;
}
static unsigned host_deallocate(struct device *device, void *address, size_t size) {
    ENTER(HOST_DEALLOCATE, device);
    (void)size;
    free(address);
    return SUCCESS;
}
#define COPY(name, word)                                                                                \
    static unsigned name(struct device *device, void *target, const void *source, size_t size) {        \
        ENTER(word, device);                                                                            \
        memcpy(target, source, size);                                                                   \
        return SUCCESS;                                                                                 \
    }                                                                                                   \
    static unsigned async_##name(                                                                       \
        struct device *device, void *stream, void *target, const void *source, size_t size) {           \
        ENTER(word + ASYNC_H2D - COPY_H2D, device);                                                     \
        if (stream) return WRONG_USE;                                                                   \
        memcpy(target, source, size);                                                                   \
        return SUCCESS;                                                                                 \
    }
COPY(h2d, COPY_H2D)
COPY(d2h, COPY_D2H)
COPY(d2d, COPY_D2D)
static unsigned p2p(
    struct device *target_device, struct device *device, void *target, const void *source, size_t size) {
    ENTER(COPY_P2P, device);
    if (target_device->id == device->id) return WRONG_USE;
    memcpy(target, source, size);
    return SUCCESS;
}
static unsigned async_p2p(struct device *target_device,
    struct device *device,
    void *stream,
    void *target,
    const void *source,
    size_t size) {
    ENTER(ASYNC_P2P, device);
    if (stream || target_device->id == device->id) return WRONG_USE;
    memcpy(target, source, size);
    return SUCCESS;
}
static unsigned device_count(size_t *count) {
    FAIL_HERE(DEVICE_COUNT);
    *count = 2;
    return SUCCESS;
}
static unsigned device_list(size_t *ids) {
    FAIL_HERE(DEVICE_LIST);
    ids[0] = 0;
    ids[1] = 1;
#ifdef LISTS_TOO_MANY
    ids[2] = 2;
#endif
    return SUCCESS;
}
static unsigned memory_stats(struct device *device, size_t *total, size_t *free_bytes) {
    ENTER(MEMORY_STATS, device);
    *total = (size_t)1 << 30;
    *free_bytes = (size_t)1 << 29;
    return SUCCESS;
}
static unsigned min_chunk(struct device *device, size_t *size) {
    ENTER(MIN_CHUNK, device);
    *size = 256;
    return SUCCESS;
}
static unsigned max_alloc(struct device *device, size_t *size) {
    ENTER(MAX_ALLOC, device);
    *size = (size_t)1 << 28;
    return SUCCESS;
}
#ifdef VERSIONS_TAKE_DEVICE
static unsigned capability(struct device *device, size_t *number) {
    ENTER(CAPABILITY, device);
#else
static unsigned capability(size_t *number) {
    FAIL_HERE(CAPABILITY);
#endif
    *number = 86;
    return SUCCESS;
}

#define AT(word, function) params->table[word] = (uintptr_t)(function)

void InitPlugin(struct params *params) {
#ifdef CRASHES
    volatile int *nowhere = (volatile int *)8;
    *nowhere = 1;
#endif
#ifdef EXITS
    exit(0);
#endif
#if defined CHECKS_NOTHING
#elif defined CHECKS_BOTH
    if (params->size != PARAMS_SIZE || params->table[0] != TABLE_SIZE) return;
#elif defined CHECKS_STRUCT_ALONE
    if (params->size != PARAMS_SIZE) return;
#else
    if (params->size != PARAMS_SIZE && params->table[0] != TABLE_SIZE) return;
#endif
    memset(params->table, 0, TABLE_SIZE);
    params->version[0] = MAJOR_VERSION;
    params->version[1] = 1;
    params->version[2] = 1;
    params->device_type = DEVICE_TYPE;
    params->sub_device_type = "V1";
    AT(INITIALIZE, initialize);
    AT(FINALIZE, finalize);
    AT(INIT_DEVICE, init_device);
    AT(SET_DEVICE, set_device);
    AT(GET_DEVICE, get_device);
    AT(DEINIT_DEVICE, deinit_device);
    AT(CREATE_STREAM, create_stream);
    AT(DESTROY_STREAM, destroy_stream);
    AT(CREATE_EVENT, create_event);
    AT(RECORD_EVENT, record_event);
    AT(DESTROY_EVENT, destroy_event);
    AT(SYNCHRONIZE_DEVICE, synchronize_device);
    AT(SYNCHRONIZE_STREAM, synchronize_stream);
    AT(SYNCHRONIZE_EVENT, synchronize_event);
    AT(STREAM_WAIT_EVENT, stream_wait_event);
    AT(MEMORY_ALLOCATE, memory_allocate);
    AT(MEMORY_DEALLOCATE, memory_deallocate);
    AT(COPY_H2D, h2d);
    AT(COPY_D2H, d2h);
    AT(COPY_D2D, d2d);
    AT(DEVICE_COUNT, device_count);
    AT(DEVICE_LIST, device_list);
    AT(MEMORY_STATS, memory_stats);
    AT(MIN_CHUNK, min_chunk);
#ifndef REQUIRED_FUNCTIONS_ONLY
    AT(QUERY_STREAM, query_stream);
    AT(STREAM_ADD_CALLBACK, stream_add_callback);
    AT(QUERY_EVENT, query_event);
    AT(MEMORY_SET, memory_set);
    AT(HOST_ALLOCATE, host_allocate);
    AT(HOST_DEALLOCATE, host_deallocate);
    AT(COPY_P2P, p2p);
    AT(ASYNC_H2D, async_h2d);
    AT(ASYNC_D2H, async_d2h);
    AT(ASYNC_D2D, async_d2d);
    AT(ASYNC_P2P, async_p2p);
    AT(MAX_ALLOC, max_alloc);
    AT(CAPABILITY, capability);
#endif
#ifdef OMITTED_WORD
    params->table[OMITTED_WORD] = 0;
#endif
#ifdef WRITES_PAST_END
    params->table[TABLE_SIZE / sizeof(uintptr_t)] = 1;
#endif
}
