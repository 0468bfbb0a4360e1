/* Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit. */
/* SPDX-License-Identifier: Apache-2.0
 *
 * DRAFTS: profiles of the contract that no version of Oarlock promises anything about. What is here may change or go with
 * any version. Whoever includes this file tries it out; the reference page says which drafts a host calls at all.
 *
 * A draft has a number that rises with every change. A plugin provides a draft under its number, and a host that has another
 * one passes it over, says so, and uses the plugin without it:
 *
 *     static const oarlock_graph_table graph = {OARLOCK_TABLE(oarlock_graph_table), .graph_run = run, ...};
 *     static const oarlock_draft_profile graph_draft = {OARLOCK_HEADER(oarlock_draft_profile),
 *         .profile = OARLOCK_STR("graph"), .number = OARLOCK_GRAPH_DRAFT, .table = &graph};
 *     static const oarlock_draft_profile *const drafts[] = {&graph_draft};
 *
 *     plugin->drafts = drafts;
 *     plugin->drafts_count = 1; */
#ifndef OARLOCK_CONTRACT_DRAFT_H
#define OARLOCK_CONTRACT_DRAFT_H

#include "contract.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of the drafts. */
#define OARLOCK_GRAPH_DRAFT 1u
#define OARLOCK_COLLECTIVE_DRAFT 1u
#define OARLOCK_PROFILE_DRAFT 1u
#define OARLOCK_INTEROP_DRAFT 1u

/** A compiled graph. */
typedef uint64_t oarlock_executable;

/** The membership of one device in a group of devices that exchange data. */
typedef uint64_t oarlock_communicator;

/** How the values of several devices are combined. */
typedef uint32_t oarlock_reduction;
#define OARLOCK_REDUCTION_SUM 1u
#define OARLOCK_REDUCTION_PRODUCT 2u
#define OARLOCK_REDUCTION_MINIMUM 3u
#define OARLOCK_REDUCTION_MAXIMUM 4u
#define OARLOCK_REDUCTION_AVERAGE 5u

/** The kind of work that a record describes. */
typedef uint32_t oarlock_activity_kind;
#define OARLOCK_ACTIVITY_KIND_KERNEL 1u
#define OARLOCK_ACTIVITY_KIND_COPY 2u
#define OARLOCK_ACTIVITY_KIND_FILL 3u
#define OARLOCK_ACTIVITY_KIND_SYNCHRONIZE 4u
#define OARLOCK_ACTIVITY_KIND_MARKER 5u

/** The kind of a native handle. */
typedef uint32_t oarlock_native_kind;

/** An address, such as a CUDA or HIP device pointer. */
#define OARLOCK_NATIVE_KIND_ADDRESS 1u

/** A `cl_mem`. */
#define OARLOCK_NATIVE_KIND_OPENCL_MEMORY 2u

/** A file descriptor of a DMA buffer. */
#define OARLOCK_NATIVE_KIND_DMA_BUFFER 3u

/* Structs and tables, declared before any of them is described. */
typedef struct oarlock_graph_table oarlock_graph_table;
typedef struct oarlock_collective_table oarlock_collective_table;
typedef struct oarlock_activity oarlock_activity;
typedef struct oarlock_profile_table oarlock_profile_table;
typedef struct oarlock_interop_table oarlock_interop_table;

/** Receives bytes from a plugin. Returns an error to stop the plugin. */
typedef oarlock_error (*oarlock_byte_sink)(void *user, const uint8_t *data, uint64_t size);

/** Receives one record. The record is valid during the call. */
typedef void (*oarlock_activity_sink)(void *user, const oarlock_activity *record);

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_GRAPH_TABLE_FEATURES ((1ull << 0) | (1ull << 1) | (1ull << 2))

