//! `Scatter`, `ScatterElements` and `ScatterND`: a copy of the data with updates at given positions, which replace the elements
//! there or are combined with them. Updates run in order, so that the last of several at one place wins.

use std::sync::Arc;

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{
    copy_contiguous, element_bytes, element_bytes_mut, typed_values, typed_values_mut,
};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result, TensorView, bf16, dispatch,
    ensure, f16,
};

use super::gather::{IndexTuples, IndexedAxis};
use super::{data_operand, index_operand, shape};

pub(super) fn scatter_kernels() -> Vec<Kernel<Cpu>> {
    let elements = |op: &str| {
        Kernel::new_prepared(op, |_, call| {
            let (axis, reduction) = (call.int_attribute("axis")?.unwrap_or(0), ScatterReduction::new(call)?);
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| scatter_elements(cpu, call, axis, reduction)))
        })
        .with_inputs([data_operand("data"), index_operand("indices"), data_operand("updates")])
        .with_outputs([data_operand("output")])
        .with_in_place(0, 0)
    };
    vec![
        // The old name of `ScatterElements`, without reductions.
        elements("Scatter").since_version(9).until_version(10),
        elements("ScatterElements").since_version(11),
        Kernel::new_prepared("ScatterND", |_, call| {
            let reduction = ScatterReduction::new(call)?;
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| scatter_nd(cpu, call, reduction)))
        })
        .since_version(11)
        .with_inputs([
            data_operand("data"),
            OperandSpec::new(DtypeSet::I64).with_name("indices"),
            data_operand("updates"),
        ])
        .with_outputs([data_operand("output")])
        .with_in_place(0, 0),
    ]
}

/// How an update is combined with the element there.
#[derive(Clone, Copy, PartialEq)]
enum ScatterReduction {
    None,
    Add,
    Mul,
    Max,
    Min,
}

impl ScatterReduction {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        match call.string_attribute("reduction")?.unwrap_or("none") {
            "none" => Ok(Self::None),
            "add" => Ok(Self::Add),
            "mul" => Ok(Self::Mul),
            "max" => Ok(Self::Max),
            "min" => Ok(Self::Min),
            other => Err(PluginError::invalid_argument(format!(
                "expected `reduction` to be `none`, `add`, `mul`, `max` or `min`, found `{other}`"
            ))),
        }
    }

    // A pointer, so that the loop is compiled once for a dtype; random access takes longer than the call.
    fn combine_function<T: ScatterElement>(self) -> fn(T, T) -> T {
        match self {
            Self::None => |_, update| update,
            Self::Add => T::add,
            Self::Mul => T::mul,
            // A NaN on either side stays.
            Self::Max => |old, update| if old >= update || is_nan(old) { old } else { update },
            Self::Min => |old, update| if old <= update || is_nan(old) { old } else { update },
        }
    }
}

fn is_nan<T: PartialOrd>(value: T) -> bool {
    value.partial_cmp(&value).is_none()
}

/// Elements that can be combined. Integers wrap around, as in NumPy.
trait ScatterElement: Copy + PartialOrd {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($integer:ty)*; $($float:ty)*) => {
        $(impl ScatterElement for $integer {
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
        })*
        $(impl ScatterElement for $float {
            fn add(self, other: Self) -> Self { self + other }
            fn mul(self, other: Self) -> Self { self * other }
        })*
    };
}

numbers!(i8 u8 i16 u16 i32 u32 i64 u64; f32 f64 f16 bf16);

impl ScatterElement for bool {
    fn add(self, other: Self) -> Self {
        // Addition and multiplication of truth values, as NumPy defines them.
        self | other
    }

    fn mul(self, other: Self) -> Self {
        self & other
    }
}

