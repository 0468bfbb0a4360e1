//! What is tried on one device: each thing that a computation needs by itself, so that a failure has a name, and then a
//! computation.

use oarlock_core::{Error, Runtime};
use oarlock_host::{Block, Device, DeviceFlags, Event, Failure, Stream};

use super::computation;

/// The most bytes that are copied.
const MOST: u64 = 1 << 20;
/// The fewest, on a device that has next to no memory left.
const LEAST: u64 = 1 << 8;

/// One step of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Answers,
    Allocate,
    Copy,
    Fill,
    Stream,
    Compute,
    GiveBack,
}

impl Step {
    /// What the step is called, in the output as well.
    pub(super) fn name(self) -> &'static str {
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

/// Why a step went wrong.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The plugin or the core reported an error.
    Reported(Error),
    /// Nothing was reported, and yet the result is not right.
    WrongResult {
        found: String,
        /// The plugin whose kernel it was; none if it was no kernel.
        plugin: Option<String>,
    },
}

impl Fault {
    fn wrong(found: impl Into<String>) -> Self {
        Self::WrongResult { found: found.into(), plugin: None }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Reported(error)
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Reported(failure.into())
    }
}

/// What a step found out.
type Outcome = Result<String, Fault>;

/// What a step does.
type Act<'a> = &'a dyn Fn(&mut Taken) -> Outcome;

/// Who follows a trial.
pub(super) trait Follow {
    /// A step begins.
    fn begins(&mut self, step: Step);
    /// The step that began last is over.
    fn ends(&mut self, step: Step, outcome: Outcome);
    /// What the device's plugin complained about since this was last asked.
    fn complaints(&mut self) -> Vec<String>;
}

/// Puts a device to the test. The first step that goes wrong ends it, other than giving back.
pub(super) fn run(device: &Device, runtime: &Runtime, follow: &mut impl Follow) {
    let mut taken = Taken::default();
    let steps: [(Step, Act<'_>); 6] = [
        (Step::Answers, &|_| describe(device)),
        (Step::Allocate, &|taken| allocate(device, taken)),
        (Step::Copy, &|taken| copy(taken)),
        (Step::Fill, &|taken| fill(taken)),
        (Step::Stream, &|taken| stream(device, taken)),
        (Step::Compute, &|_| compute(device, runtime)),
    ];
    for (step, act) in steps {
        follow.begins(step);
        let outcome = act(&mut taken);
        let has_failed = outcome.is_err();
        follow.ends(step, outcome);
        if has_failed {
            break;
        }
    }
    follow.begins(Step::GiveBack);
    // Only complaints about giving back count; what was said before may be meant well.
    _ = follow.complaints();
    drop(taken);
    if let Some(Ok(pool)) = in_core(device, runtime).map(oarlock_core::Device::pool) {
        pool.trim();
    }
    let complaints = follow.complaints();
    let outcome = if complaints.is_empty() {
        Ok("everything that was taken".to_owned())
    } else {
        Err(Fault::wrong(complaints.join("; ")))
    };
    follow.ends(Step::GiveBack, outcome);
}

/// What the trial took of the device.
#[derive(Default)]
struct Taken {
    blocks: Option<(Block, Block)>,
    queue: Option<(Stream, Event)>,
}

impl Taken {
    fn blocks(&mut self) -> Result<&mut (Block, Block), Fault> {
        self.blocks.as_mut().ok_or_else(|| Fault::wrong("no memory was taken"))
    }
}

fn describe(device: &Device) -> Outcome {
    let description = device.describe()?;
    let memory = device.memory_stats()?;
    if memory.free > memory.total {
        let found = format!("expected at most {} bytes of free memory, found {}", memory.total, memory.free);
        return Err(Fault::wrong(found));
    }
    let is_simulated = description.flags.contains(DeviceFlags::SIMULATED);
    Ok(if is_simulated { format!("{}, simulated", description.name) } else { description.name })
}

fn allocate(device: &Device, taken: &mut Taken) -> Outcome {
    let size = size_of_block(device.memory_stats()?.free);
    taken.blocks = Some((device.allocate(size)?, device.allocate(size)?));
    Ok(format!("2 blocks of {}", crate::render::bytes(size)))
}

/// How large a block is: a device with little memory is tried as well, and leaves room for others.
fn size_of_block(free: u64) -> u64 {
    let most = (free / 8).clamp(LEAST, MOST);
    1 << most.ilog2()
}

fn copy(taken: &mut Taken) -> Outcome {
    let (first, second) = taken.blocks()?;
    // Every piece of the pattern differs from its neighbours, so that bytes that move are noticed.
    let size = first.size();
    let pattern: Vec<u8> = (0..size).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect();
    first.write(0, &pattern)?;
    second.copy_from(0, first, 0, size)?;
    expect_bytes(second, |at| pattern[at])?;
    Ok("to the device, within it and back".to_owned())
}

fn fill(taken: &mut Taken) -> Outcome {
    const BYTE: u8 = 0xA5;
    let (first, _) = taken.blocks()?;
    first.fill(0, BYTE, first.size())?;
    expect_bytes(first, |_| BYTE)?;
    Ok(format!("with the byte {BYTE:#04x}"))
}

fn expect_bytes(block: &Block, expected: impl Fn(usize) -> u8) -> Result<(), Fault> {
    let mut bytes = vec![0; block.size() as usize];
    block.read(0, &mut bytes)?;
    match bytes.iter().enumerate().find(|(at, found)| **found != expected(*at)) {
        None => Ok(()),
        Some((at, found)) => {
            let right = expected(at);
            Err(Fault::wrong(format!("expected the byte {right:#04x} at {at}, found {found:#04x}")))
        }
    }
}

fn stream(device: &Device, taken: &mut Taken) -> Outcome {
    let (stream, event) = taken.queue.insert((device.create_stream(0)?, device.create_event()?));
    stream.record(event)?;
    event.synchronize()?;
    stream.synchronize()?;
    if !(event.has_happened()? && stream.is_done()?) {
        let found = "expected an event and a stream that were waited for to be done, found that they are not";
        return Err(Fault::wrong(found));
    }
    let has_streams = device.plugin().info().profiles.iter().any(|profile| profile == "async");
    Ok(if has_streams {
        "an event was recorded, and waited for"
    } else {
        "the device has none and does everything at once"
    }
    .to_owned())
}

fn compute(device: &Device, runtime: &Runtime) -> Outcome {
    let missing = || Fault::wrong("expected a device that the core takes, found that it left this one out");
    computation::run(runtime, in_core(device, runtime).ok_or_else(missing)?, 0)
}

/// The device as the core has it.
pub(super) fn in_core<'a>(device: &Device, runtime: &'a Runtime) -> Option<&'a oarlock_core::Device> {
    let name = device.to_string();
    runtime.devices().iter().find(|known| known.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_leave_room_on_a_device_with_little_memory() {
        let sizes = [0, 16 << 10, 1 << 20, 3 << 20, 1 << 40].map(size_of_block);
        assert_eq!(sizes, [256, 2 << 10, 128 << 10, 256 << 10, 1 << 20]);
    }
}
