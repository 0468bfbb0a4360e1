//! Sizes, alignments and offsets on a machine with 64-bit pointers.

use crate::lower::{LoweredField, LoweredType, item_fields};
use crate::model::{Contract, ContractItem, ItemKind};

/// The memory layout of a struct.
#[derive(Debug)]
pub struct StructLayout {
    /// The size in bytes, a multiple of the alignment.
    pub size: u64,
    /// The alignment in bytes: the largest of all fields.
    pub align: u64,
    /// Each field with its offset and size in bytes.
    pub fields: Vec<(LoweredField, u64, u64)>,
    /// The first field with padding before it, or `the end`; `None` without padding. A contract with padding is refused.
    pub padding: Option<String>,
}

/// Computes the layout of a value, struct or table with the fields that minor version `minor` has.
pub fn struct_layout(contract: &Contract, item: &ContractItem, minor: u32) -> StructLayout {
    let mut layout = StructLayout { size: 0, align: 1, fields: Vec::new(), padding: None };
    for field in item_fields(contract, item).into_iter().filter(|field| field.since <= minor) {
        let (size, align) = size_and_align(contract, &field.ty);
        let offset = layout.size.next_multiple_of(align);
        if offset != layout.size && layout.padding.is_none() {
            layout.padding = Some(field.name.clone());
        }
        layout.size = offset + size;
        layout.align = layout.align.max(align);
        layout.fields.push((field, offset, size));
    }
    let end = layout.size.next_multiple_of(layout.align);
    if end != layout.size && layout.padding.is_none() {
        layout.padding = Some("the end".to_owned());
    }
    layout.size = end;
    layout
}

fn size_and_align(contract: &Contract, ty: &LoweredType) -> (u64, u64) {
    match ty {
        LoweredType::Number("u8" | "char") => (1, 1),
        LoweredType::Number("u32" | "i32") => (4, 4),
        LoweredType::Number(_) => (8, 8),
        LoweredType::Const(_)
        | LoweredType::Mutable(_)
        | LoweredType::Function(_)
        | LoweredType::Callback(_) => (8, 8),
        LoweredType::Named(name) => match contract.find_item(name).map(|item| (item, &item.kind)) {
            Some((_, ItemKind::Enum(_) | ItemKind::Flags(32, _))) => (4, 4),
            Some((item, ItemKind::Value(_) | ItemKind::Struct(_) | ItemKind::Table(_))) => {
                let layout = struct_layout(contract, item, contract.minor);
                (layout.size, layout.align)
            }
            _ => (8, 8),
        },
    }
}
