/* Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit. */
/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin contract of Oarlock, version 1.1: every type that crosses a plugin boundary and never changes again.
 * `oarlock/contract_draft.h` has the profiles that still may.
 * A plugin is a shared object that exports `oarlock_plugin_query`; `oarlock/plugin.h` helps to write it.
 * The reference page of the documentation explains every table, slot and rule. */
#ifndef OARLOCK_CONTRACT_H
#define OARLOCK_CONTRACT_H

#include <stdint.h>

#define OARLOCK_CONTRACT_MAJOR 1u
#define OARLOCK_CONTRACT_MINOR 1u

#ifdef __cplusplus
extern "C" {
static_assert(sizeof(void *) == 8, "Oarlock runs on 64-bit machines");
#else
_Static_assert(sizeof(void *) == 8, "Oarlock runs on 64-bit machines");
#endif

/** An error, stored by the host. 0 means success.
 *
 *  The host's `error_create` makes an error, `error_read` reads it and `error_release` frees it. All three belong to the same
 *  host, so the error outlives the plugin that reported it, and the host detects a number that it never made. */
typedef uint64_t oarlock_error;

/** A block of memory on a device. If the device is `host_addressable`, handle plus offset is the address of a byte. */
typedef uint64_t oarlock_memory;

/** An ordered queue of work on one device. 0 is the device's synchronous queue: calls finish before they return. */
typedef uint64_t oarlock_stream;

/** A point in a stream that other streams and the host can wait for. */
typedef uint64_t oarlock_event;

/** The kind of an error. */
typedef uint32_t oarlock_code;

/** An argument has a value that is not allowed. */
#define OARLOCK_CODE_INVALID_ARGUMENT 1u

/** The requested thing does not exist. */
#define OARLOCK_CODE_NOT_FOUND 2u

/** An index or a size is out of bounds. */
#define OARLOCK_CODE_OUT_OF_RANGE 3u

/** The thing to create already exists. */
#define OARLOCK_CODE_ALREADY_EXISTS 4u

/** Memory, handles or another limited resource is exhausted. */
#define OARLOCK_CODE_RESOURCE_EXHAUSTED 5u

/** The call is not allowed in the current state. */
#define OARLOCK_CODE_PRECONDITION_NOT_MET 6u

/** The caller lacks the permission. */
#define OARLOCK_CODE_PERMISSION_DENIED 7u

/** The work did not finish in time. */
#define OARLOCK_CODE_EXECUTION_TIMEOUT 8u

/** The plugin does not implement what was requested. */
#define OARLOCK_CODE_UNIMPLEMENTED 9u

/** The device or service is currently unreachable. */
#define OARLOCK_CODE_UNAVAILABLE 10u

/** The plugin cannot continue, for instance after a caught panic or exception. */
#define OARLOCK_CODE_FATAL 11u

/** A library or driver below the plugin failed; `native_code` is the number that it returned. */
#define OARLOCK_CODE_EXTERNAL 12u

/** Properties of an error that a caller can act on. */
typedef uint32_t oarlock_error_flags;

/** The same call may succeed later. */
#define OARLOCK_ERROR_FLAGS_RETRYABLE (1u << 0)

/** The device is gone; every handle on it is dead. */
#define OARLOCK_ERROR_FLAGS_DEVICE_LOST (1u << 1)

/** The error is a panic or an exception that the plugin's glue caught. */
#define OARLOCK_ERROR_FLAGS_CAUGHT_PANIC (1u << 2)

/** The severity of a log message. */
typedef uint32_t oarlock_log_level;
#define OARLOCK_LOG_LEVEL_ERROR 1u
#define OARLOCK_LOG_LEVEL_WARNING 2u
#define OARLOCK_LOG_LEVEL_INFO 3u
#define OARLOCK_LOG_LEVEL_DEBUG 4u

/** The type of a tensor's elements. `i4`, `u4` and `f4e2m1` pack two elements into a byte, `i2` and `u2` four; the first
 *  element is in the lowest bits. */
typedef uint32_t oarlock_dtype;
#define OARLOCK_DTYPE_BOOL 1u
#define OARLOCK_DTYPE_I4 2u
#define OARLOCK_DTYPE_U4 3u
#define OARLOCK_DTYPE_I8 4u
#define OARLOCK_DTYPE_U8 5u
#define OARLOCK_DTYPE_I16 6u
#define OARLOCK_DTYPE_U16 7u
#define OARLOCK_DTYPE_I32 8u
#define OARLOCK_DTYPE_U32 9u
#define OARLOCK_DTYPE_I64 10u
#define OARLOCK_DTYPE_U64 11u
#define OARLOCK_DTYPE_F8E4M3 12u
#define OARLOCK_DTYPE_F8E5M2 13u
#define OARLOCK_DTYPE_F16 14u
#define OARLOCK_DTYPE_BF16 15u
#define OARLOCK_DTYPE_F32 16u
#define OARLOCK_DTYPE_F64 17u
#define OARLOCK_DTYPE_C64 18u
#define OARLOCK_DTYPE_C128 19u

/** Elements are `str` values in host memory. */
#define OARLOCK_DTYPE_STRING 20u

/** 4 exponent bits, 3 mantissa bits, no infinities and no negative zero. */
#define OARLOCK_DTYPE_F8E4M3FNUZ 21u

/** 5 exponent bits, 2 mantissa bits, no infinities and no negative zero. */
#define OARLOCK_DTYPE_F8E5M2FNUZ 22u

/** 8 exponent bits and nothing else: powers of 2. */
#define OARLOCK_DTYPE_F8E8M0 23u

/** 2 exponent bits, 1 mantissa bit, no infinities and no NaN. */
#define OARLOCK_DTYPE_F4E2M1 24u
#define OARLOCK_DTYPE_I2 25u
#define OARLOCK_DTYPE_U2 26u

/** A set of dtypes: bit n stands for the dtype with the value n. */
typedef uint64_t oarlock_dtype_set;
#define OARLOCK_DTYPE_SET_BOOL (1ull << 1)
#define OARLOCK_DTYPE_SET_I4 (1ull << 2)
#define OARLOCK_DTYPE_SET_U4 (1ull << 3)
#define OARLOCK_DTYPE_SET_I8 (1ull << 4)
#define OARLOCK_DTYPE_SET_U8 (1ull << 5)
#define OARLOCK_DTYPE_SET_I16 (1ull << 6)
#define OARLOCK_DTYPE_SET_U16 (1ull << 7)
#define OARLOCK_DTYPE_SET_I32 (1ull << 8)
#define OARLOCK_DTYPE_SET_U32 (1ull << 9)
#define OARLOCK_DTYPE_SET_I64 (1ull << 10)
#define OARLOCK_DTYPE_SET_U64 (1ull << 11)
#define OARLOCK_DTYPE_SET_F8E4M3 (1ull << 12)
#define OARLOCK_DTYPE_SET_F8E5M2 (1ull << 13)
#define OARLOCK_DTYPE_SET_F16 (1ull << 14)
#define OARLOCK_DTYPE_SET_BF16 (1ull << 15)
#define OARLOCK_DTYPE_SET_F32 (1ull << 16)
#define OARLOCK_DTYPE_SET_F64 (1ull << 17)
#define OARLOCK_DTYPE_SET_C64 (1ull << 18)
#define OARLOCK_DTYPE_SET_C128 (1ull << 19)
#define OARLOCK_DTYPE_SET_STRING (1ull << 20)
#define OARLOCK_DTYPE_SET_F8E4M3FNUZ (1ull << 21)
#define OARLOCK_DTYPE_SET_F8E5M2FNUZ (1ull << 22)
#define OARLOCK_DTYPE_SET_F8E8M0 (1ull << 23)
#define OARLOCK_DTYPE_SET_F4E2M1 (1ull << 24)
#define OARLOCK_DTYPE_SET_I2 (1ull << 25)
#define OARLOCK_DTYPE_SET_U2 (1ull << 26)

/** Where a tensor is stored. */
typedef uint32_t oarlock_memory_kind;

/** On the device of the call. */
#define OARLOCK_MEMORY_KIND_DEVICE 0u

/** In host memory; the handle is the address. */
#define OARLOCK_MEMORY_KIND_HOST 1u

/** In page-locked host memory that the device allocated. */
#define OARLOCK_MEMORY_KIND_PINNED 2u

/** In memory that has the same address on host and device. */
#define OARLOCK_MEMORY_KIND_UNIFIED 3u

/** How a device plugin was verified. */
typedef uint32_t oarlock_support_level;

/** Nothing is claimed. */
#define OARLOCK_SUPPORT_LEVEL_UNSPECIFIED 0u

/** It passed its tests against an emulation of the vendor's documented interface. */
#define OARLOCK_SUPPORT_LEVEL_EMULATOR_VERIFIED 1u

/** It passed its tests with the real compiler or driver, without the chip. */
#define OARLOCK_SUPPORT_LEVEL_DRIVER_VERIFIED 2u

/** It passed its tests on the chip. */
#define OARLOCK_SUPPORT_LEVEL_HARDWARE_VERIFIED 3u

/** The sanitizer that a binary was built with. A plugin and its host must agree. */
typedef uint32_t oarlock_sanitizer;
#define OARLOCK_SANITIZER_NONE 0u
#define OARLOCK_SANITIZER_ADDRESS 1u
#define OARLOCK_SANITIZER_THREAD 2u
#define OARLOCK_SANITIZER_MEMORY 3u

/** The `flags` in the header of every struct. */
typedef uint32_t oarlock_header_flags;

/** A reader that does not know this struct, or not all of its fields, must refuse the call instead of ignoring them. */
#define OARLOCK_HEADER_FLAGS_MUST_UNDERSTAND (1u << 0)

/** What a plugin offers beyond its tables. */
typedef uint64_t oarlock_plugin_flags;

/** Once `unload` has returned, no code of the plugin runs and nothing refers to it, so the host may unmap it. */
#define OARLOCK_PLUGIN_FLAGS_UNLOADABLE (1ull << 0)

/** Each host in the process that queries the plugin gets a separate context. Without this flag, the plugin serves only
 *  the first host that queries it, and others refuse it. */
#define OARLOCK_PLUGIN_FLAGS_SEVERAL_HOSTS (1ull << 1)

/** Properties and capabilities of a device. */
typedef uint64_t oarlock_device_flags;

/** Device memory can be read and written by the host at the address handle + offset. */
#define OARLOCK_DEVICE_FLAGS_HOST_ADDRESSABLE (1ull << 0)

/** Device memory is ordinary host memory, so copies to the device gain nothing. */
#define OARLOCK_DEVICE_FLAGS_SHARES_HOST_MEMORY (1ull << 1)

/** Software simulates memory, streams and events; timings are meaningless. */
#define OARLOCK_DEVICE_FLAGS_SIMULATED (1ull << 2)

/** The meaning of an operand's dimensions, in order. Strides define where elements are stored, the layout what they mean. */
typedef uint32_t oarlock_layout;

/** The order that the op defines; for ops on images: batch, channels, then spatial dimensions. */
#define OARLOCK_LAYOUT_PLAIN 0u

/** Batch, spatial dimensions, then channels. */
#define OARLOCK_LAYOUT_CHANNELS_LAST 1u

/** Private to the plugin, which alone can read it. */
#define OARLOCK_LAYOUT_OPAQUE 2u

/** Properties of an operand of a call. */
typedef uint32_t oarlock_tensor_flags;

/** The contents do not change during the lifetime of the kernel's state, so `prepare` may pack them. */
#define OARLOCK_TENSOR_FLAGS_CONSTANT (1u << 0)

/** The operand is optional and was omitted; no other field is valid. */
#define OARLOCK_TENSOR_FLAGS_ABSENT (1u << 1)

/** The type of an attribute. */
typedef uint32_t oarlock_attribute_kind;
#define OARLOCK_ATTRIBUTE_KIND_INT 1u
#define OARLOCK_ATTRIBUTE_KIND_FLOAT 2u
#define OARLOCK_ATTRIBUTE_KIND_STRING 3u
#define OARLOCK_ATTRIBUTE_KIND_TENSOR 4u
#define OARLOCK_ATTRIBUTE_KIND_GRAPH 5u
#define OARLOCK_ATTRIBUTE_KIND_INTS 6u
#define OARLOCK_ATTRIBUTE_KIND_FLOATS 7u
#define OARLOCK_ATTRIBUTE_KIND_STRINGS 8u
#define OARLOCK_ATTRIBUTE_KIND_TENSORS 9u
#define OARLOCK_ATTRIBUTE_KIND_GRAPHS 10u

/** What a kernel accepts as an operand. */
typedef uint32_t oarlock_operand_flags;

/** The operand may be omitted. */
#define OARLOCK_OPERAND_FLAGS_OPTIONAL (1u << 0)

/** The operand stands for all further operands; only the last one may have this flag. */
#define OARLOCK_OPERAND_FLAGS_VARIADIC (1u << 1)

/** The operand need not be contiguous. */
#define OARLOCK_OPERAND_FLAGS_STRIDED (1u << 2)

/** A constant need not be aligned to the size of its elements; in a mapped file it often is not. */
#define OARLOCK_OPERAND_FLAGS_UNALIGNED (1u << 3)

/** Special values for a number of dimensions. */
typedef uint32_t oarlock_rank;

/** Any number of dimensions. */
#define OARLOCK_RANK_ANY 4294967295u

/** Properties of a kernel. */
typedef uint32_t oarlock_kernel_flags;

/** The same inputs always produce bit-identical outputs. */
#define OARLOCK_KERNEL_FLAGS_DETERMINISTIC (1u << 0)

/** The kernel may return before its work in the stream is done. */
#define OARLOCK_KERNEL_FLAGS_ASYNCHRONOUS (1u << 1)

/** The kernel sets the shape of at least one output with `output_allocate`. */
#define OARLOCK_KERNEL_FLAGS_ALLOCATES_OUTPUTS (1u << 2)

/** The kind of a table that a layer wraps. Drafts are not wrapped. 3 to 6 were profiles that became drafts; these numbers are
 *  not reused. */
typedef uint32_t oarlock_table_kind;
#define OARLOCK_TABLE_KIND_CORE 1u
#define OARLOCK_TABLE_KIND_ASYNC 2u
#define OARLOCK_TABLE_KIND_KERNEL 7u

/* Structs and tables, declared before any of them is described. */
typedef struct oarlock_str oarlock_str;
typedef struct oarlock_version oarlock_version;
typedef struct oarlock_error_info oarlock_error_info;
typedef struct oarlock_extension oarlock_extension;
typedef struct oarlock_host oarlock_host;
typedef struct oarlock_plugin oarlock_plugin;
typedef struct oarlock_draft_profile oarlock_draft_profile;
typedef struct oarlock_host_table oarlock_host_table;
typedef struct oarlock_device_info oarlock_device_info;
typedef struct oarlock_core_table oarlock_core_table;
typedef struct oarlock_async_table oarlock_async_table;
typedef struct oarlock_tensor oarlock_tensor;
typedef struct oarlock_attribute oarlock_attribute;
typedef struct oarlock_call oarlock_call;
typedef struct oarlock_operand oarlock_operand;
typedef struct oarlock_in_place oarlock_in_place;
typedef struct oarlock_kernel oarlock_kernel;
typedef struct oarlock_kernel_table oarlock_kernel_table;
typedef struct oarlock_graph_value oarlock_graph_value;
typedef struct oarlock_graph_node oarlock_graph_node;
typedef struct oarlock_graph oarlock_graph;
typedef struct oarlock_layer_table oarlock_layer_table;

/** Runs a part of a loop: the elements from `begin` up to but not including `end`, on the worker with the given number. */
typedef void (*oarlock_task)(void *user, uint64_t begin, uint64_t end, uint32_t worker);

/** Called on a thread of the plugin when a stream reaches the callback. `failure` is the stream's error, or 0; the receiver
 *  releases it. */
typedef void (*oarlock_stream_reached)(uint32_t device, oarlock_stream stream, void *user, oarlock_error failure);

/** UTF-8 text: a pointer and a length in bytes, without a terminating zero. Empty text may have a null pointer. */
struct oarlock_str {
    const char *data;
    uint64_t size;
};

/** A version of a device, a driver or a library. Components that it does not have are 0. */
struct oarlock_version {
    uint32_t major;
    uint32_t minor;
    uint32_t patch;
    uint32_t build;
};

/** The contents of an error. */
struct oarlock_error_info {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    oarlock_code code;
    oarlock_error_flags bits;
    /** The number that the library or driver below the plugin returned, or 0. */
    int64_t native_code;
    /** One sentence: what was expected, what was found and what to do. */
    oarlock_str message;
    /** The violated rule of this contract, such as `M-2`, or empty. */
    oarlock_str rule;
    /** The name of the plugin, or of the component of the host, that made the error. The host fills it in. */
    oarlock_str origin;
    /** The source file that made the error, or empty. */
    oarlock_str file;
    /** The line in that file, or 0. */
    uint32_t line;
    uint32_t reserved;
};

/** A link in the `next` chain of a struct. A reader skips an unknown link unless its header has the flag `must_understand`. */
struct oarlock_extension {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    uint32_t kind;
    uint32_t reserved;
};

/** The host, as it introduces itself in the query of a plugin. The fields up to `sanitizer` never move.
 *  This struct lives until the plugin has answered; `context` and `services` live until the plugin is unloaded. */
struct oarlock_host {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The host's major version of the contract. Different major versions are incompatible. */
    uint32_t contract_major;
    /** The newest minor version that the host knows. */
    uint32_t contract_minor;
    /** The oldest minor version of a plugin that the host still supports. */
    uint32_t contract_minor_oldest;
    oarlock_sanitizer sanitizer;
    /** The name and version of the host program, for messages. */
    oarlock_str name;
    /** The first argument of every function of `services`. */
    void *context;
    const oarlock_host_table *services;
};

/** The plugin's answer to the query. The host zeroes it and sets `size`, which the plugin leaves as it is; the plugin fills
 *  the fields that it knows. The fields up to `sanitizer` never move. */
struct oarlock_plugin {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The major version of the contract the plugin was built with. */
    uint32_t contract_major;
    /** The minor version the plugin was built with. */
    uint32_t contract_minor;
    /** The oldest minor version of a host that the plugin works with. */
    uint32_t contract_minor_oldest;
    oarlock_sanitizer sanitizer;
    oarlock_plugin_flags offers;
    /** A name of letters, digits, `-`, `_` and `.`, at most 64 bytes, such as `acme-npu`. */
    oarlock_str name;
    /** The plugin's own version, such as `1.4.2`. */
    oarlock_str version;
    /** The plugin's author or company. */
    oarlock_str vendor;
    /** The package that a user installs to update the plugin; empty means that it is called like the plugin. */
    oarlock_str package;
    /** The name that users type, such as `CustomCPU`. Empty when the plugin provides no device. */
    oarlock_str device_type;
    /** A variant of the device type, such as `V1`, or empty. */
    oarlock_str device_subtype;
    /** The environment variable that lists the ids of the visible devices, such as `ACME_VISIBLE_DEVICES`, or empty. The
     *  host hides the others. Do not name a variable that the driver itself evaluates. */
    oarlock_str visible_devices_variable;
    oarlock_support_level support_level;
    uint32_t reserved;
    /** The evidence for the support level: chip, driver, date. */
    oarlock_str support_note;
    /** The first argument of every function in this plugin's tables. Each kernel has its own context. */
    void *context;
    const oarlock_core_table *core;
    const oarlock_async_table *async;
    /** Null. The tables of four profiles were here before they became drafts. A host does not read a table that an old plugin
     *  left here; it only reports it as draft 0. */
    void *reserved_graph;
    void *reserved_collective;
    void *reserved_profile;
    void *reserved_interop;
    const oarlock_kernel_table *kernels;
    const oarlock_layer_table *layer;
    /** Shuts the plugin down: joins its threads and frees its resources. Required if the plugin offers `unloadable`.
     *  Optional. */
    oarlock_error (*unload)(void *context);
    /** The drafts of profiles that the plugin provides; of one profile it may provide several. */
    const oarlock_draft_profile *const *drafts;
    /** How many `drafts` there are. */
    uint64_t drafts_count;
};

/** One draft of a profile that is not locked yet. A host uses a draft only if it knows its number, and reports every draft
 *  that it does not use. */
struct oarlock_draft_profile {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The name of the profile, such as `graph`. */
    oarlock_str profile;
    /** The draft's number, such as `OARLOCK_GRAPH_DRAFT` in `oarlock/contract_draft.h`. */
    uint32_t number;
    uint32_t reserved;
    /** The profile's table. A host that knows a different number does not read it. */
    const void *table;
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_HOST_TABLE_FEATURES ((1ull << 0) | (1ull << 1))

/** The host's services. A plugin imports no symbols of the host; it calls these functions instead. */
struct oarlock_host_table {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The features that the author of the table knew, as bits. */
    uint64_t features;
    /** Makes an error from `info` and returns it. Never returns 0.
     *  Required. */
    oarlock_error (*error_create)(void *context, const oarlock_error_info *info);
    /** Reads an error. The text is valid until the error is released.
     *  Required. */
    oarlock_error (*error_read)(void *context, oarlock_error failure, oarlock_error_info *info);
    /** Frees an error. 0 is ignored.
     *  Required. */
    oarlock_error (*error_release)(void *context, oarlock_error failure);
    /** Writes a message to the host's log.
     *  Required. */
    oarlock_error (*log)(void *context, oarlock_log_level level, oarlock_str message);
    /** Reads the value that the user configured for this plugin under a key, or empty text. Valid until the plugin is unloaded.
     *  Required. */
    oarlock_error (*option)(void *context, oarlock_str key, oarlock_str *value);
    /** The number of workers that `parallel_for` may use.
     *  Required. */
    oarlock_error (*worker_count)(void *context, uint32_t *count);
    /** Runs `task` over 0..count on the host's threads, in pieces of at least `grain`, and returns when all are done.
     *  Plugins share the host's thread pool instead of creating their own, so that they do not compete for cores.
     *  Required. */
    oarlock_error (*parallel_for)(void *context, uint64_t count, uint64_t grain, oarlock_task task,
        void *user);
    /** Sets the dtype and shape of output `index` of the current call and, in `run`, allocates its memory; for outputs whose
     *  shape depends on data. From then on, the entry in the call's `outputs` describes it.
     *  Required. */
    oarlock_error (*output_allocate)(void *context, const oarlock_call *call, uint32_t index,
        oarlock_dtype dtype, const int64_t *dims, uint64_t dims_count);
    /** Finds an experimental function by its versioned name, such as `graph_capture_since_1_3`.
     *  Required. */
    oarlock_error (*experimental)(void *context, oarlock_str name, void **function);
    /** Describes in a few words how the kernel will run the call that it is being prepared for, such as `Winograd, AVX-512`.
     *  Users see it in reports. Called in `prepare`, with the call passed there.
     *  Optional; when null: the description is dropped.
     *  Since 1.1. */
    oarlock_error (*kernel_describe)(void *context, const oarlock_call *call, oarlock_str way);
};

/** A description of a device for people. */
struct oarlock_device_info {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The product name, such as `Acme NPU 910`. */
    oarlock_str name;
    oarlock_str vendor;
    /** The bus address, such as `0000:3b:00.0`, or empty. */
    oarlock_str bus_id;
    oarlock_device_flags bits;
    /** The number of cores or multiprocessors, or 0 if unknown. */
    uint32_t compute_units;
    /** The alignment that kernels require of memory, in bytes; 0 means 1. */
    uint32_t memory_alignment;
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_CORE_TABLE_FEATURES ((1ull << 0) | (1ull << 1))

/** Devices, their memory, and synchronous copies. The device is an argument of every call; there is no current device. */
struct oarlock_core_table {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The features that the author of the table knew, as bits. */
    uint64_t features;
    /** Initializes the back end. No other call comes earlier.
     *  Optional; when null: not called. */
    oarlock_error (*initialize)(void *context);
    /** Shuts the back end down. No other call comes later.
     *  Optional; when null: not called. */
    oarlock_error (*finalize)(void *context);
    /** Initializes one device. Called once for every visible device when the host starts the plugin.
     *  Optional; when null: not called. */
    oarlock_error (*device_init)(void *context, uint32_t device);
    /** Frees the resources of one device. Called before `finalize`.
     *  Optional; when null: not called. */
    oarlock_error (*device_deinit)(void *context, uint32_t device);
    /** Waits until all work on the device is done.
     *  Required. */
    oarlock_error (*device_synchronize)(void *context, uint32_t device);
    /** The number of devices.
     *  Required. */
    oarlock_error (*device_count)(void *context, uint32_t *count);
    /** The ids of the devices. They need not be 0, 1, 2 and so on.
     *  Required. */
    oarlock_error (*device_list)(void *context, uint32_t *ids, uint64_t ids_capacity, uint64_t *ids_count);
    /** Describes a device.
     *  Optional; when null: the device type as name, everything else unknown. */
    oarlock_error (*device_info)(void *context, uint32_t device, oarlock_device_info *info);
    /** The compute capability of the chip.
     *  Required. */
    oarlock_error (*compute_capability)(void *context, uint32_t device, oarlock_version *capability);
    /** The version of the vendor's runtime library that is installed.
     *  Required. */
    oarlock_error (*runtime_version)(void *context, oarlock_version *installed);
    /** The version of the vendor's driver that is installed.
     *  Required. */
    oarlock_error (*driver_version)(void *context, oarlock_version *installed);
    /** Allocates `size` bytes of device memory.
     *  Required. */
    oarlock_error (*memory_allocate)(void *context, uint32_t device, uint64_t size, oarlock_memory *block);
    /** Frees device memory. `size` is the size that was requested.
     *  Required. */
    oarlock_error (*memory_deallocate)(void *context, uint32_t device, oarlock_memory block, uint64_t size);
    /** Allocates page-locked host memory that the device can copy from and to directly.
     *  Optional; when null: ordinary host memory is used. */
    oarlock_error (*host_memory_allocate)(void *context, uint32_t device, uint64_t size, void **address);
    /** Frees page-locked host memory.
     *  Optional; when null: ordinary host memory is used. */
    oarlock_error (*host_memory_deallocate)(void *context, uint32_t device, void *address, uint64_t size);
    /** Allocates memory that has the same address on host and device.
     *  Optional; when null: unified memory is not offered. */
    oarlock_error (*unified_memory_allocate)(void *context, uint32_t device, uint64_t size, void **address);
    /** Frees unified memory.
     *  Optional; when null: unified memory is not offered. */
    oarlock_error (*unified_memory_deallocate)(void *context, uint32_t device, void *address, uint64_t size);
    /** Copies from the host to the device.
     *  Required. */
    oarlock_error (*memory_copy_h2d)(void *context, uint32_t device, oarlock_memory target,
        uint64_t target_offset, const void *source, uint64_t source_size);
    /** Copies from the device to the host.
     *  Required. */
    oarlock_error (*memory_copy_d2h)(void *context, uint32_t device, void *target, uint64_t target_size,
        oarlock_memory source, uint64_t source_offset);
    /** Copies within a device. The ranges do not overlap.
     *  Required. */
    oarlock_error (*memory_copy_d2d)(void *context, uint32_t device, oarlock_memory target,
        uint64_t target_offset, oarlock_memory source, uint64_t source_offset, uint64_t size);
    /** Copies between two devices of this plugin.
     *  Optional; when null: copied by way of the host. */
    oarlock_error (*memory_copy_p2p)(void *context, uint32_t target_device, oarlock_memory target,
        uint64_t target_offset, uint32_t source_device, oarlock_memory source, uint64_t source_offset,
        uint64_t size);
    /** Fills device memory with a byte value.
     *  Optional; when null: filled by a copy from the host. */
    oarlock_error (*memory_set)(void *context, uint32_t device, oarlock_memory target, uint64_t target_offset,
        uint8_t byte, uint64_t size);
    /** The device's memory and the part of it that is free, in bytes.
     *  Required. */
    oarlock_error (*memory_stats)(void *context, uint32_t device, uint64_t *total, uint64_t *free);
    /** The smallest allocation, and its granularity: a request of n bytes occupies n plus the extra padding, rounded up to a
     *  multiple of this size.
     *  Required. */
    oarlock_error (*min_chunk_size)(void *context, uint32_t device, uint64_t *size);
    /** Requests above this size bypass the host's pool and go straight to the device.
     *  Optional; when null: the largest allocation. */
    oarlock_error (*max_chunk_size)(void *context, uint32_t device, uint64_t *size);
    /** The largest allocation.
     *  Optional; when null: the memory free now. */
    oarlock_error (*max_alloc_size)(void *context, uint32_t device, uint64_t *size);
    /** Padding in bytes that the host's pool adds to every request.
     *  Optional; when null: 0. */
    oarlock_error (*extra_padding_size)(void *context, uint32_t device, uint64_t *size);
    /** The size of the first chunk that the host's pool allocates.
     *  Optional; when null: the largest allocation. */
    oarlock_error (*init_alloc_size)(void *context, uint32_t device, uint64_t *size);
    /** The size of every further chunk that the host's pool allocates.
     *  Optional; when null: the largest allocation. */
    oarlock_error (*realloc_size)(void *context, uint32_t device, uint64_t *size);
    /** Finds an experimental function by its versioned name.
     *  Optional; when null: there are no experimental functions. */
    oarlock_error (*experimental)(void *context, oarlock_str name, void **function);
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_ASYNC_TABLE_FEATURES ((1ull << 0) | (1ull << 1))

/** Streams and events. A device without asynchronous work may omit the whole table: the host then does all work synchronously.
 *  Host memory that is passed to an asynchronous call stays valid until the stream is past the call. */
struct oarlock_async_table {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The features that the author of the table knew, as bits. */
    uint64_t features;
    /** Creates a stream. A smaller number is a higher priority, on devices that support priorities.
     *  Required. */
    oarlock_error (*stream_create)(void *context, uint32_t device, int32_t priority, oarlock_stream *queue);
    /** Destroys a stream, once its work is done.
     *  Required. */
    oarlock_error (*stream_destroy)(void *context, uint32_t device, oarlock_stream queue);
    /** Whether all work in the stream is done: 1 or 0.
     *  Optional; when null: the stream is synchronized, then done. */
    oarlock_error (*stream_query)(void *context, uint32_t device, oarlock_stream queue, uint32_t *done);
    /** Waits until all work in the stream is done, and reports its errors.
     *  Required. */
    oarlock_error (*stream_synchronize)(void *context, uint32_t device, oarlock_stream queue);
    /** Adds a callback to the stream, called when all earlier work is done.
     *  Optional; when null: the stream is synchronized, then the function called. */
    oarlock_error (*stream_add_callback)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_stream_reached reached, void *user);
    /** Makes later work in the stream wait until the event has happened. An event that was never recorded counts as happened.
     *  Required. */
    oarlock_error (*stream_wait_event)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_event point);
    /** Creates an event.
     *  Required. */
    oarlock_error (*event_create)(void *context, uint32_t device, oarlock_event *point);
    /** Destroys an event. Work that already waits for it is not affected.
     *  Required. */
    oarlock_error (*event_destroy)(void *context, uint32_t device, oarlock_event point);
    /** Records the event at the end of the stream.
     *  Required. */
    oarlock_error (*event_record)(void *context, uint32_t device, oarlock_stream queue, oarlock_event point);
    /** Whether the event has happened: 1 or 0.
     *  Optional; when null: the event is synchronized, then done. */
    oarlock_error (*event_query)(void *context, uint32_t device, oarlock_event point, uint32_t *done);
    /** Waits for the event, and reports errors of the work before it.
     *  Required. */
    oarlock_error (*event_synchronize)(void *context, uint32_t device, oarlock_event point);
    /** The time between two events that have happened, in nanoseconds.
     *  Optional; when null: times are not known. */
    oarlock_error (*event_elapsed)(void *context, uint32_t device, oarlock_event start, oarlock_event end,
        uint64_t *nanoseconds);
    /** Copies from the host to the device, in the stream.
     *  Optional; when null: the stream is synchronized, then memory_copy_h2d. */
    oarlock_error (*memory_copy_h2d_async)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_memory target, uint64_t target_offset, const void *source, uint64_t size);
    /** Copies from the device to the host, in the stream.
     *  Optional; when null: the stream is synchronized, then memory_copy_d2h. */
    oarlock_error (*memory_copy_d2h_async)(void *context, uint32_t device, oarlock_stream queue, void *target,
        oarlock_memory source, uint64_t source_offset, uint64_t size);
    /** Copies within the device, in the stream.
     *  Optional; when null: the stream is synchronized, then memory_copy_d2d. */
    oarlock_error (*memory_copy_d2d_async)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_memory target, uint64_t target_offset, oarlock_memory source, uint64_t source_offset,
        uint64_t size);
    /** Copies between two devices of this plugin, in a stream of the source device.
     *  Optional; when null: the stream is synchronized, then memory_copy_p2p. */
    oarlock_error (*memory_copy_p2p_async)(void *context, uint32_t target_device, oarlock_memory target,
        uint64_t target_offset, uint32_t source_device, oarlock_stream queue, oarlock_memory source,
        uint64_t source_offset, uint64_t size);
    /** Fills device memory with a byte value, in the stream.
     *  Optional; when null: the stream is synchronized, then memory_set. */
    oarlock_error (*memory_set_async)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_memory target, uint64_t target_offset, uint8_t byte, uint64_t size);
    /** Allocates device memory that is usable from this point of the stream on.
     *  Optional; when null: memory_allocate. */
    oarlock_error (*memory_allocate_async)(void *context, uint32_t device, oarlock_stream queue,
        uint64_t size, oarlock_memory *block);
    /** Frees device memory once the stream is past this point.
     *  Optional; when null: the stream is synchronized, then memory_deallocate. */
    oarlock_error (*memory_deallocate_async)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_memory block, uint64_t size);
};

