//! Templates of sources, and the parts that all of them share: operands and walks.

use std::fmt::Write as _;

use oarlock_sdk::Dtype;

use super::element::{dtype_name, stored_type};
use crate::operand_walk::ElementAccess;

/// A source with placeholders, each written `{{name}}`.
pub(crate) struct SourceTemplate(String);

impl SourceTemplate {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn fill_gap(self, gap: &str, text: &str) -> Self {
        Self(self.0.replace(&format!("{{{{{gap}}}}}"), text))
    }

    pub(crate) fn into_source(self) -> String {
        self.0
    }
}

/// An operand by its name in the source.
#[derive(Clone, Copy)]
pub(crate) struct NamedOperand<'a> {
    pub(crate) name: &'a str,
    pub(crate) dtype: Dtype,
}

/// Parameter list of the operands, two per operand. The last operand is the output.
pub(crate) fn operand_parameters(operands: &[NamedOperand<'_>]) -> String {
    // `const`, but not `restrict`: a kernel that runs in place has input and output in the same memory.
    let mut text = String::new();
    for (index, NamedOperand { name, dtype }) in operands.iter().enumerate() {
        let (constant, stored) =
            (if index + 1 == operands.len() { "" } else { "const " }, stored_type(*dtype));
        // Writing to a string cannot fail.
        let _ = write!(text, "GLOBAL {constant}{stored} *{name}_block, u64 {name}_offset, ");
    }
    text
}

/// Declares a pointer to each operand's first element.
pub(crate) fn operand_declarations(operands: &[NamedOperand<'_>]) -> String {
    let mut text = String::new();
    for (index, NamedOperand { name, dtype }) in operands.iter().enumerate() {
        let (constant, stored) =
            (if index + 1 == operands.len() { "" } else { "const " }, stored_type(*dtype));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "    GLOBAL {constant}{stored} *{name} = AT({constant}{stored}, {name}_block, {name}_offset);"
        );
    }
    text
}

/// Macros such as `LOAD_A` and `STORE_Y`, one per operand; the last operand is the output.
pub(crate) fn operand_accessors(operands: &[NamedOperand<'_>]) -> String {
    let mut text = String::new();
    for (index, operand) in operands.iter().enumerate() {
        let (capital, dtype) = (operand.name.to_uppercase(), dtype_name(operand.dtype));
        let (macro_name, function) =
            if index + 1 == operands.len() { ("STORE", "store") } else { ("LOAD", "load") };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "#define {macro_name}_{capital} {function}_{dtype}");
    }
    text
}

/// The struct type of a walk and its parameter; both empty if no operand is strided.
pub(crate) fn walk_struct(name: &str, rank: u8, operands: &[(&str, ElementAccess)]) -> (String, String) {
    if rank == 0 {
        // C has no struct without members, and OpenCL limits the size of all arguments.
        return (String::new(), String::new());
    }
    let stepped = operands.iter().filter(|(_, access)| *access == ElementAccess::Stepped);
    // Always 64 bits, whatever `INDEX` is, so that the host encodes a single layout.
    let fields: String = stepped.map(|(operand, _)| format!(" i64 {operand}[{rank}];")).collect();
    (format!("struct {name} {{ i64 dims[{rank}];{fields} }};"), format!("struct {name} {name}, "))
}

/// Declares `x_at` for each operand `x`: the index that belongs to index `of` of the output.
pub(crate) fn index_declarations(
    walk: &str,
    rank: u8,
    of: &str,
    operands: &[(&str, ElementAccess)],
) -> String {
    let (mut before, mut inside) = (String::new(), String::new());
    for (operand, access) in operands {
        let start = if *access == ElementAccess::Flat { of } else { "0" };
        // Writing to a string cannot fail.
        let _ = writeln!(before, "    INDEX {operand}_at = {start};");
        if *access == ElementAccess::Stepped {
            let _ = writeln!(inside, "            {operand}_at += index * (INDEX){walk}.{operand}[axis];");
        }
    }
    if inside.is_empty() {
        return before;
    }
    format!(
        // The rank is a constant, so the compiler can unroll the loop. At the outermost dimension the rest is the index, which saves a
        // division.
        "{before}    {{\n        INDEX rest = {of};\n        for (int axis = {rank} - 1; axis >= 0; --axis) {{\n            \
         INDEX index = axis == 0 ? rest : rest % (INDEX){walk}.dims[axis];\n            \
         rest /= (INDEX){walk}.dims[axis];\n{inside}        }}\n    }}\n"
    )
}
