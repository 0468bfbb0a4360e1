/* Made from `runtime/capi/src/interface` by `OARLOCK_WRITE=1 cargo test -p oarlock-capi`. Do not edit. */
/* SPDX-License-Identifier: Apache-2.0
 *
 * The C API of Oarlock: read a model, run it on any device, read what comes out.
 *
 * Errors      A function that can fail gives an `oarlock_error *`: NULL is success, and anything else is freed by the
 *             caller. What cannot fail gives 0, -1 or NULL, as it says, for NULL and for what is not there.
 * Ownership   What a function puts into a `T **` is the caller's and has one `oarlock_T_free`. What it returns as a
 *             `const` pointer belongs to the handle it was asked of and is there for as long as that. What is passed in
 *             stays the caller's, and nothing of it is kept after the call but where a function says so.
 * Threads     Every handle may be used from any number of threads at once, but for `oarlock_attributes`; it is freed once,
 *             when no other thread uses it. Nothing belongs to a thread and nothing is global.
 * Texts       Texts are UTF-8 and end with a zero, both ways; elements of tensors are `oarlock_text`.
 * Structs     One that begins with `size` may grow: set all of it to zero and `size` to its `sizeof`, and older programs
 *             work with newer libraries.
 * Callbacks   They must return: no exception and no `longjmp` may leave them.
 *
 * Plugins are written against `oarlock/contract.h`, which has an error of its own: a source includes one or the other. */
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

/** What kind of thing went wrong. */
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

/** The type of one element of a tensor. `I4` and `U4` hold two elements a byte, the first in the low half; elements of
 *  `BOOL` are bytes of 0 or 1; `F16`, `BF16` and the types of 8 bits are bit patterns. 0 stands for one that is not known. */
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

/** What a value is, or what a model says about one. */
typedef uint32_t oarlock_kind;
#define OARLOCK_KIND_UNKNOWN 0u
#define OARLOCK_KIND_TENSOR 1u
#define OARLOCK_KIND_SEQUENCE 2u
#define OARLOCK_KIND_NOTHING 3u
#define OARLOCK_KIND_OPTIONAL 4u
#define OARLOCK_KIND_MAP 5u

/** How loud a message is. */
typedef uint32_t oarlock_log_level;
#define OARLOCK_LOG_LEVEL_ERROR 1u
#define OARLOCK_LOG_LEVEL_WARNING 2u
#define OARLOCK_LOG_LEVEL_INFO 3u
#define OARLOCK_LOG_LEVEL_DEBUG 4u

/** How precise products have to be. With `BF16` their factors, and images between convolutions, may be rounded to it where
 *  the device is faster so; sums, and all other values between ops, stay what they are. */
typedef uint32_t oarlock_precision;
#define OARLOCK_PRECISION_F32 0u
#define OARLOCK_PRECISION_BF16 1u

/** What proves that a device works. It is the claim of its plugin. */
typedef uint32_t oarlock_support_level;
#define OARLOCK_SUPPORT_LEVEL_UNSPECIFIED 0u
#define OARLOCK_SUPPORT_LEVEL_EMULATOR_VERIFIED 1u
#define OARLOCK_SUPPORT_LEVEL_DRIVER_VERIFIED 2u
#define OARLOCK_SUPPORT_LEVEL_HARDWARE_VERIFIED 3u

/* Functions of the program */

/** Hears what plugins and the runtime have to say. It may be called from any thread, and from several at once, for as
 *  long as the runtime or anything made of it is there. The texts are there until it returns. */
typedef void (*oarlock_log_callback)(
    void *context,
    oarlock_log_level level,
    const char *source,
    const char *message);

/** Hears how many nodes of a model are ready, and of how many: while a session is made, and in the first run with new
 *  shapes. It may be called from any thread, for as long as the session is there. */
typedef void (*oarlock_progress_callback)(void *context, uint64_t ready, uint64_t all);

/** Takes back memory that was lent. It is called exactly once, from any thread, with what was lent: when nothing needs
 *  the memory any more, which is at once where it was copied, and before the function returns if it fails. */
typedef void (*oarlock_release_callback)(void *context, const void *data, uint64_t size);

/* Structs */

