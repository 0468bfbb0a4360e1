//! Scripted faults and misuse of memory, through the engine's calls.

use std::time::Duration;

use crate::common::{buffer_span, pinned_span, start_engine, upload_bytes};
use oarlock_fault_script::FaultKind;
use oarlock_plugin_sim::StreamId;
use oarlock_plugin_sim::memory::DeviceAddress;

#[test]
fn the_third_allocation_fails_as_scripted_and_the_fourth_works() {
    let engine = start_engine("fail memory_allocate 3 out-of-memory");
    let kinds: Vec<_> = (0..4).map(|_| engine.memory_allocate(0, 8).err().map(|error| error.kind)).collect();
    assert_eq!(kinds, [None, None, Some(FaultKind::OutOfMemory), None]);
}

#[test]
fn a_later_failure_sticks_to_the_stream() {
    let engine = start_engine("fail_later memory_set_async 1 internal; fail_later memory_set 1 internal");
    let stream = engine.stream_create(0).unwrap();
    let target = engine.memory_allocate(0, 8).unwrap();
    engine.memory_set_async(0, stream, target, 1, 8).unwrap();
    assert_eq!(engine.stream_synchronize(0, stream).unwrap_err().kind, FaultKind::Internal);
    assert_eq!(engine.memory_set(0, target, 1, 8).unwrap_err().kind, FaultKind::Internal);
}

#[test]
fn a_kernel_that_runs_at_once_comes_behind_the_work_of_its_stream_and_tells_its_failure() {
    let engine = start_engine("mode lazy; fail_later memory_set_async 2 internal");
    let stream = engine.stream_create(0).unwrap();
    let target = engine.memory_allocate(0, 8).unwrap();
    engine.memory_set_async(0, stream, target, 7, 8).unwrap();
    let mut seen = Vec::new();
    let mut look = || {
        engine.execute_kernel("kernel", 0, stream, |device| {
            seen = device.read_elements::<u8>(target, 8)?;
            Ok(())
        })
    };
    look().unwrap();
    engine.memory_set_async(0, stream, target, 9, 8).unwrap();
    assert_eq!(look().unwrap_err().kind, FaultKind::Internal);
    look().unwrap();
    assert_eq!(seen, [7; 8]);
    assert_eq!(engine.call_counts()["kernel"], 3);
}

#[test]
fn a_lost_device_fails_every_call_but_still_frees() {
    let engine = start_engine("lose 1 after 3");
    let target = engine.memory_allocate(1, 8).unwrap();
    let stream = engine.stream_create(1).unwrap();
    engine.memory_set_async(1, stream, target, 1, 8).unwrap();
    for _ in 0..2 {
        assert_eq!(engine.stream_synchronize(1, stream).unwrap_err().kind, FaultKind::DeviceLost);
    }
    assert_eq!(engine.memory_allocate(1, 8).unwrap_err().kind, FaultKind::DeviceLost);
    let here = upload_bytes(&engine, &[1; 8]);
    assert_eq!(engine.memory_copy_p2p(1, target, 0, here, 8).unwrap_err().kind, FaultKind::DeviceLost);
    assert_eq!(engine.stream_destroy(1, stream).unwrap_err().kind, FaultKind::DeviceLost);
    assert_eq!(engine.stream_destroy(1, stream).unwrap_err().kind, FaultKind::NotFound);
    engine.memory_deallocate(1, target, 8).unwrap();
}

#[test]
fn lies_are_told() {
    let engine = start_engine("lie device_count 7; lie memory_stats; lie copy 2");
    assert_eq!(engine.device_count().unwrap(), 7);
    assert_eq!(engine.device_list().unwrap(), [0, 1]);
    let statistics = engine.memory_stats(0).unwrap();
    assert!(statistics.free > statistics.total);
    let address = upload_bytes(&engine, &[8; 4]);
    let mut seen = [0; 4];
    engine.memory_copy_d2h(0, buffer_span(&mut seen), address).unwrap();
    assert_eq!(seen, [9, 8, 8, 8]);
    engine.memory_copy_d2h(0, buffer_span(&mut seen), address).unwrap();
    assert_eq!(seen, [8; 4]);
}