fn scatter_elements(cpu: &Cpu, call: &KernelCall<'_>, axis: i64, reduction: ScatterReduction) -> Result<()> {
    let (positions, updates) = (call.input(1)?, call.input(2)?);
    let along = IndexedAxis::new(&call.input(0)?, &positions, axis)?;
    shape::expect_shape(&updates, "updates", &along.dims)?;
    let output = scattered_output(cpu, call)?;
    if reduction == ScatterReduction::None {
        return by_size!(output.dtype(), N => {
            let updates = element_bytes::<N>(&updates)?;
            write_elements(&along, &positions, element_bytes_mut::<N>(&output)?, updates, |_, update| update)
        });
    }
    dispatch!(output.dtype(), floating_and_integral + f16 + bf16 + u16 + u32 + u64 + bool, T => {
        let (out, updates) = (typed_values_mut::<T>(&output)?, typed_values::<T>(&updates)?);
        // Sums are what graph networks wait for.
        match reduction {
            ScatterReduction::Add => write_elements(&along, &positions, out, updates, T::add),
            _ => write_elements(&along, &positions, out, updates, reduction.combine_function::<T>()),
        }
    })
}

/// Writes the updates in order, on one thread: two updates of one place must keep their order.
fn write_elements<T: Copy>(
    along: &IndexedAxis,
    positions: &TensorView<'_>,
    out: &mut [T],
    updates: &[T],
    combine: impl Fn(T, T) -> T,
) -> Result<()> {
    let mut updates = updates.iter();
    let visit = |place: usize| {
        if let Some(update) = updates.next() {
            out[place] = combine(out[place], *update);
        }
    };
    // A copy of the loop for each dtype, instead of a converted copy of all positions.
    match positions.dtype() {
        Dtype::I32 => along.visit_places(typed_values::<i32>(positions)?, visit),
        _ => along.visit_places(typed_values::<i64>(positions)?, visit),
    }
}

fn scatter_nd(cpu: &Cpu, call: &KernelCall<'_>, reduction: ScatterReduction) -> Result<()> {
    let (input, updates) = (call.input(0)?, call.input(2)?);
    let tuples = IndexTuples::new(&input, &call.input(1)?, 0)?;
    let expected = [&tuples.dims[..], &shape::shape_dims(&input)?[tuples.depth..]].concat();
    shape::expect_shape(&updates, "updates", &expected)?;
    let output = scattered_output(cpu, call)?;
    // Replaced elements are bytes of a size; only what is combined needs its dtype.
    if reduction == ScatterReduction::None {
        return by_size!(output.dtype(), N => {
            write_rows(element_bytes_mut::<N>(&output)?, element_bytes::<N>(&updates)?, &tuples, |_, update| update);
            Ok(())
        });
    }
    dispatch!(output.dtype(), floating_and_integral + f16 + bf16 + u16 + u32 + u64 + bool, T => {
        let (out, updates) = (typed_values_mut::<T>(&output)?, typed_values::<T>(&updates)?);
        match reduction {
            ScatterReduction::Add => write_rows(out, updates, &tuples, T::add),
            _ => write_rows(out, updates, &tuples, reduction.combine_function::<T>()),
        }
        Ok(())
    })
}

/// The output, with a copy of the data.
fn scattered_output<'a>(cpu: &Cpu, call: &'a KernelCall<'_>) -> Result<TensorView<'a>> {
    let (input, updates, output) = (call.input(0)?, call.input(2)?, call.output(0)?);
    shape::expect_shape(&output, "output", &shape::shape_dims(&input)?)?;
    ensure!(
        updates.dtype() == output.dtype(),
        invalid_argument,
        "expected `updates` of the dtype of the data, found {}",
        updates.dtype().name().unwrap_or("an unknown one")
    );
    // Nothing to copy if the output has the memory of the data.
    copy_contiguous(cpu, &input, &output)?;
    Ok(output)
}