/** An operand of a call. */
struct oarlock_tensor {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    oarlock_memory block;
    /** The offset of the first element from the start of the block, in bytes. */
    uint64_t offset;
    /** The bytes from the start of the first element to the end of the last, including gaps. */
    uint64_t size_in_bytes;
    oarlock_dtype dtype;
    oarlock_tensor_flags bits;
    oarlock_memory_kind place;
    oarlock_layout layout;
    /** The sizes of the dimensions; in `infer`, -1 is a size that is not known yet. */
    const int64_t *dims;
    /** How many `dims` there are. */
    uint64_t dims_count;
    /** The distance in elements from one index to the next, for each dimension. An empty list means contiguous and row-major. */
    const int64_t *strides;
    /** How many `strides` there are. */
    uint64_t strides_count;
};

/** A named constant of a node. A single value is a list with one item. Booleans, dtypes, layouts and memory kinds are ints. */
struct oarlock_attribute {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    oarlock_str name;
    oarlock_attribute_kind kind;
    uint32_t reserved;
    const int64_t *ints;
    /** How many `ints` there are. */
    uint64_t ints_count;
    const double *floats;
    /** How many `floats` there are. */
    uint64_t floats_count;
    const oarlock_str *strings;
    /** How many `strings` there are. */
    uint64_t strings_count;
    const oarlock_tensor *const *tensors;
    /** How many `tensors` there are. */
    uint64_t tensors_count;
    const oarlock_graph *const *graphs;
    /** How many `graphs` there are. */
    uint64_t graphs_count;
};

