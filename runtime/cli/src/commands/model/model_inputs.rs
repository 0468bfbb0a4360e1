//! The inputs of a run: from files, from literals, or random.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use oarlock_core::infer::TensorFact;
use oarlock_core::{Device, Dtype};
use oarlock_engine::graph::{DeclaredDimension, ValueId, ValueType, Weight};
use oarlock_engine::{Model, ModelOperand, RuntimeValue, Session};

use super::random_inputs;
use crate::problem::CommandError;
use oarlock_report::{npy, npz};

use crate::literal;
use oarlock_report::array::{ArrayElements, HostArray};

/// Given as a value, it leaves the input empty.
const EMPTY_INPUT: &str = "-";

/// What the arguments say about inputs.
pub(super) struct InputRequest<'a> {
    pub(super) inputs: &'a [OsString],
    pub(super) shapes: &'a [(String, Vec<i64>)],
    pub(super) missing: MissingInputs,
}

#[derive(Clone, Copy)]
pub(super) enum MissingInputs {
    /// A missing input is an error.
    Wanted,
    /// Random elements from a seed.
    Random(u64),
    /// Only dtype and shape are filled in, which suffices for a plan and takes next to no memory.
    Shaped,
}

impl MissingInputs {
    /// Maps `--random`.
    pub(super) fn from_seed(seed: Option<u64>) -> Self {
        seed.map_or(Self::Wanted, Self::Random)
    }
}

/// Inputs in the order of the model.
pub(super) struct ModelInputs {
    pub(super) data: Vec<RuntimeValue>,
    /// One sentence for each random input.
    pub(super) made_up: Vec<String>,
    /// One sentence for each assumed size.
    pub(super) assumed: Vec<String>,
}

/// Sizes of symbolic dimensions: given ones, and those that had to be assumed.
struct SymbolSizes<'a> {
    sizes: Vec<(&'a str, i64)>,
    assumed: Vec<&'a str>,
}

