//! When work on streams runs, in which order, and where its errors surface.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use crate::common::{buffer_span, start_engine, upload_bytes};
use oarlock_fault_script::{FaultKind, SplitMix64};
use oarlock_plugin_sim::stream::{EventId, ExecutionStep, StreamId};
use oarlock_plugin_sim::{SimEngine, SimError};

const ALL_MODES: [&str; 3] = ["mode eager", "mode lazy", "mode random"];

fn enqueue_failure(engine: &SimEngine, stream: StreamId) {
    let fail = |_: &_| Err(SimError::new(FaultKind::Internal, "the kernel failed"));
    engine.enqueue_kernel("kernel", 0, stream, fail).unwrap();
}

#[test]
fn a_program_that_forgets_to_wait_reads_poison() {
    let engine = start_engine("mode lazy");
    let stream = engine.stream_create(0).unwrap();
    let source = upload_bytes(&engine, &[7; 16]);
    let target = engine.memory_allocate(0, 16).unwrap();
    engine.memory_copy_d2d_async(0, stream, target, source, 16).unwrap();
    let mut seen = [0; 16];
    engine.memory_copy_d2h(0, buffer_span(&mut seen), target).unwrap();
    assert_eq!(seen, [0xCD; 16]);
    engine.stream_synchronize(0, stream).unwrap();
    engine.memory_copy_d2h(0, buffer_span(&mut seen), target).unwrap();
    assert_eq!(seen, [7; 16]);
}

#[test]
fn eager_work_is_done_when_the_call_returns() {
    let engine = start_engine("mode eager");
    let stream = engine.stream_create(0).unwrap();
    let target = engine.memory_allocate(0, 4).unwrap();
    engine.memory_set_async(0, stream, target, 9, 4).unwrap();
    assert_eq!(engine.find_device(0).unwrap().read_elements::<u8>(target, 4).unwrap(), [9; 4]);
}

#[test]
fn polling_a_stream_or_an_event_comes_to_an_end() {
    for mode in ALL_MODES {
        let engine = start_engine(mode);
        let (stream, event) = (engine.stream_create(0).unwrap(), engine.event_create(0).unwrap());
        let target = engine.memory_allocate(0, 4).unwrap();
        for byte in 0..20 {
            engine.memory_set_async(0, stream, target, byte, 4).unwrap();
        }
        engine.event_record(0, stream, event).unwrap();
        engine.memory_set_async(0, stream, target, 20, 4).unwrap();
        let polls = (0..100).take_while(|_| !engine.event_query(0, event).unwrap()).count();
        assert!(polls < 100, "{mode}");
        let polls = (0..100).take_while(|_| !engine.stream_query(0, stream).unwrap()).count();
        assert!(polls < 100, "{mode}");
        assert_eq!(engine.find_device(0).unwrap().read_elements::<u8>(target, 1).unwrap(), [20]);
    }
}

#[test]
fn lazy_waiting_runs_no_more_than_it_must() {
    let engine = start_engine("mode lazy; trace on");
    let (first, second) = (engine.stream_create(0).unwrap(), engine.stream_create(0).unwrap());
    let event = engine.event_create(0).unwrap();
    for _ in 0..2 {
        engine.enqueue_kernel("kernel", 0, first, |_| Ok(())).unwrap();
        engine.event_record(0, first, event).unwrap();
    }
    engine.enqueue_kernel("never", 0, first, |_| Ok(())).unwrap();
    engine.enqueue_kernel("never", 0, second, |_| Ok(())).unwrap();
    engine.event_synchronize(0, event).unwrap();
    let calls: Vec<&str> = engine.execution_log().iter().map(|step| step.call).collect();
    assert_eq!(calls, ["kernel", "event_record", "kernel", "event_record"]);
}

