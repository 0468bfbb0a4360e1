//! Checks that device memory returns what was written to it.

#![expect(unsafe_code, reason = "memory that host and device share is reached through raw pointers")]

use super::ConformanceCheck;
use crate::bench::{CheckAbort, TestBench, Verdict, ensure, expect_bytes, slot, test_pattern};
use crate::device::DeviceUnderTest;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::core_check(
        "M-5",
        "bytes of every size and offset come back the same",
        copies_round_trip,
    ),
    ConformanceCheck::core_check(
        "M-2",
        "a copy to a device leaves the bytes before and after it alone",
        copies_leave_neighbors,
    ),
    ConformanceCheck::core_check(
        "M-5",
        "a copy within a device transfers the bytes, from offset to offset",
        copies_within_device,
    ),
    ConformanceCheck::core_check(
        "M-5",
        "a copy between two devices transfers the bytes",
        copies_between_devices,
    ),
    ConformanceCheck::core_check(
        "memory_set",
        "a fill writes its byte, and only where it was asked to",
        fills_write_only_range,
    ),
    ConformanceCheck::core_check(
        "host_memory_allocate",
        "page-locked host memory can be written, copied from and copied to",
        pinned_memory_is_usable,
    ),
    ConformanceCheck::core_check(
        "unified_memory_allocate",
        "unified memory can be written and read by the host",
        unified_memory_is_usable,
    ),
];

/// Sizes around which copies tend to be split, padded or rounded.
const SIZES: [usize; 7] = [1, 3, 64, 255, 4096, 65_537, (1 << 20) + 1];
const OFFSETS: [u64; 3] = [0, 1, 259];

fn copies_round_trip(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        for size in SIZES {
            for offset in OFFSETS {
                let block = device.allocate(size + offset as usize)?;
                let data = test_pattern(size as u64 + offset, size);
                block.write_bytes(offset, &data)?;
                let what = format_args!("{size} bytes at offset {offset}");
                expect_bytes(what, &data, &block.read_bytes(offset, size)?)?;
                let last = size as u64 - 1;
                let read = block.read_bytes(offset + last, 1)?;
                expect_bytes(format_args!("the last of {what}"), &data[size - 1..], &read)?;
                block.deallocate()?;
            }
        }
        Ok(())
    })
}

fn copies_leave_neighbors(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let mut expected = test_pattern(1, 8192);
        let block = device.allocate_with(&expected)?;
        for (offset, size) in [(1usize, 1usize), (4095, 2), (17, 333), (8191, 1)] {
            let data = test_pattern(offset as u64 + 100, size);
            expected[offset..offset + size].copy_from_slice(&data);
            block.write_bytes(offset as u64, &data)?;
            let what = format_args!("the block after a copy of {size} bytes to offset {offset}");
            expect_bytes(what, &expected, &block.read_all()?)?;
        }
        block.deallocate()
    })
}

fn copies_within_device(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        for (size, from, to) in [(1usize, 0usize, 5usize), (4096, 3, 0), (70_001, 11, 77)] {
            let (source_bytes, mut expected) = (test_pattern(2, size + 128), test_pattern(3, size + 128));
            let source = device.allocate_with(&source_bytes)?;
            let target = device.allocate_with(&expected)?;
            target.copy_from(to as u64, &source, from as u64, size as u64)?;
            device.synchronize()?;
            expected[to..to + size].copy_from_slice(&source_bytes[from..from + size]);
            let what = format_args!("the target of {size} bytes from offset {from} to offset {to}");
            expect_bytes(what, &expected, &target.read_all()?)?;
            expect_bytes("the source of a copy", &source_bytes, &source.read_all()?)?;
            target.deallocate()?;
            source.deallocate()?;
        }
        Ok(())
    })
}

fn copies_between_devices(bench: &TestBench) -> Verdict {
    let devices = bench.devices()?;
    if bench.core_table().memory_copy_p2p.is_none() {
        return Err(CheckAbort::empty_slot("memory_copy_p2p"));
    }
    let [first, .., last] = devices.as_slice() else {
        return Err(CheckAbort::unsupported("there is one device only"));
    };
    for (from, to) in [(first, last), (last, first)] {
        let data = test_pattern(u64::from(from.id) + 7, 10_000);
        let source = from.allocate_with(&data)?;
        let target = to.allocate_with(&vec![0; data.len() + 5])?;
        target.copy_from_peer(5, &source, 0, data.len() as u64)?;
        to.synchronize()?;
        let what = format_args!("a copy from {from} to {to}");
        expect_bytes(what, &data, &target.read_bytes(5, data.len())?)?;
        expect_bytes(format_args!("the bytes before {what}"), &[0; 5], &target.read_bytes(0, 5)?)?;
        target.deallocate()?;
        source.deallocate()?;
    }
    Ok(())
}

fn fills_write_only_range(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let mut expected = test_pattern(4, 5000);
        let block = device.allocate_with(&expected)?;
        for (offset, byte, size) in [(0usize, 0u8, 1usize), (7, 0xFF, 4001), (4999, 0x5A, 1)] {
            block.fill_bytes(offset as u64, byte, size as u64)?;
            device.synchronize()?;
            expected[offset..offset + size].fill(byte);
            expect_bytes("the block after a fill", &expected, &block.read_all()?)?;
        }
        block.deallocate()
    })
}

/// Writes to host memory that the plugin allocated, and copies it to a device and back.
fn check_host_address(device: DeviceUnderTest<'_>, address: *mut u8, size: usize) -> Verdict {
    let data = test_pattern(5, size);
    let block = device.allocate(size)?;
    // SAFETY: the plugin handed out `size` bytes at this address for the host to use; nobody else does.
    let shared = unsafe { std::slice::from_raw_parts_mut(address, size) };
    shared.copy_from_slice(&data);
    block.write_bytes(0, shared)?;
    shared.fill(0);
    shared.copy_from_slice(&block.read_all()?);
    expect_bytes("what came back", &data, shared)?;
    shared.fill(0);
    let (target, bytes) = (shared.as_mut_ptr().cast(), size as u64);
    let bench = device.bench;
    slot!(bench, bench.core_table(), memory_copy_d2h(device.id, target, bytes, block.handle, 0))?;
    expect_bytes("the target of a copy", &data, shared)?;
    block.deallocate()
}

fn pinned_memory_is_usable(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let (size, mut address) = (12_345usize, std::ptr::null_mut());
        slot!(bench, bench.core_table(), host_memory_allocate(device.id, size as u64, &raw mut address))?;
        ensure!(!address.is_null(), "expected `host_memory_allocate` to write an address, found null");
        let copied = check_host_address(device, address.cast(), size);
        slot!(bench, bench.core_table(), host_memory_deallocate(device.id, address, size as u64))?;
        copied
    })
}

fn unified_memory_is_usable(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let (size, mut address) = (12_345usize, std::ptr::null_mut());
        slot!(bench, bench.core_table(), unified_memory_allocate(device.id, size as u64, &raw mut address))?;
        ensure!(!address.is_null(), "expected `unified_memory_allocate` to write an address, found null");
        let copied = check_host_address(device, address.cast(), size);
        slot!(bench, bench.core_table(), unified_memory_deallocate(device.id, address, size as u64))?;
        copied
    })
}
