//! Threads end with their streams. A test program of its own, because it counts all threads of the process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::time::Duration;

use oarlock_fault_script::FaultKind;
use oarlock_plugin_sim::{FaultScript, SimEngine};

fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// The number of threads, once it is the expected one: the system lists a thread for a moment after it was joined.
fn settled_thread_count(expected: usize) -> usize {
    for _ in 0..1000 {
        if thread_count() == expected {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    thread_count()
}

#[test]
fn no_thread_outlives_its_stream_or_its_engine() {
    let before = thread_count();
    for mode in ["eager", "lazy", "random"] {
        let engine = SimEngine::new(FaultScript::parse_script(&format!("mode {mode}")).unwrap()).unwrap();
        let streams: Vec<_> = (0..8).map(|_| engine.stream_create(0).unwrap()).collect();
        assert_eq!(thread_count(), before + 8);
        for &stream in &streams {
            engine.enqueue_kernel("kernel", 0, stream, |_| Ok(())).unwrap();
        }
        for &stream in &streams[..4] {
            engine.stream_destroy(0, stream).unwrap();
        }
        assert_eq!(settled_thread_count(before + 4), before + 4);
        drop(engine);
        assert_eq!(settled_thread_count(before), before);
    }
    let engine = SimEngine::new(FaultScript::default()).unwrap();
    let stream = engine.stream_create(0).unwrap();
    engine.shut_down();
    assert_eq!(settled_thread_count(before), before);
    assert_eq!(engine.stream_synchronize(0, stream).unwrap_err().kind, FaultKind::Unavailable);
}
