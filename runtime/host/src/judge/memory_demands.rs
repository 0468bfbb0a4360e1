//! Refuses objects that weaken the memory protection of the whole process: with an executable stack or writable code, a wrong write
//! anywhere in the program can become a way to run code.

use std::path::Path;

use crate::judge::elf::MemoryDemands;
use crate::{Refusal, RefusalReason};

/// Refuses `file`, which is the plugin itself or a library of it.
pub(crate) fn check_memory_demands(
    plugin: &Path,
    file: &Path,
    demands: MemoryDemands,
) -> Result<(), Refusal> {
    let of = if file == plugin { String::new() } else { format!(" in its library `{}`", file.display()) };
    if demands.executable_stack {
        return Err(Refusal::new(
            RefusalReason::ExecutableStack,
            plugin,
            "a plugin for which no stack has to be executable",
            format!("an executable stack{of}, or no word about it"),
            "link it with `-Wl,-z,noexecstack`, and give its assembler files a section `.note.GNU-stack`",
        ));
    }
    if demands.text_relocations {
        return Err(Refusal::new(
            RefusalReason::TextRelocations,
            plugin,
            "a plugin whose code stays as it is in the file",
            format!("relocations of its code (TEXTREL){of}"),
            "compile it with `-fPIC`, and link it with `-Wl,-z,text`",
        ));
    }
    Ok(())
}
