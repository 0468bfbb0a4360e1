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
        /// The version of the library, such as `0.1.0`. The text is always there.
        fn oarlock_version() -> *const c_char = runtime::library_version;
        /// The number that `OARLOCK_ABI` had in the header that the library was built with. A program works with every library
        /// of the same soname whose number is at least that of the program's header.
        fn oarlock_abi() -> u32 = runtime::abi_version;
        /// The short name of a dtype, such as `f32`; NULL for a number that is none. The text is always there.
        fn oarlock_dtype_name(dtype: Dtype) -> *const c_char = value::dtype_name;
        /// How many bits one element of a dtype takes; 0 for a number that is none, and for strings.
        fn oarlock_dtype_bits(dtype: Dtype) -> u32 = value::dtype_bits;
    }
    "Errors" {
        /// What kind of thing went wrong; 0 for NULL.
        fn oarlock_error_code(error: *const ErrorHandle) -> Code = error::error_code;
        /// What was expected and what was found, in one sentence; NULL for NULL. The text is the error's.
        fn oarlock_error_message(error: *const ErrorHandle) -> *const c_char = error::error_message;
        /// What to do about it; NULL where nothing is known. The text is the error's.
        fn oarlock_error_hint(error: *const ErrorHandle) -> *const c_char = error::error_hint;
        /// Whether the device is gone, with everything on it: 1 or 0.
        fn oarlock_error_is_device_lost(error: *const ErrorHandle) -> u32 = error::is_device_lost;
        /// Frees an error. NULL is none.
        fn oarlock_error_free(error: *mut ErrorHandle) -> () = error::free_handle;
    }
    "Runtimes and devices" {
        /// Starts a runtime. `options` may be NULL. What they point to is not needed afterwards, but for the context of `log`.
        fn oarlock_runtime_start(options: *const RuntimeOptions, runtime: *mut *mut RuntimeHandle)
            -> *mut ErrorHandle = runtime::start_runtime;
        /// How many devices there are.
        fn oarlock_runtime_device_count(runtime: *const RuntimeHandle) -> u64 = runtime::device_count;
        /// A device by its place in the list; NULL past the end.
        fn oarlock_runtime_device(runtime: *const RuntimeHandle, index: u64) -> *const DeviceHandle
            = runtime::runtime_device;
        /// The device that a name means, such as `cpu`, `opencl:1` or `gpu`; that which is used when none is named for NULL.
        fn oarlock_runtime_find_device(
            runtime: *const RuntimeHandle,
            name: *const c_char,
            device: *mut *const DeviceHandle,
        ) -> *mut ErrorHandle = runtime::find_device;
        /// How many plugins were found and not used.
        fn oarlock_runtime_refusal_count(runtime: *const RuntimeHandle) -> u64 = runtime::refusal_count;
        /// Which plugin is not used, why, and what to do about it; NULL past the end. The text is the runtime's.
        fn oarlock_runtime_refusal(runtime: *const RuntimeHandle, index: u64) -> *const c_char
            = runtime::refusal_text;
        /// Frees a runtime with its devices. NULL is none. Sessions, ops and values that were made of it stay, and keep what
        /// they need.
        fn oarlock_runtime_free(runtime: *mut RuntimeHandle) -> () = runtime::free_handle;
        /// Type and number, such as `cpu:0`. This and the other texts are the device's.
        fn oarlock_device_name(device: *const DeviceHandle) -> *const c_char = device::device_name;
        /// The name for devices of its kind, such as `cpu`.
        fn oarlock_device_type(device: *const DeviceHandle) -> *const c_char = device::device_type;
        /// The name of the product.
        fn oarlock_device_description(device: *const DeviceHandle) -> *const c_char = device::device_description;
        /// Who made it.
        fn oarlock_device_vendor(device: *const DeviceHandle) -> *const c_char = device::device_vendor;
        /// What proves that it works, as its plugin claims.
        fn oarlock_device_support_level(device: *const DeviceHandle) -> SupportLevel = device::support_level;
        /// Whether its memory is the host's, so that tensors are read where they lie: 1 or 0.
        fn oarlock_device_shares_host_memory(device: *const DeviceHandle) -> u32
            = device::shares_host_memory;
        /// Fills in how much memory there is. The caller sets `size` of the struct before.
        fn oarlock_device_memory(device: *const DeviceHandle, statistics: *mut MemoryStatistics)
            -> *mut ErrorHandle = device::device_memory;
        /// Waits until everything on the device is done, and says what went wrong.
        fn oarlock_device_synchronize(device: *const DeviceHandle) -> *mut ErrorHandle = device::synchronize_device;
    }
    "Models" {
        /// Reads a model from a file: ONNX, or Paddle where the name ends in `.pdmodel`. Weights stay in the file, which must
        /// not change while the model, or a session of it, is there.
        fn oarlock_model_load(path: *const c_char, model: *mut *mut ModelHandle) -> *mut ErrorHandle
            = model::load_model;
        /// Reads an ONNX model from memory, which is copied where `release` is NULL. Otherwise it is lent: it must not change
        /// until `release` is called with `context`. Files with weights are looked for below `directory`; where that is NULL
        /// they are an error.
        fn oarlock_model_decode(
            data: *const c_void,
            size: u64,
            release: ReleaseCallback,
            context: *mut c_void,
            directory: *const c_char,
            model: *mut *mut ModelHandle,
        ) -> *mut ErrorHandle = model::decode_model;
        /// What kind of file it came from, such as `ONNX, IR 8`. The text is the model's.
        fn oarlock_model_format(model: *const ModelHandle) -> *const c_char = model::model_format;
        /// Who made it, as the file says. The text is the model's.
        fn oarlock_model_producer(model: *const ModelHandle) -> *const c_char = model::model_producer;
        /// Frees a model. NULL is none. Sessions of it stay.
        fn oarlock_model_free(model: *mut ModelHandle) -> () = model::free_handle;
    }
    "Sessions" {
        /// Readies a model. `options` may be NULL. What they point to is not needed afterwards, but for the context of
        /// `progress`.
        fn oarlock_session_create(
            runtime: *const RuntimeHandle,
            model: *const ModelHandle,
            options: *const SessionOptions,
            session: *mut *mut SessionHandle,
        ) -> *mut ErrorHandle = session::create_session;
        /// How many inputs the model takes.
        fn oarlock_session_input_count(session: *const SessionHandle) -> u64 = session::input_count;
        /// An input by its place; NULL past the end.
        fn oarlock_session_input(session: *const SessionHandle, index: u64) -> *const SlotHandle
            = session::session_input;
        /// How many outputs the model has.
        fn oarlock_session_output_count(session: *const SessionHandle) -> u64 = session::output_count;
        /// An output by its place; NULL past the end.
        fn oarlock_session_output(session: *const SessionHandle, index: u64) -> *const SlotHandle
            = session::session_output;
        /// Runs the model on all its inputs, for all its outputs, in their order. Each output is the caller's to free; after an
        /// error all are NULL.
        fn oarlock_session_run(
            session: *const SessionHandle,
            inputs: *const *const ValueHandle,
            input_count: u64,
            outputs: *mut *mut ValueHandle,
            output_count: u64,
        ) -> *mut ErrorHandle = session::run_session;
        /// The same by name: all inputs in any order, and the outputs that are wanted.
        fn oarlock_session_run_named(
            session: *const SessionHandle,
            input_names: *const *const c_char,
            inputs: *const *const ValueHandle,
            input_count: u64,
            output_names: *const *const c_char,
            outputs: *mut *mut ValueHandle,
            output_count: u64,
        ) -> *mut ErrorHandle = session::run_session_named;
        /// Frees a session, which nobody may be using. NULL is none. Outputs of it stay.
        fn oarlock_session_free(session: *mut SessionHandle) -> () = session::free_handle;
        /// The name of an input or output. This and the other texts are the slot's.
        fn oarlock_slot_name(slot: *const SlotHandle) -> *const c_char = slot::slot_name;
        /// Name and type for people, such as `x: f32[batch, 3]`.
        fn oarlock_slot_description(slot: *const SlotHandle) -> *const c_char = slot::slot_description;
        /// What the model says it is; 0 where it says nothing.
        fn oarlock_slot_kind(slot: *const SlotHandle) -> Kind = slot::slot_kind;
        /// The dtype of a tensor; 0 where the model does not say it.
        fn oarlock_slot_dtype(slot: *const SlotHandle) -> Dtype = slot::slot_dtype;
        /// How many dimensions a tensor has; -1 where the model does not say it.
        fn oarlock_slot_rank(slot: *const SlotHandle) -> i64 = slot::slot_rank;
        /// The sizes of the dimensions, -1 for one that is any; NULL where there are none. They are the slot's.
        fn oarlock_slot_dims(slot: *const SlotHandle) -> *const i64 = slot::slot_dims;
        /// The name of a dimension that is of the same size wherever it has this name; NULL for one without.
        fn oarlock_slot_symbol(slot: *const SlotHandle, dimension: u64) -> *const c_char = slot::slot_symbol;
    }
    "Values" {
        /// Makes a tensor of a copy of `data`: `size` bytes, in the order of the machine, the last dimension fastest.
        fn oarlock_tensor_create(
            device: *const DeviceHandle,
            dtype: Dtype,
            dims: *const i64,
            rank: u64,
            data: *const c_void,
            size: u64,
            value: *mut *mut ValueHandle,
        ) -> *mut ErrorHandle = create_value::create_tensor;
        /// Makes a tensor of memory that is lent: it must not change until `release`, which must not be NULL, is called with
        /// `context`. A device that shares the host's memory uses it where it lies if it lies at a multiple of the size of an
        /// element; otherwise, and for `BOOL`, it is copied and released at once.
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
        /// Makes a tensor of strings, which are copied. Only devices that share the host's memory hold them.
        fn oarlock_tensor_of_texts(
            device: *const DeviceHandle,
            dims: *const i64,
            rank: u64,
            texts: *const Text,
            count: u64,
            value: *mut *mut ValueHandle,
        ) -> *mut ErrorHandle = create_value::create_text_tensor;
        /// Makes a sequence. The elements stay the caller's.
        fn oarlock_sequence_create(
            elements: *const *const ValueHandle,
            count: u64,
            value: *mut *mut ValueHandle,
        ) -> *mut ErrorHandle = create_value::create_sequence;
        /// Makes an optional that holds nothing. One that holds a value is that value.
        fn oarlock_nothing_create(value: *mut *mut ValueHandle) -> *mut ErrorHandle = create_value::create_nothing;
        /// Gives a second handle to the same value, to be freed too.
        fn oarlock_value_share(value: *const ValueHandle, shared: *mut *mut ValueHandle) -> *mut ErrorHandle
            = create_value::share_value;
        /// Frees a value. NULL is none.
        fn oarlock_value_free(value: *mut ValueHandle) -> () = value::free_handle;
        /// What a value is: a tensor, a sequence or nothing; 0 for NULL.
        fn oarlock_value_kind(value: *const ValueHandle) -> Kind = value::value_kind;
        /// The dtype; 0 for what is no tensor.
        fn oarlock_tensor_dtype(value: *const ValueHandle) -> Dtype = value::tensor_dtype;
        /// How many dimensions it has; -1 for what is no tensor.
        fn oarlock_tensor_rank(value: *const ValueHandle) -> i64 = value::tensor_rank;
        /// The sizes of the dimensions; NULL where there are none. They are the value's.
        fn oarlock_tensor_dims(value: *const ValueHandle) -> *const i64 = value::tensor_dims;
        /// How many elements it has; 0 for what is no tensor.
        fn oarlock_tensor_count(value: *const ValueHandle) -> u64 = value::tensor_count;
        /// How many bytes `oarlock_tensor_read` writes; 0 for strings and for what is no tensor.
        fn oarlock_tensor_size(value: *const ValueHandle) -> u64 = value::tensor_size;
        /// Copies a tensor to another device. Where it is there already it is shared.
        fn oarlock_tensor_to(
            value: *const ValueHandle,
            device: *const DeviceHandle,
            copy: *mut *mut ValueHandle,
        ) -> *mut ErrorHandle = create_value::copy_tensor_to;
        /// Waits until the elements are there, and says what went wrong on the way to them. Reading them waits too.
        fn oarlock_tensor_wait(value: *const ValueHandle) -> *mut ErrorHandle = read::wait_for_tensor;
        /// Copies the elements to `target`, which has room for `size` bytes, no more and no less than there are.
        fn oarlock_tensor_read(value: *const ValueHandle, target: *mut c_void, size: u64)
            -> *mut ErrorHandle = read::read_tensor;
        /// Gives the address of the elements, on a device that shares the host's memory. They are the value's, and are not to be
        /// written.
        fn oarlock_tensor_data(value: *const ValueHandle, data: *mut *const c_void) -> *mut ErrorHandle
            = read::tensor_data;
        /// Gives one element of a tensor of strings, which is the value's.
        fn oarlock_tensor_text(value: *const ValueHandle, index: u64, text: *mut Text) -> *mut ErrorHandle
            = read::tensor_text;
        /// How many elements a sequence has; 0 for what is none.
        fn oarlock_sequence_size(value: *const ValueHandle) -> u64 = value::sequence_size;
        /// Gives a handle to one element of a sequence, to be freed.
        fn oarlock_sequence_element(
            value: *const ValueHandle,
            index: u64,
            element: *mut *mut ValueHandle,
        ) -> *mut ErrorHandle = create_value::sequence_element;
    }
    "Single ops" {
        /// Makes an empty list of attributes. All that is put into it is copied, and a second of a name replaces the first.
        fn oarlock_attributes_create(attributes: *mut *mut AttributesHandle) -> *mut ErrorHandle
            = attributes::create_attributes;
        /// Puts an integer in; axes, dtypes and truth values are integers too.
        fn oarlock_attributes_set_int(attributes: *mut AttributesHandle, name: *const c_char, value: i64)
            -> *mut ErrorHandle = attributes::set_int;
        /// Puts a number in.
        fn oarlock_attributes_set_float(attributes: *mut AttributesHandle, name: *const c_char, value: f64)
            -> *mut ErrorHandle = attributes::set_float;
        /// Puts a text in.
        fn oarlock_attributes_set_string(
            attributes: *mut AttributesHandle,
            name: *const c_char,
            value: *const c_char,
        ) -> *mut ErrorHandle = attributes::set_string;
        /// Puts a tensor of numbers in.
        fn oarlock_attributes_set_tensor(
            attributes: *mut AttributesHandle,
            name: *const c_char,
            value: *const ValueHandle,
        ) -> *mut ErrorHandle = attributes::set_tensor;
        /// Puts integers in.
        fn oarlock_attributes_set_ints(
            attributes: *mut AttributesHandle,
            name: *const c_char,
            values: *const i64,
            count: u64,
        ) -> *mut ErrorHandle = attributes::set_ints;
        /// Puts numbers in.
        fn oarlock_attributes_set_floats(
            attributes: *mut AttributesHandle,
            name: *const c_char,
            values: *const f64,
            count: u64,
        ) -> *mut ErrorHandle = attributes::set_floats;
        /// Puts texts in.
        fn oarlock_attributes_set_strings(
            attributes: *mut AttributesHandle,
            name: *const c_char,
            values: *const *const c_char,
            count: u64,
        ) -> *mut ErrorHandle = attributes::set_strings;
        /// Frees a list of attributes. NULL is none.
        fn oarlock_attributes_free(attributes: *mut AttributesHandle) -> () = attributes::free_handle;
        /// Makes an op. `domain` may be NULL for that of ONNX, `opset` 0 for the newest, and `attributes`, which stay the
        /// caller's, NULL for none.
        fn oarlock_op_create(
            runtime: *const RuntimeHandle,
            domain: *const c_char,
            name: *const c_char,
            opset: u32,
            attributes: *const AttributesHandle,
            op: *mut *mut OpHandle,
        ) -> *mut ErrorHandle = op::create_op;
        /// Calls an op for its first `output_count` outputs. An input that is left out is NULL. `device` may be NULL for that of
        /// the inputs. Each output is the caller's to free; after an error all are NULL.
        fn oarlock_op_run(
            op: *const OpHandle,
            device: *const DeviceHandle,
            inputs: *const *const ValueHandle,
            input_count: u64,
            outputs: *mut *mut ValueHandle,
            output_count: u64,
        ) -> *mut ErrorHandle = op::run_op;
        /// Frees an op, which nobody may be using. NULL is none.
        fn oarlock_op_free(op: *mut OpHandle) -> () = op::free_handle;
    }
}
