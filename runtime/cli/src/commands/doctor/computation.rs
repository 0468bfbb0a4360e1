//! A small computation with a known result: ops in sequence, each on the output of the one before.
//!
//! It takes the path of every program, through the core, in a stream of its own, without waiting until the end. The expected
//! result is computed here in plain arithmetic and not by the device `cpu`: its kernels, and those of plugins that replace
//! them, are under test too. All numbers are small integers, so that neither the order of additions nor a fused multiply-add
//! makes a difference.

use half::f16;
use oarlock_core::{Device, Dtype, Element, Error, Op, OpInvocation, Result, Runtime, Tensor};

use super::trial_fault::TrialFault;

/// The ops in order; those without a kernel on the device are skipped.
const TRIAL_OPS: [&str; 4] = ["MatMul", "Add", "Relu", "ReduceSum"];
/// Dtypes in order of preference.
const TRIAL_DTYPES: [Dtype; 5] = [Dtype::F32, Dtype::I32, Dtype::I64, Dtype::F64, Dtype::F16];
/// Dtypes that are tried.
const MAX_DTYPES: usize = 2;
/// The shapes of the matrices: no size is a multiple of a vector or a tile.
const ROWS: usize = 37;
const INNER: usize = 23;
const COLUMNS: usize = 29;

/// Computes with dtypes that the device has kernels for, and checks the result; `seed` selects the numbers. Returns a
/// description of what was computed.
pub(super) fn run_computation(
    runtime: &Runtime,
    device: &Device,
    seed: u32,
) -> std::result::Result<String, TrialFault> {
    let mut computed: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
    let mut dtypes = 0;
    for dtype in TRIAL_DTYPES {
        let ops = compute_with_dtype(runtime, device, dtype, seed)?;
        if ops.is_empty() {
            continue;
        }
        let precision = format!("{dtype} ({})", ErrorTolerance::for_dtype(dtype).name);
        match computed.iter_mut().find(|(known, _)| *known == ops) {
            Some((_, precisions)) => precisions.push(precision),
            None => computed.push((ops, vec![precision])),
        }
        dtypes += 1;
        if dtypes == MAX_DTYPES {
            break;
        }
    }
    if computed.is_empty() {
        let (ops, dtypes) = (
            join_alternatives(TRIAL_OPS.map(|op| format!("`{op}`"))),
            join_alternatives(TRIAL_DTYPES.map(|dtype| dtype.to_string())),
        );
        return Ok(format!("only copies, since the device has no kernel for {ops} that takes {dtypes}"));
    }
    let shown = |(ops, precisions): &(Vec<&str>, Vec<String>)| {
        format!("{} of {}", ops.join(", "), precisions.join(" and "))
    };
    Ok(computed.iter().map(shown).collect::<Vec<_>>().join("; "))
}

/// `a, b or c`.
fn join_alternatives<const N: usize>(words: [String; N]) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// Returns the ops that the device has kernels for.
fn compute_with_dtype(
    runtime: &Runtime,
    device: &Device,
    dtype: Dtype,
    seed: u32,
) -> std::result::Result<Vec<&'static str>, TrialFault> {
    let stream = device.create_stream(0)?;
    let mut right = IntegerMatrix::pseudo_random(ROWS, INNER, seed);
    let mut tensor = right.to_tensor(device, dtype)?;
    let step = |kernel, tensor: &Tensor, right: &IntegerMatrix| ComputationStep {
        kernel,
        tensor: tensor.clone(),
        right: right.clone(),
    };
    let mut steps = vec![step(None, &tensor, &right)];
    for (name, seed) in TRIAL_OPS.into_iter().zip(seed + 1..) {
        let (second, next) = right.apply_op(name, seed);
        let second = match second {
            Some(matrix) => {
                let second = matrix.to_tensor(device, dtype)?;
                steps.push(step(None, &second, &matrix));
                Some(second)
            }
            None if name == "ReduceSum" => Some(Tensor::from_slice(device, &[1], &[1i64])?),
            None => None,
        };
        let inputs: Vec<Option<&Tensor>> = std::iter::once(&tensor).chain(&second).map(Some).collect();
        let call = OpInvocation { inputs: &inputs, outputs: 1, device: Some(device), stream: Some(&stream) };
        let op = Op::latest(runtime, name)?;
        let explanation = op.explain_call(runtime, &call)?;
        // Under the flag `kernel_fallback` the CPU might run an op without a kernel, which would prove nothing about the
        // device.
        let Some(row) = explanation.chosen_entry() else { continue };
        let made = op.invoke(runtime, &call)?.pop().flatten();
        tensor = made.ok_or_else(|| {
            Error::fatal("expected an output, found none").with_op(name).with_device(device)
        })?;
        right = next;
        let kernel = StepKernel { op: name, plugin: row.plugin_name().to_owned() };
        steps.push(step(Some(kernel), &tensor, &right));
    }
    for step in &steps {
        step.compare_result()?;
    }
    Ok(steps.iter().filter_map(|step| step.kernel.as_ref()).map(|kernel| kernel.op).collect())
}

