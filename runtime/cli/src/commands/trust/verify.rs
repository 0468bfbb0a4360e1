//! `oarlock plugin verify`: who signed a plugin, and whether every file is as it was signed. Runs nothing of it.

use std::path::{Path, PathBuf};

use oarlock_host::{
    CoveredFile, FileCoverage, HostConfig, HostEnvironment, KeySignature, ManifestSignatures, PluginManifest,
    PublicKey, Refusal, RefusalReason, SignatureStanding, TrustedKey, TrustedKeys, list_covered_files,
};
use serde_json::json;

use super::sign::describe_uncovered;
use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, VerifyArguments};
use crate::output::{BAD_STYLE, CommandOutput, GOOD_STYLE, QUIET_STYLE};
use crate::problem::CommandError;
use crate::render::print_labeled;
use crate::session::{host_environment, unusable_file};

/// What is known of one signature: the key, whether it counts, and the file that decides.
struct SignatureRow {
    key: String,
    standing: SignatureStanding,
}

/// What a signature stands for.
struct PluginVerification {
    file: PathBuf,
    signatures: Vec<SignatureRow>,
    files: Vec<CoveredFile>,
    /// Why the signatures do not count, by the judgment of the host.
    refusal: Option<Refusal>,
}

pub(crate) fn run_verify(
    global: &GlobalOptions,
    wish: &VerifyArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let environment = host_environment(global)?;
    let config = HostConfig::load(&environment)?;
    let mut keys = TrustedKeys::load_keys(&config.keys, environment.identity)?;
    if !wish.keys.is_empty() {
        let named = wish
            .keys
            .iter()
            .map(|file| Ok(TrustedKey { key: PublicKey::read_file(file)?, file: file.clone() }));
        keys = keys.with_trusted(named.collect::<Result<_, CommandError>>()?);
    }
    let file = std::path::absolute(&wish.file).map_err(|error| unusable_file(&wish.file, &error))?;
    let verification = PluginVerification::verify_plugin(&file, &keys, &environment)?;
    if global.json {
        crate::commands::print_json(output, &verification.to_json())?;
    } else {
        verification.print_report(output);
    }
    Ok(verification.is_good())
}

impl PluginVerification {
    fn verify_plugin(
        file: &Path,
        keys: &TrustedKeys,
        environment: &HostEnvironment,
    ) -> Result<Self, CommandError> {
        let path = PluginManifest::path_beside(file);
        let manifest = PluginManifest::read_bytes(&path)?;
        let files = match &manifest {
            Some(bytes) => {
                list_covered_files(file, &PluginManifest::parse_manifest(&path, bytes)?, environment)?
            }
            None if !file.is_file() => {
                return Err(unusable_file(file, &"expected a plugin, found no such file"));
            }
            None => Vec::new(),
        };
        let refusal = if keys.valid_keys().next().is_none() {
            Some(no_key_to_verify_with(file))
        } else {
            keys.judge_manifest(file, manifest.as_deref(), true).err()
        };
        // Where there are none that can be read, the refusal says why.
        let found = ManifestSignatures::read_beside(file);
        let rows =
            manifest.iter().zip(&found).flat_map(|(manifest, found)| keys.assess_signatures(manifest, found));
        let row = |(signature, standing): (&KeySignature, _)| SignatureRow {
            key: signature.key.to_string(),
            standing,
        };
        let signatures = rows.map(row).collect();
        Ok(Self { file: file.to_path_buf(), signatures, files, refusal })
    }

    fn is_good(&self) -> bool {
        self.refusal.is_none() && self.files.iter().all(|file| file.coverage == FileCoverage::Covered)
    }

    fn to_json(&self) -> serde_json::Value {
        let signature = |row: &SignatureRow| {
            let (state, file) = row.describe_standing();
            json!({ "key": row.key, "state": state, "file": file.map(|file| file.display().to_string()) })
        };
        let file = |file: &CoveredFile| json!({ "name": file.name, "state": coverage_name(file.coverage) });
        json!({
            "file": self.file.display().to_string(),
            "verified": self.is_good(),
            "signatures": self.signatures.iter().map(signature).collect::<Vec<_>>(),
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
            "refusal": self.refusal,
        })
    }

    fn print_report(&self, output: &mut CommandOutput) {
        for row in &self.signatures {
            let (state, file) = row.describe_standing();
            let style = if state == "valid" {
                GOOD_STYLE
            } else if state == "unknown" {
                QUIET_STYLE
            } else {
                BAD_STYLE
            };
            let label = output.paint_text(style, &format!("{state:<8}"));
            let of = file.map_or_else(String::new, |file| format!(", `{}`", file.display()));
            print_labeled(output, &format!("signature  {label}  "), 21, &format!("{}{of}", row.key));
        }
        for file in &self.files {
            let good = file.coverage == FileCoverage::Covered;
            let state = output.paint_text(
                if good { GOOD_STYLE } else { BAD_STYLE },
                &format!("{:<8}", coverage_name(file.coverage)),
            );
            let text = describe_uncovered(file).unwrap_or_else(|| file.name.clone());
            print_labeled(output, &format!("file       {state}  "), 21, &text);
        }
        if let Some(Refusal { expected, found, remedy, .. }) = &self.refusal {
            print_labeled(output, "", 0, &format!("expected {expected}, found {found}; {remedy}"));
        }
        output.write_line("");
        let (style, verdict) = if self.is_good() {
            (GOOD_STYLE, "The plugin is as it was signed")
        } else {
            (BAD_STYLE, "The plugin is not verified")
        };
        let verdict = output.paint_text(style, verdict);
        output.write_line(&verdict);
    }
}

impl SignatureRow {
    /// The name of the standing, and the key or revocation that decides it.
    fn describe_standing(&self) -> (&'static str, Option<&Path>) {
        match &self.standing {
            SignatureStanding::Valid(file) => ("valid", Some(file)),
            SignatureStanding::Invalid(file) => ("wrong", Some(file)),
            SignatureStanding::Revoked(file) => ("revoked", Some(file)),
            SignatureStanding::Unknown => ("unknown", None),
        }
    }
}

fn no_key_to_verify_with(file: &Path) -> Refusal {
    let remedy = "name the signer's key with `--key`, or trust it with `oarlock plugin trust`";
    let expected = "a key to verify the signature with";
    Refusal::new(RefusalReason::SignatureMissing, file, expected, "no trusted key that is valid", remedy)
}

fn coverage_name(coverage: FileCoverage) -> &'static str {
    match coverage {
        FileCoverage::Covered => "covered",
        FileCoverage::Changed(_) => "changed",
        FileCoverage::Missing => "missing",
        FileCoverage::Unlisted => "unlisted",
    }
}
