//! The kernels. Each says which operands it takes, and the host calls it with no others.
//!
//! All are asynchronous: they put their work into the stream of the call and return. What `call` refers to holds until then, so
//! the work takes along what it needs. A real driver would enqueue a launch here.

use std::sync::Arc;

use oarlock_sdk::{
    Dtype, Kernel, KernelCall, KernelFlags, MemoryRange, OperandSpec, Result, TensorView, dtype_set, ensure,
    shape,
};

use crate::SampleNpu;
use crate::memory::DeviceMemory;

pub fn all_kernels() -> Vec<Kernel<SampleNpu>> {
    let float = OperandSpec::new(dtype_set(&[Dtype::F32]));
    let (matrix, rows) = (float.with_rank(2, 2), float.with_rank(1, u32::MAX));
    let flags = KernelFlags::ASYNCHRONOUS | KernelFlags::DETERMINISTIC;
    let binary = |op: &str, compute: fn(f32, f32) -> f32| {
        let run = move |npu: &SampleNpu, call: &KernelCall<'_>| run_binary(npu, call, compute);
        Kernel::new(op, run).since_version(7).with_inputs([float.with_name("A"), float.with_name("B")])
    };
    let kernels = [
        binary("Add", |a, b| a + b).with_outputs([float.with_name("C")]),
        binary("Sub", |a, b| a - b).with_outputs([float.with_name("C")]),
        binary("Mul", |a, b| a * b).with_outputs([float.with_name("C")]),
        Kernel::new("Relu", run_relu)
            .since_version(6)
            .with_inputs([float.with_name("X")])
            .with_outputs([float.with_name("Y")])
            .with_in_place(0, 0),
        Kernel::new_prepared("MatMul", prepare_matmul)
            .with_inputs([matrix.with_name("A"), matrix.with_name("B")])
            .with_outputs([matrix.with_name("Y")]),
        Kernel::new("Softmax", run_softmax)
            .since_version(13)
            .with_inputs([rows.with_name("input")])
            .with_outputs([rows.with_name("output")])
            .with_support_check(|_, call| check_softmax_axis(call))
            .with_workspace(|_, call| row_sums(call).map(|sums| sums.size)),
    ];
    kernels.into_iter().map(|kernel| kernel.with_flags(flags)).collect()
}

fn range(operand: &TensorView<'_>) -> MemoryRange {
    let (memory, offset) = operand.memory_location();
    MemoryRange { memory, offset, size: operand.size_in_bytes() }
}

fn load(memory: &DeviceMemory, range: MemoryRange) -> Result<Vec<f32>> {
    Ok(memory.read(range)?.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect())
}

fn store(memory: &DeviceMemory, range: MemoryRange, values: &[f32]) -> Result<()> {
    memory.write(range, &values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>())
}

/// Element by element, with broadcasting.
fn run_binary(npu: &SampleNpu, call: &KernelCall<'_>, compute: fn(f32, f32) -> f32) -> Result<()> {
    let (a, b, c) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let (places_a, places_b) = (broadcast(a.dims(), c.dims()), broadcast(b.dims(), c.dims()));
    let (memory, a, b, c) = (Arc::clone(&npu.memory), range(&a), range(&b), range(&c));
    npu.streams.launch(call.stream(), move || {
        let (a, b) = (load(&memory, a)?, load(&memory, b)?);
        let sums = places_a.iter().zip(&places_b).map(|(i, j)| compute(a[*i], b[*j]));
        store(&memory, c, &sums.collect::<Vec<f32>>())
    })
}

/// For each element of an output, the place of the element of an input: a dimension of size 1 is repeated.
fn broadcast(from: &[i64], to: &[i64]) -> Vec<usize> {
    let missing = to.len() - from.len();
    let place_of = |mut index: i64| {
        let (mut place, mut step) = (0, 1);
        for dim in (missing..to.len()).rev() {
            let size = from[dim - missing];
            place += index % to[dim] % size * step;
            (index, step) = (index / to[dim], step * size);
        }
        place as usize
    };
    (0..to.iter().product()).map(place_of).collect()
}

