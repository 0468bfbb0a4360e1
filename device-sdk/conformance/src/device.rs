//! A device under test, and blocks of its memory.

#![expect(unsafe_code, reason = "slots of a plugin are called through raw pointers")]

use std::fmt;

use oarlock_abi as abi;

use crate::bench::{CallError, CheckAbort, TestBench, Verdict, ensure, slot};

/// Fills host buffers before the plugin writes them, so that a byte it skips is noticed.
const UNWRITTEN: u8 = 0xA5;

#[derive(Clone, Copy)]
pub(crate) struct DeviceUnderTest<'a> {
    pub(crate) bench: &'a TestBench,
    pub(crate) id: u32,
}

impl fmt::Display for DeviceUnderTest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}", self.id)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedMemory {
    pub(crate) total: u64,
    pub(crate) free: u64,
}

impl TestBench {
    /// All devices. A plugin without visible devices cannot be checked.
    pub(crate) fn devices(&self) -> Verdict<Vec<DeviceUnderTest<'_>>> {
        if self.subject().devices.is_empty() {
            return Err(CheckAbort::unsupported("the plugin shows no device on this machine"));
        }
        Ok(self.subject().devices.iter().map(|id| DeviceUnderTest::new(self, *id)).collect())
    }

    /// Runs a check on each device, and names the device on which it failed.
    pub(crate) fn on_each_device(&self, mut check: impl FnMut(DeviceUnderTest<'_>) -> Verdict) -> Verdict {
        let devices = self.devices()?;
        devices.into_iter().try_for_each(|device| check(device).map_err(|stop| stop.at_location(device)))
    }
}

impl<'a> DeviceUnderTest<'a> {
    pub(crate) fn new(bench: &'a TestBench, id: u32) -> Self {
        Self { bench, id }
    }

    /// Allocates memory; the inner result is the plugin's answer.
    pub(crate) fn try_allocate(self, size: u64) -> Verdict<Result<TestBlock<'a>, CallError>> {
        let mut handle = abi::Memory(0);
        let answer =
            slot!(self.bench, self.bench.core_table(), memory_allocate(self.id, size, &raw mut handle));
        match answer {
            Ok(()) => TestBlock::from_allocation(self, handle, size).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    pub(crate) fn allocate(self, size: usize) -> Verdict<TestBlock<'a>> {
        Ok(self.try_allocate(size as u64)??)
    }

    /// Allocates memory and writes `data` to it.
    pub(crate) fn allocate_with(self, data: &[u8]) -> Verdict<TestBlock<'a>> {
        let block = self.allocate(data.len())?;
        block.write_bytes(0, data)?;
        Ok(block)
    }

    pub(crate) fn memory_stats(self) -> Verdict<ReportedMemory> {
        let (mut total, mut free) = (u64::MAX, u64::MAX);
        slot!(self.bench, self.bench.core_table(), memory_stats(self.id, &raw mut total, &raw mut free))?;
        Ok(ReportedMemory { total, free })
    }

    pub(crate) fn min_chunk_size(self) -> Verdict<u64> {
        let mut size = 0;
        slot!(self.bench, self.bench.core_table(), min_chunk_size(self.id, &raw mut size))?;
        Ok(size)
    }

    pub(crate) fn synchronize(self) -> Verdict {
        Ok(slot!(self.bench, self.bench.core_table(), device_synchronize(self.id))?)
    }

    /// The description of the device; empty if the plugin does not provide one.
    pub(crate) fn device_info(self) -> Verdict<abi::DeviceInfo> {
        let mut info = abi::DeviceInfo::EMPTY;
        if self.bench.core_table().device_info.is_some() {
            slot!(self.bench, self.bench.core_table(), device_info(self.id, &raw mut info))?;
        }
        Ok(info)
    }

    /// True if device memory is host memory, whose free size other processes change at any time.
    pub(crate) fn shares_host_memory(self) -> Verdict<bool> {
        Ok(self.device_info()?.bits.contains(abi::DeviceFlags::SHARES_HOST_MEMORY))
    }

    /// The alignment to use for operands: 64 bytes, or more if the device asks for it.
    pub(crate) fn operand_alignment(self) -> Verdict<usize> {
        let asked = u64::from(self.device_info()?.memory_alignment).max(self.min_chunk_size()?);
        ensure!(asked <= 1 << 26, "expected an alignment of at most 64 MiB, found {asked} bytes");
        Ok(asked.max(64) as usize)
    }
}

