//! A small computation on one device, step by step, whose right results are known.

use std::sync::Arc;

use oarlock_abi::Dtype;
use oarlock_host::{Block, Device, DeviceFlags, DeviceTensor, Event, Failure, Kernel, Plugin, Stream};

/// The most bytes that are copied.
const MOST: u64 = 1 << 20;
/// The fewest, on a device that has next to no memory left.
const LEAST: u64 = 1 << 8;
/// How many numbers are added.
const COUNT: i64 = 1000;
/// The dtypes to add, in the order of preference: the first, and one of the others.
const DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::I32, Dtype::I64, Dtype::F64];

/// One step of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Answers,
    Allocate,
    Copy,
    Fill,
    Stream,
    Add,
    GiveBack,
}

impl Step {
    /// What the step is called, in the output as well.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Answers => "description",
            Self::Allocate => "allocation",
            Self::Copy => "copies",
            Self::Fill => "fill",
            Self::Stream => "stream and event",
            Self::Add => "addition",
            Self::GiveBack => "giving back",
        }
    }
}

/// Why a step went wrong.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The plugin reported a failure.
    Reported(Failure),
    /// Nothing was reported, and yet the result is not right.
    WrongResult(String),
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Reported(failure)
    }
}

/// What a step found out.
type Outcome = Result<String, Fault>;

/// What a step does.
type Act<'a> = &'a dyn Fn(&mut Taken) -> Outcome;

/// Who follows a trial.
pub(crate) trait Follow {
    /// A step begins.
    fn begins(&mut self, step: Step);
    /// The step that began last is over.
    fn ends(&mut self, step: Step, outcome: Outcome);
    /// What the device's plugin complained about since this was last asked.
    fn complaints(&mut self) -> Vec<String>;
}

/// Puts a device to the test, with the kernels of all plugins. The first step that goes wrong ends it, other than giving
/// back.
pub(crate) fn run(device: &Device, plugins: &[Arc<Plugin>], follow: &mut impl Follow) {
    let mut taken = Taken::default();
    let steps: [(Step, Act<'_>); 6] = [
        (Step::Answers, &|_| describe(device)),
        (Step::Allocate, &|taken| allocate(device, taken)),
        (Step::Copy, &|taken| copy(taken)),
        (Step::Fill, &|taken| fill(taken)),
        (Step::Stream, &|taken| stream(device, taken)),
        (Step::Add, &|_| add(device, plugins)),
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
    let complaints = follow.complaints();
    let outcome = if complaints.is_empty() {
        Ok("everything that was taken".to_owned())
    } else {
        Err(Fault::WrongResult(complaints.join("; ")))
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
        self.blocks.as_mut().ok_or_else(|| Fault::WrongResult("no memory was taken".to_owned()))
    }
}

fn describe(device: &Device) -> Outcome {
    let description = device.describe()?;
    let memory = device.memory_stats()?;
    if memory.free > memory.total {
        let found = format!("expected at most {} bytes of free memory, found {}", memory.total, memory.free);
        return Err(Fault::WrongResult(found));
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
            Err(Fault::WrongResult(format!("expected the byte {right:#04x} at {at}, found {found:#04x}")))
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
        return Err(Fault::WrongResult(found.to_owned()));
    }
    let has_streams = device.plugin().info().profiles.iter().any(|profile| profile == "async");
    Ok(if has_streams {
        "an event was recorded, and waited for"
    } else {
        "the device has none and does everything at once"
    }
    .to_owned())
}

fn add(device: &Device, plugins: &[Arc<Plugin>]) -> Outcome {
    let adders = adders(device, plugins);
    let choice = |dtype: &Dtype| {
        let adder =
            adders.iter().find(|kernel| kernel.info.inputs.iter().all(|input| input.takes(*dtype)))?;
        Some((adder, *dtype))
    };
    let (first, others) = DTYPES.split_at(1);
    let chosen: Vec<_> =
        first.iter().find_map(choice).into_iter().chain(others.iter().find_map(choice)).collect();
    for (adder, dtype) in &chosen {
        add_numbers(device, adder, *dtype)?;
    }
    let names: Vec<&str> = chosen.iter().filter_map(|(_, dtype)| dtype.name()).collect();
    Ok(match (adders.is_empty(), names.is_empty()) {
        (true, _) => "not tried, since the device has no kernel for `Add`".to_owned(),
        (_, true) => "not tried, since the kernel for `Add` takes none of the usual dtypes".to_owned(),
        _ => format!("{COUNT} sums each of {}", names.join(" and ")),
    })
}

/// The kernels that add on this device, the best first.
fn adders<'a>(device: &Device, plugins: &'a [Arc<Plugin>]) -> Vec<&'a Kernel> {
    let fits = |kernel: &&Kernel| {
        let info = &kernel.info;
        info.op == "Add"
            && ["", "ai.onnx"].contains(&info.domain.as_str())
            && info.device_type == device.device_type()
    };
    let mut adders: Vec<&Kernel> = plugins.iter().flat_map(|plugin| plugin.kernels()).filter(fits).collect();
    adders.sort_by_key(|kernel| std::cmp::Reverse(kernel.info.score));
    adders
}

