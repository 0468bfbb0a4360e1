//! Plans, cached by the input shapes they were built for.
//!
//! Most graphs only ever see one input shape, so inputs are first compared with those of the first plan. Others, such as the
//! body of a loop over a growing tensor, have thousands of small plans, which are found by a hash of the shapes. A lookup takes
//! no lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use oarlock_core::{Dims, Dtype, Result};

use super::runnable_plan::RunnablePlan;
use crate::run::arena_pool::ArenaPool;
use crate::runtime_value::RuntimeValue;

/// The approximate memory limit for the plans of one graph.
const MAX_CACHED_BYTES: usize = 64 << 20;
/// The memory limit applies only when there are this many plans.
const MIN_CACHED_PLANS: usize = 32;
/// Random candidates tried for one that was not used lately.
const EVICTION_TRIES: usize = 8;
/// Number of hash buckets; each is replaced as a whole, so small buckets keep insertion cheap.
const BUCKETS: usize = 1 << BUCKET_BITS;
const BUCKET_BITS: u32 = 8;

#[derive(Default)]
pub(crate) struct PlanCache {
    /// The plan that was built first. It is never evicted.
    first: OnceLock<Arc<CachedPlan>>,
    /// All other plans, by the upper bits of their hash.
    others: OnceLock<Box<[PlanBucket]>>,
    /// Held while a plan is built, so that threads that need the same one build it once.
    state: Mutex<PlanCacheState>,
    /// Arenas that runs of all these plans share.
    arenas: ArenaPool,
}

type PlanBucket = ArcSwapOption<Vec<(u64, Arc<CachedPlan>)>>;

/// Bookkeeping for every plan but the first.
#[derive(Default)]
struct PlanCacheState {
    all: Vec<Arc<CachedPlan>>,
    bytes: usize,
}

/// A plan and the inputs it was built for.
pub(crate) struct CachedPlan {
    inputs: Vec<InputKey>,
    hash: u64,
    bytes: usize,
    plan: Arc<RunnablePlan>,
    /// Set by every lookup, cleared when eviction passes the plan over.
    was_used: AtomicBool,
}

/// Dtype and shape of an input; `None` if it is not a tensor.
type InputKey = Option<(Dtype, Dims)>;

impl PlanCache {
    pub(crate) fn first_plan(&self) -> Option<Arc<RunnablePlan>> {
        self.first.get().map(|planned| planned.plan.clone())
    }

    /// Calls `use_plan` with the plan for inputs of these shapes, building it if there is none.
    #[inline]
    pub(crate) fn with_plan<T>(
        &self,
        inputs: &[RuntimeValue],
        build: impl FnOnce() -> Result<Arc<RunnablePlan>>,
        use_plan: impl FnOnce(&Arc<RunnablePlan>, &ArenaPool) -> Result<T>,
    ) -> Result<T> {
        if let Some(first) = self.first.get().filter(|first| first.matches_inputs(inputs)) {
            first.mark_used();
            return use_plan(&first.plan, &self.arenas);
        }
        self.with_other_plan(inputs, build, use_plan)
    }

    /// The slow path: any plan but the first. Not inlined, to keep the common path small.
    #[inline(never)]
    fn with_other_plan<T>(
        &self,
        inputs: &[RuntimeValue],
        build: impl FnOnce() -> Result<Arc<RunnablePlan>>,
        use_plan: impl FnOnce(&Arc<RunnablePlan>, &ArenaPool) -> Result<T>,
    ) -> Result<T> {
        let hash = hash_inputs(inputs);
        let list = self.others.get().map(|lists| lists[bucket_of(hash)].load());
        if let Some(planned) = list.as_ref().and_then(|list| find_in_bucket(list.as_ref()?, hash, inputs)) {
            planned.mark_used();
            return use_plan(&planned.plan, &self.arenas);
        }
        drop(list);
        use_plan(&self.get_or_build(hash, inputs, build)?, &self.arenas)
    }

