//! The engine on the CPU and on a simulated device: passes, plans, runs, and refusals of bad input.

mod added_plugins;
mod byte_maps;
mod contrib;
mod convolution_passes;
mod declared_ops;
mod defaults;
mod dynamic;
mod einsum;
mod elementwise;
mod fallback;
mod limits;
mod onnx_file;
mod passes;
mod precision;
mod quantized;
mod random;
mod session_runs;
mod shape_changes;
mod sketch;

#[test]
fn kernels_of_the_cpu_use_the_instruction_set_that_is_forced() {
    oarlock_tests::bare_host::check_forced_isa(&sketch::SHARED_RUNTIME)
        .unwrap_or_else(|problem| panic!("{problem}"));
}