fn random_program(script: &str, program_seed: u64) -> Vec<ExecutionStep> {
    let engine = start_engine(script);
    let mut random = SplitMix64::new(program_seed);
    let streams: Vec<StreamId> = (0..4).map(|_| engine.stream_create(0).unwrap()).collect();
    let events: Vec<EventId> = (0..4).map(|_| engine.event_create(0).unwrap()).collect();
    for _ in 0..100 {
        let (stream, event) = (streams[random.next_below(4)], events[random.next_below(4)]);
        match random.next_below(6) {
            0 => engine.event_record(0, stream, event).unwrap(),
            1 => engine.stream_wait_event(0, stream, event).unwrap(),
            2 => drop(engine.stream_query(0, stream).unwrap()),
            3 => engine.event_synchronize(0, event).unwrap(),
            _ => engine.enqueue_kernel("kernel", 0, stream, |_| Ok(())).unwrap(),
        }
    }
    engine.device_synchronize(0).unwrap();
    engine.execution_log()
}

#[test]
fn the_same_seed_gives_the_same_interleaving_and_another_seed_another() {
    for program in 0..20 {
        let first = random_program("mode random; trace on; seed 1", program);
        assert_eq!(first, random_program("mode random; trace on; seed 1", program));
        assert_ne!(first, random_program("mode random; trace on; seed 2", program));
        assert!(first.len() > 50);
    }
}

/// Copies between cells on random streams, ordered by events, must give the same result as the same copies run sequentially.
fn compare_with_an_oracle(seed: u64, mode: &str) {
    const CELL_COUNT: usize = 6;
    let engine = start_engine(&format!("{mode}; seed {seed}; quota 64KiB"));
    let mut random = SplitMix64::new(seed);
    let streams: Vec<StreamId> =
        (0..1 + random.next_below(4)).map(|_| engine.stream_create(0).unwrap()).collect();
    let cells: Vec<u64> = (0..CELL_COUNT as u8).map(|value| upload_bytes(&engine, &[value; 8])).collect();
    let mut oracle: Vec<u8> = (0..CELL_COUNT as u8).collect();
    // Every new operation on a cell must wait for the last operation on it, of either kind.
    let mut last: Vec<Option<EventId>> = vec![None; CELL_COUNT];
    for step in 0..30_u8 {
        let stream = streams[random.next_below(streams.len())];
        let (target, source) = (random.next_below(CELL_COUNT), random.next_below(CELL_COUNT));
        for event in [last[target], last[source]].into_iter().flatten() {
            engine.stream_wait_event(0, stream, event).unwrap();
        }
        if target == source {
            engine.memory_set_async(0, stream, cells[target], 100 + step, 8).unwrap();
            oracle[target] = 100 + step;
        } else {
            engine.memory_copy_d2d_async(0, stream, cells[target], cells[source], 8).unwrap();
            oracle[target] = oracle[source];
        }
        let event = engine.event_create(0).unwrap();
        engine.event_record(0, stream, event).unwrap();
        (last[target], last[source]) = (Some(event), Some(event));
        if random.next_below(8) == 0 {
            engine.stream_query(0, streams[0]).unwrap();
        }
    }
    let looked_at = random.next_below(CELL_COUNT);
    let mut seen = [0; 8];
    match last[looked_at] {
        Some(event) => engine.event_synchronize(0, event).unwrap(),
        None => engine.device_synchronize(0).unwrap(),
    }
    engine.memory_copy_d2h(0, buffer_span(&mut seen), cells[looked_at]).unwrap();
    assert_eq!(seen, [oracle[looked_at]; 8], "{mode}, seed {seed}");
    engine.device_synchronize(0).unwrap();
    for (cell, expected) in cells.iter().zip(&oracle) {
        engine.memory_copy_d2h(0, buffer_span(&mut seen), *cell).unwrap();
        assert_eq!(seen, [*expected; 8], "{mode}, seed {seed}");
    }
}

#[test]
fn events_order_work_across_streams_under_a_thousand_seeds() {
    for seed in 0..1000 {
        compare_with_an_oracle(seed, "mode random");
    }
}

#[test]
fn events_order_work_across_streams_in_the_other_modes() {
    for seed in 0..50 {
        compare_with_an_oracle(seed, "mode lazy");
        compare_with_an_oracle(seed, "mode eager");
    }
}

