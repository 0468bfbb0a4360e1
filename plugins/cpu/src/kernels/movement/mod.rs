//! Movement of data: ops whose outputs hold elements of their inputs, or shapes and positions of them.
//!
//! Elements are moved as bytes, so that one path serves all dtypes of a size. Every shape, axis and index is checked before
//! memory is touched, and memory is touched through slices.

mod cache;
mod gather;
mod generate;
mod join;
mod mapped;
pub(crate) mod operand;
mod pad;
pub(super) mod plane;
mod repeat;
mod reshape;
mod resize;
mod scatter;
mod select;
mod sequence;
mod shape;
mod slice;
mod strided;
mod transpose;

use oarlock_sdk::{DtypeSet, Kernel, KernelFlags, MemoryKind, Operand, OperandFlags};

use self::operand::{INDEX, WHOLE_BYTES};
use crate::device::Cpu;

/// The kernels of this family.
pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let groups = [
        cache::kernels(),
        gather::kernels(),
        generate::kernels(),
        join::kernels(),
        pad::kernels(),
        repeat::kernels(),
        reshape::kernels(),
        resize::kernels(),
        scatter::kernels(),
        select::kernels(),
        sequence::kernels(),
        slice::kernels(),
        transpose::kernels(),
    ];
    groups.into_iter().flatten().map(|kernel| kernel.flags(KernelFlags::DETERMINISTIC)).collect()
}

/// An operand whose elements are moved. All such operands of a kernel have one dtype.
fn data(name: &'static str) -> Operand {
    Operand::new(WHOLE_BYTES).group(1).named(name)
}

/// An operand of shapes, axes or other values that the shape of the output depends on.
fn host(name: &'static str, dtypes: DtypeSet) -> Operand {
    Operand::new(dtypes).on(MemoryKind::HOST).named(name)
}

/// An operand of shapes or axes that may be left out.
fn optional_host(name: &'static str, dtypes: DtypeSet) -> Operand {
    host(name, dtypes).flags(OperandFlags::OPTIONAL)
}

/// An operand of positions in the data.
fn indices(name: &'static str) -> Operand {
    Operand::new(INDEX).named(name)
}
