//! Pools the memory for intermediate values.
//!
//! All plans of a graph take turns on the same memory, so many plans need no more than the largest one, and a run finds its
//! arena still in cache from the last. Concurrent runs each have an arena of their own.

use crossbeam_queue::ArrayQueue;
use oarlock_core::memory::DeviceAllocation;
use oarlock_core::{Device, Error, ErrorKind, Result};

use crate::plan::{ArenaRange, ExecutionPlan};

/// Limit on pooled arena sets; those of further concurrent runs are freed.
const MAX_POOLED_RUNS: usize = 64;
/// Pooled memory is freed if a new plan needs less than a quarter of it and it exceeds this many bytes.
const OVERSIZE_FACTOR: u64 = 4;
const SMALL_ARENA_BYTES: u64 = 1 << 20;

pub(crate) struct ArenaPool(ArrayQueue<Vec<RunArena>>);

/// One allocation on a device.
pub(super) struct RunArena {
    device: Device,
    pub(super) memory: DeviceAllocation,
}

impl Default for ArenaPool {
    fn default() -> Self {
        Self(ArrayQueue::new(MAX_POOLED_RUNS))
    }
}

impl ArenaPool {
    /// Takes memory for a run: the plan's arenas come first, in order. There may be more behind them.
    #[inline]
    pub(super) fn take_arenas(&self, plan: &ExecutionPlan) -> Result<Vec<RunArena>> {
        let left = self.0.pop().unwrap_or_default();
        let fits = left.len() >= plan.arenas.len() && plan.arenas.iter().zip(&left).all(is_large_enough);
        if fits { Ok(left) } else { allocate_arenas(plan, left) }
    }

    #[inline]
    pub(super) fn return_arenas(&self, arenas: Vec<RunArena>) {
        _ = self.0.push(arenas);
    }

    /// Frees memory far larger than a new plan needs; the new plan is more likely to run next than an old one.
    pub(crate) fn shrink_to_plan(&self, plan: &ExecutionPlan) {
        let needed = plan.arenas.iter().map(|(_, size)| *size).fold(SMALL_ARENA_BYTES, u64::saturating_add);
        for _ in 0..self.0.len() {
            let Some(left) = self.0.pop() else { return };
            let size: u64 = left.iter().map(|arena| arena.memory.requested_size()).sum();
            if size / OVERSIZE_FACTOR <= needed {
                self.return_arenas(left);
            }
        }
    }
}

fn is_large_enough(((device, size), arena): (&(Device, u64), &RunArena)) -> bool {
    arena.memory.requested_size() >= *size && arena.device.is_same_device(device)
}

/// Allocates the arenas that the pooled set lacks. Pooled arenas that are too small are freed first, so that their memory can
/// be reused.
#[cold]
fn allocate_arenas(plan: &ExecutionPlan, mut left: Vec<RunArena>) -> Result<Vec<RunArena>> {
    let mut arenas = Vec::with_capacity(plan.arenas.len());
    for (index, arena) in plan.arenas.iter().enumerate() {
        if let Some(at) = left.iter().position(|left| is_large_enough((arena, left))) {
            arenas.push(left.swap_remove(at));
            continue;
        }
        let (device, size) = arena;
        left.retain(|left| !left.device.is_same_device(device));
        let taken = device.memory_pool()?.allocate(*size, device.default_stream()?.id(), "model");
        let memory = taken.map_err(|error| match error.kind() {
            ErrorKind::ResourceExhausted => out_of_memory(plan, index, &error),
            _ => error,
        })?;
        arenas.push(RunArena { device: device.clone(), memory });
    }
    arenas.append(&mut left);
    Ok(arenas)
}

/// An out-of-memory error that names the largest value in the arena.
#[cold]
fn out_of_memory(plan: &ExecutionPlan, arena: usize, error: &Error) -> Error {
    let arena_slots_so_far = plan.arena_ranges().into_iter().filter(|arena_slot| arena_slot.arena == arena);
    let largest = arena_slots_so_far.max_by_key(|arena_slot| arena_slot.size);
    let (value, node) = match &largest {
        Some(ArenaRange { value, size, steps, .. }) => {
            let value = if value.is_empty() { "scratch memory".to_owned() } else { format!("`{value}`") };
            let node = plan.steps.get(steps.0).map(|step| &plan.graph.nodes[step.node]);
            (format!("the largest of which is {value} of {size} bytes"), node)
        }
        None => ("none of which is large".to_owned(), None),
    };
    let mut failure = Error::new(
        error.kind(),
        format!("expected memory for the values of a run, {value}: {}", error.message()),
    );
    if let Some(node) = node {
        failure = failure.with_op(&node.op).with_node(&node.name);
    }
    if let Some(device) = error.device() {
        failure = failure.with_device(device);
    }
    match error.advice() {
        Some(advice) => failure.with_advice(advice),
        None => failure,
    }
}
