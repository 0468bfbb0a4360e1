//! The interface as text: the header that programs include, and the lock that holds the ABI.

use std::fmt::Write as _;

use crate::describe::{Documentation, Enumeration, Function, Parameter, Structure};
use crate::interface::{self, ABI};

const HEAD: &str = include_str!("head.h");
const TAIL: &str = "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
/// The prefix of every name, which the lock leaves out.
const PREFIX: &str = "oarlock_";
/// The longest line of the header.
const WIDTH: usize = 118;

/// The text of `oarlock.h`.
pub fn header() -> String {
    let mut out = HEAD.replace("@ABI@", &ABI.to_string());
    out.push_str("\n/* Handles */\n");
    for opaque in interface::opaques() {
        comment(&mut out, opaque.documentation, "");
        add(&mut out, format_args!("typedef struct {0} {0};\n", opaque.name));
    }
    out.push_str("\n/* Numbers with names */\n");
    for enumeration in interface::enumerations() {
        comment(&mut out, enumeration.documentation, "");
        add(&mut out, format_args!("typedef uint32_t {};\n", enumeration.name));
        for (name, value) in &enumeration.constants {
            add(&mut out, format_args!("#define {} {value}u\n", constant(&enumeration, name)));
        }
    }
    out.push_str("\n/* Functions of the program */\n");
    for callback in interface::callbacks() {
        comment(&mut out, callback.documentation, "");
        let head = format!("typedef void (*{})(", callback.name);
        out.push_str(&declaration(&head, &callback.parameters));
    }
    out.push_str("\n/* Structs */\n");
    for structure in interface::structures() {
        comment(&mut out, structure.documentation, "");
        add(&mut out, format_args!("typedef struct {} {{\n", structure.name));
        for field in &structure.fields {
            comment(&mut out, field.documentation, "    ");
            add(&mut out, format_args!("    {};\n", declared(&field.declared)));
        }
        add(&mut out, format_args!("}} {};\n", structure.name));
    }
    for section in interface::sections() {
        add(&mut out, format_args!("\n/* {} */\n", section.title));
        for function in &section.functions {
            comment(&mut out, function.documentation, "");
            let result = spaced(&function.result);
            let head = format!("OARLOCK_API {result}{}(", function.name);
            out.push_str(&declaration(&head, &function.parameters));
        }
    }
    out + TAIL
}

/// The text of `abi.lock`: every fact on which programs rely, a line each. A line stays for ever; a struct that grows says
/// no size, since each program says its own.
pub fn lock() -> String {
    let mut out = String::from(
        "# Every fact that programs rely on. Lines are only ever added; `OARLOCK_WRITE=1 cargo test -p oarlock-capi` does.\n",
    );
    let short = |name: &str| name.replace(PREFIX, "");
    for opaque in interface::opaques() {
        add(&mut out, format_args!("handle {}\n", short(&opaque.name)));
    }
    for enumeration in interface::enumerations() {
        for (name, value) in &enumeration.constants {
            add(&mut out, format_args!("constant {}.{name} = {value}: u32\n", short(&enumeration.name)));
        }
    }
    for callback in interface::callbacks() {
        let parameters = short(&parameters(&callback.parameters));
        add(&mut out, format_args!("callback {}({parameters})\n", short(&callback.name)));
    }
    for structure in interface::structures() {
        lock_structure(&mut out, &structure);
    }
    for function in functions() {
        let (parameters, result) = (short(&parameters(&function.parameters)), short(&function.result));
        add(&mut out, format_args!("function {}({parameters}) -> {result}\n", function.name));
    }
    out
}

/// A source in C that does not compile where a compiler lays out a struct differently.
pub fn layout_check() -> String {
    let mut out = String::from("#include <stddef.h>\n#include <oarlock.h>\n");
    let mut holds = |claim: String| add(&mut out, format_args!("_Static_assert({claim}, \"{claim}\");\n"));
    for Structure { name, size, alignment, fields, .. } in interface::structures() {
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

/// The functions of all sections.
pub fn functions() -> Vec<Function> {
    interface::sections().into_iter().flat_map(|section| section.functions).collect()
}

fn lock_structure(out: &mut String, structure: &Structure) {
    let name = structure.name.replace(PREFIX, "");
    let size = if structure.grows { "grows".to_owned() } else { format!("size {}", structure.size) };
    add(out, format_args!("struct {name}: {size} align {}\n", structure.alignment));
    for field in &structure.fields {
        let (field_name, kind) = (field.declared.name, field.declared.kind.replace(PREFIX, ""));
        let place = format!("at {} size {}", field.offset, field.size);
        add(out, format_args!("field {name}.{field_name} {place}: {kind}\n"));
    }
}

fn constant(enumeration: &Enumeration, name: &str) -> String {
    format!("{}_{name}", enumeration.name).to_uppercase()
}

fn comment(out: &mut String, documentation: Documentation, indent: &str) {
    let lines: Vec<&str> = documentation.iter().map(|line| line.trim()).collect();
    let gap = if out.ends_with("{\n") { "" } else { "\n" };
    add(out, format_args!("{gap}{indent}/** {} */\n", lines.join(&format!("\n{indent} *  "))));
}

/// A type with the space that comes before a name.
fn spaced(kind: &str) -> String {
    if kind.ends_with('*') { kind.to_owned() } else { format!("{kind} ") }
}

fn declared(parameter: &Parameter) -> String {
    spaced(&parameter.kind) + parameter.name
}

fn parameters(parameters: &[Parameter]) -> String {
    parameters.iter().map(declared).collect::<Vec<_>>().join(", ")
}

/// The head of a function with its parameters, on one line where that is not too long.
fn declaration(head: &str, all: &[Parameter]) -> String {
    let list = if all.is_empty() { "void".to_owned() } else { parameters(all) };
    let line = format!("{head}{list});\n");
    if line.len() <= WIDTH {
        return line;
    }
    let lines: Vec<String> = all.iter().map(|parameter| format!("    {}", declared(parameter))).collect();
    format!("{head}\n{});\n", lines.join(",\n"))
}

fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string never fails.
    _ = out.write_fmt(text);
}
