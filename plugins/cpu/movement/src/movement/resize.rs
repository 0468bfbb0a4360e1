//! `Resize` and `Upsample`. Every method of ONNX weights each axis on its own, so the axes are resized one after another.

mod interpolate;
mod taps;

use std::borrow::Cow;
use std::sync::Arc;

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{
    WHOLE_BYTE_DTYPES, element_bytes, element_bytes_mut, for_parallel_pieces, read_optional_integers,
    typed_values, typed_values_mut,
};
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, OperandFlags, OperandSpec, PluginError, Result, TensorView, bf16,
    dispatch, ensure, f16,
};

use self::interpolate::{ComputeSample, PlaneResize, ResizeSample, TapTable};
use self::taps::{ResizeMethod, ResizeTaps, ResizedAxis};
use super::axis_map::{self, AxisMap};
use super::strided::StrideCursor;
use super::{host_operand, shape};

pub(super) fn resize_kernels() -> Vec<Kernel<Cpu>> {
    let sample = OperandSpec::new(WHOLE_BYTE_DTYPES).with_dtype_group(1);
    let scales = host_operand("scales", DtypeSet::F32);
    let (input, output) = (sample.with_name("X"), sample.with_name("Y"));
    let optional = OperandFlags::OPTIONAL;
    let row = |op: &str, scales_at: usize, is_old: bool| {
        Kernel::new_prepared(op, move |_, call| {
            let resize = ResizeAttributes::new(call, scales_at, is_old)?;
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| resize.run_resize(cpu, call)))
        })
        .with_outputs([output])
    };
    vec![
        // Version 7 has its scales as an attribute, so no input holds them.
        row("Upsample", usize::MAX, true).since_version(7).until_version(8).with_inputs([input]),
        row("Upsample", 1, true).since_version(9).until_version(9).with_inputs([input, scales]),
        row("Resize", 1, true).since_version(10).until_version(10).with_inputs([input, scales]),
        row("Resize", 2, false).since_version(11).with_inputs([
            input,
            host_operand("roi", oarlock_sdk::family::FLOATING_AND_HALF).with_flags(optional),
            scales.with_flags(optional),
            host_operand("sizes", DtypeSet::I64).with_flags(optional),
        ]),
    ]
}

struct ResizeAttributes {
    method: ResizeMethod,
    outside: f64,
    scales: Option<Vec<f64>>,
    axes: Option<Vec<i64>>,
    /// `None` if each axis has its own scale; otherwise true if the one scale is the largest that fits, false if it is the
    /// smallest that covers.
    keeps_aspect: Option<bool>,
    scales_at: usize,
}

