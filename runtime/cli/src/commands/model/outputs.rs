//! What a model made: printed in short, or written to files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use oarlock_core::{Dtype, Tensor};
use oarlock_engine::graph::ValueType;
use oarlock_engine::{Datum, Slot};
use serde::Serialize;

use super::statistics::Elements;
use crate::npy::{self, Parts};
use crate::npz;
use crate::output::{NAME, Output};
use crate::problem::Problem;
use crate::render::sentence;
use crate::scalar::{self, Scalar, Scalars};
use crate::target;

/// How long the name of a file may be: 255 bytes, of which a number and `.npy` take some.
const MOST_BYTES: usize = 230;
/// Tensors of more elements are printed in part.
const MOST_PRINTED: usize = 64;

/// What is said of an output that is none.
const NOTHING: &str = "an optional that holds nothing";

/// One tensor that came out.
#[derive(Default, Serialize)]
pub(super) struct Made<'a> {
    name: String,
    dtype: Option<&'static str>,
    shape: Option<Vec<i64>>,
    statistics: Option<Elements>,
    /// Where it was written.
    file: Option<String>,
    /// All of them, in order; nothing where they are in a file.
    elements: Option<Scalars<'a>>,
    /// What else there is to say.
    note: Option<String>,
    /// What is to be written.
    #[serde(skip)]
    parts: Option<Parts<'a>>,
}

/// Everything that came out.
pub(super) struct Outputs<'a> {
    pub(super) made: Vec<Made<'a>>,
    is_written: bool,
}

impl<'a> Outputs<'a> {
    /// Fetches what a model made.
    pub(super) fn fetch(slots: &[Slot], data: &'a [Datum], is_written: bool) -> Result<Self, Problem> {
        let mut outputs = Self { made: Vec::new(), is_written };
        for (slot, datum) in slots.iter().zip(data) {
            outputs.add(slot.name.to_string(), datum)?;
        }
        Ok(outputs)
    }

