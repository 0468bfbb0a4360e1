//! Frames on the socket between the processes: a size, a kind, and bytes. They carry what belongs to no call.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

/// Limit on a frame. The largest describes the kernels of a plugin.
const MAX_FRAME: usize = 64 << 20;

/// The end of the socket that frames are written to.
#[derive(Clone, Debug)]
pub(crate) struct FrameWriter {
    socket: Arc<Mutex<UnixStream>>,
}

impl FrameWriter {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self { socket: Arc::new(Mutex::new(socket)) }
    }

    pub(crate) fn write_frame(&self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        let size = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let mut frame = Vec::with_capacity(bytes.len() + 5);
        frame.extend_from_slice(&size.to_ne_bytes());
        frame.push(kind);
        frame.extend_from_slice(bytes);
        self.socket.lock().unwrap_or_else(PoisonError::into_inner).write_all(&frame)
    }
}

/// Collects the bytes of a socket until they are whole frames.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    bytes: Vec<u8>,
}

impl FrameReader {
    /// Reads what the socket has; false at its end.
    pub(crate) fn read_more(&mut self, mut socket: &UnixStream) -> io::Result<bool> {
        let mut part = [0; 16 << 10];
        let count = match socket.read(&mut part) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            other => other?,
        };
        self.bytes.extend_from_slice(&part[..count]);
        Ok(count > 0)
    }

    /// The next whole frame: its kind and its bytes.
    pub(crate) fn next_frame(&mut self) -> io::Result<Option<(u8, Vec<u8>)>> {
        const HEAD: usize = 5;
        let Some((head, rest)) = self.bytes.split_at_checked(HEAD) else { return Ok(None) };
        let size = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if size > MAX_FRAME {
            return Err(io::Error::other(format!(
                "expected a frame of at most {MAX_FRAME} bytes, found {size}"
            )));
        }
        if rest.len() < size {
            return Ok(None);
        }
        let frame = (head[4], rest[..size].to_vec());
        self.bytes.drain(..HEAD + size);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_whole_and_in_order() {
        let (one, other) = UnixStream::pair().expect("a pair of sockets");
        let writer = FrameWriter::new(one);
        let long = vec![7; 100 << 10];
        let sender = std::thread::spawn({
            let long = long.clone();
            move || {
                writer.write_frame(1, b"short").expect("a reader");
                writer.write_frame(2, &long).expect("a reader");
            }
        });
        let (mut reader, mut frames) = (FrameReader::default(), Vec::new());
        while reader.read_more(&other).expect("a writer") {
            while let Some(frame) = reader.next_frame().expect("sound frames") {
                frames.push(frame);
            }
        }
        sender.join().expect("the writer ends");
        assert!(frames == [(1, b"short".to_vec()), (2, long)]);
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_it_arrives() {
        let mut reader = FrameReader { bytes: vec![0xff; 5] };
        assert!(reader.next_frame().is_err());
    }
}
