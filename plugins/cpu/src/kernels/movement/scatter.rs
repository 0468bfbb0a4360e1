//! `Scatter`, `ScatterElements` and `ScatterND`: a copy of the data with updates at given positions, which replace what is
//! there or are combined with it. Updates are made one after another, so that the last of several at one place wins.

use std::sync::Arc;

use oarlock_sdk::{Call, DtypeSet, Error, Kernel, Operand, Result, bf16, dispatch, ensure, f16};

use super::gather::{Places, Tuples};
use super::operand::{by_size, cells, cells_mut, copy_all, values, values_mut};
use super::{data, indices, shape};
use crate::device::Cpu;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let elements = |op: &str| {
        Kernel::prepared(op, |_, call| {
            let (axis, reduction) = (call.int("axis")?.unwrap_or(0), Reduction::new(call)?);
            Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| scatter_elements(cpu, call, axis, reduction)))
        })
        .inputs([data("data"), indices("indices"), data("updates")])
        .outputs([data("output")])
        .in_place(0, 0)
    };
    vec![
        elements("Scatter").since(9).until(10),
        elements("ScatterElements").since(11),
        Kernel::prepared("ScatterND", |_, call| {
            let reduction = Reduction::new(call)?;
            Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| scatter_nd(cpu, call, reduction)))
        })
        .since(11)
        .inputs([data("data"), Operand::new(DtypeSet::I64).named("indices"), data("updates")])
        .outputs([data("output")])
        .in_place(0, 0),
    ]
}

/// How an update and what is there become one.
#[derive(Clone, Copy, PartialEq)]
enum Reduction {
    None,
    Add,
    Mul,
    Max,
    Min,
}

impl Reduction {
    fn new(call: &Call<'_>) -> Result<Self> {
        match call.string("reduction")?.unwrap_or("none") {
            "none" => Ok(Self::None),
            "add" => Ok(Self::Add),
            "mul" => Ok(Self::Mul),
            "max" => Ok(Self::Max),
            "min" => Ok(Self::Min),
            other => Err(Error::invalid_argument(format!(
                "expected `reduction` to be `none`, `add`, `mul`, `max` or `min`, found `{other}`"
            ))),
        }
    }

    fn of<T: Number>(self) -> fn(T, T) -> T {
        match self {
            Self::None => |_, update| update,
            Self::Add => T::add,
            Self::Mul => T::mul,
            // What is not equal to itself is not a number, and stays.
            Self::Max => |old, update| if old >= update || is_nan(old) { old } else { update },
            Self::Min => |old, update| if old <= update || is_nan(old) { old } else { update },
        }
    }
}

fn is_nan<T: PartialOrd>(value: T) -> bool {
    value.partial_cmp(&value).is_none()
}

/// What can be combined. Integers wrap around, as in NumPy.
trait Number: Copy + PartialOrd {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($integer:ty)*; $($float:ty)*) => {
        $(impl Number for $integer {
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
        })*
        $(impl Number for $float {
            fn add(self, other: Self) -> Self { self + other }
            fn mul(self, other: Self) -> Self { self * other }
        })*
    };
}

numbers!(i8 u8 i16 u16 i32 u32 i64 u64; f32 f64 f16 bf16);

impl Number for bool {
    fn add(self, other: Self) -> Self {
        self | other
    }

    fn mul(self, other: Self) -> Self {
        self & other
    }
}

fn scatter_elements(cpu: &Cpu, call: &Call<'_>, axis: i64, reduction: Reduction) -> Result<()> {
    let places = Places::new(&call.input(0)?, &call.input(1)?, axis)?;
    shape::expect(&call.input(2)?, "updates", places.dims())?;
    scatter(cpu, call, reduction, || places.iter(), 1)
}

fn scatter_nd(cpu: &Cpu, call: &Call<'_>, reduction: Reduction) -> Result<()> {
    let (input, updates) = (call.input(0)?, call.input(2)?);
    let tuples = Tuples::new(&input, &call.input(1)?, 0)?;
    let expected = [&tuples.dims[..], &shape::dims(&input)?[tuples.depth..]].concat();
    shape::expect(&updates, "updates", &expected)?;
    scatter(cpu, call, reduction, || tuples.starts.iter().copied(), tuples.width)
}

