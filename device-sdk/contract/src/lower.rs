//! Lowers the types of the contract to the types that a C compiler sees. This happens in one place, so that the C header, the
//! Rust bindings and the lock cannot disagree about what a `list` or an `out` argument becomes.

use crate::model::{
    CallbackDefinition, Contract, ContractItem, ContractType, FieldDefinition, ItemKind, MemberDefinition,
    ParameterDefinition, ParameterDirection, SlotDefinition,
};

/// A type that C and Rust both have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoweredType {
    /// A fixed-width number.
    Number(&'static str),
    /// A handle, enum, flags, value, struct, table or callback of the contract, by type name.
    Named(String),
    /// `const T *`; without a type, `const void *`.
    Const(Option<Box<LoweredType>>),
    /// `T *`; without a type, `void *`.
    Mutable(Option<Box<LoweredType>>),
    /// A nullable function pointer that takes a context first.
    Function(Vec<LoweredField>),
    /// A nullable function pointer of a declared callback type.
    Callback(String),
}

/// A field or an argument with a lowered type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoweredField {
    /// The name in C and Rust.
    pub name: String,
    /// The lowered type.
    pub ty: LoweredType,
    /// The minor version that added it.
    pub since: u32,
    /// The doc comment, line by line.
    pub docs: Vec<String>,
    /// For a slot: true if a table must fill it.
    pub required: Option<bool>,
}

impl LoweredField {
    fn new(name: impl Into<String>, ty: LoweredType) -> Self {
        Self { name: name.into(), ty, since: 0, docs: Vec::new(), required: None }
    }
}

/// The fields of a value, struct or table in memory order; empty for other items.
pub fn item_fields(contract: &Contract, item: &ContractItem) -> Vec<LoweredField> {
    let mut fields = Vec::new();
    let members = match &item.kind {
        ItemKind::Value(members) => members,
        ItemKind::Struct(members) => {
            fields.extend(header_fields());
            members
        }
        ItemKind::Table(table) => {
            fields.extend(header_fields());
            let mut features = LoweredField::new("features", LoweredType::Number("u64"));
            features.docs = vec!["The features that the author of the table knew, as bits.".to_owned()];
            fields.push(features);
            &table.members
        }
        _ => return fields,
    };
    for member in members {
        match member {
            MemberDefinition::Field(field) => fields.extend(lower_field(contract, field)),
            MemberDefinition::Slot(slot) => fields.push(LoweredField {
                name: slot.name.clone(),
                ty: LoweredType::Function(slot_params(contract, slot)),
                since: slot.since,
                docs: slot.docs.clone(),
                required: Some(slot.required),
            }),
        }
    }
    fields
}

/// The arguments of a slot, the context first.
pub fn slot_params(contract: &Contract, slot: &SlotDefinition) -> Vec<LoweredField> {
    let mut all = vec![LoweredField::new("context", LoweredType::Mutable(None))];
    all.extend(slot.params.iter().flat_map(|param| lower_param(contract, param)));
    all
}

/// The arguments of a callback. A callback has no context; it may declare a user pointer instead.
pub fn callback_params(contract: &Contract, callback: &CallbackDefinition) -> Vec<LoweredField> {
    callback.params.iter().flat_map(|param| lower_param(contract, param)).collect()
}

fn header_fields() -> [LoweredField; 3] {
    let documented = |name: &str, ty, text: &str| LoweredField {
        docs: vec![text.to_owned()],
        ..LoweredField::new(name, ty)
    };
    [
        documented(
            "size",
            LoweredType::Number("u32"),
            "The size of the struct in bytes, in the version that its author knows.",
        ),
        documented("flags", LoweredType::Named("header_flags".into()), "How to treat what is not known."),
        documented("next", pointer_to("extension"), "The first of a chain of extensions, or null."),
    ]
}

fn pointer_to(name: &str) -> LoweredType {
    LoweredType::Const(Some(Box::new(LoweredType::Named(name.to_owned()))))
}

fn lower_field(contract: &Contract, field: &FieldDefinition) -> Vec<LoweredField> {
    let part = |name: String, ty| LoweredField {
        name,
        ty,
        since: field.since,
        docs: field.docs.clone(),
        required: None,
    };
    match &field.ty {
        ContractType::List(element) => vec![
            part(field.name.clone(), LoweredType::Const(Some(Box::new(element_type(contract, element))))),
            LoweredField {
                docs: vec![format!("How many `{}` there are.", field.name)],
                ..part(format!("{}_count", field.name), LoweredType::Number("u64"))
            },
        ],
        ty => vec![part(field.name.clone(), lower_type(contract, ty))],
    }
}

fn lower_param(contract: &Contract, param: &ParameterDefinition) -> Vec<LoweredField> {
    let name = &param.name;
    let size = |name: &str| LoweredField::new(format!("{name}_size"), LoweredType::Number("u64"));
    let count = |name: &str, ty| LoweredField::new(format!("{name}_count"), ty);
    match (&param.ty, param.direction) {
        (ContractType::Bytes, ParameterDirection::Out) => {
            vec![LoweredField::new(name, LoweredType::Mutable(None)), size(name)]
        }
        (ContractType::Bytes, _) => vec![LoweredField::new(name, LoweredType::Const(None)), size(name)],
        (ContractType::List(element), ParameterDirection::Out) => vec![
            LoweredField::new(name, LoweredType::Mutable(Some(Box::new(element_type(contract, element))))),
            LoweredField::new(format!("{name}_capacity"), LoweredType::Number("u64")),
            count(name, LoweredType::Mutable(Some(Box::new(LoweredType::Number("u64"))))),
        ],
        (ContractType::List(element), _) => vec![
            LoweredField::new(name, LoweredType::Const(Some(Box::new(element_type(contract, element))))),
            count(name, LoweredType::Number("u64")),
        ],
        (ContractType::Pointer, ParameterDirection::In) => {
            vec![LoweredField::new(name, LoweredType::Const(None))]
        }
        (ty, ParameterDirection::Value) => vec![LoweredField::new(name, lower_type(contract, ty))],
        (ty, ParameterDirection::In) => {
            vec![LoweredField::new(name, LoweredType::Const(Some(Box::new(lower_type(contract, ty)))))]
        }
        (ty, ParameterDirection::Out) => {
            vec![LoweredField::new(name, LoweredType::Mutable(Some(Box::new(lower_type(contract, ty)))))]
        }
    }
}

/// The element type that a list points to. Structs may grow, so a list of structs is a list of pointers to them.
fn element_type(contract: &Contract, ty: &ContractType) -> LoweredType {
    let lowered = lower_type(contract, ty);
    let grows = matches!(&lowered, LoweredType::Named(name)
        if contract.find_item(name).is_some_and(|item| matches!(item.kind, ItemKind::Struct(_))));
    if grows { LoweredType::Const(Some(Box::new(lowered))) } else { lowered }
}

fn lower_type(contract: &Contract, ty: &ContractType) -> LoweredType {
    match ty {
        ContractType::Number(name) => LoweredType::Number(name),
        ContractType::Pointer => LoweredType::Mutable(None),
        ContractType::Bytes | ContractType::ReadOnlyPointer => LoweredType::Const(None),
        ContractType::Named(name) => LoweredType::Named(name.clone()),
        ContractType::PointerTo(target) => LoweredType::Const(Some(Box::new(lower_type(contract, target)))),
        ContractType::List(element) => LoweredType::Const(Some(Box::new(element_type(contract, element)))),
        ContractType::Callback(name) => LoweredType::Callback(name.clone()),
    }
}