struct ComputationStep {
    /// The kernel that made the tensor; `None` for a copy to the device, which is checked by copying back.
    kernel: Option<StepKernel>,
    tensor: Tensor,
    right: IntegerMatrix,
}

struct StepKernel {
    op: &'static str,
    plugin: String,
}

impl ComputationStep {
    /// Waits for the result and compares it with the expected numbers.
    fn compare_result(&self) -> std::result::Result<(), TrialFault> {
        let Self { kernel, tensor, right } = self;
        let dtype = tensor.dtype();
        let largest = right.numbers.iter().fold(0.0, |largest: f64, number| largest.max(number.abs()));
        // A copy must be exact.
        let allowed = kernel.as_ref().map_or(0.0, |_| largest * ErrorTolerance::for_dtype(dtype).part);
        let found = read_numbers(tensor)?;
        // The comparison is false for NaN, which therefore counts as wrong.
        let is_right = |(right, found): (&f64, &f64)| (right - found).abs() <= allowed;
        let wrong = right.numbers.iter().zip(&found).position(|pair| !is_right(pair));
        let Some(at) = wrong else { return Ok(()) };
        let what = kernel.as_ref().map_or_else(|| "a copy".to_owned(), |kernel| format!("`{}`", kernel.op));
        let place = [at / right.columns, at % right.columns];
        let (right, found) = (right.numbers[at], found[at]);
        Err(TrialFault::WrongResult {
            found: format!("{what} of {dtype}: expected {right} at {place:?}, found {found}"),
            plugin: kernel.as_ref().map(|kernel| kernel.plugin.clone()),
        })
    }
}

/// The permitted error of a result.
struct ErrorTolerance {
    /// Relative to the largest number of the result.
    part: f64,
    name: &'static str,
}

