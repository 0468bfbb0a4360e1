//! What each file of a release is made of: a bill of materials in the forms of SPDX and of CycloneDX. It is gathered from the bills of
//! what was compiled, which wheels and packages carry, and from the lock of images.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::date;
use crate::deb::DebPackage;
use crate::error::Error;
use crate::image::lock::LockedPackage;
use crate::wheel::Wheel;

/// What something is made of.
#[derive(Clone, Debug, Default)]
pub struct SbomDocument {
    /// By what identifies each.
    parts: BTreeMap<String, SbomPart>,
}

/// A file that a bill is of.
pub struct SbomSubject<'s> {
    /// What it is called.
    pub file: &'s str,
    /// Its version.
    pub version: &'s str,
    /// The hash of it.
    pub sha256: &'s str,
    /// When it was made, in seconds since 1970.
    pub seconds: u64,
}

/// Something that a file is made of.
#[derive(Clone, Debug, Eq, PartialEq)]
struct SbomPart {
    name: String,
    version: Option<String>,
    /// What it is licensed under, as SPDX writes it.
    licence: Option<String>,
    /// The hash of what it was taken from.
    sha256: Option<String>,
    /// Whether it is no part of the file, but opened while that runs, where the machine has it.
    is_opened: bool,
}

/// How the names of bills end in wheels and in packages.
const WHEEL_SBOM_SUFFIX: &str = ".cyclonedx.json";
const PACKAGE_SBOM_SUFFIX: &str = ".cyclonedx.json.gz";

/// More than any bill has.
const MAX_SBOM_BYTES: u64 = 64 << 20;

/// How what identifies a package everywhere begins.
const PURL_PREFIX: &str = "pkg:";

/// What things are called in a document of SPDX; parts have a number each.
const PART_ID_PREFIX: &str = "SPDXRef-Part-";
const FILE_ID: &str = "SPDXRef-File";
const DOCUMENT_ID: &str = "SPDXRef-DOCUMENT";

/// What SPDX writes for what is not said here.
const NO_ASSERTION: &str = "NOASSERTION";

impl SbomDocument {
    /// The bill of a wheel.
    ///
    /// # Errors
    ///
    /// When it carries none, or one that cannot be read.
    pub fn of_wheel(wheel: &Wheel) -> Result<Self, Error> {
        let mut bill = Self::default();
        for (path, bytes) in wheel.files().filter(|(path, _)| path.ends_with(WHEEL_SBOM_SUFFIX)) {
            bill.add_embedded_sbom(bytes).map_err(|error| error.in_part(path))?;
        }
        bill.require_parts()
    }

    /// The bill of a package of ours; it is empty where nothing was compiled for it.
    ///
    /// # Errors
    ///
    /// When it carries one that cannot be read.
    pub fn of_package(package: &DebPackage) -> Result<Self, Error> {
        let mut bill = Self::default();
        for (path, bytes) in package.contents.files().filter(|(path, _)| path.ends_with(PACKAGE_SBOM_SUFFIX))
        {
            let mut unpacked = Vec::new();
            let read =
                GzDecoder::new(bytes).take(MAX_SBOM_BYTES).read_to_end(&mut unpacked).map_err(Error::from);
            read.and_then(|_| bill.add_embedded_sbom(&unpacked)).map_err(|error| error.in_part(path))?;
        }
        Ok(bill)
    }

    /// The bill of an image: our packages, what they are made of in turn, and packages of Debian.
    ///
    /// # Errors
    ///
    /// When one of ours has no name, or carries a bill that cannot be read.
    pub fn of_image(ours: &[DebPackage], debian: &[&LockedPackage]) -> Result<Self, Error> {
        let mut bill = Self::default();
        for package in ours {
            let (name, version) = (package.name()?, package.version()?);
            bill.parts.extend(Self::of_package(package)?.parts);
            let part = SbomPart::for_file(name, version, None);
            bill.parts.insert(package_url("deb/oarlock", name, version), part);
        }
        for package in debian {
            let part = SbomPart::for_file(&package.name, &package.version, Some(&package.sha256));
            let place = format!(
                "{}?arch={}",
                package_url("deb/debian", &package.name, &package.version),
                package.architecture
            );
            bill.parts.insert(place, part);
        }
        bill.require_parts()
    }

    /// Adds what a bill that something carries says.
    fn add_embedded_sbom(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let carried: CycloneDxDocument = serde_json::from_slice(bytes)
            .map_err(|error| Error::new(format!("expected a bill of CycloneDX: {error}")))?;
        for component in std::iter::once(carried.metadata.component).chain(carried.components) {
            let part = SbomPart {
                name: component.name,
                version: component.version,
                licence: component.licenses.into_iter().next().map(|it| it.expression),
                sha256: component.hashes.into_iter().find(|it| it.alg == "SHA-256").map(|it| it.content),
                is_opened: component.scope.as_deref() == Some("optional"),
            };
            self.parts.insert(component.purl.unwrap_or(component.reference), part);
        }
        Ok(())
    }

    fn require_parts(self) -> Result<Self, Error> {
        if self.parts.is_empty() {
            return Err(Error::new("expected a bill of what it is made of, found none"));
        }
        Ok(self)
    }

