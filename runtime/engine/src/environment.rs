//! What all programs of a session share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::{Device, Dims, Dtype, Result, Runtime, Tensor};

use crate::graph::Weight;
use crate::passes::{Scene, tensor_of};
use crate::progress::Progress;

/// The runtime, the devices, and the constants that are on them.
pub(crate) struct Environment {
    pub(crate) runtime: Arc<Runtime>,
    /// Where nodes run: each on the first of these that has a kernel for it.
    pub(crate) devices: Vec<Device>,
    /// Where constants are computed, and what controls the run.
    pub(crate) host: Device,
    /// Who is told how far plans are.
    pub(crate) progress: Progress,
    constants: Mutex<HashMap<Key, Tensor>>,
}

/// What tells constants apart: the place of their bytes, which stay there as long as the constant is known.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    device: String,
    address: usize,
    dtype: Dtype,
    dims: Dims,
}

impl Environment {
    pub(crate) fn new(runtime: Arc<Runtime>, mut devices: Vec<Device>) -> Result<Self> {
        let host = runtime.device("cpu")?;
        if !devices.iter().any(|device| device.is(&host)) {
            devices.push(host.clone());
        }
        Ok(Self { runtime, devices, host, progress: Progress::default(), constants: Mutex::default() })
    }

    /// Where most of a graph runs.
    pub(crate) fn main_device(&self) -> &Device {
        self.devices.first().unwrap_or(&self.host)
    }

    /// What passes need to know.
    pub(crate) fn scene(&self) -> Scene<'_> {
        Scene { runtime: &self.runtime, host: &self.host, device: self.main_device() }
    }

    /// A constant on a device: the same tensor for the same bytes, however many plans want it. Where its elements may lie
    /// at any address, those of a mapped file are used where they are.
    pub(crate) fn constant(
        &self,
        weight: &Weight,
        device: &Device,
        takes_any_address: bool,
    ) -> Result<Tensor> {
        if let Weight::Numbers(numbers) = weight
            && takes_any_address
            && !numbers.is_aligned()
        {
            return Tensor::of_constant(device, numbers);
        }
        let address = match weight {
            Weight::Numbers(numbers) => numbers.bytes().as_ptr() as usize,
            Weight::Texts { texts, .. } => texts.as_ptr() as usize,
        };
        let key = Key {
            device: device.name().to_owned(),
            address,
            dtype: weight.dtype(),
            dims: weight.dims().into(),
        };
        let mut constants = self.constants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = constants.get(&key) {
            return Ok(known.clone());
        }
        let tensor = tensor_of(weight, device)?;
        // The elements of a copy would not keep the bytes at the address, which other ones could then take.
        constants.insert(key, tensor.clone());
        Ok(tensor)
    }
}
