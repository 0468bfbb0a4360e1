//! Plans by the shapes of the inputs that they are for.
//!
//! Most programs are run on inputs of one shape, which are compared with those of the first plan. Others, such as the
//! body of a loop over what grows, have thousands of small plans, which are found by a hash of the shapes. Finding a plan
//! takes no lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use oarlock_core::{Dims, Dtype, Result};

use crate::datum::Datum;
use crate::plan::Plan;
use crate::run::Arenas;

/// How many bytes the plans of a program may take, about,
const MOST_BYTES: usize = 64 << 20;
/// where there are more than so many.
const LEAST_PLANS: usize = 32;
/// How many plans are looked at to find one that nobody found again lately.
const TRIES: usize = 8;
/// How many lists the plans are in.
const LISTS: usize = 1 << LIST_BITS;
const LIST_BITS: u32 = 8;

/// The plans that there are.
#[derive(Default)]
pub(crate) struct Plans {
    /// The one that was made first. It stays.
    first: OnceLock<Arc<Planned>>,
    /// The others, by some bits of their hash.
    others: OnceLock<Box<[List]>>,
    /// Held while a plan is made, so that threads that want the same one make it once.
    making: Mutex<Making>,
    /// The memory that their runs use.
    arenas: Arenas,
}

/// Plans with their hashes.
type List = ArcSwapOption<Vec<(u64, Arc<Planned>)>>;

/// What is known of all plans but the first.
#[derive(Default)]
struct Making {
    all: Vec<Arc<Planned>>,
    bytes: usize,
}

/// A plan, and the inputs it is for.
pub(crate) struct Planned {
    inputs: Vec<Given>,
    hash: u64,
    bytes: usize,
    plan: Arc<Plan>,
    /// Whether anybody found it since it was last thought of giving it up.
    is_wanted: AtomicBool,
}

/// An input: dtype and shape, or nothing for what is no tensor.
type Given = Option<(Dtype, Dims)>;

impl Plans {
    /// The plan that was made first.
    pub(crate) fn first(&self) -> Option<Arc<Plan>> {
        self.first.get().map(|planned| planned.plan.clone())
    }

    /// Does something with the plan for inputs of these shapes, which is made where there is none.
    #[inline]
    pub(crate) fn with<T>(
        &self,
        inputs: &[Datum],
        make: impl FnOnce() -> Result<Arc<Plan>>,
        done: impl FnOnce(&Arc<Plan>, &Arenas) -> Result<T>,
    ) -> Result<T> {
        if let Some(first) = self.first.get().filter(|first| first.matches(inputs)) {
            first.want();
            return done(&first.plan, &self.arenas);
        }
        self.with_another(inputs, make, done)
    }

    /// The same with a plan that is not the first. It stands apart, so that what most runs do stays small.
    #[inline(never)]
    fn with_another<T>(
        &self,
        inputs: &[Datum],
        make: impl FnOnce() -> Result<Arc<Plan>>,
        done: impl FnOnce(&Arc<Plan>, &Arenas) -> Result<T>,
    ) -> Result<T> {
        let hash = hash_of(inputs);
        let list = self.others.get().map(|lists| lists[list_of(hash)].load());
        if let Some(planned) = list.as_ref().and_then(|list| found(list.as_ref()?, hash, inputs)) {
            planned.want();
            return done(&planned.plan, &self.arenas);
        }
        drop(list);
        done(&self.made(hash, inputs, make)?, &self.arenas)
    }

