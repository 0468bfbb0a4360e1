/* A plugin with one device; each -DFAULT_… macro makes it invalid in a different way. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oarlock/contract.h"

#ifndef NAME
#define NAME "good"
#endif
#ifndef DEVICE_TYPE
#define DEVICE_TYPE NAME
#endif
#define TEXT(literal) {(literal), sizeof(literal) - 1}

static oarlock_host_table services;
static void *host_context;

static oarlock_error fail(uint32_t code, const char *message) {
    oarlock_error_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    info.code = code;
    info.message.data = message;
    info.message.size = strlen(message);
    return services.error_create(host_context, &info);
}

#ifdef LINKED
extern int is_broken(void);
#endif

static oarlock_error initialize(void *context) {
    (void)context;
#ifdef FAULT_INITIALIZE_CRASH
    raise(SIGSEGV);
#elif defined REACHES_PARENT
    if (kill(getppid(), 0) == 0) return fail(OARLOCK_CODE_PERMISSION_DENIED, "expected no way to the parent, found one");
#elif defined FAULT_INITIALIZE_HANG
    for (;;) pause();
#elif defined FAULT_INITIALIZE_LATE
    sleep(4);
#elif defined DRIVER
    /* The driver says whether the start is to crash; only the child that probes crashes. */
    void *driver = dlopen(DRIVER, RTLD_NOW);
    int (*is_broken)(void) = driver == NULL ? NULL : (int (*)(void))dlsym(driver, "is_broken");
    if (is_broken != NULL && is_broken() && strstr(program_invocation_name, "probe") != NULL) abort();
#elif defined LINKED
    if (is_broken() && strstr(program_invocation_name, "probe") != NULL) abort();
#elif defined SWITCH
    if (access(SWITCH, F_OK) == 0 && strstr(program_invocation_name, "probe") != NULL) abort();
#elif defined FAULT_INITIALIZE_OPTION
    oarlock_str key = TEXT("mode"), value = {0};
    services.option(host_context, key, &value);
    if (value.size == 5 && memcmp(value.data, "crash", 5) == 0) abort();
#endif
#ifdef FAULT_INITIALIZE
    return fail(OARLOCK_CODE_UNAVAILABLE, "expected the driver to answer, found it asleep");
#else
    return 0;
#endif
}
static oarlock_error synchronize(void *context, uint32_t device) { (void)context; (void)device; return 0; }
static oarlock_error count_devices(void *context, uint32_t *count) {
    (void)context;
    *count = 2;
    return 0;
}
static oarlock_error list_devices(void *context, uint32_t *ids, uint64_t capacity, uint64_t *count) {
    (void)context;
#if defined FAULT_LIST_SHORT
    ids[0] = 0;
    *count = 1;
#elif defined FAULT_LIST_TWICE
    ids[0] = ids[1] = 3;
    *count = 2;
#else
    if (capacity > 0) ids[0] = 0;
    if (capacity > 1) ids[1] = 7;
    *count = 2;
#endif
    return 0;
}
static oarlock_error capability(void *context, uint32_t device, oarlock_version *version) {
    (void)context; (void)device;
    version->major = 1;
    return 0;
}
static oarlock_error installed(void *context, oarlock_version *version) { (void)context; version->major = 2; return 0; }
static oarlock_error allocate(void *context, uint32_t device, uint64_t size, oarlock_memory *block) {
    (void)context; (void)device;
    if (size > (1u << 30)) return fail(OARLOCK_CODE_RESOURCE_EXHAUSTED, "expected at most 1 GiB, found more");
    if (size == 13) return 4711;
    *block = (oarlock_memory)(uintptr_t)malloc(size);
    return 0;
}
static oarlock_error deallocate(void *context, uint32_t device, oarlock_memory block, uint64_t size) {
    (void)context; (void)device; (void)size;
    free((void *)(uintptr_t)block);
    return 0;
}
static oarlock_error h2d(void *context, uint32_t device, oarlock_memory target, uint64_t at, const void *source, uint64_t size) {
    (void)context; (void)device;
    memcpy((char *)(uintptr_t)target + at, source, size);
    return 0;
}
static oarlock_error d2h(void *context, uint32_t device, void *target, uint64_t size, oarlock_memory source, uint64_t at) {
    (void)context; (void)device;
    memcpy(target, (char *)(uintptr_t)source + at, size);
    return 0;
}
static oarlock_error d2d(void *context, uint32_t device, oarlock_memory target, uint64_t to, oarlock_memory source, uint64_t from, uint64_t size) {
    (void)context; (void)device;
    memcpy((char *)(uintptr_t)target + to, (char *)(uintptr_t)source + from, size);
    return 0;
}
static oarlock_error stats(void *context, uint32_t device, uint64_t *total, uint64_t *available) {
    (void)context; (void)device;
    *total = 1u << 30;
    *available = 1u << 29;
    return 0;
}
static oarlock_error chunk(void *context, uint32_t device, uint64_t *size) { (void)context; (void)device; *size = 64; return 0; }
static oarlock_error unload(void *context) {
    (void)context;
#ifdef FAULT_UNLOAD_ABORT
    abort();
#endif
    return 0;
}

