//! Plugins that break rules.

use std::ffi::c_void;

use oarlock_sdk::abi;

use crate::bad_device::DeviceMistake;
use crate::rig::{FAR, LayerRig};

fn count_devices(rig: &LayerRig, count: &mut u32) -> abi::Error {
    let slot = rig.core.table.device_count.expect("a slot");
    // SAFETY: the layer's function gets what the contract says.
    unsafe { slot(rig.core.context, count) }
}

fn synchronize(rig: &LayerRig) -> abi::Error {
    let slot = rig.core.table.device_synchronize.expect("a slot");
    // SAFETY: as above.
    unsafe { slot(rig.core.context, 0) }
}

#[test]
fn an_out_parameter_is_written_by_success() {
    let rig = LayerRig::started(DeviceMistake::LeavesOutParameter, FAR);
    let mut count = 77;
    rig.expect_success(count_devices(&rig, &mut count));
    assert_eq!(count, 77, "the caller gets its own number back, not the poison");
    rig.expect_breach("R-1", "left it as it was and succeeded");
}

#[test]
fn an_out_parameter_is_left_alone_by_failure() {
    let rig = LayerRig::started(DeviceMistake::WritesOutParameterAndFails, FAR);
    let mut count = 77;
    assert!(count_devices(&rig, &mut count).is_some());
    assert_eq!(count, 77);
    rig.expect_breach("R-1", "wrote it and failed");
}

#[test]
fn a_list_has_no_more_items_than_there_is_room_for() {
    for (mistake, room) in [(DeviceMistake::None, 1), (DeviceMistake::WritesPastList, 1)] {
        let rig = LayerRig::started(mistake, FAR);
        let (mut ids, mut count) = ([7u32; 4], 0);
        let slot = rig.core.table.device_list.expect("a slot");
        // SAFETY: the layer's function gets what the contract says.
        rig.expect_success(unsafe { slot(rig.core.context, ids.as_mut_ptr(), room, &raw mut count) });
        assert_eq!(
            (ids, count),
            ([0, 7, 7, 7], 2),
            "the caller gets what it has room for, and the number of all"
        );
        if mistake == DeviceMistake::None {
            rig.expect_none();
        } else {
            rig.expect_breach("R-1", "expected at most 1 items in `ids`, found a write behind them");
        }
    }
}

#[test]
fn with_on_breach_fail_a_breach_of_the_plugin_is_an_error() {
    let rig = LayerRig::new(DeviceMistake::LeavesOutParameter, FAR, &[("on_breach", "fail")]);
    rig.start();
    let failure = count_devices(&rig, &mut 0);
    assert!(rig.host.error_message(failure).expect("the host's error").contains("(rule R-1)"));
}

#[test]
fn an_error_is_one_that_the_host_made() {
    let rig = LayerRig::started(DeviceMistake::InventsError, FAR);
    assert_eq!(synchronize(&rig).0, 0xDEAD, "the caller gets what the plugin returned");
    rig.expect_breach("R-1", "found the number 0xdead");
}

#[test]
fn an_error_says_something() {
    let rig = LayerRig::started(DeviceMistake::ReturnsEmptyMessage, FAR);
    assert!(synchronize(&rig).is_some());
    rig.expect_breach("R-5", "found no message");
}

#[test]
fn a_new_handle_is_new_and_not_zero() {
    let rig = LayerRig::started(DeviceMistake::ReturnsZeroHandle, FAR);
    rig.stream(0);
    rig.expect_breach("R-1", "expected a stream that is not 0");

    let rig = LayerRig::started(DeviceMistake::ReturnsSameHandle, FAR);
    let block = rig.allocate(0, 8);
    rig.allocate(0, 8);
    rig.expect_success(rig.free(0, block, 8));
    rig.expect_breach(
        "M-1",
        "expected a new block, found 0x40, which is alive since `memory_allocate`, call 4",
    );
}

#[test]
fn the_mode_of_floating_point_arithmetic_is_kept_and_put_back() {
    let rig = LayerRig::started(DeviceMistake::ChangesFloatMode, FAR);
    let smallest = f32::from_bits(1);
    rig.expect_success(synchronize(&rig));
    assert!(std::hint::black_box(smallest) * std::hint::black_box(1.0) > 0.0, "subnormal numbers are kept");
    rig.expect_breach("D-3", "expected the mode of floating-point arithmetic as it was");
}

#[test]
fn a_lost_device_says_so_until_it_is_opened_again() {
    for (mistake, reopened) in [(DeviceMistake::ForgetsLoss, false), (DeviceMistake::None, true)] {
        let rig = LayerRig::started(mistake, FAR);
        *rig.device.is_lost.lock().expect("no panic") = true;
        let failure = synchronize(&rig);
        assert!(rig.host.error_message(failure).expect("the host's error").contains("gone"));
        if reopened {
            let slot = rig.core.table.device_init.expect("a slot");
            // SAFETY: the layer's function gets what the contract says.
            rig.expect_success(unsafe { slot(rig.core.context, 0) });
        }
        rig.expect_success(synchronize(&rig));
        if reopened { rig.expect_none() } else { rig.expect_breach("R-6", "which is lost, found success") }
    }
}

/// Adds a callback to a stream, and returns how often it ran.
fn add_callback(rig: &LayerRig) -> u32 {
    unsafe extern "C" fn count(_: u32, _: abi::Stream, user: *mut c_void, _: abi::Error) {
        // SAFETY: the test passed the address of its counter.
        unsafe { *user.cast::<u32>() += 1 };
    }
    let (stream, mut runs) = (rig.stream(0), 0u32);
    let (add, destroy) = (
        rig.streams.table.stream_add_callback.expect("a slot"),
        rig.streams.table.stream_destroy.expect("a slot"),
    );
    let context = rig.streams.context;
    // SAFETY: the device calls the function before the call returns, or never.
    unsafe {
        rig.expect_success(add(context, 0, abi::Stream(stream), Some(count), (&raw mut runs).cast()));
        rig.expect_success(destroy(context, 0, abi::Stream(stream)));
    }
    runs
}

#[test]
fn a_callback_runs_once_on_a_thread_of_the_plugin() {
    for (mistake, runs, text) in [
        (DeviceMistake::CallsBackTwice, 1, "found it run again"),
        (DeviceMistake::CallsBackAtOnce, 1, "found it run by the thread that added it"),
        (DeviceMistake::NeverCallsBack, 0, "found that it never ran"),
    ] {
        let rig = LayerRig::started(mistake, FAR);
        assert_eq!(add_callback(&rig), runs);
        rig.expect_breach("T-2", text);
    }
    let rig = LayerRig::started(DeviceMistake::None, FAR);
    assert_eq!(add_callback(&rig), 1);
    rig.expect_none();
}
