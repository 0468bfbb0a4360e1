//! The programs of a device: compiled when they are first needed, then kept in memory and on disk.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use oarlock_sdk::{Call, Result};

use crate::arguments::Arguments;
use crate::device::Gpus;
use crate::gpu::{Argument, Compiled, Gpu, Grid, Queue as _};
use crate::source::Variant;
use crate::store::{Key, Store};

/// The compiled programs of one device in use.
pub(crate) struct Programs<P>(RwLock<HashMap<Variant, Arc<P>>>);

// Written out, since a derived one would ask for a `P` that has a default too.
impl<P> Default for Programs<P> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<P> Programs<P> {
    /// The program of a variant, made if need be.
    fn get(&self, variant: &Variant, make: impl FnOnce() -> Result<P>) -> Result<Arc<P>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = known.get(variant) {
            return Ok(Arc::clone(program));
        }
        drop(known);
        // Two threads may compile one variant at the same time; that costs less than making others wait for a compiler.
        let program = Arc::new(make()?);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(known.entry(variant.clone()).or_insert(program)))
    }
}

/// A program of a source: of a binary that an earlier run left on disk, or compiled.
fn make<G: Gpu>(gpu: &G, store: &Store, source: &str) -> Result<G::Program> {
    if gpu.keeps_programs() {
        return Ok(gpu.compile(source, false)?.program);
    }
    let key = Key::new(source, &gpu.identity()?);
    if let Some(program) = store.read(&key).and_then(|binary| gpu.load(&binary).ok()) {
        return Ok(program);
    }
    let Compiled { program, binary } = gpu.compile(source, true)?;
    if let Some(binary) = binary {
        store.write(&key, &binary);
    }
    Ok(program)
}

/// Runs a variant for a call.
pub(crate) fn launch<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    variant: &Variant,
    groups: u32,
    arguments: &Arguments,
) -> Result<()> {
    let session = gpus.session(call.device())?;
    let queue = session.queue(call.stream())?;
    let program = session.programs.get(variant, || {
        let has_f64 = gpus.facts(call.device())?.has_f64;
        let source = variant.source(session.gpu().language(), has_f64);
        make(session.gpu(), gpus.store(), &source)
    })?;
    let grid = Grid { groups, block: variant.block() };
    let mut arguments = arguments.resolve(&session)?;
    if !variant.can_fail() {
        return queue.launch(&program, grid, &arguments);
    }
    let word = session.word(call.stream())?;
    arguments.push(Argument::Memory(Some(word.block.clone())));
    if call.stream().0 != 0 {
        queue.launch(&program, grid, &arguments)?;
        word.note_launch();
        return Ok(());
    }
    // In the device's own stream the kernel is done now, so that what it found is the failure of this call.
    let turn = word.turn();
    queue.launch(&program, grid, &arguments)?;
    word.note_launch();
    session.read_word(&word, word.launched(), &turn)
}
