/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plugin written in C or C++ needs beside the contract: the entry with its version checks, errors that know
 * their line, and ways to read a call. Header only, for GCC and Clang, C11 and C++17.
 *
 *     static oarlock_error describe(oarlock_plugin *plugin) {
 *         plugin->name = oarlock_string("acme-npu");
 *         plugin->core = &acme_core;
 *         return 0;
 *     }
 *     OARLOCK_PLUGIN(describe);
 *
 * `device-sdk/templates/c` is a whole plugin to start from. */
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
#else
#define OARLOCK_CAST(type, value) ((type)(value))
#endif

#define OARLOCK_HIDDEN __attribute__((visibility("hidden")))

/* ------------------------------------------------------------------------------------------------------------------
 * Text, structs and tables */

/** Text in an initialiser: `.name = OARLOCK_STR("A")`. */
#define OARLOCK_STR(literal) {"" literal, sizeof(literal) - 1}

/** The first members of a struct in an initialiser: `{OARLOCK_HEADER(oarlock_operand), .name = ...}`.
 *  C++17 has no such initialisers; `oarlock::make<oarlock_operand>()` stands in for them. */
#define OARLOCK_HEADER(type) OARLOCK_CAST(uint32_t, sizeof(type)), 0, NULL

/** The first members of a table in an initialiser; in C++, `oarlock::make_table<oarlock_core_table>()`. */
#define OARLOCK_TABLE(type) OARLOCK_HEADER(type), OARLOCK_FEATURES

/** Every minor version up to the one of this header, as the `features` of a table. */
#define OARLOCK_FEATURES ((2ull << OARLOCK_CONTRACT_MINOR) - 1)

/** The bytes of a struct up to the end of one of its members. */
#define OARLOCK_SIZE_THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

#ifdef __cplusplus
extern "C" {
#endif

/** Text that ends with a zero, as text of the contract; it is not copied. */
static inline oarlock_str oarlock_string(const char *text) {
    oarlock_str string;
    string.data = text;
    string.size = text == NULL ? 0 : strlen(text);
    return string;
}

/** Whether text of the contract is this text. */
static inline int oarlock_equals(oarlock_str string, const char *text) {
    const size_t size = strlen(text);
    return string.size == size && (size == 0 || memcmp(string.data, text, size) == 0);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The host */

/** The host that asked last, shared by all sources of the plugin. `OARLOCK_PLUGIN` defines it. */
struct oarlock_link {
    const oarlock_host_table *services;
    void *context;
};
extern OARLOCK_HIDDEN struct oarlock_link oarlock_linked_host;

/** The services of the host; each takes `oarlock_services_context()` first. */
static inline const oarlock_host_table *oarlock_services(void) {
    return __atomic_load_n(&oarlock_linked_host.services, __ATOMIC_ACQUIRE);
}

static inline void *oarlock_services_context(void) {
    return __atomic_load_n(&oarlock_linked_host.context, __ATOMIC_ACQUIRE);
}

/** Reads what the user configured for this plugin; empty when nothing. */
static inline oarlock_error oarlock_option(const char *key, oarlock_str *value) {
    return oarlock_services()->option(oarlock_services_context(), oarlock_string(key), value);
}

/** Runs `task` over 0..count on the host's threads, in pieces of at least `grain`. */
static inline oarlock_error oarlock_parallel_for(uint64_t count, uint64_t grain, oarlock_task task, void *user) {
    return oarlock_services()->parallel_for(oarlock_services_context(), count, grain, task, user);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Errors and messages. A message is at most 511 bytes; a longer one ends in `...`. */

enum { OARLOCK_MESSAGE_SIZE = 512 };

/** The size of the character that `text` starts with, or 0 where the next `size` bytes do not start with UTF-8. */
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

/** Formats into `text`, cuts between characters, and puts `?` where the result is not UTF-8. */
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

static inline oarlock_error oarlock_make_error(const char *file, int line, oarlock_code code, oarlock_error_flags bits,
    oarlock_str message) {
    oarlock_error_info info;
    memset(&info, 0, sizeof info);
    info.size = OARLOCK_CAST(uint32_t, sizeof info);
    info.code = code;
    info.bits = bits;
    info.message = message;
    info.file = oarlock_string(file);
    info.line = OARLOCK_CAST(uint32_t, line);
    return oarlock_services()->error_create(oarlock_services_context(), &info);
}

__attribute__((format(printf, 4, 5))) static inline oarlock_error oarlock_fail(const char *file, int line,
    oarlock_code code, const char *format, ...) {
    char text[OARLOCK_MESSAGE_SIZE];
    va_list arguments;
    oarlock_str message;
    va_start(arguments, format);
    message = oarlock_format(text, format, arguments);
    va_end(arguments);
    return oarlock_make_error(file, line, code, 0, message);
}

/** Says something to whoever watches the host. A plugin prints nothing itself. */
__attribute__((format(printf, 2, 3))) static inline void oarlock_log(oarlock_log_level level, const char *format, ...) {
    char text[OARLOCK_MESSAGE_SIZE];
    va_list arguments;
    oarlock_str message;
    oarlock_error failure;
    va_start(arguments, format);
    message = oarlock_format(text, format, arguments);
    va_end(arguments);
    failure = oarlock_services()->log(oarlock_services_context(), level, message);
    if (failure != 0) {
        oarlock_services()->error_release(oarlock_services_context(), failure);
    }
}

/** A number as text, for the message of a comparison that failed. */
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
    oarlock_format(text, format, arguments)
        .size < OARLOCK_MESSAGE_SIZE - 1 ? (void)0 : (void)0;
    va_end(arguments);
    return oarlock_fail(file, line, code, "expected `%s`, received %s and %s: %s", expected, left.text, right.text,
        text);
}
