//! Descriptions of the slots of the contract.

use crate::contract_names::{ContractSlot, HandleKind};

/// A slot that layers wrap: its names, and what the words of a call mean.
#[derive(Debug)]
pub struct SlotDescription {
    /// Which slot it is.
    pub slot: ContractSlot,
    /// The name of its table; `kernel` for the functions of a kernel.
    pub table: &'static str,
    /// Its name in the table.
    pub name: &'static str,
    /// Which word is the device, if one is called so.
    pub device: Option<usize>,
    /// Which word is the stream, if there is one.
    pub queue: Option<usize>,
    /// What each word is.
    pub parameters: &'static [ParameterDescription],
}

/// One word of a call.
#[derive(Debug)]
pub struct ParameterDescription {
    /// The name of the argument in C.
    pub name: &'static str,
    /// What the word is.
    pub kind: ParameterKind,
}

/// What a word of a call is. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A number, a value of an enumeration, or flags.
    Number,
    /// A handle.
    Handle(HandleKind),
    /// An address that the callee keeps or passes on.
    Address,
    /// A function of the caller.
    Callback,
    /// The address of text; the next word is its size.
    Text,
    /// The address of bytes that the callee reads; the next word is their size.
    InBytes,
    /// An address that the callee reads from, of a size that the slot defines.
    InAddress,
    /// The address of a struct of this name, which the callee reads.
    InStruct(&'static str),
    /// The address of a list that the callee reads; the next word is the number of items.
    InItems,
    /// The address of bytes that the callee writes; the next word is their size.
    OutBytes,
    /// The address of a number of this size that the callee writes.
    OutNumber(usize),
    /// The address of a handle that the callee writes.
    OutHandle(HandleKind),
    /// The address of an address that the callee writes.
    OutAddress,
    /// The address of a value of this size that the callee writes.
    OutValue(usize),
    /// The address of a struct of at most this size that the callee writes; the caller wrote its size there.
    OutStruct(usize),
    /// The address of room for items of this size; the next words are the capacity and the address of the number of items.
    OutItems(usize),
}

impl ParameterKind {
    /// True for a word that means something without following an address.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Number | Self::Handle(_))
    }
}

impl SlotDescription {
    /// The full name, such as `core.memory_set`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    /// Where the parameter of this name is among the words.
    pub fn parameter_position(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.name == name)
    }
}