    /// The bill in the form of CycloneDX 1.5.
    #[must_use]
    pub fn to_cyclonedx(&self, subject: &SbomSubject<'_>) -> String {
        let hash = |hash: &str| json!([{ "alg": "SHA-256", "content": hash }]);
        let components = self.parts.iter().map(|(place, part)| {
            let mut said = json!({ "type": "library", "bom-ref": place, "name": part.name });
            if place.starts_with(PURL_PREFIX) {
                said["purl"] = place.as_str().into();
            }
            if let Some(version) = &part.version {
                said["version"] = version.as_str().into();
            }
            if let Some(licence) = &part.licence {
                said["licenses"] = json!([{ "expression": licence }]);
            }
            if let Some(sha256) = &part.sha256 {
                said["hashes"] = hash(sha256);
            }
            if part.is_opened {
                said["scope"] = "optional".into();
            }
            said
        });
        let bill = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "timestamp": date::format_iso8601(subject.seconds),
                "component": {
                    "type": "file",
                    "bom-ref": subject.file,
                    "name": subject.file,
                    "version": subject.version,
                    "hashes": hash(subject.sha256),
                },
            },
            "components": components.collect::<Vec<_>>(),
            "dependencies": [{ "ref": subject.file, "dependsOn": self.parts.keys().collect::<Vec<_>>() }],
        });
        format!("{bill:#}\n")
    }

    /// The bill in the form of SPDX 2.3.
    #[must_use]
    pub fn to_spdx(&self, subject: &SbomSubject<'_>) -> String {
        let checksum = |hash: &str| json!([{ "algorithm": "SHA256", "checksumValue": hash }]);
        let mut packages = vec![json!({
            "SPDXID": FILE_ID,
            "name": subject.file,
            "versionInfo": subject.version,
            "packageFileName": subject.file,
            "checksums": checksum(subject.sha256),
            "licenseDeclared": env!("CARGO_PKG_LICENSE"),
        })];
        let mut relations = vec![relationship(DOCUMENT_ID, "DESCRIBES", FILE_ID)];
        for (number, (place, part)) in self.parts.iter().enumerate() {
            let id = format!("{PART_ID_PREFIX}{number}");
            let mut said = json!({ "SPDXID": id, "name": part.name });
            said["licenseDeclared"] = part.licence.as_deref().unwrap_or(NO_ASSERTION).into();
            if let Some(version) = &part.version {
                said["versionInfo"] = version.as_str().into();
            }
            if let Some(sha256) = &part.sha256 {
                said["checksums"] = checksum(sha256);
            }
            if place.starts_with(PURL_PREFIX) {
                said["externalRefs"] = json!([{
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceType": "purl",
                    "referenceLocator": place,
                }]);
            }
            packages.push(said);
            relations.push(if part.is_opened {
                relationship(&id, "OPTIONAL_DEPENDENCY_OF", FILE_ID)
            } else {
                relationship(FILE_ID, "CONTAINS", &id)
            });
        }
        for package in &mut packages {
            package["downloadLocation"] = NO_ASSERTION.into();
            package["filesAnalyzed"] = false.into();
            package["licenseConcluded"] = NO_ASSERTION.into();
            package["copyrightText"] = NO_ASSERTION.into();
        }
        let bill = json!({
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": DOCUMENT_ID,
            "name": subject.file,
            // What names a document to the whole world says what it is of.
            "documentNamespace": format!("{}/bills/{}", env!("CARGO_PKG_REPOSITORY"), subject.sha256),
            "creationInfo": {
                "created": date::format_iso8601(subject.seconds),
                "creators": [concat!("Tool: oarlock-pack-", env!("CARGO_PKG_VERSION"))],
            },
            "packages": packages,
            "relationships": relations,
        });
        format!("{bill:#}\n")
    }
}

impl SbomPart {
    /// A part of which nothing but its name and version is known, and the hash of its file.
    fn for_file(name: &str, version: &str, sha256: Option<&str>) -> Self {
        Self {
            name: name.to_owned(),
            version: Some(version.to_owned()),
            licence: None,
            sha256: sha256.map(str::to_owned),
            is_opened: false,
        }
    }
}

/// What identifies a package everywhere.
pub(super) fn package_url(kind: &str, name: &str, version: &str) -> String {
    let mut written = format!("{PURL_PREFIX}{kind}/{name}@");
    for byte in version.bytes() {
        // Writing to a text cannot fail.
        _ = match byte {
            b'-' | b'.' | b'_' | b'~' => write!(written, "{}", char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => write!(written, "{}", char::from(byte)),
            _ => write!(written, "%{byte:02X}"),
        };
    }
    written
}

fn relationship(of: &str, kind: &str, to: &str) -> Value {
    json!({ "spdxElementId": of, "relationshipType": kind, "relatedSpdxElement": to })
}

/// As much of a bill of CycloneDX as ours say.
#[derive(Deserialize)]
struct CycloneDxDocument {
    metadata: CycloneDxMetadata,
    components: Vec<CycloneDxComponent>,
}

#[derive(Deserialize)]
struct CycloneDxMetadata {
    component: CycloneDxComponent,
}

#[derive(Deserialize)]
struct CycloneDxComponent {
    #[serde(rename = "bom-ref")]
    reference: String,
    name: String,
    version: Option<String>,
    purl: Option<String>,
    scope: Option<String>,
    #[serde(default)]
    licenses: Vec<CycloneDxLicense>,
    #[serde(default)]
    hashes: Vec<CycloneDxHash>,
}

#[derive(Deserialize)]
struct CycloneDxLicense {
    expression: String,
}

#[derive(Deserialize)]
struct CycloneDxHash {
    alg: String,
    content: String,
}
