//! Filling in sources, and the parts that all of them have: operands and walks.

use std::fmt::Write as _;

use oarlock_sdk::Dtype;

use super::element::{dtype_name, stored_type};
use crate::operand_walk::ElementAccess;

/// A source with gaps, each written `{{name}}`.
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

/// An operand: its name in the source and its dtype.
#[derive(Clone, Copy)]
pub(crate) struct NamedOperand<'a> {
    pub(crate) name: &'a str,
    pub(crate) dtype: Dtype,
}

/// The two parameters of each operand, of which the last is written.
pub(crate) fn operand_parameters(operands: &[NamedOperand<'_>]) -> String {
    let mut text = String::new();
    for (index, NamedOperand { name, dtype }) in operands.iter().enumerate() {
        let (constant, stored) =
            (if index + 1 == operands.len() { "" } else { "const " }, stored_type(*dtype));
        // Writing to a string cannot fail.
        let _ = write!(text, "GLOBAL {constant}{stored} *{name}_block, u64 {name}_offset, ");
    }
    text
}

/// The declarations of the operands' first elements.
pub(crate) fn operand_declarations(operands: &[NamedOperand<'_>]) -> String {
    let mut text = String::new();
    for (index, NamedOperand { name, dtype }) in operands.iter().enumerate() {
        let (constant, stored) =
            (if index + 1 == operands.len() { "" } else { "const " }, stored_type(*dtype));
        // As above.
        let _ = writeln!(
            text,
            "    GLOBAL {constant}{stored} *{name} = AT({constant}{stored}, {name}_block, {name}_offset);"
        );
    }
    text
}

/// The functions that read and write each operand, as macros that carry its name in capitals.
pub(crate) fn operand_accessors(operands: &[NamedOperand<'_>]) -> String {
    let mut text = String::new();
    for (index, operand) in operands.iter().enumerate() {
        let (capital, dtype) = (operand.name.to_uppercase(), dtype_name(operand.dtype));
        let (macro_name, function) =
            if index + 1 == operands.len() { ("STORE", "store") } else { ("LOAD", "load") };
        // As above.
        let _ = writeln!(text, "#define {macro_name}_{capital} {function}_{dtype}");
    }
    text
}

/// The struct of a walk called `name`, and its parameter, for operands of which some are read by steps.
pub(crate) fn walk_struct(name: &str, rank: u8, operands: &[(&str, ElementAccess)]) -> (String, String) {
    if rank == 0 {
        return (String::new(), String::new());
    }
    let stepped = operands.iter().filter(|(_, access)| *access == ElementAccess::Stepped);
    let fields: String = stepped.map(|(operand, _)| format!(" i64 {operand}[{rank}];")).collect();
    (format!("struct {name} {{ i64 dims[{rank}];{fields} }};"), format!("struct {name} {name}, "))
}

/// The declarations of `x_at` for each operand `x`: the index of its element that belongs to element `of`.
pub(crate) fn index_declarations(
    walk: &str,
    rank: u8,
    of: &str,
    operands: &[(&str, ElementAccess)],
) -> String {
    let (mut before, mut inside) = (String::new(), String::new());
    for (operand, access) in operands {
        let start = if *access == ElementAccess::Flat { of } else { "0" };
        // As above.
        let _ = writeln!(before, "    INDEX {operand}_at = {start};");
        if *access == ElementAccess::Stepped {
            let _ = writeln!(inside, "            {operand}_at += index * (INDEX){walk}.{operand}[axis];");
        }
    }
    if inside.is_empty() {
        return before;
    }
    format!(
        "{before}    {{\n        INDEX rest = {of};\n        for (int axis = {rank} - 1; axis >= 0; --axis) {{\n            \
         INDEX index = axis == 0 ? rest : rest % (INDEX){walk}.dims[axis];\n            \
         rest /= (INDEX){walk}.dims[axis];\n{inside}        }}\n    }}\n"
    )
}
