//! The contract as a data structure: the parser builds it, the generators read it.

/// A parsed contract.
#[derive(Debug)]
pub struct Contract {
    /// The major version. Contracts of different major versions are incompatible.
    pub major: u32,
    /// The newest minor version that the contract describes.
    pub minor: u32,
    /// All declarations in the order of the file.
    pub items: Vec<ContractItem>,
}

/// One declaration with its doc comment.
#[derive(Debug)]
pub struct ContractItem {
    /// The lines of the `///` comment.
    pub docs: Vec<String>,
    /// The name as spelled in the file; for a rule, its number.
    pub name: String,
    /// The kind of declaration, with its contents.
    pub kind: ItemKind,
    /// Locked, or one of the stages of a draft.
    pub stage: ItemStage,
    /// The line of the declaration, for messages.
    pub line: usize,
}

/// The stability of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemStage {
    /// It never changes again.
    Locked,
    /// It is written down, but may change or go away.
    Draft,
    /// A draft of a table that the host and the SDK already implement.
    Trial,
}

/// The kind and contents of a declaration.
#[derive(Debug)]
pub enum ItemKind {
    /// An opaque `u64`.
    Handle,
    /// Named `u32` values.
    Enum(Vec<ConstantDefinition>),
    /// Named bits of an integer with this many bits.
    Flags(u32, Vec<ConstantDefinition>),
    /// A struct without a header, frozen forever.
    Value(Vec<MemberDefinition>),
    /// A struct that starts with a header and may grow.
    Struct(Vec<MemberDefinition>),
    /// A function that the caller passes.
    Callback(CallbackDefinition),
    /// A struct of functions.
    Table(TableDefinition),
    /// A numbered promise. The text says who detects a violation.
    Rule(String),
}

/// A named value of an enum, or a named bit.
#[derive(Debug)]
pub struct ConstantDefinition {
    /// The lines of the `///` comment.
    pub docs: Vec<String>,
    /// The name as spelled in the file.
    pub name: String,
    /// The value, or the number of the bit.
    pub value: u32,
    /// The minor version that added it.
    pub since: u32,
}

/// A table of functions.
#[derive(Debug)]
pub struct TableDefinition {
    /// The profile that the table implements, with its version; for a draft, with the number of the draft.
    pub profile: Option<(String, u32)>,
    /// Slots and fields in the order of memory.
    pub members: Vec<MemberDefinition>,
}

/// A member of a struct or table.
#[derive(Debug)]
pub enum MemberDefinition {
    /// Data.
    Field(FieldDefinition),
    /// A function pointer.
    Slot(SlotDefinition),
}

/// A data member of a struct or table.
#[derive(Debug)]
pub struct FieldDefinition {
    /// The lines of the `///` comment.
    pub docs: Vec<String>,
    /// The name as spelled in the file.
    pub name: String,
    /// The type before lowering.
    pub ty: ContractType,
    /// The minor version that added it.
    pub since: u32,
}

/// A function pointer in a table or struct.
#[derive(Debug)]
pub struct SlotDefinition {
    /// The lines of the `///` comment.
    pub docs: Vec<String>,
    /// The name as spelled in the file.
    pub name: String,
    /// True if the host refuses a table that leaves the slot empty.
    pub required: bool,
    /// What happens if an optional slot is empty, for the reference page.
    pub default: Option<String>,
    /// The function of the custom-device interface that this one corresponds to.
    pub spec: Option<String>,
    /// The arguments after the context.
    pub params: Vec<ParameterDefinition>,
    /// The minor version that added it.
    pub since: u32,
}

/// A function that the caller passes.
#[derive(Debug)]
pub struct CallbackDefinition {
    /// The arguments in order.
    pub params: Vec<ParameterDefinition>,
    /// True if it returns an error.
    pub fallible: bool,
}

/// An argument of a slot or callback.
#[derive(Debug)]
pub struct ParameterDefinition {
    /// The name as spelled in the file.
    pub name: String,
    /// The type before lowering.
    pub ty: ContractType,
    /// The direction of the data.
    pub direction: ParameterDirection,
}

/// The direction in which an argument passes data.
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
    /// An untyped address.
    Pointer,
    /// An untyped address that is only read through.
    ReadOnlyPointer,
    /// Raw bytes: a pointer and a size.
    Bytes,
    /// A type declared in the contract.
    Named(String),
    /// A pointer to one thing.
    PointerTo(Box<ContractType>),
    /// A pointer and a count.
    List(Box<ContractType>),
    /// A function with the signature of a declared callback.
    Callback(String),
}

impl Contract {
    /// Finds a declaration by its type name; tables carry the suffix `_table`. Rules are not found.
    pub fn find_item(&self, name: &str) -> Option<&ContractItem> {
        self.items.iter().find(|item| match item.kind {
            ItemKind::Rule(_) => false,
            _ => item.type_name() == name,
        })
    }

    /// All tables, in the order of the file.
    pub fn tables(&self) -> impl Iterator<Item = (&ContractItem, &TableDefinition)> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Table(table) => Some((item, table)),
            _ => None,
        })
    }

    /// The locked profiles: the declaration of each table, with name and version.
    pub fn locked_profiles(&self) -> impl Iterator<Item = (&ContractItem, &str, u32)> {
        self.profiles_in_stage().filter(|(item, _, _)| item.is_locked())
    }

    /// The draft profiles: the declaration of each table, with name and number of the draft.
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
    /// True if binaries may rely on the declaration.
    pub fn is_locked(&self) -> bool {
        self.stage == ItemStage::Locked
    }

    /// The name of the declared type. Tables get the suffix `_table`, so that a struct may share their name.
    pub fn type_name(&self) -> String {
        match self.kind {
            ItemKind::Table(_) => format!("{}_table", self.name),
            _ => self.name.clone(),
        }
    }
}

impl TableDefinition {
    /// The slots of the table, without its data fields.
    pub fn slots(&self) -> impl Iterator<Item = &SlotDefinition> {
        member_slots(&self.members)
    }
}

impl MemberDefinition {
    /// The minor version that added the member.
    pub fn since(&self) -> u32 {
        match self {
            Self::Field(field) => field.since,
            Self::Slot(slot) => slot.since,
        }
    }
}

/// The slots among some members.
pub fn member_slots(members: &[MemberDefinition]) -> impl Iterator<Item = &SlotDefinition> {
    members.iter().filter_map(|member| match member {
        MemberDefinition::Slot(slot) => Some(slot),
        MemberDefinition::Field(_) => None,
    })
}