static void add_part(void *user, uint64_t begin, uint64_t end, uint32_t worker) {
    const oarlock_call *call = user;
    const float *a = (const float *)(uintptr_t)call->inputs[0]->block;
    const float *b = (const float *)(uintptr_t)call->inputs[1]->block;
    float *c = (float *)(uintptr_t)call->outputs[0]->block;
    (void)worker;
    for (uint64_t i = begin; i < end; i++) c[i] = a[i] + b[i];
}
static oarlock_error add(void *context, void *state, const oarlock_call *call) {
    uint64_t count = call->inputs[0]->size_in_bytes / sizeof(float);
    (void)context; (void)state;
    if (call->outputs[0]->block == 0) {
        oarlock_error error = services.output_allocate(host_context, call, 0, OARLOCK_DTYPE_F32, call->inputs[0]->dims, call->inputs[0]->dims_count);
        if (error) return error;
    }
    return services.parallel_for(host_context, count, 16, add_part, (void *)(uintptr_t)call);
}
static oarlock_error prepare(void *context, const oarlock_call *call, void **state) {
    (void)context;
    *state = 0;
    oarlock_error failure = services.constant_read(host_context, call, 1, 1);
    if (failure) return failure;
    return services.kernel_describe(host_context, call, (oarlock_str)TEXT("one by \x1b[1mone"));
}
static oarlock_error release(void *context, void *state) { (void)context; (void)state; return 0; }

static oarlock_operand operand = {
    .size = sizeof operand, .dtypes = 1ull << OARLOCK_DTYPE_F32,
#ifdef FAULT_RANKS
    .rank_min = 9,
#endif
    .rank_max = 8,
};
static const oarlock_operand *const inputs[] = {&operand, &operand};
static oarlock_kernel kernel = {
    .size = sizeof kernel, .op = TEXT("Add"), .version_min = 7, .score = 100,
    .inputs = inputs, .inputs_count = 2, .outputs = inputs, .outputs_count = 1,
#ifdef FAULT_PREPARE_WITHOUT_RELEASE
    .prepare = (oarlock_error (*)(void *, const oarlock_call *, void **))0x10,
#else
    .prepare = prepare, .release = release,
#endif
#ifndef FAULT_NO_RUN
    .run = add,
#endif
};
static const oarlock_kernel *const kernel_list[] = {&kernel};
static oarlock_kernel_table kernels = {.size = sizeof kernels, .features = 1, .kernels = kernel_list, .kernels_count = 1};

