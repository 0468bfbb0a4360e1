/* Made from `runtime/capi/src/interface` by `OARLOCK_WRITE=1 cargo test -p oarlock-capi`. Do not edit. */
/* SPDX-License-Identifier: Apache-2.0
 *
 * The C API of Oarlock: read a model, run it on any device, read its outputs.
 *
 * Errors      A function that can fail returns an `oarlock_error *`: NULL means success, and the caller frees any other.
 *             A function that cannot fail returns 0, -1 or NULL, as documented, for NULL and for missing things.
 * Ownership   The caller owns what a function stores in a `T **`, and frees it with `oarlock_T_free`. A returned `const`
 *             pointer belongs to the handle that was passed, and is valid as long as that. The caller keeps arguments,
 *             and the library does not use them after the call unless the function says so.
 * Threads     Any number of threads may use a handle at once, except `oarlock_attributes`. Free a handle once, when no
 *             other thread uses it. There is no global and no thread-local state.
 * Texts       Texts are UTF-8 and end with a zero, in both directions; elements of tensors are `oarlock_text`.
 * Structs     A struct that begins with `size` may grow: zero all of it and set `size` to its `sizeof`, so that the program
 *             works with newer libraries.
 * Callbacks   They must return: no exception and no `longjmp` may leave them.
 *
 * Plugins use `oarlock/contract.h` instead, which has a different error type: a source may include only one of them. */
#ifndef OARLOCK_H
#define OARLOCK_H

#ifdef OARLOCK_CONTRACT_H
#error "expected either oarlock.h, for programs, or oarlock/contract.h, for plugins, found both in one source"
#endif

#include <stdint.h>

/** The number of this header, for `oarlock_abi`. */
#define OARLOCK_ABI 1u

#ifndef OARLOCK_API
#define OARLOCK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Handles */

/** What went wrong. Functions that can fail give one, or NULL when they succeeded; the caller frees it. */
typedef struct oarlock_error oarlock_error;

/** Plugins with their devices and kernels. A program usually has one. */
typedef struct oarlock_runtime oarlock_runtime;

/** A device of a runtime. It is the runtime's and there for as long as that, and is not freed. */
typedef struct oarlock_device oarlock_device;

/** A model as it was read. */
typedef struct oarlock_model oarlock_model;

/** A model that is ready to run, from any number of threads at once. */
typedef struct oarlock_session oarlock_session;

/** An input or output of a session. It is the session's and there for as long as that, and is not freed. */
typedef struct oarlock_slot oarlock_slot;

/** What goes into a run and comes out of it: a tensor, a sequence of values, or nothing. It never changes. */
typedef struct oarlock_value oarlock_value;

/** The attributes of an op, by name. The only handle that changes: it is for one thread at a time. */
typedef struct oarlock_attributes oarlock_attributes;

/** An op as a program calls it. It remembers how it was called, so make one for each place that calls often. */
typedef struct oarlock_op oarlock_op;

/* Numbers with names */

/** The kind of an error. */
typedef uint32_t oarlock_code;
#define OARLOCK_CODE_INVALID_ARGUMENT 1u
#define OARLOCK_CODE_NOT_FOUND 2u
#define OARLOCK_CODE_OUT_OF_RANGE 3u
#define OARLOCK_CODE_ALREADY_EXISTS 4u
#define OARLOCK_CODE_RESOURCE_EXHAUSTED 5u
#define OARLOCK_CODE_PRECONDITION_NOT_MET 6u
#define OARLOCK_CODE_PERMISSION_DENIED 7u
#define OARLOCK_CODE_EXECUTION_TIMEOUT 8u
#define OARLOCK_CODE_UNIMPLEMENTED 9u
#define OARLOCK_CODE_UNAVAILABLE 10u
#define OARLOCK_CODE_FATAL 11u
#define OARLOCK_CODE_EXTERNAL 12u

