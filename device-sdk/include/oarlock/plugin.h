/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers for plugins in C and C++: the entry point with its version checks, errors with source locations, and accessors for
 * calls. Header only, for GCC and Clang, C11 and C++17.
 *
 *     static oarlock_error describe(oarlock_plugin *plugin) {
 *         plugin->name = oarlock_string("acme-npu");
 *         plugin->core = &acme_core;
 *         return 0;
 *     }
 *     OARLOCK_PLUGIN(describe);
 *
 * `oarlock plugin new` writes a complete plugin to start from. */
#ifndef OARLOCK_PLUGIN_H
#define OARLOCK_PLUGIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "contract.h"

#ifdef __cplusplus
#define OARLOCK_CAST(type, value) static_cast<type>(value)
#define OARLOCK_NULL nullptr
#else
#define OARLOCK_CAST(type, value) ((type)(value))
#define OARLOCK_NULL NULL
#endif

#define OARLOCK_HIDDEN __attribute__((visibility("hidden")))

/* ------------------------------------------------------------------------------------------------------------------
 * Text, structs and tables */

/** Text in an initializer: `.name = OARLOCK_STR("A")`. In an assignment, use `oarlock_string("A")`; in C++, `oarlock::str("A")`
 *  anywhere. */
#define OARLOCK_STR(literal) {"" literal, sizeof(literal) - 1}

/** The header of a struct in an initializer: `{OARLOCK_HEADER(oarlock_operand), .name = ...}`.
 *  C++17 has no designated initializers; use `oarlock::make<oarlock_operand>()`. */
#define OARLOCK_HEADER(type) OARLOCK_CAST(uint32_t, sizeof(type)), 0, OARLOCK_NULL

/** The header of a table in an initializer; in C++, use `oarlock::make_table<oarlock_core_table>()`. */
#define OARLOCK_TABLE(type) OARLOCK_HEADER(type), OARLOCK_FEATURES

/** The `features` of a table: all minor versions up to the version of this header. */
#define OARLOCK_FEATURES ((2ull << OARLOCK_CONTRACT_MINOR) - 1)

/** The size of a struct up to the end of one of its members. */
#ifdef __cplusplus
#define OARLOCK_SIZE_THROUGH(type, member) (offsetof(type, member) + sizeof(type::member))
#else
#define OARLOCK_SIZE_THROUGH(type, member) (offsetof(type, member) + sizeof((type){0}.member))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Wraps zero-terminated text as text of the contract, without a copy. */
static inline oarlock_str oarlock_string(const char *text) {
    oarlock_str string;
    string.data = text;
    string.size = text == OARLOCK_NULL ? 0 : strlen(text);
    return string;
}

