//! Generates the header that programs include, and the lock file that fixes the ABI.

use std::fmt::Write as _;

use crate::describe::{DocumentationLines, EnumType, FunctionDeclaration, ParameterDeclaration, StructType};
use crate::interface::{self, ABI_VERSION};

const HEADER_PROLOGUE: &str = include_str!("head.h");
const HEADER_EPILOGUE: &str = "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
/// Prefix of every name; the lock file omits it.
const NAME_PREFIX: &str = "oarlock_";
const MAX_LINE_WIDTH: usize = 118;

/// The complete text of `oarlock.h`.
pub fn render_header() -> String {
    let mut out = HEADER_PROLOGUE.replace("@ABI@", &ABI_VERSION.to_string());
    out.push_str("\n/* Handles */\n");
    for opaque in interface::opaques() {
        write_comment(&mut out, opaque.documentation, "");
        push_formatted(&mut out, format_args!("typedef struct {0} {0};\n", opaque.name));
    }
    out.push_str("\n/* Numbers with names */\n");
    for enumeration in interface::enumerations() {
        write_comment(&mut out, enumeration.documentation, "");
        push_formatted(&mut out, format_args!("typedef uint32_t {};\n", enumeration.name));
        for (name, value) in &enumeration.constants {
            push_formatted(
                &mut out,
                format_args!("#define {} {value}u\n", constant_name(&enumeration, name)),
            );
        }
    }
    out.push_str("\n/* Functions of the program */\n");
    for callback in interface::callbacks() {
        write_comment(&mut out, callback.documentation, "");
        let head = format!("typedef void (*{})(", callback.name);
        out.push_str(&declare_function(&head, &callback.parameters));
    }
    out.push_str("\n/* Structs */\n");
    for structure in interface::structures() {
        write_comment(&mut out, structure.documentation, "");
        push_formatted(&mut out, format_args!("typedef struct {} {{\n", structure.name));
        for field in &structure.fields {
            write_comment(&mut out, field.documentation, "    ");
            push_formatted(&mut out, format_args!("    {};\n", declare_parameter(&field.declared)));
        }
        push_formatted(&mut out, format_args!("}} {};\n", structure.name));
    }
    for section in interface::sections() {
        push_formatted(&mut out, format_args!("\n/* {} */\n", section.title));
        for function in &section.functions {
            write_comment(&mut out, function.documentation, "");
            let result = type_with_space(&function.result);
            let head = format!("OARLOCK_API {result}{}(", function.name);
            out.push_str(&declare_function(&head, &function.parameters));
        }
    }
    out + HEADER_EPILOGUE
}

/// The text of `abi.lock`: one line for each fact that programs rely on. Lines are never removed. Structs that grow list no
/// size, because each program states its own.
pub fn render_abi_lock() -> String {
    let mut out = String::from(
        "# Every fact that programs rely on. Lines are only ever added; `OARLOCK_WRITE=1 cargo test -p oarlock-capi` does.\n",
    );
    let short = |name: &str| name.replace(NAME_PREFIX, "");
    for opaque in interface::opaques() {
        push_formatted(&mut out, format_args!("handle {}\n", short(&opaque.name)));
    }
    for enumeration in interface::enumerations() {
        for (name, value) in &enumeration.constants {
            push_formatted(
                &mut out,
                format_args!("constant {}.{name} = {value}: u32\n", short(&enumeration.name)),
            );
        }
    }
    for callback in interface::callbacks() {
        let parameters = short(&declare_parameters(&callback.parameters));
        push_formatted(&mut out, format_args!("callback {}({parameters})\n", short(&callback.name)));
    }
    for structure in interface::structures() {
        write_struct_lock(&mut out, &structure);
    }
    for function in list_functions() {
        let (parameters, result) =
            (short(&declare_parameters(&function.parameters)), short(&function.result));
        push_formatted(&mut out, format_args!("function {}({parameters}) -> {result}\n", function.name));
    }
    out
}

/// C source that fails to compile if the compiler lays out a struct differently.
pub fn render_layout_check() -> String {
    let mut out = String::from("#include <stddef.h>\n#include <oarlock.h>\n");
    let mut holds =
        |claim: String| push_formatted(&mut out, format_args!("_Static_assert({claim}, \"{claim}\");\n"));
    for StructType { name, size, alignment, fields, .. } in interface::structures() {
        holds(format!("sizeof({name}) == {size}"));
        holds(format!("_Alignof({name}) == {alignment}"));
        for field in fields {
            let member = field.declared.name;
            holds(format!("offsetof({name}, {member}) == {}", field.offset));
            holds(format!("sizeof((({name} *)0)->{member}) == {}", field.size));
        }
    }
    out
}

/// All functions, in the order of the header.
pub fn list_functions() -> Vec<FunctionDeclaration> {
    interface::sections().into_iter().flat_map(|section| section.functions).collect()
}

fn write_struct_lock(out: &mut String, structure: &StructType) {
    let name = structure.name.replace(NAME_PREFIX, "");
    let size = if structure.grows { "grows".to_owned() } else { format!("size {}", structure.size) };
    push_formatted(out, format_args!("struct {name}: {size} align {}\n", structure.alignment));
    for field in &structure.fields {
        let (field_name, kind) = (field.declared.name, field.declared.kind.replace(NAME_PREFIX, ""));
        let place = format!("at {} size {}", field.offset, field.size);
        push_formatted(out, format_args!("field {name}.{field_name} {place}: {kind}\n"));
    }
}

fn constant_name(enumeration: &EnumType, name: &str) -> String {
    format!("{}_{name}", enumeration.name).to_uppercase()
}

fn write_comment(out: &mut String, documentation: DocumentationLines, indent: &str) {
    let lines: Vec<&str> = documentation.iter().map(|line| line.trim()).collect();
    let gap = if out.ends_with("{\n") { "" } else { "\n" };
    push_formatted(out, format_args!("{gap}{indent}/** {} */\n", lines.join(&format!("\n{indent} *  "))));
}

/// Appends the space between a type and a name.
fn type_with_space(kind: &str) -> String {
    if kind.ends_with('*') { kind.to_owned() } else { format!("{kind} ") }
}

fn declare_parameter(parameter: &ParameterDeclaration) -> String {
    type_with_space(&parameter.kind) + parameter.name
}

fn declare_parameters(parameters: &[ParameterDeclaration]) -> String {
    parameters.iter().map(declare_parameter).collect::<Vec<_>>().join(", ")
}

/// Declares a function on one line if it fits, else with one parameter per line.
fn declare_function(head: &str, all: &[ParameterDeclaration]) -> String {
    let list = if all.is_empty() { "void".to_owned() } else { declare_parameters(all) };
    let line = format!("{head}{list});\n");
    if line.len() <= MAX_LINE_WIDTH {
        return line;
    }
    let lines: Vec<String> =
        all.iter().map(|parameter| format!("    {}", declare_parameter(parameter))).collect();
    format!("{head}\n{});\n", lines.join(",\n"))
}

fn push_formatted(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    _ = out.write_fmt(text);
}