impl ErrorTolerance {
    fn for_dtype(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F16 => Self { part: 1e-2, name: "right within 1 %" },
            _ if dtype.is_float() => Self { part: 1e-5, name: "right within 0.001 %" },
            _ => Self { part: 0.0, name: "exactly right" },
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct IntegerMatrix {
    columns: usize,
    numbers: Vec<f64>,
}

impl IntegerMatrix {
    /// Pseudo-random numbers from -3 to 3.
    fn pseudo_random(rows: usize, columns: usize, seed: u32) -> Self {
        let number = |at: u32| {
            let mixed = (at + 1).wrapping_mul(0x9E37_79B1).wrapping_add(seed.wrapping_mul(0x85EB_CA6B));
            f64::from((mixed >> 13) % 7) - 3.0
        };
        Self { columns, numbers: (0..rows * columns).map(|at| number(at as u32)).collect() }
    }

    /// Returns the second operand, if the op takes one, and the expected result.
    fn apply_op(&self, op: &str, seed: u32) -> (Option<Self>, Self) {
        let rows = self.numbers.chunks(self.columns);
        match op {
            "MatMul" => {
                let other = Self::pseudo_random(self.columns, COLUMNS, seed);
                let sum = |row: &[f64], column: usize| -> f64 {
                    let below = other.numbers.iter().skip(column).step_by(COLUMNS);
                    row.iter().zip(below).map(|(a, b)| a * b).sum()
                };
                let numbers = rows.flat_map(|row| (0..COLUMNS).map(move |column| sum(row, column))).collect();
                (Some(other), Self { columns: COLUMNS, numbers })
            }
            "Add" => {
                let other = Self::pseudo_random(rows.len(), self.columns, seed);
                let sums = self.numbers.iter().zip(&other.numbers).map(|(a, b)| a + b).collect();
                (Some(other), Self { columns: self.columns, numbers: sums })
            }
            "Relu" => {
                let numbers = self.numbers.iter().map(|number| number.max(0.0)).collect();
                (None, Self { columns: self.columns, numbers })
            }
            _ => (None, Self { columns: 1, numbers: rows.map(|row| row.iter().sum()).collect() }),
        }
    }

    fn to_tensor(&self, device: &Device, dtype: Dtype) -> Result<Tensor> {
        let Self { columns, numbers } = self;
        let dims = [(numbers.len() / columns) as i64, *columns as i64];
        fn create_tensor<T: Element>(
            device: &Device,
            dims: &[i64],
            numbers: &[f64],
            cast: fn(f64) -> T,
        ) -> Result<Tensor> {
            let elements: Vec<T> = numbers.iter().map(|number| cast(*number)).collect();
            Tensor::from_slice(device, dims, &elements)
        }
        match dtype {
            Dtype::I32 => create_tensor(device, &dims, numbers, |number| number as i32),
            Dtype::I64 => create_tensor(device, &dims, numbers, |number| number as i64),
            Dtype::F64 => create_tensor(device, &dims, numbers, |number| number),
            Dtype::F16 => create_tensor(device, &dims, numbers, f16::from_f64),
            _ => create_tensor(device, &dims, numbers, |number| number as f32),
        }
    }
}

/// Copies the elements to the host, converted to `f64`.
fn read_numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    fn read_elements<T: Element>(tensor: &Tensor, cast: fn(T) -> f64) -> Result<Vec<f64>> {
        Ok(tensor.to_vec()?.into_iter().map(cast).collect())
    }
    match tensor.dtype() {
        Dtype::I32 => read_elements(tensor, |number: i32| number.into()),
        Dtype::I64 => read_elements(tensor, |number: i64| number as f64),
        Dtype::F64 => read_elements(tensor, |number: f64| number),
        Dtype::F16 => read_elements(tensor, f16::to_f64),
        _ => read_elements(tensor, |number: f32| number.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_is_plain_arithmetic() {
        let matrix = IntegerMatrix { columns: 2, numbers: vec![1.0, -2.0, 3.0, 4.0] };
        assert_eq!(matrix.apply_op("Relu", 0).1.numbers, [1.0, 0.0, 3.0, 4.0]);
        assert_eq!(matrix.apply_op("ReduceSum", 0).1, IntegerMatrix { columns: 1, numbers: vec![-1.0, 7.0] });
        let (Some(other), product) = matrix.apply_op("MatMul", 5) else { panic!("no second matrix") };
        assert_eq!((product.numbers.len(), product.columns), (2 * COLUMNS, COLUMNS));
        let at = |row: usize, column: usize| other.numbers[row * COLUMNS + column];
        assert_eq!(product.numbers[COLUMNS + 3], 3.0 * at(0, 3) + 4.0 * at(1, 3));
        let (Some(other), sum) = matrix.apply_op("Add", 6) else { panic!("no second matrix") };
        assert_eq!(sum.numbers[3], 4.0 + other.numbers[3]);
    }

    #[test]
    fn other_seeds_make_other_numbers_and_every_half_holds_them() {
        let [first, second] = [0, 1].map(|seed| IntegerMatrix::pseudo_random(ROWS, INNER, seed));
        assert_ne!(first, second);
        let product = first.apply_op("MatMul", 9).1;
        assert!(product.numbers.iter().all(|number| f16::from_f64(*number).to_f64() == *number));
        assert!((-3..=3).all(|number| first.numbers.contains(&f64::from(number))));
    }
}