#[test]
fn without_the_events_some_seed_gives_a_wrong_result() {
    let is_wrong = |seed: u64| {
        let engine = start_engine(&format!("mode random; seed {seed}; quota 64KiB"));
        let (writer, reader) = (engine.stream_create(0).unwrap(), engine.stream_create(0).unwrap());
        let (from, to) = (upload_bytes(&engine, &[0]), upload_bytes(&engine, &[0]));
        engine.memory_set_async(0, writer, from, 1, 1).unwrap();
        engine.memory_copy_d2d_async(0, reader, to, from, 1).unwrap();
        engine.device_synchronize(0).unwrap();
        engine.find_device(0).unwrap().read_elements::<u8>(to, 1).unwrap() == [0]
    };
    let wrong = (0..100).filter(|&seed| is_wrong(seed)).count();
    assert!((1..100).contains(&wrong), "{wrong} of 100 schedules were wrong");
}

#[test]
fn an_error_sticks_to_its_stream_and_comes_out_once() {
    for mode in ALL_MODES {
        let engine = start_engine(mode);
        let (stream, other) = (engine.stream_create(0).unwrap(), engine.stream_create(0).unwrap());
        let (before, after) = (engine.event_create(0).unwrap(), engine.event_create(0).unwrap());
        let target = upload_bytes(&engine, &[1]);
        engine.event_record(0, stream, before).unwrap();
        enqueue_failure(&engine, stream);
        engine.memory_set_async(0, stream, target, 2, 1).unwrap();
        engine.event_record(0, stream, after).unwrap();
        engine.stream_wait_event(0, other, after).unwrap();

        engine.event_synchronize(0, before).unwrap();
        assert_eq!(engine.event_synchronize(0, after).unwrap_err().message, "the kernel failed");
        assert_eq!(engine.stream_synchronize(0, stream).unwrap_err().message, "the kernel failed");
        assert_eq!(engine.stream_synchronize(0, other).unwrap_err().message, "the kernel failed");
        engine.stream_synchronize(0, stream).unwrap();
        assert_eq!(
            engine.find_device(0).unwrap().read_elements::<u8>(target, 1).unwrap(),
            [1],
            "work behind a failure is skipped"
        );
    }
}

#[test]
fn a_kernel_that_panics_is_an_error_and_its_stream_lives_on() {
    let engine = start_engine("mode lazy");
    let stream = engine.stream_create(0).unwrap();
    engine.enqueue_kernel("kernel", 0, stream, |_| panic!("boom")).unwrap();
    let error = engine.stream_synchronize(0, stream).unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (FaultKind::Internal, "the work of `kernel` panicked: boom")
    );
    let target = upload_bytes(&engine, &[1, 0, 0, 0]);
    let double = move |device: &oarlock_plugin_sim::device::SimDevice| {
        let values: Vec<i32> = device.read_elements(target, 1)?;
        device.write_elements(target, &values.iter().map(|value| value * 2).collect::<Vec<_>>())
    };
    engine.enqueue_kernel("kernel", 0, stream, double).unwrap();
    engine.stream_synchronize(0, stream).unwrap();
    assert_eq!(engine.find_device(0).unwrap().read_elements::<i32>(target, 1).unwrap(), [2]);
}

#[test]
fn a_callback_runs_in_order_off_the_callers_thread_and_may_call_the_engine() {
    for mode in ALL_MODES {
        let engine = Arc::new(start_engine(mode));
        let (stream, other) = (engine.stream_create(0).unwrap(), engine.stream_create(0).unwrap());
        let target = upload_bytes(&engine, &[0]);
        let notes = Arc::new(Mutex::new(Vec::new()));
        engine.memory_set_async(0, stream, target, 5, 1).unwrap();
        let (inner, inner_notes) = (Arc::downgrade(&engine), Arc::clone(&notes));
        let callback = move |status: Result<(), SimError>| {
            let engine = inner.upgrade().unwrap();
            let seen = engine.find_device(0).unwrap().read_elements::<u8>(target, 1).unwrap()[0];
            engine.memory_set_async(0, other, target, 6, 1).unwrap();
            let nested = engine.stream_synchronize(0, other);
            let itself = engine.stream_synchronize(0, stream).unwrap_err();
            inner_notes.lock().unwrap().push((
                std::thread::current().id(),
                status,
                seen,
                nested,
                itself.kind,
            ));
        };
        engine.stream_add_callback(0, stream, callback).unwrap();
        engine.stream_synchronize(0, stream).unwrap();
        let notes = notes.lock().unwrap();
        let (thread, status, seen, nested, itself) = &notes[0];
        assert_ne!(*thread, std::thread::current().id());
        assert_eq!(
            (status, *seen, nested, *itself),
            (&Ok(()), 5, &Ok(()), FaultKind::InvalidArgument),
            "{mode}"
        );
        assert_eq!(engine.find_device(0).unwrap().read_elements::<u8>(target, 1).unwrap(), [6]);
    }
}

