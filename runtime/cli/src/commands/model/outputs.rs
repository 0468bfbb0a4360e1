//! The outputs of a run: printed in short, or written to files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use oarlock_core::{Dtype, Tensor};
use oarlock_engine::graph::ValueType;
use oarlock_engine::{ModelOperand, RuntimeValue};
use serde::Serialize;

use crate::output::{CommandOutput, NAME_STYLE};
use crate::output_file;
use crate::problem::CommandError;
use crate::render::print_sentence;
use oarlock_report::npy::{self, NpyParts};
use oarlock_report::npz;
use oarlock_report::scalar::{self, ScalarValue, TensorScalars};
use oarlock_report::statistics::ElementStatistics;

/// A file name may have 255 bytes; this leaves room for a number and `.npy`.
const MAX_NAME_BYTES: usize = 230;
/// Larger tensors are printed in part.
const MAX_PRINTED_ELEMENTS: usize = 64;

const EMPTY_OPTIONAL_TEXT: &str = "an optional that holds nothing";

#[derive(Default, Serialize)]
pub(super) struct OutputTensor<'a> {
    name: String,
    dtype: Option<&'static str>,
    shape: Option<Vec<i64>>,
    statistics: Option<ElementStatistics>,
    file: Option<String>,
    /// All elements in order; `None` if they are in a file.
    elements: Option<TensorScalars<'a>>,
    /// A remark for the user, such as a conversion.
    note: Option<String>,
    /// The contents of the `.npy` file to write.
    #[serde(skip)]
    parts: Option<NpyParts<'a>>,
}

pub(super) struct ModelOutputs<'a> {
    pub(super) made: Vec<OutputTensor<'a>>,
    is_written: bool,
}

impl<'a> ModelOutputs<'a> {
    /// Waits for the outputs and reads their elements.
    pub(super) fn fetch_outputs(
        slots: &[ModelOperand],
        data: &'a [RuntimeValue],
        is_written: bool,
    ) -> Result<Self, CommandError> {
        let mut outputs = Self { made: Vec::new(), is_written };
        for (slot, value) in slots.iter().zip(data) {
            outputs.add_output(slot.name.to_string(), value)?;
        }
        Ok(outputs)
    }

    /// Adds each element of a sequence as an output of its own, with its number after the name.
    fn add_output(&mut self, name: String, value: &'a RuntimeValue) -> Result<(), CommandError> {
        match value {
            RuntimeValue::Sequence(elements) => {
                let mut each = elements.iter().enumerate();
                return each
                    .try_for_each(|(index, element)| self.add_output(format!("{name}.{index}"), element));
            }
            RuntimeValue::Nothing => {
                let note = Some(EMPTY_OPTIONAL_TEXT.to_owned());
                self.made.push(OutputTensor { name, note, ..OutputTensor::default() });
            }
            RuntimeValue::Tensor(tensor) => {
                let scalars = TensorScalars::from_tensor(tensor)?;
                let mut made = OutputTensor {
                    name,
                    dtype: Some(tensor.dtype().name()),
                    shape: Some(tensor.dims().to_vec()),
                    statistics: ElementStatistics::from_scalars(&scalars),
                    ..OutputTensor::default()
                };
                if self.is_written {
                    let (parts, written_as) = npy_parts(tensor, scalars)?;
                    made.note = written_as.map(|dtype| {
                        format!("written as {dtype}, as NumPy does not have {}", tensor.dtype())
                    });
                    made.parts = Some(parts);
                } else {
                    made.elements = Some(scalars);
                }
                self.made.push(made);
            }
        }
        Ok(())
    }

    /// Writes to an archive, a directory, or a single file.
    pub(super) fn write_outputs(&mut self, target: &Path) -> Result<(), CommandError> {
        if is_single_file(target) {
            return match self.made.as_mut_slice() {
                [OutputTensor { parts: Some(parts), file, .. }] => {
                    *file = Some(target.display().to_string());
                    Ok(npy::write_parts(target, parts)?)
                }
                [OutputTensor { parts: None, .. }] => Err(not_single_output(target, EMPTY_OPTIONAL_TEXT)),
                several => Err(not_single_output(target, &several.len().to_string())),
            };
        }
        if !npz::has_npz_name(target) {
            output_file::create_directory(target)?;
        }
        let mut taken = BTreeSet::new();
        let mut arrays = Vec::new();
        for made in &mut self.made {
            let Some(parts) = made.parts.take() else { continue };
            if npz::has_npz_name(target) {
                made.file = Some(target.display().to_string());
                arrays.push((unused_name(&entry_name(&made.name), &mut taken), parts));
            } else {
                let file = target.join(format!("{}.npy", unused_name(&file_name(&made.name), &mut taken)));
                npy::write_parts(&file, &parts)?;
                made.file = Some(file.display().to_string());
            }
        }
        if npz::has_npz_name(target) {
            npz::write_npz(target, &arrays)?;
        }
        Ok(())
    }

