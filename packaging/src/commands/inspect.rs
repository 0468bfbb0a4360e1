//! `oarlock-pack inspect`.

use std::error::Error;
use std::path::PathBuf;

use oarlock_formats::instructions;

use super::say::say;
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct InspectArguments {
    /// A library or a program for x86-64
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Fail if an instruction needs AVX
    #[arg(long)]
    without_avx: bool,
    /// Fail if a smaller share of the 32-bit float instructions is packed, because kernels were not vectorized
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(..=100))]
    vectorized: Option<u8>,
}

pub(crate) fn run(call: &InspectArguments, json: bool) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    let mut wrong = Vec::new();
    let mut scalar = Vec::new();
    for file in &call.files {
        let found = instructions::encodings_in_file(file)?;
        for (written, found) in &found {
            if !json {
                say!("{}: {} {written} instructions, the first {}", file.display(), found.count, found.first);
            }
            if instructions::needs_avx(written) {
                wrong.push(format!("`{}`, {}", file.display(), found.first));
            }
        }
        let floats = instructions::float_arithmetic(&std::fs::read(file)?)?;
        let percent = floats.vectorized_percent();
        if !json {
            let all = floats.packed + floats.scalar;
            say!(
                "{}: {} of {all} instructions of 32-bit float arithmetic handle a vector, {percent} %",
                file.display(),
                floats.packed
            );
        }
        if call.vectorized.is_some_and(|least| percent < usize::from(least)) {
            scalar.push(format!("{percent} % in `{}`", file.display()));
        }
        files.push(serde_json::json!({ "file": file, "instructions": found, "float_arithmetic": floats }));
    }
    if json {
        say!("{:#}", serde_json::json!({ "files": files }));
    }
    if call.without_avx && !wrong.is_empty() {
        return Err(format!(
            "expected no instruction that needs AVX, found some, the first in {}",
            wrong.join("; in ")
        )
        .into());
    }
    if let Some(least) = call.vectorized.filter(|_| !scalar.is_empty()) {
        return Err(format!(
            "expected that at least {least} % of the float arithmetic handles vectors, found {}; look for `opt-level` in the \
             profiles of Cargo.toml",
            scalar.join(", ")
        )
        .into());
    }
    Ok(())
}