#[test]
fn callbacks_that_wait_for_each_other_get_an_error_and_not_a_deadlock() {
    let engine = Arc::new(start_engine("mode lazy"));
    let (first, second) = (engine.stream_create(0).unwrap(), engine.stream_create(0).unwrap());
    let (sender, results) = mpsc::channel();
    for (own, other) in [(first, second), (second, first)] {
        let (inner, sender) = (Arc::downgrade(&engine), sender.clone());
        let wait =
            move |_| sender.send(inner.upgrade().unwrap().stream_synchronize(0, other).is_ok()).unwrap();
        engine.stream_add_callback(0, own, wait).unwrap();
    }
    engine.stream_synchronize(0, first).unwrap();
    let mut results = [results.recv().unwrap(), results.recv().unwrap()];
    results.sort();
    assert_eq!(results, [false, true]);
}

#[test]
fn enqueueing_never_waits_for_a_callback_and_the_callback_comes_by_itself() {
    for mode in ALL_MODES {
        let engine = start_engine(mode);
        let (stream, other) = (engine.stream_create(0).unwrap(), engine.stream_create(0).unwrap());
        let event = engine.event_create(0).unwrap();
        let (sender, receiver) = mpsc::channel();
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock().unwrap();
        engine.enqueue_kernel("kernel", 0, other, |_| Ok(())).unwrap();
        engine.event_record(0, other, event).unwrap();
        engine.stream_wait_event(0, stream, event).unwrap();
        let inner = Arc::clone(&gate);
        let callback = move |status| {
            drop(inner.lock());
            sender.send(status).unwrap();
        };
        engine.stream_add_callback(0, stream, callback).unwrap();
        for _ in 0..20 {
            engine.enqueue_kernel("kernel", 0, stream, |_| Ok(())).unwrap();
            engine.stream_query(0, stream).unwrap();
        }
        drop(held);
        assert_eq!(receiver.recv().unwrap(), Ok(()), "{mode}");
    }
}

#[test]
fn a_callback_learns_of_the_failure_before_it() {
    let engine = start_engine("mode lazy");
    let stream = engine.stream_create(0).unwrap();
    let (sender, receiver) = mpsc::channel();
    enqueue_failure(&engine, stream);
    engine.stream_add_callback(0, stream, move |status| sender.send(status).unwrap()).unwrap();
    assert!(engine.stream_synchronize(0, stream).is_err());
    assert_eq!(receiver.recv().unwrap().unwrap_err().message, "the kernel failed");
}

#[test]
fn a_kernel_may_not_call_streams() {
    let engine = Arc::new(start_engine("mode lazy"));
    let stream = engine.stream_create(0).unwrap();
    let inner = Arc::downgrade(&engine);
    let kernel = move |_: &_| inner.upgrade().unwrap().stream_synchronize(0, stream);
    engine.enqueue_kernel("kernel", 0, stream, kernel).unwrap();
    let error = engine.stream_synchronize(0, stream).unwrap_err();
    assert!(error.message.contains("a kernel may not"), "{error}");
}