    pub(super) fn print_outputs(&self, output: &mut CommandOutput) {
        for (index, made) in self.made.iter().enumerate() {
            if index > 0 {
                output.write_line("");
            }
            made.print_output(output);
        }
    }
}

impl OutputTensor<'_> {
    fn print_output(&self, output: &mut CommandOutput) {
        let kind = match (self.dtype, &self.shape) {
            (Some(dtype), Some(shape)) => format!("{dtype} {shape:?}"),
            _ => "nothing".to_owned(),
        };
        let heading =
            output.paint_text(NAME_STYLE, &format!("{}: {kind}", oarlock_host::sanitize_text(&self.name)));
        output.write_line(&heading);
        let is_single = self.shape.as_ref().is_some_and(|shape| shape.iter().product::<i64>() == 1);
        let statistics =
            self.statistics.as_ref().filter(|_| !is_single).and_then(ElementStatistics::to_sentence);
        for text in statistics.iter().chain(&self.note) {
            print_sentence(output, 0, text);
        }
        if let Some(file) = &self.file {
            print_sentence(output, 0, &format!("written to `{file}`"));
        }
        if let (Some(scalars), Some(shape)) = (&self.elements, &self.shape) {
            output.write_line(&scalar::format_tensor_limited(scalars, shape, MAX_PRINTED_ELEMENTS));
        }
    }
}

/// The tensors of an archive, named after the inputs or outputs. Other values are left out.
pub(super) fn archive_arrays<'a>(
    slots: &[ModelOperand],
    data: &'a [RuntimeValue],
) -> Result<Vec<(String, NpyParts<'a>)>, CommandError> {
    let mut arrays = Vec::new();
    for (slot, value) in slots.iter().zip(data) {
        if let RuntimeValue::Tensor(tensor) = value {
            arrays.push((slot.name.to_string(), npy_parts(tensor, TensorScalars::from_tensor(tensor)?)?.0));
        }
    }
    Ok(arrays)
}

/// Checks that the target is writable, but creates nothing yet.
pub(super) fn check_output_target(target: &Path) -> Result<(), CommandError> {
    if npz::has_npz_name(target) || is_single_file(target) {
        return output_file::check_output_files([target]);
    }
    // A name such as `out.txt` was hardly meant as a directory.
    let ending = target.extension().filter(|_| !target.is_dir());
    match ending {
        Some(ending) if has_only_letters(ending) => {
            let message = format!(
                "`{}`: expected a directory, or a file that ends in `.npz` or `.npy`, found `.{}`",
                target.display(),
                ending.display()
            );
            Err(CommandError::new(message).with_hint("to have a directory of that name, make it first"))
        }
        _ => output_file::check_output_directory(target),
    }
}

/// Tells a file extension from the number of a version.
fn has_only_letters(ending: &OsStr) -> bool {
    ending.as_encoded_bytes().first().is_some_and(u8::is_ascii_alphabetic)
}

/// A single `.npy` file holds only one output.
pub(super) fn check_output_count(target: &Path, slots: &[ModelOperand]) -> Result<(), CommandError> {
    match slots {
        _ if !is_single_file(target) => Ok(()),
        [ModelOperand { declared: ValueType::Sequence(_), .. }] => {
            Err(not_single_output(target, "a sequence"))
        }
        [_] => Ok(()),
        several => Err(not_single_output(target, &several.len().to_string())),
    }
}

/// True for the file of a single array. An existing directory may have any name.
fn is_single_file(target: &Path) -> bool {
    target.extension() == Some(OsStr::new("npy")) && !target.is_dir()
}

fn not_single_output(target: &Path, found: &str) -> CommandError {
    let message = format!("`{}`: expected a model with one output for it, found {found}", target.display());
    CommandError::new(message)
        .with_hint("name a directory, which gets a file for each, or a file that ends in `.npz`")
}

