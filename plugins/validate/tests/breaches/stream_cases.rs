//! Callers that break rules about the order of work and about threads.

use std::sync::Barrier;

use oarlock_sdk::abi;

use crate::bad_device::DeviceMistake;
use crate::rig::{FAR, LayerRig};

/// Two streams on device 0, and a block.
struct StreamRig {
    rig: LayerRig,
    streams: [u64; 2],
    block: u64,
}

impl StreamRig {
    fn new() -> Self {
        let rig = LayerRig::started(DeviceMistake::None, FAR);
        let streams = [rig.stream(0), rig.stream(0)];
        let block = rig.allocate(0, 64);
        Self { rig, streams, block }
    }

    fn set(&self, stream: usize, offset: u64, size: u64) -> abi::Error {
        let slot = self.rig.streams.table.memory_set_async.expect("a slot");
        let queue = abi::Stream(self.streams[stream]);
        // SAFETY: the layer checks before the device, which does not follow handles.
        unsafe { slot(self.rig.streams.context, 0, queue, abi::Memory(self.block), offset, 0, size) }
    }

    fn read_later(&self, stream: usize, target: usize) -> abi::Error {
        let slot = self.rig.streams.table.memory_copy_d2h_async.expect("a slot");
        let target = std::ptr::without_provenance_mut(target);
        let (queue, block) = (abi::Stream(self.streams[stream]), abi::Memory(self.block));
        // SAFETY: as above.
        unsafe { slot(self.rig.streams.context, 0, queue, target, block, 0, 8) }
    }

    fn synchronize(&self, stream: usize) {
        let slot = self.rig.streams.table.stream_synchronize.expect("a slot");
        // SAFETY: as above.
        self.rig
            .expect_success(unsafe { slot(self.rig.streams.context, 0, abi::Stream(self.streams[stream])) });
    }

    /// Makes one stream wait for the other.
    fn order_streams(&self, first: usize, second: usize) -> u64 {
        let table = &self.rig.streams.table;
        let point = self.rig.event(0);
        let queue = |stream: usize| abi::Stream(self.streams[stream]);
        // SAFETY: as above.
        unsafe {
            let record = table.event_record.expect("a slot");
            self.rig.expect_success(record(self.rig.streams.context, 0, queue(first), abi::Event(point)));
            let wait = table.stream_wait_event.expect("a slot");
            self.rig.expect_success(wait(self.rig.streams.context, 0, queue(second), abi::Event(point)));
        }
        point
    }

    fn destroy_event(&self, point: u64) -> abi::Error {
        let slot = self.rig.streams.table.event_destroy.expect("a slot");
        // SAFETY: as above.
        unsafe { slot(self.rig.streams.context, 0, abi::Event(point)) }
    }

    /// Frees everything that `new` made.
    fn close(self) -> LayerRig {
        let slot = self.rig.streams.table.stream_destroy.expect("a slot");
        for stream in self.streams {
            // SAFETY: as above.
            self.rig.expect_success(unsafe { slot(self.rig.streams.context, 0, abi::Stream(stream)) });
        }
        self.rig.expect_success(self.rig.free(0, self.block, 64));
        self.rig
    }
}

#[test]
fn work_of_two_streams_on_the_same_bytes_needs_a_wait() {
    let streams = StreamRig::new();
    streams.rig.expect_success(streams.set(0, 0, 32));
    let failure = streams.set(1, 16, 8);
    let message = streams.rig.host.error_message(failure).expect("the host's error");
    assert!(message.contains("still writes bytes 0 to 32"), "{message}");
    streams.close().expect_breach("A-1", "expected a wait for an event before `target` is used");
}

#[test]
fn a_wait_orders_the_work_and_other_bytes_need_none() {
    let streams = StreamRig::new();
    streams.rig.expect_success(streams.set(0, 0, 32));
    streams.rig.expect_success(streams.set(1, 32, 8));
    let point = streams.order_streams(0, 1);
    streams.rig.expect_success(streams.set(1, 16, 8));
    streams.rig.expect_success(streams.destroy_event(point));
    streams.close().expect_none();
}

