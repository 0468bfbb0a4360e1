//! `LabelEncoder`: values that stand for others.

use std::collections::HashMap;

use oarlock_sdk::{Call, Dtype, DtypeSet, Error, Kernel, Operand, Result, dispatch, ensure, family};

use crate::device::Cpu;
use crate::kernels::attributes::{self, tensor};
use crate::kernels::rows::number::{Float, Number};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::text::operand::texts;

/// Numbers of attributes and operands.
const NUMBERS: DtypeSet = family::FLOATING.union(DtypeSet::I16).union(DtypeSet::I32).union(DtypeSet::I64);

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let key = Operand::new(NUMBERS.union(DtypeSet::STRING)).named("X");
    let value = Operand::new(NUMBERS).named("Y");
    vec![
        kernel("LabelEncoder", Labels::of_classes, |_, labels, operands| labels.run(operands))
            .until(1)
            .inputs([Operand::new(DtypeSet::STRING).named("X")])
            .outputs([Operand::new(DtypeSet::I64).named("Y")]),
        kernel("LabelEncoder", Labels::new, |_, labels, operands| labels.run(operands))
            .since(2)
            .inputs([key])
            .outputs([value]),
    ]
}

/// Keys and the values that stand for them.
struct Labels {
    keys: Keys,
    values: Values,
}

enum Keys {
    Words(HashMap<String, usize>),
    /// By the bits of the number in 64 bits.
    Floats(HashMap<u64, usize>),
    Ints(HashMap<i64, usize>),
}

/// Each with what stands for any other key.
enum Values {
    Floats(Vec<f64>, f64),
    Ints(Vec<i64>, i64),
}

impl Labels {
    /// Version 1: a class has the number of its place.
    fn of_classes(call: &Call<'_>) -> Result<Self> {
        let classes = attributes::texts(call, "classes_strings")?.unwrap_or_default();
        Ok(Self {
            values: Values::Ints(
                (0..classes.len() as i64).collect(),
                call.int("default_int64")?.unwrap_or(-1),
            ),
            keys: Keys::Words(first_places(classes.into_iter().map(str::to_owned))),
        })
    }

    fn new(call: &Call<'_>) -> Result<Self> {
        let (keys, count) = Keys::new(call)?;
        let values = Values::new(call)?;
        let found = match &values {
            Values::Floats(values, _) => values.len(),
            Values::Ints(values, _) => values.len(),
        };
        ensure!(found == count, invalid_argument, "expected a value for each of {count} keys, found {found}");
        Ok(Self { keys, values })
    }

    fn run(&self, operands: &Operands<'_, '_>) -> Result<()> {
        let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
        operands.expect_dims(&y, "Y", x.dims())?;
        let found: Vec<Option<usize>> = match (&self.keys, x.dtype()) {
            (Keys::Words(keys), Dtype::STRING) => {
                texts(&x)?.into_iter().map(|text| keys.get(text).copied()).collect()
            }
            (Keys::Floats(keys), _) => dispatch!(x.dtype(), floating, T => {
                let place = |element: &T| keys.get(&bits(element.float().to_f64())).copied();
                Result::Ok(operands.read::<T>(0)?.iter().map(place).collect())
            })?,
            (Keys::Ints(keys), _) => integers(operands)?.iter().map(|key| keys.get(key).copied()).collect(),
            _ => {
                return Err(Error::invalid_argument(
                    "expected keys of the dtype of the attribute, found others",
                ));
            }
        };
        match &self.values {
            Values::Floats(values, default) => dispatch!(y.dtype(), floating, T => {
                for (out, place) in operands.write::<T>(0)?.iter_mut().zip(found) {
                    *out = T::of_float(<T as Number>::Float::of(place.map_or(*default, |place| values[place])));
                }
                Ok(())
            }),
            Values::Ints(values, default) => dispatch!(y.dtype(), integral, T => {
                for (out, place) in operands.write::<T>(0)?.iter_mut().zip(found) {
                    *out = place.map_or(*default, |place| values[place]) as T;
                }
                Ok(())
            }),
        }
    }
}

/// The elements of an input of integers.
fn integers(operands: &Operands<'_, '_>) -> Result<Vec<i64>> {
    match operands.call().input(0)?.dtype() {
        Dtype::I16 => Ok(operands.read::<i16>(0)?.iter().map(|key| i64::from(*key)).collect()),
        Dtype::I32 => Ok(operands.read::<i32>(0)?.iter().map(|key| i64::from(*key)).collect()),
        _ => Ok(operands.read::<i64>(0)?.to_vec()),
    }
}

