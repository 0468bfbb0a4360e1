//! Tests of the format.

use super::*;
use crate::frame_writer::encode_frame;

fn sample_frames() -> Vec<RecordingFrame> {
    let contents = RecordedContents { size: 3, hash: Some(7), bytes: Some(vec![1, 2, 3]) };
    let tensor = RecordedTensor {
        bits: 1,
        block: 0x40,
        offset: 8,
        size_in_bytes: 24,
        dtype: 16,
        place: 0,
        dims: vec![2, 3],
        strides: vec![3, 1],
        contents: Some(contents.clone()),
    };
    let attribute = |name: &str, values| RecordedAttribute { name: name.into(), is_list: true, values };
    let kernel = RecordedKernelCall {
        device: 1,
        queue: 9,
        inputs: vec![tensor.clone(), RecordedTensor::default()],
        outputs: vec![tensor.clone()],
        attributes: vec![
            attribute("ints", AttributeValues::Ints(vec![-1, 2])),
            attribute("floats", AttributeValues::Floats(vec![0.5])),
            attribute("texts", AttributeValues::Strings(vec!["é".into()])),
            attribute("tensors", AttributeValues::Tensors(vec![tensor])),
            attribute("graphs", AttributeValues::Graphs),
        ],
    };
    let words = vec!["device".to_owned(), "size".to_owned()];
    vec![
        RecordingFrame::Target(RecordedTarget {
            plugin: "acme".into(),
            table: "core".into(),
            ..Default::default()
        }),
        RecordingFrame::Slot(RecordedSlot { number: 0, name: "core.memory_allocate".into(), words }),
        RecordingFrame::Call(RecordedCall {
            target: 0,
            slot: 0,
            thread: 2,
            failed: true,
            words: vec![1, u64::MAX],
            parts: vec![
                RecordedPart::Out { word: 1, value: 5 },
                RecordedPart::Contents { word: 0, contents },
                RecordedPart::Kernel(kernel),
            ],
        }),
    ]
}

fn encoded(frames: &[RecordingFrame]) -> Vec<u8> {
    let mut bytes = FILE_MAGIC.to_vec();
    frames.iter().for_each(|frame| encode_frame(&mut bytes, frame));
    bytes
}

/// All frames, and whether the file was cut off.
fn read_all(bytes: &[u8]) -> Result<(Vec<RecordingFrame>, bool), RecordingError> {
    let mut reader = RecordingReader::open_recording(bytes)?;
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        frames.push(frame);
    }
    Ok((frames, reader.is_cut_off()))
}

#[test]
fn frames_are_read_as_they_were_written() {
    let frames = sample_frames();
    let (read, is_cut_off) = read_all(&encoded(&frames)).expect("a recording");
    assert_eq!((read, is_cut_off), (frames, false));
}

#[test]
fn a_file_cut_anywhere_gives_the_frames_before_the_cut() {
    let frames = sample_frames();
    let whole = encoded(&frames);
    let ends: Vec<usize> = (0..=frames.len()).map(|count| encoded(&frames[..count]).len()).collect();
    for size in FILE_MAGIC.len()..whole.len() {
        let (read, is_cut_off) = read_all(&whole[..size]).expect("a recording");
        let expected = ends.iter().filter(|end| **end <= size).count() - 1;
        assert_eq!(read.len(), expected, "{size} bytes");
        assert_eq!(is_cut_off, !ends.contains(&size), "{size} bytes");
    }
}

#[test]
fn other_files_are_refused() {
    for bytes in [&b""[..], b"oarlock", b"oarlock\n\x02\0\0\0", b"PK\x03\x04aaaaaaaaaaaa"] {
        assert!(matches!(read_all(bytes), Err(RecordingError::OtherFormat)));
    }
}

#[test]
fn frames_that_make_no_sense_are_refused_by_number() {
    let [target, slot, call] = sample_frames().try_into().expect("three frames");
    let RecordingFrame::Call(good) = &call else { unreachable!("the third is a call") };
    let changed = |change: fn(&mut RecordedCall)| {
        let mut call = good.clone();
        change(&mut call);
        RecordingFrame::Call(call)
    };
    for frames in [
        vec![call.clone()],
        vec![target.clone(), call.clone()],
        vec![target.clone(), target.clone()],
        vec![slot.clone(), slot.clone()],
        vec![target.clone(), slot.clone(), changed(|call| call.target = 1)],
        vec![target.clone(), slot.clone(), changed(|call| call.slot = 1)],
        vec![target.clone(), slot.clone(), changed(|call| call.words.push(0))],
        vec![target, slot, changed(|call| call.parts.push(RecordedPart::Out { word: 2, value: 0 }))],
    ] {
        let number = frames.len() as u64;
        let error = read_all(&encoded(&frames)).expect_err("a bad frame");
        assert!(matches!(error, RecordingError::BadFrame { number: found } if found == number), "{error}");
    }
    let mut huge = FILE_MAGIC.to_vec();
    huge.extend(u32::MAX.to_le_bytes());
    assert!(matches!(read_all(&huge), Err(RecordingError::BadFrame { number: 1 })));
}

#[test]
fn no_changed_byte_makes_the_reader_panic() {
    let whole = encoded(&sample_frames());
    let mut refused = 0;
    for at in 0..whole.len() {
        for value in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            refused += u32::from(read_all(&bytes).is_err());
        }
    }
    assert!(refused > 100, "{refused}");
}
