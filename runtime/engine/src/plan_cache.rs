//! Plans by the shapes of the inputs that they are for.
//!
//! Most programs are run on inputs of one shape, which are compared with those of the first plan. Others, such as the
//! body of a loop over what grows, have thousands of small plans, which are found by a hash of the shapes. Finding a plan
//! takes no lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use oarlock_core::{Dims, Dtype, Result};

use crate::plan::ExecutionPlan;
use crate::run::ArenaPool;
use crate::runtime_value::RuntimeValue;

/// How many bytes the plans of a program may take, about,
const MOST_CACHED_BYTES: usize = 64 << 20;
/// where there are more than so many.
const LEAST_CACHED_PLANS: usize = 32;
/// How many plans are looked at to find one that nobody found again lately.
const EVICTION_TRIES: usize = 8;
/// How many lists the plans are in.
const BUCKETS: usize = 1 << BUCKET_BITS;
const BUCKET_BITS: u32 = 8;

/// The plans that there are.
#[derive(Default)]
pub(crate) struct PlanCache {
    /// The one that was made first. It stays.
    first: OnceLock<Arc<CachedPlan>>,
    /// The others, by some bits of their hash.
    others: OnceLock<Box<[PlanBucket]>>,
    /// Held while a plan is made, so that threads that want the same one make it once.
    making: Mutex<PlanCacheState>,
    /// The memory that their runs use.
    arenas: ArenaPool,
}

/// Plans with their hashes.
type PlanBucket = ArcSwapOption<Vec<(u64, Arc<CachedPlan>)>>;

/// What is known of all plans but the first.
#[derive(Default)]
struct PlanCacheState {
    all: Vec<Arc<CachedPlan>>,
    bytes: usize,
}

/// A plan, and the inputs it is for.
pub(crate) struct CachedPlan {
    inputs: Vec<InputKey>,
    hash: u64,
    bytes: usize,
    plan: Arc<ExecutionPlan>,
    /// Whether anybody found it since it was last thought of giving it up.
    is_wanted: AtomicBool,
}

/// An input: dtype and shape, or nothing for what is no tensor.
type InputKey = Option<(Dtype, Dims)>;

impl PlanCache {
    /// The plan that was made first.
    pub(crate) fn first_plan(&self) -> Option<Arc<ExecutionPlan>> {
        self.first.get().map(|planned| planned.plan.clone())
    }

    /// Does something with the plan for inputs of these shapes, which is made where there is none.
    #[inline]
    pub(crate) fn with_plan<T>(
        &self,
        inputs: &[RuntimeValue],
        make: impl FnOnce() -> Result<Arc<ExecutionPlan>>,
        done: impl FnOnce(&Arc<ExecutionPlan>, &ArenaPool) -> Result<T>,
    ) -> Result<T> {
        if let Some(first) = self.first.get().filter(|first| first.matches_inputs(inputs)) {
            first.mark_wanted();
            return done(&first.plan, &self.arenas);
        }
        self.with_other_plan(inputs, make, done)
    }

    /// The same with a plan that is not the first. It stands apart, so that what most runs do stays small.
    #[inline(never)]
    fn with_other_plan<T>(
        &self,
        inputs: &[RuntimeValue],
        make: impl FnOnce() -> Result<Arc<ExecutionPlan>>,
        done: impl FnOnce(&Arc<ExecutionPlan>, &ArenaPool) -> Result<T>,
    ) -> Result<T> {
        let hash = hash_inputs(inputs);
        let list = self.others.get().map(|lists| lists[bucket_of(hash)].load());
        if let Some(planned) = list.as_ref().and_then(|list| find_in_bucket(list.as_ref()?, hash, inputs)) {
            planned.mark_wanted();
            return done(&planned.plan, &self.arenas);
        }
        drop(list);
        done(&self.get_or_make(hash, inputs, make)?, &self.arenas)
    }

    #[cold]
    fn get_or_make(
        &self,
        hash: u64,
        inputs: &[RuntimeValue],
        make: impl FnOnce() -> Result<Arc<ExecutionPlan>>,
    ) -> Result<Arc<ExecutionPlan>> {
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have made it in the meantime.
        if let Some(first) = self.first.get().filter(|first| first.matches_inputs(inputs)) {
            return Ok(first.plan.clone());
        }
        let list = self.others.get().and_then(|lists| lists[bucket_of(hash)].load_full());
        if let Some(planned) = list.as_ref().and_then(|list| find_in_bucket(list, hash, inputs)) {
            return Ok(planned.plan.clone());
        }
        let plan = make()?;
        self.arenas.shrink_to_plan(&plan);
        let planned = Arc::new(CachedPlan {
            inputs: inputs.iter().map(input_key).collect(),
            hash,
            bytes: plan.size_in_bytes(),
            plan: plan.clone(),
            is_wanted: AtomicBool::new(false),
        });
        if self.first.set(planned.clone()).is_err() {
            self.evict_plans(&mut making, planned.bytes, hash);
            self.update_bucket(hash, |list| list.push((hash, planned.clone())));
            making.bytes += planned.bytes;
            making.all.push(planned);
        }
        Ok(plan)
    }

    /// Gives plans up while they take too much. Chance chooses which, among those that nobody found again lately if there are
    /// some: whoever goes over more shapes than there is room for, again and again, would find none of them if it were always
    /// the oldest.
    fn evict_plans(&self, making: &mut PlanCacheState, bytes: usize, mut dice: u64) {
        while making.all.len() >= LEAST_CACHED_PLANS && making.bytes.saturating_add(bytes) > MOST_CACHED_BYTES
        {
            let mut chosen = 0;
            for _ in 0..EVICTION_TRIES {
                dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                chosen = (dice >> 33) as usize % making.all.len();
                if !making.all[chosen].is_wanted.swap(false, Ordering::Relaxed) {
                    break;
                }
            }
            let given_up = making.all.swap_remove(chosen);
            making.bytes -= given_up.bytes;
            self.update_bucket(given_up.hash, |list| {
                list.retain(|(_, planned)| !Arc::ptr_eq(planned, &given_up));
            });
        }
    }

    /// Puts another list into the place of the one of a hash.
    fn update_bucket(&self, hash: u64, change: impl FnOnce(&mut Vec<(u64, Arc<CachedPlan>)>)) {
        let lists = self.others.get_or_init(|| (0..BUCKETS).map(|_| PlanBucket::empty()).collect());
        let place = &lists[bucket_of(hash)];
        let mut list = place.load_full().map(|list| Vec::clone(&list)).unwrap_or_default();
        change(&mut list);
        place.store(Some(Arc::new(list)));
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

    /// Notes that somebody found it. Threads that share a plan mostly read this.
    #[inline]
    fn mark_wanted(&self) {
        if !self.is_wanted.load(Ordering::Relaxed) {
            self.is_wanted.store(true, Ordering::Relaxed);
        }
    }
}

/// The plan for inputs of a hash, if it is in a list.
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

/// A number that is the same for inputs of the same dtypes and shapes, and seldom for others. Whoever chooses shapes of the
/// same number makes finding their plans as slow as comparing with each.
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

/// The list of a hash, whose upper bits are the best mixed.
fn bucket_of(hash: u64) -> usize {
    (hash >> (u64::BITS - BUCKET_BITS)) as usize
}