impl ResizeAttributes {
    fn new(call: &KernelCall<'_>, scales_at: usize, is_old: bool) -> Result<Self> {
        // Older versions have no attribute for either, and mean these.
        let (coordinates, rounding) =
            if is_old { ("asymmetric", "floor") } else { ("half_pixel", "round_prefer_floor") };
        let keeps_aspect = match call.string_attribute("keep_aspect_ratio_policy")?.unwrap_or("stretch") {
            "stretch" => None,
            "not_larger" => Some(true),
            "not_smaller" => Some(false),
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `keep_aspect_ratio_policy` to be `stretch`, `not_larger` or `not_smaller`, found `{other}`"
                )));
            }
        };
        Ok(Self {
            method: ResizeMethod::new(call, coordinates, rounding)?,
            outside: call.float_attribute("extrapolation_value")?.unwrap_or(0.0),
            scales: call.floats_attribute("scales")?.map(<[f64]>::to_vec),
            axes: call.ints_attribute("axes")?.map(<[i64]>::to_vec),
            keeps_aspect,
            scales_at,
        })
    }

    fn run_resize(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let (input, output) = (call.input(0)?, call.output(0)?);
        let axes = self.resized_axes(call, &shape::shape_dims(&input)?, &shape::shape_dims(&output)?)?;
        if self.method.is_nearest() {
            return self.copy_nearest(cpu, &input, &output, &axes);
        }
        dispatch!(input.dtype(), floating_and_integral + f16 + bf16 + u16 + u32 + u64, T => {
            self.interpolate_axes::<T>(cpu, &input, &output, &axes)
        })
    }

    /// All axes, including those that keep their size.
    fn resized_axes(&self, call: &KernelCall<'_>, from: &[usize], to: &[usize]) -> Result<Vec<ResizedAxis>> {
        let rank = from.len();
        ensure!(to.len() == rank, invalid_argument, "expected an output of rank {rank}, found {to:?}");
        let axes = match &self.axes {
            Some(axes) => shape::resolve_axes(axes, rank)?,
            None => (0..rank).collect(),
        };
        let given = call.optional_input(self.scales_at)?.map(|scales| read_numbers(&scales)).transpose()?;
        // Exporters for opset 11 give an empty tensor where `sizes` is meant.
        let scales = match given.filter(|scales| !scales.is_empty()).or_else(|| self.scales.clone()) {
            Some(scales) => scales,
            None => self.scales_from_sizes(call, from, &axes)?,
        };
        let found = scales.len();
        ensure!(found == axes.len(), invalid_argument, "expected {} `scales`, found {found}", axes.len());
        // In the other rows this input holds the scales.
        let roi = call.optional_input(1)?.filter(|_| self.scales_at == 2);
        let roi = roi.map(|roi| read_numbers(&roi)).transpose()?.filter(|roi| roi.len() == 2 * axes.len());
        ensure!(
            roi.is_some() || self.method.coordinates != taps::CoordinateTransform::Crop,
            invalid_argument,
            "expected a `roi` of {} numbers, found another",
            2 * axes.len()
        );
        let mut all: Vec<_> = from
            .iter()
            .map(|from| ResizedAxis { from: *from, to: *from, scale: 1.0, crop: (0.0, 1.0) })
            .collect();
        for (index, axis) in axes.iter().enumerate() {
            all[*axis].scale = scales[index];
            all[*axis].to = to[*axis];
            all[*axis].crop = roi.as_ref().map_or((0.0, 1.0), |roi| (roi[index], roi[index + axes.len()]));
        }
        for (axis, to) in all.iter().zip(to) {
            // A size is a rounded product, so it may differ from it by up to 1.
            let wanted = axis.from as f64 * axis.scale;
            ensure!(
                axis.to == *to && axis.scale > 0.0 && (*to as f64 - wanted).abs() <= 1.0,
                invalid_argument,
                "expected {wanted} elements along an axis of {} with a scale of {}, found {to}",
                axis.from,
                axis.scale
            );
            ensure!(axis.from > 0 || *to == 0, invalid_argument, "expected elements to resize, found none");
        }
        Ok(all)
    }

    fn scales_from_sizes(&self, call: &KernelCall<'_>, from: &[usize], axes: &[usize]) -> Result<Vec<f64>> {
        let sizes = read_optional_integers(call, 3)?
            .ok_or_else(|| PluginError::invalid_argument("expected `scales` or `sizes`, found neither"))?;
        shape::expect_length(&sizes, "sizes", axes.len())?;
        let scales = axes.iter().zip(sizes).map(|(axis, size)| {
            // An empty axis stays empty at any scale.
            if from[*axis] == 0 && size == 0 { 1.0 } else { size as f64 / from[*axis] as f64 }
        });
        let shared = match self.keeps_aspect {
            None => return Ok(scales.collect()),
            Some(true) => scales.reduce(f64::min),
            Some(false) => scales.reduce(f64::max),
        };
        Ok(vec![shared.unwrap_or(1.0); axes.len()])
    }

    /// Copies the nearest elements, of any dtype.
    fn copy_nearest(
        &self,
        cpu: &Cpu,
        input: &TensorView<'_>,
        output: &TensorView<'_>,
        axes: &[ResizedAxis],
    ) -> Result<()> {
        // An axis may have any length if another one is empty.
        if output.element_count()? == 0 {
            return Ok(());
        }
        let indices = |axis| self.method.nearest_indices(axis).map(AxisMap::from_indices);
        let maps = axes.iter().map(indices).collect::<Result<Vec<AxisMap>>>()?;
        let dims: Vec<_> = axes.iter().map(|axis| axis.from).collect();
        let fill = number_to_bytes(self.outside, output.dtype());
        by_size!(output.dtype(), N => {
            let mut cell = [0; N];
            cell.copy_from_slice(&fill[..N]);
            axis_map::copy_mapped(cpu, element_bytes::<N>(input)?, &dims, maps, cell, element_bytes_mut::<N>(output)?)
        })
    }

    fn interpolate_axes<T: ResizeSample>(
        &self,
        cpu: &Cpu,
        input: &TensorView<'_>,
        output: &TensorView<'_>,
        axes: &[ResizedAxis],
    ) -> Result<()> {
        let out = typed_values_mut::<T>(output)?;
        if out.is_empty() {
            return Ok(());
        }
        let image = typed_values::<T>(input)?;
        let plan = AxisPasses::new(&self.method, axes, out.len())?;
        if let Some(planes) = plan.plane_resize()? {
            planes.resize_planes(cpu, image, out);
            return Ok(());
        }
        // Widened once for all passes, so that only the last result is rounded to the dtype.
        let image = T::widen_slice(image);
        // The last pass writes to the output itself if its dtype is the one to compute in.
        if let Some(out) = T::as_compute_mut(out) {
            return self.resize_axes(cpu, image, plan, out);
        }
        let mut resized = try_filled_vec(T::ComputeType::default(), out.len())?;
        self.resize_axes(cpu, image, plan, &mut resized)?;
        for_parallel_pieces(cpu, out, 1, |begin, out| {
            out.iter_mut().zip(&resized[begin..]).for_each(|(out, value)| *out = T::narrow(*value));
        });
        Ok(())
    }

    /// Resizes axes in the type to compute in.
    fn resize_axes<C: ComputeSample>(
        &self,
        cpu: &Cpu,
        image: Cow<'_, [C]>,
        plan: AxisPasses,
        out: &mut [C],
    ) -> Result<()> {
        let AxisPasses { mut dims, taps, resized } = plan;
        let mut current = image;
        if let Some((last, others)) = resized.split_last() {
            for axis in others {
                let (outer, _, inner) = shape::split_at_axis(&dims, *axis);
                let size = shape::element_count(&[outer, taps[*axis].len(), inner])?;
                let mut next = try_filled_vec(C::default(), size)?;
                TapTable::new(&taps[*axis])?.resize_axis(cpu, &current, &dims, *axis, &mut next);
                current = Cow::Owned(next);
                dims[*axis] = taps[*axis].len();
            }
            TapTable::new(&taps[*last])?.resize_axis(cpu, &current, &dims, *last, out);
        } else {
            out.copy_from_slice(&current);
        }
        // Only a crop has elements outside of the input.
        if taps.iter().flatten().all(Option::is_some) {
            return Ok(());
        }
        // Strides of 0: only the indices of the cursor are used.
        let resized_dims: Vec<_> = taps.iter().map(Vec::len).collect();
        let (still, outside) = (vec![0; dims.len()], C::from_f64(self.outside));
        for_parallel_pieces(cpu, out, 1, |begin, out| {
            let mut cursor = StrideCursor::new(&resized_dims, &still, begin);
            for value in out {
                if taps.iter().zip(cursor.indices()).any(|(taps, index)| taps[*index].is_none()) {
                    *value = outside;
                }
                cursor.advance();
            }
        });
        Ok(())
    }
}

