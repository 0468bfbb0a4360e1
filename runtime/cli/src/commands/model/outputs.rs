//! What a model made: printed in short, or written to files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use oarlock_core::{Dtype, Tensor};
use oarlock_engine::{Datum, Slot};
use serde::Serialize;

use super::statistics::Elements;
use crate::npy::{self, Parts};
use crate::npz;
use crate::output::{NAME, Output};
use crate::problem::Problem;
use crate::render::sentence;
use crate::scalar::{self, Scalar, Scalars};

/// Tensors of more elements are printed in part.
const MOST_PRINTED: usize = 64;

/// One tensor that came out.
#[derive(Default, Serialize)]
pub(super) struct Made {
    name: String,
    dtype: Option<&'static str>,
    shape: Option<Vec<i64>>,
    statistics: Option<Elements>,
    /// Where it was written.
    file: Option<String>,
    /// All of them, in order; nothing where they are in a file.
    elements: Option<Scalars>,
    /// What else there is to say.
    note: Option<String>,
    /// What is to be written.
    #[serde(skip)]
    parts: Option<Parts>,
}

/// Everything that came out.
pub(super) struct Outputs {
    pub(super) made: Vec<Made>,
    is_written: bool,
}

impl Outputs {
    /// Fetches what a model made.
    pub(super) fn fetch(slots: &[Slot], data: &[Datum], is_written: bool) -> Result<Self, Problem> {
        let mut outputs = Self { made: Vec::new(), is_written };
        for (slot, datum) in slots.iter().zip(data) {
            outputs.add(slot.name.to_string(), datum)?;
        }
        Ok(outputs)
    }

    /// A sequence is as many outputs as it has elements, with numbers behind the name.
    fn add(&mut self, name: String, datum: &Datum) -> Result<(), Problem> {
        match datum {
            Datum::Sequence(elements) => {
                let mut each = elements.iter().enumerate();
                return each.try_for_each(|(index, element)| self.add(format!("{name}.{index}"), element));
            }
            Datum::Nothing => {
                let note = Some("an optional that holds nothing".to_owned());
                self.made.push(Made { name, note, ..Made::default() });
            }
            Datum::Tensor(tensor) => {
                let scalars = Scalars::of(tensor)?;
                let mut made = Made {
                    name,
                    dtype: Some(tensor.dtype().name()),
                    shape: Some(tensor.dims().to_vec()),
                    statistics: Elements::of(tensor, &scalars)?,
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

    /// Writes everything to an archive or a directory.
    pub(super) fn write(&mut self, target: &Path) -> Result<(), Problem> {
        let mut taken = BTreeSet::new();
        let mut arrays = Vec::new();
        for made in &mut self.made {
            let Some(parts) = made.parts.take() else { continue };
            if npz::is_named_so(target) {
                made.file = Some(target.display().to_string());
                arrays.push((free_name(&made.name, &mut taken), parts));
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

impl Made {
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
pub(super) fn archive_of(slots: &[Slot], data: &[Datum]) -> Result<Vec<(String, Parts)>, Problem> {
    let mut arrays = Vec::new();
    for (slot, datum) in slots.iter().zip(data) {
        if let Datum::Tensor(tensor) = datum {
            arrays.push((slot.name.to_string(), parts(tensor, Scalars::of(tensor)?)?.0));
        }
    }
    Ok(arrays)
}

/// Checks that outputs can go where they are to go, and makes the directory for them.
pub(super) fn check_target(target: &Path) -> Result<(), Problem> {
    if npz::is_named_so(target) {
        return npy::check_targets([target]);
    }
    std::fs::create_dir_all(target).map_err(|error| {
        Problem::new(format!("`{}`: expected a directory for the outputs, found: {error}", target.display()))
            .hint("name a directory that you can write to, or a file that ends in `.npz`")
    })
}

/// A tensor as a file of NumPy has it, and the dtype it has there where it is another one, which holds the same numbers.
fn parts(tensor: &Tensor, scalars: Scalars) -> Result<(Parts, Option<Dtype>), Problem> {
    let (dtype, dims) = (tensor.dtype(), tensor.dims());
    let wider = match dtype {
        Dtype::I4 => Dtype::I8,
        Dtype::U4 => Dtype::U8,
        Dtype::BF16 | Dtype::F8E4M3 | Dtype::F8E5M2 => Dtype::F32,
        own => own,
    };
    let bytes = match scalars {
        Scalars::Texts(texts) => return Ok((npy::of_texts(dims, &texts), None)),
        Scalars::Bytes(_, bytes, _) if wider == dtype => bytes,
        Scalars::Bytes(_, _, count) => {
            let element = |index| match scalars.at(index) {
                Scalar::Single(number) => number.to_le_bytes().to_vec(),
                Scalar::Int(number) => vec![number as u8],
                Scalar::Unsigned(number) => vec![number as u8],
                _ => Vec::new(),
            };
            (0..count).flat_map(element).collect()
        }
    };
    let missing = || Problem::new(format!("expected a dtype that NumPy has, found {dtype}"));
    Ok((npy::of_bytes(wider, dims, bytes).ok_or_else(missing)?, Some(wider).filter(|wider| *wider != dtype)))
}

/// A name of an output as that of a file: nothing in it leads to another directory.
fn file_name(name: &str) -> String {
    let is_plain = |sign: char| sign.is_alphanumeric() || "._-+:".contains(sign);
    let plain: String = name.chars().map(|sign| if is_plain(sign) { sign } else { '_' }).take(200).collect();
    let is_hidden = plain.is_empty() || plain.starts_with('.');
    if is_hidden { format!("_{plain}") } else { plain }
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
    }

    #[test]
    fn two_outputs_never_share_a_file() {
        let mut taken = BTreeSet::new();
        assert_eq!(["y", "y", "z", "y"].map(|name| free_name(name, &mut taken)), ["y", "y.1", "z", "y.2"]);
    }
}
