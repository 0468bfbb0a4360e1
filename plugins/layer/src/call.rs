//! One call on its way through a layer.

use oarlock_sdk::abi;

use crate::contract_names::ContractSlot;
use crate::slot::SlotDescription;

/// A call of a slot: the layer looks at it, forwards it, and returns what it returned.
#[derive(Clone, Copy)]
pub struct LayerCall<'a> {
    pub(crate) description: &'static SlotDescription,
    pub(crate) words: &'a [u64],
    pub(crate) next: &'a dyn Fn(&[u64]) -> abi::Error,
}

impl<'a> LayerCall<'a> {
    /// The slot that is called.
    pub fn description(&self) -> &'static SlotDescription {
        self.description
    }

    /// Which slot that is.
    pub fn slot(&self) -> ContractSlot {
        self.description.slot
    }

    /// The arguments.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// The device of the call, if it has exactly one.
    pub fn device(&self) -> Option<u32> {
        self.description.device.map(|at| self.words[at] as u32)
    }

    /// Calls the next table with the arguments as they came.
    pub fn forward(&self) -> abi::Error {
        (self.next)(self.words)
    }

    /// Calls the next table with other arguments.
    ///
    /// # Safety
    ///
    /// There are as many words as the slot has, and each is what the slot expects, as if the caller had passed it.
    #[expect(unsafe_code, reason = "the next table believes what it gets")]
    pub unsafe fn forward_with(&self, words: &[u64]) -> abi::Error {
        (self.next)(words)
    }
}