#[test]
fn an_event_orders_only_the_work_before_it() {
    let streams = StreamRig::new();
    let point = streams.order_streams(0, 1);
    streams.rig.expect_success(streams.set(0, 0, 8));
    assert!(streams.set(1, 0, 8).is_some());
    streams.rig.expect_success(streams.destroy_event(point));
    streams.close().expect_breach("A-1", "expected a wait for an event");
}

#[test]
fn the_host_waits_before_it_reads_or_frees() {
    let streams = StreamRig::new();
    streams.rig.expect_success(streams.set(0, 0, 8));
    assert!(streams.rig.read(0, streams.block, 0, 8).is_some());
    streams.close().expect_breach("A-1", "expected synchronization before `source` is used");

    let streams = StreamRig::new();
    streams.rig.expect_success(streams.set(0, 0, 8));
    assert!(streams.rig.free(0, streams.block, 64).is_some());
    streams.close().expect_breach("A-1", "expected synchronization before `block` is used");

    let streams = StreamRig::new();
    streams.rig.expect_success(streams.set(0, 0, 8));
    streams.synchronize(0);
    streams.rig.expect_success(streams.rig.read(0, streams.block, 0, 8));
    streams.close().expect_none();
}

#[test]
fn two_streams_may_read_the_same_bytes() {
    let streams = StreamRig::new();
    streams.rig.expect_success(streams.read_later(0, 0x1000));
    streams.rig.expect_success(streams.read_later(1, 0x2000));
    streams.close().expect_none();
}

#[test]
fn host_memory_of_a_copy_is_left_alone_until_the_copy_is_done() {
    let streams = StreamRig::new();
    streams.rig.expect_success(streams.read_later(0, 0x5004));
    // The source of `write` is at 0x5000.
    assert!(streams.rig.write(0, streams.block, 16, 8).is_some());
    streams.synchronize(0);
    streams.rig.expect_success(streams.rig.write(0, streams.block, 16, 8));
    streams.close().expect_breach("A-1", "expected host memory for `source` that no work uses");
}

#[test]
fn streams_and_events_belong_to_their_device_and_are_destroyed_once() {
    let streams = StreamRig::new();
    let slot = streams.rig.streams.table.stream_synchronize.expect("a slot");
    // SAFETY: the layer checks before the device, which does not follow handles.
    let failure = unsafe { slot(streams.rig.streams.context, 1, abi::Stream(streams.streams[0])) };
    assert!(failure.is_some());
    streams.close().expect_breach("A-3", "expected a stream of device 1");

    let streams = StreamRig::new();
    let point = streams.rig.event(0);
    streams.rig.expect_success(streams.destroy_event(point));
    assert!(streams.destroy_event(point).is_some());
    streams.close().expect_breach("A-3", "expected an event that is alive");
}

#[test]
fn two_threads_are_not_in_calls_on_one_stream() {
    let rig =
        LayerRig::with_device(DeviceMistake::None, FAR, &[], |device| device.meeting = Some(Barrier::new(2)));
    rig.start();
    let (stream, point) = (rig.stream(0), rig.event(0));
    let wait = rig.streams.table.stream_wait_event.expect("a slot");
    let query = rig.streams.table.stream_query.expect("a slot");
    let context = rig.streams.context.expose_provenance();
    let call = move || {
        let context = std::ptr::with_exposed_provenance_mut(context);
        // SAFETY: the layer checks before the device, which does not follow handles.
        unsafe { wait(context, 0, abi::Stream(stream), abi::Event(point)) }
    };
    let meeting = rig.device.meeting.as_ref().expect("a barrier");
    std::thread::scope(|scope| {
        let first = scope.spawn(call);
        meeting.wait();
        // The first thread is in its call until both meet again. A query may come meanwhile, other work may not.
        let mut done = 0;
        // SAFETY: as above.
        rig.expect_success(unsafe { query(rig.streams.context, 0, abi::Stream(stream), &raw mut done) });
        assert!(call().is_some());
        meeting.wait();
        assert!(!first.join().expect("no panic").is_some());
    });
    let messages = rig.finish();
    assert!(messages[0].ends_with("found another thread in one (rule T-1)"), "{messages:#?}");
}
