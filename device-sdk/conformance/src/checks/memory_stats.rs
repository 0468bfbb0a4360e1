//! Checks of memory statistics, and of allocations that must fail.

use super::ConformanceCheck;
use crate::bench::{CheckAbort, TestBench, Verdict, ensure, expect_bytes, test_pattern};
use crate::device::{DeviceUnderTest, TestBlock};

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::core_check(
        "min_chunk_size",
        "the smallest block is a power of two",
        min_chunk_is_power_of_two,
    ),
    ConformanceCheck::core_check(
        "memory_stats",
        "no more memory is free than there is, and taking some does not free any",
        stats_are_plausible,
    ),
    ConformanceCheck::core_check(
        "M-3",
        "an allocation that cannot be met is `resource_exhausted`, and the device goes on",
        impossible_allocations_fail,
    ),
    ConformanceCheck::core_check(
        "memory_deallocate",
        "memory that was given back can be taken again",
        freed_memory_is_reusable,
    ),
];

/// Other processes use the device too, so its statistics may change between two calls.
const TRIES: usize = 5;

fn min_chunk_is_power_of_two(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let size = device.min_chunk_size()?;
        ensure!(size.is_power_of_two(), "expected a power of two from `min_chunk_size`, found {size}");
        Ok(())
    })
}

fn stats_are_plausible(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let stats = device.memory_stats()?;
        ensure!(stats.total > 0, "expected a device with memory, found a total of 0 bytes");
        ensure!(
            stats.free <= stats.total,
            "expected at most the total of {} bytes to be free, found {}",
            stats.total,
            stats.free
        );
        if device.shares_host_memory()? {
            return Ok(());
        }
        let mut seen = (0, 0);
        for _ in 0..TRIES {
            let before = device.memory_stats()?.free;
            let block = device.allocate(1 << 20)?;
            let after = device.memory_stats()?.free;
            block.deallocate()?;
            if after <= before {
                return Ok(());
            }
            seen = (before, after);
        }
        let (before, after) = seen;
        Err(CheckAbort::failed(format!(
            "expected an allocation to leave at most the {before} bytes free that were free before, found {after}"
        )))
    })
}

/// Sizes that no machine has. The first wraps to a small size if a plugin rounds up without an overflow check.
const IMPOSSIBLE: [u64; 3] = [u64::MAX, u64::MAX - 4096, 1 << 62];

fn impossible_allocations_fail(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let kept = device.allocate_with(&test_pattern(6, 4096))?;
        for size in IMPOSSIBLE {
            expect_exhausted(device, size)?;
        }
        expect_bytes("a block taken before", &test_pattern(6, 4096), &kept.read_all()?)?;
        let fresh = device.allocate_with(&test_pattern(7, 4096))?;
        expect_bytes("a block taken after", &test_pattern(7, 4096), &fresh.read_all()?)?;
        fresh.deallocate()?;
        kept.deallocate()
    })
}

fn expect_exhausted(device: DeviceUnderTest<'_>, size: u64) -> Verdict {
    match device.try_allocate(size)? {
        Ok(block) => {
            block.deallocate()?;
            Err(CheckAbort::failed(format!(
                "expected an allocation of {size} bytes to fail, found it succeeded"
            )))
        }
        Err(error) => {
            let code = oarlock_abi::Code::RESOURCE_EXHAUSTED;
            ensure!(
                error.text.code == code,
                "expected an allocation of {size} bytes to fail with `resource_exhausted`, found: {error}"
            );
            Ok(())
        }
    }
}

/// Allocates and frees more than noise could explain, and checks that no memory is lost.
fn freed_memory_is_reusable(bench: &TestBench) -> Verdict {
    const ROUNDS: u64 = 64;
    bench.on_each_device(|device| {
        if device.shares_host_memory()? {
            return Err(CheckAbort::unsupported("the device's memory is host memory, which other processes allocate and free"));
        }
        let before = device.memory_stats()?;
        let size = (before.total.min(before.free) / (2 * ROUNDS)).clamp(1, 1 << 20);
        for _ in 0..ROUNDS {
            let pair: Vec<TestBlock<'_>> =
                (0..2).map(|_| device.allocate(size as usize)).collect::<Verdict<_>>()?;
            pair.into_iter().try_for_each(TestBlock::deallocate)?;
        }
        let (before, after) = (before.free, device.memory_stats()?.free);
        ensure!(
            after.saturating_add(ROUNDS * size / 2) >= before,
            "expected about the {before} bytes to be free that were free before {ROUNDS} pairs of {size} bytes were taken \
             and given back, found {after}"
        );
        Ok(())
    })
}
