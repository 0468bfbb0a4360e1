//! Features before a model sees them: `ArrayFeatureExtractor`, `Binarizer`, `FeatureVectorizer`, `Imputer` and `OneHotEncoder`.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::attributes;
use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::text_operand::{read_texts, write_texts};
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{
    Dtype, DtypeSet, Element, Kernel, KernelCall, OperandFlags, OperandSpec, PluginError, Result, dispatch,
    ensure,
};
use rustc_hash::FxHashMap;

use super::FEATURE_DTYPES;
use super::feature_matrix::matrix_size;
use super::feature_scaling::ColumnPattern;
use super::label_encoder::first_positions;

pub(super) fn feature_kernels() -> Vec<Kernel<Cpu>> {
    let number = OperandSpec::new(FEATURE_DTYPES).with_dtype_group(1);
    let (float, text) = (OperandSpec::new(DtypeSet::F32), OperandSpec::new(DtypeSet::STRING));
    vec![
        operand_kernel(
            "ArrayFeatureExtractor",
            |_| Ok(()),
            |_, (), operands| {
                let dtype = operands.call().input(0)?.dtype();
                dispatch!(dtype, floating + i32 + i64, T => extract_features::<T>(operands))
            },
        )
        .with_inputs([number.with_name("X"), OperandSpec::new(DtypeSet::I64).with_name("Y")])
        .with_outputs([number.with_name("Z")]),
        operand_kernel("ArrayFeatureExtractor", |_| Ok(()), |_, (), operands| extract_strings(operands))
            .with_inputs([text.with_name("X"), OperandSpec::new(DtypeSet::I64).with_name("Y")])
            .with_outputs([text.with_name("Z")]),
        operand_kernel(
            "Binarizer",
            |call| Ok(call.float_attribute("threshold")?.unwrap_or(0.0)),
            |_, threshold, operands| {
                let dtype = operands.call().input(0)?.dtype();
                dispatch!(dtype, floating + i32 + i64, T => binarize::<T>(*threshold, operands))
            },
        )
        .with_inputs([number.with_name("X")])
        .with_outputs([number.with_name("Y")]),
        operand_kernel("Imputer", ImputedValues::new, |cpu, imputed, operands| {
            match operands.call().input(0)?.dtype() {
                Dtype::I32 => imputed.impute_integers::<i32>(cpu, operands),
                Dtype::I64 => imputed.impute_integers::<i64>(cpu, operands),
                dtype => dispatch!(dtype, floating, T => imputed.impute_floats::<T>(cpu, operands)),
            }
        })
        .with_inputs([number.with_name("X")])
        .with_outputs([number.with_name("Y")]),
        operand_kernel("OneHotEncoder", OneHotCategories::new, |_, categories, operands| {
            categories.encode_one_hot(operands)
        })
        .with_inputs([OperandSpec::new(FEATURE_DTYPES.union(DtypeSet::STRING)).with_name("X")])
        .with_outputs([float.with_name("Y")]),
        operand_kernel(
            "FeatureVectorizer",
            |call| Ok(call.ints_attribute("inputdimensions")?.unwrap_or_default().to_vec()),
            |_, widths, operands| concatenate_features(widths, operands),
        )
        .with_inputs([number.with_name("X").with_flags(OperandFlags::VARIADIC)])
        .with_outputs([float.with_name("Y")]),
    ]
}

fn extract_features<T: ComputeElement>(operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (columns, indices) = selected_columns(operands)?;
    let (x, z) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    // Chunks of 0 would panic. If there are outputs, there are columns and indices.
    if z.is_empty() {
        return Ok(());
    }
    for (row, out) in x.chunks(columns).zip(z.chunks_mut(indices.len())) {
        out.iter_mut().zip(indices).for_each(|(out, index)| *out = row[*index as usize]);
    }
    Ok(())
}

fn extract_strings(operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (columns, indices) = selected_columns(operands)?;
    let x = read_texts(&operands.call().input(0)?)?;
    // Chunks of 0 would panic; without columns there are no elements.
    let rows = x.chunks(columns.max(1));
    let found: Vec<&str> = rows.flat_map(|row| indices.iter().map(|index| row[*index as usize])).collect();
    write_texts(&operands.call().output(0)?, found.into_iter())
}

/// The number of features, and which of them are taken.
fn selected_columns<'a>(operands: &KernelOperands<'a, '_>) -> Result<(usize, &'a [i64])> {
    let call = operands.call();
    let (x, indices, z) = (call.input(0)?, operands.read_input::<i64>(1)?, call.output(0)?);
    let Some((columns, outer)) = x.dims().split_last() else {
        return Err(PluginError::invalid_argument("expected features, found a scalar"));
    };
    if let Some(wrong) = indices.iter().find(|index| !(0..*columns).contains(*index)) {
        return Err(PluginError::out_of_range(format!(
            "expected `Y` from 0 to {columns} (exclusive), found {wrong}"
        )));
    }
    // A single row gets a dimension of its own.
    let outer = if outer.is_empty() { &[1] } else { outer };
    operands.expect_dims(&z, "Z", &[outer, &[indices.len() as i64]].concat())?;
    Ok((*columns as usize, indices))
}