/// Writes the updates in order, `width` of them at each start.
fn scatter<I: Iterator<Item = usize>>(
    cpu: &Cpu,
    call: &Call<'_>,
    reduction: Reduction,
    starts: impl Fn() -> I,
    width: usize,
) -> Result<()> {
    let (input, updates, output) = (call.input(0)?, call.input(2)?, call.output(0)?);
    shape::expect(&output, "output", &shape::dims(&input)?)?;
    ensure!(
        updates.dtype() == output.dtype(),
        invalid_argument,
        "expected `updates` of the dtype of the data, found {}",
        updates.dtype().name().unwrap_or("an unknown one")
    );
    copy_all(cpu, &input, &output)?;
    if reduction == Reduction::None {
        return by_size!(output.dtype(), N => {
            write(cells_mut::<N>(&output)?, cells::<N>(&updates)?, starts(), width, |_, update| update);
            Ok(())
        });
    }
    dispatch!(output.dtype(), floating_and_integral + f16 + bf16 + u16 + u32 + u64 + bool, T => {
        write(values_mut::<T>(&output)?, values::<T>(&updates)?, starts(), width, reduction.of::<T>());
        Ok(())
    })
}

fn write<T: Copy>(
    out: &mut [T],
    updates: &[T],
    starts: impl Iterator<Item = usize>,
    width: usize,
    combine: impl Fn(T, T) -> T,
) {
    if width == 0 {
        return;
    }
    for (start, updates) in starts.zip(updates.chunks_exact(width)) {
        for (cell, update) in out[start..start + width].iter_mut().zip(updates) {
            *cell = combine(*cell, *update);
        }
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::testing::{Array, Attribute, run};

    fn scattered(op: &str, reduction: &str, positions: &Array, updates: &Array) -> Result<Vec<i32>, String> {
        let data = Array::of(&[3, 2], &[1i32, 2, 3, 4, 5, 6]);
        let reduction = [("reduction", Attribute::Text(reduction))];
        let inputs = [Some(&data), Some(positions), Some(updates)];
        let version = if op == "Scatter" { 9 } else { 18 };
        run(op, version, &reduction, &inputs, &[Some((Dtype::I32, &[3, 2]))])
            .map(|results| results[0].as_ref().unwrap().values())
    }

    #[test]
    fn elements_are_replaced_or_combined() {
        let (positions, updates) =
            (Array::of(&[2, 2], &[0i64, 0, 0, -1]), Array::of(&[2, 2], &[7i32, 1, 3, 9]));
        for (reduction, expected) in [
            ("none", [3, 1, 3, 4, 5, 9]),
            ("add", [11, 3, 3, 4, 5, 15]),
            ("mul", [21, 2, 3, 4, 5, 54]),
            ("max", [7, 2, 3, 4, 5, 9]),
            ("min", [1, 1, 3, 4, 5, 6]),
        ] {
            let found = scattered("ScatterElements", reduction, &positions, &updates).unwrap();
            assert_eq!(found, expected, "{reduction}");
        }
        assert_eq!(scattered("Scatter", "none", &positions, &updates).unwrap(), [3, 1, 3, 4, 5, 9]);
    }

    #[test]
    fn rows_are_replaced_or_combined() {
        let (positions, updates) = (Array::of(&[2, 1], &[2i64, 2]), Array::of(&[2, 2], &[10i32, 20, 30, 40]));
        assert_eq!(scattered("ScatterND", "none", &positions, &updates).unwrap(), [1, 2, 3, 4, 30, 40]);
        assert_eq!(scattered("ScatterND", "add", &positions, &updates).unwrap(), [1, 2, 3, 4, 45, 66]);
    }

    #[test]
    fn positions_outside_and_updates_that_do_not_fit_are_refused() {
        let (outside, inside) = (Array::of(&[1, 1], &[3i64]), Array::of(&[1, 1], &[1i64]));
        let (updates, wide) = (Array::of(&[1, 1], &[0i32]), Array::of(&[1, 3], &[0i32; 3]));
        for op in ["ScatterElements", "ScatterND"] {
            let fitting = Array::of(
                if op == "ScatterND" { &[1, 2] } else { &[1, 1] },
                &[0i32, 0][..if op == "ScatterND" { 2 } else { 1 }],
            );
            assert!(scattered(op, "none", &outside, &fitting).unwrap_err().contains("`indices`"), "{op}");
            assert!(scattered(op, "none", &inside, &wide).unwrap_err().contains("`updates`"), "{op}");
        }
        assert!(scattered("ScatterElements", "else", &inside, &updates).unwrap_err().contains("`else`"));
    }

    #[test]
    fn what_is_not_a_number_stays() {
        let (data, positions) = (Array::of(&[2], &[f32::NAN, 1.0]), Array::of(&[2], &[0i64, 1]));
        let updates = Array::of(&[2], &[2.0, f32::NAN]);
        let reduction = [("reduction", Attribute::Text("max"))];
        let inputs = [Some(&data), Some(&positions), Some(&updates)];
        let results = run("ScatterElements", 18, &reduction, &inputs, &[Some((Dtype::F32, &[2]))]).unwrap();
        assert!(results[0].as_ref().unwrap().values::<f32>().iter().all(|value| value.is_nan()));
    }
}
