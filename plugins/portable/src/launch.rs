//! Launches: a program is compiled on first use, then cached in memory and on disk.

use oarlock_sdk::{KernelCall, Result};

use crate::argument_list::ArgumentList;
use crate::device::GpuDevices;
use crate::gpu::{CompiledProgram, Gpu, GpuQueue as _, LaunchArgument, LaunchGrid};
use crate::program_store::{ProgramKey, ProgramStore};
use crate::source::ProgramVariant;

/// Loads a program from the disk cache, or compiles it.
fn build_program<G: Gpu>(gpu: &G, store: &ProgramStore, source: &str) -> Result<G::Program> {
    // A second copy on disk would save nothing.
    if gpu.caches_programs() {
        return Ok(gpu.compile_program(source, false)?.program);
    }
    let key = ProgramKey::new(source, &gpu.compiler_identity()?);
    // A driver may refuse a binary that is intact. Compiling again is always right.
    if let Some(program) = store.read_binary(&key).and_then(|binary| gpu.load_program(&binary).ok()) {
        return Ok(program);
    }
    let CompiledProgram { program, binary } = gpu.compile_program(source, true)?;
    if let Some(binary) = binary {
        store.write_binary(&key, &binary);
    }
    Ok(program)
}

/// Builds a variant if needed and launches it for a call.
pub(crate) fn launch_variant<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    variant: &ProgramVariant,
    groups: u32,
    arguments: &ArgumentList,
) -> Result<()> {
    let session = gpus.device_session(call.device())?;
    let queue = session.stream_queue(call.stream())?;
    let program = session.programs.get_or_build(variant, || {
        let has_f64 = gpus.device_properties(call.device())?.has_f64;
        let source = variant.generate_source(session.driver_gpu().kernel_language(), has_f64);
        build_program(session.driver_gpu(), gpus.program_store(), &source)
    })?;
    let grid = LaunchGrid { groups, block: variant.work_group_shape() };
    let mut arguments = arguments.resolve_arguments(&session)?;
    if !variant.can_fail() {
        return queue.launch_program(&program, grid, &arguments);
    }
    let word = session.fault_word(call.stream())?;
    arguments.push(LaunchArgument::Memory(Some(word.block.clone())));
    if call.stream().0 != 0 {
        // Counted after the launch. Counted before, another thread could take the fault for read before the launch is in the queue.
        queue.launch_program(&program, grid, &arguments)?;
        word.count_launch();
        return Ok(());
    }
    // On the default stream the kernel has finished, so a fault it found is this call's error.
    // The lock spans launch and read, so that no other thread reads or clears the fault in between.
    let turn = word.lock_reading();
    queue.launch_program(&program, grid, &arguments)?;
    word.count_launch();
    session.read_word_locked(&word, word.launch_count(), &turn)
}