/// The passes of a resize that weights elements.
struct AxisPasses {
    dims: Vec<usize>,
    /// The taps of all axes.
    taps: Vec<ResizeTaps>,
    /// The axes that take a pass: those that do not stay as they are.
    resized: Vec<usize>,
}

impl AxisPasses {
    fn new(method: &ResizeMethod, axes: &[ResizedAxis], found: usize) -> Result<Self> {
        let taps: Vec<_> = axes.iter().map(|axis| method.axis_taps(axis)).collect();
        let dims: Vec<_> = axes.iter().map(|axis| axis.from).collect();
        let resized_dims: Vec<_> = taps.iter().map(Vec::len).collect();
        let expected = shape::element_count(&resized_dims)?;
        ensure!(
            found == expected,
            invalid_argument,
            "expected an output of {expected} elements, found {found}"
        );
        let resized = (0..dims.len()).filter(|axis| !is_identity(&taps[*axis], dims[*axis])).collect();
        Ok(Self { dims, taps, resized })
    }

    /// One pass for both axes, if they are the last two, and if there is no crop with elements outside of the input.
    fn plane_resize<C: ComputeSample>(&self) -> Result<Option<PlaneResize<C>>> {
        let ([.., height, width], [.., rows, columns]) = (&self.dims[..], &self.taps[..]) else {
            return Ok(None);
        };
        let is_inside = rows.iter().chain(columns).all(Option::is_some);
        if self.resized != [self.dims.len() - 2, self.dims.len() - 1] || !is_inside {
            return Ok(None);
        }
        let (rows, columns) = (TapTable::new(rows)?, TapTable::new(columns)?);
        Ok(Some(PlaneResize { rows, columns, height: *height, width: *width }))
    }
}

