//! Takes from the process what a plugin does not need.

#![expect(unsafe_code, reason = "descriptors are taken over and closed by their numbers")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};

use rustix::process::{Resource, Rlimit, Signal};

use crate::limits::IsolationLimits;

/// Ends this process with its parent, and takes it out of its parent's session, so that no key of the terminal reaches it.
pub(super) fn follow_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::thread::set_no_new_privs(true)?;
    // It fails if the process leads a group already, which is as good.
    _ = rustix::process::setsid();
    Ok(())
}

/// The socket and the shared memory, which are in place of standard input and output. Everything else but standard error is
/// closed.
pub(super) fn take_descriptors() -> io::Result<(OwnedFd, OwnedFd)> {
    close_inherited()?;
    // SAFETY: the parent put its descriptors here, and nobody in this process has used them yet.
    let (input, output) = unsafe { (OwnedFd::from_raw_fd(0), OwnedFd::from_raw_fd(1)) };
    let socket = rustix::io::fcntl_dupfd_cloexec(&input, 3)?;
    let file = rustix::io::fcntl_dupfd_cloexec(&output, 3)?;
    // The numbers stay in use as standard streams.
    std::mem::forget((input, output));
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // What the plugin prints is no data of the program.
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    Ok((socket, file))
}

/// Closes the files that the parent left open besides the standard streams.
fn close_inherited() -> io::Result<()> {
    let listed = std::fs::read_dir("/proc/self/fd")?;
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let inherited: Vec<i32> = numbers.filter(|number| *number > 2).collect();
    for number in inherited {
        // SAFETY: the process has just started and opened nothing yet, so nothing in it owns the file. The listing's own
        // descriptor is among the numbers and already closed; closing it again fails without consequence.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// Sets the limits that were asked for. Core files are never written: they would contain the shared memory.
pub(super) fn set_limits(limits: &IsolationLimits) -> io::Result<()> {
    let wanted = [
        (Resource::Core, Some(0)),
        (Resource::Data, limits.memory_bytes),
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, limits.processes),
    ];
    for (resource, most) in wanted {
        let Some(most) = most else { continue };
        let present = rustix::process::getrlimit(resource);
        let most = present.maximum.map_or(most, |maximum| most.min(maximum));
        rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // Rust's runtime handles these signals, and would print a message about a stack in place of a clean end.
        // SAFETY: the process has one thread, and the default action is the one it would have without the runtime.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}
