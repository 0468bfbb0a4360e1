//! A device whose memory is a table of byte vectors, with streams that do everything at once, and one kernel: `Add` of two
//! tensors of one shape.

use std::sync::{Mutex, MutexGuard, PoisonError};

use oarlock_sdk::{
    Async, KernelCall, Core, PluginError, Event, HostServices, Kernel, KernelFlags, Memory, MemoryRange, OperandSpec, Plugin, Result, Stream, TensorView, Version,
    dtype_set, abi, slots,
};

const BUDGET: u64 = 64 << 20;

#[derive(Default)]
struct Toy {
    state: Mutex<State>,
}

/// What a handle stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    Stream,
    Event,
}

#[derive(Default)]
struct State {
    items: Vec<(u64, Kind, Vec<u8>)>,
    last: u64,
    used: u64,
}

fn check(device: u32) -> Result<()> {
    if device == 0 { Ok(()) } else { Err(PluginError::not_found("no such device")) }
}

impl Toy {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn create(&self, device: u32, kind: Kind, size: u64) -> Result<u64> {
        check(device)?;
        let mut state = self.state();
        if size > BUDGET - state.used {
            return Err(PluginError::resource_exhausted("too large"));
        }
        state.used += size;
        state.last += 1;
        let number = state.last;
        state.items.push((number, kind, vec![0; size as usize]));
        Ok(number)
    }

    /// Checks that there is such a stream or event; 0 is the queue that every device has.
    fn find(&self, device: u32, number: u64, kind: Kind) -> Result<()> {
        check(device)?;
        if number == 0 && kind == Kind::Stream { Ok(()) } else { self.state().position(number, kind).map(drop) }
    }

    fn destroy(&self, device: u32, number: u64, kind: Kind, size: u64) -> Result<()> {
        check(device)?;
        let mut state = self.state();
        let place = state.position(number, kind)?;
        state.items.swap_remove(place);
        state.used -= size;
        Ok(())
    }
}

impl State {
    fn position(&self, number: u64, kind: Kind) -> Result<usize> {
        let found = self.items.iter().position(|(other, of, _)| *other == number && *of == kind);
        found.ok_or_else(|| PluginError::not_found("no such handle"))
    }

    fn range(&mut self, MemoryRange { memory, offset, size }: MemoryRange) -> Result<&mut [u8]> {
        let place = self.position(memory.0, Kind::Memory)?;
        let bytes = &mut self.items[place].2;
        let end = offset.checked_add(size).filter(|end| *end <= bytes.len() as u64);
        let end = end.ok_or_else(|| PluginError::out_of_range("out of range"))?;
        Ok(&mut bytes[offset as usize..end as usize])
    }

    fn bytes(&mut self, tensor: &TensorView<'_>) -> Result<&mut [u8]> {
        let size = tensor.element_count()? as u64 * 4;
        let (memory, offset) = tensor.memory_location();
        // A tensor without elements need not have memory.
        if size == 0 { Ok(&mut []) } else { self.range(MemoryRange { memory, offset, size }) }
    }
}

