//! Checks of calls that must fail, and of the errors they return.

#![expect(unsafe_code, reason = "slots of a plugin are called through raw pointers")]

use oarlock_abi as abi;

use super::ConformanceCheck;
use crate::bench::{CallError, CheckAbort, TestBench, Verdict, ensure, expect_bytes, slot, test_pattern};
use crate::device::TestBlock;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::core_check(
        "D-2",
        "a device that is not in the list is an error in every slot",
        unknown_device_is_refused,
    ),
    ConformanceCheck::core_check("R-1", "a call that fails writes nothing", nothing_is_written_on_error),
    ConformanceCheck::core_check(
        "R-1",
        "blocks are written on success, and live ones are different",
        blocks_are_distinct,
    ),
    ConformanceCheck::core_check(
        "V-3",
        "an experimental function that does not exist is not found",
        unknown_function_is_refused,
    ),
];

/// Fails unless a call with an unknown device failed with a useful message.
pub(super) fn expect_refusal(slot: &str, answer: Result<(), CallError>) -> Verdict {
    match answer {
        Ok(()) => Err(CheckAbort::failed(format!(
            "expected `{slot}` to refuse a device that is not there, found success"
        ))),
        Err(error) => {
            ensure!(
                error.is_about_an_argument(),
                "expected `invalid_argument` or `not_found`, found: {error}"
            );
            Ok(())
        }
    }
}

/// Accepts an empty slot as well as a correct one.
fn allow_unsupported(verdict: Verdict) -> Verdict {
    match verdict {
        Err(CheckAbort::Unsupported(_)) => Ok(()),
        other => other,
    }
}

fn unknown_device_is_refused(bench: &TestBench) -> Verdict {
    let id = bench.unknown_device();
    macro_rules! refused {
        ($($slot:ident($($argument:expr),*);)*) => {$(
            allow_unsupported((|| {
                expect_refusal(stringify!($slot), slot!(bench, bench.core_table(), $slot(id, $($argument),*)))
            })())?;
        )*};
    }
    let (mut version, mut info) = (abi::Version::EMPTY, abi::DeviceInfo::EMPTY);
    let (mut handle, mut size, mut free) = (abi::Memory(0), 0, 0);
    let mut address = std::ptr::null_mut();
    refused! {
        device_synchronize();
        compute_capability(&raw mut version);
        device_info(&raw mut info);
        memory_allocate(64, &raw mut handle);
        memory_stats(&raw mut size, &raw mut free);
        min_chunk_size(&raw mut size);
        max_chunk_size(&raw mut size);
        max_alloc_size(&raw mut size);
        extra_padding_size(&raw mut size);
        init_alloc_size(&raw mut size);
        realloc_size(&raw mut size);
        host_memory_allocate(64, &raw mut address);
        unified_memory_allocate(64, &raw mut address);
    }
    bench.on_each_device(|device| {
        let data = test_pattern(8, 64);
        let block = device.allocate_with(&data)?;
        let mut bytes = [0u8; 64];
        let (read, written) = (bytes.as_mut_ptr().cast(), data.as_ptr().cast());
        refused! {
            memory_copy_h2d(block.handle, 0, written, 64);
            memory_copy_d2h(read, 64, block.handle, 0);
            memory_copy_d2d(block.handle, 0, block.handle, 32, 32);
            memory_set(block.handle, 0, 0, 64);
            memory_deallocate(block.handle, 64);
        }
        expect_bytes("a block after calls for another device", &data, &block.read_all()?)?;
        block.deallocate()
    })
}

fn nothing_is_written_on_error(bench: &TestBench) -> Verdict {
    const UNWRITTEN: u64 = 0xA5A5_A5A5_A5A5_A5A5;
    let id = bench.unknown_device();
    macro_rules! untouched {
        ($($slot:ident($($argument:expr),*) leaves $value:expr, $expected:expr;)*) => {$(
            allow_unsupported((|| {
                let answer = slot!(bench, bench.core_table(), $slot(id, $($argument),*));
                ensure!(answer.is_err(), "expected `{}` to fail for device {id}, found success", stringify!($slot));
                ensure!(
                    $value == $expected,
                    "expected `{}` to leave what it was to write as it was when it fails, found it changed",
                    stringify!($slot)
                );
                Ok(())
            })())?;
        )*};
    }
    let unwritten = abi::Version { major: 7, minor: 7, patch: 7, build: 7 };
    let (mut version, mut handle) = (unwritten, abi::Memory(UNWRITTEN));
    let (mut size, mut free) = (UNWRITTEN, UNWRITTEN);
    let mut address = std::ptr::without_provenance_mut(UNWRITTEN as usize);
    let (mut bytes, all) = ([0xA5u8; 64], [0xA5u8; 64]);
    untouched! {
        compute_capability(&raw mut version) leaves version, unwritten;
        memory_allocate(64, &raw mut handle) leaves handle.0, UNWRITTEN;
        memory_stats(&raw mut size, &raw mut free) leaves (size, free), (UNWRITTEN, UNWRITTEN);
        min_chunk_size(&raw mut size) leaves size, UNWRITTEN;
        max_chunk_size(&raw mut size) leaves size, UNWRITTEN;
        max_alloc_size(&raw mut size) leaves size, UNWRITTEN;
        host_memory_allocate(64, &raw mut address) leaves address.addr() as u64, UNWRITTEN;
        unified_memory_allocate(64, &raw mut address) leaves address.addr() as u64, UNWRITTEN;
    }
    bench.on_each_device(|device| {
        let mut refused = abi::Memory(UNWRITTEN);
        let answer = slot!(bench, bench.core_table(), memory_allocate(device.id, u64::MAX, &raw mut refused));
        ensure!(
            answer.is_ok() || refused.0 == UNWRITTEN,
            "expected `memory_allocate` to leave `block` as it was when memory is short, found {:#x}",
            refused.0
        );
        let block = device.allocate(64)?;
        untouched! {
            memory_copy_d2h(bytes.as_mut_ptr().cast(), 64, block.handle, 0) leaves bytes, all;
        }
        block.deallocate()
    })
}

fn blocks_are_distinct(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let blocks: Vec<TestBlock<'_>> = (0..16).map(|_| device.allocate(1)).collect::<Verdict<_>>()?;
        let mut handles: Vec<u64> = blocks.iter().map(|block| block.handle.0).collect();
        handles.sort_unstable();
        handles.dedup();
        ensure!(
            handles.len() == blocks.len(),
            "expected {} different blocks, found {}",
            blocks.len(),
            handles.len()
        );
        blocks.into_iter().try_for_each(TestBlock::deallocate)
    })
}

fn unknown_function_is_refused(bench: &TestBench) -> Verdict {
    let mut function = std::ptr::null_mut();
    let name = abi::Str::new("no_such_function_since_1_0");
    match slot!(bench, bench.core_table(), experimental(name, &raw mut function)) {
        Ok(()) => {
            ensure!(
                function.is_null(),
                "expected no function of the name `no_such_function_since_1_0`, found one"
            );
            Ok(())
        }
        Err(error) => {
            let codes = [abi::Code::NOT_FOUND, abi::Code::UNIMPLEMENTED];
            ensure!(
                codes.contains(&error.text.code),
                "expected `not_found` or `unimplemented`, found: {error}"
            );
            Ok(())
        }
    }
}