impl InputRequest<'_> {
    /// Reads the given inputs and creates the missing ones. For an error about missing shapes, `suggest` gives shapes that fit.
    pub(super) fn resolve_inputs(
        &self,
        session: &Session,
        device: &Device,
        suggest: &dyn Fn() -> Option<String>,
    ) -> Result<ModelInputs, CommandError> {
        let slots = session.inputs();
        self.check_shapes(slots)?;
        let arrays = self.read_arrays(session)?;
        let mut fed: Vec<(&str, RuntimeValue)> = Vec::new();
        for (name, array) in &arrays {
            let declared = session.input(name).map_or(&ValueType::Unknown, |slot| &slot.declared);
            let value = match array {
                Some(array) => RuntimeValue::Tensor(array.to_tensor(device)?),
                None => empty_value(declared),
            };
            match fed.iter_mut().find(|(other, _)| other == name) {
                None if array.is_some() && is_sequence_input(declared) => {
                    fed.push((name, RuntimeValue::Sequence(vec![value])));
                }
                None => fed.push((name, value)),
                Some((_, RuntimeValue::Sequence(elements))) if array.is_some() && !elements.is_empty() => {
                    elements.push(value);
                }
                Some(_) => {
                    let message = format!("expected each input once, found `{name}` twice");
                    return Err(CommandError::new(message).with_hint("leave out one of them"));
                }
            }
        }
        let (mut made_up, mut assumed) = (Vec::new(), Vec::new());
        self.check_given_inputs(slots, &fed)?;
        let missing: Vec<&ModelOperand> =
            slots.iter().filter(|slot| fed.iter().all(|(name, _)| *name != &*slot.name)).collect();
        if !matches!(self.missing, MissingInputs::Wanted) {
            let mut symbols = self.infer_symbols(slots, &fed);
            for slot in missing {
                let value = self.generate_input(slot, device, &mut symbols, &mut made_up, suggest)?;
                fed.push((&*slot.name, value));
            }
            assumed.extend(symbols.assumption_notes());
        } else if !missing.is_empty() && fed.iter().all(|(name, _)| session.input(name).is_ok()) {
            return Err(missing_inputs_error(&missing, suggest()));
        }
        Ok(ModelInputs { data: session.order_inputs(&fed)?, made_up, assumed })
    }

    /// Reads all given inputs by name; `None` for one that is left empty.
    fn read_arrays(&self, session: &Session) -> Result<Vec<(String, Option<HostArray>)>, CommandError> {
        let slots = session.inputs();
        let judge = |name: &str, dtype: Dtype, dims: &[i64]| -> Result<(), CommandError> {
            Ok(session.input(name)?.check_tensor(dtype, dims)?)
        };
        let mut arrays = Vec::new();
        for text in self.inputs {
            let whole = Path::new(text);
            let own = |name: &str, value: &OsStr| {
                let is_given = (value != EMPTY_INPUT).then_some(value);
                let array = is_given.map(|value| read_array(value, &|dtype, dims| judge(name, dtype, dims)));
                Ok::<_, CommandError>((name.to_owned(), array.transpose()?))
            };
            match (split_assignment(text, session), slots) {
                (Some((name, value)), _) => arrays.push(own(name, value)?),
                (None, _) if npz::has_npz_name(whole) => {
                    let read = npz::read_npz(whole, &judge)?;
                    arrays.extend(read.into_iter().map(|(name, array)| (name, Some(array))));
                }
                (None, [only]) => arrays.push(own(&only.name, text)?),
                (None, _) => {
                    let message = format!(
                        "expected `NAME=FILE.npy`, `NAME=f32:[1,2]` or `FILE.npz`, found `{}`",
                        text.to_string_lossy()
                    );
                    let names: Vec<String> = slots.iter().map(|slot| format!("`{slot}`")).collect();
                    return Err(CommandError::new(message)
                        .with_hint(format!("the inputs of the model are {}", names.join(", "))));
                }
            }
        }
        Ok(arrays)
    }

    /// Checks that every `--shape` names an input or symbol, and none twice.
    fn check_shapes(&self, slots: &[ModelOperand]) -> Result<(), CommandError> {
        for (at, (name, sizes)) in self.shapes.iter().enumerate() {
            if self.shapes[..at].iter().any(|(other, _)| other == name) {
                let message = format!("expected `--shape` once for each name, found `{name}` twice");
                return Err(CommandError::new(message).with_hint("leave out one of them"));
            }
            let is_symbol = symbol_names(slots).any(|symbol| symbol == name);
            if is_symbol && sizes.len() != 1 && !is_input(slots, name) {
                let message = format!("expected one size for the dimension `{name}`, found {}", sizes.len());
                return Err(
                    CommandError::new(message).with_hint(format!("write it as in `--shape {name}=8`"))
                );
            }
            if !is_symbol && !is_input(slots, name) {
                let mut names: Vec<&str> = slots.iter().map(|slot| &*slot.name).collect();
                names.extend(symbol_names(slots));
                names.dedup();
                let list: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                let message = format!(
                    "expected `--shape` to name an input or a dimension ({}), found `{name}`{}",
                    list.join(", "),
                    oarlock_host::did_you_mean(name, names.iter().copied())
                );
                return Err(CommandError::new(message));
            }
        }
        Ok(())
    }

    /// Checks `--shape` against the given arrays and against other `--shape` arguments.
    fn check_given_inputs(
        &self,
        slots: &[ModelOperand],
        fed: &[(&str, RuntimeValue)],
    ) -> Result<(), CommandError> {
        for slot in slots {
            let given = match fed.iter().find(|(name, _)| *name == &*slot.name) {
                Some((_, RuntimeValue::Tensor(tensor))) => Some(tensor.dims()),
                _ => None,
            };
            let shaped = self.requested_shape(&slot.name);
            if let (Some(sizes), Some(wanted)) = (given, shaped)
                && sizes != wanted
            {
                let expected = format!("the shape {wanted:?}, as `--shape` says");
                return Err(contradicted_shape(&slot.name, &expected, sizes));
            }
            let ValueType::Tensor { dims: Some(dims), .. } = &slot.declared else { continue };
            let sizes = given.or(shaped).unwrap_or_default();
            for (dim, size) in dims.iter().zip(sizes) {
                let DeclaredDimension::Symbol(symbol) = dim else { continue };
                let is_wanted = |(name, wanted): &&(String, Vec<i64>)| {
                    **name == **symbol && !is_input(slots, name) && *wanted != [*size]
                };
                if let Some((name, wanted)) = self.shapes.iter().find(is_wanted) {
                    let expected = format!("`{name}` to be {}, as `--shape` says", wanted[0]);
                    return Err(contradicted_shape(&slot.name, &expected, sizes));
                }
            }
        }
        Ok(())
    }

    /// The `--shape` of an input.
    fn requested_shape(&self, name: &str) -> Option<&[i64]> {
        self.shapes.iter().rfind(|(shaped, _)| shaped == name).map(|(_, sizes)| sizes.as_slice())
    }

    /// Derives symbol sizes from the given arrays.
    fn infer_symbols<'a>(
        &'a self,
        slots: &'a [ModelOperand],
        fed: &[(&str, RuntimeValue)],
    ) -> SymbolSizes<'a> {
        let mut sizes: Vec<(&str, i64)> = Vec::new();
        for slot in slots {
            let fed = fed.iter().find(|(name, _)| *name == &*slot.name);
            let known = match fed {
                Some((_, RuntimeValue::Tensor(tensor))) => Some(tensor.dims()),
                _ => self.requested_shape(&slot.name),
            };
            let ValueType::Tensor { dims: Some(dims), .. } = &slot.declared else { continue };
            for (dim, size) in dims.iter().zip(known.unwrap_or_default()) {
                if let DeclaredDimension::Symbol(name) = dim {
                    sizes.push((name, *size));
                }
            }
        }
        let given = self.shapes.iter().filter(|(name, sizes)| sizes.len() == 1 && !is_input(slots, name));
        sizes.extend(given.map(|(name, sizes)| (name.as_str(), sizes[0])));
        SymbolSizes { sizes, assumed: Vec::new() }
    }

    /// Dtype and shape of a missing input; `None` if it is no tensor or they are unknown.
    fn assumed_type<'a>(
        &self,
        slot: &'a ModelOperand,
        symbols: &mut SymbolSizes<'a>,
    ) -> Option<(Dtype, Vec<i64>)> {
        let (dtype, dims) = match &slot.declared {
            ValueType::Tensor { dtype, dims } => (*dtype, dims.as_ref()),
            ValueType::Unknown => (None, None),
            _ => return None,
        };
        let sizes = match (self.requested_shape(&slot.name), dims) {
            (Some(sizes), _) => sizes.to_vec(),
            (None, dims) => dims?.iter().map(|dim| symbols.dimension_size(dim)).collect(),
        };
        Some((dtype.unwrap_or(Dtype::F32), sizes))
    }

    fn generate_input<'a>(
        &self,
        slot: &'a ModelOperand,
        device: &Device,
        symbols: &mut SymbolSizes<'a>,
        notes: &mut Vec<String>,
        suggest: &dyn Fn() -> Option<String>,
    ) -> Result<RuntimeValue, CommandError> {
        let name = &*slot.name;
        match &slot.declared {
            ValueType::Optional(_) | ValueType::Sequence(_) => return Ok(empty_value(&slot.declared)),
            ValueType::Map(..) => {
                let message = format!("expected an input that can be made up, found `{slot}`");
                return Err(
                    CommandError::new(message).with_hint("models that take maps cannot be run from here")
                );
            }
            ValueType::Tensor { .. } | ValueType::Unknown => {}
        }
        let Some((dtype, sizes)) = self.assumed_type(slot, symbols) else {
            let message =
                format!("expected a shape for the input `{slot}`, for which the model declares none");
            let hint = match suggest() {
                Some(fitting) => format!("what fits the rest of the model is {fitting}"),
                None => format!("give one, as in `--shape {name}=1x3x224x224`"),
            };
            return Err(CommandError::new(message).with_hint(hint));
        };
        notes.push(format!("`{name}` is made up: {dtype} {sizes:?}, {}", element_description(dtype)));
        let tensor = match self.missing {
            MissingInputs::Random(seed) => random_inputs::random_tensor(device, name, dtype, &sizes, seed),
            MissingInputs::Wanted | MissingInputs::Shaped => {
                random_inputs::repeated_element_tensor(device, name, dtype, &sizes)
            }
        };
        tensor.map(RuntimeValue::Tensor).map_err(|problem| match problem.hint {
            Some(_) => problem,
            None => problem.with_hint(smaller_shape_hint(slot)),
        })
    }
}