fn binarize<T: ComputeElement>(threshold: f64, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "Y", x.dims())?;
    let (zero, one) = (T::from_accumulator(T::Accumulator::ZERO), T::from_accumulator(T::Accumulator::ONE));
    for (out, element) in operands.write_output::<T>(0)?.iter_mut().zip(operands.read_input::<T>(0)?) {
        *out = if element.to_float().to_f64() > threshold { one } else { zero };
    }
    Ok(())
}

/// The values that replace missing ones.
struct ImputedValues {
    floats: Vec<f64>,
    ints: Vec<i64>,
    missing_float: f64,
    missing_int: i64,
}

impl ImputedValues {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        Ok(Self {
            floats: call.floats_attribute("imputed_value_floats")?.unwrap_or_default().to_vec(),
            ints: call.ints_attribute("imputed_value_int64s")?.unwrap_or_default().to_vec(),
            missing_float: call.float_attribute("replaced_value_float")?.unwrap_or(0.0),
            missing_int: call.int_attribute("replaced_value_int64")?.unwrap_or(0),
        })
    }

    fn impute_floats<T: ComputeElement>(&self, cpu: &Cpu, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let values: Vec<T> =
            self.floats.iter().map(|value| T::from_float(T::Float::from_f64(*value))).collect();
        let missing = T::Float::from_f64(self.missing_float);
        // NaN can mark what is missing, though it equals nothing.
        let is_nan_missing = self.missing_float.is_nan();
        impute_missing(
            cpu,
            &values,
            operands,
            #[inline(always)]
            move |element: T| {
                let number = element.to_float();
                (number == missing) | (is_nan_missing & number.is_nan())
            },
        )
    }

    fn impute_integers<T: Element + TryFrom<i64> + Into<i64>>(
        &self,
        cpu: &Cpu,
        operands: &KernelOperands<'_, '_>,
    ) -> Result<()> {
        let narrow = |value: &i64| {
            T::try_from(*value).map_err(|_| {
                PluginError::invalid_argument(format!(
                    "expected an `imputed_value_int64s` that fits the dtype of the elements, found {value}",
                ))
            })
        };
        let values = self.ints.iter().map(narrow).collect::<Result<Vec<T>>>()?;
        let missing = self.missing_int;
        impute_missing(
            cpu,
            &values,
            operands,
            #[inline(always)]
            move |element: T| element.into() == missing,
        )
    }
}

fn impute_missing<T: Element>(
    cpu: &Cpu,
    values: &[T],
    operands: &KernelOperands<'_, '_>,
    is_missing: impl Fn(T) -> bool + Sync,
) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "Y", x.dims())?;
    let columns = x.dims().last().map_or(1, |columns| *columns as usize);
    ensure!(
        values.len() == 1 || values.len() == columns,
        invalid_argument,
        "expected one value to impute or one for each of {columns} columns, found {}",
        values.len()
    );
    let (x, out) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    if columns == 0 {
        return Ok(());
    }
    let values = ColumnPattern::new(values.iter().copied(), columns, x.len() / columns);
    let out = OutputRows::new(out, columns);
    parallel_for_parts(cpu, x.len() / columns, grain_for(columns), out, |first, out| {
        let x = &x[first * columns..][..out.len()];
        with_isa!(cpu.isa(), || {
            for (out, x) in out.chunks_mut(values.width()).zip(x.chunks(values.width())) {
                for ((out, element), value) in out.iter_mut().zip(x).zip(values.elements()) {
                    *out = if is_missing(*element) { *value } else { *element };
                }
            }
        });
    });
    Ok(())
}

/// The categories of `OneHotEncoder`.
struct OneHotCategories {
    ints: FxHashMap<i64, usize>,
    words: FxHashMap<String, usize>,
    /// The numbers of integers and of words, equal ones included.
    counts: (usize, usize),
    allows_others: bool,
}