/** The type of an element of a tensor. `I4` and `U4` pack two elements into a byte, the first in the low half; elements of
 *  `BOOL` are bytes of 0 or 1; `F16`, `BF16` and the 8-bit types are bit patterns. 0 means unknown. */
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
#define OARLOCK_DTYPE_STRING 20u
#define OARLOCK_DTYPE_F8E4M3FNUZ 21u
#define OARLOCK_DTYPE_F8E5M2FNUZ 22u
#define OARLOCK_DTYPE_F8E8M0 23u
#define OARLOCK_DTYPE_F4E2M1 24u
#define OARLOCK_DTYPE_I2 25u
#define OARLOCK_DTYPE_U2 26u

/** The kind of a value, or the kind that a model states. */
typedef uint32_t oarlock_kind;
#define OARLOCK_KIND_UNKNOWN 0u
#define OARLOCK_KIND_TENSOR 1u
#define OARLOCK_KIND_SEQUENCE 2u
#define OARLOCK_KIND_NOTHING 3u
#define OARLOCK_KIND_OPTIONAL 4u
#define OARLOCK_KIND_MAP 5u

/** The severity of a message. */
typedef uint32_t oarlock_log_level;
#define OARLOCK_LOG_LEVEL_ERROR 1u
#define OARLOCK_LOG_LEVEL_WARNING 2u
#define OARLOCK_LOG_LEVEL_INFO 3u
#define OARLOCK_LOG_LEVEL_DEBUG 4u

/** The precision of matrix products and convolutions. With `BF16`, their operands, and images between convolutions, may be
 *  rounded to it if that is faster on the device; sums and all other values between ops are not rounded. */
typedef uint32_t oarlock_precision;
#define OARLOCK_PRECISION_F32 0u
#define OARLOCK_PRECISION_BF16 1u

/** The support level of a device, as its plugin claims it. */
typedef uint32_t oarlock_support_level;
#define OARLOCK_SUPPORT_LEVEL_UNSPECIFIED 0u
#define OARLOCK_SUPPORT_LEVEL_EMULATOR_VERIFIED 1u
#define OARLOCK_SUPPORT_LEVEL_DRIVER_VERIFIED 2u
#define OARLOCK_SUPPORT_LEVEL_HARDWARE_VERIFIED 3u

/* Functions of the program */

/** Receives messages of plugins and of the runtime. It may be called from any thread, and from several at once, as long as
 *  the runtime or anything made from it exists. The texts are valid until it returns. */
typedef void (*oarlock_log_callback)(
    void *context,
    oarlock_log_level level,
    const char *source,
    const char *message);

/** Receives how many nodes of a model are prepared, and the total: while a session is made, and in the first run with new
 *  shapes. It may be called from any thread, as long as the session exists. */
typedef void (*oarlock_progress_callback)(void *context, uint64_t ready, uint64_t all);

/** Returns borrowed memory. It is called exactly once, from any thread, when the memory is no longer needed: at once if it
 *  was copied, and before the borrowing function returns if that fails. */
typedef void (*oarlock_release_callback)(void *context, const void *data, uint64_t size);

/* Structs */

/** Options of a runtime. In every field but `size`, zero means the default. */
typedef struct oarlock_runtime_options {
    /** `sizeof` of this struct. */
    uint64_t size;

    /** Name and version of the program, which plugins see. */
    const char *program;

    /** The configuration file, by default the user's. */
    const char *config;

    /** The default device, such as `cpu` or `gpu`. */
    const char *device;

    /** Plugins and directories of plugins, searched before all others. */
    const char *const *plugin_paths;

    /** The number of entries. */
    uint64_t plugin_path_count;

    /** Layers around every plugin, such as `trace`, the outermost first. */
    const char *const *layers;

    /** The number of entries. */
    uint64_t layer_count;

    /** Flags, each as `NAME=VALUE`; `oarlock flags` lists them. */
    const char *const *flags;

    /** The number of entries. */
    uint64_t flag_count;

    /** Receives messages; NULL drops them. */
    oarlock_log_callback log;

    /** The first argument of `log`. */
    void *log_context;

    /** The lowest severity that `log` receives, by default warnings. Messages of requested layers to the user, such as the
     *  file that they wrote, always arrive. */
    oarlock_log_level log_level;

    /** The number of threads that kernels share, by default the number of processors. */
    uint32_t threads;
} oarlock_runtime_options;