#[test]
fn every_sort_of_copy_can_lie() {
    let engine = start_engine("lie copy");
    let (first, second) = (engine.memory_allocate(0, 1).unwrap(), engine.memory_allocate(0, 1).unwrap());
    let far = engine.memory_allocate(1, 1).unwrap();
    let stream = engine.stream_create(0).unwrap();
    engine.memory_set(0, first, 2, 1).unwrap();
    engine.memory_copy_d2d(0, second, first, 1).unwrap();
    engine.memory_copy_p2p(1, far, 0, first, 1).unwrap();
    let byte =
        |device, address| engine.find_device(device).unwrap().read_elements::<u8>(address, 1).unwrap()[0];
    assert_eq!((byte(0, second), byte(1, far)), (3, 3));
    let mut source = [4];
    engine.memory_copy_h2d_async(0, stream, second, buffer_span(&mut source)).unwrap();
    engine.stream_synchronize(0, stream).unwrap();
    assert_eq!(byte(0, second), 5);
}

#[test]
#[should_panic(expected = "`memory_set` panicked as scripted")]
fn a_scripted_panic_panics() {
    let engine = start_engine("panic memory_set 1");
    let target = engine.memory_allocate(0, 8).unwrap();
    let _ = engine.memory_set(0, target, 1, 8);
}

#[test]
fn a_virtual_delay_moves_the_clock_and_a_real_one_takes_time() {
    let engine = start_engine("delay memory_set 1 3600s; delay memory_set 2 20ms real");
    let target = engine.memory_allocate(0, 8).unwrap();
    engine.memory_set(0, target, 1, 8).unwrap();
    assert!(engine.find_device(0).unwrap().now() >= 3_600_000_000_000);
    let start = std::time::Instant::now();
    engine.memory_set(0, target, 1, 8).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(20), "a sleep is never shorter than asked for");
}

#[test]
fn a_limited_hang_goes_on_and_an_endless_one_ends_with_the_engine() {
    let engine = start_engine("hang device_synchronize 1 5ms; hang device_synchronize 2");
    engine.device_synchronize(0).unwrap();
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| engine.device_synchronize(0));
        engine.shut_down();
        assert_eq!(hanging.join().unwrap().unwrap_err().kind, FaultKind::Unavailable);
    });
    assert_eq!(engine.stream_create(0).unwrap_err().kind, FaultKind::Unavailable);
}

#[test]
fn any_slot_can_be_scripted() {
    let engine = start_engine("fail compute_capability 1 unavailable");
    assert_eq!(engine.count_call("compute_capability", Some(0)).unwrap_err().kind, FaultKind::Unavailable);
    engine.count_call("compute_capability", Some(0)).unwrap();
    assert_eq!(engine.count_call("device_init", Some(9)).unwrap_err().kind, FaultKind::NotFound);
}

#[test]
fn memory_freed_before_the_work_ran_is_found() {
    let engine = start_engine("mode lazy");
    let stream = engine.stream_create(0).unwrap();
    let target = engine.memory_allocate(0, 8).unwrap();
    engine.memory_set_async(0, stream, target, 1, 8).unwrap();
    engine.memory_deallocate(0, target, 8).unwrap();
    assert_eq!(engine.stream_synchronize(0, stream).unwrap_err().kind, FaultKind::UseAfterFree);
    assert_eq!(engine.memory_set_async(0, stream, target, 1, 8).unwrap_err().kind, FaultKind::UseAfterFree);
}

#[test]
fn memory_freed_on_the_stream_outlives_the_work_before() {
    let engine = start_engine("mode lazy");
    let stream = engine.stream_create(0).unwrap();
    let target = engine.memory_allocate(0, 8).unwrap();
    engine.memory_set_async(0, stream, target, 1, 8).unwrap();
    engine.memory_deallocate_async(0, stream, target, 8).unwrap();
    engine.stream_synchronize(0, stream).unwrap();
    assert_eq!(engine.memory_stats(0).unwrap().live, 0);
}

