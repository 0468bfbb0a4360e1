//! The native half of the Python package: arrays, ops, devices and models as thin classes over core and engine.
//!
//! Here is whatever would cost as much as a kernel if Python did it. Functions composed of ops are in the package's Python
//! modules, which call `op`.

mod adapters;
mod array;
mod array_view;
mod convert;
mod device;
mod dtype;
mod elementwise;
mod error;
mod exchange;
mod extension;
mod interpreter;
mod jit;
mod model;
mod op_call;
mod operand;
mod plan_report;
mod probe;
mod promote;
mod python_number;
mod random;
mod recorder;
mod reduce;
mod scalar_cache;
mod signals;
mod startup;
mod tensor;
mod trace;
mod ufunc_keywords;
mod views;
mod warning;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _oarlock {
    #[pymodule_export]
    use crate::array::create::{_of_parts, _parts, _steps, full, ones, permute_dims, reshape, zeros};
    #[pymodule_export]
    use crate::array::join::_joined;
    #[pymodule_export]
    use crate::array::pickle::_restored;
    #[pymodule_export]
    use crate::array::print_options::{_print_options, _set_print_options};
    #[pymodule_export]
    use crate::device::stream::{Event, Stream};
    #[pymodule_export]
    use crate::device::{_plugins, PyDevice, default_device, devices, set_default_device};
    #[pymodule_export]
    use crate::dtype::{_dtype, DType};
    #[pymodule_export]
    use crate::error::_in_name_of;
    #[pymodule_export]
    use crate::exchange::from_python::{asarray, from_dlpack};
    #[pymodule_export]
    use crate::exchange::owned_buffer::_given_up;
    #[pymodule_export]
    use crate::extension::function::_add_function;
    #[pymodule_export]
    use crate::extension::shutdown::_end_functions;
    #[pymodule_export]
    use crate::extension::{_add_plugin, _contract, _headers, _kernels, _sdk};
    #[pymodule_export]
    use crate::jit::{_cond, _is_traced, _is_tracing, _signature, _while_loop, FunctionTrace};
    #[pymodule_export]
    use crate::model::{Session, Slot, Stop};
    #[pymodule_export]
    use crate::op_call::op;
    #[pymodule_export]
    use crate::probe::_probe;
    #[pymodule_export]
    use crate::promote::result_type;
    #[pymodule_export]
    use crate::random::_sampled;
    #[pymodule_export]
    use crate::recorder::Recorder;
    #[pymodule_export]
    use crate::reduce::{_axes, _axis, _numbers, _reduced, _summands};
    #[pymodule_export]
    use crate::startup::{_flags, _layers_left_out, _paddle_variables, get_flags, set_flags};
    #[pymodule_export]
    use crate::tensor::PyTensor;
    #[pymodule_export]
    use crate::warning::_tell_warnings;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::interpreter::require_main_interpreter(module.py())?;
        crate::startup::watch_forks(module.py())?;
        crate::dtype::register_dtypes(module)?;
        crate::elementwise::register_functions(module)?;
        module.add("Error", module.py().get_type::<crate::error::Error>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
