//! Names the format of a file that is no model of ours, by its first bytes, and says what to do with it.

use oarlock_core::Error;

/// A format that is read nowhere here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForeignFormat {
    /// What the file is, as it follows "found" in a message.
    pub(super) name: &'static str,
    pub(super) advice: &'static str,
}

impl ForeignFormat {
    /// False for what may lie beside any model.
    pub(super) fn is_of_model(self) -> bool {
        self.advice != NO_MODEL
    }
}

const fn format(name: &'static str, advice: &'static str) -> ForeignFormat {
    ForeignFormat { name, advice }
}

/// Bytes at a place in a file.
type Magic = (usize, &'static [u8]);

const TO_ONNX_BY_TORCH: &str = "export the model with `torch.onnx.export` in the program that has it";
const TO_ONNX_BY_TF2ONNX: &str =
    "convert it: `python -m tf2onnx.convert --tflite FILE --output model.onnx`, from the package tf2onnx";
const TO_ONNX_BY_KERAS: &str =
    "convert it: in Keras 3, load it and call `model.export(\"model.onnx\", format=\"onnx\")`";
const TO_ONNX_BY_SAVED_MODEL: &str = "convert its directory: `python -m tf2onnx.convert --saved-model DIRECTORY --output model.onnx`, from the package tf2onnx";
const TO_ONNX_BY_SKLEARN: &str = "convert the model with `to_onnx` of the package skl2onnx, in the program that trained it; for XGBoost and \
                                  LightGBM there is onnxmltools";
const FROM_SOURCE: &str =
    "there is no way back from this format: export the model to ONNX from where this file was made";
const UNPACK: &str = "unpack it, and name the model in it";
const DECOMPRESS: &str = "decompress it; a model without files beside it can go through a pipe, as in `xz -dc model.onnx.xz | oarlock run -`";
const NO_MODEL: &str = "name the file of a model in ONNX, or of a Paddle program";

/// Formats by bytes that nothing else has at that place.
const FORMATS_BY_MAGIC: &[(Magic, ForeignFormat)] = &[
    ((4, b"TFL3"), format("a model of TensorFlow Lite", TO_ONNX_BY_TF2ONNX)),
    (
        (4, b"ORTM"),
        format("a model in onnxruntime's own format (`.ort`)", "take the ONNX file that it was made from"),
    ),
    ((4, b"MSL"), format("a model of MindSpore Lite", FROM_SOURCE)),
    ((0, b"\x89HDF\r\n\x1a\n"), format("HDF5, as Keras writes models and weights", TO_ONNX_BY_KERAS)),
    (
        (0, b"GGUF"),
        format(
            "GGUF, a language model for llama.cpp",
            "export the model that it was made from: `optimum-cli export onnx --model NAME DIRECTORY`, from the package optimum-onnx",
        ),
    ),
    ((0, b"ftrt"), format("an engine of TensorRT", FROM_SOURCE)),
    ((0, b"ptrt"), format("an engine of TensorRT", FROM_SOURCE)),
    ((0, b"RKNN"), format("a model for chips of Rockchip", FROM_SOURCE)),
    ((0, b"7767517"), format("a model of ncnn", FROM_SOURCE)),
    (
        (0, b"CBM1"),
        format("a model of CatBoost", "save it with `save_model(\"model.onnx\", format=\"onnx\")`"),
    ),
    ((0, b"tree\nversion="), format("a model of LightGBM", TO_ONNX_BY_SKLEARN)),
    ((0, b"binf"), format("a model of XGBoost", TO_ONNX_BY_SKLEARN)),
    (
        (0, b"\x93NUMPY"),
        format("an array of NumPy", "give it as an input, as in `-i x=FILE.npy`, and name a model"),
    ),
    (
        (0, b"version https://git-lfs.github.com/spec/"),
        format(
            "a pointer of Git LFS",
            "the file itself is not here yet: `git lfs pull` in the repository downloads it",
        ),
    ),
    ((0, b"\x1f\x8b"), format("a file compressed by gzip", DECOMPRESS)),
    ((0, b"\xfd7zXZ\0"), format("a file compressed by xz", DECOMPRESS)),
    ((0, b"\x28\xb5\x2f\xfd"), format("a file compressed by zstd", DECOMPRESS)),
    ((0, b"BZh"), format("a file compressed by bzip2", DECOMPRESS)),
    ((0, b"7z\xbc\xaf\x27\x1c"), format("an archive of 7-Zip", UNPACK)),
    ((0, b"Rar!"), format("an archive of RAR", UNPACK)),
    ((257, b"ustar"), format("a tar archive", UNPACK)),
    ((0, b"\x7fELF"), format("a program or shared library", NO_MODEL)),
    ((0, b"MZ"), format("a program for Windows", NO_MODEL)),
    ((0, b"%PDF-"), format("a PDF document", NO_MODEL)),
    ((0, b"\x89PNG"), format("an image", NO_MODEL)),
    ((0, b"\xff\xd8\xff"), format("an image", NO_MODEL)),
];

/// Formats of ZIP archives, by the name of a file in them.
const FORMATS_OF_ZIP: &[(&[u8], ForeignFormat)] = &[
    (b"/constants.pkl", format("TorchScript, an archive of PyTorch", TO_ONNX_BY_TORCH)),
    (b"serialized_exported_program", format("an exported program of PyTorch (`.pt2`)", TO_ONNX_BY_TORCH)),
    (b"archive_format", format("an exported program of PyTorch (`.pt2`)", TO_ONNX_BY_TORCH)),
    (b"data.pkl", format("an archive of PyTorch", TO_ONNX_BY_TORCH)),
    (b"model.weights.h5", format("a model of Keras", TO_ONNX_BY_KERAS)),
    (b"com.apple.CoreML", format("a package of Core ML", FROM_SOURCE)),
    (b"MAR-INF/", format("an archive of TorchServe", UNPACK)),
    (b".npy", format("arrays of NumPy", "give them as inputs, as in `-i FILE.npz`, and name a model")),
];
const OTHER_ZIP: ForeignFormat = format("a ZIP archive", UNPACK);

/// Formats of JSON, by a text in it.
const FORMATS_OF_JSON: &[(&[u8], ForeignFormat)] = &[
    (
        b"\"base_code\"",
        format(
            "a program of Paddle 3",
            "give its file a name that ends in `.json`, with the `.pdiparams` file beside it",
        ),
    ),
    (b"\"modelTopology\"", format("a model of TensorFlow.js", FROM_SOURCE)),
    (b"\"arg_nodes\"", format("a model of MXNet", "convert it with `mxnet.onnx.export_model`")),
    (b"\"tree_param\"", format("a model of XGBoost", TO_ONNX_BY_SKLEARN)),
    (b"\"learner\"", format("a model of XGBoost", TO_ONNX_BY_SKLEARN)),
    (
        b"\"model_type\"",
        format(
            "the settings of a model, and not the model",
            "export that: `optimum-cli export onnx --model DIRECTORY OUTPUT`, from the package optimum-onnx",
        ),
    ),
];
const OTHER_JSON: ForeignFormat = format("a text in JSON that is no program of Paddle", NO_MODEL);

const SAFETENSORS: ForeignFormat = format(
    "safetensors, which are weights without the ops between them",
    "export the model: `optimum-cli export onnx --model DIRECTORY OUTPUT` for one of transformers, else `torch.onnx.export`",
);
const WEB_PAGE: ForeignFormat = format(
    "a web page, as a download leaves that failed",
    "open it in a browser to see why, and download the model again",
);
const PICKLE: ForeignFormat = format("a pickle of Python", TO_ONNX_BY_SKLEARN);

/// As much of a file as is looked at.
pub(super) const RECOGNIZED_BYTES: usize = 1 << 16;

/// The format of a file that is no model of ours, if its beginning says so. The end of a file may help too.
pub(super) fn recognize_format(bytes: &[u8]) -> Option<ForeignFormat> {
    let has_magic = |(at, magic): Magic| bytes.get(at..).is_some_and(|rest| rest.starts_with(magic));
    if let Some((_, format)) = FORMATS_BY_MAGIC.iter().find(|(magic, _)| has_magic(*magic)) {
        return Some(*format);
    }
    let head = &bytes[..bytes.len().min(RECOGNIZED_BYTES)];
    let find = |formats: &[(&[u8], ForeignFormat)], place: &[u8]| {
        formats.iter().find(|(text, _)| contains(place, text)).map(|(_, format)| *format)
    };
    if head.starts_with(b"PK\x03\x04") {
        // The names of all files are at the end.
        let tail = &bytes[bytes.len().saturating_sub(RECOGNIZED_BYTES)..];
        return Some(find(FORMATS_OF_ZIP, tail).or_else(|| find(FORMATS_OF_ZIP, head)).unwrap_or(OTHER_ZIP));
    }
    match head {
        [_, _, _, _, b'E', b'T', tens, ones, ..] if tens.is_ascii_digit() && ones.is_ascii_digit() => {
            Some(format("a program of ExecuTorch", FROM_SOURCE))
        }
        [0x80, 2..=5, ..] if contains(head, b"torch") => {
            Some(format("a pickle of PyTorch", TO_ONNX_BY_TORCH))
        }
        [0x80, 2..=5, ..] => Some(PICKLE),
        [_, _, _, _, _, _, 0, 0, b'{', b'"', ..] => Some(SAFETENSORS),
        _ => recognize_text(head).or_else(|| recognize_message(head)),
    }
}

fn recognize_text(head: &[u8]) -> Option<ForeignFormat> {
    let text = head.trim_ascii_start();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if text.starts_with(b"<") {
        let lower = text.to_ascii_lowercase();
        return Some(match () {
            () if contains(&lower, b"<html") || lower.starts_with(b"<!doctype html") => WEB_PAGE,
            () if contains(&lower, b"<net ") => format("a model of OpenVINO", FROM_SOURCE),
            () if contains(&lower, b"<error>") => WEB_PAGE,
            () => format("a text in XML", NO_MODEL),
        });
    }
    if text.starts_with(b"{") && text[1..].trim_ascii_start().starts_with(b"\"") {
        let known = FORMATS_OF_JSON.iter().find(|(name, _)| contains(text, name));
        return Some(known.map_or(OTHER_JSON, |(_, format)| *format));
    }
    if text.starts_with(b"layer {") || text.starts_with(b"name: \"") && contains(text, b"layer") {
        return Some(format("a network of Caffe", FROM_SOURCE));
    }
    let is_text = std::str::from_utf8(text)
        .is_ok_and(|text| !text.contains(|c: char| c.is_control() && !c.is_whitespace()));
    (is_text && text.len() > 1).then_some(format("a text", NO_MODEL))
}

/// Protobuf messages have no magic, but start with their first fields.
fn recognize_message(head: &[u8]) -> Option<ForeignFormat> {
    match head {
        // A number, then a message that starts with a message. In ONNX, a name is second.
        [0x08, _, 0x12, rest @ ..] if skip_length(rest)?.first() == Some(&0x0a) => {
            let is_tensorflow = [&b"serve"[..], b"tensorflow", b"Placeholder", b"VarHandleOp"];
            Some(if is_tensorflow.iter().any(|text| contains(head, text)) {
                format("a SavedModel of TensorFlow", TO_ONNX_BY_SAVED_MODEL)
            } else {
                format("a protobuf message of another kind, such as a model of Core ML", FROM_SOURCE)
            })
        }
        [0x0a, rest @ ..] => match skip_length(rest)? {
            [0x08, ..] => Some(format(
                "a program of Paddle",
                "give its file the name `__model__`, or one that ends in `.pdmodel`, with the `.pdiparams` file beside it",
            )),
            // A node: its name, then its op.
            [0x0a, rest @ ..] => {
                let (length, rest) = rest.split_first()?;
                (rest.get(usize::from(*length)) == Some(&0x12)).then_some(format(
                    "a graph of TensorFlow",
                    "convert it: `python -m tf2onnx.convert --graphdef FILE --inputs X:0 --outputs Y:0 --output model.onnx`",
                ))
            }
            _ => None,
        },
        _ => None,
    }
}

/// What follows the length of a protobuf message.
fn skip_length(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)?;
    bytes.get(end + 1..)
}