/// The advice for an input that is too large to fill with random elements.
fn smaller_shape_hint(slot: &ModelOperand) -> String {
    let is_known = |dim: &DeclaredDimension| matches!(dim, DeclaredDimension::Known(_));
    match &slot.declared {
        ValueType::Tensor { dims: Some(dims), .. } if dims.iter().all(is_known) => {
            format!(
                "the model takes no other shape; give the input from a file, as in `-i {}=FILE.npy`",
                slot.name
            )
        }
        _ => "give a smaller one with `--shape`".to_owned(),
    }
}

/// Facts about inputs from shapes alone, with one sentence for each assumption.
pub(super) fn infer_input_facts(
    model: &Model,
    shapes: &[(String, Vec<i64>)],
) -> Result<(Vec<Option<TensorFact>>, Vec<String>), CommandError> {
    let slots = input_slots(model);
    let wish = InputRequest { inputs: &[], shapes, missing: MissingInputs::Wanted };
    wish.check_shapes(&slots)?;
    wish.check_given_inputs(&slots, &[])?;
    let mut symbols = wish.infer_symbols(&slots, &[]);
    let mut fact = |slot| {
        let (dtype, sizes) = wish.assumed_type(slot, &mut symbols)?;
        Some(TensorFact::from_shape(dtype, &sizes))
    };
    let facts = slots.iter().map(&mut fact).collect();
    Ok((facts, symbols.assumption_notes().collect()))
}