/** Compares text of the contract with zero-terminated text. */
static inline int oarlock_equals(oarlock_str string, const char *text) {
    const size_t size = strlen(text);
    return string.size == size && (size == 0 || memcmp(string.data, text, size) == 0);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The host */

/** The host that queried the plugin last, shared by all sources of the plugin. `OARLOCK_PLUGIN` defines it. */
struct oarlock_link {
    const oarlock_host_table *services;
    void *context;
};
extern OARLOCK_HIDDEN struct oarlock_link oarlock_linked_host;

/** The host's services; the first argument of each is `oarlock_services_context()`. Null until a host has queried the plugin. */
static inline const oarlock_host_table *oarlock_services(void) {
    return __atomic_load_n(&oarlock_linked_host.services, __ATOMIC_ACQUIRE);
}

static inline void *oarlock_services_context(void) {
    return __atomic_load_n(&oarlock_linked_host.context, __ATOMIC_ACQUIRE);
}

/** The error that the plugin's functions return while there is no host to make one: a number that no host issues. */
#define OARLOCK_ERROR_WITHOUT_HOST UINT64_MAX

/** Reads the value that the user configured for this plugin under a key, or empty text. */
static inline oarlock_error oarlock_option(const char *key, oarlock_str *value) {
    if (oarlock_services() == OARLOCK_NULL) {
        return OARLOCK_ERROR_WITHOUT_HOST;
    }
    return oarlock_services()->option(oarlock_services_context(), oarlock_string(key), value);
}

/** Runs `task` over 0..count on the host's threads, in pieces of at least `grain`. */
static inline oarlock_error oarlock_parallel_for(uint64_t count, uint64_t grain, oarlock_task task, void *user) {
    if (oarlock_services() == OARLOCK_NULL) {
        return OARLOCK_ERROR_WITHOUT_HOST;
    }
    return oarlock_services()->parallel_for(oarlock_services_context(), count, grain, task, user);
}

/** Sets the dtype and shape of an output: in a kernel's `infer`, and in `run` of a kernel that allocates its outputs. */
static inline oarlock_error oarlock_allocate_output(const oarlock_call *call, uint32_t index, oarlock_dtype dtype,
    const int64_t *dims, uint64_t dims_count) {
    if (oarlock_services() == OARLOCK_NULL) {
        return OARLOCK_ERROR_WITHOUT_HOST;
    }
    return oarlock_services()->output_allocate(oarlock_services_context(), call, index, dtype, dims, dims_count);
}

/** Describes in a few words how the kernel will run the call that it is being prepared for. Does nothing on a host that does
 *  not offer this service. */
static inline oarlock_error oarlock_describe(const oarlock_call *call, const char *way) {
    const oarlock_host_table *services = oarlock_services();
    if (services == OARLOCK_NULL) {
        return OARLOCK_ERROR_WITHOUT_HOST;
    }
    if (services->size < OARLOCK_SIZE_THROUGH(oarlock_host_table, kernel_describe) || services->kernel_describe == OARLOCK_NULL) {
        return 0;
    }
    return services->kernel_describe(oarlock_services_context(), call, oarlock_string(way));
}

/** Makes the elements of a constant readable, whose operand has the flag `on_demand`: until `prepare` returns, or, if `keep` is
 *  not 0, as long as the state lives. On a host that does not offer this service they are always readable. */
static inline oarlock_error oarlock_read_constant(const oarlock_call *call, uint32_t index, uint32_t keep) {
    const oarlock_host_table *services = oarlock_services();
    if (services == OARLOCK_NULL) {
        return OARLOCK_ERROR_WITHOUT_HOST;
    }
    if (services->size < OARLOCK_SIZE_THROUGH(oarlock_host_table, constant_read) || services->constant_read == OARLOCK_NULL) {
        return 0;
    }
    return services->constant_read(oarlock_services_context(), call, index, keep);
}

/** Returns an error if the caller wants the work on this thread to stop: a kernel that runs long asks now and then and returns the
 *  error. On a host that does not offer this service, work is never stopped. */
static inline oarlock_error oarlock_check_stop(void) {
    const oarlock_host_table *services = oarlock_services();
    if (services == OARLOCK_NULL) {
        return OARLOCK_ERROR_WITHOUT_HOST;
    }
    if (services->size < OARLOCK_SIZE_THROUGH(oarlock_host_table, stop_check) || services->stop_check == OARLOCK_NULL) {
        return 0;
    }
    return services->stop_check(oarlock_services_context());
}

/* ------------------------------------------------------------------------------------------------------------------
 * Errors and messages. A message is at most 511 bytes; a longer one ends in `...`. */

enum { OARLOCK_MESSAGE_SIZE = 512 };

/** The size of the first character of `text`, or 0 if the next `size` bytes do not start with valid UTF-8. */
static inline size_t oarlock_character_size(const unsigned char *text, size_t size) {
    const unsigned char lead = text[0];
    const size_t needed = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    const unsigned char lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    size_t i;
    if (needed == 1) {
        return 1;
    }
    if (lead < 0xC2 || lead > 0xF4 || size < needed || text[1] < lowest || text[1] > highest) {
        return 0;
    }
    for (i = 2; i < needed; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return needed;
}

/** Formats into `text`, truncates between characters, and replaces invalid UTF-8 by `?`. */
__attribute__((format(printf, 2, 0))) static inline oarlock_str oarlock_format(char text[OARLOCK_MESSAGE_SIZE],
    const char *format, va_list arguments) {
    const int wanted = vsnprintf(text, OARLOCK_MESSAGE_SIZE, format, arguments);
    const int is_cut = wanted >= OARLOCK_MESSAGE_SIZE;
    const size_t size = wanted < 0 ? 0 : is_cut ? OARLOCK_MESSAGE_SIZE - 1 : OARLOCK_CAST(size_t, wanted);
    const size_t most = is_cut ? OARLOCK_MESSAGE_SIZE - 4 : size;
    size_t kept = 0;
    oarlock_str message;
    while (kept < most) {
        unsigned char ahead[4] = {0, 0, 0, 0};
        size_t step;
        memcpy(ahead, text + kept, size - kept < 4 ? size - kept : 4);
        step = oarlock_character_size(ahead, size - kept);
        if (step == 0) {
            text[kept] = '?';
            step = 1;
        }
        if (kept + step > most) {
            break;
        }
        kept += step;
    }
    if (is_cut) {
        memcpy(text + kept, "...", 3);
        kept += 3;
    }
    message.data = text;
    message.size = kept;
    return message;
}

__attribute__((format(printf, 6, 7))) static inline oarlock_error oarlock_fail(const char *file, int line,
    oarlock_error_flags bits, int64_t native_code, oarlock_code code, const char *format, ...) {
    char text[OARLOCK_MESSAGE_SIZE];
    oarlock_error_info info;
    va_list arguments;
    if (oarlock_services() == OARLOCK_NULL) {
        return OARLOCK_ERROR_WITHOUT_HOST;
    }
    memset(&info, 0, sizeof info);
    info.size = OARLOCK_CAST(uint32_t, sizeof info);
    info.code = code;
    info.bits = bits;
    info.native_code = native_code;
    info.file = oarlock_string(file);
    info.line = OARLOCK_CAST(uint32_t, line);
    va_start(arguments, format);
    info.message = oarlock_format(text, format, arguments);
    va_end(arguments);
    return oarlock_services()->error_create(oarlock_services_context(), &info);
}

/** Writes a message to the host's log. A plugin prints nothing itself. */
__attribute__((format(printf, 2, 3))) static inline void oarlock_log(oarlock_log_level level, const char *format, ...) {
    char text[OARLOCK_MESSAGE_SIZE];
    va_list arguments;
    oarlock_str message;
    oarlock_error failure;
    if (oarlock_services() == OARLOCK_NULL) {
        return;
    }
    va_start(arguments, format);
    message = oarlock_format(text, format, arguments);
    va_end(arguments);
    failure = oarlock_services()->log(oarlock_services_context(), level, message);
    if (failure != 0) {
        oarlock_services()->error_release(oarlock_services_context(), failure);
    }
}

/** A number as text, for the message of a failed comparison. */
struct oarlock_shown {
    char text[32];
};

static inline struct oarlock_shown oarlock_show_signed(long long value) {
    struct oarlock_shown shown;
    snprintf(shown.text, sizeof shown.text, "%lld", value);
    return shown;
}

static inline struct oarlock_shown oarlock_show_unsigned(unsigned long long value) {
    struct oarlock_shown shown;
    snprintf(shown.text, sizeof shown.text, "%llu", value);
    return shown;
}

static inline struct oarlock_shown oarlock_show_float(double value) {
    struct oarlock_shown shown;
    snprintf(shown.text, sizeof shown.text, "%.17g", value);
    return shown;
}

__attribute__((format(printf, 7, 8))) static inline oarlock_error oarlock_fail_comparison(const char *file, int line,
    const char *expected, struct oarlock_shown left, struct oarlock_shown right, oarlock_code code, const char *format,
    ...) {
    char text[OARLOCK_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return oarlock_fail(file, line, 0, 0, code, "expected `%s`, received %s and %s: %s", expected, left.text,
        right.text, text);
}

/** Makes an error with the current file and line: `return OARLOCK_FAIL(code, "format", ...)`. */
#define OARLOCK_FAIL(...) OARLOCK_FAIL_WITH(0, 0, __VA_ARGS__)

/** The same with flags, such as `OARLOCK_ERROR_FLAGS_DEVICE_LOST`, and the number that the driver returned, or 0. */
#define OARLOCK_FAIL_WITH(bits, native_code, ...) oarlock_fail(__FILE__, __LINE__, bits, native_code, __VA_ARGS__)

/** Returns an error from the function unless the condition holds: `OARLOCK_ENFORCE(condition, code, "format", ...)`. */
#define OARLOCK_ENFORCE(condition, ...)       \
    do {                                      \
        if (!(condition)) {                   \
            return OARLOCK_FAIL(__VA_ARGS__); \
        }                                     \
    } while (0)

/** Like `OARLOCK_ENFORCE`, for two numbers, which the message shows: `OARLOCK_ENFORCE_EQ(left, right, code, "format", ...)`.
 *  On failure, both are evaluated a second time. Only numbers compile; for pointers, use `OARLOCK_ENFORCE_NOT_NULL`. */
#define OARLOCK_ENFORCE_EQ(left, right, ...) OARLOCK_COMPARE_(left, ==, right, #left " == " #right, __VA_ARGS__)
#define OARLOCK_ENFORCE_NE(left, right, ...) OARLOCK_COMPARE_(left, !=, right, #left " != " #right, __VA_ARGS__)
#define OARLOCK_ENFORCE_GT(left, right, ...) OARLOCK_COMPARE_(left, >, right, #left " > " #right, __VA_ARGS__)
#define OARLOCK_ENFORCE_GE(left, right, ...) OARLOCK_COMPARE_(left, >=, right, #left " >= " #right, __VA_ARGS__)
#define OARLOCK_ENFORCE_LT(left, right, ...) OARLOCK_COMPARE_(left, <, right, #left " < " #right, __VA_ARGS__)
#define OARLOCK_ENFORCE_LE(left, right, ...) OARLOCK_COMPARE_(left, <=, right, #left " <= " #right, __VA_ARGS__)

/** Like `OARLOCK_ENFORCE`, for a pointer: `OARLOCK_ENFORCE_NOT_NULL(pointer, code, "format", ...)`. */
#define OARLOCK_ENFORCE_NOT_NULL(pointer, ...) OARLOCK_ENFORCE((pointer) != OARLOCK_NULL, __VA_ARGS__)

#define OARLOCK_COMPARE_(left, relation, right, expected, ...)                                          \
    do {                                                                                                \
        if (!((left) relation (right))) {                                                               \
            return oarlock_fail_comparison(__FILE__, __LINE__, expected, OARLOCK_SHOW_(left),           \
                OARLOCK_SHOW_(right), __VA_ARGS__);                                                     \
        }                                                                                               \
    } while (0)

#ifdef __cplusplus
#define OARLOCK_SHOW_(value) ::oarlock::show(value)
#else
#define OARLOCK_SHOW_(value)                       \
    _Generic((value),                              \
        float: oarlock_show_float,                 \
        double: oarlock_show_float,                \
        _Bool: oarlock_show_unsigned,              \
        unsigned char: oarlock_show_unsigned,      \
        unsigned short: oarlock_show_unsigned,     \
        unsigned int: oarlock_show_unsigned,       \
        unsigned long: oarlock_show_unsigned,      \
        unsigned long long: oarlock_show_unsigned, \
        char: oarlock_show_signed,                 \
        signed char: oarlock_show_signed,          \
        short: oarlock_show_signed,                \
        int: oarlock_show_signed,                  \
        long: oarlock_show_signed,                 \
        long long: oarlock_show_signed)(value)
#endif

/** Returns from the function if a call failed, with the error of the call. */
#define OARLOCK_TRY(call)                            \
    do {                                             \
        const oarlock_error oarlock_error_ = (call); \
        if (oarlock_error_ != 0) {                   \
            return oarlock_error_;                   \
        }                                            \
    } while (0)

/* ------------------------------------------------------------------------------------------------------------------
 * Calls of kernels */

/** The number of elements of a tensor: 1 for a scalar, 0 if a dimension is 0. */
static inline uint64_t oarlock_element_count(const oarlock_tensor *tensor) {
    uint64_t count = 1;
    uint64_t i;
    for (i = 0; i < tensor->dims_count; i++) {
        count *= OARLOCK_CAST(uint64_t, tensor->dims[i]);
    }
    return count;
}

/** Whether the tensor is contiguous and row-major. */
static inline int oarlock_is_contiguous(const oarlock_tensor *tensor) {
    int64_t expected = 1;
    uint64_t i;
    for (i = tensor->strides_count; i-- > 0;) {
        if (tensor->dims[i] == 0) {
            return 1;
        }
        if (tensor->dims[i] != 1 && tensor->strides[i] != expected) {
            return 0;
        }
        expected *= tensor->dims[i];
    }
    return 1;
}

/** Whether an operand is present: an optional one may have been omitted. */
static inline int oarlock_is_present(const oarlock_tensor *tensor) {
    return (tensor->bits & OARLOCK_TENSOR_FLAGS_ABSENT) == 0;
}

/** The address of the first element. The device must be `host_addressable`, or the operand in host memory. */
static inline void *oarlock_data(const oarlock_tensor *tensor) {
    const oarlock_memory address = tensor->block + tensor->offset;
    void *data;
    memcpy(&data, &address, sizeof data);
    return data;
}

/** The attribute with this name, or null. */
static inline const oarlock_attribute *oarlock_find_attribute(const oarlock_call *call, const char *name) {
    uint64_t i;
    for (i = 0; i < call->attributes_count; i++) {
        if (oarlock_equals(call->attributes[i]->name, name)) {
            return call->attributes[i];
        }
    }
    return OARLOCK_NULL;
}

/* ------------------------------------------------------------------------------------------------------------------
 * The entry */

/** The oldest minor version of a host that the plugin works with. Define it before the include to require a later one. */
#ifndef OARLOCK_PLUGIN_MINOR_OLDEST
#define OARLOCK_PLUGIN_MINOR_OLDEST 0u
#endif

#ifndef __has_feature
#define OARLOCK_HAS_FEATURE_(feature) 0
#else
#define OARLOCK_HAS_FEATURE_(feature) __has_feature(feature)
#endif

#if defined(__SANITIZE_ADDRESS__) || OARLOCK_HAS_FEATURE_(address_sanitizer)
#define OARLOCK_BUILT_WITH OARLOCK_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__) || OARLOCK_HAS_FEATURE_(thread_sanitizer)
#define OARLOCK_BUILT_WITH OARLOCK_SANITIZER_THREAD
#elif OARLOCK_HAS_FEATURE_(memory_sanitizer)
#define OARLOCK_BUILT_WITH OARLOCK_SANITIZER_MEMORY
#else
#define OARLOCK_BUILT_WITH OARLOCK_SANITIZER_NONE
#endif

/** Defines the entry point of the plugin, in exactly one source file. `describe` fills in the plugin's description; it is called
 *  only for a compatible host, and need not check versions or sizes. */
#define OARLOCK_PLUGIN(describe)                                                                \
    oarlock_error oarlock_plugin_query(const oarlock_host *host, oarlock_plugin *plugin) {      \
        return oarlock_answer_query(host, plugin, describe);                                    \
    }                                                                                           \
    struct oarlock_link oarlock_linked_host

/** Whether each side's newest minor version is at least the other's oldest. */
static inline int oarlock_minors_overlap(const oarlock_host *host, const oarlock_plugin *plugin) {
    return host->contract_minor >= plugin->contract_minor_oldest &&
        plugin->contract_minor >= host->contract_minor_oldest;
}

/** Whether the host has everything that version 1.0 of the contract requires. */
static inline int oarlock_host_is_whole(const oarlock_host *host) {
    return host->size >= OARLOCK_SIZE_THROUGH(oarlock_host, services) && host->services != OARLOCK_NULL &&
        host->services->size >= OARLOCK_SIZE_THROUGH(oarlock_host_table, experimental);
}

static inline oarlock_error oarlock_answer_query(const oarlock_host *host, oarlock_plugin *plugin,
    oarlock_error (*describe)(oarlock_plugin *plugin)) {
    oarlock_plugin answer;
    if (host == OARLOCK_NULL || plugin == OARLOCK_NULL || host->size < OARLOCK_SIZE_THROUGH(oarlock_host, contract_minor_oldest) ||
        plugin->size < OARLOCK_SIZE_THROUGH(oarlock_plugin, contract_minor_oldest)) {
        return 0;
    }
    /* These fields never move, so a host of any version can report the versions of both sides. */
    plugin->contract_major = OARLOCK_CONTRACT_MAJOR;
    plugin->contract_minor = OARLOCK_CONTRACT_MINOR;
    plugin->contract_minor_oldest = OARLOCK_PLUGIN_MINOR_OLDEST;
    if (host->contract_major != OARLOCK_CONTRACT_MAJOR || !oarlock_minors_overlap(host, plugin) ||
        !oarlock_host_is_whole(host) || plugin->size < OARLOCK_SIZE_THROUGH(oarlock_plugin, unload)) {
        return 0;
    }
    __atomic_store_n(&oarlock_linked_host.context, host->context, __ATOMIC_RELEASE);
    __atomic_store_n(&oarlock_linked_host.services, host->services, __ATOMIC_RELEASE);

    /* An older host has a shorter struct: `describe` fills a struct of our version, and the host gets as much as fits. */
    memset(&answer, 0, sizeof answer);
    answer.contract_major = OARLOCK_CONTRACT_MAJOR;
    answer.contract_minor = OARLOCK_CONTRACT_MINOR;
    answer.contract_minor_oldest = OARLOCK_PLUGIN_MINOR_OLDEST;
    answer.sanitizer = OARLOCK_BUILT_WITH;
    OARLOCK_TRY(describe(&answer));
    answer.size = plugin->size;
    memcpy(plugin, &answer, plugin->size < sizeof answer ? plugin->size : sizeof answer);
    return 0;
}

#ifdef __cplusplus
} /* extern "C" */

#include <exception>
#include <type_traits>

namespace oarlock OARLOCK_HIDDEN {

/** Text of a literal, also in a constant: `constexpr oarlock_str name = oarlock::str("Add");`. */
template <size_t Size>
constexpr oarlock_str str(const char (&literal)[Size]) {
    return {literal, Size - 1};
}

/** A struct of the contract with its header filled in and all other members 0. */
template <class Struct>
constexpr Struct make() {
    Struct made{};
    made.size = sizeof(Struct);
    return made;
}

/** A table of the contract with its header filled in and all slots empty. */
template <class Table>
constexpr Table make_table() {
    Table made = make<Table>();
    made.features = OARLOCK_FEATURES;
    return made;
}

template <class Number>
oarlock_shown show(Number value) {
    static_assert(std::is_arithmetic<Number>::value, "the comparisons compare numbers");
    if constexpr (std::is_floating_point<Number>::value) {
        return oarlock_show_float(value);
    } else if constexpr (std::is_unsigned<Number>::value) {
        return oarlock_show_unsigned(value);
    } else {
        return oarlock_show_signed(value);
    }
}

/** An error as an exception, for `guard` and `slot`: `OARLOCK_THROW(OARLOCK_CODE_NOT_FOUND, "expected %u", id)`. */
class Error : public std::exception {
public:
    __attribute__((format(printf, 5, 6))) Error(const char *file, int line, oarlock_code code, const char *format, ...)
        : file_(file), line_(line), code_(code) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text_, sizeof text_, format, arguments);
        va_end(arguments);
    }

    const char *what() const noexcept override {
        return text_;
    }

    /** The same as an error of the host, which the plugin hands on or releases. */
    oarlock_error report() const {
        return oarlock_fail(file_, line_, 0, 0, code_, "%s", text_);
    }

private:
    const char *file_;
    int line_;
    oarlock_code code_;
    char text_[OARLOCK_MESSAGE_SIZE];
};

#define OARLOCK_THROW(...) throw ::oarlock::Error(__FILE__, __LINE__, __VA_ARGS__)

inline oarlock_error caught(const char *what) {
    return oarlock_fail("", 0, OARLOCK_ERROR_FLAGS_CAUGHT_PANIC, 0, OARLOCK_CODE_FATAL, "caught an exception: %s", what);
}

/** Runs the body of a slot and turns an exception into an error, since exceptions must not propagate into the host. */
template <class Body>
oarlock_error guard(Body &&body) noexcept {
#ifdef __cpp_exceptions
    try {
        return body();
    } catch (const Error &error) {
        return error.report();
    } catch (const std::exception &exception) {
        return caught(exception.what());
    } catch (...) {
        return caught("not a std::exception");
    }
#else
    return body();
#endif
}

template <auto Function>
struct Slot;

template <class... Arguments, void (*Function)(Arguments...)>
struct Slot<Function> {
    static oarlock_error call(void *, Arguments... arguments) noexcept {
        return guard([&]() -> oarlock_error {
            Function(arguments...);
            return 0;
        });
    }
};

/** A slot that calls a function without the context; what the function throws becomes an error:
 *  `table.device_count = oarlock::slot<device_count>;` with `void device_count(uint32_t *count)`. */
template <auto Function>
constexpr auto slot = Slot<Function>::call;

} // namespace oarlock
#endif

#endif
