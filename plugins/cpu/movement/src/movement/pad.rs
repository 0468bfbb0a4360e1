//! `Pad` and `CenterCropPad`: add elements around an input, or remove some.

use std::ops::Range;
use std::sync::Arc;

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{
    INDEX_DTYPES, element_bytes, element_bytes_mut, read_integers, read_optional_integers, size_of_dtype,
};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, OperandFlags, PluginError, Result, TensorView, bf16, ensure, f16,
};

use super::axis_map::{self, AxisBorder, AxisMap};
use super::{data_operand, host_operand, optional_host_operand, shape};

pub(super) fn pad_kernels() -> Vec<Kernel<Cpu>> {
    let value = data_operand("constant_value").with_flags(OperandFlags::OPTIONAL);
    let with_inputs = || {
        Kernel::new_prepared("Pad", |_, call| {
            let mode = PadMode::new(call)?;
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
                let (pads, axes) = (read_integers(&call.input(1)?)?, read_optional_integers(call, 3)?);
                // As bytes: padding never computes with the value, so dtypes of a size share the code.
                let value = call.optional_input(2)?.map(|value| first_element_bytes(&value)).transpose()?;
                pad(cpu, call, mode, &pads, axes.as_deref(), value.as_deref())
            }))
        })
        .with_outputs([data_operand("output")])
    };
    let pads = host_operand("pads", DtypeSet::I64);
    vec![
        Kernel::new_prepared("Pad", |_, call| {
            let mode = PadMode::new(call)?;
            let value =
                element_from_f64(call.input(0)?.dtype(), call.float_attribute("value")?.unwrap_or(0.0))?;
            // The first version called the attribute `paddings`.
            let pads = call
                .ints_attribute("pads")?
                .or(call.ints_attribute("paddings")?)
                .unwrap_or_default()
                .to_vec();
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
                pad(cpu, call, mode, &pads, None, Some(&value))
            }))
        })
        .until_version(10)
        .with_inputs([data_operand("data")])
        .with_outputs([data_operand("output")]),
        with_inputs().since_version(11).until_version(17).with_inputs([data_operand("data"), pads, value]),
        with_inputs().since_version(18).with_inputs([
            data_operand("data"),
            pads,
            value,
            optional_host_operand("axes", INDEX_DTYPES),
        ]),
        Kernel::new_prepared("CenterCropPad", |_, call| {
            let axes = call.ints_attribute("axes")?.map(<[i64]>::to_vec);
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| center_crop_pad(cpu, call, axes.as_deref())))
        })
        .since_version(18)
        .with_inputs([data_operand("input_data"), host_operand("shape", INDEX_DTYPES)])
        .with_outputs([data_operand("output_data")]),
    ]
}

/// Where the elements around the input come from.
#[derive(Clone, Copy, PartialEq)]
enum PadMode {
    Constant,
    Reflect,
    Edge,
    Wrap,
}

impl PadMode {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        match call.string_attribute("mode")?.unwrap_or("constant") {
            "constant" => Ok(Self::Constant),
            "reflect" => Ok(Self::Reflect),
            "edge" => Ok(Self::Edge),
            "wrap" => Ok(Self::Wrap),
            other => Err(PluginError::invalid_argument(format!(
                "expected `mode` to be `constant`, `reflect`, `edge` or `wrap`, found `{other}`"
            ))),
        }
    }

    /// The index in a dimension, which is not empty, for a place that may lie outside.
    fn source_index(self, at: i64, dim: i64) -> Option<usize> {
        let inside = match self {
            Self::Constant => Some(at).filter(|at| (0..dim).contains(at)),
            Self::Edge => Some(at.clamp(0, dim - 1)),
            Self::Wrap => Some(at.rem_euclid(dim)),
            Self::Reflect => {
                // The ends are not repeated, so the pattern repeats after twice the distance between them.
                // An axis of one element has no distance between its ends, and 0 must not divide.
                let period = (2 * (dim - 1)).max(1);
                let at = at.rem_euclid(period);
                Some(at.min(period - at).min(dim - 1))
            }
        };
        inside.map(|at| at as usize)
    }
}

