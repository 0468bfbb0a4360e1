//! `oarlock-pack inspect`.

use std::error::Error;
use std::path::PathBuf;

use super::say::say;

use clap::Args;
use oarlock_pack::instructions;

#[derive(Args, Debug)]
pub(crate) struct Call {
    /// A library or a program for x86-64
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Fail where an instruction needs AVX
    #[arg(long)]
    without_avx: bool,
}

pub(crate) fn run(call: &Call, json: bool) -> Result<(), Box<dyn Error>> {
    let mut told = Vec::new();
    let mut wrong = Vec::new();
    for file in &call.files {
        let found = instructions::found(file)?;
        for (written, found) in &found {
            if !json {
                say!("{}: {} {written} instructions, the first {}", file.display(), found.count, found.first);
            }
            if instructions::needs_avx(written) {
                wrong.push(format!("`{}`, {}", file.display(), found.first));
            }
        }
        told.push(serde_json::json!({ "file": file, "instructions": found }));
    }
    if json {
        say!("{:#}", serde_json::json!({ "files": told }));
    }
    if call.without_avx && !wrong.is_empty() {
        return Err(format!(
            "expected no instruction that needs AVX, found some, the first in {}",
            wrong.join("; in ")
        )
        .into());
    }
    Ok(())
}