/// The `.npy` form of a tensor, and the file's dtype if NumPy lacks the tensor's and a wider one holds the same numbers.
fn npy_parts<'a>(
    tensor: &Tensor,
    scalars: TensorScalars<'a>,
) -> Result<(NpyParts<'a>, Option<Dtype>), CommandError> {
    let (dtype, dims) = (tensor.dtype(), tensor.dims());
    let wider = match dtype {
        Dtype::I2 | Dtype::I4 => Dtype::I8,
        Dtype::U2 | Dtype::U4 => Dtype::U8,
        Dtype::F4E2M1
        | Dtype::F8E4M3
        | Dtype::F8E4M3Fnuz
        | Dtype::F8E5M2
        | Dtype::F8E5M2Fnuz
        | Dtype::F8E8M0
        | Dtype::BF16 => Dtype::F32,
        own => own,
    };
    let bytes = match scalars {
        TensorScalars::Texts(texts) => return Ok((npy::parts_from_texts(dims, &texts), None)),
        TensorScalars::Bytes(_, bytes, _) if wider == dtype => bytes,
        TensorScalars::Bytes(_, _, count) => {
            let mut bytes = Vec::new();
            (0..count).for_each(|index| match scalars.scalar_at(index) {
                ScalarValue::Single(number) => bytes.extend(number.to_le_bytes()),
                ScalarValue::Int(number) => bytes.push(number as u8),
                ScalarValue::Unsigned(number) => bytes.push(number as u8),
                _ => {}
            });
            bytes.into()
        }
    };
    let missing = || CommandError::new(format!("expected a dtype that NumPy has, found {dtype}"));
    Ok((
        npy::parts_from_bytes(wider, dims, bytes).ok_or_else(missing)?,
        Some(wider).filter(|wider| *wider != dtype),
    ))
}

/// Escapes an output's name, so that it cannot lead to another directory.
fn file_name(name: &str) -> String {
    let is_plain = |sign: char| sign.is_alphanumeric() || "._-+:".contains(sign);
    let mut plain: String = name.chars().map(|sign| if is_plain(sign) { sign } else { '_' }).collect();
    let mut ends = plain.char_indices().map(|(at, sign)| at + sign.len_utf8());
    plain.truncate(ends.rfind(|end| *end <= MAX_NAME_BYTES).unwrap_or(0));
    let is_hidden = plain.is_empty() || plain.starts_with('.');
    if is_hidden { format!("_{plain}") } else { plain }
}

/// Escapes an output's name for an archive. Slashes stay, but no part may lead upward when it is unpacked.
fn entry_name(name: &str) -> String {
    if name.len() > MAX_NAME_BYTES {
        return file_name(name);
    }
    name.split('/').map(file_name).collect::<Vec<_>>().join("/")
}

/// Appends a number if another output has the name.
fn unused_name(name: &str, taken: &mut BTreeSet<PathBuf>) -> String {
    let numbered = |number: usize| if number == 0 { name.to_owned() } else { format!("{name}.{number}") };
    let mut number = 0;
    while !taken.insert(PathBuf::from(numbered(number))) {
        number += 1;
    }
    numbered(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_outputs_lead_to_no_other_directory() {
        let named = ["y", "../../etc/x", "a b/c:0", "", ".hidden", "größe"].map(file_name);
        assert_eq!(named, ["y", "_.._.._etc_x", "a_b_c:0", "_", "_.hidden", "größe"]);
        let named = ["a/b", "../../evil", "/etc/x", "\u{1b}[31mred", ""].map(entry_name);
        assert_eq!(named, ["a/b", "_../_../evil", "_/etc/x", "__31mred", "_"]);
    }

    #[test]
    fn names_of_outputs_are_as_long_as_a_file_system_takes() {
        let (long, directory) = ("語".repeat(200), tempfile::tempdir().unwrap());
        let mut taken = BTreeSet::new();
        for _ in 0..3 {
            let name = format!("{}.npy", unused_name(&file_name(&long), &mut taken));
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        assert!(entry_name(&format!("{long}/{long}")).len() <= MAX_NAME_BYTES);
    }

    #[test]
    fn two_outputs_never_share_a_file() {
        let mut taken = BTreeSet::new();
        assert_eq!(["y", "y", "z", "y"].map(|name| unused_name(name, &mut taken)), ["y", "y.1", "z", "y.2"]);
    }
}