#[test]
fn pinned_memory_freed_before_the_copy_ran_is_found() {
    let engine = start_engine("mode lazy");
    let stream = engine.stream_create(0).unwrap();
    let source = upload_bytes(&engine, &[1; 8]);
    let pinned = engine.host_memory_allocate(0, 8).unwrap();
    let target = pinned_span(pinned, 8);
    engine.memory_copy_d2h_async(0, stream, target, source).unwrap();
    assert!(
        engine
            .memory_copy_d2h(0, pinned_span(pinned, 9), source)
            .unwrap_err()
            .message
            .contains("1 bytes past")
    );
    assert_eq!(engine.host_memory_deallocate(0, pinned, 7).unwrap_err().kind, FaultKind::InvalidArgument);
    engine.host_memory_deallocate(0, pinned, 8).unwrap();
    assert_eq!(engine.stream_synchronize(0, stream).unwrap_err().kind, FaultKind::UseAfterFree);
    assert_eq!(engine.host_memory_deallocate(0, pinned, 8).unwrap_err().kind, FaultKind::UseAfterFree);
}

#[test]
fn addresses_of_another_device_and_of_the_host_are_refused() {
    let engine = start_engine("ids 3,7");
    let here = engine.memory_allocate(3, 8).unwrap();
    let there = engine.memory_allocate(7, 8).unwrap();
    let error = engine.memory_set(3, there, 0, 8).unwrap_err();
    assert!(error.message.contains("is an address of device 7, but was given to device 3"), "{error}");
    let error = engine.memory_deallocate(3, there, 8).unwrap_err();
    assert!(error.message.contains("device 7"), "{error}");
    let as_host = pinned_span(std::ptr::without_provenance_mut(there as usize), 8);
    let error = engine.memory_copy_h2d(3, here, as_host).unwrap_err();
    assert!(error.message.contains("is an address of device 7, expected host memory"), "{error}");
    let null = pinned_span(std::ptr::null_mut(), 8);
    assert!(engine.memory_copy_h2d(3, here, null).unwrap_err().message.contains("null"));
    let mut host = [1; 8];
    let host_as_device = host.as_ptr().addr() as u64;
    assert!(engine.memory_copy_h2d(3, host_as_device, buffer_span(&mut host)).is_err());
    assert!(engine.memory_copy_h2d(3, DeviceAddress::new(here, 1), buffer_span(&mut host)).is_err());
}

#[test]
fn the_quota_is_each_devices_own() {
    let engine = start_engine("quota 4KiB");
    engine.memory_allocate(0, 4096).unwrap();
    let error = engine.memory_allocate(0, 1).unwrap_err();
    assert_eq!(error.kind, FaultKind::OutOfMemory);
    assert!(error.message.contains("4096 of the device's quota of 4096 bytes"), "{error}");
    engine.memory_allocate(1, 4096).unwrap();
}

#[test]
fn copies_between_devices_on_a_stream_arrive() {
    let engine = start_engine("mode lazy");
    let source = upload_bytes(&engine, &[6; 8]);
    let target = engine.memory_allocate(1, 8).unwrap();
    let stream = engine.stream_create(0).unwrap();
    engine.memory_copy_p2p_async(1, target, 0, stream, source, 8).unwrap();
    assert_eq!(engine.find_device(1).unwrap().read_elements::<u8>(target, 8).unwrap(), [0xCD; 8]);
    engine.device_synchronize(0).unwrap();
    assert_eq!(engine.find_device(1).unwrap().read_elements::<u8>(target, 8).unwrap(), [6; 8]);
    assert!(engine.stream_destroy(0, StreamId(0)).is_err());
}

#[test]
fn a_shortened_copy_moves_the_first_half_and_leaves_the_rest_as_it_was() {
    let engine =
        start_engine("shorten memory_copy_d2d 1; shorten memory_copy_h2d 3; shorten memory_copy_d2h 1");
    let old = upload_bytes(&engine, &[1, 1, 1, 1]);
    let new = upload_bytes(&engine, &[7, 8, 9, 10]);
    engine.memory_copy_d2d(0, old, new, 4).unwrap();
    let bytes = [3u8; 4];
    engine.memory_copy_h2d(0, new, buffer_span(&mut bytes.clone())).unwrap();
    let mut seen = [5u8; 4];
    engine.memory_copy_d2h(0, buffer_span(&mut seen), old).unwrap();
    assert_eq!(seen, [7, 8, 5, 5]);
    engine.memory_copy_d2h(0, buffer_span(&mut seen), old).unwrap();
    assert_eq!(seen, [7, 8, 1, 1]);
    engine.memory_copy_d2h(0, buffer_span(&mut seen), new).unwrap();
    assert_eq!(seen, [3, 3, 9, 10]);
}