impl Keys {
    /// The keys of the one attribute that has any, and how many there are.
    fn new(call: &Call<'_>) -> Result<(Self, usize)> {
        if let Some(words) = attributes::texts(call, "keys_strings")? {
            return Ok((Self::Words(first_places(words.iter().map(|word| (*word).to_owned()))), words.len()));
        }
        let floats = |all: &[f64]| (Self::Floats(first_places(all.iter().copied().map(bits))), all.len());
        let ints = |all: &[i64]| (Self::Ints(first_places(all.iter().copied())), all.len());
        if let Some(found) = call.floats("keys_floats")? {
            return Ok(floats(found));
        }
        if let Some(found) = call.ints("keys_int64s")? {
            return Ok(ints(found));
        }
        match tensor(call, "keys_tensor")? {
            Some(found) if is_float(found.dtype) => Ok(floats(&found.numbers()?)),
            Some(found) => Ok(ints(&found.integers()?)),
            None => Err(Error::invalid_argument("expected an attribute with keys, found none")),
        }
    }
}

impl Values {
    fn new(call: &Call<'_>) -> Result<Self> {
        let default = tensor(call, "default_tensor")?;
        let first_float = |default: Option<attributes::TensorAttribute<'_>>| {
            default
                .map(|default| default.numbers())
                .transpose()
                .map(|all| all.and_then(|all| all.first().copied()))
        };
        if let Some(values) = call.floats("values_floats")? {
            return Ok(Self::Floats(values.to_vec(), call.float("default_float")?.unwrap_or(-0.0)));
        }
        if let Some(values) = call.ints("values_int64s")? {
            return Ok(Self::Ints(values.to_vec(), call.int("default_int64")?.unwrap_or(-1)));
        }
        match tensor(call, "values_tensor")? {
            Some(values) if is_float(values.dtype) => {
                Ok(Self::Floats(values.numbers()?, first_float(default)?.unwrap_or(-0.0)))
            }
            Some(values) => {
                let default = default.map(|default| default.integers()).transpose()?;
                Ok(Self::Ints(values.integers()?, default.and_then(|all| all.first().copied()).unwrap_or(-1)))
            }
            None => {
                Err(Error::unimplemented("expected an attribute with values that are numbers, found none"))
            }
        }
    }
}

fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F32 | Dtype::F64)
}

/// Zeros are one key, and so are all that are no numbers.
fn bits(key: f64) -> u64 {
    let key = if key.is_nan() { f64::NAN } else { key + 0.0 };
    key.to_bits()
}

/// Where each key stands; of equal ones the first.
fn first_places<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> HashMap<K, usize> {
    let mut places = HashMap::new();
    for (place, key) in keys.enumerate() {
        places.entry(key).or_insert(place);
    }
    places
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::kernels::rows::checking::{check, refusal};
    use crate::testing::{Array, Attribute};

    #[test]
    fn zeros_are_one_key_and_so_are_all_that_are_no_numbers() {
        let keys = Array::of(&[4], &[0f32, -0.0, -f32::NAN, 2.0]);
        let attributes = [
            ("keys_floats", Attribute::Floats(&[-0.0, f64::NAN])),
            ("values_int64s", Attribute::Ints(&[5, 6])),
        ];
        check("LabelEncoder", 4, &attributes, &[Some(&keys)], &[Array::of(&[4], &[5i64, 5, 6, -1])]);
    }

    #[test]
    fn tensors_hold_keys_and_values_too() {
        let (keys, values) = (Array::of(&[2], &[7i16, -7]), Array::of(&[2], &[0.5f64, 1.5]));
        let default = Array::of(&[1], &[9f64]);
        let attributes = [
            ("keys_tensor", Attribute::Tensor(&keys)),
            ("values_tensor", Attribute::Tensor(&values)),
            ("default_tensor", Attribute::Tensor(&default)),
        ];
        let input = Array::of(&[3], &[-7i16, 0, 7]);
        check("LabelEncoder", 4, &attributes, &[Some(&input)], &[Array::of(&[3], &[1.5f64, 9., 0.5])]);
    }

    #[test]
    fn keys_without_values_are_refused() {
        let attributes =
            [("keys_int64s", Attribute::Ints(&[1, 2])), ("values_floats", Attribute::Floats(&[0.5]))];
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1]))];
        let input = Array::of(&[1], &[1i64]);
        let message = refusal("LabelEncoder", 4, &attributes, &[Some(&input)], &outputs);
        assert!(message.contains("a value for each of 2 keys, found 1"), "{message}");
        let message = refusal("LabelEncoder", 4, &attributes[1..], &[Some(&input)], &outputs);
        assert!(message.contains("an attribute with keys"), "{message}");
    }
}