/** How a runtime is to start. Zero means the default in every field but `size`. */
typedef struct oarlock_runtime_options {
    /** `sizeof` of this struct. */
    uint64_t size;

    /** Name and version of the program, for what plugins say. */
    const char *program;

    /** The configuration file in place of the user's. */
    const char *config;

    /** The device that is used when none is named, such as `cpu` or `gpu`. */
    const char *device;

    /** Plugins, and directories of plugins, that come before all others. */
    const char *const *plugin_paths;

    /** How many there are. */
    uint64_t plugin_path_count;

    /** Layers to put before every plugin, the outermost first, such as `trace`. */
    const char *const *layers;

    /** How many there are. */
    uint64_t layer_count;

    /** Flags, each as `NAME=VALUE`; `oarlock flags` lists them. */
    const char *const *flags;

    /** How many there are. */
    uint64_t flag_count;

    /** Who hears messages. Without it nobody does. */
    oarlock_log_callback log;

    /** What `log` gets first. */
    void *log_context;

    /** The least important messages that `log` hears; without it warnings. What a layer that was asked for says to the
     *  user, such as where it wrote, is heard in any case. */
    oarlock_log_level log_level;

    /** How many threads kernels may use together; as many as there are processors without it. */
    uint32_t threads;
} oarlock_runtime_options;

/** How a session runs its model. Zero means the default in every field but `size`. */
typedef struct oarlock_session_options {
    /** `sizeof` of this struct. */
    uint64_t size;

    /** Where nodes run, each on the first of these that has a kernel for it; without any it is the runtime's default. What
     *  none has a kernel for the CPU runs, and `log` hears a warning unless the CPU is among them; with the flag
     *  `kernel_fallback` at `error` it is an error. */
    const oarlock_device *const *devices;

    /** How many there are. */
    uint64_t device_count;

    /** Who hears how far the session is. */
    oarlock_progress_callback progress;

    /** What `progress` gets first. */
    void *progress_context;

    /** How precise products have to be; exact without it. */
    oarlock_precision precision;
} oarlock_session_options;

/** How much memory a device has and gave, in bytes. */
typedef struct oarlock_memory_statistics {
    /** `sizeof` of this struct, which the caller sets. */
    uint64_t size;

    /** All memory of the device. */
    uint64_t total;

    /** What is free of it now, for any program. */
    uint64_t free;

    /** What tensors and runs of this runtime hold now. */
    uint64_t allocated;

    /** What this runtime keeps of the device now, to have it at hand. */
    uint64_t reserved;

    /** The most that was held at once. */
    uint64_t peak_allocated;

    /** The most that was kept at once. */
    uint64_t peak_reserved;
} oarlock_memory_statistics;

/** A text with its size, for elements of tensors: UTF-8 that may have zeroes within and need not end with one. */
typedef struct oarlock_text {
    /** The first byte; it may be NULL where there is none. */
    const char *data;

    /** How many bytes. */
    uint64_t size;
} oarlock_text;

/* The library */

/** The version of the library, such as `0.1.0`. The text is always there. */
OARLOCK_API const char *oarlock_version(void);

/** The number that `OARLOCK_ABI` had in the header that the library was built with. A program works with every library
 *  of the same soname whose number is at least that of the program's header. */
OARLOCK_API uint32_t oarlock_abi(void);

/** The short name of a dtype, such as `f32`; NULL for a number that is none. The text is always there. */
OARLOCK_API const char *oarlock_dtype_name(oarlock_dtype dtype);

/** How many bits one element of a dtype takes; 0 for a number that is none, and for strings. */
OARLOCK_API uint32_t oarlock_dtype_bits(oarlock_dtype dtype);

/* Errors */

/** What kind of thing went wrong; 0 for NULL. */
OARLOCK_API oarlock_code oarlock_error_code(const oarlock_error *error);

/** What was expected and what was found, in one sentence; NULL for NULL. The text is the error's. */
OARLOCK_API const char *oarlock_error_message(const oarlock_error *error);

/** What to do about it; NULL where nothing is known. The text is the error's. */
OARLOCK_API const char *oarlock_error_hint(const oarlock_error *error);

/** Whether the device is gone, with everything on it: 1 or 0. */
OARLOCK_API uint32_t oarlock_error_is_device_lost(const oarlock_error *error);

/** Frees an error. NULL is none. */
OARLOCK_API void oarlock_error_free(oarlock_error *error);

/* Runtimes and devices */

/** Starts a runtime. `options` may be NULL. What they point to is not needed afterwards, but for the context of `log`. */
OARLOCK_API oarlock_error *oarlock_runtime_start(const oarlock_runtime_options *options, oarlock_runtime **runtime);