fn run_relu(npu: &SampleNpu, call: &KernelCall<'_>) -> Result<()> {
    let (memory, x, y) = (Arc::clone(&npu.memory), range(&call.input(0)?), range(&call.output(0)?));
    npu.streams.launch(call.stream(), move || {
        // `max` would turn NaN into 0.
        let values = load(&memory, x)?.into_iter().map(|value| if value < 0.0 { 0.0 } else { value });
        store(&memory, y, &values.collect::<Vec<f32>>())
    })
}

type RunFunction = dyn Fn(&SampleNpu, &KernelCall<'_>) -> Result<()> + Send + Sync;

/// Runs once for each call site. What is constant may be packed: here B by columns, as the chip reads it. Constants lie in the
/// memory of the device, as all operands do. Several threads may use what this returns at once (K-4).
fn prepare_matmul(npu: &SampleNpu, call: &KernelCall<'_>) -> Result<Arc<RunFunction>> {
    let b = call.input(1)?;
    let packed = if b.is_constant() { Some(Arc::new(pack(&npu.memory, range(&b), b.dims())?)) } else { None };
    call.describe_kernel(if packed.is_some() { "B packed" } else { "B as it is" });
    Ok(Arc::new(move |npu, call| run_matmul(npu, call, packed.clone())))
}

fn pack(memory: &DeviceMemory, range: MemoryRange, dims: &[i64]) -> Result<Vec<f32>> {
    let (rows, columns) = (dims[0] as usize, dims[1] as usize);
    let values = load(memory, range)?;
    Ok((0..columns * rows).map(|place| values[place % rows * columns + place / rows]).collect())
}

fn run_matmul(npu: &SampleNpu, call: &KernelCall<'_>, packed: Option<Arc<Vec<f32>>>) -> Result<()> {
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let (dims, count) = (b.dims().to_vec(), y.element_count()?);
    let (memory, a, b, y) = (Arc::clone(&npu.memory), range(&a), range(&b), range(&y));
    npu.streams.launch(call.stream(), move || {
        let (depth, columns) = (dims[0] as usize, dims[1] as usize);
        let a = load(&memory, a)?;
        let b = packed.map_or_else(|| pack(&memory, b, &dims).map(Arc::new), Ok)?;
        let dot = |place: usize| {
            let (row, column) = (&a[place / columns * depth..], &b[place % columns * depth..]);
            row[..depth].iter().zip(column).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() as f32
        };
        store(&memory, y, &(0..count).map(dot).collect::<Vec<f32>>())
    })
}

/// Declines calls that the operands alone do not rule out. An attribute with a default in the schema may be absent.
fn check_softmax_axis(call: &KernelCall<'_>) -> Result<()> {
    let rank = call.input(0)?.dims().len();
    let axis = shape::resolve_axis(call.int_attribute("axis")?.unwrap_or(-1), rank)?;
    ensure!(axis + 1 == rank, unimplemented, "expected the last axis, {}, found {axis}", rank - 1);
    Ok(())
}

/// Scratch memory that the host allocates on the device: here for the sum of each row.
fn row_sums(call: &KernelCall<'_>) -> Result<MemoryRange> {
    let (x, (memory, offset, _)) = (call.input(0)?, call.workspace());
    let rows = shape::element_count(&x.dims()[..x.dims().len() - 1])?;
    Ok(MemoryRange { memory, offset, size: if x.size_in_bytes() == 0 { 0 } else { rows as u64 * 4 } })
}

fn run_softmax(npu: &SampleNpu, call: &KernelCall<'_>) -> Result<()> {
    let (x, sums, memory) = (call.input(0)?, row_sums(call)?, Arc::clone(&npu.memory));
    let width = x.dims()[x.dims().len() - 1].max(1) as usize;
    let (x, y) = (range(&x), range(&call.output(0)?));
    npu.streams.launch(call.stream(), move || {
        let mut values = load(&memory, x)?;
        let exponentials = |row: &mut [f32]| {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            row.iter_mut().for_each(|value| *value = (*value - largest).exp());
            row.iter().sum::<f32>()
        };
        let totals: Vec<f32> = values.chunks_mut(width).map(exponentials).collect();
        store(&memory, sums, &totals)?;
        for (row, total) in values.chunks_mut(width).zip(load(&memory, sums)?) {
            row.iter_mut().for_each(|value| *value /= total);
        }
        store(&memory, y, &values)
    })
}