#[slots]
impl Core for Toy {
    fn device_synchronize(&self, device: u32) -> Result<()> {
        check(device)
    }
    fn device_count(&self) -> Result<u32> {
        Ok(1)
    }
    fn device_list(&self) -> Result<Vec<u32>> {
        Ok(vec![0])
    }
    fn compute_capability(&self, device: u32) -> Result<Version> {
        check(device)?;
        Ok(Version { major: 1, ..Version::EMPTY })
    }
    fn runtime_version(&self) -> Result<Version> {
        Ok(Version { major: 1, ..Version::EMPTY })
    }
    fn driver_version(&self) -> Result<Version> {
        Ok(Version { major: 1, ..Version::EMPTY })
    }
    fn memory_allocate(&self, device: u32, size: u64) -> Result<Memory> {
        self.create(device, Kind::Memory, size).map(Memory)
    }
    fn memory_deallocate(&self, device: u32, block: Memory, size: u64) -> Result<()> {
        self.destroy(device, block.0, Kind::Memory, size)
    }
    fn memory_copy_h2d(&self, device: u32, target: MemoryRange, source: &[u8]) -> Result<()> {
        check(device)?;
        self.state().range(target)?.copy_from_slice(source);
        Ok(())
    }
    fn memory_copy_d2h(&self, device: u32, target: &mut [u8], source: MemoryRange) -> Result<()> {
        check(device)?;
        target.copy_from_slice(self.state().range(source)?);
        Ok(())
    }
    fn memory_copy_d2d(&self, device: u32, target: MemoryRange, source: MemoryRange) -> Result<()> {
        check(device)?;
        let mut state = self.state();
        let bytes = state.range(source)?.to_vec();
        state.range(target)?.copy_from_slice(&bytes);
        Ok(())
    }
    fn memory_stats(&self, device: u32) -> Result<(u64, u64)> {
        check(device)?;
        Ok((BUDGET, BUDGET - self.state().used))
    }
    fn min_chunk_size(&self, device: u32) -> Result<u64> {
        check(device)?;
        Ok(64)
    }
}

#[slots]
impl Async for Toy {
    fn stream_create(&self, device: u32, _priority: i32) -> Result<Stream> {
        self.create(device, Kind::Stream, 0).map(Stream)
    }
    fn stream_destroy(&self, device: u32, queue: Stream) -> Result<()> {
        self.destroy(device, queue.0, Kind::Stream, 0)
    }
    fn stream_synchronize(&self, device: u32, queue: Stream) -> Result<()> {
        self.find(device, queue.0, Kind::Stream)
    }
    fn stream_wait_event(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        self.find(device, queue.0, Kind::Stream)?;
        self.find(device, point.0, Kind::Event)
    }
    fn event_create(&self, device: u32) -> Result<Event> {
        self.create(device, Kind::Event, 0).map(Event)
    }
    fn event_destroy(&self, device: u32, point: Event) -> Result<()> {
        self.destroy(device, point.0, Kind::Event, 0)
    }
    fn event_record(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        self.find(device, queue.0, Kind::Stream)?;
        self.find(device, point.0, Kind::Event)
    }
    fn event_synchronize(&self, device: u32, point: Event) -> Result<()> {
        self.find(device, point.0, Kind::Event)
    }
}

fn add(toy: &Toy, call: &KernelCall<'_>) -> Result<()> {
    let mut state = toy.state();
    let left = state.bytes(&call.input(0)?)?.to_vec();
    let right = state.bytes(&call.input(1)?)?.to_vec();
    let sum = state.bytes(&call.output(0)?)?;
    let number = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    for ((sum, left), right) in sum.chunks_exact_mut(4).zip(left.chunks_exact(4)).zip(right.chunks_exact(4)) {
        sum.copy_from_slice(&(number(left) + number(right)).to_le_bytes());
    }
    Ok(())
}

/// The kernel does not broadcast.
fn has_one_shape(_toy: &Toy, call: &KernelCall<'_>) -> Result<()> {
    let is_one = call.input(0)?.dims() == call.input(1)?.dims();
    if is_one { Ok(()) } else { Err(PluginError::unimplemented("expected one shape")) }
}

fn plugin(_host: &HostServices) -> Result<Plugin<Toy>> {
    let number = OperandSpec::new(dtype_set(&[abi::Dtype::F32])).with_dtype_group(1);
    let kernel = Kernel::new("Add", add)
        .since_version(7)
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs([number, number])
        .with_outputs([number])
        .with_support_check(has_one_shape);
    Ok(Plugin::for_device("frozen-device-rust", "1.0.0", "FrozenRust", Toy::default()).with_async().with_kernels([kernel]))
}

oarlock_sdk::export!(plugin);
