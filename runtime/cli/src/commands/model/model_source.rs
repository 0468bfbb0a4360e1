//! Reads a model from a file or from a stream such as a pipe.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use oarlock_engine::Model;

use crate::problem::CommandError;

const STANDARD_INPUT: &str = "-";
/// Protobuf allows no larger files. Larger models keep their weights in files beside them, which a stream cannot have.
const MAX_STREAM_BYTES: u64 = 1 << 31;

pub(super) fn load_model(file: &Path) -> Result<Model, CommandError> {
    if is_stream(file) { load_model_stream(file) } else { Ok(oarlock_engine::import::load_model(file)?) }
}

/// True if the model can be read only once.
pub(super) fn is_stream(file: &Path) -> bool {
    let is_pipe = |kind: std::fs::FileType| kind.is_fifo() || kind.is_socket() || kind.is_char_device();
    file.as_os_str() == STANDARD_INPUT || file.metadata().is_ok_and(|metadata| is_pipe(metadata.file_type()))
}

fn load_model_stream(file: &Path) -> Result<Model, CommandError> {
    let unreadable = |error: io::Error| {
        CommandError::new(format!("`{}`: expected a model that can be read, found: {error}", file.display()))
    };
    let mut bytes = Vec::new();
    let read = if file.as_os_str() == STANDARD_INPUT {
        let input = io::stdin().lock();
        if input.is_terminal() {
            let message = "`-`: expected a model on the standard input, found a terminal";
            return Err(CommandError::new(message).with_hint("write it as in `oarlock run - < model.onnx`"));
        }
        input.take(MAX_STREAM_BYTES + 1).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|stream| stream.take(MAX_STREAM_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(unreadable)?;
    if bytes.len() as u64 > MAX_STREAM_BYTES {
        let message =
            format!("`{}`: expected a model of at most 2 GiB from a stream, found more", file.display());
        return Err(CommandError::new(message).with_hint("write it to a file, and name that"));
    }
    let model = oarlock_engine::import::onnx::decode_onnx(bytes.into(), None);
    model.map_err(|error| CommandError::from(error).for_file(file))
}
