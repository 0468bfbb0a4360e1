//! Checks of the entry point: it may be called again, on any thread, by hosts of other minor versions.

#![expect(
    unsafe_code,
    reason = "the entry point is called with structs that are read and written through pointers"
)]

use std::thread;

use oarlock_abi as abi;

use super::ConformanceCheck;
use crate::bench::{CallError, CheckAbort, TestBench, Verdict, ensure};
use crate::subject::PluginEntry;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::plugin_check(
        "E-3",
        "a plugin that is queried again on another thread answers as before, and starts no thread",
        answers_again,
    ),
    ConformanceCheck::plugin_check(
        "S-3",
        "a newer host, whose structs have further fields, gets an answer",
        answers_newer_host,
    ),
    ConformanceCheck::plugin_check(
        "V-1",
        "an older host gets an answer of the size that it knows, or an error",
        answers_older_host,
    ),
];

/// The bytes behind the struct that a plugin fills, which it must not touch.
const GUARD: u8 = 0x3C;
/// Room for the struct of any host, and a guard zone.
const ROOM: usize = 4096;
/// The size of fields that only a newer host knows.
const MORE_FIELDS: usize = 64;

/// The host as the plugin sees it, followed by fields that only a newer host has.
#[repr(C)]
struct ExtendedHost {
    known: abi::Host,
    unknown: [u64; MORE_FIELDS / 8],
}

/// The answer of a plugin, with bytes that the plugin does not know.
#[repr(C, align(16))]
struct AnswerRoom {
    bytes: [u8; ROOM],
    /// The size of the struct that the host knows.
    size: usize,
}

impl AnswerRoom {
    /// An empty struct of this size, and the guard zone.
    fn new(size: usize) -> Self {
        let mut room = Self { bytes: [GUARD; ROOM], size };
        room.bytes[..size].fill(0);
        room.bytes[..4].copy_from_slice(&(size as u32).to_ne_bytes());
        room
    }

    fn plugin(&self) -> abi::Plugin {
        let mut plugin = abi::Plugin::EMPTY;
        let known = self.size.min(size_of::<abi::Plugin>());
        // SAFETY: the bytes are a struct that the plugin filled, of which no more is copied than both have.
        unsafe { std::ptr::copy_nonoverlapping(self.bytes.as_ptr(), (&raw mut plugin).cast(), known) };
        plugin
    }

    fn expect_guard(&self) -> Verdict {
        let size = self.size;
        ensure!(
            self.bytes[size..].iter().all(|byte| *byte == GUARD),
            "expected at most the {size} bytes written that the host knows, found more"
        );
        Ok(())
    }
}

fn entry(bench: &TestBench) -> Verdict<PluginEntry> {
    bench.subject().entry.ok_or_else(|| CheckAbort::unsupported("the entry point is not known here"))
}

/// Queries as a host of this minor version, whose own struct and whose answer have these sizes.
fn query_as(
    bench: &TestBench,
    minor: u32,
    host_size: usize,
    answer_size: usize,
) -> Verdict<(Result<(), CallError>, AnswerRoom)> {
    let PluginEntry { query, host } = entry(bench)?;
    // SAFETY: the host's struct lives as long as the plugin.
    let mut asking = ExtendedHost { known: unsafe { *host }, unknown: [0; MORE_FIELDS / 8] };
    asking.known.size = host_size as u32;
    asking.known.contract_minor = minor;
    let mut room = AnswerRoom::new(answer_size);
    let pointers = (&raw const asking.known, room.bytes.as_mut_ptr().cast::<abi::Plugin>());
    bench.begin_call("oarlock_plugin_query");
    // SAFETY: both structs are as large as their size fields say, and everything that the host's struct points to outlives the plugin.
    let error = unsafe { query(pointers.0, pointers.1) };
    let answer = bench.finish_call("oarlock_plugin_query", error);
    room.expect_guard()?;
    Ok((answer, room))
}

/// The text of a plugin's answer.
fn text(text: abi::Str) -> String {
    // SAFETY: the plugin vouches for its texts, which live as long as it is loaded (rule S-6).
    unsafe { text.text() }.unwrap_or("(not UTF-8)").to_owned()
}

fn thread_count() -> Option<usize> {
    std::fs::read_dir("/proc/self/task").ok().map(Iterator::count)
}

fn answers_again(bench: &TestBench) -> Verdict {
    entry(bench)?;
    let size = size_of::<abi::Plugin>();
    let (verdict, started) = thread::scope(|scope| {
        let another = scope.spawn(|| {
            let before = thread_count();
            let verdict = query_as(bench, abi::CONTRACT_MINOR, size_of::<abi::Host>(), size);
            (verdict, before.zip(thread_count()))
        });
        another.join().unwrap_or_else(|_| (Err(CheckAbort::failed("a thread of the suite panicked")), None))
    });
    let (answer, room) = verdict?;
    answer?;
    let (plugin, subject) = (room.plugin(), bench.subject());
    ensure!(
        text(plugin.name) == subject.name && text(plugin.version) == subject.version,
        "expected `{} {}` as at first, found `{} {}`",
        subject.name,
        subject.version,
        text(plugin.name),
        text(plugin.version)
    );
    ensure!(
        plugin.reserved == 0,
        "expected `reserved` in the answer to be 0 (rule S-4), found {:#x}",
        plugin.reserved
    );
    if let Some((before, now)) = started {
        ensure!(now <= before, "expected no new thread, found {}", now - before);
    }
    Ok(())
}

fn answers_newer_host(bench: &TestBench) -> Verdict {
    let (host, answer) = (size_of::<ExtendedHost>(), size_of::<abi::Plugin>() + MORE_FIELDS);
    let (answer, room) = query_as(bench, abi::CONTRACT_MINOR + 1, host, answer)?;
    answer?;
    let subject = bench.subject();
    let name = text(room.plugin().name);
    ensure!(name == subject.name, "expected `{}` as at first, found `{name}`", subject.name);
    Ok(())
}

fn answers_older_host(bench: &TestBench) -> Verdict {
    let (host, size) = (abi::Host::SIZE_AT_FIRST as usize, abi::Plugin::SIZE_AT_FIRST as usize);
    let (answer, room) = query_as(bench, 0, host, size)?;
    let plugin = room.plugin();
    if answer.is_ok() {
        ensure!(
            plugin.size as usize <= size,
            "expected a struct of at most {size} bytes, found one of {}",
            plugin.size
        );
        let name = text(plugin.name);
        ensure!(
            name == bench.subject().name,
            "expected `{}` as at first, found `{name}`",
            bench.subject().name
        );
    }
    Ok(())
}
