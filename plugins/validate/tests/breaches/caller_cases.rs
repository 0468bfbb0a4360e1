//! Callers that break rules about memory and about the stages of a plugin.

use oarlock_sdk::abi;

use crate::bad_device::DeviceMistake;
use crate::rig::{FAR, LayerRig, NEAR};

fn far_rig() -> LayerRig {
    LayerRig::started(DeviceMistake::None, FAR)
}

#[test]
fn a_caller_that_keeps_the_rules_gets_no_breach() {
    let rig = far_rig();
    let block = rig.allocate(0, 64);
    rig.expect_success(rig.write(0, block, 0, 64));
    rig.expect_success(rig.read(0, block, 60, 4));
    rig.expect_success(rig.free(0, block, 64));
    rig.expect_none();
}

#[test]
fn a_block_is_not_used_after_it_is_freed() {
    let rig = far_rig();
    let block = rig.allocate(0, 64);
    rig.expect_success(rig.free(0, block, 64));
    let failure = rig.write(0, block, 0, 4);
    assert!(
        rig.host.error_message(failure).expect("the host's error").contains("`memory_deallocate`, call 5")
    );
    rig.expect_breach("M-1", "expected a block that is alive");
}

#[test]
fn a_block_is_freed_once() {
    let rig = far_rig();
    let block = rig.allocate(0, 64);
    rig.expect_success(rig.free(0, block, 64));
    assert!(rig.free(0, block, 64).is_some());
    rig.expect_breach("M-1", "which was freed by `memory_deallocate`");
}

#[test]
fn a_block_is_freed_with_its_size() {
    let rig = far_rig();
    let block = rig.allocate(0, 64);
    assert!(rig.free(0, block, 32).is_some());
    rig.expect_success(rig.free(0, block, 64));
    rig.expect_breach("M-1", "64 bytes by `memory_allocate`, call 4, found 32");
}

#[test]
fn a_block_is_used_on_its_device() {
    let rig = far_rig();
    let block = rig.allocate(0, 64);
    assert!(rig.write(1, block, 0, 4).is_some());
    rig.expect_success(rig.free(0, block, 64));
    rig.expect_breach("M-1", "made on device 0");
}

#[test]
fn a_handle_that_the_plugin_never_made_is_refused() {
    let rig = far_rig();
    assert!(rig.read(0, 0x77, 0, 4).is_some());
    rig.expect_breach("M-1", "0x77, which the plugin never made");
}

#[test]
fn a_copy_stays_in_its_block() {
    for (offset, size) in [(60, 8), (65, 1), (u64::MAX, 2)] {
        let rig = far_rig();
        let block = rig.allocate(0, 64);
        assert!(rig.write(0, block, offset, size).is_some());
        rig.expect_success(rig.free(0, block, 64));
        rig.expect_breach("M-2", "expected `target` to lie within its block of 64 bytes");
    }
}

#[test]
fn a_copy_within_a_device_does_not_overlap() {
    let rig = far_rig();
    let block = rig.allocate(0, 64);
    let slot = rig.core.table.memory_copy_d2d.expect("a slot");
    let copy = |target, source| {
        // SAFETY: the layer checks the ranges before the device, which does not follow handles.
        unsafe { slot(rig.core.context, 0, abi::Memory(block), target, abi::Memory(block), source, 8) }
    };
    rig.expect_success(copy(0, 8));
    assert!(copy(0, 7).is_some());
    rig.expect_success(rig.free(0, block, 64));
    rig.expect_breach("core.memory_copy_d2d", "ranges that do not overlap");
}

#[test]
fn an_allocation_is_not_empty() {
    let rig = far_rig();
    let mut block = abi::Memory(7);
    let slot = rig.core.table.memory_allocate.expect("a slot");
    // SAFETY: the layer's function gets what the contract says, but for the size.
    assert!(unsafe { slot(rig.core.context, 0, 0, &raw mut block) }.is_some());
    assert_eq!(block.0, 7, "a call that is refused changes nothing");
    rig.expect_breach("M-4", "found 0");
}

