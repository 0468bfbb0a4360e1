//! The memory for what lives only within a run.
//!
//! All plans of a program use the same memory in turns, so that many plans take no more than the largest of them, and what
//! one run wrote is still in the cache for the next. Runs at the same time each have their own.

use crossbeam_queue::ArrayQueue;
use oarlock_core::memory::Allocation;
use oarlock_core::{Device, Error, ErrorKind, Result};

use crate::plan::{Lodging, Plan};

/// How many runs at the same time may leave their memory to later ones. That of more is given back.
const MOST_RUNS: usize = 64;
/// Memory is given back when a new plan needs less than such a part of it, and it is more than so many bytes.
const UNUSED: u64 = 4;
const LITTLE_BYTES: u64 = 1 << 20;

/// The memory that runs of a program left for the next ones.
pub(crate) struct Arenas(ArrayQueue<Vec<Arena>>);

/// Memory of a device.
pub(super) struct Arena {
    device: Device,
    pub(super) memory: Allocation,
}

impl Default for Arenas {
    fn default() -> Self {
        Self(ArrayQueue::new(MOST_RUNS))
    }
}

impl Arenas {
    /// Memory for a run of a plan: its arenas come first, in their order.
    #[inline]
    pub(super) fn take(&self, plan: &Plan) -> Result<Vec<Arena>> {
        let left = self.0.pop().unwrap_or_default();
        let fits = left.len() >= plan.arenas.len() && plan.arenas.iter().zip(&left).all(is_enough);
        if fits { Ok(left) } else { taken(plan, left) }
    }

    /// Leaves it to the next run.
    #[inline]
    pub(super) fn leave(&self, arenas: Vec<Arena>) {
        _ = self.0.push(arenas);
    }

    /// Gives back what is much more than a new plan needs, which is more likely to run next than an old one.
    pub(crate) fn fit(&self, plan: &Plan) {
        let needed = plan.arenas.iter().map(|(_, size)| *size).fold(LITTLE_BYTES, u64::saturating_add);
        for _ in 0..self.0.len() {
            let Some(left) = self.0.pop() else { return };
            let size: u64 = left.iter().map(|arena| arena.memory.size()).sum();
            if size / UNUSED <= needed {
                self.leave(left);
            }
        }
    }
}

fn is_enough(((device, size), arena): (&(Device, u64), &Arena)) -> bool {
    arena.memory.size() >= *size && arena.device.is(device)
}

/// The arenas of a plan, of what is left where it is enough, and else of the pools. What is too small goes back there
/// first.
#[cold]
fn taken(plan: &Plan, mut left: Vec<Arena>) -> Result<Vec<Arena>> {
    let mut arenas = Vec::with_capacity(plan.arenas.len());
    for (index, arena) in plan.arenas.iter().enumerate() {
        if let Some(at) = left.iter().position(|left| is_enough((arena, left))) {
            arenas.push(left.swap_remove(at));
            continue;
        }
        let (device, size) = arena;
        left.retain(|left| !left.device.is(device));
        let taken = device.pool()?.allocate(*size, device.stream()?.id(), "model");
        let memory = taken.map_err(|error| match error.kind() {
            ErrorKind::ResourceExhausted => shortage(plan, index, &error),
            _ => error,
        })?;
        arenas.push(Arena { device: device.clone(), memory });
    }
    arenas.append(&mut left);
    Ok(arenas)
}

/// The error of an arena that there is no memory for: it says which value takes the most of it.
#[cold]
fn shortage(plan: &Plan, arena: usize, error: &Error) -> Error {
    let lodgings = plan.lodgings().into_iter().filter(|lodging| lodging.arena == arena);
    let largest = lodgings.max_by_key(|lodging| lodging.size);
    let (value, node) = match &largest {
        Some(Lodging { value, size, steps, .. }) => {
            let value = if value.is_empty() { "scratch memory".to_owned() } else { format!("`{value}`") };
            let node = plan.steps.get(steps.0).map(|step| &plan.graph.nodes[step.node]);
            (format!("the largest of which is {value} of {size} bytes"), node)
        }
        None => ("none of which is large".to_owned(), None),
    };
    let mut told = Error::new(
        error.kind(),
        format!("expected memory for the values of a run, {value}: {}", error.message()),
    );
    if let Some(node) = node {
        told = told.of_op(&node.op).of_node(&node.name);
    }
    if let Some(device) = error.device() {
        told = told.on_device(device);
    }
    match error.advice() {
        Some(advice) => told.hint(advice),
        None => told,
    }
}