static struct {
    oarlock_core_table table;
    uint64_t tail[2];
} core = {.table = {
    .size = sizeof(oarlock_core_table), .features = 1, .initialize = initialize,
    .device_synchronize = synchronize, .device_count = count_devices, .device_list = list_devices,
    .compute_capability = capability, .runtime_version = installed, .driver_version = installed,
    .memory_allocate = allocate, .memory_deallocate = deallocate,
    .memory_copy_h2d = h2d, .memory_copy_d2h = d2h, .memory_copy_d2d = d2d,
    .memory_stats = stats, .min_chunk_size = chunk,
}};

__attribute__((visibility("default"))) oarlock_error oarlock_plugin_query(const oarlock_host *host, oarlock_plugin *plugin) {
    services = *host->services;
    host_context = host->context;
    plugin->contract_major = 1;
    plugin->contract_minor = 0;
    plugin->contract_minor_oldest = 0;
#if defined __has_feature
#if __has_feature(address_sanitizer)
    plugin->sanitizer = OARLOCK_SANITIZER_ADDRESS;
#endif
#endif
    plugin->name = (oarlock_str)TEXT(NAME);
    plugin->version = (oarlock_str)TEXT("1.2.3");
    plugin->vendor = (oarlock_str)TEXT("Acme\x1b[31m");
    plugin->device_type = (oarlock_str)TEXT(DEVICE_TYPE);
    plugin->core = &core.table;
    plugin->kernels = &kernels;
    plugin->unload = unload;
#if defined FAULT_MAJOR
    plugin->contract_major = 2;
#elif defined FAULT_NEEDS_NEWER
    plugin->contract_minor = plugin->contract_minor_oldest = 9;
#elif defined FAULT_ERROR
    return fail(OARLOCK_CODE_EXTERNAL, "expected a driver, found none");
#elif defined FAULT_JUNK_ERROR
    return 99;
#elif defined FAULT_NO_NAME
    plugin->name.size = 0;
#elif defined FAULT_NOT_UTF8
    plugin->name = (oarlock_str)TEXT("a\xff");
#elif defined FAULT_LONG_NAME
    plugin->name.size = 1ull << 40;
#elif defined FAULT_SLOT
    core.table.memory_stats = 0;
#elif defined FAULT_PAIR
    core.table.host_memory_allocate = (oarlock_error (*)(void *, uint32_t, uint64_t, void **))0x10;
#elif defined FAULT_SHORT
    core.table.size = 24;
#elif defined LONG_ZERO
    core.table.size = sizeof core;
#elif defined FAULT_LONG
    core.table.size = sizeof core;
    core.tail[1] = 5;
#elif defined FAULT_NO_CORE
    plugin->core = 0;
#elif defined FAULT_PLUGIN_LONG
    plugin->size = 4096;
#elif defined FAULT_OVERRUN
    memset((char *)plugin + sizeof *plugin, 1, 64);
#elif defined FAULT_SANITIZER
    plugin->sanitizer = OARLOCK_SANITIZER_THREAD;
#elif defined FAULT_CRASH
    raise(SIGSEGV);
#elif defined FAULT_ABORT
    abort();
#elif defined FAULT_EXIT
    exit(3);
#elif defined FAULT_HANG
    for (;;) pause();
#elif defined FAULT_FORK
    if (fork() == 0) { for (;;) pause(); }
#elif defined FAULT_FORK_AND_ANSWER
    fork();
#elif defined PRINTS
    puts("hello from the plugin");
    fflush(stdout);
#elif defined FORGES
    const char *forged = "{\"token\":\"\",\"pid\":1,\"step\":\"Readied\",\"verdict\":null}\n";
    for (int file = 1; file < 64; file++) (void)!write(file, forged, strlen(forged));
#elif defined SEES_FILES
    if (fcntl(FILE_NUMBER, F_GETFD) != -1) abort();
#elif defined UNLOADABLE
    plugin->offers = OARLOCK_PLUGIN_FLAGS_UNLOADABLE;
#endif
    return 0;
}