/** Options of a session. In every field but `size`, zero means the default. */
typedef struct oarlock_session_options {
    /** `sizeof` of this struct. */
    uint64_t size;

    /** The devices, by default the runtime's default device. Each node runs on the first one that has a kernel for it. If
     *  none has, the CPU runs it, and `log` receives a warning unless the CPU is one of the devices; with the flag
     *  `kernel_fallback` set to `error`, it is an error. */
    const oarlock_device *const *devices;

    /** The number of entries. */
    uint64_t device_count;

    /** Receives progress; NULL ignores it. */
    oarlock_progress_callback progress;

    /** The first argument of `progress`. */
    void *progress_context;

    /** The precision of products, by default exact. */
    oarlock_precision precision;
} oarlock_session_options;

/** Memory of a device, in bytes. */
typedef struct oarlock_memory_statistics {
    /** `sizeof` of this struct, which the caller sets. */
    uint64_t size;

    /** The total memory of the device. */
    uint64_t total;

    /** The memory that is free for any program. */
    uint64_t free;

    /** The memory in use by tensors and runs of this runtime. */
    uint64_t allocated;

    /** The memory that this runtime has reserved on the device. */
    uint64_t reserved;

    /** The peak of the memory in use. */
    uint64_t peak_allocated;

    /** The peak of the reserved memory. */
    uint64_t peak_reserved;
} oarlock_memory_statistics;

/** A text with its size, for elements of tensors: UTF-8 that may contain zeros and need not end with one. */
typedef struct oarlock_text {
    /** The first byte; may be NULL if the text is empty. */
    const char *data;

    /** The size in bytes. */
    uint64_t size;
} oarlock_text;

/* The library */

/** The version of the library, such as `0.1.0`. The text is static. */
OARLOCK_API const char *oarlock_version(void);

/** The value of `OARLOCK_ABI` in the header that the library was built with. A program works with every library of the
 *  same soname whose number is at least that of the program's header. */
OARLOCK_API uint32_t oarlock_abi(void);

/** The short name of a dtype, such as `f32`; NULL if the number is not a dtype. The text is static. */
OARLOCK_API const char *oarlock_dtype_name(oarlock_dtype dtype);

/** The size of an element in bits; 0 for strings, and if the number is not a dtype. */
OARLOCK_API uint32_t oarlock_dtype_bits(oarlock_dtype dtype);

/* Errors */

/** The kind of error; 0 for NULL. */
OARLOCK_API oarlock_code oarlock_error_code(const oarlock_error *error);

/** What was expected and what was found, in one sentence; NULL for NULL. The text belongs to the error. */
OARLOCK_API const char *oarlock_error_message(const oarlock_error *error);

/** What to do about it; NULL if nothing is known. The text belongs to the error. */
OARLOCK_API const char *oarlock_error_hint(const oarlock_error *error);

/** 1 if the device was lost with everything on it, otherwise 0. */
OARLOCK_API uint32_t oarlock_error_is_device_lost(const oarlock_error *error);

/** Frees an error. NULL is ignored. */
OARLOCK_API void oarlock_error_free(oarlock_error *error);

/* Runtimes and devices */

/** Starts a runtime. `options` may be NULL. They are not needed after the call, except for the context of `log`. */
OARLOCK_API oarlock_error *oarlock_runtime_start(const oarlock_runtime_options *options, oarlock_runtime **runtime);

/** The number of devices. */
OARLOCK_API uint64_t oarlock_runtime_device_count(const oarlock_runtime *runtime);

/** A device by its index; NULL past the end. */
OARLOCK_API const oarlock_device *oarlock_runtime_device(const oarlock_runtime *runtime, uint64_t index);

/** Finds a device by a name such as `cpu`, `opencl:1` or `gpu`; NULL finds the default device. */
OARLOCK_API oarlock_error *oarlock_runtime_find_device(
    const oarlock_runtime *runtime,
    const char *name,
    const oarlock_device **device);

/** The number of plugins that were found but refused. */
OARLOCK_API uint64_t oarlock_runtime_refusal_count(const oarlock_runtime *runtime);

/** Which plugin was refused, why, and what to do about it; NULL past the end. The text belongs to the runtime. */
OARLOCK_API const char *oarlock_runtime_refusal(const oarlock_runtime *runtime, uint64_t index);