    /// A sequence is as many outputs as it has elements, with numbers behind the name.
    fn add(&mut self, name: String, datum: &'a Datum) -> Result<(), Problem> {
        match datum {
            Datum::Sequence(elements) => {
                let mut each = elements.iter().enumerate();
                return each.try_for_each(|(index, element)| self.add(format!("{name}.{index}"), element));
            }
            Datum::Nothing => {
                let note = Some(NOTHING.to_owned());
                self.made.push(Made { name, note, ..Made::default() });
            }
            Datum::Tensor(tensor) => {
                let scalars = Scalars::of(tensor)?;
                let mut made = Made {
                    name,
                    dtype: Some(tensor.dtype().name()),
                    shape: Some(tensor.dims().to_vec()),
                    statistics: Elements::of(&scalars),
                    ..Made::default()
                };
                if self.is_written {
                    let (parts, written_as) = parts(tensor, scalars)?;
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

    /// Writes everything to an archive, a directory, or the one file.
    pub(super) fn write(&mut self, target: &Path) -> Result<(), Problem> {
        if is_one_file(target) {
            return match self.made.as_mut_slice() {
                [Made { parts: Some(parts), file, .. }] => {
                    *file = Some(target.display().to_string());
                    npy::write_parts(target, parts)
                }
                [Made { parts: None, .. }] => Err(not_one(target, NOTHING)),
                several => Err(not_one(target, &several.len().to_string())),
            };
        }
        if !npz::is_named_so(target) {
            target::make_directory(target)?;
        }
        let mut taken = BTreeSet::new();
        let mut arrays = Vec::new();
        for made in &mut self.made {
            let Some(parts) = made.parts.take() else { continue };
            if npz::is_named_so(target) {
                made.file = Some(target.display().to_string());
                arrays.push((free_name(&entry_name(&made.name), &mut taken), parts));
            } else {
                let file = target.join(format!("{}.npy", free_name(&file_name(&made.name), &mut taken)));
                npy::write_parts(&file, &parts)?;
                made.file = Some(file.display().to_string());
            }
        }
        if npz::is_named_so(target) { npz::write(target, &arrays) } else { Ok(()) }
    }

    pub(super) fn print(&self, output: &mut Output) {
        for (index, made) in self.made.iter().enumerate() {
            if index > 0 {
                output.line("");
            }
            made.print(output);
        }
    }
}

impl Made<'_> {
    fn print(&self, output: &mut Output) {
        let kind = match (self.dtype, &self.shape) {
            (Some(dtype), Some(shape)) => format!("{dtype} {shape:?}"),
            _ => "nothing".to_owned(),
        };
        let heading = output.paint(NAME, &format!("{}: {kind}", oarlock_host::clean_text(&self.name)));
        output.line(&heading);
        let is_single = self.shape.as_ref().is_some_and(|shape| shape.iter().product::<i64>() == 1);
        let statistics = self.statistics.as_ref().filter(|_| !is_single).and_then(Elements::sentence);
        for text in statistics.iter().chain(&self.note) {
            sentence(output, 0, text);
        }
        if let Some(file) = &self.file {
            sentence(output, 0, &format!("written to `{file}`"));
        }
        if let (Some(scalars), Some(shape)) = (&self.elements, &self.shape) {
            output.line(&scalar::show_most(scalars, shape, MOST_PRINTED));
        }
    }
}

/// Values as an archive has them, by the names of their inputs or outputs. What is no tensor is left out.
pub(super) fn archive_of<'a>(slots: &[Slot], data: &'a [Datum]) -> Result<Vec<(String, Parts<'a>)>, Problem> {
    let mut arrays = Vec::new();
    for (slot, datum) in slots.iter().zip(data) {
        if let Datum::Tensor(tensor) = datum {
            arrays.push((slot.name.to_string(), parts(tensor, Scalars::of(tensor)?)?.0));
        }
    }
    Ok(arrays)
}

/// Checks that outputs can go where they are to go. Nothing is made before there is something to write.
pub(super) fn check_target(target: &Path) -> Result<(), Problem> {
    if npz::is_named_so(target) || is_one_file(target) {
        return target::check([target]);
    }
    // Whoever names a file of another kind does not want a directory of that name.
    let ending = target.extension().filter(|_| !target.is_dir());
    match ending {
        Some(ending) if is_of_letters(ending) => {
            let message = format!(
                "`{}`: expected a directory, or a file that ends in `.npz` or `.npy`, found `.{}`",
                target.display(),
                ending.display()
            );
            Err(Problem::new(message).hint("to have a directory of that name, make it first"))
        }
        _ => target::check_directory(target),
    }
}

/// Whether an ending looks like a kind of file, and not like the number of a version.
fn is_of_letters(ending: &OsStr) -> bool {
    ending.as_encoded_bytes().first().is_some_and(u8::is_ascii_alphabetic)
}

/// Checks that a model makes as many outputs as there is room for.
pub(super) fn check_count(target: &Path, slots: &[Slot]) -> Result<(), Problem> {
    match slots {
        _ if !is_one_file(target) => Ok(()),
        [Slot { declared: ValueType::Sequence(_), .. }] => Err(not_one(target, "a sequence")),
        [_] => Ok(()),
        several => Err(not_one(target, &several.len().to_string())),
    }
}

/// Whether a target is the file of a single array. A directory may have any name.
fn is_one_file(target: &Path) -> bool {
    target.extension() == Some(OsStr::new("npy")) && !target.is_dir()
}

fn not_one(target: &Path, found: &str) -> Problem {
    let message = format!("`{}`: expected a model with one output for it, found {found}", target.display());
    Problem::new(message).hint("name a directory, which gets a file for each, or a file that ends in `.npz`")
}

/// A tensor as a file of NumPy has it, and the dtype it has there where it is another one, which holds the same numbers.
fn parts<'a>(tensor: &Tensor, scalars: Scalars<'a>) -> Result<(Parts<'a>, Option<Dtype>), Problem> {
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
        Scalars::Texts(texts) => return Ok((npy::of_texts(dims, &texts), None)),
        Scalars::Bytes(_, bytes, _) if wider == dtype => bytes,
        Scalars::Bytes(_, _, count) => {
            let mut bytes = Vec::new();
            (0..count).for_each(|index| match scalars.at(index) {
                Scalar::Single(number) => bytes.extend(number.to_le_bytes()),
                Scalar::Int(number) => bytes.push(number as u8),
                Scalar::Unsigned(number) => bytes.push(number as u8),
                _ => {}
            });
            bytes.into()
        }
    };
    let missing = || Problem::new(format!("expected a dtype that NumPy has, found {dtype}"));
    Ok((npy::of_bytes(wider, dims, bytes).ok_or_else(missing)?, Some(wider).filter(|wider| *wider != dtype)))
}

/// A name of an output as that of a file: nothing in it leads to another directory.
fn file_name(name: &str) -> String {
    let is_plain = |sign: char| sign.is_alphanumeric() || "._-+:".contains(sign);
    let mut plain: String = name.chars().map(|sign| if is_plain(sign) { sign } else { '_' }).collect();
    let mut ends = plain.char_indices().map(|(at, sign)| at + sign.len_utf8());
    plain.truncate(ends.rfind(|end| *end <= MOST_BYTES).unwrap_or(0));
    let is_hidden = plain.is_empty() || plain.starts_with('.');
    if is_hidden { format!("_{plain}") } else { plain }
}

/// A name of an output as that of an array in an archive, whose parts lead down only when it is unpacked.
fn entry_name(name: &str) -> String {
    if name.len() > MOST_BYTES {
        return file_name(name);
    }
    name.split('/').map(file_name).collect::<Vec<_>>().join("/")
}

/// A name that no other output has.
fn free_name(name: &str, taken: &mut BTreeSet<PathBuf>) -> String {
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
            let name = format!("{}.npy", free_name(&file_name(&long), &mut taken));
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        assert!(entry_name(&format!("{long}/{long}")).len() <= MOST_BYTES);
    }

    #[test]
    fn two_outputs_never_share_a_file() {
        let mut taken = BTreeSet::new();
        assert_eq!(["y", "y", "z", "y"].map(|name| free_name(name, &mut taken)), ["y", "y.1", "z", "y.2"]);
    }
}
