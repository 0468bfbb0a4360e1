//! How fast a few things are. These figures are for information: they pass and fail nothing, since they depend on the machine and on
//! whatever else runs on it.

use std::time::{Duration, Instant};

use oarlock_abi as abi;

use crate::bench::{TestBench, Verdict, lock_unpoisoned};
use crate::device::DeviceUnderTest;
use crate::findings::SpeedMeasurement;
use crate::kernel_record::KernelUnderTest;
use crate::trial::{CallLayout, kernel_trials};

/// The sizes of copies, a small one and one that no cache holds.
const COPY_SIZES: [usize; 2] = [64 << 10, 32 << 20];
const RUNS: u32 = 5;
const LAUNCHES: u32 = 200;

/// Measures copies to and from the first device, and the launch of a small kernel.
pub(crate) fn measure_speed(bench: &TestBench) -> Verdict {
    let Some(device) = bench.devices()?.first().copied() else { return Ok(()) };
    let mut figures = Vec::new();
    for size in COPY_SIZES {
        figures.extend(copy_bandwidths(device, size)?);
    }
    figures.extend(launch_cost(bench, device)?);
    *lock_unpoisoned(&bench.measurements) = figures;
    Ok(())
}

fn shortest(mut run: impl FnMut() -> Verdict) -> Verdict<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn copy_bandwidths(device: DeviceUnderTest<'_>, size: usize) -> Verdict<Vec<SpeedMeasurement>> {
    let data = vec![1; size];
    // A device with little memory is measured with small copies alone.
    let Ok(block) = device.try_allocate(size as u64)? else { return Ok(Vec::new()) };
    let to_device = shortest(|| {
        block.write_bytes(0, &data)?;
        device.synchronize()
    })?;
    let to_host = shortest(|| block.read_bytes(0, size).map(drop))?;
    block.deallocate()?;
    let figure = |direction: &str, time: Duration| SpeedMeasurement {
        name: format!("copy of {} KiB {direction}", size >> 10),
        value: size as f64 / time.as_secs_f64() / 1e9,
        unit: "GB/s".to_owned(),
    };
    Ok(vec![figure("to the device", to_device), figure("to the host", to_host)])
}

/// The time of one run of the first kernel that takes a call, with few elements.
fn launch_cost(bench: &TestBench, device: DeviceUnderTest<'_>) -> Verdict<Option<SpeedMeasurement>> {
    let kernels = bench.subject().kernels.iter().map(|raw| KernelUnderTest { raw });
    for kernel in kernels.filter(|kernel| kernel.runs_on(&bench.subject().device_type)) {
        for trial in kernel_trials(kernel, device)? {
            let Ok(case) = trial.first_accepted() else { continue };
            let operands = trial.make_operands(&case, CallLayout::Contiguous)?;
            let state = trial.prepare_call(&operands)?;
            let time = operands.with_trial_call(&trial, abi::Stream(0), |call| {
                shortest(|| {
                    for _ in 0..LAUNCHES {
                        state.run(call)?;
                    }
                    device.synchronize()
                })
            })?;
            return Ok(Some(SpeedMeasurement {
                name: format!("launch of a small `{}`", kernel.op_name()),
                value: time.as_secs_f64() * 1e6 / f64::from(LAUNCHES),
                unit: "µs".to_owned(),
            }));
        }
    }
    Ok(None)
}
