//! How the interface describes itself: each Rust type that crosses knows its name in C, and each list of types or functions
//! keeps what stands in it.

use core::ffi::{c_char, c_void};

/// A type that has a name in C.
pub trait CType {
    /// The name, such as `const oarlock_value *`.
    fn c_name() -> String;
}

macro_rules! plain {
    ($($rust:ty => $name:literal),* $(,)?) => {
        $(impl CType for $rust { fn c_name() -> String { $name.to_owned() } })*
    };
}

plain! {
    () => "void", c_void => "void", c_char => "char", u8 => "uint8_t", u32 => "uint32_t", u64 => "uint64_t",
    i64 => "int64_t", f32 => "float", f64 => "double",
}

impl<T: CType> CType for *const T {
    fn c_name() -> String {
        let pointee = T::c_name();
        if pointee.ends_with('*') { format!("{pointee}const *") } else { format!("const {pointee} *") }
    }
}

impl<T: CType> CType for *mut T {
    fn c_name() -> String {
        let pointee = T::c_name();
        if pointee.ends_with('*') { format!("{pointee}*") } else { format!("{pointee} *") }
    }
}

/// Lines of documentation, as they stand in the source.
pub type DocumentationLines = &'static [&'static str];

/// A type that programs hold pointers to and never look into.
#[derive(Debug)]
pub struct OpaqueType {
    /// Its name.
    pub name: String,
    /// What it is.
    pub documentation: DocumentationLines,
}

/// Numbers with names.
#[derive(Debug)]
pub struct EnumType {
    /// Its name.
    pub name: String,
    /// What the numbers mean.
    pub documentation: DocumentationLines,
    /// The names in lower case, without that of the enumeration, and the numbers.
    pub constants: Vec<(String, u32)>,
}

/// A function that a program hands over.
#[derive(Debug)]
pub struct CallbackType {
    /// Its name.
    pub name: String,
    /// When it is called.
    pub documentation: DocumentationLines,
    /// Names and types.
    pub parameters: Vec<ParameterDeclaration>,
}

/// A struct that programs see into.
#[derive(Debug)]
pub struct StructType {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub documentation: DocumentationLines,
    /// Whether later versions may add fields. Then its first field says how large it is.
    pub grows: bool,
    /// Its size in bytes.
    pub size: usize,
    /// Its alignment in bytes.
    pub alignment: usize,
    /// Its fields in order.
    pub fields: Vec<StructField>,
}

/// A field of a struct.
#[derive(Debug)]
pub struct StructField {
    /// Its name and type.
    pub declared: ParameterDeclaration,
    /// What it holds.
    pub documentation: DocumentationLines,
    /// Where it begins.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
}

/// A name with its type in C.
#[derive(Debug)]
pub struct ParameterDeclaration {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub kind: String,
}

/// A function of the library.
#[derive(Debug)]
pub struct FunctionDeclaration {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub documentation: DocumentationLines,
    /// Names and types.
    pub parameters: Vec<ParameterDeclaration>,
    /// The type of what it gives.
    pub result: String,
}

/// Functions about one thing.
#[derive(Debug)]
pub struct FunctionSection {
    /// The thing.
    pub title: &'static str,
    /// The functions in order.
    pub functions: Vec<FunctionDeclaration>,
}

