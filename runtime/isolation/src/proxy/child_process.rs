//! Starts the child and watches over it until it ends.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use oarlock_abi as abi;
use rustix::event::{PollFd, PollFlags};
use rustix::process::Resource;

use super::child_life::ChildLife;
use super::connection::ChildConnection;
use super::start_request::StartRequest;
use crate::shared::frames::{FrameReader, FrameWriter};
use crate::shared::region::SharedRegion;
use crate::wire::WireBreach;
use crate::wire::byte_reader::ByteReader;
use crate::wire::byte_writer::ByteWriter;
use crate::wire::failure::WireFailure;
use crate::wire::generated::ASYNC_STREAM_ADD_CALLBACK;
use crate::wire::header::{FRAME_DESCRIPTION, FRAME_LOG, FRAME_REACHED, FRAME_REFUSAL};

/// What the watching thread tells the thread that starts a plugin.
#[derive(Debug)]
pub(super) enum StartNews {
    /// The child runs.
    Spawned(Arc<ChildConnection>),
    /// It describes its plugin.
    Described(Vec<u8>),
    /// It refuses its plugin.
    Refused(Vec<u8>),
    /// It cannot be started.
    Failed(io::Error),
    /// It ended.
    Ended,
}

/// Starts the child and watches over it. This has to be a thread that lives as long as the child: Linux ends the child when
/// the thread that started it ends.
pub(super) fn run_child(request: &StartRequest, news: &Sender<StartNews>) {
    match spawn_child(request) {
        Ok((child, connection, socket)) => {
            _ = news.send(StartNews::Spawned(connection.clone()));
            watch_child(child, &connection, &socket, news);
            _ = news.send(StartNews::Ended);
        }
        // The receiver waits for it.
        Err(error) => _ = news.send(StartNews::Failed(error)),
    }
}

fn spawn_child(request: &StartRequest) -> io::Result<(Child, Arc<ChildConnection>, UnixStream)> {
    let region = SharedRegion::create_region(arena_bytes())?;
    let (socket, theirs) = UnixStream::pair()?;
    let mut child = Command::new(&request.program)
        .args(&request.arguments)
        .arg(&request.path)
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::from(region.file().try_clone_to_owned()?))
        .spawn()?;
    let life = ChildLife::new(request.name.clone(), child.id()).and_then(|life| {
        let mut setup = Vec::new();
        let mut writer = ByteWriter::new(&mut setup);
        request.limits.write_limits(&mut writer);
        writer.put_raw(&request.setup);
        FrameWriter::new(socket.try_clone()?).write_frame(0, &setup)?;
        Ok(life)
    });
    match life {
        Ok(life) => {
            let connection = ChildConnection::new(region, life, request.host, request.limits.call_time);
            Ok((child, Arc::new(connection), socket))
        }
        Err(error) => {
            // It is not in use yet, and cannot be without its setup.
            _ = child.kill();
            _ = child.wait();
            Err(error)
        }
    }
}

/// Room for data: as much as the machine has memory, or a part of what the limits of this process permit. It costs nothing until
/// it is used.
fn arena_bytes() -> usize {
    let machine = rustix::system::sysinfo();
    let memory: u64 = machine.totalram.saturating_mul(machine.mem_unit.into());
    let limits = [Resource::As, Resource::Fsize].map(rustix::process::getrlimit);
    let permitted = limits.into_iter().filter_map(|limit| limit.current).map(|most| most / 4).min();
    usize::try_from(memory.min(permitted.unwrap_or(u64::MAX))).unwrap_or(usize::MAX / 4) & !0xffff
}

fn watch_child(
    mut child: Child,
    connection: &ChildConnection,
    socket: &UnixStream,
    news: &Sender<StartNews>,
) {
    let life = connection.life();
    let mut frames = FrameReader::default();
    loop {
        let mut watched = [
            PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(life.process(), PollFlags::IN),
        ];
        if rustix::event::poll(&mut watched, None).is_err() {
            // Interrupted.
            continue;
        }
        let (has_frames, has_ended) = (!watched[0].revents().is_empty(), !watched[1].revents().is_empty());
        // Frames come first: what a child said before it ended counts.
        let goes_on = has_frames && read_frames(&mut frames, connection, socket, news);
        if (has_frames && !goes_on) || (has_ended && !has_frames) {
            break;
        }
    }
    life.kill();
    life.note_end(child.wait());
    connection.callbacks().fail_all(&life.lost_failure(ASYNC_STREAM_ADD_CALLBACK));
    connection.release_waiters();
}

/// Reads what the socket has; false if the child closed it or broke the protocol.
fn read_frames(
    frames: &mut FrameReader,
    connection: &ChildConnection,
    socket: &UnixStream,
    news: &Sender<StartNews>,
) -> bool {
    let step = |frames: &mut FrameReader| {
        let goes_on = frames.read_more(socket)?;
        while let Some((kind, bytes)) = frames.next_frame()? {
            receive_frame(connection, kind, bytes, news)
                .map_err(|breach| io::Error::other(breach.to_string()))?;
        }
        Ok::<bool, io::Error>(goes_on)
    };
    step(frames).unwrap_or_else(|error| {
        connection.life().condemn(|| format!("it sent what it should not: {error}"));
        false
    })
}

fn receive_frame(
    connection: &ChildConnection,
    kind: u8,
    bytes: Vec<u8>,
    news: &Sender<StartNews>,
) -> Result<(), WireBreach> {
    let mut reader = ByteReader::new(&bytes);
    match kind {
        // Nobody listens for a second description.
        FRAME_DESCRIPTION => _ = news.send(StartNews::Described(bytes)),
        FRAME_REFUSAL => _ = news.send(StartNews::Refused(bytes)),
        FRAME_LOG => {
            let (level, message) = (abi::LogLevel(reader.take_u32()?), reader.take_text()?);
            connection.host().log(level, message);
        }
        FRAME_REACHED => {
            let (number, has_failure) = (reader.take_u64()?, reader.take_u8()? != 0);
            let failure = has_failure.then(|| WireFailure::read_failure(&mut reader)).transpose()?;
            if !connection.callbacks().note_reached(number, failure) {
                return Err(WireBreach::new("the number of a callback that waits", number.to_string()));
            }
        }
        other => return Err(WireBreach::new("a kind of frame", other.to_string())),
    }
    Ok(())
}