fn contains(place: &[u8], text: &[u8]) -> bool {
    place.windows(text.len()).any(|window| window == text)
}

/// Names the format of a file in the error about it. An unknown format leaves the error as it is.
pub(super) fn name_format(error: Error, expected: &str, bytes: &[u8]) -> Error {
    match recognize_format(bytes) {
        Some(format) => Error::invalid_argument(format!("expected {expected}, found {}", format.name))
            .with_advice(format.advice),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> &'static str {
        recognize_format(bytes).map_or("nothing known", |format| format.name)
    }

    #[test]
    fn formats_are_named_by_their_first_bytes() {
        let tar = [&[b'x'; 257][..], b"ustar\0"].concat();
        for (bytes, expected) in [
            (&b"\x1c\0\0\0TFL3\0"[..], "TensorFlow Lite"),
            (b"PK\x03\x04....model/data.pkl", "an archive of PyTorch"),
            (b"PK\x03\x04....m/data.pkl..m/constants.pkl", "TorchScript"),
            (b"PK\x03\x04....x.npy", "arrays of NumPy"),
            (b"PK\x03\x04....", "a ZIP archive"),
            (b"\x80\x02}q\0X\x05\0torch", "a pickle of PyTorch"),
            (b"\x80\x04\x95\0sklearn", "a pickle of Python"),
            (b"\x40\0\0\0\0\0\0\0{\"w\":", "safetensors"),
            (b"\x30\0\0\0ET12eh00", "ExecuTorch"),
            (b"\n<!DOCTYPE html><p>", "a web page"),
            (b"<?xml version=\"1.0\"?>\n<net name=\"x\" version=\"11\">", "OpenVINO"),
            (b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "a web page"),
            (b"{ \"base_code\": {\"magic\": \"pir\"", "a program of Paddle 3"),
            (b"{\"architectures\": [], \"model_type\": \"bert\"}", "the settings of a model"),
            (b"{\"a\": 1}", "a text in JSON"),
            (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"),
            (b"7767517\n3 3\n", "ncnn"),
            (b"\x08\x01\x12\x80\x02\x0a\x05..serve", "SavedModel of TensorFlow"),
            (b"\x08\x05\x12\x08\x0a\x06", "Core ML"),
            (b"\x0a\x80\x02\x0a\x01x\x12\x0bPlaceholder", "a graph of TensorFlow"),
            (b"\x0a\x80\x02\x08\0\x10\0", "a program of Paddle"),
            (&tar, "a tar archive"),
            ("Überschrift".as_bytes(), "a text"),
        ] {
            assert!(name(bytes).contains(expected), "{} for {expected}", name(bytes));
        }
    }

    #[test]
    fn models_and_noise_have_no_name() {
        for bytes in [
            &b""[..],
            b"\x08",
            b"\x0a",
            b"\x0a\xff\xff\xff",
            b"\x08\x08\x12\x07pytorch\x1a\x012",
            b"\x12\x07pytorch",
            b"\x01\x02\x03\xff\xfe",
            b"x",
        ] {
            assert_eq!(name(bytes), "nothing known", "{bytes:?}");
        }
    }
}