/** How many devices there are. */
OARLOCK_API uint64_t oarlock_runtime_device_count(const oarlock_runtime *runtime);

/** A device by its place in the list; NULL past the end. */
OARLOCK_API const oarlock_device *oarlock_runtime_device(const oarlock_runtime *runtime, uint64_t index);

/** The device that a name means, such as `cpu`, `opencl:1` or `gpu`; that which is used when none is named for NULL. */
OARLOCK_API oarlock_error *oarlock_runtime_find_device(
    const oarlock_runtime *runtime,
    const char *name,
    const oarlock_device **device);

/** How many plugins were found and not used. */
OARLOCK_API uint64_t oarlock_runtime_refusal_count(const oarlock_runtime *runtime);

/** Which plugin is not used, why, and what to do about it; NULL past the end. The text is the runtime's. */
OARLOCK_API const char *oarlock_runtime_refusal(const oarlock_runtime *runtime, uint64_t index);

/** Frees a runtime with its devices. NULL is none. Sessions, ops and values that were made of it stay, and keep what
 *  they need. */
OARLOCK_API void oarlock_runtime_free(oarlock_runtime *runtime);

/** Type and number, such as `cpu:0`. This and the other texts are the device's. */
OARLOCK_API const char *oarlock_device_name(const oarlock_device *device);

/** The name for devices of its kind, such as `cpu`. */
OARLOCK_API const char *oarlock_device_type(const oarlock_device *device);

/** The name of the product. */
OARLOCK_API const char *oarlock_device_description(const oarlock_device *device);

/** Who made it. */
OARLOCK_API const char *oarlock_device_vendor(const oarlock_device *device);

/** What proves that it works, as its plugin claims. */
OARLOCK_API oarlock_support_level oarlock_device_support_level(const oarlock_device *device);

/** Whether its memory is the host's, so that tensors are read where they lie: 1 or 0. */
OARLOCK_API uint32_t oarlock_device_shares_host_memory(const oarlock_device *device);

/** Fills in how much memory there is. The caller sets `size` of the struct before. */
OARLOCK_API oarlock_error *oarlock_device_memory(
    const oarlock_device *device,
    oarlock_memory_statistics *statistics);

/** Waits until everything on the device is done, and says what went wrong. */
OARLOCK_API oarlock_error *oarlock_device_synchronize(const oarlock_device *device);

/* Models */

/** Reads a model from a file: ONNX, or Paddle where the name ends in `.pdmodel`. Weights stay in the file, which must
 *  not change while the model, or a session of it, is there. */
OARLOCK_API oarlock_error *oarlock_model_load(const char *path, oarlock_model **model);

/** Reads an ONNX model from memory, which is copied where `release` is NULL. Otherwise it is lent: it must not change
 *  until `release` is called with `context`. Files with weights are looked for below `directory`; where that is NULL
 *  they are an error. */
OARLOCK_API oarlock_error *oarlock_model_decode(
    const void *data,
    uint64_t size,
    oarlock_release_callback release,
    void *context,
    const char *directory,
    oarlock_model **model);

/** What kind of file it came from, such as `ONNX, IR 8`. The text is the model's. */
OARLOCK_API const char *oarlock_model_format(const oarlock_model *model);

/** Who made it, as the file says. The text is the model's. */
OARLOCK_API const char *oarlock_model_producer(const oarlock_model *model);

/** Frees a model. NULL is none. Sessions of it stay. */
OARLOCK_API void oarlock_model_free(oarlock_model *model);

/* Sessions */

/** Readies a model. `options` may be NULL. What they point to is not needed afterwards, but for the context of
 *  `progress`. */
OARLOCK_API oarlock_error *oarlock_session_create(
    const oarlock_runtime *runtime,
    const oarlock_model *model,
    const oarlock_session_options *options,
    oarlock_session **session);

/** How many inputs the model takes. */
OARLOCK_API uint64_t oarlock_session_input_count(const oarlock_session *session);

/** An input by its place; NULL past the end. */
OARLOCK_API const oarlock_slot *oarlock_session_input(const oarlock_session *session, uint64_t index);

/** How many outputs the model has. */
OARLOCK_API uint64_t oarlock_session_output_count(const oarlock_session *session);

/** An output by its place; NULL past the end. */
OARLOCK_API const oarlock_slot *oarlock_session_output(const oarlock_session *session, uint64_t index);

