//! `cargo xtask plugin-report`: which published plugins today's host loads, as a table for a release.
//!
//! It takes wheels, Debian packages and plugin files, unpacks them, and asks `oarlock plugin check --quick` about each plugin in a
//! process and with a cache of its own.

mod render;
mod unpack;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::plugin_report::unpack::{PublishedPlugin, find_plugins};

#[derive(Args)]
pub(crate) struct PluginReportArguments {
    /// Wheels, Debian packages, plugin files, or directories of them
    #[arg(required = true, value_name = "PATH")]
    places: Vec<PathBuf>,
    /// The command that loads the plugins
    #[arg(long, value_name = "FILE", default_value = "target/release/oarlock")]
    oarlock: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the table to this HTML file too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// What the host says about one plugin.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct PluginLoadRow {
    /// The wheel, package or directory that has it.
    package: String,
    file: String,
    /// Name, version and kind, if it said who it is.
    identity: String,
    /// The versions of the contract that it speaks, and the host's.
    contract: String,
    loads: bool,
    /// Why it does not load.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
}

pub(crate) fn run(arguments: &PluginReportArguments) -> Result<()> {
    let oarlock = std::path::absolute(&arguments.oarlock)?;
    ensure!(
        oarlock.is_file(),
        "expected the command at `{}`, found none; build it with `cargo build --release -p oarlock-cli`, or name it with `--oarlock`",
        oarlock.display()
    );
    let place = tempfile::tempdir()?;
    let plugins = find_plugins(&arguments.places, place.path())?;
    ensure!(!plugins.is_empty(), "expected plugins in what was named, found none");
    let mut rows = Vec::new();
    for (index, plugin) in plugins.iter().enumerate() {
        eprintln!("{} of {}: {}", index + 1, plugins.len(), plugin.file.display());
        rows.push(load_plugin(&oarlock, plugin, place.path())?);
    }
    let version = host_version(&oarlock)?;
    if let Some(file) = &arguments.html {
        std::fs::write(file, render::html_page(&rows, &version))
            .with_context(|| format!("expected to write `{}`", file.display()))?;
    }
    if arguments.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&serde_json::json!({ "host": version, "plugins": rows }))?
        );
    } else {
        print!("{}", render::text_table(&rows, &version));
    }
    let refused = rows.iter().filter(|row| !row.loads).count();
    ensure!(refused == 0, "{refused} of {} plugins do not load", rows.len());
    Ok(())
}

fn host_version(oarlock: &Path) -> Result<String> {
    let output = Command::new(oarlock).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn load_plugin(oarlock: &Path, plugin: &PublishedPlugin, home: &Path) -> Result<PluginLoadRow> {
    let output = Command::new(oarlock)
        .args(["plugin", "check", "--quick", "--json"])
        .arg(&plugin.file)
        .env_remove("OARLOCK_CONFIG")
        .env_remove("OARLOCK_PLUGIN_PATH")
        .env("HOME", home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_CONFIG_HOME", home.join("config"))
        .output()
        .with_context(|| format!("expected to run `{}`", oarlock.display()))?;
    let answer = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let end =
        format!("the host ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    Ok(PluginLoadRow::from_answer(plugin, &answer, end))
}

impl PluginLoadRow {
    /// The row of a plugin for which the command printed this; `end` says how the command ended, for a plugin that ended it.
    fn from_answer(plugin: &PublishedPlugin, answer: &Value, end: String) -> Self {
        let step = |name: &str| {
            let steps = answer["steps"].as_array().into_iter().flatten();
            let found = steps
                .filter(|step| step["step"] == name && step["state"] == "pass")
                .map(|step| &step["found"]);
            found.filter_map(Value::as_str).next().unwrap_or_default().to_owned()
        };
        let refusal = &answer["refusal"];
        let text = |key: &str| refusal[key].as_str().unwrap_or_default();
        let loads = answer["usable"] == true;
        Self {
            package: plugin.package.clone(),
            file: plugin.file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            identity: step("identity"),
            contract: step("contract"),
            loads,
            refusal: (!loads).then(|| {
                if refusal.is_null() {
                    return end;
                }
                format!("{}: expected {}, found {}", text("reason"), text("expected"), text("found"))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plugin_in(package: &str) -> PublishedPlugin {
        PublishedPlugin { package: package.to_owned(), file: "/x/libacme.so".into() }
    }

    fn loaded_row() -> PluginLoadRow {
        let answer = json!({ "usable": true, "refusal": null, "steps": [
            { "step": "contract", "state": "pass", "found": "1.0..1.1, this host speaks 1.0..1.2" },
            { "step": "identity", "state": "pass", "found": "acme 1.2, device" },
        ] });
        PluginLoadRow::from_answer(&plugin_in("acme.whl"), &answer, String::new())
    }

    #[test]
    fn a_plugin_that_loads_is_listed_with_who_it_is() {
        let row = loaded_row();
        assert!(row.loads && row.refusal.is_none());
        assert_eq!((row.identity.as_str(), row.file.as_str()), ("acme 1.2, device", "libacme.so"));
        let text = render::text_table(&[row], "oarlock 9");
        assert!(text.contains("acme.whl") && text.contains("1 of 1 plugins load"), "{text}");
    }

    #[test]
    fn a_plugin_that_is_refused_or_ends_the_host_says_why() {
        let refusal = json!({ "reason": "slot-missing", "expected": "a slot", "found": "<none>" });
        let answer = json!({ "usable": false, "refusal": refusal, "steps": [] });
        let refused = PluginLoadRow::from_answer(&plugin_in("a"), &answer, String::new());
        let crashed =
            PluginLoadRow::from_answer(&plugin_in("b"), &Value::Null, "the host ended with 139".to_owned());
        assert!(!refused.loads && !crashed.loads);
        assert_eq!(crashed.refusal.as_deref(), Some("the host ended with 139"));
        let rows = [refused, crashed, loaded_row()];
        let text = render::text_table(&rows, "oarlock 9");
        assert!(text.contains("slot-missing: expected a slot, found <none>"), "{text}");
        assert!(text.contains("1 of 3 plugins load"), "{text}");
        let page = render::html_page(&rows, "oarlock 9");
        assert!(page.contains("found &lt;none&gt;") && !page.contains("<none>"), "{page}");
    }
}