fn input_slots(model: &Model) -> Vec<ModelOperand> {
    let slot = |id: &ValueId| {
        let value = model.graph.value(*id);
        ModelOperand { name: value.name.clone(), declared: value.declared.clone() }
    };
    model.graph.inputs.iter().map(slot).collect()
}

/// Writes the sizes from the arguments into the declared inputs and outputs.
pub(super) fn specialize_shapes(
    model: &mut Model,
    shapes: &[(String, Vec<i64>)],
) -> Result<(), CommandError> {
    let slots = input_slots(model);
    let wish = InputRequest { inputs: &[], shapes, missing: MissingInputs::Wanted };
    wish.check_shapes(&slots)?;
    wish.check_given_inputs(&slots, &[])?;
    let symbols = wish.infer_symbols(&slots, &[]);
    let graph = &mut model.graph;
    for id in graph.inputs.iter().chain(&graph.outputs).copied().collect::<Vec<_>>() {
        let value = graph.value_mut(id);
        let ValueType::Tensor { dims, .. } = &mut value.declared else { continue };
        for dim in dims.iter_mut().flatten() {
            let DeclaredDimension::Symbol(name) = &*dim else { continue };
            if let Some((_, size)) = symbols.sizes.iter().find(|(known, _)| *known == &**name) {
                *dim = DeclaredDimension::Known(*size);
            }
        }
    }
    for (id, slot) in graph.inputs.clone().into_iter().zip(&slots) {
        let Some(sizes) = wish.requested_shape(&slot.name) else { continue };
        let ValueType::Tensor { dtype, dims } = &mut graph.value_mut(id).declared else { continue };
        slot.check_tensor(dtype.unwrap_or(Dtype::F32), sizes)?;
        *dims = Some(sizes.iter().copied().map(DeclaredDimension::Known).collect());
    }
    Ok(())
}

impl<'a> SymbolSizes<'a> {
    /// One sentence for each size that nobody gave.
    fn assumption_notes(&self) -> impl Iterator<Item = String> {
        self.assumed
            .iter()
            .map(|name| format!("`{name}` is taken as 1; `--shape {name}=SIZE` says otherwise"))
    }

    fn dimension_size(&mut self, dim: &'a DeclaredDimension) -> i64 {
        match dim {
            DeclaredDimension::Known(size) => *size,
            DeclaredDimension::Unknown => 1,
            DeclaredDimension::Symbol(name) => {
                let known = self.sizes.iter().find(|(known, _)| *known == &**name);
                if known.is_none() && !self.assumed.contains(&&**name) {
                    self.assumed.push(name);
                }
                known.map_or(1, |(_, size)| *size)
            }
        }
    }
}

/// An empty sequence, or an empty optional.
fn empty_value(declared: &ValueType) -> RuntimeValue {
    match declared {
        ValueType::Sequence(_) => RuntimeValue::Sequence(Vec::new()),
        _ => RuntimeValue::Nothing,
    }
}

/// True if the input may be a sequence, whose elements are then given one by one.
fn is_sequence_input(declared: &ValueType) -> bool {
    match declared {
        ValueType::Sequence(_) => true,
        ValueType::Optional(of) => is_sequence_input(of),
        _ => false,
    }
}

