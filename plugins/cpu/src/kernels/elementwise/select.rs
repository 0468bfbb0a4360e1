//! Functions that pick one of their elements: `Where` and `Clip`.

use std::marker::PhantomData;

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, OperandFlags, Result};

use super::binary::{Larger, Smaller};
use super::inner::{Loop, Map};
use super::number::{Number, with_number};
use super::pass::{Operand, Pass};
use super::plan::{Shape, ensure_dtype};
use super::port::Port;
use super::row::{BOOL, NUMBERS, input, output, prepared, row};
use super::unary::{Same, maps};
use crate::device::Cpu;
use crate::isa::Target;

/// One of two elements, of any type of a size.
#[derive(Clone, Copy)]
struct Choice<E>(PhantomData<E>);

impl<E: Copy + Send + Sync + 'static> Map for Choice<E> {
    type Input = (u8, E, E);
    type Output = E;

    #[inline(always)]
    fn apply<T: Target>(self, (condition, x, y): (u8, E, E)) -> E {
        if condition == 0 { y } else { x }
    }
}

fn choose(call: &Call<'_>) -> Result<Pass> {
    let port = Port::direct(call.input(1)?.dtype());
    let ports = [Port::direct(Dtype::BOOL), port, port];
    Ok(match port.bits {
        8 => Pass::new(Loop(Choice::<u8>(PhantomData)), ports, port),
        16 => Pass::new(Loop(Choice::<u16>(PhantomData)), ports, port),
        32 => Pass::new(Loop(Choice::<u32>(PhantomData)), ports, port),
        // Elements of this size that are complex are aligned as their parts are.
        64 if port.dtype == Dtype::C64 => Pass::new(Loop(Choice::<[u32; 2]>(PhantomData)), ports, port),
        64 => Pass::new(Loop(Choice::<u64>(PhantomData)), ports, port),
        _ => Pass::new(Loop(Choice::<[u64; 2]>(PhantomData)), ports, port),
    })
}

maps! {
    Between(x, low, high) => x.larger(low).smaller(high);
}

/// `Clip` as it was prepared: which bounds it has, and its pass over the input and them.
struct Clip {
    bounds: [bool; 2],
    pass: Pass,
}

impl Clip {
    fn new(call: &Call<'_>) -> Result<Self> {
        let bounds = bounds_of(call)?.map(|bound| bound.is_some());
        let dtype = call.input(0)?.dtype();
        with_number!(dtype, all, N => {
            let (input, output) = (Port::input(dtype, N::DTYPE)?, Port::output(dtype, N::DTYPE)?);
            let pass = match bounds {
                [true, true] => Pass::new(Loop(Between::<N>(PhantomData)), [input; 3], output),
                [true, false] => Pass::new(Loop(Larger::<N>(PhantomData)), [input; 2], output),
                [false, true] => Pass::new(Loop(Smaller::<N>(PhantomData)), [input; 2], output),
                [false, false] => Pass::new(Loop(Same::<N>(PhantomData)), [input], output),
            };
            Ok(Self { bounds, pass })
        })
    }

    fn run(&self, cpu: &Cpu, call: &Call<'_>) -> Result<()> {
        let bounds = bounds_of(call)?;
        oarlock_sdk::ensure!(
            bounds.map(|bound| bound.is_some()) == self.bounds,
            invalid_argument,
            "expected the same bounds as when the kernel was prepared, found others"
        );
        let port = self.pass.inputs()[0];
        let mut operands = [Operand::of(&call.input(0)?, &port)?; 3];
        let mut count = 1;
        for bound in bounds.into_iter().flatten() {
            ensure_dtype(&bound, port.dtype)?;
            let elements = bound.element_count()?;
            oarlock_sdk::ensure!(
                elements == 1,
                invalid_argument,
                "expected bounds of one element, found {elements}"
            );
            let scalar = Shape { dims: &[], strides: &[] };
            operands[count] = Operand { shape: scalar, ..Operand::of(&bound, &port)? };
            count += 1;
        }
        self.pass.run_over(cpu, &operands[..count], Operand::of(&call.output(0)?, self.pass.output())?)
    }
}

fn bounds_of<'a>(call: &Call<'a>) -> Result<[Option<oarlock_sdk::Tensor<'a>>; 2]> {
    Ok([call.optional_input(1)?, call.optional_input(2)?])
}

const ALL: DtypeSet = NUMBERS.union(BOOL).union(DtypeSet::C64).union(DtypeSet::C128);

/// The rows of `Where` and of `Clip` whose bounds are inputs.
pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let inputs = [input("condition", BOOL), input("X", ALL).group(1), input("Y", ALL).group(1)];
    let bound = |name| input(name, NUMBERS).group(1).flags(OperandFlags::OPTIONAL);
    let clip = prepared("Clip", 11, |call| {
        let clip = Clip::new(call)?;
        Ok(move |cpu: &Cpu, call: &Call<'_>| clip.run(cpu, call))
    });
    vec![
        row("Where", 9, inputs, output("output", ALL).group(1), choose).in_place(0, 1).in_place(0, 2),
        clip.inputs([input("input", NUMBERS).group(1), bound("min"), bound("max")])
            .outputs([output("output", NUMBERS).group(1)])
            .in_place(0, 0),
    ]
}