/** Runs the model on all its inputs, for all its outputs, in their order. Each output is the caller's to free; after an
 *  error all are NULL. */
OARLOCK_API oarlock_error *oarlock_session_run(
    const oarlock_session *session,
    const oarlock_value *const *inputs,
    uint64_t input_count,
    oarlock_value **outputs,
    uint64_t output_count);

/** The same by name: all inputs in any order, and the outputs that are wanted. */
OARLOCK_API oarlock_error *oarlock_session_run_named(
    const oarlock_session *session,
    const char *const *input_names,
    const oarlock_value *const *inputs,
    uint64_t input_count,
    const char *const *output_names,
    oarlock_value **outputs,
    uint64_t output_count);

/** Frees a session, which nobody may be using. NULL is none. Outputs of it stay. */
OARLOCK_API void oarlock_session_free(oarlock_session *session);

/** The name of an input or output. This and the other texts are the slot's. */
OARLOCK_API const char *oarlock_slot_name(const oarlock_slot *slot);

/** Name and type for people, such as `x: f32[batch, 3]`. */
OARLOCK_API const char *oarlock_slot_description(const oarlock_slot *slot);

/** What the model says it is; 0 where it says nothing. */
OARLOCK_API oarlock_kind oarlock_slot_kind(const oarlock_slot *slot);

/** The dtype of a tensor; 0 where the model does not say it. */
OARLOCK_API oarlock_dtype oarlock_slot_dtype(const oarlock_slot *slot);

/** How many dimensions a tensor has; -1 where the model does not say it. */
OARLOCK_API int64_t oarlock_slot_rank(const oarlock_slot *slot);

/** The sizes of the dimensions, -1 for one that is any; NULL where there are none. They are the slot's. */
OARLOCK_API const int64_t *oarlock_slot_dims(const oarlock_slot *slot);

/** The name of a dimension that is of the same size wherever it has this name; NULL for one without. */
OARLOCK_API const char *oarlock_slot_symbol(const oarlock_slot *slot, uint64_t dimension);

/* Values */

/** Makes a tensor of a copy of `data`: `size` bytes, in the order of the machine, the last dimension fastest. */
OARLOCK_API oarlock_error *oarlock_tensor_create(
    const oarlock_device *device,
    oarlock_dtype dtype,
    const int64_t *dims,
    uint64_t rank,
    const void *data,
    uint64_t size,
    oarlock_value **value);

/** Makes a tensor of memory that is lent: it must not change until `release`, which must not be NULL, is called with
 *  `context`. A device that shares the host's memory uses it where it lies if it lies at a multiple of the size of an
 *  element; otherwise, and for `BOOL`, it is copied and released at once. */
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

/** Makes a tensor of strings, which are copied. Only devices that share the host's memory hold them. */
OARLOCK_API oarlock_error *oarlock_tensor_of_texts(
    const oarlock_device *device,
    const int64_t *dims,
    uint64_t rank,
    const oarlock_text *texts,
    uint64_t count,
    oarlock_value **value);

/** Makes a sequence. The elements stay the caller's. */
OARLOCK_API oarlock_error *oarlock_sequence_create(
    const oarlock_value *const *elements,
    uint64_t count,
    oarlock_value **value);

/** Makes an optional that holds nothing. One that holds a value is that value. */
OARLOCK_API oarlock_error *oarlock_nothing_create(oarlock_value **value);

/** Gives a second handle to the same value, to be freed too. */
OARLOCK_API oarlock_error *oarlock_value_share(const oarlock_value *value, oarlock_value **shared);

/** Frees a value. NULL is none. */
OARLOCK_API void oarlock_value_free(oarlock_value *value);

/** What a value is: a tensor, a sequence or nothing; 0 for NULL. */
OARLOCK_API oarlock_kind oarlock_value_kind(const oarlock_value *value);

/** The dtype; 0 for what is no tensor. */
OARLOCK_API oarlock_dtype oarlock_tensor_dtype(const oarlock_value *value);

/** How many dimensions it has; -1 for what is no tensor. */
OARLOCK_API int64_t oarlock_tensor_rank(const oarlock_value *value);

/** The sizes of the dimensions; NULL where there are none. They are the value's. */
OARLOCK_API const int64_t *oarlock_tensor_dims(const oarlock_value *value);

