//! Recurrent networks: `RNN`, `GRU` and `LSTM`.
//!
//! The products of inputs and weights do not depend on earlier steps, so many steps share one matrix product. Only products with
//! the state are computed step by step. The gates are in [`cell`].

mod activation;
mod byte_weights;
mod cell;
mod outputs;
mod plan;
mod recurrence;
mod recurrent_shape;
#[cfg(test)]
mod tests;
mod weights;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::compute_element::{ComputeElement, ComputeFloat, FloatElement};
use oarlock_cpu_base::constant_cache::ConstantCache;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::quantized_operand::BYTE_DTYPES;
use oarlock_cpu_base::rows::operands::run_on_operands;
use oarlock_cpu_gemm::{ConvertTo, GemmElement};
use oarlock_sdk::{DtypeSet, Kernel, KernelFlags, OperandFlags, OperandSpec, dispatch, family};

use self::plan::{RecurrentCellKind, RecurrentPlan};
use self::recurrence::{product_bytes, run_recurrent, run_with_weights};
use self::weights::PackedGateWeights;

const FLOATS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);

pub(crate) fn recurrent_kernels() -> Vec<Kernel<Cpu>> {
    vec![
        recurrent_kernel("RNN", RecurrentCellKind::Plain),
        recurrent_kernel("GRU", RecurrentCellKind::Gated),
        recurrent_kernel("LSTM", RecurrentCellKind::Memory),
        quantized_lstm_kernel(),
    ]
}

/// The kernel of `LSTM` with 8-bit weights.
fn quantized_lstm_kernel() -> Kernel<Cpu> {
    let (inputs, outputs) = recurrent_operands(RecurrentCellKind::Memory, DtypeSet::F32);
    let mut inputs = inputs;
    for (weights, group, scale, zero) in [(1, 2, "W_scale", "W_zero"), (2, 3, "R_scale", "R_zero")] {
        let bytes = OperandSpec::new(BYTE_DTYPES).with_dtype_group(group);
        inputs[weights] = bytes.with_name(["", "W", "R"][weights]).with_rank(3, 3);
        inputs.extend([
            OperandSpec::new(DtypeSet::F32).with_name(scale).with_rank(1, 2),
            bytes.with_name(zero).with_rank(1, 2),
        ]);
    }
    Kernel::new_prepared("DynamicQuantizedLSTM", |cpu: &Cpu, call| {
        let plan = RecurrentPlan::from_byte_weights(cpu, call)?;
        call.describe_kernel(&format!("weights of 8 bits, {}", cpu.isa()));
        Ok(run_on_operands(move |cpu, operands| match &plan.ready[..] {
            [] => run_with_weights::<f32>(
                cpu,
                &plan,
                &RecurrentPlan::prepare_byte_weights(cpu, operands.call())?,
                operands,
            ),
            ready => run_with_weights::<f32>(cpu, &plan, ready, operands),
        }))
    })
    .with_domain(OARLOCK_DOMAIN)
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_workspace(|cpu, call| product_bytes::<f32>(cpu, call, true))
    .with_inputs(inputs)
    .with_outputs(outputs)
}

fn recurrent_kernel(op: &str, kind: RecurrentCellKind) -> Kernel<Cpu> {
    let (inputs, outputs) = recurrent_operands(kind, FLOATS);
    Kernel::new_prepared(op, move |cpu: &Cpu, call| {
        let dtype = call.input(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16, T => {
            let plan = RecurrentPlan::new::<T>(cpu, call, kind)?;
            Ok(run_on_operands(move |cpu, operands| run_recurrent::<T>(cpu, &plan, operands)))
        })
    })
    .since_version(7)
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_workspace(|cpu, call| {
        dispatch!(call.input(0)?.dtype(), floating_and_half + bf16, T => product_bytes::<FloatOf<T>>(cpu, call, false))
    })
    .with_inputs(inputs)
    .with_outputs(outputs)
}

fn recurrent_operands(kind: RecurrentCellKind, floats: DtypeSet) -> (Vec<OperandSpec>, Vec<OperandSpec>) {
    let number = OperandSpec::new(floats).with_dtype_group(1);
    let optional = number.with_flags(OperandFlags::OPTIONAL);
    let lengths = OperandSpec::new(DtypeSet::I32).with_flags(OperandFlags::OPTIONAL);
    let mut inputs = vec![
        number.with_name("X").with_rank(3, 3),
        number.with_name("W").with_rank(3, 3),
        number.with_name("R").with_rank(3, 3),
        optional.with_name("B").with_rank(2, 2),
        lengths.with_name("sequence_lens").with_rank(1, 1),
        optional.with_name("initial_h").with_rank(3, 3),
    ];
    let mut outputs = vec![optional.with_name("Y"), optional.with_name("Y_h")];
    if kind == RecurrentCellKind::Memory {
        inputs.extend([
            optional.with_name("initial_c").with_rank(3, 3),
            optional.with_name("P").with_rank(2, 2),
        ]);
        outputs.push(optional.with_name("Y_c"));
    }
    (inputs, outputs)
}

/// Floats to compute in.
trait RecurrentFloat: ComputeFloat + GemmElement + ConvertTo<Self> {
    /// The cache of prepared weights of these floats.
    fn prepared_constants() -> &'static PreparedConstants<Self>;
}

/// Prepared weights, by instruction set, dtype, rows and depth of the weights, and whether products are small.
type PreparedConstants<C> = ConstantCache<(Isa, u32, usize, usize, bool), PackedGateWeights<C>>;

macro_rules! computed {
    ($($float:ty),*) => {
        $(impl RecurrentFloat for $float {
            fn prepared_constants() -> &'static PreparedConstants<Self> {
                static PREPARED: PreparedConstants<$float> = ConstantCache::new();
                &PREPARED
            }
        })*
    };
}

computed!(f32, f64);

/// Floats of operands.
trait RecurrentElement: FloatElement + ComputeElement<Float: RecurrentFloat> {}

impl<T: FloatElement + ComputeElement<Float: RecurrentFloat>> RecurrentElement for T {}

/// The compute type of an element.
type FloatOf<E> = <E as ComputeElement>::Float;