/** Frees a runtime and its devices. NULL is ignored. Its sessions, ops and values stay valid, and keep what they need. */
OARLOCK_API void oarlock_runtime_free(oarlock_runtime *runtime);

/** Type and index, such as `cpu:0`. This and the other texts belong to the device. */
OARLOCK_API const char *oarlock_device_name(const oarlock_device *device);

/** The device type, such as `cpu`. */
OARLOCK_API const char *oarlock_device_type(const oarlock_device *device);

/** The name of the product. */
OARLOCK_API const char *oarlock_device_description(const oarlock_device *device);

/** The vendor. */
OARLOCK_API const char *oarlock_device_vendor(const oarlock_device *device);

/** The support level that its plugin claims. */
OARLOCK_API oarlock_support_level oarlock_device_support_level(const oarlock_device *device);

/** 1 if the device uses host memory, so that tensors can be read in place, otherwise 0. */
OARLOCK_API uint32_t oarlock_device_shares_host_memory(const oarlock_device *device);

/** Reports memory use. The caller sets `size` of the struct first. */
OARLOCK_API oarlock_error *oarlock_device_memory(
    const oarlock_device *device,
    oarlock_memory_statistics *statistics);

/** Waits until all work on the device has finished, and returns its error. */
OARLOCK_API oarlock_error *oarlock_device_synchronize(const oarlock_device *device);

/* Models */

/** Reads a model from a file: ONNX, or Paddle if the name ends in `.pdmodel`. Weights stay in the file, which must not
 *  change while the model or a session of it exists. */
OARLOCK_API oarlock_error *oarlock_model_load(const char *path, oarlock_model **model);

/** Reads an ONNX model from memory, which is copied if `release` is NULL. Otherwise the library borrows it: it must not
 *  change until `release` is called with `context`. Files with weights are searched below `directory`; if that is NULL,
 *  they are an error. */
OARLOCK_API oarlock_error *oarlock_model_decode(
    const void *data,
    uint64_t size,
    oarlock_release_callback release,
    void *context,
    const char *directory,
    oarlock_model **model);

/** The file format, such as `ONNX, IR 8`. The text belongs to the model. */
OARLOCK_API const char *oarlock_model_format(const oarlock_model *model);

/** The producer that the file names. The text belongs to the model. */
OARLOCK_API const char *oarlock_model_producer(const oarlock_model *model);

/** Frees a model. NULL is ignored. Its sessions stay valid. */
OARLOCK_API void oarlock_model_free(oarlock_model *model);

/* Sessions */

/** Prepares a model to run. `options` may be NULL. They are not needed after the call, except for the context of
 *  `progress`. */
OARLOCK_API oarlock_error *oarlock_session_create(
    const oarlock_runtime *runtime,
    const oarlock_model *model,
    const oarlock_session_options *options,
    oarlock_session **session);

/** The number of inputs. */
OARLOCK_API uint64_t oarlock_session_input_count(const oarlock_session *session);

/** An input by its index; NULL past the end. */
OARLOCK_API const oarlock_slot *oarlock_session_input(const oarlock_session *session, uint64_t index);

/** The number of outputs. */
OARLOCK_API uint64_t oarlock_session_output_count(const oarlock_session *session);

/** An output by its index; NULL past the end. */
OARLOCK_API const oarlock_slot *oarlock_session_output(const oarlock_session *session, uint64_t index);

/** Runs the model on all inputs and computes all outputs, both in order. The caller frees each output; after an error
 *  all are NULL. */
OARLOCK_API oarlock_error *oarlock_session_run(
    const oarlock_session *session,
    const oarlock_value *const *inputs,
    uint64_t input_count,
    oarlock_value **outputs,
    uint64_t output_count);

/** Runs the model by name: all inputs in any order, and only the requested outputs. */
OARLOCK_API oarlock_error *oarlock_session_run_named(
    const oarlock_session *session,
    const char *const *input_names,
    const oarlock_value *const *inputs,
    uint64_t input_count,
    const char *const *output_names,
    oarlock_value **outputs,
    uint64_t output_count);