/// Device memory, freed when dropped: a check that fails must not starve the next.
pub(crate) struct TestBlock<'a> {
    pub(crate) device: DeviceUnderTest<'a>,
    pub(crate) handle: abi::Memory,
    pub(crate) size: u64,
    is_given_back: bool,
}

impl<'a> TestBlock<'a> {
    /// The block at the handle that an allocation wrote; fails if the handle is invalid.
    pub(crate) fn from_allocation(
        device: DeviceUnderTest<'a>,
        handle: abi::Memory,
        size: u64,
    ) -> Verdict<Self> {
        ensure!(
            handle.0 != 0,
            "expected a block that is not 0 in `block` on success, found 0 or nothing written"
        );
        Ok(Self { device, handle, size, is_given_back: false })
    }

    pub(crate) fn write_bytes(&self, offset: u64, data: &[u8]) -> Verdict {
        let DeviceUnderTest { bench, id } = self.device;
        let (source, size) = (data.as_ptr().cast(), data.len() as u64);
        Ok(slot!(bench, bench.core_table(), memory_copy_h2d(id, self.handle, offset, source, size))?)
    }

    pub(crate) fn read_bytes(&self, offset: u64, size: usize) -> Verdict<Vec<u8>> {
        let DeviceUnderTest { bench, id } = self.device;
        let mut data = vec![UNWRITTEN; size];
        let target = data.as_mut_ptr().cast();
        slot!(bench, bench.core_table(), memory_copy_d2h(id, target, size as u64, self.handle, offset))?;
        Ok(data)
    }

    pub(crate) fn read_all(&self) -> Verdict<Vec<u8>> {
        self.read_bytes(0, self.size as usize)
    }

    pub(crate) fn fill_bytes(&self, offset: u64, byte: u8, size: u64) -> Verdict {
        let DeviceUnderTest { bench, id } = self.device;
        Ok(slot!(bench, bench.core_table(), memory_set(id, self.handle, offset, byte, size))?)
    }

    pub(crate) fn copy_from(&self, to: u64, source: &Self, from: u64, size: u64) -> Verdict {
        let DeviceUnderTest { bench, id } = self.device;
        Ok(slot!(bench, bench.core_table(), memory_copy_d2d(id, self.handle, to, source.handle, from, size))?)
    }

    /// Copies from a block of another device.
    pub(crate) fn copy_from_peer(&self, to: u64, source: &TestBlock<'_>, from: u64, size: u64) -> Verdict {
        let DeviceUnderTest { bench, id } = self.device;
        let peer = source.device.id;
        Ok(slot!(
            bench,
            bench.core_table(),
            memory_copy_p2p(id, self.handle, to, peer, source.handle, from, size)
        )?)
    }

    pub(crate) fn deallocate(mut self) -> Verdict {
        self.return_to_device()
    }

    /// Drops the wrapper without freeing the block, which was freed in another way.
    pub(crate) fn forget_deallocated(mut self) {
        self.is_given_back = true;
    }

    fn return_to_device(&mut self) -> Verdict {
        let DeviceUnderTest { bench, id } = self.device;
        self.is_given_back = true;
        Ok(slot!(bench, bench.core_table(), memory_deallocate(id, self.handle, self.size))?)
    }
}

impl Drop for TestBlock<'_> {
    fn drop(&mut self) {
        if !self.is_given_back {
            // The check has already failed for another reason, which matters more than this.
            let _ = self.return_to_device();
        }
    }
}