/// The bytes of a number as an element of a dtype; zeros for dtypes that are not numbers.
fn number_to_bytes(number: f64, dtype: Dtype) -> [u8; 16] {
    let mut bytes = [0; 16];
    // `as` saturates, so a number beyond the range of a dtype becomes its bound.
    let mut set = |found: &[u8]| bytes[..found.len()].copy_from_slice(found);
    match dtype {
        Dtype::F16 => set(&f16::from_f64(number).to_ne_bytes()),
        Dtype::BF16 => set(&bf16::from_f64(number).to_ne_bytes()),
        Dtype::F32 => set(&(number as f32).to_ne_bytes()),
        Dtype::F64 => set(&number.to_ne_bytes()),
        Dtype::BOOL => set(&[u8::from(number != 0.0)]),
        Dtype::I8 => set(&(number as i8).to_ne_bytes()),
        Dtype::U8 => set(&(number as u8).to_ne_bytes()),
        Dtype::I16 => set(&(number as i16).to_ne_bytes()),
        Dtype::U16 => set(&(number as u16).to_ne_bytes()),
        Dtype::I32 => set(&(number as i32).to_ne_bytes()),
        Dtype::U32 => set(&(number as u32).to_ne_bytes()),
        Dtype::I64 => set(&(number as i64).to_ne_bytes()),
        Dtype::U64 => set(&(number as u64).to_ne_bytes()),
        _ => {}
    }
    bytes
}

/// True if each element of an axis stays as it is.
fn is_identity(taps: &ResizeTaps, length: usize) -> bool {
    let stays = |(index, taps): (usize, &Option<Vec<(usize, f64)>>)| {
        // At a whole coordinate the neighbors have weight 0, and do not count.
        taps.as_ref().is_some_and(|taps| taps.iter().all(|(at, weight)| *at == index || *weight == 0.0))
    };
    taps.len() == length && taps.iter().enumerate().all(stays)
}

