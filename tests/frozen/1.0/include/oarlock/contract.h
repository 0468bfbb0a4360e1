/* Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit. */
/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin contract of Oarlock, version 1.0: every type that crosses a plugin boundary.
 * A plugin is a shared object that exports `oarlock_plugin_query`; `oarlock/plugin.h` helps to write it.
 * The reference page of the documentation explains every table, slot and rule. */
#ifndef OARLOCK_CONTRACT_H
#define OARLOCK_CONTRACT_H

#include <stdint.h>

#define OARLOCK_CONTRACT_MAJOR 1u
#define OARLOCK_CONTRACT_MINOR 0u

#ifdef __cplusplus
extern "C" {
static_assert(sizeof(void *) == 8, "Oarlock runs on 64-bit machines");
#else
_Static_assert(sizeof(void *) == 8, "Oarlock runs on 64-bit machines");
#endif

/** An error that happened, kept by the host. 0 means that nothing went wrong.
 *
 *  An error is made with `error_create` of the host, read with `error_read` and freed with `error_release`, always by
 *  the host that made it, so it outlives the plugin it came from and a number the host never made is noticed. */
typedef uint64_t oarlock_error;

/** A block of memory on a device. Where a device is `host_addressable`, handle plus offset is the address of the byte. */
typedef uint64_t oarlock_memory;

/** An ordered queue of work on one device. 0 is the device's own queue, in which calls finish before they return. */
typedef uint64_t oarlock_stream;

/** A point in a stream that others can wait for. */
typedef uint64_t oarlock_event;

/** A compiled graph. */
typedef uint64_t oarlock_executable;

/** One participant's place in a group of devices that exchange data. */
typedef uint64_t oarlock_communicator;

/** What kind of thing went wrong. */
typedef uint32_t oarlock_code;

/** An argument has a value it must not have. */
#define OARLOCK_CODE_INVALID_ARGUMENT 1u

/** The thing that was asked for does not exist. */
#define OARLOCK_CODE_NOT_FOUND 2u

/** An index or a size lies outside what is there. */
#define OARLOCK_CODE_OUT_OF_RANGE 3u

/** The thing that was to be made exists already. */
#define OARLOCK_CODE_ALREADY_EXISTS 4u

/** Memory, handles or another limited resource is used up. */
#define OARLOCK_CODE_RESOURCE_EXHAUSTED 5u

/** The call came at a time at which it is not allowed. */
#define OARLOCK_CODE_PRECONDITION_NOT_MET 6u

/** The caller may not do this. */
#define OARLOCK_CODE_PERMISSION_DENIED 7u

/** The work did not finish in time. */
#define OARLOCK_CODE_EXECUTION_TIMEOUT 8u

/** This plugin does not do what was asked, and says so. */
#define OARLOCK_CODE_UNIMPLEMENTED 9u

/** The device or service cannot be reached now. */
#define OARLOCK_CODE_UNAVAILABLE 10u

/** The plugin is in a state from which it cannot go on; a caught panic or exception is one. */
#define OARLOCK_CODE_FATAL 11u

/** A library or driver below the plugin failed; `native_code` is its number. */
#define OARLOCK_CODE_EXTERNAL 12u

/** What a caller may conclude from an error. */
typedef uint32_t oarlock_error_flags;

/** The same call may succeed later. */
#define OARLOCK_ERROR_FLAGS_RETRYABLE (1u << 0)

/** The device is gone; every handle on it is dead. */
#define OARLOCK_ERROR_FLAGS_DEVICE_LOST (1u << 1)

/** The error was made from a panic or an exception that the plugin's glue caught. */
#define OARLOCK_ERROR_FLAGS_CAUGHT_PANIC (1u << 2)

/** How loud a log message is. */
typedef uint32_t oarlock_log_level;
#define OARLOCK_LOG_LEVEL_ERROR 1u
#define OARLOCK_LOG_LEVEL_WARNING 2u
#define OARLOCK_LOG_LEVEL_INFO 3u
#define OARLOCK_LOG_LEVEL_DEBUG 4u

/** The type of one element of a tensor. `i4`, `u4` and `f4e2m1` hold two elements a byte, `i2` and `u2` four, the first in
 *  the lowest bits. */
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

/** 4 bits of exponent, 3 of mantissa, neither infinities nor a negative 0. */
#define OARLOCK_DTYPE_F8E4M3FNUZ 21u

/** 5 bits of exponent, 2 of mantissa, neither infinities nor a negative 0. */
#define OARLOCK_DTYPE_F8E5M2FNUZ 22u

/** 8 bits of exponent and nothing else: powers of 2. */
#define OARLOCK_DTYPE_F8E8M0 23u

/** 2 bits of exponent, 1 of mantissa, neither infinities nor NaN. */
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

/** Where the bytes of a tensor lie. */
typedef uint32_t oarlock_memory_kind;

/** On the device of the call. */
#define OARLOCK_MEMORY_KIND_DEVICE 0u

/** In the host's memory; the handle is the address. */
#define OARLOCK_MEMORY_KIND_HOST 1u

/** In page-locked host memory of the device. */
#define OARLOCK_MEMORY_KIND_PINNED 2u

/** In memory that host and device address alike. */
#define OARLOCK_MEMORY_KIND_UNIFIED 3u

/** What proves that a device plugin works. */
typedef uint32_t oarlock_support_level;

/** Nothing is claimed. */
#define OARLOCK_SUPPORT_LEVEL_UNSPECIFIED 0u

/** It passed against an emulation of the vendor's documented interface. */
#define OARLOCK_SUPPORT_LEVEL_EMULATOR_VERIFIED 1u

/** It passed with the real compiler or driver, without the chip. */
#define OARLOCK_SUPPORT_LEVEL_DRIVER_VERIFIED 2u

/** It passed on the chip. */
#define OARLOCK_SUPPORT_LEVEL_HARDWARE_VERIFIED 3u

/** The sanitizer a binary was built with. A plugin and its host must agree. */
typedef uint32_t oarlock_sanitizer;
#define OARLOCK_SANITIZER_NONE 0u
#define OARLOCK_SANITIZER_ADDRESS 1u
#define OARLOCK_SANITIZER_THREAD 2u
#define OARLOCK_SANITIZER_MEMORY 3u

/** The `flags` every struct starts with. */
typedef uint32_t oarlock_header_flags;

/** Whoever does not know this struct, or the end of it, must refuse the call rather than ignore what it cannot read. */
#define OARLOCK_HEADER_FLAGS_MUST_UNDERSTAND (1u << 0)

/** What a plugin offers beyond its tables. */
typedef uint64_t oarlock_plugin_flags;

/** After `unload` returned nothing of the plugin runs or is referred to, so the host may unmap it. */
#define OARLOCK_PLUGIN_FLAGS_UNLOADABLE (1ull << 0)

/** Each host in a process that asks gets an answer with a context of its own. Without it, the plugin serves the first
 *  host that asks, and others refuse it. */
#define OARLOCK_PLUGIN_FLAGS_SEVERAL_HOSTS (1ull << 1)

/** What a device has and can do, as bits. */
typedef uint64_t oarlock_device_flags;

/** Device memory can be read and written by the host at the address handle + offset. */
#define OARLOCK_DEVICE_FLAGS_HOST_ADDRESSABLE (1ull << 0)

/** The memory is the host's own, so copies gain nothing. */
#define OARLOCK_DEVICE_FLAGS_SHARES_HOST_MEMORY (1ull << 1)

/** Memory, streams and events are made up by software; timings mean nothing. */
#define OARLOCK_DEVICE_FLAGS_SIMULATED (1ull << 2)

/** The order in which the dimensions of an operand mean something. Strides say where elements lie, this says what they are. */
typedef uint32_t oarlock_layout;

/** As the op says: for ops on images, batch, channels, then space. */
#define OARLOCK_LAYOUT_PLAIN 0u

/** Batch, space, then channels. */
#define OARLOCK_LAYOUT_CHANNELS_LAST 1u

/** The plugin's own, which only it can read. */
#define OARLOCK_LAYOUT_OPAQUE 2u

/** What is special about one operand of one call. */
typedef uint32_t oarlock_tensor_flags;

/** The bytes never change while the kernel's state lives, so `prepare` may pack them. */
#define OARLOCK_TENSOR_FLAGS_CONSTANT (1u << 0)

/** The operand is optional and was left out; nothing else of it is valid. */
#define OARLOCK_TENSOR_FLAGS_ABSENT (1u << 1)

/** What an attribute holds. */
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

/** What an operand may be like, as bits. */
typedef uint32_t oarlock_operand_flags;

/** The operand may be left out. */
#define OARLOCK_OPERAND_FLAGS_OPTIONAL (1u << 0)

/** The operand stands for all further ones; only the last may. */
#define OARLOCK_OPERAND_FLAGS_VARIADIC (1u << 1)

/** Strides other than contiguous are welcome. */
#define OARLOCK_OPERAND_FLAGS_STRIDED (1u << 2)

/** A constant may lie at any address, not only at a multiple of the size of its elements, as in a mapped file. */
#define OARLOCK_OPERAND_FLAGS_UNALIGNED (1u << 3)

/** Numbers of dimensions that are none. */
typedef uint32_t oarlock_rank;

/** As many as there are. */
#define OARLOCK_RANK_ANY 4294967295u

/** What a kernel is like, as bits. */
typedef uint32_t oarlock_kernel_flags;

/** The same inputs give the same bits each time. */
#define OARLOCK_KERNEL_FLAGS_DETERMINISTIC (1u << 0)

/** The kernel returns before its work in the stream is done. */
#define OARLOCK_KERNEL_FLAGS_ASYNCHRONOUS (1u << 1)

/** The kernel sets the shape of some output with `output_allocate`. */
#define OARLOCK_KERNEL_FLAGS_ALLOCATES_OUTPUTS (1u << 2)

/** How values of several devices become one. */
typedef uint32_t oarlock_reduction;
#define OARLOCK_REDUCTION_SUM 1u
#define OARLOCK_REDUCTION_PRODUCT 2u
#define OARLOCK_REDUCTION_MINIMUM 3u
#define OARLOCK_REDUCTION_MAXIMUM 4u
#define OARLOCK_REDUCTION_AVERAGE 5u

/** What kind of work a record is about. */
typedef uint32_t oarlock_activity_kind;
#define OARLOCK_ACTIVITY_KIND_KERNEL 1u
#define OARLOCK_ACTIVITY_KIND_COPY 2u
#define OARLOCK_ACTIVITY_KIND_FILL 3u
#define OARLOCK_ACTIVITY_KIND_SYNCHRONIZE 4u
#define OARLOCK_ACTIVITY_KIND_MARKER 5u

/** What a native handle is. */
typedef uint32_t oarlock_native_kind;

/** An address, as a CUDA or HIP device pointer. */
#define OARLOCK_NATIVE_KIND_ADDRESS 1u

/** A `cl_mem`. */
#define OARLOCK_NATIVE_KIND_OPENCL_MEMORY 2u

/** A file descriptor of a DMA buffer. */
#define OARLOCK_NATIVE_KIND_DMA_BUFFER 3u

/** Which table a layer is asked to wrap. */
typedef uint32_t oarlock_table_kind;
#define OARLOCK_TABLE_KIND_CORE 1u
#define OARLOCK_TABLE_KIND_ASYNC 2u
#define OARLOCK_TABLE_KIND_GRAPH 3u
#define OARLOCK_TABLE_KIND_COLLECTIVE 4u
#define OARLOCK_TABLE_KIND_PROFILE 5u
#define OARLOCK_TABLE_KIND_INTEROP 6u
#define OARLOCK_TABLE_KIND_KERNEL 7u

/* Structs and tables, declared before any of them is described. */
typedef struct oarlock_str oarlock_str;
typedef struct oarlock_version oarlock_version;
typedef struct oarlock_error_info oarlock_error_info;
typedef struct oarlock_extension oarlock_extension;
typedef struct oarlock_host oarlock_host;
typedef struct oarlock_plugin oarlock_plugin;
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
typedef struct oarlock_graph_table oarlock_graph_table;
typedef struct oarlock_collective_table oarlock_collective_table;
typedef struct oarlock_activity oarlock_activity;
typedef struct oarlock_profile_table oarlock_profile_table;
typedef struct oarlock_interop_table oarlock_interop_table;
typedef struct oarlock_layer_table oarlock_layer_table;

/** Runs a part of a loop: the elements from `begin` to before `end`, on the worker with the given number. */
typedef void (*oarlock_task)(void *user, uint64_t begin, uint64_t end, uint32_t worker);

/** Is called on a thread of the plugin when a stream gets there. `failure` is the stream's error, if any; the receiver releases it. */
typedef void (*oarlock_stream_reached)(uint32_t device, oarlock_stream stream, void *user, oarlock_error failure);

/** Takes bytes from a plugin. Returns an error to stop it. */
typedef oarlock_error (*oarlock_byte_sink)(void *user, const uint8_t *data, uint64_t size);

/** Takes one record. It is valid during the call. */
typedef void (*oarlock_activity_sink)(void *user, const oarlock_activity *record);

/** UTF-8 text: a pointer and a length in bytes, with no terminating zero. Empty text may have a null pointer. */
struct oarlock_str {
    const char *data;
    uint64_t size;
};

/** A version of a device, a driver or a library. Numbers that do not exist are 0. */
struct oarlock_version {
    uint32_t major;
    uint32_t minor;
    uint32_t patch;
    uint32_t build;
};

/** Everything an error says. */
struct oarlock_error_info {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    oarlock_code code;
    oarlock_error_flags bits;
    /** The number that the library or driver below the plugin returned, or 0. */
    int64_t native_code;
    /** One sentence: what was expected, what was found, what to do. */
    oarlock_str message;
    /** The rule of this contract that was broken, such as `M-2`, or empty. */
    oarlock_str rule;
    /** The name of the plugin or of the part of the host that made the error. Filled in by the host. */
    oarlock_str origin;
    /** The source file that made the error, or empty. */
    oarlock_str file;
    /** The line in that file, or 0. */
    uint32_t line;
    uint32_t reserved;
};

/** A link in the `next` chain of a struct. An unknown link is passed over, unless its header has the flag `must_understand`. */
struct oarlock_extension {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    uint32_t kind;
    uint32_t reserved;
};

/** What the host says of itself when it asks a plugin who it is. The fields up to `sanitizer` never move.
 *  This struct lives until the plugin has answered; `context` and `services` live until it is unloaded. */
struct oarlock_host {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The major version of the contract the host speaks. Different majors do not understand each other. */
    uint32_t contract_major;
    /** The newest minor version the host knows. */
    uint32_t contract_minor;
    /** The oldest minor version of a plugin the host still serves. */
    uint32_t contract_minor_oldest;
    oarlock_sanitizer sanitizer;
    /** Name and version of the host program, for messages. */
    oarlock_str name;
    /** Handed back as the first argument of every function of `services`. */
    void *context;
    const oarlock_host_table *services;
};

/** What a plugin says of itself. The host zeroes it and sets `size`, which stays as it is; the plugin fills what it knows.
 *  The fields up to `sanitizer` never move. */
struct oarlock_plugin {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The major version of the contract the plugin was built with. */
    uint32_t contract_major;
    /** The minor version the plugin was built with. */
    uint32_t contract_minor;
    /** The oldest minor version of a host that the plugin can live with. */
    uint32_t contract_minor_oldest;
    oarlock_sanitizer sanitizer;
    oarlock_plugin_flags offers;
    /** A name of letters, digits, `-`, `_` and `.`, at most 64 bytes, such as `acme-npu`. */
    oarlock_str name;
    /** The plugin's own version, such as `1.4.2`. */
    oarlock_str version;
    /** Who made it. */
    oarlock_str vendor;
    /** The package that a user installs to update it; empty means the name. */
    oarlock_str package;
    /** The name that users type, such as `CustomCPU`. Empty when the plugin brings no device. */
    oarlock_str device_type;
    /** A variant of the device type, such as `V1`, or empty. */
    oarlock_str device_subtype;
    /** The environment variable that lists the ids of the devices to show, such as `ACME_VISIBLE_DEVICES`, or empty. The
     *  host hides the others; name none that the driver itself already obeys. */
    oarlock_str visible_devices_variable;
    oarlock_support_level support_level;
    uint32_t reserved;
    /** What stands behind the support level: chip, driver, date. */
    oarlock_str support_note;
    /** Handed back as the first argument of every function of every table of this plugin; a kernel has its own. */
    void *context;
    const oarlock_core_table *core;
    const oarlock_async_table *async;
    const oarlock_graph_table *graph;
    const oarlock_collective_table *collective;
    const oarlock_profile_table *profile;
    const oarlock_interop_table *interop;
    const oarlock_kernel_table *kernels;
    const oarlock_layer_table *layer;
    /** Ends the plugin: joins its threads and frees what it holds. Required of a plugin that offers `unloadable`.
     *  Optional. */
    oarlock_error (*unload)(void *context);
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_HOST_TABLE_FEATURES ((1ull << 0))

/** Services of the host. A plugin imports no symbol; what it needs from the host it finds here. */
struct oarlock_host_table {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** What the author of the table understood, as bits. */
    uint64_t features;
    /** Makes an error from what `info` says and returns it. Never returns 0.
     *  Required. */
    oarlock_error (*error_create)(void *context, const oarlock_error_info *info);
    /** Reads an error. The text is valid until the error is released.
     *  Required. */
    oarlock_error (*error_read)(void *context, oarlock_error failure, oarlock_error_info *info);
    /** Frees an error. 0 is ignored.
     *  Required. */
    oarlock_error (*error_release)(void *context, oarlock_error failure);
    /** Says something to whoever watches the host.
     *  Required. */
    oarlock_error (*log)(void *context, oarlock_log_level level, oarlock_str message);
    /** Reads what the user configured for this plugin under a key; empty when nothing. Valid until the plugin is unloaded.
     *  Required. */
    oarlock_error (*option)(void *context, oarlock_str key, oarlock_str *value);
    /** How many workers `parallel_for` may use.
     *  Required. */
    oarlock_error (*worker_count)(void *context, uint32_t *count);
    /** Runs `task` over 0..count on the host's threads in pieces of at least `grain` and returns when all are done.
     *  A plugin has no pool of its own, so that several plugins do not fight over the processor.
     *  Required. */
    oarlock_error (*parallel_for)(void *context, uint64_t count, uint64_t grain, oarlock_task task,
        void *user);
    /** Gives output `index` of a running call its dtype and shape and, in `run`, its memory; for outputs whose shape
     *  depends on data. The call's own output describes it from then on.
     *  Required. */
    oarlock_error (*output_allocate)(void *context, const oarlock_call *call, uint32_t index,
        oarlock_dtype dtype, const int64_t *dims, uint64_t dims_count);
    /** Finds an experimental function by its versioned name, such as `graph_capture_since_1_3`.
     *  Required. */
    oarlock_error (*experimental)(void *context, oarlock_str name, void **function);
};

/** A device as people know it. */
struct oarlock_device_info {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The product name, such as `Acme NPU 910`. */
    oarlock_str name;
    oarlock_str vendor;
    /** The place on the bus, such as `0000:3b:00.0`, or empty. */
    oarlock_str bus_id;
    oarlock_device_flags bits;
    /** Cores or multiprocessors, or 0 when unknown. */
    uint32_t compute_units;
    /** Required alignment of memory that kernels touch, in bytes; 0 means 1. */
    uint32_t memory_alignment;
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_CORE_TABLE_FEATURES ((1ull << 0))

/** A device: what it is, its memory, and copies that are done when they return. A device is an argument of every call;
 *  there is no current device. */
struct oarlock_core_table {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** What the author of the table understood, as bits. */
    uint64_t features;
    /** Sets the back end up: the first call of all.
     *  Optional; when null: not called. */
    oarlock_error (*initialize)(void *context);
    /** Tears the back end down: the last call of all.
     *  Optional; when null: not called. */
    oarlock_error (*finalize)(void *context);
    /** Readies one device. Called for every device in the list when the plugin is registered.
     *  Optional; when null: not called. */
    oarlock_error (*device_init)(void *context, uint32_t device);
    /** Frees everything one device holds. Called before `finalize`.
     *  Optional; when null: not called. */
    oarlock_error (*device_deinit)(void *context, uint32_t device);
    /** Waits until all work on the device is done.
     *  Required. */
    oarlock_error (*device_synchronize)(void *context, uint32_t device);
    /** How many devices there are.
     *  Required. */
    oarlock_error (*device_count)(void *context, uint32_t *count);
    /** The ids of the devices. They need not be 0, 1, 2 and so on.
     *  Required. */
    oarlock_error (*device_list)(void *context, uint32_t *ids, uint64_t ids_capacity, uint64_t *ids_count);
    /** What a device is called and can do.
     *  Optional; when null: the device type as name, everything else unknown. */
    oarlock_error (*device_info)(void *context, uint32_t device, oarlock_device_info *info);
    /** The compute capability of the chip.
     *  Required. */
    oarlock_error (*compute_capability)(void *context, uint32_t device, oarlock_version *capability);
    /** The version of the vendor's runtime library.
     *  Required. */
    oarlock_error (*runtime_version)(void *context, oarlock_version *installed);
    /** The version of the vendor's driver.
     *  Required. */
    oarlock_error (*driver_version)(void *context, oarlock_version *installed);
    /** Takes `size` bytes of device memory.
     *  Required. */
    oarlock_error (*memory_allocate)(void *context, uint32_t device, uint64_t size, oarlock_memory *block);
    /** Gives device memory back. `size` is what was asked for.
     *  Required. */
    oarlock_error (*memory_deallocate)(void *context, uint32_t device, oarlock_memory block, uint64_t size);
    /** Takes page-locked host memory that the device copies from and to directly.
     *  Optional; when null: ordinary host memory is used. */
    oarlock_error (*host_memory_allocate)(void *context, uint32_t device, uint64_t size, void **address);
    /** Gives page-locked host memory back.
     *  Optional; when null: ordinary host memory is used. */
    oarlock_error (*host_memory_deallocate)(void *context, uint32_t device, void *address, uint64_t size);
    /** Takes memory that host and device reach at one address.
     *  Optional; when null: unified memory is not offered. */
    oarlock_error (*unified_memory_allocate)(void *context, uint32_t device, uint64_t size, void **address);
    /** Gives unified memory back.
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
    /** Fills device memory with one byte.
     *  Optional; when null: filled by a copy from the host. */
    oarlock_error (*memory_set)(void *context, uint32_t device, oarlock_memory target, uint64_t target_offset,
        uint8_t byte, uint64_t size);
    /** How much memory the device has and how much of it is free, in bytes.
     *  Required. */
    oarlock_error (*memory_stats)(void *context, uint32_t device, uint64_t *total, uint64_t *free);
    /** The smallest block and the alignment: a request of n bytes takes n plus the extra padding, rounded up to this.
     *  Required. */
    oarlock_error (*min_chunk_size)(void *context, uint32_t device, uint64_t *size);
    /** Requests above this go straight to the device instead of the host's pool.
     *  Optional; when null: the largest allocation. */
    oarlock_error (*max_chunk_size)(void *context, uint32_t device, uint64_t *size);
    /** The largest allocation.
     *  Optional; when null: the memory free now. */
    oarlock_error (*max_alloc_size)(void *context, uint32_t device, uint64_t *size);
    /** Bytes that every request needs on top.
     *  Optional; when null: 0. */
    oarlock_error (*extra_padding_size)(void *context, uint32_t device, uint64_t *size);
    /** The first block the host's pool takes.
     *  Optional; when null: the largest allocation. */
    oarlock_error (*init_alloc_size)(void *context, uint32_t device, uint64_t *size);
    /** The further blocks the host's pool takes.
     *  Optional; when null: the largest allocation. */
    oarlock_error (*realloc_size)(void *context, uint32_t device, uint64_t *size);
    /** Finds an experimental function by its versioned name.
     *  Optional; when null: there are no experimental functions. */
    oarlock_error (*experimental)(void *context, oarlock_str name, void **function);
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_ASYNC_TABLE_FEATURES ((1ull << 0))

/** Streams and events. A device without asynchronous work may leave the whole table out: the host then does everything at once.
 *  Memory of the host that an asynchronous call names stays valid until the stream is past it. */
struct oarlock_async_table {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** What the author of the table understood, as bits. */
    uint64_t features;
    /** Makes a stream. A smaller priority number is served earlier, where the device can.
     *  Required. */
    oarlock_error (*stream_create)(void *context, uint32_t device, int32_t priority, oarlock_stream *queue);
    /** Frees a stream, after its work is done.
     *  Required. */
    oarlock_error (*stream_destroy)(void *context, uint32_t device, oarlock_stream queue);
    /** Whether all work in the stream is done: 1 or 0.
     *  Optional; when null: the stream is synchronised, then done. */
    oarlock_error (*stream_query)(void *context, uint32_t device, oarlock_stream queue, uint32_t *done);
    /** Waits until all work in the stream is done. Reports what went wrong in it.
     *  Required. */
    oarlock_error (*stream_synchronize)(void *context, uint32_t device, oarlock_stream queue);
    /** Has a function called when the stream gets there.
     *  Optional; when null: the stream is synchronised, then the function called. */
    oarlock_error (*stream_add_callback)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_stream_reached reached, void *user);
    /** Holds the stream's further work back until the event has happened. An event that was never recorded has happened.
     *  Required. */
    oarlock_error (*stream_wait_event)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_event point);
    /** Makes an event.
     *  Required. */
    oarlock_error (*event_create)(void *context, uint32_t device, oarlock_event *point);
    /** Frees an event. Work that waits for it goes on waiting rightly.
     *  Required. */
    oarlock_error (*event_destroy)(void *context, uint32_t device, oarlock_event point);
    /** Puts the event at the end of the stream.
     *  Required. */
    oarlock_error (*event_record)(void *context, uint32_t device, oarlock_stream queue, oarlock_event point);
    /** Whether the event has happened: 1 or 0.
     *  Optional; when null: the event is synchronised, then done. */
    oarlock_error (*event_query)(void *context, uint32_t device, oarlock_event point, uint32_t *done);
    /** Waits for the event. Reports what went wrong before it.
     *  Required. */
    oarlock_error (*event_synchronize)(void *context, uint32_t device, oarlock_event point);
    /** The time between two events that have happened, in nanoseconds.
     *  Optional; when null: times are not known. */
    oarlock_error (*event_elapsed)(void *context, uint32_t device, oarlock_event start, oarlock_event end,
        uint64_t *nanoseconds);
    /** Copies from the host to the device, in the stream.
     *  Optional; when null: the stream is synchronised, then memory_copy_h2d. */
    oarlock_error (*memory_copy_h2d_async)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_memory target, uint64_t target_offset, const void *source, uint64_t size);
    /** Copies from the device to the host, in the stream.
     *  Optional; when null: the stream is synchronised, then memory_copy_d2h. */
    oarlock_error (*memory_copy_d2h_async)(void *context, uint32_t device, oarlock_stream queue, void *target,
        oarlock_memory source, uint64_t source_offset, uint64_t size);
    /** Copies within the device, in the stream.
     *  Optional; when null: the stream is synchronised, then memory_copy_d2d. */
    oarlock_error (*memory_copy_d2d_async)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_memory target, uint64_t target_offset, oarlock_memory source, uint64_t source_offset,
        uint64_t size);
    /** Copies between two devices of this plugin, in a stream of the source device.
     *  Optional; when null: the stream is synchronised, then memory_copy_p2p. */
    oarlock_error (*memory_copy_p2p_async)(void *context, uint32_t target_device, oarlock_memory target,
        uint64_t target_offset, uint32_t source_device, oarlock_stream queue, oarlock_memory source,
        uint64_t source_offset, uint64_t size);
    /** Fills device memory with one byte, in the stream.
     *  Optional; when null: the stream is synchronised, then memory_set. */
    oarlock_error (*memory_set_async)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_memory target, uint64_t target_offset, uint8_t byte, uint64_t size);
    /** Takes device memory that is usable from this point of the stream on.
     *  Optional; when null: memory_allocate. */
    oarlock_error (*memory_allocate_async)(void *context, uint32_t device, oarlock_stream queue,
        uint64_t size, oarlock_memory *block);
    /** Gives device memory back once the stream is past this point.
     *  Optional; when null: the stream is synchronised, then memory_deallocate. */
    oarlock_error (*memory_deallocate_async)(void *context, uint32_t device, oarlock_stream queue,
        oarlock_memory block, uint64_t size);
};

