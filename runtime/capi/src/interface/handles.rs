//! The types that programs only hold pointers to.

use crate::attributes::AttributesHandle;
use crate::describe::opaques;
use crate::device_handle::DeviceHandle;
use crate::error::ErrorHandle;
use crate::model::ModelHandle;
use crate::op::OpHandle;
use crate::runtime::RuntimeHandle;
use crate::session::SessionHandle;
use crate::slot::SlotHandle;
use crate::value::ValueHandle;

opaques! {
    /// What went wrong. Functions that can fail give one, or NULL when they succeeded; the caller frees it.
    ErrorHandle = "oarlock_error";
    /// Plugins with their devices and kernels. A program usually has one.
    RuntimeHandle = "oarlock_runtime";
    /// A device of a runtime. It is the runtime's and there for as long as that, and is not freed.
    DeviceHandle = "oarlock_device";
    /// A model as it was read.
    ModelHandle = "oarlock_model";
    /// A model that is ready to run, from any number of threads at once.
    SessionHandle = "oarlock_session";
    /// An input or output of a session. It is the session's and there for as long as that, and is not freed.
    SlotHandle = "oarlock_slot";
    /// What goes into a run and comes out of it: a tensor, a sequence of values, or nothing. It never changes.
    ValueHandle = "oarlock_value";
    /// The attributes of an op, by name. The only handle that changes: it is for one thread at a time.
    AttributesHandle = "oarlock_attributes";
    /// An op as a program calls it. It remembers how it was called, so make one for each place that calls often.
    OpHandle = "oarlock_op";
}