fn read_numbers(tensor: &TensorView<'_>) -> Result<Vec<f64>> {
    dispatch!(tensor.dtype(), floating_and_half, T => {
        Ok(typed_values::<T>(tensor)?.iter().map(|value| value.to_float().to_f64()).collect())
    })
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    fn resize_line(attributes: &[(&str, TestAttribute<'_>)], scale: f32, length: i64) -> Vec<f32> {
        let input = TestArray::from_values(&[1, 4], &[1f32, 2., 3., 4.]);
        let scales = TestArray::from_values(&[2], &[1.0, scale]);
        let outputs = [Some((Dtype::F32, &[1, length][..]))];
        let results = KERNELS
            .run_kernel("Resize", 19, attributes, &[Some(&input), None, Some(&scales)], &outputs)
            .unwrap();
        results[0].as_ref().unwrap().values()
    }

    #[test]
    fn each_resize_mode_interpolates_its_neighbors() {
        let mode = |name| [("mode", TestAttribute::Text(name))];
        assert_eq!(resize_line(&mode("nearest"), 0.5, 2), [1., 3.]);
        assert_eq!(resize_line(&mode("linear"), 2.0, 8), [1., 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4.]);
        let cubic = resize_line(&mode("cubic"), 0.8, 3);
        let expected = [1.094_238_3, 2.404_296_9, 3.705_566_4];
        assert!(
            cubic.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-5),
            "{cubic:?}"
        );
        let smooth = [("mode", TestAttribute::Text("linear")), ("antialias", TestAttribute::Int(1))];
        assert_eq!(resize_line(&smooth, 0.5, 2), [1.625, 3.375]);
    }

    #[test]
    fn an_empty_axis_stays_empty() {
        let empty = TestArray::from_values::<f32>(&[0, 2], &[]);
        let sizes = TestArray::from_values(&[2], &[0i64, 4]);
        let expected = TestArray::from_values::<f32>(&[0, 4], &[]);
        KERNELS.check_kernel("Resize", 19, &[], &[Some(&empty), None, None, Some(&sizes)], &[expected]);
    }

    #[test]
    fn corners_can_be_aligned() {
        let attributes = [
            ("mode", TestAttribute::Text("linear")),
            ("coordinate_transformation_mode", TestAttribute::Text("align_corners")),
        ];
        assert_eq!(resize_line(&attributes, 1.75, 7), [1., 1.5, 2., 2.5, 3., 3.5, 4.]);
    }

    #[test]
    fn the_old_upsample_repeats_elements() {
        let (input, attributes) =
            (TestArray::from_values(&[2], &[1u8, 2]), [("scales", TestAttribute::Floats(&[2.0]))]);
        let results = KERNELS
            .run_kernel("Upsample", 7, &attributes, &[Some(&input)], &[Some((Dtype::U8, &[4]))])
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), [1, 1, 2, 2]);
    }

    #[test]
    fn the_nearest_elements_are_copied_whatever_they_are() {
        let nearest = [
            ("mode", TestAttribute::Text("nearest")),
            ("coordinate_transformation_mode", TestAttribute::Text("tf_crop_and_resize")),
            ("extrapolation_value", TestAttribute::Float(1.0)),
        ];
        let input = TestArray::from_values(&[3], &[false, true, false]);
        let (crop, scales) =
            (TestArray::from_values(&[2], &[0f32, 2.0]), TestArray::from_values(&[1], &[1f32]));
        let inputs = [Some(&input), Some(&crop), Some(&scales)];
        let results =
            KERNELS.run_kernel("Resize", 19, &nearest, &inputs, &[Some((Dtype::BOOL, &[3]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<bool>(), [false, false, true]);
        let linear = [("mode", TestAttribute::Text("linear"))];
        let scales = TestArray::from_values(&[1], &[2f32]);
        let inputs = [Some(&input), None, Some(&scales)];
        let message =
            KERNELS.run_kernel("Resize", 19, &linear, &inputs, &[Some((Dtype::BOOL, &[6]))]).unwrap_err();
        assert!(message.contains("found bool"), "{message}");
    }

    #[test]
    fn a_plain_image_of_integers_stays_plain() {
        let (input, scales) =
            (TestArray::from_values(&[3, 3], &[255u8; 9]), TestArray::from_values(&[2], &[2.4f32, 2.4]));
        for mode in ["linear", "cubic"] {
            let mode = [("mode", TestAttribute::Text(mode))];
            let outputs = [Some((Dtype::U8, &[7, 7][..]))];
            let results = KERNELS
                .run_kernel("Resize", 13, &mode, &[Some(&input), None, Some(&scales)], &outputs)
                .unwrap();
            assert_eq!(results[0].as_ref().unwrap().bytes(), [255; 49]);
        }
    }

    #[test]
    fn planes_are_resized_as_one_axis_after_the_other() {
        let elements: Vec<f32> = (0..2 * 9 * 11).map(|at| (at * 37 % 101) as f32 - 50.0).collect();
        let input = TestArray::from_values(&[2, 9, 11], &elements);
        let resize = |input: &TestArray, attributes: &[(&str, TestAttribute<'_>)], sizes: [i64; 3]| {
            let to = TestArray::from_values(&[3], &sizes);
            let outputs = [Some((Dtype::F32, &sizes[..]))];
            let inputs = [Some(input), None, None, Some(&to)];
            KERNELS.run_kernel("Resize", 19, attributes, &inputs, &outputs).unwrap().remove(0).unwrap()
        };
        for [height, width] in [[5, 4], [21, 40], [5, 40], [1, 1]] {
            for (mode, smooths) in [("linear", 0), ("linear", 1), ("cubic", 0)] {
                let attributes =
                    [("mode", TestAttribute::Text(mode)), ("antialias", TestAttribute::Int(smooths))];
                let found = resize(&input, &attributes, [2, height, width]).values::<f32>();
                let columns = resize(&input, &attributes, [2, 9, width]);
                let expected = resize(&columns, &attributes, [2, height, width]).values::<f32>();
                for (found, expected) in found.iter().zip(&expected) {
                    assert!(
                        (found - expected).abs() < 1e-4,
                        "{mode} to {height}×{width}: {found}, {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_long_axis_of_nothing_takes_no_memory() {
        let (input, scales) = (
            TestArray::from_values::<f32>(&[0, 1], &[]),
            TestArray::from_values(&[2], &[1f32, (1u64 << 42) as f32]),
        );
        let outputs = [Some((Dtype::F32, &[0, 1 << 42][..]))];
        let nearest = [("mode", TestAttribute::Text("nearest"))];
        assert!(
            KERNELS
                .run_kernel("Resize", 19, &nearest, &[Some(&input), None, Some(&scales)], &outputs)
                .is_ok()
        );
    }

    #[test]
    fn an_output_that_the_scales_do_not_give_is_refused() {
        let (input, scales) =
            (TestArray::from_values(&[2], &[1f32, 2.]), TestArray::from_values(&[1], &[2f32]));
        for dims in [&[7][..], &[1, 4]] {
            let inputs = [Some(&input), None, Some(&scales)];
            assert!(KERNELS.run_kernel("Resize", 19, &[], &inputs, &[Some((Dtype::F32, dims))]).is_err());
        }
        assert!(KERNELS.run_kernel("Resize", 19, &[], &[Some(&input)], &[Some((Dtype::F32, &[2]))]).is_err());
    }
}
