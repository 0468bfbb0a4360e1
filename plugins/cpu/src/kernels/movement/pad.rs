//! `Pad` and `CenterCropPad`: an input with more around it, or less.

use std::sync::Arc;

use oarlock_sdk::{Call, Dtype, DtypeSet, Error, Kernel, OperandFlags, Result, Tensor, bf16, ensure, f16};

use super::mapped::{self, Map};
use super::operand::{INDEX, by_size, cells, cells_mut, integers, optional_integers, size_of_dtype};
use super::{data, host, optional_host, shape};
use crate::device::Cpu;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let value = data("constant_value").flags(OperandFlags::OPTIONAL);
    let with_inputs = || {
        Kernel::prepared("Pad", |_, call| {
            let mode = Mode::new(call)?;
            Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| {
                let (pads, axes) = (integers(&call.input(1)?)?, optional_integers(call, 3)?);
                let value = call.optional_input(2)?.map(|value| first_element(&value)).transpose()?;
                pad(cpu, call, mode, &pads, axes.as_deref(), value.as_deref())
            }))
        })
        .outputs([data("output")])
    };
    let pads = host("pads", DtypeSet::I64);
    vec![
        Kernel::prepared("Pad", |_, call| {
            let mode = Mode::new(call)?;
            let value = element(call.input(0)?.dtype(), call.float("value")?.unwrap_or(0.0))?;
            let pads = call.ints("pads")?.or(call.ints("paddings")?).unwrap_or_default().to_vec();
            Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| pad(cpu, call, mode, &pads, None, Some(&value))))
        })
        .until(10)
        .inputs([data("data")])
        .outputs([data("output")]),
        with_inputs().since(11).until(17).inputs([data("data"), pads, value]),
        with_inputs().since(18).inputs([data("data"), pads, value, optional_host("axes", INDEX)]),
        Kernel::prepared("CenterCropPad", |_, call| {
            let axes = call.ints("axes")?.map(<[i64]>::to_vec);
            Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| center_crop_pad(cpu, call, axes.as_deref())))
        })
        .since(18)
        .inputs([data("input_data"), host("shape", INDEX)])
        .outputs([data("output_data")]),
    ]
}

/// What stands around the input.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Constant,
    Reflect,
    Edge,
    Wrap,
}

impl Mode {
    fn new(call: &Call<'_>) -> Result<Self> {
        match call.string("mode")?.unwrap_or("constant") {
            "constant" => Ok(Self::Constant),
            "reflect" => Ok(Self::Reflect),
            "edge" => Ok(Self::Edge),
            "wrap" => Ok(Self::Wrap),
            other => Err(Error::invalid_argument(format!(
                "expected `mode` to be `constant`, `reflect`, `edge` or `wrap`, found `{other}`"
            ))),
        }
    }

