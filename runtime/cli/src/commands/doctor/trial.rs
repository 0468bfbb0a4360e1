//! The trial of one device: first each thing that a computation needs, one at a time, so that a failure has a name; then a
//! computation.

use oarlock_core::Runtime;
use oarlock_host::{DeviceBlock, DeviceFlags, PluginDevice, PluginEvent, PluginStream};

use super::computation;
use super::trial_fault::TrialFault;

/// Size of the test copy.
const MAX_COPY_BYTES: u64 = 1 << 20;
/// Size on a device with almost no free memory.
const MIN_COPY_BYTES: u64 = 1 << 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrialStep {
    Answers,
    Allocate,
    Copy,
    Fill,
    Stream,
    Compute,
    GiveBack,
}

impl TrialStep {
    /// The name in text and JSON.
    pub(super) fn step_name(self) -> &'static str {
        match self {
            Self::Answers => "description",
            Self::Allocate => "allocation",
            Self::Copy => "copies",
            Self::Fill => "fill",
            Self::Stream => "stream and event",
            Self::Compute => "computation",
            Self::GiveBack => "giving back",
        }
    }
}

/// On success, the finding to show.
type StepResult = Result<String, TrialFault>;

type TrialAction<'a> = &'a dyn Fn(&mut TrialResources) -> StepResult;

/// Follows the progress of a trial.
pub(super) trait TrialObserver {
    fn on_step_begin(&mut self, step: TrialStep);
    fn on_step_end(&mut self, step: TrialStep, outcome: StepResult);
    /// Complaints of the device's plugin since the last call.
    fn take_complaints(&mut self) -> Vec<String>;
}

