//! Signals: Fourier transforms, the windows that are applied before them, the weights that are applied to spectra after, and the
//! alignment of two signals.

mod column_transform;
mod dft;
mod fourier;
mod mel;
mod real_fourier;
mod roots_of_unity;
mod stft;
mod time_warping;
mod window;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{DtypeSet, Kernel, KernelFlags, OperandFlags, OperandSpec, family};

const SIGNAL_FLOATS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);
const LENGTH_DTYPES: DtypeSet = DtypeSet::I32.union(DtypeSet::I64);

pub(crate) fn signal_kernels() -> Vec<Kernel<Cpu>> {
    let kernels = [
        dft::dft_kernels(),
        stft::stft_kernels(),
        window::window_kernels(),
        mel::mel_kernels(),
        time_warping::time_warping_kernels(),
    ];
    kernels.into_iter().flatten().map(|kernel| kernel.with_flags(KernelFlags::DETERMINISTIC)).collect()
}

/// An operand that holds one length.
fn length_operand(name: &'static str) -> OperandSpec {
    OperandSpec::new(LENGTH_DTYPES).with_name(name).with_rank(0, 1).in_memory(oarlock_sdk::MemoryKind::HOST)
}

/// An operand that holds one length and may be left out.
fn optional_length_operand(name: &'static str) -> OperandSpec {
    length_operand(name).with_flags(OperandFlags::OPTIONAL)
}