impl OneHotCategories {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let words = attributes::string_list(call, "cats_strings")?.unwrap_or_default();
        let ints = call.ints_attribute("cats_int64s")?.unwrap_or_default();
        Ok(Self {
            counts: (ints.len(), words.len()),
            ints: first_positions(ints.iter().copied()),
            words: first_positions(words.into_iter().map(str::to_owned)),
            allows_others: call.int_attribute("zeros")?.unwrap_or(1) != 0,
        })
    }

    fn encode_one_hot(&self, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
        let found: Vec<Option<usize>> = if x.dtype() == Dtype::STRING {
            read_texts(&x)?.iter().map(|text| self.words.get(*text).copied()).collect()
        } else {
            let position = |number: i64| self.ints.get(&number).copied();
            match x.dtype() {
                // Not by way of a float: an `f64` does not hold every `i64`.
                Dtype::I64 => operands.read_input::<i64>(0)?.iter().map(|number| position(*number)).collect(),
                dtype => dispatch!(dtype, floating + i32, T => {
                    // Truncated towards 0. NaN, which `as` would make 0, is in no category.
                    let place = |element: &T| {
                        let number = element.to_float().to_f64();
                        if number.is_nan() { None } else { position(number as i64) }
                    };
                    Result::Ok(operands.read_input::<T>(0)?.iter().map(place).collect())
                })?,
            }
        };
        let width = if x.dtype() == Dtype::STRING { self.counts.1 } else { self.counts.0 };
        operands.expect_dims(&y, "Y", &[x.dims(), &[width as i64]].concat())?;
        ensure!(
            self.allows_others || found.iter().all(Option::is_some),
            invalid_argument,
            "expected one of {width} categories, as `zeros` says, found another"
        );
        let out = operands.write_output::<f32>(0)?;
        out.fill(0.0);
        for (at, category) in found.iter().enumerate() {
            if let Some(category) = category {
                out[at * width + category] = 1.0;
            }
        }
        Ok(())
    }
}

/// Truncates each input to a width, or pads it with zeros.
fn concatenate_features(widths: &[i64], operands: &KernelOperands<'_, '_>) -> Result<()> {
    let call = operands.call();
    let count = call.input_count();
    ensure!(
        // Below 2³¹ each, so that their sum does not overflow.
        widths.len() == count && widths.iter().all(|width| (0..=i64::from(i32::MAX)).contains(width)),
        invalid_argument,
        "expected `inputdimensions` of at least 0 for each of {count} inputs, found {widths:?}"
    );
    let total: i64 = widths.iter().sum();
    let (rows, _) = matrix_size(&call.input(0)?)?;
    operands.expect_dims(&call.output(0)?, "Y", &[rows as i64, total])?;
    let out = operands.write_output::<f32>(0)?;
    out.fill(0.0);
    let mut start = 0;
    for (index, width) in widths.iter().enumerate() {
        let input = call.input(index)?;
        let (own_rows, columns) = matrix_size(&input)?;
        ensure!(own_rows == rows, invalid_argument, "expected {rows} rows in all inputs, found {own_rows}");
        let kept = columns.min(*width as usize);
        dispatch!(input.dtype(), floating + i32 + i64, T => {
            let elements = operands.read_input::<T>(index)?;
            // Without columns there may be more rows than a loop could visit.
            for row in 0..if kept == 0 { 0 } else { rows } {
                let out = &mut out[row * total as usize + start..][..kept];
                let row = &elements[row * columns..][..kept];
                out.iter_mut().zip(row).for_each(|(out, element)| *out = element.to_float().to_f64() as f32);
            }
            Result::Ok(())
        })?;
        start += *width as usize;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
    use oarlock_sdk::Dtype;

    use crate::KERNELS;

    /// Neighbors that are the same number as an `f64`.
    const NEIGHBORS: [i64; 2] = [i64::MAX - 1, i64::MAX];

    #[test]
    fn the_imputer_tells_large_integers_apart() {
        let imputed = TestAttribute::Ints(&[i64::MAX - 7]);
        let attributes =
            [("imputed_value_int64s", imputed), ("replaced_value_int64", TestAttribute::Int(NEIGHBORS[0]))];
        let x = TestArray::from_values(&[1, 2], &NEIGHBORS);
        let y = TestArray::from_values(&[1, 2], &[i64::MAX - 7, NEIGHBORS[1]]);
        KERNELS.check_kernel("Imputer", 1, &attributes, &[Some(&x)], &[y]);
        let x = TestArray::from_values(&[1, 2], &[1i32, 2]);
        let error =
            KERNELS.run_kernel("Imputer", 1, &attributes, &[Some(&x)], &[Some((Dtype::I32, &[1, 2]))]);
        assert!(error.unwrap_err().contains("that fits the dtype"));
    }

    #[test]
    fn large_integer_categories_are_distinguished() {
        let x = TestArray::from_values(&[2], &NEIGHBORS);
        let attributes = [("cats_int64s", TestAttribute::Ints(&NEIGHBORS))];
        let y = TestArray::from_values(&[2, 2], &[1f32, 0.0, 0.0, 1.0]);
        KERNELS.check_kernel("OneHotEncoder", 1, &attributes, &[Some(&x)], &[y]);
    }

    #[test]
    fn no_category_is_nan() {
        let x = TestArray::from_values(&[2], &[f32::NAN, 1.5]);
        let attributes = [("cats_int64s", TestAttribute::Ints(&[0, 1]))];
        let y = TestArray::from_values(&[2, 2], &[0f32, 0.0, 0.0, 1.0]);
        KERNELS.check_kernel("OneHotEncoder", 1, &attributes, &[Some(&x)], &[y]);
    }
}
