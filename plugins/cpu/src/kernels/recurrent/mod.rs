//! Networks that step through sequences: `RNN`, `GRU` and `LSTM`.
//!
//! The products of inputs and weights do not depend on what came before, so those of many steps are one product of
//! matrices. Only the products with the state are made step by step. What gates do to each other is in [`cell`].

mod activation;
mod cell;
mod layer;
mod plan;
#[cfg(test)]
mod tests;
mod weights;

use oarlock_sdk::{DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, dispatch, family};

use self::layer::run;
use self::plan::{Kind, Plan};
use self::weights::Ready;
use crate::constants::Constants;
use crate::device::Cpu;
use crate::gemm;
use crate::isa::Isa;
use crate::kernels::elementwise::math;
use crate::kernels::rows::number;
use crate::kernels::rows::operands::on_operands;

const FLOATS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);

/// The kernels of this family.
pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    vec![kernel("RNN", Kind::Plain), kernel("GRU", Kind::Gated), kernel("LSTM", Kind::Memory)]
}

fn kernel(op: &str, kind: Kind) -> Kernel<Cpu> {
    let number = Operand::new(FLOATS).group(1);
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
