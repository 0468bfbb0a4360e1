//! What all programs of a session share.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::{Constant, Device, Dims, Dtype, Result, Runtime, Tensor};

use crate::fallback::FallbackPolicy;
use crate::graph::{Graph, Weight};
use crate::import;
use crate::passes::{PassContext, PassTrace, weight_to_tensor};
use crate::precision::PrecisionMode;
use crate::progress::PrepareProgressListener;
use crate::run::StepBudget;

/// The runtime, the devices, and the constants that are on them.
pub(crate) struct SessionEnvironment {
    pub(crate) runtime: Arc<Runtime>,
    /// Where nodes run: each on the first of these that has a kernel for it, but for what stays on the host.
    pub(crate) devices: Vec<Device>,
    /// Where constants are computed, and what controls the run.
    pub(crate) host: Device,
    /// Who is told how far plans are.
    pub(crate) progress: PrepareProgressListener,
    /// The places of the constants of the model itself. What plans compute besides is theirs, and goes with them.
    lasting: HashSet<usize>,
    /// Large constants, which several plans share, each with what it was made of.
    constants: Mutex<HashMap<ConstantKey, (Weight, Tensor)>>,
    /// The places of constants whose memory was given back.
    released: Mutex<HashSet<usize>>,
    /// Whether only the passes run without which there may be no plan.
    pub(crate) is_plain: bool,
    /// How precise products have to be.
    pub(crate) precision: PrecisionMode,
    /// What the CPU may do for other devices.
    pub(crate) fallback: FallbackPolicy,
    /// The most steps of a run.
    steps_limit: Option<u64>,
}

/// Smaller constants are made anew for each plan: most of them are shapes that only one plan has.
const SHARED_CONSTANT_BYTES: usize = 1 << 16;

/// What tells constants apart: the place of their bytes, which stay there as long as the constant is known.
#[derive(PartialEq, Eq, Hash)]
struct ConstantKey {
    device: String,
    address: usize,
    dtype: Dtype,
    dims: Dims,
}

impl SessionEnvironment {
    pub(crate) fn new(runtime: Arc<Runtime>, mut devices: Vec<Device>) -> Result<Self> {
        let host = runtime.device("cpu")?;
        let is_cpu_named = devices.iter().any(|device| device.is_same_device(&host));
        if !is_cpu_named {
            devices.push(host.clone());
        }
        let steps_limit = runtime.flags().run_steps_limit();
        let fallback = FallbackPolicy::new(is_cpu_named, runtime.flags().kernel_fallback());
        Ok(Self {
            steps_limit,
            fallback,
            runtime,
            devices,
            host,
            progress: PrepareProgressListener::default(),
            lasting: HashSet::new(),
            constants: Mutex::default(),
            released: Mutex::default(),
            is_plain: false,
            precision: PrecisionMode::F32,
        })
    }

    /// How much a run that begins may do.
    pub(crate) fn new_step_budget(&self) -> StepBudget {
        StepBudget::new(self.steps_limit)
    }

    /// Where most of a graph runs.
    pub(crate) fn main_device(&self) -> &Device {
        self.devices.first().unwrap_or(&self.host)
    }

    /// What passes need to know.
    pub(crate) fn pass_context(&self) -> PassContext<'_> {
        PassContext {
            runtime: &self.runtime,
            host: &self.host,
            device: self.main_device(),
            is_plain: self.is_plain,
            precision: self.precision,
            notes: PassTrace::default(),
        }
    }

    /// Notes which constants last as long as the session: those of its graph.
    pub(crate) fn keep_constants(&mut self, graph: &Graph) {
        let numbers = graph.values().filter_map(|(_, value)| value.weight.as_ref()?.as_numbers());
        self.lasting.extend(numbers.map(|numbers| numbers.bytes().as_ptr() as usize));
        graph
            .nodes
            .iter()
            .flat_map(|node| &node.subgraphs)
            .for_each(|subgraph| self.keep_constants(&subgraph.graph));
    }

    /// Gives back the memory of a constant in a mapped file, once: whoever still reads it reads it from the file again, and
    /// keeps it then.
    pub(crate) fn release_constant(&self, bytes: &[u8]) {
        let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
        if released.insert(bytes.as_ptr() as usize) {
            import::release_pages(bytes);
        }
    }

    /// The numbers of a constant, if all plans that want it on a device have the same tensor.
    fn shared_constant<'w>(&self, weight: &'w Weight) -> Option<&'w Constant> {
        let is_lasting = |numbers: &&Constant| self.lasting.contains(&(numbers.bytes().as_ptr() as usize));
        weight
            .as_numbers()
            .filter(|numbers| numbers.bytes().len() >= SHARED_CONSTANT_BYTES)
            .filter(is_lasting)
    }

    /// How many bytes a plan takes for a constant on a device. The host reads most where they are.
    pub(crate) fn copy_bytes(&self, weight: &Weight, device: &Device) -> usize {
        let numbers = weight
            .as_numbers()
            .filter(|_| !device.is_same_device(&self.host) && self.shared_constant(weight).is_none());
        numbers.map_or(0, |numbers| numbers.bytes().len())
    }

    /// A constant on a device: the same tensor for the same bytes, however many plans want it. Where its elements may lie
    /// at any address, those of a mapped file are used where they are.
    pub(crate) fn constant_on_device(
        &self,
        weight: &Weight,
        device: &Device,
        takes_any_address: bool,
    ) -> Result<Tensor> {
        if let Weight::Numbers(numbers) = weight
            && takes_any_address
            && !numbers.is_aligned()
        {
            return Tensor::from_constant(device, numbers);
        }
        let Some(numbers) = self.shared_constant(weight) else { return weight_to_tensor(weight, device) };
        let key = ConstantKey {
            device: device.name().to_owned(),
            address: numbers.bytes().as_ptr() as usize,
            dtype: weight.dtype(),
            dims: weight.dims().into(),
        };
        let mut constants = self.constants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = constants.get(&key) {
            return Ok(known.clone());
        }
        let tensor = weight_to_tensor(weight, device)?;
        constants.insert(key, (weight.clone(), tensor.clone()));
        Ok(tensor)
    }
}