    #[cold]
    fn get_or_build(
        &self,
        hash: u64,
        inputs: &[RuntimeValue],
        build: impl FnOnce() -> Result<Arc<RunnablePlan>>,
    ) -> Result<Arc<RunnablePlan>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have built it in the meantime.
        if let Some(first) = self.first.get().filter(|first| first.matches_inputs(inputs)) {
            return Ok(first.plan.clone());
        }
        let list = self.others.get().and_then(|lists| lists[bucket_of(hash)].load_full());
        if let Some(planned) = list.as_ref().and_then(|list| find_in_bucket(list, hash, inputs)) {
            return Ok(planned.plan.clone());
        }
        let plan = build()?;
        self.arenas.shrink_to_plan(&plan.plan);
        let planned = Arc::new(CachedPlan {
            inputs: inputs.iter().map(input_key).collect(),
            hash,
            bytes: plan.plan.size_in_bytes(),
            plan: plan.clone(),
            was_used: AtomicBool::new(false),
        });
        if self.first.set(planned.clone()).is_err() {
            self.evict_plans(&mut state, planned.bytes, hash);
            self.update_bucket(hash, |list| list.push((hash, planned.clone())));
            state.bytes += planned.bytes;
            state.all.push(planned);
        }
        Ok(plan)
    }

    /// Evicts plans while they take too much memory. The victim is random, preferring plans that were not found lately: with
    /// strict LRU, a caller that cycles through more shapes than fit would miss on every one.
    fn evict_plans(&self, state: &mut PlanCacheState, bytes: usize, mut dice: u64) {
        while state.all.len() >= MIN_CACHED_PLANS && state.bytes.saturating_add(bytes) > MAX_CACHED_BYTES {
            let mut chosen = 0;
            for _ in 0..EVICTION_TRIES {
                dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                chosen = (dice >> 33) as usize % state.all.len();
                if !state.all[chosen].was_used.swap(false, Ordering::Relaxed) {
                    break;
                }
            }
            let evicted = state.all.swap_remove(chosen);
            state.bytes -= evicted.bytes;
            self.update_bucket(evicted.hash, |list| {
                list.retain(|(_, planned)| !Arc::ptr_eq(planned, &evicted));
            });
        }
    }

    /// Publishes a changed copy of a bucket. Readers keep the old list until they drop it.
    fn update_bucket(&self, hash: u64, change: impl FnOnce(&mut Vec<(u64, Arc<CachedPlan>)>)) {
        let lists = self.others.get_or_init(|| (0..BUCKETS).map(|_| PlanBucket::empty()).collect());
        let bucket = &lists[bucket_of(hash)];
        let mut list = bucket.load_full().map(|list| Vec::clone(&list)).unwrap_or_default();
        change(&mut list);
        bucket.store(Some(Arc::new(list)));
    }
}

impl CachedPlan {
    #[inline]
    fn matches_inputs(&self, inputs: &[RuntimeValue]) -> bool {
        self.inputs.len() == inputs.len()
            && self.inputs.iter().zip(inputs).all(|(known, input)| match (known, input) {
                (Some((dtype, dims)), RuntimeValue::Tensor(tensor)) => {
                    *dtype == tensor.dtype() && dims.as_slice() == tensor.dims()
                }
                (None, RuntimeValue::Tensor(_)) => false,
                (known, _) => known.is_none(),
            })
    }

    /// Marks the plan as used. It loads before it stores, so that the cache line stays shared between threads that use the
    /// plan.
    #[inline]
    fn mark_used(&self) {
        if !self.was_used.load(Ordering::Relaxed) {
            self.was_used.store(true, Ordering::Relaxed);
        }
    }
}

fn find_in_bucket<'a>(
    list: &'a [(u64, Arc<CachedPlan>)],
    hash: u64,
    inputs: &[RuntimeValue],
) -> Option<&'a CachedPlan> {
    let mut same = list.iter().filter(|(own, _)| *own == hash).map(|(_, planned)| &**planned);
    same.find(|planned| planned.matches_inputs(inputs))
}

fn input_key(input: &RuntimeValue) -> InputKey {
    let RuntimeValue::Tensor(tensor) = input else { return None };
    Some((tensor.dtype(), tensor.dims().into()))
}

/// Hashes dtypes and shapes. Not collision-resistant: an adversary who chooses colliding shapes makes a lookup as slow as a
/// linear search, but not wrong, as the shapes are compared too.
fn hash_inputs(inputs: &[RuntimeValue]) -> u64 {
    let mut hash = 0u64;
    let mut add = |number: u64| hash = (hash.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for input in inputs {
        let RuntimeValue::Tensor(tensor) = input else {
            add(u64::MAX);
            continue;
        };
        add(tensor.dtype() as u64);
        tensor.dims().iter().for_each(|dim| add(dim.cast_unsigned()));
    }
    hash
}

/// Takes the upper bits, which the multiplication mixes best.
fn bucket_of(hash: u64) -> usize {
    (hash >> (u64::BITS - BUCKET_BITS)) as usize
}
