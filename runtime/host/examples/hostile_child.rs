//! A child program whose plugin has gone mad: while it serves a plugin, it overwrites the memory that it shares with the host.
//! Tests start it as `hostile_child SEED PATH`.

#![expect(unsafe_code, reason = "it writes where it should not, which is its purpose")]

use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags};

/// The part of the shared memory that is overwritten: its head and the messages of the first lane.
const OVERWRITTEN: usize = 200 << 10;
/// Where the replies of the first lane are.
const REPLY: std::ops::Range<usize> = 73_728..73_728 + 128;
/// Where the counters of the first lane are.
const COUNTERS: std::ops::Range<usize> = 4096..4096 + 512;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, seed, path] = arguments.as_slice() else {
        eprintln!("expected a seed and the path of a plugin, found {arguments:?}");
        return ExitCode::FAILURE;
    };
    let output = std::io::stdout();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses an address where nothing is mapped.
    let mapped = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), OVERWRITTEN, access, MapFlags::SHARED, output.as_fd(), 0)
    };
    // A program that probes has a pipe there, which cannot be mapped.
    if let (Ok(base), Ok(seed)) = (mapped, seed.parse::<u64>()) {
        let base = base as usize;
        std::thread::spawn(move || overwrite_memory(base, seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    }
    oarlock_host::probe_child_main(Path::new(path), &[])
}

fn overwrite_memory(base: usize, seed: u64) -> ! {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    std::thread::sleep(Duration::from_millis(30 + next() % 40));
    loop {
        let range = match next() % 4 {
            0 => 0..OVERWRITTEN,
            1 => COUNTERS,
            _ => REPLY,
        };
        let at = range.start + (next() as usize % (range.len() / 4)) * 4;
        let value = match next() % 3 {
            0 => next() as u32,
            1 => (next() % 16) as u32,
            _ => u32::MAX,
        };
        // SAFETY: the place is in the mapping, and aligned.
        unsafe { (base as *mut u32).byte_add(at).write_volatile(value) };
        std::thread::sleep(Duration::from_micros(next() % 300));
    }
}
