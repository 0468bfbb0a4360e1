//! State shared by every planned graph of a session.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::{Constant, ConstantInput, Device, Dims, Dtype, Result, Runtime, Tensor};
use oarlock_host::OperandInfo;

use crate::fallback_policy::FallbackPolicy;
use crate::graph::{Graph, Weight};
use crate::node_listener::NodeListener;
use crate::passes::{PassContext, PassRecording, weight_to_tensor};
use crate::precision::PrecisionMode;
use crate::progress::PrepareProgressListener;
use crate::step_budget::StepBudget;

pub(crate) struct SessionEnvironment {
    pub(crate) runtime: Arc<Runtime>,
    /// Each node runs on the first of these with a kernel for it, except nodes that stay on the host.
    pub(crate) devices: Vec<Device>,
    /// The CPU: it computes constants and drives the run.
    pub(crate) host: Device,
    pub(crate) progress: PrepareProgressListener,
    pub(crate) on_node: NodeListener,
    /// Addresses of the model's own constants. Constants that a plan computes are not listed; they are freed with the plan.
    lasting: HashSet<usize>,
    /// The size of these constants.
    lasting_bytes: usize,
    /// Large constants shared between plans. The weight is kept beside its tensor, so the address in the key stays valid.
    constants: Mutex<HashMap<ConstantKey, (Weight, Tensor)>>,
    /// True if optional optimization passes are skipped and only those run that a plan depends on.
    pub(crate) is_plain: bool,
    pub(crate) precision: PrecisionMode,
    pub(crate) fallback: FallbackPolicy,
    /// Limit on the steps of one run; `None` means no limit.
    steps_limit: Option<u64>,
}

/// Smaller constants are copied for each plan: most of them are shapes that only one plan has.
const SHARED_CONSTANT_BYTES: usize = 1 << 16;

/// Constants of at most this size in all stay in the L2 cache of a processor between runs. There, vectors that cross cache lines
/// halve the speed of a product, so constants that do not begin at one are copied. Those read from a file do.
const CACHED_MODEL_BYTES: usize = 2 << 20;

const CACHE_LINE_BYTES: usize = 64;

/// Constants are told apart by the address of their bytes, which does not move while the constant is alive.
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
            on_node: NodeListener::default(),
            lasting: HashSet::new(),
            lasting_bytes: 0,
            constants: Mutex::default(),
            is_plain: false,
            precision: PrecisionMode::F32,
        })
    }

    /// An environment with the same settings but constants of its own, for a second planned graph.
    pub(crate) fn with_own_constants(&self) -> Self {
        Self {
            runtime: self.runtime.clone(),
            devices: self.devices.clone(),
            host: self.host.clone(),
            progress: self.progress.clone(),
            on_node: self.on_node.clone(),
            is_plain: self.is_plain,
            precision: self.precision,
            fallback: self.fallback.clone(),
            steps_limit: self.steps_limit,
            lasting: HashSet::new(),
            lasting_bytes: 0,
            constants: Mutex::default(),
        }
    }

    pub(crate) fn new_step_budget(&self) -> StepBudget {
        StepBudget::new(self.steps_limit)
    }

    /// The first device of the session, or the host if none was named.
    pub(crate) fn main_device(&self) -> &Device {
        self.devices.first().unwrap_or(&self.host)
    }

    pub(crate) fn pass_context(&self) -> PassContext<'_> {
        PassContext {
            runtime: &self.runtime,
            host: &self.host,
            device: self.main_device(),
            is_plain: self.is_plain,
            precision: self.precision,
            recording: PassRecording::default(),
        }
    }

    /// Records the constants of the graph and its subgraphs as lasting as long as the session.
    pub(crate) fn keep_constants(&mut self, graph: &Graph) {
        for numbers in graph.values().filter_map(|(_, value)| value.weight.as_ref()?.as_numbers()) {
            if self.lasting.insert(numbers.address()) {
                self.lasting_bytes += numbers.size_in_bytes();
            }
        }
        graph
            .nodes
            .iter()
            .flat_map(|node| &node.subgraphs)
            .for_each(|subgraph| self.keep_constants(&subgraph.graph));
    }

    /// The numbers of a constant if all plans share one tensor for it on a device.
    fn shared_constant<'w>(&self, weight: &'w Weight) -> Option<&'w Constant> {
        let is_lasting = |numbers: &&Constant| self.lasting.contains(&numbers.address());
        weight
            .as_numbers()
            .filter(|numbers| numbers.size_in_bytes() >= SHARED_CONSTANT_BYTES)
            .filter(is_lasting)
    }

    /// Bytes that a plan needs of its own for a constant on a device. The host reads most constants in place.
    pub(crate) fn copy_bytes(&self, weight: &Weight, device: &Device) -> usize {
        let numbers = weight
            .as_numbers()
            .filter(|_| !device.is_same_device(&self.host) && self.shared_constant(weight).is_none());
        numbers.map_or(0, Constant::size_in_bytes)
    }

    /// Returns a constant for a kernel on a device. If the kernel asks for the bytes and they can be read again, it gets them when
    /// it does.
    pub(crate) fn constant_input(
        &self,
        weight: &Weight,
        device: &Device,
        operand: Option<&OperandInfo>,
    ) -> Result<ConstantInput> {
        if let Some(numbers) = weight.as_numbers()
            && numbers.is_on_demand()
            && operand.is_some_and(|operand| operand.on_demand)
            && device.is_same_device(&self.host)
        {
            return Ok(ConstantInput::OnDemand(numbers.clone()));
        }
        let takes_any_address = operand.is_some_and(|operand| operand.unaligned);
        self.constant_on_device(weight, device, takes_any_address).map(ConstantInput::Tensor)
    }

    /// Returns a constant as a tensor on a device: one tensor for the same bytes, however many plans use it. If the kernel
    /// accepts any alignment, the bytes of all but a small model are read in place.
    pub(crate) fn constant_on_device(
        &self,
        weight: &Weight,
        device: &Device,
        takes_any_address: bool,
    ) -> Result<Tensor> {
        let shared = self.shared_constant(weight);
        // A copy of a small constant would be another one for each plan, and so would what kernels make of it.
        let is_copied = takes_any_address
            && self.lasting_bytes <= CACHED_MODEL_BYTES
            && shared.is_some_and(|numbers| !numbers.address().is_multiple_of(CACHE_LINE_BYTES));
        if let Weight::Numbers(numbers) = weight
            && takes_any_address
            && !numbers.is_aligned()
            && !is_copied
        {
            return Tensor::from_constant(device, numbers);
        }
        let Some(numbers) = shared else { return weight_to_tensor(weight, device) };
        let key = ConstantKey {
            device: device.name().to_owned(),
            address: numbers.address(),
            dtype: weight.dtype(),
            dims: weight.dims().into(),
        };
        let mut constants = self.constants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = constants.get(&key) {
            return Ok(known.clone());
        }
        let tensor = if is_copied {
            Tensor::from_bytes(device, numbers.dtype(), numbers.dims(), &numbers.bytes()?)?
        } else {
            weight_to_tensor(weight, device)?
        };
        constants.insert(key, (weight.clone(), tensor.clone()));
        Ok(tensor)
    }
}
