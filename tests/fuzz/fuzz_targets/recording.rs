//! A recording of the layer `record`. Targets and slots that are read are written as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oarlock_plugin_record::{RecordingFrame, RecordingReader, encode_frame};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = RecordingReader::open_recording(bytes) else { return };
    while let Ok(Some(frame)) = reader.next_frame() {
        let mut written = Vec::new();
        encode_frame(&mut written, &frame);
        if !matches!(frame, RecordingFrame::Call(_)) {
            assert!(bytes.windows(written.len()).any(|part| part == written), "{frame:?}");
        }
    }
});