#[test]
fn an_out_parameter_has_a_place() {
    let rig = far_rig();
    let slot = rig.core.table.device_count.expect("a slot");
    // SAFETY: the layer checks the place.
    assert!(unsafe { slot(rig.core.context, std::ptr::null_mut()) }.is_some());
    rig.expect_breach("R-1", "expected a place for `count`, found null");
}

#[test]
fn the_source_of_a_copy_has_an_address() {
    let rig = far_rig();
    let block = rig.allocate(0, 64);
    let slot = rig.core.table.memory_copy_h2d.expect("a slot");
    // SAFETY: the layer checks the address.
    let failure = unsafe { slot(rig.core.context, 0, abi::Memory(block), 0, std::ptr::null(), 8) };
    assert!(failure.is_some());
    rig.expect_success(rig.free(0, block, 64));
    rig.expect_breach("core", "expected an address for the 8 bytes of `source`, found null");
}

#[test]
fn nothing_comes_before_initialize_or_after_finalize() {
    let rig = LayerRig::new(DeviceMistake::None, FAR, &[]);
    let slot = rig.core.table.device_synchronize.expect("a slot");
    // SAFETY: the layer's function gets what the contract says.
    assert!(unsafe { slot(rig.core.context, 0) }.is_some());
    rig.expect_breach("core.initialize", "expected `initialize` to come first");

    let rig = far_rig();
    let finalize = rig.core.table.finalize.expect("a slot");
    // SAFETY: as above.
    unsafe {
        rig.expect_success(finalize(rig.core.context));
        assert!(slot(rig.core.context, 0).is_some());
    }
    rig.expect_breach("core.finalize", "expected no call after `finalize`");
}

#[test]
fn what_is_left_at_the_end_is_named_with_where_it_was_made() {
    let rig = far_rig();
    rig.allocate(1, 24);
    rig.expect_breach("M-1", "block 0x10 of 24 bytes on device 1, made by `memory_allocate`, call 4");
    let rig = far_rig();
    rig.stream(0);
    rig.expect_breach("A-3", "stream 0x10 on device 0, made by `stream_create`, call 4");
}

#[test]
fn a_backtrace_says_who_made_what_was_left() {
    let rig = LayerRig::new(DeviceMistake::None, FAR, &[("backtrace", "on")]);
    rig.start();
    rig.allocate(0, 8);
    let messages = rig.finish();
    assert!(messages[0].contains("a_backtrace_says_who_made_what_was_left"), "{messages:#?}");
}

#[test]
fn host_memory_is_freed_once_and_with_its_size() {
    let rig = far_rig();
    let mut address = std::ptr::null_mut();
    let allocate = rig.core.table.host_memory_allocate.expect("a slot");
    let free = rig.core.table.host_memory_deallocate.expect("a slot");
    // SAFETY: the layer checks before the device, which does not follow the address.
    unsafe {
        rig.expect_success(allocate(rig.core.context, 0, 32, &raw mut address));
        assert!(free(rig.core.context, 0, address, 31).is_some());
        rig.expect_success(free(rig.core.context, 0, address, 32));
        assert!(free(rig.core.context, 0, address, 32).is_some());
    }
    let messages = rig.finish();
    // The second is of the same rule at the same place, so it is only counted.
    assert_eq!(messages.len(), 2, "{messages:#?}");
    assert!(messages[0].contains("32 bytes, found 31 (rule M-1)"), "{messages:#?}");
    assert!(messages[1].ends_with("M-1 at `core.host_memory_deallocate` (2)"), "{messages:#?}");
}

#[test]
fn a_device_that_shares_host_memory_may_be_given_memory_of_the_program() {
    let bits = abi::DeviceFlags(NEAR.0 | abi::DeviceFlags::SHARES_HOST_MEMORY.0);
    let rig = LayerRig::started(DeviceMistake::None, bits);
    rig.expect_success(rig.write(0, 0x7000, 0, 8));
    rig.expect_none();
}

#[test]
fn a_wrong_option_is_refused_with_the_words_it_may_have() {
    let failure =
        std::panic::catch_unwind(|| LayerRig::new(DeviceMistake::None, FAR, &[("on_breach", "shout")]));
    assert!(failure.is_err());
}
