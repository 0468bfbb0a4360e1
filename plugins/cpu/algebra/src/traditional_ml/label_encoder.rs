//! `LabelEncoder`: maps values to others.

use oarlock_cpu_base::attributes::{self, tensor_attribute};
use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::text_operand::read_texts;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result, dispatch, ensure, family,
};
use rustc_hash::FxHashMap;

const LABEL_NUMBERS: DtypeSet =
    family::FLOATING.union(DtypeSet::I16).union(DtypeSet::I32).union(DtypeSet::I64);

pub(super) fn label_encoder_kernels() -> Vec<Kernel<Cpu>> {
    let key = OperandSpec::new(LABEL_NUMBERS.union(DtypeSet::STRING)).with_name("X");
    let value = OperandSpec::new(LABEL_NUMBERS).with_name("Y");
    vec![
        operand_kernel("LabelEncoder", LabelMap::from_class_list, |_, labels, operands| {
            labels.encode_labels(operands)
        })
        // Version 1 maps between text and integers, with other attributes.
        .until_version(1)
        .with_inputs([OperandSpec::new(DtypeSet::STRING).with_name("X")])
        .with_outputs([OperandSpec::new(DtypeSet::I64).with_name("Y")]),
        operand_kernel("LabelEncoder", LabelMap::new, |_, labels, operands| labels.encode_labels(operands))
            .since_version(2)
            .with_inputs([key])
            .with_outputs([value]),
    ]
}

/// Keys and the values that they map to.
struct LabelMap {
    keys: LabelKeys,
    values: LabelValues,
}

enum LabelKeys {
    Words(FxHashMap<String, usize>),
    /// By the bits of the `f64`.
    Floats(FxHashMap<u64, usize>),
    Ints(FxHashMap<i64, usize>),
}

/// Values, each list with the default for any other key.
enum LabelValues {
    Floats(Vec<f64>, f64),
    Ints(Vec<i64>, i64),
}

impl LabelMap {
    /// Version 1: a class maps to its index, the last one of equal classes.
    fn from_class_list(call: &KernelCall<'_>) -> Result<Self> {
        let classes = attributes::string_list(call, "classes_strings")?.unwrap_or_default();
        Ok(Self {
            values: LabelValues::Ints(
                (0..classes.len() as i64).collect(),
                call.int_attribute("default_int64")?.unwrap_or(-1),
            ),
            keys: LabelKeys::Words(
                (0..).zip(classes).map(|(index, class)| (class.to_owned(), index)).collect(),
            ),
        })
    }

    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let (keys, count) = LabelKeys::new(call)?;
        let values = LabelValues::new(call)?;
        let found = match &values {
            LabelValues::Floats(values, _) => values.len(),
            LabelValues::Ints(values, _) => values.len(),
        };
        ensure!(found == count, invalid_argument, "expected a value for each of {count} keys, found {found}");
        Ok(Self { keys, values })
    }

    fn encode_labels(&self, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
        operands.expect_dims(&y, "Y", x.dims())?;
        // In two steps, key to position and position to value: otherwise there would be a loop for each pair of types.
        let found: Vec<Option<usize>> = match (&self.keys, x.dtype()) {
            (LabelKeys::Words(keys), Dtype::STRING) => {
                read_texts(&x)?.into_iter().map(|text| keys.get(text).copied()).collect()
            }
            (LabelKeys::Floats(keys), _) => dispatch!(x.dtype(), floating, T => {
                let place = |element: &T| keys.get(&key_bits(element.to_float().to_f64())).copied();
                Result::Ok(operands.read_input::<T>(0)?.iter().map(place).collect())
            })?,
            (LabelKeys::Ints(keys), _) => {
                read_integers(operands)?.iter().map(|key| keys.get(key).copied()).collect()
            }
            _ => {
                return Err(PluginError::invalid_argument(
                    "expected keys of the dtype of the attribute, found others",
                ));
            }
        };
        match &self.values {
            LabelValues::Floats(values, default) => dispatch!(y.dtype(), floating, T => {
                for (out, place) in operands.write_output::<T>(0)?.iter_mut().zip(found) {
                    *out = T::from_float(<T as ComputeElement>::Float::from_f64(place.map_or(*default, |place| values[place])));
                }
                Ok(())
            }),
            LabelValues::Ints(values, default) => dispatch!(y.dtype(), integral, T => {
                for (out, place) in operands.write_output::<T>(0)?.iter_mut().zip(found) {
                    // A value that does not fit the dtype of the output wraps around.
                    *out = place.map_or(*default, |place| values[place]) as T;
                }
                Ok(())
            }),
        }
    }
}

/// The elements of an input of integers.
fn read_integers(operands: &KernelOperands<'_, '_>) -> Result<Vec<i64>> {
    match operands.call().input(0)?.dtype() {
        Dtype::I16 => Ok(operands.read_input::<i16>(0)?.iter().map(|key| i64::from(*key)).collect()),
        Dtype::I32 => Ok(operands.read_input::<i32>(0)?.iter().map(|key| i64::from(*key)).collect()),
        _ => Ok(operands.read_input::<i64>(0)?.to_vec()),
    }
}

