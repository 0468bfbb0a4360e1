//! Generates code and documentation from the plugin contract, and Rust types for the messages in model files.

mod c_header;
mod host_calls;
mod isolation;
mod layer_calls;
mod messages;
mod names;
mod params;
mod reference;
mod rust_bindings;
mod sdk_glue;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use oarlock_contract::{Contract, lock};

const CONTRACT_FILE: &str = "device-sdk/contract/oarlock.contract";
const LOCK_FILE: &str = "device-sdk/contract/abi.lock";
const DRAFT_FILE: &str = "device-sdk/contract/abi.draft";
const ONNX_PROTO: &str = "runtime/model/protos/onnx-ml.proto";
const PADDLE_PROTO: &str = "runtime/model/protos/paddle.proto";

/// Writes the generated files or, with `check`, reports stale ones.
pub(crate) fn run(check: bool) -> Result<()> {
    let root = crate::root();
    let source = std::fs::read_to_string(root.join(CONTRACT_FILE)).context(CONTRACT_FILE)?;
    let contract = oarlock_contract::read_contract(&source)
        .map_err(|error| anyhow::anyhow!("`{CONTRACT_FILE}`: {error}"))?;
    update_lock(&root, &contract)?;
    let mut stale = Vec::new();
    for (path, text) in generated_files(&root, &contract)? {
        let target = root.join(&path);
        if std::fs::read_to_string(&target).is_ok_and(|present| present == text) {
            continue;
        }
        if !check {
            std::fs::create_dir_all(target.parent().context("a file without a directory")?)?;
            std::fs::write(&target, text).with_context(|| format!("writing `{}`", path.display()))?;
        }
        stale.push(path.display().to_string());
    }
    ensure!(
        !check || stale.is_empty(),
        "stale: {}; run `cargo xtask generate` and commit what it writes",
        stale.join(", ")
    );
    for path in stale {
        println!("wrote {path}");
    }
    Ok(())
}

fn generated_files(root: &Path, contract: &Contract) -> Result<Vec<(PathBuf, String)>> {
    let rust = |path: &str, text: String| Ok::<_, anyhow::Error>((PathBuf::from(path), format_rust(&text)?));
    Ok(vec![
        (LOCK_FILE.into(), lock::lock_text(contract)),
        (DRAFT_FILE.into(), lock::draft_text(contract)),
        ("device-sdk/include/oarlock/contract.h".into(), c_header::contract_header(contract)),
        ("device-sdk/include/oarlock/contract_draft.h".into(), c_header::draft_header(contract)),
        ("device-sdk/include/oarlock/contract_layout.h".into(), c_header::layout_check_header(contract)),
        ("docs/src/reference/contract.md".into(), reference::reference_page(contract)),
        rust("device-sdk/abi/src/generated.rs", rust_bindings::abi_bindings(contract))?,
        rust("device-sdk/abi/src/draft.rs", rust_bindings::draft_bindings(contract))?,
        rust("device-sdk/sdk/src/generated.rs", sdk_glue::sdk_bindings(contract))?,
        rust("runtime/host/src/generated.rs", host_calls::host_bindings(contract))?,
        rust("plugins/layer/src/contract_names.rs", layer_calls::layer_names(contract))?,
        rust("plugins/layer/src/generated.rs", layer_calls::layer_bindings(contract))?,
        rust("runtime/isolation/src/wire/generated.rs", isolation::slot_numbers(contract)?)?,
        rust("runtime/isolation/src/wire/descriptions.rs", isolation::description_codec(contract)?)?,
        rust("runtime/isolation/src/proxy/arguments.rs", isolation::argument_writers(contract)?)?,
        rust("runtime/isolation/src/proxy/generated.rs", isolation::proxy_tables(contract)?)?,
        rust("runtime/isolation/src/serve/arguments.rs", isolation::argument_readers(contract)?)?,
        rust("runtime/isolation/src/serve/generated.rs", isolation::slot_service(contract)?)?,
        rust("runtime/model/src/import/onnx/messages.rs", messages::message_types(root, ONNX_PROTO)?)?,
        rust("runtime/model/src/import/paddle/messages.rs", messages::message_types(root, PADDLE_PROTO)?)?,
    ])
}

/// Rejects a contract that lacks a line of its lock, since existing binaries rely on each.
fn update_lock(root: &Path, contract: &Contract) -> Result<()> {
    let Ok(old) = std::fs::read_to_string(root.join(LOCK_FILE)) else { return Ok(()) };
    let new = lock::lock_text(contract);
    let lost = lock::lost_lines(&old, &new);
    if !lost.is_empty() {
        bail!(
            "the contract breaks binaries; these lines of `{LOCK_FILE}` would be lost:\n  {}\nappend instead, with `since`",
            lost.join("\n  ")
        );
    }
    Ok(())
}

fn format_rust(source: &str) -> Result<String> {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../rustfmt.toml");
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout", "--config-path", config])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting rustfmt; `rustup component add rustfmt` installs it")?;
    child.stdin.take().context("no way into rustfmt")?.write_all(source.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "rustfmt refused generated code; its message is above");
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use oarlock_contract::{CONTRACT_SOURCE, read_contract};

    use super::{host_calls, layer_calls, lock, sdk_glue};

    #[test]
    fn generated_files_are_up_to_date() {
        super::run(true).unwrap();
    }

    #[test]
    fn the_host_and_the_sdk_get_code_for_a_draft_on_trial_and_for_no_other() {
        let written = read_contract(CONTRACT_SOURCE).unwrap();
        let tried =
            read_contract(&CONTRACT_SOURCE.replace("draft table graph", "trial table graph")).unwrap();
        let (host, sdk) = (host_calls::host_bindings(&tried), sdk_glue::sdk_bindings(&tried));
        for wanted in ["struct GraphCalls", "table: abi::draft::GraphTable", "unsafe fn graph_run"] {
            assert!(host.contains(wanted), "{wanted}");
            assert!(!host_calls::host_bindings(&written).contains(wanted), "{wanted}");
        }
        for wanted in ["pub trait Graph", "Result<abi::draft::Executable>", "{HostPointer, ByteSink, "] {
            assert!(sdk.contains(wanted), "{wanted}");
            assert!(!sdk_glue::sdk_bindings(&written).contains(wanted), "{wanted}");
        }
        assert!(!host.contains("Collective") && !sdk.contains("Collective"), "one draft was put on trial");
        assert_eq!(
            layer_calls::layer_bindings(&tried),
            layer_calls::layer_bindings(&written),
            "layers do not see drafts"
        );
        assert_eq!(lock::lock_text(&tried), lock::lock_text(&written), "a trial locks nothing");
    }
}