/** Compiles graphs and runs each as a whole. */
struct oarlock_graph_table {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The features that the author of the table knew, as bits. */
    uint64_t features;
    /** Which nodes the device can run: 1 or 0 for each.
     *  Required. */
    oarlock_error (*graph_supports)(void *context, uint32_t device, const oarlock_graph *graph,
        uint8_t *taken, uint64_t taken_capacity, uint64_t *taken_count);
    /** Compiles a graph. This may take long.
     *  Required. */
    oarlock_error (*graph_compile)(void *context, uint32_t device, const oarlock_graph *graph,
        const oarlock_attribute *const *options, uint64_t options_count, oarlock_executable *program);
    /** Runs a compiled graph in the call's stream, with the call's inputs, outputs and scratch memory.
     *  Required. */
    oarlock_error (*graph_run)(void *context, oarlock_executable program, const oarlock_call *call);
    /** The size of the scratch memory that a run needs, in bytes.
     *  Optional; when null: 0. */
    oarlock_error (*graph_workspace)(void *context, oarlock_executable program, uint64_t *size);
    /** Frees a compiled graph.
     *  Required. */
    oarlock_error (*graph_destroy)(void *context, oarlock_executable program);
    /** Serializes a compiled graph, so that a later process can load it.
     *  Optional; when null: compiled graphs are not kept. */
    oarlock_error (*graph_save)(void *context, oarlock_executable program, oarlock_byte_sink sink, void *user);
    /** Whether saved bytes can be loaded on this device: 1 or 0.
     *  Optional; when null: no. */
    oarlock_error (*graph_compatible)(void *context, uint32_t device, const void *saved, uint64_t saved_size,
        uint32_t *usable);
    /** Loads a graph that `graph_save` wrote.
     *  Optional; when null: compiled graphs are not kept. */
    oarlock_error (*graph_load)(void *context, uint32_t device, const void *saved, uint64_t saved_size,
        oarlock_executable *program);
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_COLLECTIVE_TABLE_FEATURES ((1ull << 0) | (1ull << 1) | (1ull << 2))

/** Exchange of data within a group of devices. The host passes the unique id from the first rank to the others. Calls on the
 *  same communicator are not concurrent. */
struct oarlock_collective_table {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The features that the author of the table knew, as bits. */
    uint64_t features;
    /** The size of a unique id in bytes.
     *  Required. */
    oarlock_error (*unique_id_size)(void *context, uint64_t *size);
    /** Creates the unique id of a new group.
     *  Required. */
    oarlock_error (*unique_id)(void *context, void *id, uint64_t id_size);
    /** Joins a group. Returns when all ranks have joined.
     *  Required. */
    oarlock_error (*communicator_create)(void *context, uint32_t device, const void *id, uint64_t id_size,
        uint32_t rank, uint32_t ranks, oarlock_communicator *member);
    /** Leaves a group.
     *  Required. */
    oarlock_error (*communicator_destroy)(void *context, oarlock_communicator member);
    /** Every rank receives the reduction over all ranks.
     *  Required. */
    oarlock_error (*all_reduce)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory send, uint64_t send_offset, oarlock_memory receive, uint64_t receive_offset,
        uint64_t count, oarlock_dtype dtype, oarlock_reduction how);
    /** Every rank receives the root's data.
     *  Required. */
    oarlock_error (*broadcast)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory block, uint64_t offset, uint64_t count, oarlock_dtype dtype, uint32_t root);
    /** The root receives the reduction over all ranks.
     *  Required. */
    oarlock_error (*reduce)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory send, uint64_t send_offset, oarlock_memory receive, uint64_t receive_offset,
        uint64_t count, oarlock_dtype dtype, oarlock_reduction how, uint32_t root);
    /** Every rank receives the data of all ranks, concatenated.
     *  Required. */
    oarlock_error (*all_gather)(void *context, oarlock_communicator member, oarlock_stream queue,
        oarlock_memory send, uint64_t send_offset, oarlock_memory receive, uint64_t receive_offset,
        uint64_t count, oarlock_dtype dtype);
    /** Every rank receives its part of the reduction.
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
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    oarlock_activity_kind kind;
    uint32_t device;
    oarlock_stream queue;
    /** The number that the host assigned to the call that caused the work, or 0. */
    uint64_t correlation;
    /** Start and end on the device's clock, in nanoseconds. */
    uint64_t start;
    uint64_t end;
    uint64_t bytes;
    oarlock_str name;
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_PROFILE_TABLE_FEATURES ((1ull << 0) | (1ull << 1) | (1ull << 2))

