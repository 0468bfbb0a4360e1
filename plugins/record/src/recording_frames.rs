//! What a recording consists of.

/// One piece of a recording. Targets and slots come before the calls that name them.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordingFrame {
    /// A table or kernel that was wrapped.
    Target(RecordedTarget),
    /// A slot of the contract, as the recording's author knew it.
    Slot(RecordedSlot),
    /// A call.
    Call(RecordedCall),
}

/// A table or a kernel of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedTarget {
    /// The number that calls use.
    pub number: u32,
    /// The name of the plugin.
    pub plugin: String,
    /// `core`, `async` or `kernel`.
    pub table: String,
    /// Of a kernel, its op.
    pub op: String,
    /// Of a kernel, the domain of its op.
    pub domain: String,
    /// Of a kernel, the last version of the op that it implements; 0 means all later ones.
    pub version: u32,
}

/// A slot, with the names of the words of its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedSlot {
    /// The number that calls use.
    pub number: u16,
    /// The full name, such as `core.memory_allocate`.
    pub name: String,
    /// The name of each word.
    pub words: Vec<String>,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// The target.
    pub target: u32,
    /// The slot.
    pub slot: u16,
    /// A small number for the thread.
    pub thread: u32,
    /// Whether it failed.
    pub failed: bool,
    /// The arguments. Addresses mean nothing any more, except that equal ones were equal.
    pub words: Vec<u64>,
    /// What the addresses among the words led to.
    pub parts: Vec<RecordedPart>,
}

/// What was found at the address in a word.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedPart {
    /// A number, handle or address that the plugin wrote.
    Out {
        /// Which word it is about.
        word: u8,
        /// What was written.
        value: u64,
    },
    /// Bytes that the plugin read or wrote.
    Contents {
        /// Which word it is about.
        word: u8,
        /// The bytes.
        contents: RecordedContents,
    },
    /// The call of a kernel.
    Kernel(RecordedKernelCall),
}

/// Bytes, as far as the recording has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedContents {
    /// How many there were.
    pub size: u64,
    /// Their hash, unless only shapes were recorded.
    pub hash: Option<u64>,
    /// The bytes, if contents were recorded in full.
    pub bytes: Option<Vec<u8>>,
}

/// One call of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedKernelCall {
    /// The device.
    pub device: u32,
    /// The stream, or 0.
    pub queue: u64,
    /// The inputs.
    pub inputs: Vec<RecordedTensor>,
    /// The outputs, as they were after the call.
    pub outputs: Vec<RecordedTensor>,
    /// The attributes.
    pub attributes: Vec<RecordedAttribute>,
}

/// An operand. All fields but `bits` are 0 or empty if it was omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedTensor {
    /// The bits of `tensor_flags`.
    pub bits: u32,
    /// The handle of the block.
    pub block: u64,
    /// Where the first element was in the block.
    pub offset: u64,
    /// The bytes from the first element to the last.
    pub size_in_bytes: u64,
    /// The number of the dtype.
    pub dtype: u32,
    /// The number of the memory kind.
    pub place: u32,
    /// The sizes of the dimensions.
    pub dims: Vec<i64>,
    /// The strides in elements; empty means contiguous.
    pub strides: Vec<i64>,
    /// The bytes, where no other call of the recording explains them.
    pub contents: Option<RecordedContents>,
}

/// An attribute of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedAttribute {
    /// Its name.
    pub name: String,
    /// Whether it is a list.
    pub is_list: bool,
    /// Its values.
    pub values: AttributeValues,
}

/// The values of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValues {
    /// Integers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f64>),
    /// Text.
    Strings(Vec<String>),
    /// Tensors.
    Tensors(Vec<RecordedTensor>),
    /// Graphs, which are not recorded.
    Graphs,
}