/** One operand of a call. */
struct oarlock_tensor {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    oarlock_memory block;
    /** Where the first element lies, in bytes from the start of the block. */
    uint64_t offset;
    /** Bytes from the first element to past the last, with gaps. */
    uint64_t size_in_bytes;
    oarlock_dtype dtype;
    oarlock_tensor_flags bits;
    oarlock_memory_kind place;
    oarlock_layout layout;
    /** The sizes of the dimensions; in `infer` -1 is one that is not known yet. */
    const int64_t *dims;
    /** How many `dims` there are. */
    uint64_t dims_count;
    /** Elements from one index to the next in each dimension. None means contiguous, last dimension fastest. */
    const int64_t *strides;
    /** How many `strides` there are. */
    uint64_t strides_count;
};

/** A named constant of a node. One that stands for a single thing is a list of one. Booleans, dtypes, layouts and places are ints. */
struct oarlock_attribute {
    /** The size of the struct in bytes, as whoever filled it knows it. */
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

/** One call of a kernel: everything it may look at. */
struct oarlock_call {
    /** The size of the struct in bytes, as whoever filled it knows it. */
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
    /** Scratch memory on the device, as large as `workspace` asked for. */
    oarlock_memory workspace;
    uint64_t workspace_offset;
    uint64_t workspace_size;
    /** The state of the random generator: a kernel that draws n numbers uses the counter values from `random_offset` on. */
    uint64_t random_seed;
    uint64_t random_offset;
    /** The host's own record of the call, for `output_allocate`. */
    void *host_call;
};

/** What a kernel demands of one operand. */
struct oarlock_operand {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The operand's name in the schema of the op, or empty. */
    oarlock_str name;
    oarlock_dtype_set dtypes;
    /** Operands with the same number, other than 0, must have the same dtype. */
    uint32_t dtype_group;
    /** The fewest dimensions. */
    uint32_t rank_min;
    /** The most dimensions; `OARLOCK_RANK_ANY` for any. */
    uint32_t rank_max;
    oarlock_operand_flags bits;
    oarlock_memory_kind place;
    /** The one layout the kernel takes. */
    oarlock_layout layout;
};

/** An output that may use the memory of an input. */
struct oarlock_in_place {
    uint32_t output;
    uint32_t input;
};

/** A kernel: one way of running one op on one kind of device. */
struct oarlock_kernel {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The op as its schema names it, such as `Add`. */
    oarlock_str op;
    /** The op's domain; empty is the domain of ONNX. */
    oarlock_str domain;
    /** The device type it runs on; empty means the plugin's own. */
    oarlock_str device_type;
    /** The first version of the op (its since-version) that the kernel implements. */
    uint32_t version_min;
    /** The last one; 0 means all later ones. */
    uint32_t version_max;
    /** Of several kernels that fit, the one with the highest score runs. 100 is what a plain kernel has. */
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
    /** Handed back as the first argument of every function of this kernel. */
    void *context;
    /** Whether the kernel takes this very call: success, or `unimplemented` with the reason as the message. It is asked
     *  about shapes, and must not read elements, those of constants included.
     *  Optional; when null: whatever meets the constraints is taken. */
    oarlock_error (*supports)(void *context, const oarlock_call *call);
    /** Tells the host the dtypes and shapes of the outputs with `output_allocate`. For ops the host has no schema of.
     *  Optional; when null: the host's schema of the op says it. */
    oarlock_error (*infer)(void *context, const oarlock_call *call);
    /** How much scratch memory the call needs, in bytes.
     *  Optional; when null: 0. */
    oarlock_error (*workspace)(void *context, const oarlock_call *call, uint64_t *size);
    /** Makes the state for one call site: packs constants, picks an algorithm.
     *  Optional; when null: the state is null. */
    oarlock_error (*prepare)(void *context, const oarlock_call *call, void **state);
    /** Does the work.
     *  Required. */
    oarlock_error (*run)(void *context, void *state, const oarlock_call *call);
    /** Frees a state.
     *  Optional; when null: the state needs no freeing. */
    oarlock_error (*release)(void *context, void *state);
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_KERNEL_TABLE_FEATURES ((1ull << 0))

/** The kernels a plugin brings. */
struct oarlock_kernel_table {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** What the author of the table understood, as bits. */
    uint64_t features;
    const oarlock_kernel *const *kernels;
    /** How many `kernels` there are. */
    uint64_t kernels_count;
};

/** A value that flows through a graph. */
struct oarlock_graph_value {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    oarlock_str name;
    oarlock_dtype dtype;
    /** 1 when the number of dimensions is known. */
    uint32_t rank_known;
    /** The sizes; -1 is one that is not known. */
    const int64_t *dims;
    /** How many `dims` there are. */
    uint64_t dims_count;
    /** The constant the value holds, or null. */
    const oarlock_tensor *constant;
};

/** One node of a graph. Numbers are indices of the graph's values; 2^32-1 is an operand left out. */
struct oarlock_graph_node {
    /** The size of the struct in bytes, as whoever filled it knows it. */
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

/** A graph of nodes in an order in which they can run. */
struct oarlock_graph {
    /** The size of the struct in bytes, as whoever filled it knows it. */
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
#define OARLOCK_GRAPH_TABLE_FEATURES ((1ull << 0))

/** Compiles and runs graphs as one piece. */
struct oarlock_graph_table {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** What the author of the table understood, as bits. */
    uint64_t features;
    /** Which nodes the device would take: 1 or 0 for each.
     *  Required. */
    oarlock_error (*graph_supports)(void *context, uint32_t device, const oarlock_graph *graph,
        uint8_t *taken, uint64_t taken_capacity, uint64_t *taken_count);
    /** Compiles a graph. Takes as long as it takes.
     *  Required. */
    oarlock_error (*graph_compile)(void *context, uint32_t device, const oarlock_graph *graph,
        const oarlock_attribute *const *options, uint64_t options_count, oarlock_executable *program);
    /** Runs a compiled graph in the stream of the call; inputs, outputs and scratch memory are those of the call.
     *  Required. */
    oarlock_error (*graph_run)(void *context, oarlock_executable program, const oarlock_call *call);
    /** How much scratch memory a run needs, in bytes.
     *  Optional; when null: 0. */
    oarlock_error (*graph_workspace)(void *context, oarlock_executable program, uint64_t *size);
    /** Frees a compiled graph.
     *  Required. */
    oarlock_error (*graph_destroy)(void *context, oarlock_executable program);
    /** Writes a compiled graph, to be loaded by a later process.
     *  Optional; when null: compiled graphs are not kept. */
    oarlock_error (*graph_save)(void *context, oarlock_executable program, oarlock_byte_sink sink, void *user);
    /** Whether saved bytes can be loaded on this device: 1 or 0.
     *  Optional; when null: no. */
    oarlock_error (*graph_compatible)(void *context, uint32_t device, const void *saved, uint64_t saved_size,
        uint32_t *usable);
    /** Loads what `graph_save` wrote.
     *  Optional; when null: compiled graphs are not kept. */
    oarlock_error (*graph_load)(void *context, uint32_t device, const void *saved, uint64_t saved_size,
        oarlock_executable *program);
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_COLLECTIVE_TABLE_FEATURES ((1ull << 0))

/** Exchange of data within a group of devices. The host carries the unique id from the first rank to the others. */
struct oarlock_collective_table {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** What the author of the table understood, as bits. */
    uint64_t features;
    /** How many bytes a unique id has.
     *  Required. */
    oarlock_error (*unique_id_size)(void *context, uint64_t *size);
    /** Makes the unique id of a new group.
     *  Required. */
    oarlock_error (*unique_id)(void *context, void *id, uint64_t id_size);
    /** Joins a group. Returns when all ranks have.
     *  Required. */
    oarlock_error (*communicator_create)(void *context, uint32_t device, const void *id, uint64_t id_size,
        uint32_t rank, uint32_t ranks, oarlock_communicator *member);
    /** Leaves a group.
     *  Required. */
    oarlock_error (*communicator_destroy)(void *context, oarlock_communicator member);
    /** Every rank gets the reduction of all.
     *  Required. */
    oarlock_error (*all_reduce)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory send, uint64_t send_offset, oarlock_memory receive, uint64_t receive_offset,
        uint64_t count, oarlock_dtype dtype, oarlock_reduction how);
    /** Every rank gets what the root has.
     *  Required. */
    oarlock_error (*broadcast)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory block, uint64_t offset, uint64_t count, oarlock_dtype dtype, uint32_t root);
    /** The root gets the reduction of all.
     *  Required. */
    oarlock_error (*reduce)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory send, uint64_t send_offset, oarlock_memory receive, uint64_t receive_offset,
        uint64_t count, oarlock_dtype dtype, oarlock_reduction how, uint32_t root);
    /** Every rank gets the parts of all, one after the other.
     *  Required. */
    oarlock_error (*all_gather)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory send, uint64_t send_offset, oarlock_memory receive, uint64_t receive_offset,
        uint64_t count, oarlock_dtype dtype);
    /** Every rank gets its part of the reduction.
     *  Required. */
    oarlock_error (*reduce_scatter)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory send, uint64_t send_offset, oarlock_memory receive, uint64_t receive_offset,
        uint64_t count, oarlock_dtype dtype, oarlock_reduction how);
    /** Starts a group of calls that are issued together.
     *  Required. */
    oarlock_error (*group_start)(void *context);
    /** Ends the group and issues it.
     *  Required. */
    oarlock_error (*group_end)(void *context);
    /** Sends to one rank.
     *  Required. */
    oarlock_error (*send)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory block, uint64_t offset, uint64_t count, oarlock_dtype dtype, uint32_t to);
    /** Receives from one rank.
     *  Required. */
    oarlock_error (*receive)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory block, uint64_t offset, uint64_t count, oarlock_dtype dtype, uint32_t from);
    /** Every rank sends one part to each other rank.
     *  Required. */
    oarlock_error (*all_to_all)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory send, uint64_t send_offset, oarlock_memory receive, uint64_t receive_offset,
        uint64_t count, oarlock_dtype dtype);
};