/** One call of a kernel: everything that the kernel may read. */
struct oarlock_call {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    uint32_t device;
    uint32_t reserved;
    oarlock_stream queue;
    const oarlock_tensor *const *inputs;
    /** How many `inputs` there are. */
    uint64_t inputs_count;
    const oarlock_tensor *const *outputs;
    /** How many `outputs` there are. */
    uint64_t outputs_count;
    const oarlock_attribute *const *attributes;
    /** How many `attributes` there are. */
    uint64_t attributes_count;
    /** Scratch memory on the device, of the size that the kernel's `workspace` function returned. */
    oarlock_memory workspace;
    uint64_t workspace_offset;
    uint64_t workspace_size;
    /** The state of the random generator. A kernel that draws n numbers uses the n counter values from `random_offset` on. */
    uint64_t random_seed;
    uint64_t random_offset;
    /** The host's record of the call, for `output_allocate` and `kernel_describe`. */
    void *host_call;
};

/** A kernel's requirements on one operand. */
struct oarlock_operand {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The operand's name in the schema of the op, or empty. */
    oarlock_str name;
    oarlock_dtype_set dtypes;
    /** Operands with the same nonzero group must have the same dtype. */
    uint32_t dtype_group;
    /** The smallest number of dimensions. */
    uint32_t rank_min;
    /** The largest number of dimensions; `OARLOCK_RANK_ANY` for no limit. */
    uint32_t rank_max;
    oarlock_operand_flags bits;
    oarlock_memory_kind place;
    /** The only layout that the kernel accepts. */
    oarlock_layout layout;
};

