//! Data movement: ops whose outputs hold elements of their inputs, or shapes and positions of them.
//!
//! Elements are moved as bytes, so that one code path serves all dtypes of a size. Every shape, axis and index is checked before
//! memory is accessed, and memory is accessed through slices.

mod axis_map;
mod concat;
mod gather;
mod generate;
mod pad;
mod repeat;
mod reshape;
mod resize;
mod scatter;
mod select;
mod sequence;
mod shape;
mod slice;
mod strided;
mod tensor_scatter;
mod transpose;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{INDEX_DTYPES, WHOLE_BYTE_DTYPES};
use oarlock_sdk::{DtypeSet, Kernel, KernelFlags, MemoryKind, OperandFlags, OperandSpec};

pub(crate) fn data_movement_kernels() -> Vec<Kernel<Cpu>> {
    let groups = [
        tensor_scatter::tensor_scatter_kernels(),
        gather::gather_kernels(),
        generate::generator_kernels(),
        concat::concat_and_split_kernels(),
        pad::pad_kernels(),
        repeat::repeat_kernels(),
        reshape::reshape_kernels(),
        resize::resize_kernels(),
        scatter::scatter_kernels(),
        select::selection_kernels(),
        sequence::sequence_kernels(),
        slice::slice_kernels(),
        transpose::transpose_kernels(),
    ];
    groups.into_iter().flatten().map(|kernel| kernel.with_flags(KernelFlags::DETERMINISTIC)).collect()
}

/// An operand whose elements are moved. All such operands of a kernel have one dtype.
fn data_operand(name: &'static str) -> OperandSpec {
    OperandSpec::new(WHOLE_BYTE_DTYPES).with_dtype_group(1).with_name(name)
}

/// An operand of shapes, axes or other values that the shape of the output depends on.
fn host_operand(name: &'static str, dtypes: DtypeSet) -> OperandSpec {
    OperandSpec::new(dtypes).in_memory(MemoryKind::HOST).with_name(name)
}

/// An operand of shapes or axes that may be left out.
fn optional_host_operand(name: &'static str, dtypes: DtypeSet) -> OperandSpec {
    host_operand(name, dtypes).with_flags(OperandFlags::OPTIONAL)
}

/// An operand of positions in the data.
fn index_operand(name: &'static str) -> OperandSpec {
    OperandSpec::new(INDEX_DTYPES).with_name(name)
}
