//! What a contract consists of, as the parser reads it and every generator sees it.

/// The whole contract.
#[derive(Debug)]
pub struct Contract {
    /// Contracts of different major versions do not understand each other.
    pub major: u32,
    /// The newest minor version.
    pub minor: u32,
    /// Everything in the order of the file.
    pub items: Vec<ContractItem>,
}

/// One declaration, with the comment above it.
#[derive(Debug)]
pub struct ContractItem {
    /// The lines of the `///` comment.
    pub docs: Vec<String>,
    /// The name as the file spells it; a rule's is its number.
    pub name: String,
    /// What is declared.
    pub kind: ItemKind,
    /// Whether binaries may rely on it.
    pub stage: ItemStage,
    /// The line of the declaration.
    pub line: usize,
}

/// Whether binaries may rely on a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemStage {
    /// It never changes again.
    Locked,
    /// It is written down, and may change or go.
    Draft,
    /// A draft of a table for which the host and the SDK have code.
    Trial,
}

/// The kinds of declarations.
#[derive(Debug)]
pub enum ItemKind {
    /// An opaque `u64`.
    Handle,
    /// Named `u32` values.
    Enum(Vec<ConstantDefinition>),
    /// Named bits of an integer with this many bits.
    Flags(u32, Vec<ConstantDefinition>),
    /// A struct without a header, frozen for ever.
    Value(Vec<MemberDefinition>),
    /// A struct that starts with a header and may grow.
    Struct(Vec<MemberDefinition>),
    /// A function that the caller hands over.
    Callback(CallbackDefinition),
    /// A struct of functions.
    Table(TableDefinition),
    /// A numbered promise; the word says who notices a breach.
    Rule(String),
}

/// A named value of an enum, or the number of a bit.
#[derive(Debug)]
pub struct ConstantDefinition {
    /// The comment.
    pub docs: Vec<String>,
    /// The name.
    pub name: String,
    /// The value, or the number of the bit.
    pub value: u32,
    /// The minor version that brought it.
    pub since: u32,
}

/// A table of functions.
#[derive(Debug)]
pub struct TableDefinition {
    /// The profile the table makes up, with its version; of a draft, with the number of the draft.
    pub profile: Option<(String, u32)>,
    /// Functions and fields.
    pub members: Vec<MemberDefinition>,
}

/// A part of a struct or table.
#[derive(Debug)]
pub enum MemberDefinition {
    /// A piece of data.
    Field(FieldDefinition),
    /// A function pointer.
    Slot(SlotDefinition),
}

/// A piece of data in a struct.
#[derive(Debug)]
pub struct FieldDefinition {
    /// The comment.
    pub docs: Vec<String>,
    /// The name.
    pub name: String,
    /// The type.
    pub ty: ContractType,
    /// The minor version that brought it.
    pub since: u32,
}

/// A function pointer in a table or struct.
#[derive(Debug)]
pub struct SlotDefinition {
    /// The comment.
    pub docs: Vec<String>,
    /// The name.
    pub name: String,
    /// Whether a table that leaves the slot empty is broken.
    pub required: bool,
    /// What happens when an optional slot is empty.
    pub default: Option<String>,
    /// The function of the custom-device interface that this one stands for.
    pub spec: Option<String>,
    /// The arguments after the context.
    pub params: Vec<ParameterDefinition>,
    /// The minor version that brought it.
    pub since: u32,
}

/// A function that the caller hands over.
#[derive(Debug)]
pub struct CallbackDefinition {
    /// The arguments.
    pub params: Vec<ParameterDefinition>,
    /// Whether it returns an error.
    pub fallible: bool,
}

/// An argument.
#[derive(Debug)]
pub struct ParameterDefinition {
    /// The name.
    pub name: String,
    /// The type.
    pub ty: ContractType,
    /// Which way the data goes.
    pub direction: ParameterDirection,
}

/// Which way the data of an argument goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterDirection {
    /// Passed by value.
    Value,
    /// The callee reads through a pointer.
    In,
    /// The callee writes through a pointer.
    Out,
}

/// The type of a field or an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContractType {
    /// A fixed-width number: `u8` to `u64`, `i32`, `i64`, `f64`; or `char`, a byte of text.
    Number(&'static str),
    /// An address without a type.
    Pointer,
    /// An address without a type that is only read through.
    ReadOnlyPointer,
    /// Raw bytes: a pointer and a size.
    Bytes,
    /// Something declared in the contract.
    Named(String),
    /// A pointer to one thing.
    PointerTo(Box<ContractType>),
    /// A pointer and a count.
    List(Box<ContractType>),
    /// A function of a declared signature.
    Callback(String),
}

impl Contract {
    /// The declaration with this name that is not a rule; tables are named with their `_table` ending.
    pub fn find_item(&self, name: &str) -> Option<&ContractItem> {
        self.items.iter().find(|item| match item.kind {
            ItemKind::Rule(_) => false,
            _ => item.type_name() == name,
        })
    }

    /// The tables, in order.
    pub fn tables(&self) -> impl Iterator<Item = (&ContractItem, &TableDefinition)> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Table(table) => Some((item, table)),
            _ => None,
        })
    }

    /// The profiles that binaries may rely on: the declaration of each table, with the name and the version.
    pub fn locked_profiles(&self) -> impl Iterator<Item = (&ContractItem, &str, u32)> {
        self.profiles_in_stage().filter(|(item, _, _)| item.is_locked())
    }

    /// The profiles that may still change: the declaration of each table, with the name and the number of the draft.
    pub fn draft_profiles(&self) -> impl Iterator<Item = (&ContractItem, &str, u32)> {
        self.profiles_in_stage().filter(|(item, _, _)| !item.is_locked())
    }

    fn profiles_in_stage(&self) -> impl Iterator<Item = (&ContractItem, &str, u32)> {
        self.tables().filter_map(|(item, table)| {
            let (name, number) = table.profile.as_ref()?;
            Some((item, name.as_str(), *number))
        })
    }
}

impl ContractItem {
    /// Whether binaries may rely on it.
    pub fn is_locked(&self) -> bool {
        self.stage == ItemStage::Locked
    }

    /// The name of the type it declares: tables get the ending `_table`, so that a struct may share their name.
    pub fn type_name(&self) -> String {
        match self.kind {
            ItemKind::Table(_) => format!("{}_table", self.name),
            _ => self.name.clone(),
        }
    }
}

impl TableDefinition {
    /// The functions of the table.
    pub fn slots(&self) -> impl Iterator<Item = &SlotDefinition> {
        member_slots(&self.members)
    }
}

impl MemberDefinition {
    /// The minor version that brought it.
    pub fn since(&self) -> u32 {
        match self {
            Self::Field(field) => field.since,
            Self::Slot(slot) => slot.since,
        }
    }
}

/// The functions among some members.
pub fn member_slots(members: &[MemberDefinition]) -> impl Iterator<Item = &SlotDefinition> {
    members.iter().filter_map(|member| match member {
        MemberDefinition::Slot(slot) => Some(slot),
        MemberDefinition::Field(_) => None,
    })
}