/** Recording of device activity. */
struct oarlock_profile_table {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The features that the author of the table knew, as bits. */
    uint64_t features;
    /** Initializes the profiler.
     *  Required. */
    oarlock_error (*profiler_initialize)(void *context);
    /** Shuts the profiler down.
     *  Required. */
    oarlock_error (*profiler_finalize)(void *context);
    /** Prepares a recording, so that starting it is quick.
     *  Required. */
    oarlock_error (*profiler_prepare)(void *context);
    /** Starts recording.
     *  Required. */
    oarlock_error (*profiler_start)(void *context);
    /** Stops recording.
     *  Required. */
    oarlock_error (*profiler_stop)(void *context);
    /** Passes all records since the last start to `sink`.
     *  Required. */
    oarlock_error (*profiler_collect)(void *context, oarlock_activity_sink sink, void *user);
    /** The same moment on the device's clock and on the host's monotonic clock, in nanoseconds.
     *  Optional; when null: both clocks are assumed to be the same. */
    oarlock_error (*profiler_clock)(void *context, uint32_t device, uint64_t *device_time,
        uint64_t *host_time);
};

/** What the author of this header understood: one bit for each minor version. */
#define OARLOCK_INTEROP_TABLE_FEATURES ((1ull << 0) | (1ull << 1) | (1ull << 2))

/** Exchange of memory and streams with other libraries and processes, without copies. */
struct oarlock_interop_table {
    /** The size of the struct in bytes, in the version that its author knows. */
    uint32_t size;
    /** How to treat what is not known. */
    oarlock_header_flags flags;
    /** The first of a chain of extensions, or null. */
    const oarlock_extension *next;
    /** The features that the author of the table knew, as bits. */
    uint64_t features;
    /** The device type and id of the device in DLPack.
     *  Required. */
    oarlock_error (*dlpack_device)(void *context, uint32_t device, int32_t *device_type, int32_t *device_id);
    /** The native handle of a block. The plugin keeps ownership.
     *  Required. */
    oarlock_error (*memory_export)(void *context, uint32_t device, oarlock_memory block,
        oarlock_native_kind kind, uint64_t *native);
    /** Creates a block from memory that another library owns and keeps valid until `memory_forget`.
     *  Required. */
    oarlock_error (*memory_import)(void *context, uint32_t device, oarlock_native_kind kind, uint64_t native,
        uint64_t size, oarlock_memory *block);
    /** Ends the use of an imported block, without freeing its memory.
     *  Required. */
    oarlock_error (*memory_forget)(void *context, uint32_t device, oarlock_memory block);
    /** The native handle of a stream, such as a `CUstream`.
     *  Optional; when null: streams are not shared; the stream is synchronized instead. */
    oarlock_error (*stream_export)(void *context, uint32_t device, oarlock_stream queue, uint64_t *native);
    /** Creates a stream from a native handle. Destroying the stream leaves the native stream alive.
     *  Optional; when null: streams are not shared. */
    oarlock_error (*stream_import)(void *context, uint32_t device, uint64_t native, oarlock_stream *queue);
    /** The size in bytes of a token for another process.
     *  Optional; when null: memory is not shared with other processes. */
    oarlock_error (*ipc_token_size)(void *context, uint64_t *size);
    /** Creates a token with which another process can open a block.
     *  Optional; when null: memory is not shared with other processes. */
    oarlock_error (*ipc_export)(void *context, uint32_t device, oarlock_memory block, void *token,
        uint64_t token_size);
    /** Opens a block of another process.
     *  Optional; when null: memory is not shared with other processes. */
    oarlock_error (*ipc_import)(void *context, uint32_t device, const void *token, uint64_t token_size,
        oarlock_memory *block, uint64_t *size);
    /** Ends the use of a block of another process.
     *  Optional; when null: memory is not shared with other processes. */
    oarlock_error (*ipc_close)(void *context, uint32_t device, oarlock_memory block);
};

#ifdef __cplusplus
}
#endif

#endif