/** Frees a session, which no other thread may be using. NULL is ignored. Its outputs stay valid. */
OARLOCK_API void oarlock_session_free(oarlock_session *session);

/** The name of an input or output. This and the other texts belong to the slot. */
OARLOCK_API const char *oarlock_slot_name(const oarlock_slot *slot);

/** Name and type as text, such as `x: f32[batch, 3]`. */
OARLOCK_API const char *oarlock_slot_description(const oarlock_slot *slot);

/** The kind that the model states; 0 if it states none. */
OARLOCK_API oarlock_kind oarlock_slot_kind(const oarlock_slot *slot);

/** The dtype of a tensor; 0 if the model does not state it. */
OARLOCK_API oarlock_dtype oarlock_slot_dtype(const oarlock_slot *slot);

/** The number of dimensions of a tensor; -1 if the model does not state it. */
OARLOCK_API int64_t oarlock_slot_rank(const oarlock_slot *slot);

/** The sizes of the dimensions, -1 for any size; NULL if there are none. They belong to the slot. */
OARLOCK_API const int64_t *oarlock_slot_dims(const oarlock_slot *slot);

/** The name of a dimension, which has the same size everywhere; NULL if it has no name. */
OARLOCK_API const char *oarlock_slot_symbol(const oarlock_slot *slot, uint64_t dimension);

/* Values */

/** Makes a tensor from a copy of `data`: `size` bytes in native byte order and row-major layout. */
OARLOCK_API oarlock_error *oarlock_tensor_create(
    const oarlock_device *device,
    oarlock_dtype dtype,
    const int64_t *dims,
    uint64_t rank,
    const void *data,
    uint64_t size,
    oarlock_value **value);

/** Makes a tensor from borrowed memory: it must not change until `release`, which must not be NULL, is called with
 *  `context`. A device that shares host memory uses it in place if it is aligned to the size of an element; otherwise,
 *  and for `BOOL`, it is copied and released at once. */
OARLOCK_API oarlock_error *oarlock_tensor_borrow(
    const oarlock_device *device,
    oarlock_dtype dtype,
    const int64_t *dims,
    uint64_t rank,
    const void *data,
    uint64_t size,
    oarlock_release_callback release,
    void *context,
    oarlock_value **value);

/** Makes a tensor of strings, which are copied. Only devices that share host memory support them. */
OARLOCK_API oarlock_error *oarlock_tensor_of_texts(
    const oarlock_device *device,
    const int64_t *dims,
    uint64_t rank,
    const oarlock_text *texts,
    uint64_t count,
    oarlock_value **value);

/** Makes a sequence. The caller keeps the elements. */
OARLOCK_API oarlock_error *oarlock_sequence_create(
    const oarlock_value *const *elements,
    uint64_t count,
    oarlock_value **value);

/** Makes an empty optional. A non-empty optional is its value. */
OARLOCK_API oarlock_error *oarlock_nothing_create(oarlock_value **value);

/** Makes a second handle to the same value, which must be freed too. */
OARLOCK_API oarlock_error *oarlock_value_share(const oarlock_value *value, oarlock_value **shared);

/** Frees a value. NULL is ignored. */
OARLOCK_API void oarlock_value_free(oarlock_value *value);

/** The kind of a value: a tensor, a sequence or nothing; 0 for NULL. */
OARLOCK_API oarlock_kind oarlock_value_kind(const oarlock_value *value);

/** The dtype; 0 if it is not a tensor. */
OARLOCK_API oarlock_dtype oarlock_tensor_dtype(const oarlock_value *value);

/** The number of dimensions; -1 if it is not a tensor. */
OARLOCK_API int64_t oarlock_tensor_rank(const oarlock_value *value);

/** The sizes of the dimensions; NULL if there are none. They belong to the value. */
OARLOCK_API const int64_t *oarlock_tensor_dims(const oarlock_value *value);

/** The number of elements; 0 if it is not a tensor. */
OARLOCK_API uint64_t oarlock_tensor_count(const oarlock_value *value);

/** The number of bytes that `oarlock_tensor_read` writes; 0 for strings, and if it is not a tensor. */
OARLOCK_API uint64_t oarlock_tensor_size(const oarlock_value *value);