/** An output that may use the memory of an input. */
struct oarlock_in_place {
    uint32_t output;
    uint32_t input;
};

/** A kernel: an implementation of one op for one type of device. */
struct oarlock_kernel {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The name of the op in its schema, such as `Add`. */
    oarlock_str op;
    /** The op's domain; empty is the domain of ONNX. */
    oarlock_str domain;
    /** The device type that the kernel runs on; empty means the plugin's own. */
    oarlock_str device_type;
    /** The first version of the op (its since-version) that the kernel implements. */
    uint32_t version_min;
    /** The last version of the op that the kernel implements; 0 means all later ones. */
    uint32_t version_max;
    /** If several kernels match, the one with the highest score runs. An ordinary kernel has a score of 100. */
    int32_t score;
    oarlock_kernel_flags bits;
    const oarlock_operand *const *inputs;
    /** How many `inputs` there are. */
    uint64_t inputs_count;
    const oarlock_operand *const *outputs;
    /** How many `outputs` there are. */
    uint64_t outputs_count;
    const oarlock_in_place *in_place;
    /** How many `in_place` there are. */
    uint64_t in_place_count;
    /** The first argument of every function of this kernel. */
    void *context;
    /** Checks whether the kernel accepts this call: returns success, or `unimplemented` with the reason as the message. It may
     *  look at shapes and attributes, but must not read elements, not even those of constants.
     *  Optional; when null: every call that meets the constraints is accepted. */
    oarlock_error (*supports)(void *context, const oarlock_call *call);
    /** Sets the dtypes and shapes of the outputs with `output_allocate`. For ops that the host has no schema for.
     *  Optional; when null: the host infers them from its schema of the op. */
    oarlock_error (*infer)(void *context, const oarlock_call *call);
    /** The size of the scratch memory that the call needs, in bytes.
     *  Optional; when null: 0. */
    oarlock_error (*workspace)(void *context, const oarlock_call *call, uint64_t *size);
    /** Creates the state for a call site: packs constants, chooses an algorithm.
     *  Optional; when null: the state is null. */
    oarlock_error (*prepare)(void *context, const oarlock_call *call, void **state);
    /** Computes the outputs.
     *  Required. */
    oarlock_error (*run)(void *context, void *state, const oarlock_call *call);
    /** Frees a state that `prepare` created.
     *  Optional; when null: the state needs no freeing. */
    oarlock_error (*release)(void *context, void *state);
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_KERNEL_TABLE_FEATURES ((1ull << 0) | (1ull << 1))

/** The kernels a plugin provides. */
struct oarlock_kernel_table {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The features that the author of the table knew, as bits. */
    uint64_t features;
    const oarlock_kernel *const *kernels;
    /** How many `kernels` there are. */
    uint64_t kernels_count;
};

/** A value that flows through a graph. */
struct oarlock_graph_value {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    oarlock_str name;
    oarlock_dtype dtype;
    /** 1 if the number of dimensions is known. */
    uint32_t rank_known;
    /** The sizes of the dimensions; -1 is an unknown size. */
    const int64_t *dims;
    /** How many `dims` there are. */
    uint64_t dims_count;
    /** The tensor if the value is a constant, or null. */
    const oarlock_tensor *constant;
};

/** A node of a graph. `inputs` and `outputs` are indices into the graph's values; 2^32-1 is an omitted operand. */
struct oarlock_graph_node {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    oarlock_str name;
    oarlock_str op;
    oarlock_str domain;
    uint32_t version;
    uint32_t reserved;
    const uint32_t *inputs;
    /** How many `inputs` there are. */
    uint64_t inputs_count;
    const uint32_t *outputs;
    /** How many `outputs` there are. */
    uint64_t outputs_count;
    const oarlock_attribute *const *attributes;
    /** How many `attributes` there are. */
    uint64_t attributes_count;
};

/** A graph, with its nodes in topological order. */
struct oarlock_graph {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    oarlock_str name;
    const oarlock_graph_value *const *values;
    /** How many `values` there are. */
    uint64_t values_count;
    const oarlock_graph_node *const *nodes;
    /** How many `nodes` there are. */
    uint64_t nodes_count;
    const uint32_t *inputs;
    /** How many `inputs` there are. */
    uint64_t inputs_count;
    const uint32_t *outputs;
    /** How many `outputs` there are. */
    uint64_t outputs_count;
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_LAYER_TABLE_FEATURES ((1ull << 0) | (1ull << 1))

/** A layer stands between the host and other plugins: it wraps their tables in its own. */
struct oarlock_layer_table {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The features that the author of the table knew, as bits. */
    uint64_t features;
    /** Wraps the next table: returns a context and a table of the same kind. A layer that has no interest in this kind returns
     *  the next context and table unchanged. A slot that is empty in the next table stays empty.
     *  Required. */
    oarlock_error (*wrap)(void *context, oarlock_table_kind kind, oarlock_str plugin, void *next_context,
        void *next_table, void **wrapped_context, void **wrapped_table);
    /** Frees a wrapper that the host no longer uses. Not called for a context and a table that `wrap` returned unchanged.
     *  Required. */
    oarlock_error (*unwrap)(void *context, oarlock_table_kind kind, void *wrapped_context,
        void *wrapped_table);
};

#ifdef _WIN32
#define OARLOCK_EXPORT __declspec(dllexport)
#else
#define OARLOCK_EXPORT __attribute__((visibility("default")))
#endif

/** The one function a plugin exports. The host says who it is, the plugin fills in who it is.
 *  Write it with `OARLOCK_PLUGIN` of `oarlock/plugin.h`, which checks the versions first. */
OARLOCK_EXPORT oarlock_error oarlock_plugin_query(const oarlock_host *host, oarlock_plugin *plugin);

#ifdef __cplusplus
}
#endif

#endif