/** How many elements it has; 0 for what is no tensor. */
OARLOCK_API uint64_t oarlock_tensor_count(const oarlock_value *value);

/** How many bytes `oarlock_tensor_read` writes; 0 for strings and for what is no tensor. */
OARLOCK_API uint64_t oarlock_tensor_size(const oarlock_value *value);

/** Copies a tensor to another device. Where it is there already it is shared. */
OARLOCK_API oarlock_error *oarlock_tensor_to(
    const oarlock_value *value,
    const oarlock_device *device,
    oarlock_value **copy);

/** Waits until the elements are there, and says what went wrong on the way to them. Reading them waits too. */
OARLOCK_API oarlock_error *oarlock_tensor_wait(const oarlock_value *value);

/** Copies the elements to `target`, which has room for `size` bytes, no more and no less than there are. */
OARLOCK_API oarlock_error *oarlock_tensor_read(const oarlock_value *value, void *target, uint64_t size);

/** Gives the address of the elements, on a device that shares the host's memory. They are the value's, and are not to be
 *  written. */
OARLOCK_API oarlock_error *oarlock_tensor_data(const oarlock_value *value, const void **data);

/** Gives one element of a tensor of strings, which is the value's. */
OARLOCK_API oarlock_error *oarlock_tensor_text(const oarlock_value *value, uint64_t index, oarlock_text *text);

/** How many elements a sequence has; 0 for what is none. */
OARLOCK_API uint64_t oarlock_sequence_size(const oarlock_value *value);

/** Gives a handle to one element of a sequence, to be freed. */
OARLOCK_API oarlock_error *oarlock_sequence_element(
    const oarlock_value *value,
    uint64_t index,
    oarlock_value **element);

/* Single ops */

/** Makes an empty list of attributes. All that is put into it is copied, and a second of a name replaces the first. */
OARLOCK_API oarlock_error *oarlock_attributes_create(oarlock_attributes **attributes);

/** Puts an integer in; axes, dtypes and truth values are integers too. */
OARLOCK_API oarlock_error *oarlock_attributes_set_int(
    oarlock_attributes *attributes,
    const char *name,
    int64_t value);

/** Puts a number in. */
OARLOCK_API oarlock_error *oarlock_attributes_set_float(
    oarlock_attributes *attributes,
    const char *name,
    double value);

/** Puts a text in. */
OARLOCK_API oarlock_error *oarlock_attributes_set_string(
    oarlock_attributes *attributes,
    const char *name,
    const char *value);

/** Puts a tensor of numbers in. */
OARLOCK_API oarlock_error *oarlock_attributes_set_tensor(
    oarlock_attributes *attributes,
    const char *name,
    const oarlock_value *value);

/** Puts integers in. */
OARLOCK_API oarlock_error *oarlock_attributes_set_ints(
    oarlock_attributes *attributes,
    const char *name,
    const int64_t *values,
    uint64_t count);

/** Puts numbers in. */
OARLOCK_API oarlock_error *oarlock_attributes_set_floats(
    oarlock_attributes *attributes,
    const char *name,
    const double *values,
    uint64_t count);

/** Puts texts in. */
OARLOCK_API oarlock_error *oarlock_attributes_set_strings(
    oarlock_attributes *attributes,
    const char *name,
    const char *const *values,
    uint64_t count);

/** Frees a list of attributes. NULL is none. */
OARLOCK_API void oarlock_attributes_free(oarlock_attributes *attributes);

/** Makes an op. `domain` may be NULL for that of ONNX, `opset` 0 for the newest, and `attributes`, which stay the
 *  caller's, NULL for none. */
OARLOCK_API oarlock_error *oarlock_op_create(
    const oarlock_runtime *runtime,
    const char *domain,
    const char *name,
    uint32_t opset,
    const oarlock_attributes *attributes,
    oarlock_op **op);

/** Calls an op for its first `output_count` outputs. An input that is left out is NULL. `device` may be NULL for that of
 *  the inputs. Each output is the caller's to free; after an error all are NULL. */
OARLOCK_API oarlock_error *oarlock_op_run(
    const oarlock_op *op,
    const oarlock_device *device,
    const oarlock_value *const *inputs,
    uint64_t input_count,
    oarlock_value **outputs,
    uint64_t output_count);

/** Frees an op, which nobody may be using. NULL is none. */
OARLOCK_API void oarlock_op_free(oarlock_op *op);

#ifdef __cplusplus
}
#endif

#endif
