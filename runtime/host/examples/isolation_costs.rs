//! Measures what isolation costs: `isolation_costs PLUGIN` runs the kernel `Add` of a device plugin and copies, in this process
//! and in another one.

#![expect(unsafe_code, reason = "a call is a struct of pointers that only its maker can vouch for")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use oarlock_abi as abi;
use oarlock_host::{
    Host, HostConfig, HostEnvironment, HostOptions, PluginDevice, PluginFailure, PluginStream, ProbeCommand,
    probe_child_main,
};

const PROBE_OPTION: &str = "--probe";
const ROUNDS: u32 = 1000;
const CALLS: u32 = 50;
const COPY_BYTES: usize = 256 << 20;
const DIMS: [i64; 1] = [16];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(option), Some(path)) if option == PROBE_OPTION => probe_child_main(Path::new(&path), &[]),
        (Some(path), None) => match compare(Path::new(&path)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("{failure}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("expected the path of a device plugin with a kernel for `Add`");
            ExitCode::FAILURE
        }
    }
}

fn compare(plugin: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for is_isolated in [false, true] {
        let mut options =
            HostOptions::new("isolation costs", HostConfig::default(), HostEnvironment::from_process());
        options.paths = vec![PathBuf::from(plugin)];
        options.isolate = is_isolated.then(|| "*".to_owned()).into_iter().collect();
        options.probe =
            Some(ProbeCommand { program: std::env::current_exe()?, arguments: vec![PROBE_OPTION.into()] });
        let host = Host::start(&options)?;
        let devices = host.devices();
        let device = devices.first().ok_or_else(|| format!("{:#?}", host.report()))?;
        println!("{}", if is_isolated { "in another process" } else { "in this process" });
        measure_calls(device)?;
        measure_copies(device)?;
    }
    Ok(())
}

/// The best time of a call in many short rounds, of which some are not disturbed by other programs.
fn best_time(mut call: impl FnMut() -> Result<(), PluginFailure>) -> Result<Duration, PluginFailure> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..CALLS {
            call()?;
        }
        best = best.min(began.elapsed() / CALLS);
    }
    Ok(best)
}

fn measure_calls(device: &PluginDevice) -> Result<(), Box<dyn std::error::Error>> {
    let size = 4 * DIMS[0] as u64;
    let mut blocks = [device.allocate(size)?, device.allocate(size)?, device.allocate(size)?];
    for block in &mut blocks {
        block.write_bytes(0, &vec![0; size as usize])?;
    }
    let stream: PluginStream = device.create_stream(0)?;
    let tensors = blocks.each_ref().map(|block| abi::Tensor {
        block: block.memory(),
        size_in_bytes: size,
        dtype: abi::Dtype::F32,
        dims: DIMS.as_ptr(),
        dims_count: 1,
        ..abi::Tensor::EMPTY
    });
    let (inputs, outputs) = ([&raw const tensors[0], &raw const tensors[1]], [&raw const tensors[2]]);
    let call = abi::Call {
        device: device.id(),
        queue: stream.handle(),
        inputs: inputs.as_ptr(),
        inputs_count: 2,
        outputs: outputs.as_ptr(),
        outputs_count: 1,
        ..abi::Call::EMPTY
    };
    let kernel =
        device.plugin().kernel_handles().find(|kernel| kernel.info().op == "Add").ok_or("no `Add`")?;
    // SAFETY: everything that the call points to lives until the end of the function.
    let prepared = unsafe { kernel.prepare(&call) }?;
    // SAFETY: as above; the kernel was prepared for this call.
    println!("  a launch of Add    {:?}", best_time(|| unsafe { prepared.run(&call) })?);
    println!("  memory_stats       {:?}", best_time(|| device.memory_stats().map(drop))?);
    let event = device.create_event()?;
    println!("  event_record       {:?}", best_time(|| stream.record_event(&event))?);
    Ok(stream.synchronize()?)
}

fn measure_copies(device: &PluginDevice) -> Result<(), Box<dyn std::error::Error>> {
    let mut block = device.allocate(COPY_BYTES as u64)?;
    let mut memory = vec![1; COPY_BYTES];
    let (mut to, mut from) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        let began = Instant::now();
        block.write_bytes(0, &memory)?;
        to = to.min(began.elapsed());
        let began = Instant::now();
        block.read_bytes(0, &mut memory)?;
        from = from.min(began.elapsed());
    }
    let mut pinned = device.allocate_pinned(COPY_BYTES)?;
    pinned.as_bytes_mut().fill(1);
    let mut shared = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        block.write_bytes(0, pinned.as_bytes())?;
        shared = shared.min(began.elapsed());
    }
    let rate = |time: Duration| COPY_BYTES as f64 / time.as_secs_f64() / 1e9;
    println!("  copies             {:.1} GB/s to the device, {:.1} GB/s back", rate(to), rate(from));
    println!("  from pinned memory {:.1} GB/s to the device", rate(shared));
    Ok(())
}