/// Runs the steps in order. The first failure ends the trial, except that memory is still released.
pub(super) fn run_trial(device: &PluginDevice, runtime: &Runtime, follow: &mut impl TrialObserver) {
    let mut taken = TrialResources::default();
    let steps: [(TrialStep, TrialAction<'_>); 6] = [
        (TrialStep::Answers, &|_| describe_device(device)),
        (TrialStep::Allocate, &|taken| allocate_blocks(device, taken)),
        (TrialStep::Copy, &|taken| copy_block(taken)),
        (TrialStep::Fill, &|taken| fill_block(taken)),
        (TrialStep::Stream, &|taken| synchronize_stream(device, taken)),
        (TrialStep::Compute, &|_| compute_on_device(device, runtime)),
    ];
    for (step, act) in steps {
        follow.on_step_begin(step);
        let outcome = act(&mut taken);
        let has_failed = outcome.is_err();
        follow.on_step_end(step, outcome);
        if has_failed {
            break;
        }
    }
    follow.on_step_begin(TrialStep::GiveBack);
    // Only complaints about releasing memory count; earlier ones may be legitimate warnings.
    _ = follow.take_complaints();
    drop(taken);
    if let Some(Ok(pool)) = find_core_device(device, runtime).map(oarlock_core::Device::memory_pool) {
        pool.trim();
    }
    let complaints = follow.take_complaints();
    let outcome = if complaints.is_empty() {
        Ok("everything that was taken".to_owned())
    } else {
        Err(TrialFault::wrong_result(complaints.join("; ")))
    };
    follow.on_step_end(TrialStep::GiveBack, outcome);
}

/// Device resources that the trial holds.
#[derive(Default)]
struct TrialResources {
    blocks: Option<(DeviceBlock, DeviceBlock)>,
    queue: Option<(PluginStream, PluginEvent)>,
}

impl TrialResources {
    fn memory_blocks(&mut self) -> Result<&mut (DeviceBlock, DeviceBlock), TrialFault> {
        self.blocks.as_mut().ok_or_else(|| TrialFault::wrong_result("no memory was taken"))
    }
}

fn describe_device(device: &PluginDevice) -> StepResult {
    let description = device.describe_device()?;
    let memory = device.memory_stats()?;
    if memory.free > memory.total {
        let found = format!("expected at most {} bytes of free memory, found {}", memory.total, memory.free);
        return Err(TrialFault::wrong_result(found));
    }
    let is_simulated = description.flags.contains(DeviceFlags::SIMULATED);
    Ok(if is_simulated { format!("{}, simulated", description.name) } else { description.name })
}

fn allocate_blocks(device: &PluginDevice, taken: &mut TrialResources) -> StepResult {
    let size = block_size(device.memory_stats()?.free);
    taken.blocks = Some((device.allocate(size)?, device.allocate(size)?));
    Ok(format!("2 blocks of {}", oarlock_report::text::format_bytes(size)))
}

/// The size of the test block: small enough for a device with little free memory, leaving room for others.
fn block_size(free: u64) -> u64 {
    let most = (free / 8).clamp(MIN_COPY_BYTES, MAX_COPY_BYTES);
    1 << most.ilog2()
}

fn copy_block(taken: &mut TrialResources) -> StepResult {
    let (first, second) = taken.memory_blocks()?;
    // Each piece of the pattern differs from its neighbors, so that displaced bytes show.
    let size = first.size();
    let pattern: Vec<u8> = (0..size).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect();
    first.write_bytes(0, &pattern)?;
    second.copy_from(0, first, 0, size)?;
    expect_bytes(second, |at| pattern[at])?;
    Ok("to the device, within it and back".to_owned())
}

fn fill_block(taken: &mut TrialResources) -> StepResult {
    const FILL_BYTE: u8 = 0xA5;
    let (first, _) = taken.memory_blocks()?;
    first.fill_bytes(0, FILL_BYTE, first.size())?;
    expect_bytes(first, |_| FILL_BYTE)?;
    Ok(format!("with the byte {FILL_BYTE:#04x}"))
}

fn expect_bytes(block: &DeviceBlock, expected: impl Fn(usize) -> u8) -> Result<(), TrialFault> {
    let mut bytes = vec![0; block.size() as usize];
    block.read_bytes(0, &mut bytes)?;
    match bytes.iter().enumerate().find(|(at, found)| **found != expected(*at)) {
        None => Ok(()),
        Some((at, found)) => {
            let right = expected(at);
            Err(TrialFault::wrong_result(format!(
                "expected the byte {right:#04x} at {at}, found {found:#04x}"
            )))
        }
    }
}

fn synchronize_stream(device: &PluginDevice, taken: &mut TrialResources) -> StepResult {
    let (stream, event) = taken.queue.insert((device.create_stream(0)?, device.create_event()?));
    stream.record_event(event)?;
    event.synchronize()?;
    stream.synchronize()?;
    if !(event.has_happened()? && stream.is_done()?) {
        let found = "expected an event and a stream that were waited for to be done, found that they are not";
        return Err(TrialFault::wrong_result(found));
    }
    let has_streams = device.plugin().info().profiles.iter().any(|profile| profile == "async");
    Ok(if has_streams {
        "an event was recorded, and waited for"
    } else {
        "the device has none and does everything at once"
    }
    .to_owned())
}

fn compute_on_device(device: &PluginDevice, runtime: &Runtime) -> StepResult {
    let missing =
        || TrialFault::wrong_result("expected a device that the core takes, found that it left this one out");
    computation::run_computation(runtime, find_core_device(device, runtime).ok_or_else(missing)?, 0)
}

/// Looks the plugin's device up in the core.
pub(super) fn find_core_device<'a>(
    device: &PluginDevice,
    runtime: &'a Runtime,
) -> Option<&'a oarlock_core::Device> {
    let name = device.to_string();
    runtime.devices().iter().find(|known| known.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_leave_room_on_a_device_with_little_memory() {
        let sizes = [0, 16 << 10, 1 << 20, 3 << 20, 1 << 40].map(block_size);
        assert_eq!(sizes, [256, 2 << 10, 128 << 10, 256 << 10, 1 << 20]);
    }
}
