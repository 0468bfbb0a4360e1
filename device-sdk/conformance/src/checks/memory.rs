//! What goes into the memory of a device comes out of it.

#![expect(unsafe_code, reason = "memory that host and device share is reached through raw pointers")]

use super::Check;
use crate::bench::{Bench, Stop, Verdict, ensure, expect_bytes, pattern, slot};
use crate::device::Device;

pub(super) const CHECKS: &[Check] = &[
    Check::core("M-5", "bytes of every size and offset come back the same", round_trips),
    Check::core("M-2", "a copy to a device leaves the bytes before and after it alone", neighbours),
    Check::core("M-5", "a copy within a device brings the bytes, from offset to offset", within),
    Check::core("M-5", "a copy between two devices brings the bytes", between),
    Check::core("memory_set", "a fill writes its byte, and only where it was asked to", fills),
    Check::core(
        "host_memory_allocate",
        "page-locked host memory can be written, copied from and copied to",
        pinned,
    ),
    Check::core("unified_memory_allocate", "unified memory can be written and read by the host", unified),
];

/// Sizes at which copies tend to be split, padded or rounded.
const SIZES: [usize; 7] = [1, 3, 64, 255, 4096, 65_537, (1 << 20) + 1];
const OFFSETS: [u64; 3] = [0, 1, 259];

fn round_trips(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        for size in SIZES {
            for offset in OFFSETS {
                let block = device.allocate(size + offset as usize)?;
                let data = pattern(size as u64 + offset, size);
                block.write(offset, &data)?;
                let what = format_args!("{size} bytes at offset {offset}");
                expect_bytes(what, &data, &block.read(offset, size)?)?;
                let last = size as u64 - 1;
                let read = block.read(offset + last, 1)?;
                expect_bytes(format_args!("the last of {what}"), &data[size - 1..], &read)?;
                block.give_back()?;
            }
        }
        Ok(())
    })
}

fn neighbours(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let mut expected = pattern(1, 8192);
        let block = device.block_of(&expected)?;
        for (offset, size) in [(1usize, 1usize), (4095, 2), (17, 333), (8191, 1)] {
            let data = pattern(offset as u64 + 100, size);
            expected[offset..offset + size].copy_from_slice(&data);
            block.write(offset as u64, &data)?;
            let what = format_args!("the block after a copy of {size} bytes to offset {offset}");
            expect_bytes(what, &expected, &block.read_all()?)?;
        }
        block.give_back()
    })
}

fn within(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        for (size, from, to) in [(1usize, 0usize, 5usize), (4096, 3, 0), (70_001, 11, 77)] {
            let (source_bytes, mut expected) = (pattern(2, size + 128), pattern(3, size + 128));
            let source = device.block_of(&source_bytes)?;
            let target = device.block_of(&expected)?;
            target.copy_from(to as u64, &source, from as u64, size as u64)?;
            device.synchronize()?;
            expected[to..to + size].copy_from_slice(&source_bytes[from..from + size]);
            let what = format_args!("the target of {size} bytes from offset {from} to offset {to}");
            expect_bytes(what, &expected, &target.read_all()?)?;
            expect_bytes("the source of a copy", &source_bytes, &source.read_all()?)?;
            target.give_back()?;
            source.give_back()?;
        }
        Ok(())
    })
}

fn between(bench: &Bench) -> Verdict {
    let devices = bench.devices()?;
    if bench.core().memory_copy_p2p.is_none() {
        return Err(Stop::empty("memory_copy_p2p"));
    }
    let [first, .., last] = devices.as_slice() else {
        return Err(Stop::unsupported("there is one device only"));
    };
    for (from, to) in [(first, last), (last, first)] {
        let data = pattern(u64::from(from.id) + 7, 10_000);
        let source = from.block_of(&data)?;
        let target = to.block_of(&vec![0; data.len() + 5])?;
        target.copy_from_peer(5, &source, 0, data.len() as u64)?;
        to.synchronize()?;
        let what = format_args!("a copy from {from} to {to}");
        expect_bytes(what, &data, &target.read(5, data.len())?)?;
        expect_bytes(format_args!("the bytes before {what}"), &[0; 5], &target.read(0, 5)?)?;
        target.give_back()?;
        source.give_back()?;
    }
    Ok(())
}

fn fills(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let mut expected = pattern(4, 5000);
        let block = device.block_of(&expected)?;
        for (offset, byte, size) in [(0usize, 0u8, 1usize), (7, 0xFF, 4001), (4999, 0x5A, 1)] {
            block.fill(offset as u64, byte, size as u64)?;
            device.synchronize()?;
            expected[offset..offset + size].fill(byte);
            expect_bytes("the block after a fill", &expected, &block.read_all()?)?;
        }
        block.give_back()
    })
}

/// Writes host memory of the plugin's, and has a device copy it there and back.
fn through_the_host(device: Device<'_>, address: *mut u8, size: usize) -> Verdict {
    let data = pattern(5, size);
    let block = device.allocate(size)?;
    // SAFETY: the plugin handed out `size` bytes at this address for the host to use; nobody else does.
    let shared = unsafe { std::slice::from_raw_parts_mut(address, size) };
    shared.copy_from_slice(&data);
    block.write(0, shared)?;
    shared.fill(0);
    shared.copy_from_slice(&block.read_all()?);
    expect_bytes("what came back", &data, shared)?;
    shared.fill(0);
    let (target, bytes) = (shared.as_mut_ptr().cast(), size as u64);
    let bench = device.bench;
    slot!(bench, bench.core(), memory_copy_d2h(device.id, target, bytes, block.handle, 0))?;
    expect_bytes("what a copy brought there", &data, shared)?;
    block.give_back()
}

fn pinned(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let (size, mut address) = (12_345usize, std::ptr::null_mut());
        slot!(bench, bench.core(), host_memory_allocate(device.id, size as u64, &raw mut address))?;
        ensure!(!address.is_null(), "expected `host_memory_allocate` to write an address, found null");
        let copied = through_the_host(device, address.cast(), size);
        slot!(bench, bench.core(), host_memory_deallocate(device.id, address, size as u64))?;
        copied
    })
}

fn unified(bench: &Bench) -> Verdict {
    bench.on_each_device(|device| {
        let (size, mut address) = (12_345usize, std::ptr::null_mut());
        slot!(bench, bench.core(), unified_memory_allocate(device.id, size as u64, &raw mut address))?;
        ensure!(!address.is_null(), "expected `unified_memory_allocate` to write an address, found null");
        let copied = through_the_host(device, address.cast(), size);
        slot!(bench, bench.core(), unified_memory_deallocate(device.id, address, size as u64))?;
        copied
    })
}
