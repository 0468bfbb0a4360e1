//! Ops that make their output from shapes and single values: `Shape`, `Size`, `ConstantOfShape`, `Range`, `OneHot`, `EyeLike`.

use std::sync::Arc;

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{
    WHOLE_BYTE_DTYPES, element_bytes, element_bytes_mut, first_attribute_element, for_parallel_pieces,
    read_integers, typed_values, typed_values_mut,
};
use oarlock_cpu_base::math::MathFloat;
use oarlock_sdk::shape::resolve_axis;
use oarlock_sdk::{
    Dtype, DtypeSet, Element, Kernel, KernelCall, OperandFlags, OperandSpec, PluginError, Result, TensorView,
    bf16, dispatch, dtype_set, ensure, f16, family,
};

use super::{host_operand, shape};

const RANGE_DTYPES: DtypeSet =
    dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64, Dtype::I16, Dtype::I32, Dtype::I64]);
const FILLABLE_DTYPES: DtypeSet = family::FLOATING_AND_INTEGRAL
    .union(DtypeSet::F16)
    .union(DtypeSet::BF16)
    .union(DtypeSet::U16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64);

pub(super) fn generator_kernels() -> Vec<Kernel<Cpu>> {
    let any = OperandSpec::new(WHOLE_BYTE_DTYPES).with_flags(OperandFlags::STRIDED);
    let (integer, output) =
        (OperandSpec::new(DtypeSet::I64), OperandSpec::new(WHOLE_BYTE_DTYPES).with_name("output"));
    let countable = |name| host_operand(name, RANGE_DTYPES).with_dtype_group(1).with_rank(0, 1);
    vec![
        Kernel::new_prepared("Shape", |_, call| {
            let (start, end) =
                (call.int_attribute("start")?.unwrap_or(0), call.int_attribute("end")?.unwrap_or(i64::MAX));
            Ok(Arc::new(move |_: &Cpu, call: &KernelCall<'_>| shape_of(call, start, end)))
        })
        .with_inputs([any.with_name("data")])
        .with_outputs([integer.with_name("shape")]),
        Kernel::new("Size", |_, call| {
            let count = call.input(0)?.element_count()?;
            shape::expect_shape(&call.output(0)?, "size", &[])?;
            typed_values_mut::<i64>(&call.output(0)?)?.fill(count as i64);
            Ok(())
        })
        .with_inputs([any.with_name("data")])
        .with_outputs([integer.with_name("size")]),
        Kernel::new_prepared("ConstantOfShape", |_, call| {
            // Without a value ONNX fills with zeros of `f32`. An element of any dtype fits into 16 bytes.
            let value = first_attribute_element(call, "value")?.unwrap_or((Dtype::F32, [0; 16]));
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| constant_of_shape(cpu, call, value)))
        })
        .since_version(9)
        .with_inputs([host_operand("input", DtypeSet::I64)])
        .with_outputs([output]),
        Kernel::new("Range", |cpu: &Cpu, call: &KernelCall<'_>| {
            let dtype = call.output(0)?.dtype();
            dispatch!(dtype, floating + f16 + bf16 + i16 + i32 + i64, T => range::<T>(cpu, call))
        })
        .since_version(11)
        .with_inputs([countable("start"), countable("limit"), countable("delta")])
        .with_outputs([OperandSpec::new(RANGE_DTYPES).with_dtype_group(1).with_name("output")]),
        Kernel::new_prepared("OneHot", |_, call| {
            let axis = call.int_attribute("axis")?.unwrap_or(-1);
            Ok(Arc::new(move |_: &Cpu, call: &KernelCall<'_>| one_hot(call, axis)))
        })
        .since_version(9)
        .with_inputs([
            OperandSpec::new(FILLABLE_DTYPES).with_name("indices"),
            host_operand("depth", FILLABLE_DTYPES).with_rank(0, 1),
            OperandSpec::new(WHOLE_BYTE_DTYPES).with_dtype_group(1).with_name("values").with_rank(1, 1),
        ])
        .with_outputs([output.with_dtype_group(1)]),
        Kernel::new_prepared("EyeLike", |_, call| {
            let diagonal = call.int_attribute("k")?.unwrap_or(0);
            Ok(Arc::new(move |_: &Cpu, call: &KernelCall<'_>| eye_like(call, diagonal)))
        })
        .since_version(9)
        .with_inputs([any.with_name("input").with_rank(2, 2)])
        .with_outputs([output]),
    ]
}

fn shape_of(call: &KernelCall<'_>, start: i64, end: i64) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    let dims = input.dims();
    let rank = dims.len() as i64;
    let place = |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank) as usize;
    let (start, end) = (place(start), place(end));
    // ONNX returns no dimensions, and no error, if the end comes before the start.
    let wanted = &dims[start..end.max(start)];
    shape::expect_shape(&output, "shape", &[wanted.len()])?;
    typed_values_mut::<i64>(&output)?.copy_from_slice(wanted);
    Ok(())
}

fn constant_of_shape(cpu: &Cpu, call: &KernelCall<'_>, (dtype, bytes): (Dtype, [u8; 16])) -> Result<()> {
    let (wanted, output) = (read_integers(&call.input(0)?)?, call.output(0)?);
    ensure!(
        output.dims() == wanted && output.dtype() == dtype,
        invalid_argument,
        "expected an output of shape {wanted:?} and the dtype of `value`, found {:?} and {}",
        output.dims(),
        output.dtype().name().unwrap_or("an unknown dtype")
    );
    by_size!(dtype, N => {
        let mut cell = [0; N];
        cell.copy_from_slice(&bytes[..N]);
        for_parallel_pieces(cpu, element_bytes_mut::<N>(&output)?, 1, |_, out| out.fill(cell));
        Ok(())
    })
}

/// Elements of a range. Integers wrap around.
trait RangeElement: Element {
    fn range_value(start: Self, delta: Self, index: usize) -> Self;
    fn as_f64(self) -> f64;
}

macro_rules! countables {
    ($($integer:ty)*; $($float:ty)*; $($half:ty)*) => {
        $(impl RangeElement for $integer {
            fn range_value(start: Self, delta: Self, index: usize) -> Self {
                // Arithmetic modulo 2ⁿ: the bits that the index loses here could not reach the result.
                start.wrapping_add(delta.wrapping_mul(index as Self))
            }
            fn as_f64(self) -> f64 { self as f64 }
        })*
        $(impl RangeElement for $float {
            // A product instead of a running sum: errors do not add up, and each thread can begin anywhere.
            fn range_value(start: Self, delta: Self, index: usize) -> Self { start + delta * index as Self }
            fn as_f64(self) -> f64 { f64::from(self) }
        })*
        $(impl RangeElement for $half {
            fn range_value(start: Self, delta: Self, index: usize) -> Self {
                // In `f32`: a narrow float cannot even count to a large index.
                Self::from_f32(start.to_f32() + delta.to_f32() * index as f32)
            }
            fn as_f64(self) -> f64 { self.to_f64() }
        })*
    };
}

countables!(i16 i32 i64; f32 f64; f16 bf16);

fn range<T: RangeElement>(cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    let (start, limit, delta) = (
        single_value::<T>(call, 0, "start")?,
        single_value::<T>(call, 1, "limit")?,
        single_value::<T>(call, 2, "delta")?,
    );
    ensure!(delta.as_f64() != 0.0, invalid_argument, "expected a `delta` other than 0, found 0");
    let output = call.output(0)?;
    let expected = ((limit.as_f64() - start.as_f64()) / delta.as_f64()).ceil().max(0.0);
    let found = shape::shape_dims(&output)?;
    // The host may have counted in another precision.
    ensure!(
        found.len() == 1 && (found[0] as f64 - expected).abs() <= 1.0,
        invalid_argument,
        "expected an output of {expected} elements, found the shape {found:?}"
    );
    for_parallel_pieces(cpu, typed_values_mut::<T>(&output)?, 1, |begin, out| {
        for (index, value) in out.iter_mut().enumerate() {
            *value = T::range_value(start, delta, begin + index);
        }
    });
    Ok(())
}

fn single_value<T: Element>(call: &KernelCall<'_>, index: usize, name: &str) -> Result<T> {
    let values = typed_values::<T>(&call.input(index)?)?;
    let [value] = values else {
        let found = values.len();
        return Err(PluginError::invalid_argument(format!(
            "expected `{name}` to hold one element, found {found}"
        )));
    };
    Ok(*value)
}

/// Numbers as integers, truncated towards 0.
fn truncated_integers(tensor: &TensorView<'_>) -> Result<Vec<i64>> {
    match tensor.dtype() {
        Dtype::I64 => Ok(typed_values::<i64>(tensor)?.to_vec()),
        Dtype::U64 => {
            // No depth is so large, so the highest integer stays out of bounds.
            let whole = |value: &u64| i64::try_from(*value).unwrap_or(i64::MAX);
            Ok(typed_values::<u64>(tensor)?.iter().map(whole).collect())
        }
        dtype => dispatch!(dtype, floating_and_half + bf16 + i8 + u8 + i16 + i32 + u16 + u32, T => {
            Ok(typed_values::<T>(tensor)?.iter().map(|value| truncate_to_integer(value.to_float().to_f64())).collect())
        }),
    }
}

/// NaN becomes an integer that is never an index.
fn truncate_to_integer(value: f64) -> i64 {
    if value.is_nan() { i64::MIN } else { value as i64 }
}

fn one_hot(call: &KernelCall<'_>, axis: i64) -> Result<()> {
    let (positions, levels, output) = (call.input(0)?, call.input(2)?, call.output(0)?);
    let depths = truncated_integers(&call.input(1)?)?;
    let depth = match depths[..] {
        [depth] if depth > 0 => depth as usize,
        _ => {
            return Err(PluginError::invalid_argument(format!(
                "expected one `depth` above 0, found {depths:?}"
            )));
        }
    };
    let mut dims = shape::shape_dims(&positions)?;
    let axis = resolve_axis(axis, dims.len() + 1)?;
    dims.insert(axis, depth);
    shape::expect_shape(&output, "output", &dims)?;
    shape::expect_shape(&levels, "values", &[2])?;
    let (_, _, inner) = shape::split_at_axis(&dims, axis);
    let positions = truncated_integers(&positions)?;
    by_size!(output.dtype(), N => {
        let (levels, out) = (element_bytes::<N>(&levels)?, element_bytes_mut::<N>(&output)?);
        // Nearly all places are off, so they are filled first.
        out.fill(levels[0]);
        for (at, position) in positions.iter().enumerate() {
            // An index outside of the depth leaves its place off.
            if let Some(position) = shape::resolve_index(*position, depth) {
                // The new axis splits the place of an index into what is before and behind it.
                out[(at / inner * depth + position) * inner + at % inner] = levels[1];
            }
        }
        Ok(())
    })
}

fn eye_like(call: &KernelCall<'_>, diagonal: i64) -> Result<()> {
    let output = call.output(0)?;
    let dims = shape::shape_dims(&call.input(0)?)?;
    shape::expect_shape(&output, "output", &dims)?;
    let one = one_as_bytes(output.dtype())?;
    by_size!(output.dtype(), N => {
        let out = element_bytes_mut::<N>(&output)?;
        out.fill([0; N]);
        // An empty output may have more rows than a loop could visit.
        let rows = if out.is_empty() { 0 } else { dims[0] };
        for row in 0..rows {
            let column = usize::try_from((row as i64).saturating_add(diagonal));
            if let Ok(column) = column && column < dims[1] {
                out[row * dims[1] + column].copy_from_slice(&one[..N]);
            }
        }
        Ok(())
    })
}

/// The bytes of the number 1, at the start of 16.
fn one_as_bytes(dtype: Dtype) -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut set = |one: &[u8]| bytes[..one.len()].copy_from_slice(one);
    match dtype {
        Dtype::BOOL | Dtype::I8 | Dtype::U8 => set(&[1]),
        // The exponent is the bias, and the mantissa is 0.
        Dtype::F8E4M3 => set(&[0x38]),
        Dtype::F8E5M2 => set(&[0x3C]),
        Dtype::F8E4M3FNUZ | Dtype::F8E5M2FNUZ => set(&[0x40]),
        Dtype::F8E8M0 => set(&[0x7F]),
        Dtype::I16 | Dtype::U16 => set(&1u16.to_ne_bytes()),
        Dtype::F16 => set(&f16::ONE.to_ne_bytes()),
        Dtype::BF16 => set(&bf16::ONE.to_ne_bytes()),
        Dtype::I32 | Dtype::U32 => set(&1u32.to_ne_bytes()),
        // The bytes behind stay 0, and are the imaginary part.
        Dtype::F32 | Dtype::C64 => set(&1f32.to_ne_bytes()),
        Dtype::I64 | Dtype::U64 => set(&1u64.to_ne_bytes()),
        Dtype::F64 | Dtype::C128 => set(&1f64.to_ne_bytes()),
        other => {
            let found = other.name().unwrap_or("an unknown dtype");
            return Err(PluginError::unimplemented(format!("expected numbers, found {found}")));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::{Dtype, f16};

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn a_shape_is_cut_from_start_to_end() {
        let input = TestArray::from_values(&[2, 3, 1], &[0u8; 6]);
        for (start, end, expected) in [(0, 9, &[2i64, 3, 1][..]), (-2, -1, &[3]), (2, 1, &[]), (-9, 1, &[2])]
        {
            let attributes = [("start", TestAttribute::Int(start)), ("end", TestAttribute::Int(end))];
            let outputs = [Some((Dtype::I64, &[expected.len() as i64][..]))];
            let results = KERNELS.run_kernel("Shape", 19, &attributes, &[Some(&input)], &outputs).unwrap();
            assert_eq!(results[0].as_ref().unwrap().values::<i64>(), expected);
        }
        let results =
            KERNELS.run_kernel("Size", 19, &[], &[Some(&input)], &[Some((Dtype::I64, &[]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<i64>(), [6]);
    }

    #[test]
    fn a_constant_fills_any_shape() {
        let (wanted, value) =
            (TestArray::from_values(&[2], &[2i64, 2]), TestArray::from_values(&[1], &[f16::from_f32(1.5)]));
        let value = [("value", TestAttribute::Tensor(&value))];
        let outputs = [Some((Dtype::F16, &[2, 2][..]))];
        let results = KERNELS.run_kernel("ConstantOfShape", 9, &value, &[Some(&wanted)], &outputs).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f16>(), [f16::from_f32(1.5); 4]);
        let scalar = TestArray::from_values::<i64>(&[0], &[]);
        let results = KERNELS
            .run_kernel("ConstantOfShape", 9, &[], &[Some(&scalar)], &[Some((Dtype::F32, &[]))])
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [0.0]);
        assert!(KERNELS.run_kernel("ConstantOfShape", 9, &[], &[Some(&wanted)], &outputs).is_err());
    }

    #[test]
    fn a_range_counts_up_and_down() {
        let (ten, four, step) = (
            TestArray::from_values(&[], &[10i32]),
            TestArray::from_values(&[], &[4i32]),
            TestArray::from_values(&[], &[-2i32]),
        );
        let outputs = [Some((Dtype::I32, &[3][..]))];
        let results =
            KERNELS.run_kernel("Range", 11, &[], &[Some(&ten), Some(&four), Some(&step)], &outputs).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<i32>(), [10, 8, 6]);
        let still = TestArray::from_values(&[], &[0i32]);
        assert!(
            KERNELS.run_kernel("Range", 11, &[], &[Some(&ten), Some(&four), Some(&still)], &outputs).is_err()
        );
    }

    #[test]
    fn one_of_the_depth_is_hot() {
        let (positions, depth) =
            (TestArray::from_values(&[3], &[0i64, -1, 3]), TestArray::from_values(&[], &[3f32]));
        let levels = TestArray::from_values(&[2], &[2u8, 5]);
        let inputs = [Some(&positions), Some(&depth), Some(&levels)];
        let outputs = [Some((Dtype::U8, &[3, 3][..]))];
        let results = KERNELS.run_kernel("OneHot", 11, &[], &inputs, &outputs).unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), [5, 2, 2, 2, 2, 5, 2, 2, 2]);
        let axis = [("axis", TestAttribute::Int(0))];
        let results = KERNELS.run_kernel("OneHot", 11, &axis, &inputs, &outputs).unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), [5, 2, 2, 2, 2, 2, 2, 5, 2]);
    }

    #[test]
    fn an_eye_has_ones_on_the_diagonal() {
        let input = TestArray::from_values(&[2, 3], &[0i64; 6]);
        for (k, expected) in
            [(1, [0., 1., 0., 0., 0., 1.]), (i64::MAX, [0.; 6]), (-1, [0., 0., 0., 1., 0., 0.])]
        {
            let attributes = [("k", TestAttribute::Int(k))];
            let outputs = [Some((Dtype::F64, &[2, 3][..]))];
            let results = KERNELS.run_kernel("EyeLike", 9, &attributes, &[Some(&input)], &outputs).unwrap();
            assert_eq!(results[0].as_ref().unwrap().values::<f64>(), expected);
        }
    }
}