/** One piece of work that a device did. */
struct oarlock_activity {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    oarlock_activity_kind kind;
    uint32_t device;
    oarlock_stream queue;
    /** The number the host gave the call that caused it, or 0. */
    uint64_t correlation;
    /** Start and end on the device's clock, in nanoseconds. */
    uint64_t start;
    uint64_t end;
    uint64_t bytes;
    oarlock_str name;
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_PROFILE_TABLE_FEATURES ((1ull << 0))

/** Records of what devices did. */
struct oarlock_profile_table {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** What the author of the table understood, as bits. */
    uint64_t features;
    /** Readies the profiler.
     *  Required. */
    oarlock_error (*profiler_initialize)(void *context);
    /** Ends the profiler.
     *  Required. */
    oarlock_error (*profiler_finalize)(void *context);
    /** Readies one recording, so that starting it is quick.
     *  Required. */
    oarlock_error (*profiler_prepare)(void *context);
    /** Starts recording.
     *  Required. */
    oarlock_error (*profiler_start)(void *context);
    /** Stops recording.
     *  Required. */
    oarlock_error (*profiler_stop)(void *context);
    /** Hands over what was recorded since the last start.
     *  Required. */
    oarlock_error (*profiler_collect)(void *context, oarlock_activity_sink sink, void *user);
    /** One moment on the device's clock and on the host's monotonic clock, in nanoseconds.
     *  Optional; when null: both clocks are taken to be one. */
    oarlock_error (*profiler_clock)(void *context, uint32_t device, uint64_t *device_time,
        uint64_t *host_time);
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_INTEROP_TABLE_FEATURES ((1ull << 0))

/** Exchange of memory and streams with other libraries and processes, without copies. */
struct oarlock_interop_table {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** What the author of the table understood, as bits. */
    uint64_t features;
    /** The DLPack device type and id under which others know the device.
     *  Required. */
    oarlock_error (*dlpack_device)(void *context, uint32_t device, int32_t *device_type, int32_t *device_id);
    /** The native handle of a block. It stays the plugin's.
     *  Required. */
    oarlock_error (*memory_export)(void *context, uint32_t device, oarlock_memory block,
        oarlock_native_kind kind, uint64_t *native);
    /** Makes a block of memory that another library owns and keeps valid until `memory_forget`.
     *  Required. */
    oarlock_error (*memory_import)(void *context, uint32_t device, oarlock_native_kind kind, uint64_t native,
        uint64_t size, oarlock_memory *block);
    /** Ends the use of an imported block. The memory itself stays its owner's.
     *  Required. */
    oarlock_error (*memory_forget)(void *context, uint32_t device, oarlock_memory block);
    /** The native handle of a stream, such as a `CUstream`.
     *  Optional; when null: streams are not shared; the stream is synchronised instead. */
    oarlock_error (*stream_export)(void *context, uint32_t device, oarlock_stream queue, uint64_t *native);
    /** Makes a stream of a native handle. Destroying it leaves the native one alive.
     *  Optional; when null: streams are not shared. */
    oarlock_error (*stream_import)(void *context, uint32_t device, uint64_t native, oarlock_stream *queue);
    /** How many bytes a token for another process has.
     *  Optional; when null: memory is not shared with other processes. */
    oarlock_error (*ipc_token_size)(void *context, uint64_t *size);
    /** Makes a token with which another process reaches a block.
     *  Optional; when null: memory is not shared with other processes. */
    oarlock_error (*ipc_export)(void *context, uint32_t device, oarlock_memory block, void *token,
        uint64_t token_size);
    /** Reaches a block of another process.
     *  Optional; when null: memory is not shared with other processes. */
    oarlock_error (*ipc_import)(void *context, uint32_t device, const void *token, uint64_t token_size,
        oarlock_memory *block, uint64_t *size);
    /** Ends the use of a block of another process.
     *  Optional; when null: memory is not shared with other processes. */
    oarlock_error (*ipc_close)(void *context, uint32_t device, oarlock_memory block);
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_LAYER_TABLE_FEATURES ((1ull << 0))

/** A plugin that stands between the host and other plugins: it wraps their tables in its own. */
struct oarlock_layer_table {
    /** The size of the struct in bytes, as whoever filled it knows it. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** What the author of the table understood, as bits. */
    uint64_t features;
    /** Wraps the next table: hands back a context and a table of the same kind. A layer that does not care for this kind
     *  hands back the next ones unchanged. A slot that is empty below stays empty.
     *  Required. */
    oarlock_error (*wrap)(void *context, oarlock_table_kind kind, oarlock_str plugin, void *next_context,
        void *next_table, void **wrapped_context, void **wrapped_table);
    /** Frees a wrapper. The host has stopped using it. What `wrap` handed back unchanged is no wrapper.
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
