//! The engine on the CPU and on a simulated device: passes, plans, runs, and what it makes of bad input.

mod added;
mod contrib;
mod defaults;
mod dynamic;
mod einsum;
mod fallback;
mod file;
mod limits;
mod passes;
mod precision;
mod quantized;
mod random;
mod runs;
mod shapes;
mod sketch;

#[test]
fn kernels_of_the_cpu_use_the_instruction_set_that_is_forced() {
    oarlock_tests::bare_host::check_forced_isa(&sketch::RUNTIME)
        .unwrap_or_else(|problem| panic!("{problem}"));
}
