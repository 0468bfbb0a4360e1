//! Networks that step through sequences: `RNN`, `GRU` and `LSTM`.
//!
//! The products of inputs and weights do not depend on what came before, so those of many steps are one product of
//! matrices. Only the products with the state are made step by step. What gates do to each other is in [`cell`].

mod activation;
mod bytes;
mod cell;
mod layer;
mod plan;
#[cfg(test)]
mod tests;
mod weights;

use oarlock_sdk::{DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, dispatch, family};

use self::layer::{run, run_with};
use self::plan::{Kind, Plan};
use self::weights::Ready;
use crate::constants::Constants;
use crate::device::Cpu;
use crate::gemm;
use crate::isa::Isa;
use crate::kernels::elementwise::math;
use crate::kernels::matmul::quantised::BYTES;
use crate::kernels::rows::number;
use crate::kernels::rows::operands::on_operands;

const FLOATS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);

/// The kernels of this family.
pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    vec![kernel("RNN", Kind::Plain), kernel("GRU", Kind::Gated), kernel("LSTM", Kind::Memory), of_bytes()]
}

/// The row of a network with weights of eight bits.
fn of_bytes() -> Kernel<Cpu> {
    let (inputs, outputs) = operands(Kind::Memory, DtypeSet::F32);
    let mut inputs = inputs;
    for (weights, group, scale, zero) in [(1, 2, "W_scale", "W_zero"), (2, 3, "R_scale", "R_zero")] {
        let bytes = Operand::new(BYTES).group(group);
        inputs[weights] = bytes.named(["", "W", "R"][weights]).rank(3, 3);
        inputs.extend([Operand::new(DtypeSet::F32).named(scale).rank(1, 2), bytes.named(zero).rank(1, 2)]);
    }
    Kernel::prepared("DynamicQuantizedLSTM", |cpu: &Cpu, call| {
        let plan = Plan::of_bytes(cpu, call)?;
        call.describe(&format!("weights of 8 bits, {}", cpu.isa()));
        Ok(on_operands(move |cpu, operands| match &plan.ready[..] {
            [] => run_with(cpu, &plan, &Plan::ready_bytes(cpu, operands.call())?, operands),
            ready => run_with(cpu, &plan, ready, operands),
        }))
    })
    .domain("oarlock")
    .flags(KernelFlags::DETERMINISTIC)
    .inputs(inputs)
    .outputs(outputs)
}

fn kernel(op: &str, kind: Kind) -> Kernel<Cpu> {
    let (inputs, outputs) = operands(kind, FLOATS);
    Kernel::prepared(op, move |cpu: &Cpu, call| {
        let dtype = call.input(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16, T => {
            let plan = Plan::<T>::new(cpu, call, kind)?;
            Ok(on_operands(move |cpu, operands| run(cpu, &plan, operands)))
        })
    })
    .since(7)
    .flags(KernelFlags::DETERMINISTIC)
    .inputs(inputs)
    .outputs(outputs)
}

/// The operands of a network.
fn operands(kind: Kind, floats: DtypeSet) -> (Vec<Operand>, Vec<Operand>) {
    let number = Operand::new(floats).group(1);
    let optional = number.flags(OperandFlags::OPTIONAL);
    let lengths = Operand::new(DtypeSet::I32).flags(OperandFlags::OPTIONAL);
    let mut inputs = vec![
        number.named("X").rank(3, 3),
        number.named("W").rank(3, 3),
        number.named("R").rank(3, 3),
        optional.named("B").rank(2, 2),
        lengths.named("sequence_lens").rank(1, 1),
        optional.named("initial_h").rank(3, 3),
    ];
    let mut outputs = vec![optional.named("Y"), optional.named("Y_h")];
    if kind == Kind::Memory {
        inputs.extend([optional.named("initial_c").rank(3, 3), optional.named("P").rank(2, 2)]);
        outputs.push(optional.named("Y_c"));
    }
    (inputs, outputs)
}

/// The floats that are computed in.
trait Computed: number::Float + math::Float + gemm::Number + gemm::Convert<Self> {
    /// Weights of these floats that were made ready.
    fn ready() -> &'static ReadyConstants<Self>;
}

/// Weights that were made ready, by the instruction set, the dtype, rows and depth of the weights, and whether products are small.
type ReadyConstants<C> = Constants<(Isa, u32, usize, usize, bool), Ready<C>>;

macro_rules! computed {
    ($($float:ty),*) => {
        $(impl Computed for $float {
            fn ready() -> &'static ReadyConstants<Self> {
                static READY: ReadyConstants<$float> = Constants::new();
                &READY
            }
        })*
    };
}

computed!(f32, f64);

/// The floats that operands hold.
trait Stored: number::Real + number::Number<Float: Computed> {}

impl<T: number::Real + number::Number<Float: Computed>> Stored for T {}

/// What elements of a type are computed in.
type Wide<E> = <E as number::Number>::Float;
