//! The functions, as the header has them.

#![expect(unsafe_code, reason = "functions that C calls take pointers and have fixed names")]

use core::ffi::{c_char, c_void};

use crate::attributes::{self, AttributesHandle};
use crate::c_types::{
    Code, Dtype, Kind, MemoryStatistics, ReleaseCallback, RuntimeOptions, SessionOptions, SupportLevel, Text,
};
use crate::describe::functions;
use crate::device;
use crate::device_handle::DeviceHandle;
use crate::error::{self, ErrorHandle};
use crate::model::{self, ModelHandle};
use crate::op::{self, OpHandle};
use crate::runtime::{self, RuntimeHandle};
use crate::session::{self, SessionHandle};
use crate::slot::{self, SlotHandle};
use crate::value::{self, ValueHandle, create_value, read};

functions! {
    "The library" {
        /// The version of the library, such as `0.1.0`. The text is static.
        fn oarlock_version() -> *const c_char = runtime::library_version;
        /// The value of `OARLOCK_ABI` in the header that the library was built with. A program works with every library of the
        /// same soname whose number is at least that of the program's header.
        fn oarlock_abi() -> u32 = runtime::abi_version;
        /// The short name of a dtype, such as `f32`; NULL if the number is not a dtype. The text is static.
        fn oarlock_dtype_name(dtype: Dtype) -> *const c_char = value::dtype_name;
        /// The size of an element in bits; 0 for strings, and if the number is not a dtype.
        fn oarlock_dtype_bits(dtype: Dtype) -> u32 = value::dtype_bits;
    }
    "Errors" {
        /// The kind of error; 0 for NULL.
        fn oarlock_error_code(error: *const ErrorHandle) -> Code = error::error_code;
        /// What was expected and what was found, in one sentence; NULL for NULL. The text belongs to the error.
        fn oarlock_error_message(error: *const ErrorHandle) -> *const c_char = error::error_message;
        /// What to do about it; NULL if nothing is known. The text belongs to the error.
        fn oarlock_error_hint(error: *const ErrorHandle) -> *const c_char = error::error_hint;
        /// 1 if the device was lost with everything on it, otherwise 0.
        fn oarlock_error_is_device_lost(error: *const ErrorHandle) -> u32 = error::is_device_lost;
        /// Frees an error. NULL is ignored.
        fn oarlock_error_free(error: *mut ErrorHandle) -> () = error::free_handle;
    }
    "Runtimes and devices" {
        /// Starts a runtime. `options` may be NULL. They are not needed after the call, except for the context of `log`.
        fn oarlock_runtime_start(options: *const RuntimeOptions, runtime: *mut *mut RuntimeHandle)
            -> *mut ErrorHandle = runtime::start_runtime;
        /// The number of devices.
        fn oarlock_runtime_device_count(runtime: *const RuntimeHandle) -> u64 = runtime::device_count;
        /// A device by its index; NULL past the end.
        fn oarlock_runtime_device(runtime: *const RuntimeHandle, index: u64) -> *const DeviceHandle
            = runtime::runtime_device;
        /// Finds a device by a name such as `cpu`, `opencl:1` or `gpu`; NULL finds the default device.
        fn oarlock_runtime_find_device(
            runtime: *const RuntimeHandle,
            name: *const c_char,
            device: *mut *const DeviceHandle,
        ) -> *mut ErrorHandle = runtime::find_device;
        /// The number of plugins that were found but refused.
        fn oarlock_runtime_refusal_count(runtime: *const RuntimeHandle) -> u64 = runtime::refusal_count;
        /// Which plugin was refused, why, and what to do about it; NULL past the end. The text belongs to the runtime.
        fn oarlock_runtime_refusal(runtime: *const RuntimeHandle, index: u64) -> *const c_char
            = runtime::refusal_text;
        /// Frees a runtime and its devices. NULL is ignored. Its sessions, ops and values stay valid, and keep what they need.
        fn oarlock_runtime_free(runtime: *mut RuntimeHandle) -> () = runtime::free_handle;
        /// Type and index, such as `cpu:0`. This and the other texts belong to the device.
        fn oarlock_device_name(device: *const DeviceHandle) -> *const c_char = device::device_name;
        /// The device type, such as `cpu`.
        fn oarlock_device_type(device: *const DeviceHandle) -> *const c_char = device::device_type;
        /// The name of the product.
        fn oarlock_device_description(device: *const DeviceHandle) -> *const c_char = device::device_description;
        /// The vendor.
        fn oarlock_device_vendor(device: *const DeviceHandle) -> *const c_char = device::device_vendor;
        /// The support level that its plugin claims.
        fn oarlock_device_support_level(device: *const DeviceHandle) -> SupportLevel = device::support_level;
        /// 1 if the device uses host memory, so that tensors can be read in place, otherwise 0.
        fn oarlock_device_shares_host_memory(device: *const DeviceHandle) -> u32
            = device::shares_host_memory;
        /// Reports memory use. The caller sets `size` of the struct first.
        fn oarlock_device_memory(device: *const DeviceHandle, statistics: *mut MemoryStatistics)
            -> *mut ErrorHandle = device::device_memory;
        /// Waits until all work on the device has finished, and returns its error.
        fn oarlock_device_synchronize(device: *const DeviceHandle) -> *mut ErrorHandle = device::synchronize_device;
    }
    "Models" {
        /// Reads a model from a file: ONNX, or Paddle if the name ends in `.pdmodel`. Weights stay in the file, which must not
        /// change while the model or a session of it exists.
        fn oarlock_model_load(path: *const c_char, model: *mut *mut ModelHandle) -> *mut ErrorHandle
            = model::load_model;
        /// Reads an ONNX model from memory, which is copied if `release` is NULL. Otherwise the library borrows it: it must not
        /// change until `release` is called with `context`. Files with weights are searched below `directory`; if that is NULL,
        /// they are an error.
        fn oarlock_model_decode(
            data: *const c_void,
            size: u64,
            release: ReleaseCallback,
            context: *mut c_void,
            directory: *const c_char,
            model: *mut *mut ModelHandle,
        ) -> *mut ErrorHandle = model::decode_model;
        /// The file format, such as `ONNX, IR 8`. The text belongs to the model.
        fn oarlock_model_format(model: *const ModelHandle) -> *const c_char = model::model_format;
        /// The producer that the file names. The text belongs to the model.
        fn oarlock_model_producer(model: *const ModelHandle) -> *const c_char = model::model_producer;
        /// Frees a model. NULL is ignored. Its sessions stay valid.
        fn oarlock_model_free(model: *mut ModelHandle) -> () = model::free_handle;
    }
    "Sessions" {
        /// Prepares a model to run. `options` may be NULL. They are not needed after the call, except for the context of
        /// `progress`.
        fn oarlock_session_create(
            runtime: *const RuntimeHandle,
            model: *const ModelHandle,
            options: *const SessionOptions,
            session: *mut *mut SessionHandle,
        ) -> *mut ErrorHandle = session::create_session;
        /// The number of inputs.
        fn oarlock_session_input_count(session: *const SessionHandle) -> u64 = session::input_count;
        /// An input by its index; NULL past the end.
        fn oarlock_session_input(session: *const SessionHandle, index: u64) -> *const SlotHandle
            = session::session_input;
        /// The number of outputs.
        fn oarlock_session_output_count(session: *const SessionHandle) -> u64 = session::output_count;
        /// An output by its index; NULL past the end.
        fn oarlock_session_output(session: *const SessionHandle, index: u64) -> *const SlotHandle
            = session::session_output;
        /// Runs the model on all inputs and computes all outputs, both in order. The caller frees each output; after an error
        /// all are NULL.
        fn oarlock_session_run(
            session: *const SessionHandle,
            inputs: *const *const ValueHandle,
            input_count: u64,
            outputs: *mut *mut ValueHandle,
            output_count: u64,
        ) -> *mut ErrorHandle = session::run_session;
        /// Runs the model by name: all inputs in any order, and only the requested outputs.
        fn oarlock_session_run_named(
            session: *const SessionHandle,
            input_names: *const *const c_char,
            inputs: *const *const ValueHandle,
            input_count: u64,
            output_names: *const *const c_char,
            outputs: *mut *mut ValueHandle,
            output_count: u64,
        ) -> *mut ErrorHandle = session::run_session_named;
        /// Frees a session, which no other thread may be using. NULL is ignored. Its outputs stay valid.
        fn oarlock_session_free(session: *mut SessionHandle) -> () = session::free_handle;
        /// The name of an input or output. This and the other texts belong to the slot.
        fn oarlock_slot_name(slot: *const SlotHandle) -> *const c_char = slot::slot_name;
        /// Name and type as text, such as `x: f32[batch, 3]`.
        fn oarlock_slot_description(slot: *const SlotHandle) -> *const c_char = slot::slot_description;
        /// The kind that the model states; 0 if it states none.
        fn oarlock_slot_kind(slot: *const SlotHandle) -> Kind = slot::slot_kind;
        /// The dtype of a tensor; 0 if the model does not state it.
        fn oarlock_slot_dtype(slot: *const SlotHandle) -> Dtype = slot::slot_dtype;
        /// The number of dimensions of a tensor; -1 if the model does not state it.
        fn oarlock_slot_rank(slot: *const SlotHandle) -> i64 = slot::slot_rank;
        /// The sizes of the dimensions, -1 for any size; NULL if there are none. They belong to the slot.
        fn oarlock_slot_dims(slot: *const SlotHandle) -> *const i64 = slot::slot_dims;
        /// The name of a dimension, which has the same size everywhere; NULL if it has no name.
        fn oarlock_slot_symbol(slot: *const SlotHandle, dimension: u64) -> *const c_char = slot::slot_symbol;
    }
    "Values" {
        /// Makes a tensor from a copy of `data`: `size` bytes in native byte order and row-major layout.
        fn oarlock_tensor_create(
            device: *const DeviceHandle,
            dtype: Dtype,
            dims: *const i64,
            rank: u64,
            data: *const c_void,
            size: u64,
            value: *mut *mut ValueHandle,
        ) -> *mut ErrorHandle = create_value::create_tensor;
        /// Makes a tensor from borrowed memory: it must not change until `release`, which must not be NULL, is called with
        /// `context`. A device that shares host memory uses it in place if it is aligned to the size of an element; otherwise,
        /// and for `BOOL`, it is copied and released at once.
        fn oarlock_tensor_borrow(
            device: *const DeviceHandle,
            dtype: Dtype,
            dims: *const i64,
            rank: u64,
            data: *const c_void,
            size: u64,
            release: ReleaseCallback,
            context: *mut c_void,
            value: *mut *mut ValueHandle,
        ) -> *mut ErrorHandle = create_value::borrow_tensor;
        /// Makes a tensor of strings, which are copied. Only devices that share host memory support them.
        fn oarlock_tensor_of_texts(
            device: *const DeviceHandle,
            dims: *const i64,
            rank: u64,
            texts: *const Text,
            count: u64,
            value: *mut *mut ValueHandle,
        ) -> *mut ErrorHandle = create_value::create_text_tensor;
        /// Makes a sequence. The caller keeps the elements.
        fn oarlock_sequence_create(
            elements: *const *const ValueHandle,
            count: u64,
            value: *mut *mut ValueHandle,
        ) -> *mut ErrorHandle = create_value::create_sequence;
        /// Makes an empty optional. A non-empty optional is its value.
        fn oarlock_nothing_create(value: *mut *mut ValueHandle) -> *mut ErrorHandle = create_value::create_nothing;
        /// Makes a second handle to the same value, which must be freed too.
        fn oarlock_value_share(value: *const ValueHandle, shared: *mut *mut ValueHandle) -> *mut ErrorHandle
            = create_value::share_value;
        /// Frees a value. NULL is ignored.
        fn oarlock_value_free(value: *mut ValueHandle) -> () = value::free_handle;
        /// The kind of a value: a tensor, a sequence or nothing; 0 for NULL.
        fn oarlock_value_kind(value: *const ValueHandle) -> Kind = value::value_kind;
        /// The dtype; 0 if it is not a tensor.
        fn oarlock_tensor_dtype(value: *const ValueHandle) -> Dtype = value::tensor_dtype;
        /// The number of dimensions; -1 if it is not a tensor.
        fn oarlock_tensor_rank(value: *const ValueHandle) -> i64 = value::tensor_rank;
        /// The sizes of the dimensions; NULL if there are none. They belong to the value.
        fn oarlock_tensor_dims(value: *const ValueHandle) -> *const i64 = value::tensor_dims;
        /// The number of elements; 0 if it is not a tensor.
        fn oarlock_tensor_count(value: *const ValueHandle) -> u64 = value::tensor_count;
        /// The number of bytes that `oarlock_tensor_read` writes; 0 for strings, and if it is not a tensor.
        fn oarlock_tensor_size(value: *const ValueHandle) -> u64 = value::tensor_size;
        /// Copies a tensor to another device. If it is already there, the memory is shared.
        fn oarlock_tensor_to(
            value: *const ValueHandle,
            device: *const DeviceHandle,
            copy: *mut *mut ValueHandle,
        ) -> *mut ErrorHandle = create_value::copy_tensor_to;
        /// Waits until the elements have been computed, and returns the error of that. Reading them waits too.
        fn oarlock_tensor_wait(value: *const ValueHandle) -> *mut ErrorHandle = read::wait_for_tensor;
        /// Copies the elements to `target`. `size` must be the exact number of bytes.
        fn oarlock_tensor_read(value: *const ValueHandle, target: *mut c_void, size: u64)
            -> *mut ErrorHandle = read::read_tensor;
        /// Returns the address of the elements on a device that shares host memory. They belong to the value and must not be
        /// written.
        fn oarlock_tensor_data(value: *const ValueHandle, data: *mut *const c_void) -> *mut ErrorHandle
            = read::tensor_data;
        /// Returns an element of a tensor of strings. It belongs to the value.
        fn oarlock_tensor_text(value: *const ValueHandle, index: u64, text: *mut Text) -> *mut ErrorHandle
            = read::tensor_text;
        /// The number of elements of a sequence; 0 if it is not a sequence.
        fn oarlock_sequence_size(value: *const ValueHandle) -> u64 = value::sequence_size;
        /// Makes a handle to an element of a sequence, which must be freed.
        fn oarlock_sequence_element(
            value: *const ValueHandle,
            index: u64,
            element: *mut *mut ValueHandle,
        ) -> *mut ErrorHandle = create_value::sequence_element;
    }
    "Single ops" {
        /// Makes an empty list of attributes. Setting one copies its value, and replaces an earlier one of the same name.
        fn oarlock_attributes_create(attributes: *mut *mut AttributesHandle) -> *mut ErrorHandle
            = attributes::create_attributes;
        /// Sets an integer; axes, dtypes and booleans are integers too.
        fn oarlock_attributes_set_int(attributes: *mut AttributesHandle, name: *const c_char, value: i64)
            -> *mut ErrorHandle = attributes::set_int;
        /// Sets a number.
        fn oarlock_attributes_set_float(attributes: *mut AttributesHandle, name: *const c_char, value: f64)
            -> *mut ErrorHandle = attributes::set_float;
        /// Sets a text.
        fn oarlock_attributes_set_string(
            attributes: *mut AttributesHandle,
            name: *const c_char,
            value: *const c_char,
        ) -> *mut ErrorHandle = attributes::set_string;
        /// Sets a tensor of numbers.
        fn oarlock_attributes_set_tensor(
            attributes: *mut AttributesHandle,
            name: *const c_char,
            value: *const ValueHandle,
        ) -> *mut ErrorHandle = attributes::set_tensor;
        /// Sets a list of integers.
        fn oarlock_attributes_set_ints(
            attributes: *mut AttributesHandle,
            name: *const c_char,
            values: *const i64,
            count: u64,
        ) -> *mut ErrorHandle = attributes::set_ints;
        /// Sets a list of numbers.
        fn oarlock_attributes_set_floats(
            attributes: *mut AttributesHandle,
            name: *const c_char,
            values: *const f64,
            count: u64,
        ) -> *mut ErrorHandle = attributes::set_floats;
        /// Sets a list of texts.
        fn oarlock_attributes_set_strings(
            attributes: *mut AttributesHandle,
            name: *const c_char,
            values: *const *const c_char,
            count: u64,
        ) -> *mut ErrorHandle = attributes::set_strings;
        /// Frees a list of attributes. NULL is ignored.
        fn oarlock_attributes_free(attributes: *mut AttributesHandle) -> () = attributes::free_handle;
        /// Makes an op. `domain` may be NULL for ONNX, `opset` 0 for the newest, and `attributes` NULL for none; the caller
        /// keeps them.
        fn oarlock_op_create(
            runtime: *const RuntimeHandle,
            domain: *const c_char,
            name: *const c_char,
            opset: u32,
            attributes: *const AttributesHandle,
            op: *mut *mut OpHandle,
        ) -> *mut ErrorHandle = op::create_op;
        /// Calls an op for its first `output_count` outputs. An omitted input is NULL. `device` may be NULL for that of the
        /// inputs. The caller frees each output; after an error all are NULL.
        fn oarlock_op_run(
            op: *const OpHandle,
            device: *const DeviceHandle,
            inputs: *const *const ValueHandle,
            input_count: u64,
            outputs: *mut *mut ValueHandle,
            output_count: u64,
        ) -> *mut ErrorHandle = op::run_op;
        /// Frees an op, which no other thread may be using. NULL is ignored.
        fn oarlock_op_free(op: *mut OpHandle) -> () = op::free_handle;
    }
}