/// Describes random elements in the note about them.
fn element_description(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64 | Dtype::C64 | Dtype::C128 => {
            "normally distributed"
        }
        Dtype::F4E2M1
        | Dtype::F8E4M3
        | Dtype::F8E4M3Fnuz
        | Dtype::F8E5M2
        | Dtype::F8E5M2Fnuz
        | Dtype::F8E8M0 => "between -2 and 2",
        Dtype::Bool => "true and false",
        _ => "0 and 1, which are legal tokens, indices and masks",
    }
}

fn is_input(slots: &[ModelOperand], name: &str) -> bool {
    slots.iter().any(|slot| &*slot.name == name)
}

/// All symbol names of the dimensions.
fn symbol_names(slots: &[ModelOperand]) -> impl Iterator<Item = &str> {
    let dims = slots.iter().filter_map(|slot| match &slot.declared {
        ValueType::Tensor { dims, .. } => dims.as_ref(),
        _ => None,
    });
    dims.flatten()
        .filter_map(|dim| if let DeclaredDimension::Symbol(name) = dim { Some(&**name) } else { None })
}

/// Splits `NAME=VALUE`. Since a name may contain `=`, the longest name that the model has wins.
fn split_assignment<'a>(text: &'a OsStr, session: &Session) -> Option<(&'a str, &'a OsStr)> {
    // Names are text, but a path may be any bytes.
    let bytes = text.as_bytes();
    let signs = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'=').filter_map(|(at, _)| {
        Some((std::str::from_utf8(&bytes[..at]).ok()?, OsStr::from_bytes(&bytes[at + 1..])))
    });
    let known = signs.clone().rfind(|(name, _)| session.input(name).is_ok());
    // An argument that names no input is an error, unless it is the path of an archive.
    let is_archive = npz::has_npz_name(Path::new(text)) && Path::new(text).exists();
    known.or_else(|| signs.clone().next().filter(|(name, _)| !is_archive && !name.is_empty()))
}

/// The error for a `--shape` that contradicts something else.
fn contradicted_shape(name: &str, expected: &str, sizes: &[i64]) -> CommandError {
    CommandError::new(format!("input `{name}`: expected {expected}, found {sizes:?}"))
        .with_hint("leave out `--shape`, or give what it says")
}

/// Reads a file or parses a literal.
fn read_array(text: &OsStr, check: npy::ArrayCheck<'_, CommandError>) -> Result<HostArray, CommandError> {
    let (typed, file) = (text.to_str().and_then(literal::parse_literal), Path::new(text));
    match typed {
        Some(typed) => typed,
        None if file.extension().is_some_and(|extension| extension == "pb") => read_onnx_tensor(file),
        None => npy::read_npy(file, check),
    }
}

/// Reads a TensorProto file, the format of ONNX's own tests.
fn read_onnx_tensor(file: &Path) -> Result<HostArray, CommandError> {
    let weight = oarlock_engine::import::onnx::load_tensor(file)?;
    let (dtype, dims) = (weight.dtype(), weight.dims().to_vec());
    let elements = match weight {
        Weight::Numbers(numbers) => ArrayElements::Bytes(numbers.bytes()?.to_vec()),
        Weight::Texts { texts, .. } => ArrayElements::Texts(texts.to_vec()),
    };
    Ok(HostArray { dtype, dims, is_fortran: false, elements })
}

/// The error for inputs that were not given.
fn missing_inputs_error(missing: &[&ModelOperand], fitting: Option<String>) -> CommandError {
    let names: Vec<String> = missing.iter().map(|slot| format!("`{slot}`")).collect();
    let inputs = if missing.len() == 1 { "the input" } else { "the inputs" };
    let problem = CommandError::new(format!("expected values for {inputs} {}, found none", names.join(", ")));
    let optional = missing.iter().find(|slot| matches!(slot.declared, ValueType::Optional(_)));
    let nothing = optional.map_or_else(String::new, |slot| {
        format!("; an optional one such as `{0}` is left empty with `-i {0}={EMPTY_INPUT}`", slot.name)
    });
    let fitting = fitting
        .map_or_else(String::new, |fitting| format!("; sizes that fit the rest of the model are {fitting}"));
    let name = &missing[0].name;
    problem.with_hint(format!(
        "give files as in `-i {name}=FILE.npy`, values as in `-i {name}=f32:[1,2]`, all inputs at once as in `-i FILE.npz`, or \
         have what is missing made up with `--random 0`{fitting}{nothing}"
    ))
}