fn add_numbers(device: &Device, adder: &Kernel, dtype: Dtype) -> Result<(), Fault> {
    // Small enough for every dtype to hold exactly.
    let (left, right) = (|at: i64| at, |at: i64| COUNT - at / 2);
    let tensor = |number: &dyn Fn(i64) -> i64| -> Result<DeviceTensor, Failure> {
        let mut tensor = DeviceTensor::allocate(device, dtype, &[COUNT])?;
        let bytes: Vec<u8> = (0..COUNT).flat_map(|at| encode(dtype, number(at) as i16)).collect();
        tensor.block.write(0, &bytes)?;
        Ok(tensor)
    };
    let (a, b) = (tensor(&left)?, tensor(&right)?);
    let mut outputs = [Some(DeviceTensor::allocate(device, dtype, &[COUNT])?)];
    adder.run(device, &[&a, &b], &mut outputs)?;
    let [Some(sum)] = outputs else {
        return Err(Fault::WrongResult("expected a sum, found none".to_owned()));
    };
    let mut bytes = vec![0; sum.block.size() as usize];
    sum.block.read(0, &mut bytes)?;
    let size = bytes.len() / COUNT as usize;
    for (at, found) in (0..COUNT).zip(bytes.chunks_exact(size)) {
        let right = left(at) + right(at);
        let found = decode(dtype, found);
        if found != Some(right as f64) {
            let (name, found) = (dtype.name().unwrap_or_default(), found.unwrap_or(f64::NAN));
            return Err(Fault::WrongResult(format!(
                "expected the {name} sum {right} at {at}, found {found}"
            )));
        }
    }
    Ok(())
}

/// The bytes of a number in the memory of a device.
fn encode(dtype: Dtype, number: i16) -> Vec<u8> {
    match dtype {
        Dtype::F64 => f64::from(number).to_ne_bytes().to_vec(),
        Dtype::I32 => i32::from(number).to_ne_bytes().to_vec(),
        Dtype::I64 => i64::from(number).to_ne_bytes().to_vec(),
        _ => f32::from(number).to_ne_bytes().to_vec(),
    }
}

/// The number that bytes in the memory of a device are.
fn decode(dtype: Dtype, bytes: &[u8]) -> Option<f64> {
    Some(match dtype {
        Dtype::F64 => f64::from_ne_bytes(bytes.try_into().ok()?),
        Dtype::I32 => i32::from_ne_bytes(bytes.try_into().ok()?).into(),
        Dtype::I64 => i64::from_ne_bytes(bytes.try_into().ok()?) as f64,
        _ => f32::from_ne_bytes(bytes.try_into().ok()?).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_leave_room_on_a_device_with_little_memory() {
        let sizes = [0, 16 << 10, 1 << 20, 3 << 20, 1 << 40].map(size_of_block);
        assert_eq!(sizes, [256, 2 << 10, 128 << 10, 256 << 10, 1 << 20]);
    }

    #[test]
    fn numbers_survive_the_memory_of_a_device() {
        for dtype in DTYPES {
            assert_eq!(decode(dtype, &encode(dtype, -1234)), Some(-1234.0));
        }
    }
}
