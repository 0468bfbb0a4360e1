//! Functions that pick one of their operands: `Where` and `Clip`.

use std::marker::PhantomData;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::SimdTarget;
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, OperandFlags, Result};

use super::binary::{Larger, Smaller};
use super::dtype_dispatch::with_number;
use super::element_loop::{ElementMap, MapLoop};
use super::iteration_space::{OperandShape, ensure_dtype};
use super::operand_conversion::OperandConversion;
use super::prepared_loop::{LoopOperand, PreparedLoop};
use super::registration::{
    BOOL, NUMBERS, elementwise_kernel, input_operand, output_operand, prepared_kernel,
};
use super::unary::{Same, maps};

/// Picks one of two elements, of any type of a size.
#[derive(Clone, Copy)]
pub(super) struct WhereMap<E>(pub(super) PhantomData<E>);

impl<E: Copy + Send + Sync + 'static> ElementMap for WhereMap<E> {
    type Input = (u8, E, E);
    type Output = E;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (condition, x, y): (u8, E, E)) -> E {
        // Read as a byte, so that any other than 0 is true.
        if condition == 0 { y } else { x }
    }
}

fn where_loop(call: &KernelCall<'_>) -> Result<PreparedLoop> {
    let conversion = OperandConversion::without_conversion(call.input(1)?.dtype());
    let conversions = [OperandConversion::without_conversion(Dtype::BOOL), conversion, conversion];
    Ok(match conversion.bits {
        8 => PreparedLoop::new(MapLoop(WhereMap::<u8>(PhantomData)), conversions, conversion),
        16 => PreparedLoop::new(MapLoop(WhereMap::<u16>(PhantomData)), conversions, conversion),
        32 => PreparedLoop::new(MapLoop(WhereMap::<u32>(PhantomData)), conversions, conversion),
        // Complex elements of this size are aligned like their parts.
        64 if conversion.dtype == Dtype::C64 => {
            PreparedLoop::new(MapLoop(WhereMap::<[u32; 2]>(PhantomData)), conversions, conversion)
        }
        64 => PreparedLoop::new(MapLoop(WhereMap::<u64>(PhantomData)), conversions, conversion),
        _ => PreparedLoop::new(MapLoop(WhereMap::<[u64; 2]>(PhantomData)), conversions, conversion),
    })
}

maps! {
    // The upper bound comes last and so wins if the bounds are crossed, as in the schema and in NumPy.
    Between(x, low, high) => x.maximum(low).minimum(high);
}

/// A prepared `Clip`: which bounds it has, and its loop over the input and them.
struct ClipKernel {
    bounds: [bool; 2],
    pass: PreparedLoop,
}

impl ClipKernel {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let bounds = clip_bounds(call)?.map(|bound| bound.is_some());
        let dtype = call.input(0)?.dtype();
        with_number!(dtype, all, N => {
            let (input, output) = (OperandConversion::for_input(dtype, N::DTYPE)?, OperandConversion::for_output(dtype, N::DTYPE)?);
            // A loop for each set of bounds, so that an absent one is not compared with.
            let pass = match bounds {
                [true, true] => PreparedLoop::new(MapLoop(Between::<N>(PhantomData)), [input; 3], output),
                [true, false] => PreparedLoop::new(MapLoop(Larger::<N>(PhantomData)), [input; 2], output),
                [false, true] => PreparedLoop::new(MapLoop(Smaller::<N>(PhantomData)), [input; 2], output),
                [false, false] => PreparedLoop::new(MapLoop(Same::<N>(PhantomData)), [input], output),
            };
            Ok(Self { bounds, pass })
        })
    }

    fn run(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let bounds = clip_bounds(call)?;
        oarlock_sdk::ensure!(
            bounds.map(|bound| bound.is_some()) == self.bounds,
            invalid_argument,
            "expected the same bounds as when the kernel was prepared, found others"
        );
        let conversion = self.pass.input_conversions()[0];
        let mut operands = [LoopOperand::from_tensor(&call.input(0)?, &conversion)?; 3];
        let mut count = 1;
        for bound in bounds.into_iter().flatten() {
            ensure_dtype(&bound, conversion.dtype)?;
            let elements = bound.element_count()?;
            oarlock_sdk::ensure!(
                elements == 1,
                invalid_argument,
                "expected bounds of one element, found {elements}"
            );
            // As a scalar, a bound of more dimensions than the input does not ask for an output of as many.
            let scalar = OperandShape { dims: &[], strides: &[] };
            operands[count] = LoopOperand { shape: scalar, ..LoopOperand::from_tensor(&bound, &conversion)? };
            count += 1;
        }
        self.pass.run_on_operands(
            cpu,
            &operands[..count],
            LoopOperand::from_tensor(&call.output(0)?, self.pass.output_conversion())?,
        )
    }
}

fn clip_bounds<'a>(call: &KernelCall<'a>) -> Result<[Option<oarlock_sdk::TensorView<'a>>; 2]> {
    Ok([call.optional_input(1)?, call.optional_input(2)?])
}

const SELECTABLE: DtypeSet = NUMBERS.union(BOOL).union(DtypeSet::C64).union(DtypeSet::C128);

pub(super) fn where_and_clip_kernels() -> Vec<Kernel<Cpu>> {
    let inputs = [
        input_operand("condition", BOOL),
        input_operand("X", SELECTABLE).with_dtype_group(1),
        input_operand("Y", SELECTABLE).with_dtype_group(1),
    ];
    let bound = |name| input_operand(name, NUMBERS).with_dtype_group(1).with_flags(OperandFlags::OPTIONAL);
    let clip = prepared_kernel("Clip", 11, |call| {
        let clip = ClipKernel::new(call)?;
        Ok(move |cpu: &Cpu, call: &KernelCall<'_>| clip.run(cpu, call))
    });
    vec![
        elementwise_kernel(
            "Where",
            9,
            inputs,
            output_operand("output", SELECTABLE).with_dtype_group(1),
            where_loop,
        )
        .with_in_place(0, 1)
        .with_in_place(0, 2),
        clip.with_inputs([input_operand("input", NUMBERS).with_dtype_group(1), bound("min"), bound("max")])
            .with_outputs([output_operand("output", NUMBERS).with_dtype_group(1)])
            .with_in_place(0, 0),
    ]
}
