//! `ByteMap` of the domain `oarlock`: looks up each 8-bit value in a table. It replaces elementwise ops between 8-bit values.

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{element_bytes, element_bytes_mut};
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandSpec, PluginError, Result, dtype_set, ensure,
};

use super::byte_table::{VALUES, look_up_bytes};

const BYTES: DtypeSet = dtype_set(&[Dtype::U8, Dtype::I8]);

pub(super) fn byte_map_kernel() -> Kernel<Cpu> {
    let values = OperandSpec::new(BYTES).with_dtype_group(1);
    Kernel::new("ByteMap", map_bytes)
        .with_domain(OARLOCK_DOMAIN)
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs([OperandSpec::new(BYTES).with_name("X"), values.with_name("table")])
        .with_outputs([values.with_name("Y")])
}

fn map_bytes(cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    let [x, table] = [call.input(0)?, call.input(1)?].map(|operand| element_bytes::<1>(&operand));
    let (x, table) = (x?.as_flattened(), table?.as_flattened());
    let y = element_bytes_mut::<1>(&call.output(0)?)?.as_flattened_mut();
    ensure!(
        x.len() == y.len(),
        invalid_argument,
        "expected as many results as elements, found {} and {}",
        y.len(),
        x.len()
    );
    let table = <&[u8; VALUES]>::try_from(table).map_err(|_| {
        PluginError::invalid_argument(format!("expected a table of {VALUES} values, found {}", table.len()))
    })?;
    let count = y.len();
    parallel_for_parts(cpu, count, grain_for(1), OutputRows::new(y, 1), |begin, y| {
        look_up_bytes(cpu.isa(), table, &x[begin..][..y.len()], y);
    });
    Ok(())
}