/// Writes the rows of updates in order, on one thread, as in [`write_elements`].
fn write_rows<T: Copy>(out: &mut [T], updates: &[T], tuples: &IndexTuples, combine: impl Fn(T, T) -> T) {
    let IndexTuples { starts, width, .. } = tuples;
    for (start, updates) in starts.iter().zip(updates.chunks_exact((*width).max(1))) {
        for (cell, update) in out[*start..start + width].iter_mut().zip(updates) {
            *cell = combine(*cell, *update);
        }
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    fn run_scatter(
        op: &str,
        reduction: &str,
        positions: &TestArray,
        updates: &TestArray,
    ) -> Result<Vec<i32>, String> {
        let data = TestArray::from_values(&[3, 2], &[1i32, 2, 3, 4, 5, 6]);
        let reduction = [("reduction", TestAttribute::Text(reduction))];
        let inputs = [Some(&data), Some(positions), Some(updates)];
        let version = if op == "Scatter" { 9 } else { 18 };
        KERNELS
            .run_kernel(op, version, &reduction, &inputs, &[Some((Dtype::I32, &[3, 2]))])
            .map(|results| results[0].as_ref().unwrap().values())
    }

    #[test]
    fn elements_are_replaced_or_combined() {
        let (positions, updates) = (
            TestArray::from_values(&[2, 2], &[0i64, 0, 0, -1]),
            TestArray::from_values(&[2, 2], &[7i32, 1, 3, 9]),
        );
        for (reduction, expected) in [
            ("none", [3, 1, 3, 4, 5, 9]),
            ("add", [11, 3, 3, 4, 5, 15]),
            ("mul", [21, 2, 3, 4, 5, 54]),
            ("max", [7, 2, 3, 4, 5, 9]),
            ("min", [1, 1, 3, 4, 5, 6]),
        ] {
            let found = run_scatter("ScatterElements", reduction, &positions, &updates).unwrap();
            assert_eq!(found, expected, "{reduction}");
        }
        assert_eq!(run_scatter("Scatter", "none", &positions, &updates).unwrap(), [3, 1, 3, 4, 5, 9]);
    }

    #[test]
    fn rows_are_replaced_or_combined() {
        let (positions, updates) = (
            TestArray::from_values(&[2, 1], &[2i64, 2]),
            TestArray::from_values(&[2, 2], &[10i32, 20, 30, 40]),
        );
        assert_eq!(run_scatter("ScatterND", "none", &positions, &updates).unwrap(), [1, 2, 3, 4, 30, 40]);
        assert_eq!(run_scatter("ScatterND", "add", &positions, &updates).unwrap(), [1, 2, 3, 4, 45, 66]);
    }

    #[test]
    fn positions_outside_and_updates_that_do_not_fit_are_refused() {
        let (outside, inside) =
            (TestArray::from_values(&[1, 1], &[3i64]), TestArray::from_values(&[1, 1], &[1i64]));
        let (updates, wide) =
            (TestArray::from_values(&[1, 1], &[0i32]), TestArray::from_values(&[1, 3], &[0i32; 3]));
        for op in ["ScatterElements", "ScatterND"] {
            let fitting = TestArray::from_values(
                if op == "ScatterND" { &[1, 2] } else { &[1, 1] },
                &[0i32, 0][..if op == "ScatterND" { 2 } else { 1 }],
            );
            assert!(run_scatter(op, "none", &outside, &fitting).unwrap_err().contains("`indices`"), "{op}");
            assert!(run_scatter(op, "none", &inside, &wide).unwrap_err().contains("`updates`"), "{op}");
        }
        assert!(run_scatter("ScatterElements", "else", &inside, &updates).unwrap_err().contains("`else`"));
    }

    #[test]
    fn what_is_not_a_number_stays() {
        let (data, positions) =
            (TestArray::from_values(&[2], &[f32::NAN, 1.0]), TestArray::from_values(&[2], &[0i64, 1]));
        let updates = TestArray::from_values(&[2], &[2.0, f32::NAN]);
        let reduction = [("reduction", TestAttribute::Text("max"))];
        let inputs = [Some(&data), Some(&positions), Some(&updates)];
        let results = KERNELS
            .run_kernel("ScatterElements", 18, &reduction, &inputs, &[Some((Dtype::F32, &[2]))])
            .unwrap();
        assert!(results[0].as_ref().unwrap().values::<f32>().iter().all(|value| value.is_nan()));
    }
}
