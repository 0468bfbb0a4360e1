//! Checks of the list of devices and of their descriptions.

#![expect(unsafe_code, reason = "slots of a plugin are called through raw pointers")]

use oarlock_abi as abi;

use super::ConformanceCheck;
use crate::bench::{CheckAbort, TestBench, Verdict, ensure, slot, test_pattern};
use crate::device::DeviceUnderTest;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::core_check(
        "D-1",
        "the list of devices is as long as the count says, distinct and stable",
        device_list_is_valid,
    ),
    ConformanceCheck::core_check(
        "S-5",
        "a device description is UTF-8, and its flags are consistent",
        descriptions_are_valid,
    ),
    ConformanceCheck::core_check("R-1", "versions are written when they are asked for", versions_are_written),
    ConformanceCheck::core_check("D-3", "calls on one device leave the others alone", no_current_device),
];

/// The device ids, requested as a host does: with room for `device_count` ids.
fn list_device_ids(bench: &TestBench) -> Verdict<Vec<u32>> {
    const UNWRITTEN: u32 = 0xA5A5_A5A5;
    let mut count = u32::MAX;
    slot!(bench, bench.core_table(), device_count(&raw mut count))?;
    ensure!(count <= 1 << 16, "expected a count of devices that can be, found {count}");
    let (mut ids, mut listed) = (vec![UNWRITTEN; count as usize + 1], u64::MAX);
    slot!(bench, bench.core_table(), device_list(ids.as_mut_ptr(), u64::from(count), &raw mut listed))?;
    ensure!(
        listed == u64::from(count),
        "expected `device_list` to return the {count} ids that `device_count` reported, found {listed}"
    );
    let beyond = ids.pop();
    ensure!(beyond == Some(UNWRITTEN), "expected at most {count} ids to be written, found more");
    Ok(ids)
}

fn device_list_is_valid(bench: &TestBench) -> Verdict {
    let first = list_device_ids(bench)?;
    let mut sorted = first.clone();
    sorted.sort_unstable();
    sorted.dedup();
    ensure!(sorted.len() == first.len(), "expected different ids, found {first:?}");
    for device in bench.devices().unwrap_or_default() {
        ensure!(
            first.contains(&device.id),
            "expected {device}, which was initialized, in the list, found {first:?}"
        );
        device.synchronize()?;
    }
    let second = list_device_ids(bench)?;
    ensure!(first == second, "expected one list each time, found {first:?} and then {second:?}");
    let mut count = u64::MAX;
    slot!(bench, bench.core_table(), device_list(std::ptr::null_mut(), 0, &raw mut count))?;
    ensure!(
        count == first.len() as u64,
        "expected the whole count of {} although there is room for no id, found {count}",
        first.len()
    );
    Ok(())
}

fn descriptions_are_valid(bench: &TestBench) -> Verdict {
    bench.on_each_device(|device| {
        let info = device.device_info()?;
        for (what, text) in [("name", info.name), ("vendor", info.vendor), ("bus_id", info.bus_id)] {
            // SAFETY: whoever made the subject vouches for texts of the plugin, which live until it is unloaded.
            let is_text = unsafe { text.text() }.is_some();
            ensure!(is_text, "expected UTF-8 text for `{what}` of `device_info`, found other bytes");
        }
        let shares = info.bits.contains(abi::DeviceFlags::SHARES_HOST_MEMORY);
        let addressable = info.bits.contains(abi::DeviceFlags::HOST_ADDRESSABLE);
        ensure!(
            addressable || !shares,
            "expected a device with `shares_host_memory` to be `host_addressable`, found it is not"
        );
        let alignment = info.memory_alignment;
        ensure!(
            alignment == 0 || alignment.is_power_of_two(),
            "expected 0 or a power of two for `memory_alignment`, found {alignment}"
        );
        Ok(())
    })
}

fn versions_are_written(bench: &TestBench) -> Verdict {
    const UNWRITTEN: abi::Version =
        abi::Version { major: u32::MAX, minor: u32::MAX, patch: u32::MAX, build: u32::MAX };
    let written = |slot: &str, version| {
        ensure!(version != UNWRITTEN, "expected `{slot}` to write a version, found nothing written");
        Ok(())
    };
    let mut version = UNWRITTEN;
    slot!(bench, bench.core_table(), runtime_version(&raw mut version))?;
    written("runtime_version", version)?;
    version = UNWRITTEN;
    slot!(bench, bench.core_table(), driver_version(&raw mut version))?;
    written("driver_version", version)?;
    bench.on_each_device(|device| {
        let mut version = UNWRITTEN;
        slot!(bench, bench.core_table(), compute_capability(device.id, &raw mut version))?;
        written("compute_capability", version)
    })
}

/// Calls alternate between devices, so that a plugin that remembers a current device hits the wrong one at once.
fn no_current_device(bench: &TestBench) -> Verdict {
    let devices = bench.devices()?;
    if devices.len() < 2 {
        return Err(CheckAbort::unsupported("there is one device only"));
    }
    let data = |device: &DeviceUnderTest<'_>| test_pattern(u64::from(device.id) + 1, 4096);
    let mut blocks = Vec::new();
    for device in &devices {
        blocks.push(device.allocate(4096)?);
    }
    for (device, block) in devices.iter().zip(&blocks) {
        block.write_bytes(0, &data(device))?;
    }
    for (index, (device, block)) in devices.iter().zip(&blocks).enumerate().rev() {
        devices[(index + 1) % devices.len()].synchronize()?;
        crate::bench::expect_bytes(device, &data(device), &block.read_all()?)?;
    }
    blocks.into_iter().try_for_each(crate::device::TestBlock::deallocate)
}
