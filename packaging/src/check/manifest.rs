//! Checks the manifest beside a plugin, which a host reads instead of loading the plugin.

use oarlock_abi::Versions;
use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::{MatrixAxis, MatrixPart, MatrixRow, WheelMatrix};

use crate::assemble::plugin_name;

/// A manifest with a checked contract version and, if it states one, a checked hash.
pub(super) struct CheckedManifest {
    table: toml::Table,
    spoken: Versions,
}

/// Reads the manifest beside a library and checks it.
pub(super) fn read_checked_manifest(
    wheel: &Wheel,
    path: &str,
    library: &[u8],
) -> Result<CheckedManifest, Error> {
    let place = path.replace(".so", ".oarlock.toml");
    let text = wheel.file_bytes(&place).map_err(|_| {
        Error::new(format!(
            "expected its manifest `{place}`, by which a host knows a plugin without starting it; found none"
        ))
    })?;
    let text = String::from_utf8_lossy(text);
    let table: toml::Table =
        toml::from_str(&text).map_err(|error| Error::from_toml("the manifest", &text, &error))?;
    let word = |name: &str| table.get(name).and_then(toml::Value::as_str);
    let hash = sha256_hex(library);
    if let Some(other) = word("sha256").filter(|it| !it.eq_ignore_ascii_case(&hash)) {
        return Err(Error::new(format!(
            "expected a library with the hash {other} of its manifest, found {hash}"
        )));
    }
    let contract = word("contract").unwrap_or_default();
    let spoken = parse_version_range(contract).ok_or_else(|| {
        Error::new(format!(
            "expected versions of one major such as `1.0..1.3` for `contract` in the manifest, found `{contract}`"
        ))
    })?;
    Ok(CheckedManifest { table, spoken })
}

impl CheckedManifest {
    /// Checks that a host of this release accepts the plugin, and that the manifest agrees with the plugin's part of the matrix.
    pub(super) fn check_release_manifest(
        &self,
        matrix: &WheelMatrix,
        row: &MatrixRow,
        part: &MatrixPart,
        platform: &str,
    ) -> Result<(), Error> {
        if !Versions::OURS.meet(self.spoken) {
            return Err(Error::new(format!(
                "expected a plugin that speaks contract {}, found one that speaks {}, by its manifest; \
                 build it with the same release of `oarlock-sdk`",
                Versions::OURS,
                self.spoken
            )));
        }
        if !self.table.contains_key("sha256") {
            return Err(Error::new(
                "expected `sha256` in the manifest, by which a host knows that the library is whole; found none",
            ));
        }
        self.expect_field("architecture", manifest_architecture(platform).as_deref())?;
        self.expect_field("version", Some(env!("CARGO_PKG_VERSION")))?;
        self.expect_field("package", Some(&row.name.distribution))?;
        let name = plugin_name(&part.package);
        let is_on =
            |axis: MatrixAxis| matrix.axes.get(&axis).is_some_and(|all| all.iter().any(|it| it == name));
        let (kind, device) = match (is_on(MatrixAxis::Device), is_on(MatrixAxis::Blas)) {
            (true, _) => ("device", Some(name)),
            (false, true) => ("kernels", None),
            (false, false) => return Ok(()),
        };
        self.expect_field("kind", Some(kind))?;
        self.expect_field("device_type", device)
    }

    /// Checks that a field has this value or, for `None`, is absent.
    fn expect_field(&self, field: &str, wanted: Option<&str>) -> Result<(), Error> {
        let found = self.table.get(field);
        if found.and_then(toml::Value::as_str) == wanted && found.is_some() == wanted.is_some() {
            return Ok(());
        }
        let wanted = wanted.map_or_else(|| format!("no `{field}`"), |it| format!("`{field} = \"{it}\"`"));
        let found = found.map_or_else(|| "none".to_owned(), |it| format!("`{it}`"));
        Err(Error::new(format!("expected {wanted} in the manifest, found {found}")))
    }
}

/// The architecture in manifests for a platform tag, such as `x86_64-linux` for `manylinux_2_28_x86_64`.
fn manifest_architecture(platform: &str) -> Option<String> {
    let rest = platform.strip_prefix("manylinux_").or_else(|| platform.strip_prefix("musllinux_"));
    let processor = rest.and_then(|rest| rest.splitn(3, '_').nth(2));
    processor.or_else(|| platform.strip_prefix("linux_")).map(|processor| format!("{processor}-linux"))
}

/// Parses contract versions as manifests write them: a range or a single version.
fn parse_version_range(text: &str) -> Option<Versions> {
    let ends: Option<Vec<(u32, u32)>> = text
        .splitn(2, "..")
        .map(|end| {
            end.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        })
        .collect();
    let ends = ends?;
    let (oldest, newest) = (ends.first()?, ends.last()?);
    (oldest.0 == newest.0 && oldest.1 <= newest.1).then_some(Versions {
        major: oldest.0,
        oldest_minor: oldest.1,
        newest_minor: newest.1,
    })
}
