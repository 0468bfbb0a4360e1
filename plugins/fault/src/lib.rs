//! A layer that makes calls fail, wait or go wrong as a script says, to see what programs and the runtime make of it.
//!
//! Enable it with `layers = ["fault"]`; `[plugin.fault] script = "…"` is the script, in the language of the simulated device. It
//! counts calls of slots by their names, such as `memory_allocate`, and of kernels by `prepare`, `run` and so on.

mod copy_words;
mod fault_work;
mod layer_script;
mod pending_faults;

oarlock_layer::export_layer!(fault_work::FaultWork);