/// Lists the types that programs hold pointers to, as `Type = "name in C"`.
macro_rules! opaques {
    ($($(#[doc = $doc:literal])* $handle:ty = $name:literal;)*) => {
        $(impl $crate::describe::CType for $handle {
            fn c_name() -> String { $name.to_owned() }
        })*

        /// The types that programs hold pointers to.
        pub fn opaques() -> Vec<$crate::describe::OpaqueType> {
            vec![$($crate::describe::OpaqueType { name: $name.to_owned(), documentation: &[$($doc),*] }),*]
        }
    };
}

/// Makes a type of each enumeration, with where its constants come from.
macro_rules! enumerations {
    ($($(#[doc = $doc:literal])* $number:ident = $name:literal, $constants:expr;)*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            #[repr(transparent)]
            pub struct $number(pub u32);

            impl $crate::describe::CType for $number {
                fn c_name() -> String { $name.to_owned() }
            }
        )*

        /// The numbers that have names.
        pub fn enumerations() -> Vec<$crate::describe::EnumType> {
            vec![$($crate::describe::EnumType {
                name: $name.to_owned(),
                documentation: &[$($doc),*],
                constants: $constants,
            }),*]
        }
    };
}

/// Makes a type of each function that programs hand over.
macro_rules! callbacks {
    ($($(#[doc = $doc:literal])* fn $callback:ident = $name:literal($($parameter:ident: $kind:ty),* $(,)?);)*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Copy)]
            #[repr(transparent)]
            pub struct $callback(pub Option<unsafe extern "C" fn($($parameter: $kind),*)>);

            impl $crate::describe::CType for $callback {
                fn c_name() -> String { $name.to_owned() }
            }
        )*

        /// The functions that programs hand over.
        pub fn callbacks() -> Vec<$crate::describe::CallbackType> {
            vec![$($crate::describe::CallbackType {
                name: $name.to_owned(),
                documentation: &[$($doc),*],
                parameters: $crate::describe::parameters!($($parameter: $kind),*),
            }),*]
        }
    };
}

/// Makes each struct. One that `grows` has its own size as its first field.
macro_rules! structures {
    ($($(#[doc = $doc:literal])* struct $rust:ident = $name:literal, grows: $grows:literal {
        $($(#[doc = $field_doc:literal])* $field:ident: $kind:ty,)*
    })*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Copy)]
            #[repr(C)]
            pub struct $rust {
                $($(#[doc = $field_doc])* pub $field: $kind,)*
            }

            impl $crate::describe::CType for $rust {
                fn c_name() -> String { $name.to_owned() }
            }
        )*

        /// The structs that programs see into.
        pub fn structures() -> Vec<$crate::describe::StructType> {
            vec![$($crate::describe::StructType {
                name: $name.to_owned(),
                documentation: &[$($doc),*],
                grows: $grows,
                size: size_of::<$rust>(),
                alignment: align_of::<$rust>(),
                fields: vec![$($crate::describe::StructField {
                    declared: $crate::describe::parameters!($field: $kind).remove(0),
                    documentation: &[$($field_doc),*],
                    offset: core::mem::offset_of!($rust, $field),
                    size: size_of::<$kind>(),
                }),*],
            }),*]
        }
    };
}

/// Makes each exported function, which leads to the one that is named behind it.
macro_rules! functions {
    ($($title:literal { $(
        $(#[doc = $doc:literal])*
        fn $name:ident($($parameter:ident: $kind:ty),* $(,)?) -> $result:ty = $way:path;
    )* })*) => {
        $($(
            $(#[doc = $doc])*
            ///
            /// # Safety
            /// Every pointer is NULL where this says that it may be, or what the text and the type say, for as long as it says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($parameter: $kind),*) -> $result {
                // SAFETY: the caller passes what this function asks for, which is what the other one does.
                $crate::panic_guard::catch_panics(|| unsafe { $way($($parameter),*) })
            }
        )*)*

        /// The functions of the library.
        pub fn sections() -> Vec<$crate::describe::FunctionSection> {
            vec![$($crate::describe::FunctionSection {
                title: $title,
                functions: vec![$($crate::describe::FunctionDeclaration {
                    name: stringify!($name),
                    documentation: &[$($doc),*],
                    parameters: $crate::describe::parameters!($($parameter: $kind),*),
                    result: <$result as $crate::describe::CType>::c_name(),
                }),*],
            }),*]
        }
    };
}

macro_rules! parameters {
    ($($name:ident: $kind:ty),*) => {
        vec![$($crate::describe::ParameterDeclaration {
            name: stringify!($name),
            kind: <$kind as $crate::describe::CType>::c_name(),
        }),*]
    };
}

pub(crate) use {callbacks, enumerations, functions, opaques, parameters, structures};
