//! Signals: Fourier transforms, the windows that are laid over signals before, what spectra are weighed with
//! after, and how two of them are laid side by side.

mod columns;
mod fourier;
mod halved;
mod mel;
mod stft;
mod transform;
mod warp;
mod window;

use oarlock_sdk::{DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, family};

use crate::device::Cpu;

const FLOATS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);
const LENGTHS: DtypeSet = DtypeSet::I32.union(DtypeSet::I64);

/// The kernels of this family.
pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let kernels = [transform::kernels(), stft::kernels(), window::kernels(), mel::kernels(), warp::kernels()];
    kernels.into_iter().flatten().map(|kernel| kernel.flags(KernelFlags::DETERMINISTIC)).collect()
}

/// An operand that holds one length.
fn length(name: &'static str) -> Operand {
    Operand::new(LENGTHS).named(name).rank(0, 1).on(oarlock_sdk::MemoryKind::HOST)
}

/// An operand that holds one length and may be left out.
fn optional_length(name: &'static str) -> Operand {
    length(name).flags(OperandFlags::OPTIONAL)
}