/** Copies a tensor to another device. If it is already there, the memory is shared. */
OARLOCK_API oarlock_error *oarlock_tensor_to(
    const oarlock_value *value,
    const oarlock_device *device,
    oarlock_value **copy);

/** Waits until the elements have been computed, and returns the error of that. Reading them waits too. */
OARLOCK_API oarlock_error *oarlock_tensor_wait(const oarlock_value *value);

/** Copies the elements to `target`. `size` must be the exact number of bytes. */
OARLOCK_API oarlock_error *oarlock_tensor_read(const oarlock_value *value, void *target, uint64_t size);

/** Returns the address of the elements on a device that shares host memory. They belong to the value and must not be
 *  written. */
OARLOCK_API oarlock_error *oarlock_tensor_data(const oarlock_value *value, const void **data);

/** Returns an element of a tensor of strings. It belongs to the value. */
OARLOCK_API oarlock_error *oarlock_tensor_text(const oarlock_value *value, uint64_t index, oarlock_text *text);

/** The number of elements of a sequence; 0 if it is not a sequence. */
OARLOCK_API uint64_t oarlock_sequence_size(const oarlock_value *value);

/** Makes a handle to an element of a sequence, which must be freed. */
OARLOCK_API oarlock_error *oarlock_sequence_element(
    const oarlock_value *value,
    uint64_t index,
    oarlock_value **element);

/* Single ops */

/** Makes an empty list of attributes. Setting one copies its value, and replaces an earlier one of the same name. */
OARLOCK_API oarlock_error *oarlock_attributes_create(oarlock_attributes **attributes);

/** Sets an integer; axes, dtypes and booleans are integers too. */
OARLOCK_API oarlock_error *oarlock_attributes_set_int(
    oarlock_attributes *attributes,
    const char *name,
    int64_t value);

/** Sets a number. */
OARLOCK_API oarlock_error *oarlock_attributes_set_float(
    oarlock_attributes *attributes,
    const char *name,
    double value);

/** Sets a text. */
OARLOCK_API oarlock_error *oarlock_attributes_set_string(
    oarlock_attributes *attributes,
    const char *name,
    const char *value);

/** Sets a tensor of numbers. */
OARLOCK_API oarlock_error *oarlock_attributes_set_tensor(
    oarlock_attributes *attributes,
    const char *name,
    const oarlock_value *value);

/** Sets a list of integers. */
OARLOCK_API oarlock_error *oarlock_attributes_set_ints(
    oarlock_attributes *attributes,
    const char *name,
    const int64_t *values,
    uint64_t count);

/** Sets a list of numbers. */
OARLOCK_API oarlock_error *oarlock_attributes_set_floats(
    oarlock_attributes *attributes,
    const char *name,
    const double *values,
    uint64_t count);

/** Sets a list of texts. */
OARLOCK_API oarlock_error *oarlock_attributes_set_strings(
    oarlock_attributes *attributes,
    const char *name,
    const char *const *values,
    uint64_t count);

/** Frees a list of attributes. NULL is ignored. */
OARLOCK_API void oarlock_attributes_free(oarlock_attributes *attributes);

/** Makes an op. `domain` may be NULL for ONNX, `opset` 0 for the newest, and `attributes` NULL for none; the caller
 *  keeps them. */
OARLOCK_API oarlock_error *oarlock_op_create(
    const oarlock_runtime *runtime,
    const char *domain,
    const char *name,
    uint32_t opset,
    const oarlock_attributes *attributes,
    oarlock_op **op);

/** Calls an op for its first `output_count` outputs. An omitted input is NULL. `device` may be NULL for that of the
 *  inputs. The caller frees each output; after an error all are NULL. */
OARLOCK_API oarlock_error *oarlock_op_run(
    const oarlock_op *op,
    const oarlock_device *device,
    const oarlock_value *const *inputs,
    uint64_t input_count,
    oarlock_value **outputs,
    uint64_t output_count);

/** Frees an op, which no other thread may be using. NULL is ignored. */
OARLOCK_API void oarlock_op_free(oarlock_op *op);

#ifdef __cplusplus
}
#endif

#endif