impl LabelKeys {
    /// The keys of the one attribute that has any, and their number.
    fn new(call: &KernelCall<'_>) -> Result<(Self, usize)> {
        if let Some(words) = attributes::string_list(call, "keys_strings")? {
            return Ok((
                Self::Words(first_positions(words.iter().map(|word| (*word).to_owned()))),
                words.len(),
            ));
        }
        let floats =
            |all: &[f64]| (Self::Floats(first_positions(all.iter().copied().map(key_bits))), all.len());
        let ints = |all: &[i64]| (Self::Ints(first_positions(all.iter().copied())), all.len());
        if let Some(found) = call.floats_attribute("keys_floats")? {
            return Ok(floats(found));
        }
        if let Some(found) = call.ints_attribute("keys_int64s")? {
            return Ok(ints(found));
        }
        match tensor_attribute(call, "keys_tensor")? {
            Some(found) if is_float(found.dtype) => Ok(floats(&found.read_f64_values()?)),
            Some(found) => Ok(ints(&found.read_i64_values()?)),
            None => Err(PluginError::invalid_argument("expected an attribute with keys, found none")),
        }
    }
}

impl LabelValues {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let default = tensor_attribute(call, "default_tensor")?;
        let first_float = |default: Option<attributes::TensorAttribute<'_>>| {
            default
                .map(|default| default.read_f64_values())
                .transpose()
                .map(|all| all.and_then(|all| all.first().copied()))
        };
        if let Some(values) = call.floats_attribute("values_floats")? {
            // The schema's default is -0.
            return Ok(Self::Floats(values.to_vec(), call.float_attribute("default_float")?.unwrap_or(-0.0)));
        }
        if let Some(values) = call.ints_attribute("values_int64s")? {
            return Ok(Self::Ints(values.to_vec(), call.int_attribute("default_int64")?.unwrap_or(-1)));
        }
        match tensor_attribute(call, "values_tensor")? {
            Some(values) if is_float(values.dtype) => {
                Ok(Self::Floats(values.read_f64_values()?, first_float(default)?.unwrap_or(-0.0)))
            }
            Some(values) => {
                let default = default.map(|default| default.read_i64_values()).transpose()?;
                Ok(Self::Ints(
                    values.read_i64_values()?,
                    default.and_then(|all| all.first().copied()).unwrap_or(-1),
                ))
            }
            None => Err(PluginError::unimplemented(
                "expected an attribute with values that are numbers, found none",
            )),
        }
    }
}

fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F32 | Dtype::F64)
}

/// Zeros are one key, and so are all NaNs.
fn key_bits(key: f64) -> u64 {
    let key = if key.is_nan() { f64::NAN } else { key + 0.0 };
    key.to_bits()
}

/// The first position of each key.
pub(super) fn first_positions<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> FxHashMap<K, usize> {
    let mut places = FxHashMap::default();
    for (place, key) in keys.enumerate() {
        places.entry(key).or_insert(place);
    }
    places
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn zeros_are_one_key_and_so_are_all_that_are_no_numbers() {
        let keys = TestArray::from_values(&[4], &[0f32, -0.0, -f32::NAN, 2.0]);
        let attributes = [
            ("keys_floats", TestAttribute::Floats(&[-0.0, f64::NAN])),
            ("values_int64s", TestAttribute::Ints(&[5, 6])),
        ];
        KERNELS.check_kernel(
            "LabelEncoder",
            4,
            &attributes,
            &[Some(&keys)],
            &[TestArray::from_values(&[4], &[5i64, 5, 6, -1])],
        );
    }

    #[test]
    fn tensors_hold_keys_and_values_too() {
        let (keys, values) =
            (TestArray::from_values(&[2], &[7i16, -7]), TestArray::from_values(&[2], &[0.5f64, 1.5]));
        let default = TestArray::from_values(&[1], &[9f64]);
        let attributes = [
            ("keys_tensor", TestAttribute::Tensor(&keys)),
            ("values_tensor", TestAttribute::Tensor(&values)),
            ("default_tensor", TestAttribute::Tensor(&default)),
        ];
        let input = TestArray::from_values(&[3], &[-7i16, 0, 7]);
        KERNELS.check_kernel(
            "LabelEncoder",
            4,
            &attributes,
            &[Some(&input)],
            &[TestArray::from_values(&[3], &[1.5f64, 9., 0.5])],
        );
    }

    #[test]
    fn keys_without_values_are_refused() {
        let attributes =
            [("keys_int64s", TestAttribute::Ints(&[1, 2])), ("values_floats", TestAttribute::Floats(&[0.5]))];
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1]))];
        let input = TestArray::from_values(&[1], &[1i64]);
        let message = KERNELS.refusal_message("LabelEncoder", 4, &attributes, &[Some(&input)], &outputs);
        assert!(message.contains("a value for each of 2 keys, found 1"), "{message}");
        let message = KERNELS.refusal_message("LabelEncoder", 4, &attributes[1..], &[Some(&input)], &outputs);
        assert!(message.contains("an attribute with keys"), "{message}");
    }
}
