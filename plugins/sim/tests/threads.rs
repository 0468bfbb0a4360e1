//! Threads end with what they were for. A process of its own, because it counts all threads of the process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::time::Duration;

use oarlock_plugin_sim::{Engine, Script, SimErrorKind};

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// The number of threads, once it is the expected one: the system lists a thread for a moment after it was joined.
fn threads_settling_at(expected: usize) -> usize {
    for _ in 0..1000 {
        if threads() == expected {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    threads()
}

#[test]
fn no_thread_outlives_its_stream_or_its_engine() {
    let before = threads();
    for mode in ["eager", "lazy", "random"] {
        let engine = Engine::new(Script::parse(&format!("mode {mode}")).unwrap()).unwrap();
        let streams: Vec<_> = (0..8).map(|_| engine.stream_create(0).unwrap()).collect();
        assert_eq!(threads(), before + 8);
        for &stream in &streams {
            engine.enqueue("kernel", 0, stream, |_| Ok(())).unwrap();
        }
        for &stream in &streams[..4] {
            engine.stream_destroy(0, stream).unwrap();
        }
        assert_eq!(threads_settling_at(before + 4), before + 4);
        drop(engine);
        assert_eq!(threads_settling_at(before), before);
    }
    let engine = Engine::new(Script::default()).unwrap();
    let stream = engine.stream_create(0).unwrap();
    engine.shut_down();
    assert_eq!(threads_settling_at(before), before);
    assert_eq!(engine.stream_synchronize(0, stream).unwrap_err().kind, SimErrorKind::Unavailable);
}