    #[cold]
    fn made(
        &self,
        hash: u64,
        inputs: &[Datum],
        make: impl FnOnce() -> Result<Arc<Plan>>,
    ) -> Result<Arc<Plan>> {
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have made it in the meantime.
        if let Some(first) = self.first.get().filter(|first| first.matches(inputs)) {
            return Ok(first.plan.clone());
        }
        let list = self.others.get().and_then(|lists| lists[list_of(hash)].load_full());
        if let Some(planned) = list.as_ref().and_then(|list| found(list, hash, inputs)) {
            return Ok(planned.plan.clone());
        }
        let plan = make()?;
        self.arenas.fit(&plan);
        let planned = Arc::new(Planned {
            inputs: inputs.iter().map(given).collect(),
            hash,
            bytes: plan.size(),
            plan: plan.clone(),
            is_wanted: AtomicBool::new(false),
        });
        if self.first.set(planned.clone()).is_err() {
            self.make_room(&mut making, planned.bytes, hash);
            self.change(hash, |list| list.push((hash, planned.clone())));
            making.bytes += planned.bytes;
            making.all.push(planned);
        }
        Ok(plan)
    }

    /// Gives plans up while they take too much. Chance chooses which, among those that nobody found again lately if there are
    /// some: whoever goes over more shapes than there is room for, again and again, would find none of them if it were always
    /// the oldest.
    fn make_room(&self, making: &mut Making, bytes: usize, mut dice: u64) {
        while making.all.len() >= LEAST_PLANS && making.bytes.saturating_add(bytes) > MOST_BYTES {
            let mut chosen = 0;
            for _ in 0..TRIES {
                dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                chosen = (dice >> 33) as usize % making.all.len();
                if !making.all[chosen].is_wanted.swap(false, Ordering::Relaxed) {
                    break;
                }
            }
            let given_up = making.all.swap_remove(chosen);
            making.bytes -= given_up.bytes;
            self.change(given_up.hash, |list| list.retain(|(_, planned)| !Arc::ptr_eq(planned, &given_up)));
        }
    }

    /// Puts another list into the place of the one of a hash.
    fn change(&self, hash: u64, change: impl FnOnce(&mut Vec<(u64, Arc<Planned>)>)) {
        let lists = self.others.get_or_init(|| (0..LISTS).map(|_| List::empty()).collect());
        let place = &lists[list_of(hash)];
        let mut list = place.load_full().map(|list| Vec::clone(&list)).unwrap_or_default();
        change(&mut list);
        place.store(Some(Arc::new(list)));
    }
}

impl Planned {
    #[inline]
    fn matches(&self, inputs: &[Datum]) -> bool {
        self.inputs.len() == inputs.len()
            && self.inputs.iter().zip(inputs).all(|(known, input)| match (known, input) {
                (Some((dtype, dims)), Datum::Tensor(tensor)) => {
                    *dtype == tensor.dtype() && dims.as_slice() == tensor.dims()
                }
                (None, Datum::Tensor(_)) => false,
                (known, _) => known.is_none(),
            })
    }

    /// Notes that somebody found it. Threads that share a plan mostly read this.
    #[inline]
    fn want(&self) {
        if !self.is_wanted.load(Ordering::Relaxed) {
            self.is_wanted.store(true, Ordering::Relaxed);
        }
    }
}

/// The plan for inputs of a hash, if it is in a list.
fn found<'a>(list: &'a [(u64, Arc<Planned>)], hash: u64, inputs: &[Datum]) -> Option<&'a Planned> {
    let mut same = list.iter().filter(|(own, _)| *own == hash).map(|(_, planned)| &**planned);
    same.find(|planned| planned.matches(inputs))
}

fn given(input: &Datum) -> Given {
    let Datum::Tensor(tensor) = input else { return None };
    Some((tensor.dtype(), tensor.dims().into()))
}

/// A number that is the same for inputs of the same dtypes and shapes, and seldom for others. Whoever chooses shapes of the
/// same number makes finding their plans as slow as comparing with each.
fn hash_of(inputs: &[Datum]) -> u64 {
    let mut hash = 0u64;
    let mut add = |number: u64| hash = (hash.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for input in inputs {
        let Datum::Tensor(tensor) = input else {
            add(u64::MAX);
            continue;
        };
        add(tensor.dtype() as u64);
        tensor.dims().iter().for_each(|dim| add(dim.cast_unsigned()));
    }
    hash
}

/// The list of a hash, whose upper bits are the best mixed.
fn list_of(hash: u64) -> usize {
    (hash >> (u64::BITS - LIST_BITS)) as usize
}