fn pad(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    mode: PadMode,
    pads: &[i64],
    axes: Option<&[i64]>,
    value: Option<&[u8]>,
) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    let dims = shape::shape_dims(&input)?;
    let axes = match axes {
        Some(axes) => shape::resolve_axes(axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    shape::expect_length(pads, "pads", 2 * axes.len())?;
    let mut begins = vec![0; dims.len()];
    let mut expected = dims.clone();
    for (index, axis) in axes.iter().enumerate() {
        let (before, after) = (pads[index], pads[index + axes.len()]);
        let sum = before.checked_add(after).and_then(|sum| sum.checked_add(dims[*axis] as i64));
        // The lowest integer has no negative, which `begins` needs.
        let length = sum.and_then(|sum| usize::try_from(sum).ok()).filter(|_| before > i64::MIN);
        expected[*axis] = length.ok_or_else(|| {
            PluginError::invalid_argument(format!(
                "expected `pads` that leave 0 or more of the {} along axis {axis}, found {before} and {after}",
                dims[*axis]
            ))
        })?;
        // A negative pad begins inside of the input. So one copy both adds and removes.
        begins[*axis] = -before;
        ensure!(
            // All other modes repeat elements of the axis.
            mode == PadMode::Constant || dims[*axis] > 0 || expected[*axis] == 0,
            invalid_argument,
            "expected elements along axis {axis} to pad with, found none"
        );
    }
    shape::expect_shape(&output, "output", &expected)?;
    copy_padded(cpu, &input, &output, &begins, mode, value)
}

/// A number as an element of a float dtype; old versions take no others.
fn element_from_f64(dtype: Dtype, value: f64) -> Result<Vec<u8>> {
    match dtype {
        Dtype::F16 => Ok(f16::from_f64(value).to_ne_bytes().to_vec()),
        Dtype::BF16 => Ok(bf16::from_f64(value).to_ne_bytes().to_vec()),
        Dtype::F32 => Ok((value as f32).to_ne_bytes().to_vec()),
        Dtype::F64 => Ok(value.to_ne_bytes().to_vec()),
        other if value == 0.0 => Ok(vec![0; size_of_dtype(other)?]),
        _ => Err(PluginError::unimplemented(format!("expected floats to pad with {value}, found others"))),
    }
}

/// The bytes of the first element of an operand.
fn first_element_bytes(value: &TensorView<'_>) -> Result<Vec<u8>> {
    by_size!(value.dtype(), N => {
        let first = element_bytes::<N>(value)?.first();
        let missing = || PluginError::invalid_argument("expected `constant_value` to hold an element, found none");
        first.map(|element| element.to_vec()).ok_or_else(missing)
    })
}

fn center_crop_pad(cpu: &Cpu, call: &KernelCall<'_>, axes: Option<&[i64]>) -> Result<()> {
    let (input, output, wanted) = (call.input(0)?, call.output(0)?, read_integers(&call.input(1)?)?);
    let dims = shape::shape_dims(&input)?;
    let axes = match axes {
        Some(axes) => shape::resolve_axes(axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    shape::expect_length(&wanted, "shape", axes.len())?;
    let (mut expected, mut begins) = (dims.clone(), vec![0; dims.len()]);
    for (axis, wish) in axes.into_iter().zip(wanted) {
        let wish = usize::try_from(wish).map_err(|_| {
            PluginError::invalid_argument(format!("expected `shape` of 0 or more, found {wish}"))
        })?;
        expected[axis] = wish;
        let dim = dims[axis];
        // If the difference is odd, the end takes the larger half.
        begins[axis] = if wish <= dim { ((dim - wish) / 2) as i64 } else { -(((wish - dim) / 2) as i64) };
    }
    shape::expect_shape(&output, "output_data", &expected)?;
    copy_padded(cpu, &input, &output, &begins, PadMode::Constant, None)
}

/// Copies the input from the given places on, which may be negative.
fn copy_padded(
    cpu: &Cpu,
    input: &TensorView<'_>,
    output: &TensorView<'_>,
    begins: &[i64],
    mode: PadMode,
    value: Option<&[u8]>,
) -> Result<()> {
    let (from, to) = (shape::shape_dims(input)?, shape::shape_dims(output)?);
    // An axis beside an empty one may be longer than memory, so no map is made.
    if to.contains(&0) {
        return Ok(());
    }
    let map = |((begin, from), to): ((&i64, &usize), &usize)| -> AxisMap {
        let (from, to) = (*from as i64, *to as i64);
        // Where the input lies in the output; of an input that is cropped away nothing does.
        let first = begin.saturating_neg().clamp(0, to);
        let last = from.saturating_sub(*begin).clamp(first, to);
        let border = |places: Range<i64>| match mode {
            PadMode::Constant => AxisBorder::Filled((places.end - places.start) as usize),
            _ => AxisBorder::Indices(places.map(|index| mode.source_index(begin + index, from)).collect()),
        };
        let run = if first < last { (begin + first) as usize..(begin + last) as usize } else { 0..0 };
        AxisMap::with_borders(border(0..first), run, border(last..to))
    };
    let maps: Vec<_> = begins.iter().zip(&from).zip(&to).map(map).collect();
    by_size!(input.dtype(), N => {
        let fill = value.and_then(|value| <[u8; N]>::try_from(value).ok()).unwrap_or([0; N]);
        axis_map::copy_mapped(cpu, element_bytes::<N>(input)?, &from, maps, fill, element_bytes_mut::<N>(output)?)
    })
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    fn pad_values(mode: &str, pads: [i64; 2], length: i64) -> Result<Vec<i32>, String> {
        let (input, value) =
            (TestArray::from_values(&[1, 3], &[1i32, 2, 3]), TestArray::from_values(&[], &[9i32]));
        let (pads, axes) = (TestArray::from_values(&[2], &pads), TestArray::from_values(&[1], &[-1i64]));
        let mode = [("mode", TestAttribute::Text(mode))];
        let inputs = [Some(&input), Some(&pads), Some(&value), Some(&axes)];
        KERNELS
            .run_kernel("Pad", 19, &mode, &inputs, &[Some((Dtype::I32, &[1, length]))])
            .map(|results| results[0].as_ref().unwrap().values())
    }

    #[test]
    fn each_mode_pads_with_its_own() {
        assert_eq!(pad_values("constant", [2, 1], 6).unwrap(), [9, 9, 1, 2, 3, 9]);
        assert_eq!(pad_values("reflect", [2, 1], 6).unwrap(), [3, 2, 1, 2, 3, 2]);
        assert_eq!(pad_values("edge", [2, 1], 6).unwrap(), [1, 1, 1, 2, 3, 3]);
        assert_eq!(pad_values("wrap", [2, 4], 9).unwrap(), [2, 3, 1, 2, 3, 1, 2, 3, 1]);
    }

    #[test]
    fn axes_that_are_copied_whole_belong_to_the_padded_one() {
        for (mode, channels) in [("constant", 2), ("constant", 1), ("edge", 2), ("reflect", 1)] {
            let values: Vec<i32> = (1..=3 * channels).collect();
            let input = TestArray::from_values(&[1, 3, 1, channels.into(), 1], &values);
            let (pads, fill) = (
                TestArray::from_values(&[10], &[0i64, 1, 0, 0, 0, 0, 2, 0, 0, 0]),
                TestArray::from_values(&[], &[9i32]),
            );
            let inputs = [Some(&input), Some(&pads), Some(&fill)];
            let outputs = [Some((Dtype::I32, &[1, 6, 1, channels.into(), 1][..]))];
            let mode_attribute = [("mode", TestAttribute::Text(mode))];
            let results = KERNELS.run_kernel("Pad", 19, &mode_attribute, &inputs, &outputs).unwrap();
            let rows = match mode {
                "constant" => [None, Some(0), Some(1), Some(2), None, None],
                "edge" => [0, 0, 1, 2, 2, 2].map(Some),
                _ => [1, 0, 1, 2, 1, 0].map(Some),
            };
            let expected = rows.into_iter().flat_map(|row| {
                (0..channels).map(move |channel| row.map_or(9, |row| row * channels + channel + 1))
            });
            let found = results[0].as_ref().unwrap().values::<i32>();
            assert!(found.iter().copied().eq(expected), "{mode} {channels}: {found:?}");
        }
    }

    #[test]
    fn negative_pads_take_away() {
        assert_eq!(pad_values("constant", [-1, 1], 3).unwrap(), [2, 3, 9]);
    }

    #[test]
    fn pads_that_leave_less_than_nothing_or_overflow_are_refused() {
        for pads in [[-2, -2], [i64::MAX, i64::MAX], [i64::MIN, 0]] {
            assert!(pad_values("constant", pads, 3).is_err(), "{pads:?}");
        }
        assert!(pad_values("else", [0, 0], 3).unwrap_err().contains("`else`"));
    }

    #[test]
    fn an_input_is_centred_by_cropping_and_padding() {
        let values: Vec<u8> = (1..=12).collect();
        let (input, shape) =
            (TestArray::from_values(&[4, 3], &values), TestArray::from_values(&[2], &[2i64, 6]));
        let outputs = [Some((Dtype::U8, &[2, 6][..]))];
        let results =
            KERNELS.run_kernel("CenterCropPad", 18, &[], &[Some(&input), Some(&shape)], &outputs).unwrap();
        let expected = [0, 4, 5, 6, 0, 0, 0, 7, 8, 9, 0, 0];
        assert_eq!(results[0].as_ref().unwrap().bytes(), expected);
    }
}
