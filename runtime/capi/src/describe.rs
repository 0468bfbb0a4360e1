//! Describes the interface: each Rust type that crosses it knows its C name, and each macro below records the documentation
//! and declarations it is given.

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
    () => "void", c_void => "void", c_char => "char", u32 => "uint32_t", u64 => "uint64_t",
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

/// Lines of documentation, as in the source.
pub type DocumentationLines = &'static [&'static str];

/// A type that programs only hold pointers to.
#[derive(Debug)]
pub struct OpaqueType {
    /// Name in C.
    pub name: String,
    /// Copied into the header.
    pub documentation: DocumentationLines,
}

/// Named constants of one type.
#[derive(Debug)]
pub struct EnumType {
    /// Name in C.
    pub name: String,
    /// Copied into the header.
    pub documentation: DocumentationLines,
    /// Names in lower case, without the enumeration's prefix, and their values.
    pub constants: Vec<(String, u32)>,
}

/// A function that a program passes in.
#[derive(Debug)]
pub struct CallbackType {
    /// Name in C.
    pub name: String,
    /// Copied into the header.
    pub documentation: DocumentationLines,
    /// In the order of the call.
    pub parameters: Vec<ParameterDeclaration>,
}

/// A struct whose fields programs access.
#[derive(Debug)]
pub struct StructType {
    /// Name in C.
    pub name: String,
    /// Copied into the header.
    pub documentation: DocumentationLines,
    /// True if later versions may add fields; the first field then holds the caller's size.
    pub grows: bool,
    /// Its size in bytes.
    pub size: usize,
    /// Its alignment in bytes.
    pub alignment: usize,
    /// Its fields in order.
    pub fields: Vec<StructField>,
}

/// A field with its place in the struct.
#[derive(Debug)]
pub struct StructField {
    /// Name and type in C.
    pub declared: ParameterDeclaration,
    /// Copied into the header.
    pub documentation: DocumentationLines,
    /// Offset in bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
}

/// A name with its type in C.
#[derive(Debug)]
pub struct ParameterDeclaration {
    /// Name in C.
    pub name: &'static str,
    /// Type in C.
    pub kind: String,
}

/// An exported function.
#[derive(Debug)]
pub struct FunctionDeclaration {
    /// Name in C.
    pub name: &'static str,
    /// Copied into the header.
    pub documentation: DocumentationLines,
    /// In the order of the call.
    pub parameters: Vec<ParameterDeclaration>,
    /// Return type in C.
    pub result: String,
}

/// Functions on one topic.
#[derive(Debug)]
pub struct FunctionSection {
    /// Heading in the header.
    pub title: &'static str,
    /// In the order of the header.
    pub functions: Vec<FunctionDeclaration>,
}

/// Lists opaque types as `Type = "name in C"`.
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

/// Defines a type for each enumeration, with the source of its constants.
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

/// Defines a type for each callback.
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

/// Defines each struct. One that `grows` begins with its own size.
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

/// Defines each exported function, which forwards to the Rust function named after it.
macro_rules! functions {
    ($($title:literal { $(
        $(#[doc = $doc:literal])*
        fn $name:ident($($parameter:ident: $kind:ty),* $(,)?) -> $result:ty = $function:path;
    )* })*) => {
        $($(
            $(#[doc = $doc])*
            ///
            /// # Safety
            /// Every pointer is NULL where this says that it may be, or what the text and the type say, for as long as it says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($parameter: $kind),*) -> $result {
                // SAFETY: the caller passes what this function asks for, which is what the other one does.
                $crate::panic_guard::catch_panics(|| unsafe { $function($($parameter),*) })
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