    /// The index in a dimension that is not empty of a place that may lie outside.
    fn place(self, at: i64, dim: i64) -> Option<usize> {
        let inside = match self {
            Self::Constant => Some(at).filter(|at| (0..dim).contains(at)),
            Self::Edge => Some(at.clamp(0, dim - 1)),
            Self::Wrap => Some(at.rem_euclid(dim)),
            Self::Reflect => {
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
    call: &Call<'_>,
    mode: Mode,
    pads: &[i64],
    axes: Option<&[i64]>,
    value: Option<&[u8]>,
) -> Result<()> {
    let (input, output) = (call.input(0)?, call.output(0)?);
    let dims = shape::dims(&input)?;
    let axes = match axes {
        Some(axes) => shape::axes(axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    shape::expect_length(pads, "pads", 2 * axes.len())?;
    let mut begins = vec![0; dims.len()];
    let mut expected = dims.clone();
    for (index, axis) in axes.iter().enumerate() {
        let (before, after) = (pads[index], pads[index + axes.len()]);
        let sum = before.checked_add(after).and_then(|sum| sum.checked_add(dims[*axis] as i64));
        let length = sum.and_then(|sum| usize::try_from(sum).ok()).filter(|_| before > i64::MIN);
        expected[*axis] = length.ok_or_else(|| {
            Error::invalid_argument(format!(
                "expected `pads` that leave 0 or more of the {} along axis {axis}, found {before} and {after}",
                dims[*axis]
            ))
        })?;
        begins[*axis] = -before;
        ensure!(
            mode == Mode::Constant || dims[*axis] > 0 || expected[*axis] == 0,
            invalid_argument,
            "expected elements along axis {axis} to pad with, found none"
        );
    }
    shape::expect(&output, "output", &expected)?;
    copy_from(cpu, &input, &output, &begins, mode, value)
}

/// A number as an element of floats, which are all that old versions take.
fn element(dtype: Dtype, value: f64) -> Result<Vec<u8>> {
    match dtype {
        Dtype::F16 => Ok(f16::from_f64(value).to_ne_bytes().to_vec()),
        Dtype::BF16 => Ok(bf16::from_f64(value).to_ne_bytes().to_vec()),
        Dtype::F32 => Ok((value as f32).to_ne_bytes().to_vec()),
        Dtype::F64 => Ok(value.to_ne_bytes().to_vec()),
        other if value == 0.0 => Ok(vec![0; size_of_dtype(other)?]),
        _ => Err(Error::unimplemented(format!("expected floats to pad with {value}, found others"))),
    }
}

/// The bytes of the first element of an operand.
fn first_element(value: &Tensor<'_>) -> Result<Vec<u8>> {
    by_size!(value.dtype(), N => {
        let first = cells::<N>(value)?.first();
        let missing = || Error::invalid_argument("expected `constant_value` to hold an element, found none");
        first.map(|element| element.to_vec()).ok_or_else(missing)
    })
}

fn center_crop_pad(cpu: &Cpu, call: &Call<'_>, axes: Option<&[i64]>) -> Result<()> {
    let (input, output, wanted) = (call.input(0)?, call.output(0)?, integers(&call.input(1)?)?);
    let dims = shape::dims(&input)?;
    let axes = match axes {
        Some(axes) => shape::axes(axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    shape::expect_length(&wanted, "shape", axes.len())?;
    let (mut expected, mut begins) = (dims.clone(), vec![0; dims.len()]);
    for (axis, wish) in axes.into_iter().zip(wanted) {
        let wish = usize::try_from(wish)
            .map_err(|_| Error::invalid_argument(format!("expected `shape` of 0 or more, found {wish}")))?;
        expected[axis] = wish;
        let dim = dims[axis];
        begins[axis] = if wish <= dim { ((dim - wish) / 2) as i64 } else { -(((wish - dim) / 2) as i64) };
    }
    shape::expect(&output, "output_data", &expected)?;
    copy_from(cpu, &input, &output, &begins, Mode::Constant, None)
}

/// Copies the input from the given places on, which may lie before it.
fn copy_from(
    cpu: &Cpu,
    input: &Tensor<'_>,
    output: &Tensor<'_>,
    begins: &[i64],
    mode: Mode,
    value: Option<&[u8]>,
) -> Result<()> {
    let (from, to) = (shape::dims(input)?, shape::dims(output)?);
    if to.contains(&0) {
        return Ok(());
    }
    let map = |((begin, from), to): ((&i64, &usize), &usize)| -> Map {
        (0..*to as i64).map(|index| mode.place(begin + index, *from as i64)).collect()
    };
    let maps: Vec<_> = begins.iter().zip(&from).zip(&to).map(map).collect();
    by_size!(input.dtype(), N => {
        let fill = value.and_then(|value| <[u8; N]>::try_from(value).ok()).unwrap_or([0; N]);
        mapped::copy(cpu, cells::<N>(input)?, &from, &maps, fill, cells_mut::<N>(output)?)
    })
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::testing::{Array, Attribute, run};

    fn padded(mode: &str, pads: [i64; 2], length: i64) -> Result<Vec<i32>, String> {
        let (input, value) = (Array::of(&[1, 3], &[1i32, 2, 3]), Array::of(&[], &[9i32]));
        let (pads, axes) = (Array::of(&[2], &pads), Array::of(&[1], &[-1i64]));
        let mode = [("mode", Attribute::Text(mode))];
        let inputs = [Some(&input), Some(&pads), Some(&value), Some(&axes)];
        run("Pad", 19, &mode, &inputs, &[Some((Dtype::I32, &[1, length]))])
            .map(|results| results[0].as_ref().unwrap().values())
    }

    #[test]
    fn each_mode_pads_with_its_own() {
        assert_eq!(padded("constant", [2, 1], 6).unwrap(), [9, 9, 1, 2, 3, 9]);
        assert_eq!(padded("reflect", [2, 1], 6).unwrap(), [3, 2, 1, 2, 3, 2]);
        assert_eq!(padded("edge", [2, 1], 6).unwrap(), [1, 1, 1, 2, 3, 3]);
        assert_eq!(padded("wrap", [2, 4], 9).unwrap(), [2, 3, 1, 2, 3, 1, 2, 3, 1]);
    }

    #[test]
    fn negative_pads_take_away() {
        assert_eq!(padded("constant", [-1, 1], 3).unwrap(), [2, 3, 9]);
    }

    #[test]
    fn pads_that_leave_less_than_nothing_or_overflow_are_refused() {
        for pads in [[-2, -2], [i64::MAX, i64::MAX], [i64::MIN, 0]] {
            assert!(padded("constant", pads, 3).is_err(), "{pads:?}");
        }
        assert!(padded("else", [0, 0], 3).unwrap_err().contains("`else`"));
    }

    #[test]
    fn an_input_is_centred_by_cropping_and_padding() {
        let values: Vec<u8> = (1..=12).collect();
        let (input, shape) = (Array::of(&[4, 3], &values), Array::of(&[2], &[2i64, 6]));
        let outputs = [Some((Dtype::U8, &[2, 6][..]))];
        let results = run("CenterCropPad", 18, &[], &[Some(&input), Some(&shape)], &outputs).unwrap();
        let expected = [0, 4, 5, 6, 0, 0, 0, 7, 8, 9, 0, 0];
        assert_eq!(results[0].as_ref().unwrap().bytes(), expected);
    }
}
