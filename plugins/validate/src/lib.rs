//! A layer that checks every call through the plugin contract, in both directions: what the host passes, and what a plugin does.
//!
//! Enable it with `layers = ["validate"]`. Each message quotes the rule that was broken. Options in `[plugin.validate]`:
//!
//! - `on_breach`: `log` logs each kind of breach once and counts the others; a call that breaks a rule is refused. `fail` also
//!   turns a breach by the plugin into an error. `abort` ends the process at the first breach.
//! - `backtrace = "on"` keeps where each handle was made, for the report of leaks.
//! - `guards = "off"` leaves out the checks of a kernel's memory, which copy small operands.

mod block_access;
mod breach;
mod call_check;
mod call_watch;
mod callback_watch;
mod float_mode;
mod handle_record;
mod kernel_guard;
mod kernel_operands;
mod kernel_states;
mod list_guard;
mod out_parameters;
mod plugin_ledger;
mod stream_order;
mod validate_kernel;
mod validate_table;
mod validate_work;

oarlock_layer::export_layer!(validate_work::ValidateWork);
