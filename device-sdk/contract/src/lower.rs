//! Turns the types of the contract into what a C compiler sees, once, so that the C header, the Rust bindings and the
//! lock cannot disagree about what a `list` or an `out` argument becomes.

use crate::model::{Callback, Contract, Direction, Field, Item, ItemKind, Member, Param, Slot, Type};

/// A type as C and Rust both have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plain {
    /// A fixed-width number.
    Number(&'static str),
    /// A handle, enum, flags, value, struct, table or callback of the contract, by its type name.
    Named(String),
    /// `const T *`; no type means `const void *`.
    Const(Option<Box<Plain>>),
    /// `T *`; no type means `void *`.
    Mutable(Option<Box<Plain>>),
    /// A function pointer that may be null and takes a context first.
    Function(Vec<PlainField>),
    /// A function pointer of a declared callback type, which may be null.
    Callback(String),
}

/// A field or an argument with a plain type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainField {
    /// The name.
    pub name: String,
    /// The type.
    pub ty: Plain,
    /// The minor version that brought it.
    pub since: u32,
    /// The comment.
    pub docs: Vec<String>,
    /// For a slot: whether it must be filled.
    pub required: Option<bool>,
}

impl PlainField {
    fn new(name: impl Into<String>, ty: Plain) -> Self {
        Self { name: name.into(), ty, since: 0, docs: Vec::new(), required: None }
    }
}

/// The fields of a value, struct or table as they lie in memory; none for other items.
pub fn fields(contract: &Contract, item: &Item) -> Vec<PlainField> {
    let mut fields = Vec::new();
    let members = match &item.kind {
        ItemKind::Value(members) => members,
        ItemKind::Struct(members) => {
            fields.extend(header());
            members
        }
        ItemKind::Table(table) => {
            fields.extend(header());
            let mut features = PlainField::new("features", Plain::Number("u64"));
            features.docs = vec!["What the author of the table understood, as bits.".to_owned()];
            fields.push(features);
            &table.members
        }
        _ => return fields,
    };
    for member in members {
        match member {
            Member::Field(field) => fields.extend(field_parts(contract, field)),
            Member::Slot(slot) => fields.push(PlainField {
                name: slot.name.clone(),
                ty: Plain::Function(slot_params(contract, slot)),
                since: slot.since,
                docs: slot.docs.clone(),
                required: Some(slot.required),
            }),
        }
    }
    fields
}

/// The arguments of a slot, the context first.
pub fn slot_params(contract: &Contract, slot: &Slot) -> Vec<PlainField> {
    let mut all = vec![PlainField::new("context", Plain::Mutable(None))];
    all.extend(slot.params.iter().flat_map(|param| param_parts(contract, param)));
    all
}

/// The arguments of a callback.
pub fn callback_params(contract: &Contract, callback: &Callback) -> Vec<PlainField> {
    callback.params.iter().flat_map(|param| param_parts(contract, param)).collect()
}

fn header() -> [PlainField; 3] {
    let documented =
        |name: &str, ty, text: &str| PlainField { docs: vec![text.to_owned()], ..PlainField::new(name, ty) };
    [
        documented(
            "size",
            Plain::Number("u32"),
            "The size of the struct in bytes, as whoever filled it knows it.",
        ),
        documented("flags", Plain::Named("header_flags".into()), "How to treat what is not known."),
        documented("next", pointer_to("extension"), "The first of a chain of extensions, or null."),
    ]
}

fn pointer_to(name: &str) -> Plain {
    Plain::Const(Some(Box::new(Plain::Named(name.to_owned()))))
}

fn field_parts(contract: &Contract, field: &Field) -> Vec<PlainField> {
    let part = |name: String, ty| PlainField {
        name,
        ty,
        since: field.since,
        docs: field.docs.clone(),
        required: None,
    };
    match &field.ty {
        Type::List(element) => vec![
            part(field.name.clone(), Plain::Const(Some(Box::new(element_type(contract, element))))),
            PlainField {
                docs: vec![format!("How many `{}` there are.", field.name)],
                ..part(format!("{}_count", field.name), Plain::Number("u64"))
            },
        ],
        ty => vec![part(field.name.clone(), plain(contract, ty))],
    }
}

fn param_parts(contract: &Contract, param: &Param) -> Vec<PlainField> {
    let name = &param.name;
    let size = |name: &str| PlainField::new(format!("{name}_size"), Plain::Number("u64"));
    let count = |name: &str, ty| PlainField::new(format!("{name}_count"), ty);
    match (&param.ty, param.direction) {
        (Type::Bytes, Direction::Out) => vec![PlainField::new(name, Plain::Mutable(None)), size(name)],
        (Type::Bytes, _) => vec![PlainField::new(name, Plain::Const(None)), size(name)],
        (Type::List(element), Direction::Out) => vec![
            PlainField::new(name, Plain::Mutable(Some(Box::new(element_type(contract, element))))),
            PlainField::new(format!("{name}_capacity"), Plain::Number("u64")),
            count(name, Plain::Mutable(Some(Box::new(Plain::Number("u64"))))),
        ],
        (Type::List(element), _) => vec![
            PlainField::new(name, Plain::Const(Some(Box::new(element_type(contract, element))))),
            count(name, Plain::Number("u64")),
        ],
        (Type::Pointer, Direction::In) => vec![PlainField::new(name, Plain::Const(None))],
        (ty, Direction::Value) => vec![PlainField::new(name, plain(contract, ty))],
        (ty, Direction::In) => {
            vec![PlainField::new(name, Plain::Const(Some(Box::new(plain(contract, ty)))))]
        }
        (ty, Direction::Out) => {
            vec![PlainField::new(name, Plain::Mutable(Some(Box::new(plain(contract, ty)))))]
        }
    }
}

/// What a list points to: a struct may grow, so a list of structs is a list of pointers to them.
fn element_type(contract: &Contract, ty: &Type) -> Plain {
    let lowered = plain(contract, ty);
    let grows = matches!(&lowered, Plain::Named(name)
        if contract.find(name).is_some_and(|item| matches!(item.kind, ItemKind::Struct(_))));
    if grows { Plain::Const(Some(Box::new(lowered))) } else { lowered }
}

fn plain(contract: &Contract, ty: &Type) -> Plain {
    match ty {
        Type::Number(name) => Plain::Number(name),
        Type::Pointer => Plain::Mutable(None),
        Type::Bytes | Type::ReadOnlyPointer => Plain::Const(None),
        Type::Named(name) => Plain::Named(name.clone()),
        Type::PointerTo(target) => Plain::Const(Some(Box::new(plain(contract, target)))),
        Type::List(element) => Plain::Const(Some(Box::new(element_type(contract, element)))),
        Type::Callback(name) => Plain::Callback(name.clone()),
    }
}
