//! Operands and attributes as structs of the contract.

#![expect(unsafe_code, reason = "descriptions hold pointers into what they own")]
#![expect(clippy::vec_box, reason = "what descriptions point to must stay where it is when a list grows")]

use oarlock_abi as abi;
use smallvec::SmallVec;

use crate::tensor::TensorLayout;
use crate::{Attribute, Attributes, Constant, Tensor};

/// Descriptors of operands. A call with more operands than this allocates on the heap.
pub(crate) type OperandDescriptors = SmallVec<[abi::Tensor; 8]>;

/// Describes a tensor without its memory, which [`bind_memory`] fills in later. The descriptor points into the layout.
pub(crate) fn describe_layout(layout: &TensorLayout) -> abi::Tensor {
    let TensorLayout { dtype, dims, strides, extent, .. } = layout;
    abi::Tensor { size_in_bytes: *extent, ..describe_shape(dtype.to_abi(), dims, strides.as_deref()) }
}

/// The descriptor keeps pointers to `dims` and `strides`.
fn describe_shape(dtype: abi::Dtype, dims: &[i64], strides: Option<&[i64]>) -> abi::Tensor {
    let strides = strides.unwrap_or_default();
    abi::Tensor {
        dtype,
        dims: dims.as_ptr(),
        dims_count: dims.len() as u64,
        strides: strides.as_ptr(),
        strides_count: strides.len() as u64,
        ..abi::Tensor::EMPTY
    }
}

/// The descriptor of an operand that was left out.
pub(crate) fn absent_operand() -> abi::Tensor {
    abi::Tensor { bits: abi::TensorFlags::ABSENT, ..abi::Tensor::EMPTY }
}

/// Sets block and offset in the descriptor of a tensor.
#[inline]
pub(crate) fn bind_memory(raw: &mut abi::Tensor, tensor: &Tensor) {
    (raw.block, raw.offset) = tensor.memory_location();
}

/// Describes a value on the host. It must be in memory as long as the prepared kernel lives.
pub(crate) fn describe_constant(constant: &Constant) -> abi::Tensor {
    abi::Tensor {
        block: abi::Memory(constant.address() as u64),
        size_in_bytes: constant.size_in_bytes() as u64,
        place: abi::MemoryKind::HOST,
        bits: abi::TensorFlags::CONSTANT,
        ..describe_shape(constant.dtype().to_abi(), constant.dims(), None)
    }
}

/// Like [`describe_constant`], but with the dims of a layout, which outlives the descriptor.
pub(crate) fn describe_value(value: &Constant, layout: &TensorLayout) -> abi::Tensor {
    abi::Tensor {
        dims: layout.dims.as_ptr(),
        dims_count: layout.dims.len() as u64,
        ..describe_constant(value)
    }
}

/// A tensor descriptor, and the list of one that points to it.
struct ListedTensor {
    tensor: abi::Tensor,
    list: [*const abi::Tensor; 1],
}

/// The attributes of a node as a list of the contract.
pub(crate) struct AbiAttributes {
    /// Owns what the descriptors point to.
    attributes: Attributes,
    _strings: Vec<Box<[abi::Str]>>,
    _tensors: Vec<Box<ListedTensor>>,
    _descriptions: Box<[abi::Attribute]>,
    pointers: Box<[*const abi::Attribute]>,
}

// SAFETY: the pointers lead into memory that the struct owns and never changes.
unsafe impl Send for AbiAttributes {}
// SAFETY: as above.
unsafe impl Sync for AbiAttributes {}

impl AbiAttributes {
    /// Moving the vectors does not move their heap memory, so the pointers stay valid.
    pub(crate) fn new(attributes: Attributes) -> Self {
        let (mut strings, mut tensors) = (Vec::new(), Vec::new());
        let describe = |(name, value): (&str, &Attribute)| {
            let mut raw = abi::Attribute { name: abi::Str::borrowed(name), ..abi::Attribute::EMPTY };
            fill_attribute(&mut raw, value, &mut strings, &mut tensors);
            raw
        };
        let descriptions: Box<[abi::Attribute]> = attributes.iter().map(describe).collect();
        let pointers = descriptions.iter().map(std::ptr::from_ref).collect();
        Self { attributes, _strings: strings, _tensors: tensors, _descriptions: descriptions, pointers }
    }

    pub(crate) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    pub(crate) fn attribute_pointers(&self) -> &[*const abi::Attribute] {
        &self.pointers
    }
}

fn fill_attribute(
    raw: &mut abi::Attribute,
    value: &Attribute,
    strings: &mut Vec<Box<[abi::Str]>>,
    tensors: &mut Vec<Box<ListedTensor>>,
) {
    let ints = |raw: &mut abi::Attribute, kind, ints: &[i64]| {
        (raw.kind, raw.ints, raw.ints_count) = (kind, ints.as_ptr(), ints.len() as u64);
    };
    let floats = |raw: &mut abi::Attribute, kind, floats: &[f64]| {
        (raw.kind, raw.floats, raw.floats_count) = (kind, floats.as_ptr(), floats.len() as u64);
    };
    let mut texts = |raw: &mut abi::Attribute, kind, texts: &[String]| {
        let texts: Box<[abi::Str]> = texts.iter().map(|text| abi::Str::borrowed(text)).collect();
        (raw.kind, raw.strings, raw.strings_count) = (kind, texts.as_ptr(), texts.len() as u64);
        strings.push(texts);
    };
    match value {
        Attribute::Int(int) => ints(raw, abi::AttributeKind::INT, std::slice::from_ref(int)),
        Attribute::Ints(list) => ints(raw, abi::AttributeKind::INTS, list),
        Attribute::Float(float) => floats(raw, abi::AttributeKind::FLOAT, std::slice::from_ref(float)),
        Attribute::Floats(list) => floats(raw, abi::AttributeKind::FLOATS, list),
        Attribute::String(text) => texts(raw, abi::AttributeKind::STRING, std::slice::from_ref(text)),
        Attribute::Strings(list) => texts(raw, abi::AttributeKind::STRINGS, list),
        Attribute::Tensor(value) => {
            let mut listed =
                Box::new(ListedTensor { tensor: describe_constant(value), list: [std::ptr::null()] });
            listed.list[0] = &raw const listed.tensor;
            (raw.kind, raw.tensors, raw.tensors_count) =
                (abi::AttributeKind::TENSOR, listed.list.as_ptr(), 1);
            tensors.push(listed);
        }
    }
}