#[test]
fn destroying_a_stream_finishes_its_work_and_tells_its_error() {
    let engine = start_engine("mode lazy");
    let stream = engine.stream_create(0).unwrap();
    let target = upload_bytes(&engine, &[0]);
    engine.memory_set_async(0, stream, target, 3, 1).unwrap();
    enqueue_failure(&engine, stream);
    assert!(engine.stream_destroy(0, stream).is_err());
    assert_eq!(engine.find_device(0).unwrap().read_elements::<u8>(target, 1).unwrap(), [3]);
    assert_eq!(engine.stream_synchronize(0, stream).unwrap_err().kind, FaultKind::NotFound);
}

#[test]
fn a_wait_survives_its_event_and_keeps_to_the_recording_it_saw() {
    let engine = start_engine("mode lazy; trace on");
    let (first, second) = (engine.stream_create(0).unwrap(), engine.stream_create(0).unwrap());
    let event = engine.event_create(0).unwrap();
    engine.stream_wait_event(0, second, event).unwrap();
    engine.enqueue_kernel("seen", 0, first, |_| Ok(())).unwrap();
    engine.event_record(0, first, event).unwrap();
    engine.stream_wait_event(0, second, event).unwrap();
    engine.enqueue_kernel("unseen", 0, first, |_| Ok(())).unwrap();
    engine.event_record(0, first, event).unwrap();
    engine.event_destroy(0, event).unwrap();
    engine.stream_synchronize(0, second).unwrap();
    let calls: Vec<&str> = engine.execution_log().iter().map(|step| step.call).collect();
    assert_eq!(calls, ["seen", "event_record", "stream_wait_event"]);
    assert_eq!(engine.event_query(0, event).unwrap_err().kind, FaultKind::NotFound);
}

#[test]
fn elapsed_time_is_virtual_and_grows_with_the_work() {
    let engine = start_engine("mode lazy; delay memory_set_async 1 5ms");
    let stream = engine.stream_create(0).unwrap();
    let [start, end, never] = [(); 3].map(|()| engine.event_create(0).unwrap());
    let target = engine.memory_allocate(0, 1 << 20).unwrap();
    engine.event_record(0, stream, start).unwrap();
    assert!(engine.event_elapsed(0, start, end).is_err());
    engine.stream_synchronize(0, stream).unwrap();
    engine.memory_set_async(0, stream, target, 0, 1 << 20).unwrap();
    engine.event_record(0, stream, end).unwrap();
    engine.stream_synchronize(0, stream).unwrap();
    assert_eq!(engine.event_elapsed(0, start, end).unwrap(), 5_000_000 + 3_000 + (1 << 20) / 512);
    assert!(engine.event_elapsed(0, end, start).is_err());
    assert!(engine.event_elapsed(0, start, never).is_err());
    engine.event_synchronize(0, never).unwrap();
}

#[test]
fn streams_and_events_belong_to_their_device() {
    let engine = start_engine("ids 3,7");
    let (stream, event) = (engine.stream_create(3).unwrap(), engine.event_create(7).unwrap());
    assert!(engine.stream_synchronize(7, stream).unwrap_err().message.contains("belongs to device 3"));
    assert!(engine.event_record(3, stream, event).unwrap_err().message.contains("belongs to device 7"));
    assert!(engine.stream_wait_event(3, stream, event).is_err());
    assert_eq!(engine.stream_create(0).unwrap_err().kind, FaultKind::NotFound);
    assert_eq!(engine.stream_query(3, StreamId(99)).unwrap_err().kind, FaultKind::NotFound);
}

#[test]
fn several_host_threads_can_drive_their_streams_at_once() {
    for mode in ALL_MODES {
        let engine = start_engine(mode);
        std::thread::scope(|scope| {
            for byte in 0..4 {
                let engine = &engine;
                scope.spawn(move || {
                    let stream = engine.stream_create(0).unwrap();
                    let target = engine.memory_allocate(0, 64).unwrap();
                    for _ in 0..200 {
                        engine.memory_set_async(0, stream, target, byte, 64).unwrap();
                        engine.stream_synchronize(0, stream).unwrap();
                    }
                    assert_eq!(
                        engine.find_device(0).unwrap().read_elements::<u8>(target, 64).unwrap(),
                        [byte; 64]
                    );
                    engine.stream_destroy(0, stream).unwrap();
                });
            }
        });
    }
}
