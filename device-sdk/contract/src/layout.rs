//! Sizes, alignments and offsets on a machine with 64-bit pointers.

use crate::lower::{Plain, PlainField, fields};
use crate::model::{Contract, Item, ItemKind};

/// Where a struct ends and where each of its fields lies.
#[derive(Debug)]
pub struct Layout {
    /// The size in bytes.
    pub size: u64,
    /// The alignment in bytes.
    pub align: u64,
    /// Each field with its offset and size.
    pub fields: Vec<(PlainField, u64, u64)>,
    /// A field that the compiler would put padding before, or `None` at the end; such a contract is refused.
    pub padding: Option<String>,
}

/// The layout of a value, struct or table as minor version `minor` has it.
pub fn layout(contract: &Contract, item: &Item, minor: u32) -> Layout {
    let mut layout = Layout { size: 0, align: 1, fields: Vec::new(), padding: None };
    for field in fields(contract, item).into_iter().filter(|field| field.since <= minor) {
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

fn size_and_align(contract: &Contract, ty: &Plain) -> (u64, u64) {
    match ty {
        Plain::Number("u8" | "char") => (1, 1),
        Plain::Number("u32" | "i32") => (4, 4),
        Plain::Number(_) => (8, 8),
        Plain::Const(_) | Plain::Mutable(_) | Plain::Function(_) | Plain::Callback(_) => (8, 8),
        Plain::Named(name) => match contract.find(name).map(|item| (item, &item.kind)) {
            Some((_, ItemKind::Enum(_) | ItemKind::Flags(32, _))) => (4, 4),
            Some((item, ItemKind::Value(_) | ItemKind::Struct(_) | ItemKind::Table(_))) => {
                let layout = layout(contract, item, contract.minor);
                (layout.size, layout.align)
            }
            _ => (8, 8),
        },
    }
}
