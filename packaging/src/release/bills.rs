//! What each file of a release is made of: a bill of materials in the forms of SPDX and of CycloneDX. It is gathered from the bills of
//! what was compiled, which wheels and packages carry, and from the lock of images.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::date;
use crate::deb::Package;
use crate::error::Error;
use crate::image::lock::Locked;
use crate::wheel::Wheel;

/// What something is made of.
#[derive(Clone, Debug, Default)]
pub struct Bill {
    /// By what identifies each.
    parts: BTreeMap<String, Part>,
}

/// A file that a bill is of.
pub struct Subject<'s> {
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
struct Part {
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
const IN_WHEEL: &str = ".cyclonedx.json";
const IN_PACKAGE: &str = ".cyclonedx.json.gz";

/// More than any bill has.
const LARGEST: u64 = 64 << 20;

/// How what identifies a package everywhere begins.
const ADDRESS: &str = "pkg:";

/// What things are called in a document of SPDX; parts have a number each.
const PART: &str = "SPDXRef-Part-";
const FILE: &str = "SPDXRef-File";
const DOCUMENT: &str = "SPDXRef-DOCUMENT";

/// What SPDX writes for what is not said here.
const UNSAID: &str = "NOASSERTION";

impl Bill {
    /// The bill of a wheel.
    ///
    /// # Errors
    ///
    /// When it carries none, or one that cannot be read.
    pub fn of_wheel(wheel: &Wheel) -> Result<Self, Error> {
        let mut bill = Self::default();
        for (path, bytes) in wheel.files().filter(|(path, _)| path.ends_with(IN_WHEEL)) {
            bill.add_carried(bytes).map_err(|error| error.of_part(path))?;
        }
        bill.need_parts()
    }

    /// The bill of a package of ours; it is empty where nothing was compiled for it.
    ///
    /// # Errors
    ///
    /// When it carries one that cannot be read.
    pub fn of_package(package: &Package) -> Result<Self, Error> {
        let mut bill = Self::default();
        for (path, bytes) in package.contents.files().filter(|(path, _)| path.ends_with(IN_PACKAGE)) {
            let mut unpacked = Vec::new();
            let read = GzDecoder::new(bytes).take(LARGEST).read_to_end(&mut unpacked).map_err(Error::from);
            read.and_then(|_| bill.add_carried(&unpacked)).map_err(|error| error.of_part(path))?;
        }
        Ok(bill)
    }

    /// The bill of an image: our packages, what they are made of in turn, and packages of Debian.
    ///
    /// # Errors
    ///
    /// When one of ours has no name, or carries a bill that cannot be read.
    pub fn of_image(ours: &[Package], debian: &[&Locked]) -> Result<Self, Error> {
        let mut bill = Self::default();
        for package in ours {
            let (name, version) = (package.name()?, package.version()?);
            bill.parts.extend(Self::of_package(package)?.parts);
            let part = Part::of_file(name, version, None);
            bill.parts.insert(address("deb/oarlock", name, version), part);
        }
        for package in debian {
            let part = Part::of_file(&package.name, &package.version, Some(&package.sha256));
            let place = format!(
                "{}?arch={}",
                address("deb/debian", &package.name, &package.version),
                package.architecture
            );
            bill.parts.insert(place, part);
        }
        bill.need_parts()
    }

    /// Adds what a bill that something carries says.
    fn add_carried(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let carried: Carried = serde_json::from_slice(bytes)
            .map_err(|error| Error::new(format!("expected a bill of CycloneDX: {error}")))?;
        for component in std::iter::once(carried.metadata.component).chain(carried.components) {
            let part = Part {
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

    fn need_parts(self) -> Result<Self, Error> {
        if self.parts.is_empty() {
            return Err(Error::new("expected a bill of what it is made of, found none"));
        }
        Ok(self)
    }

    /// The bill in the form of CycloneDX 1.5.
    #[must_use]
    pub fn to_cyclonedx(&self, subject: &Subject<'_>) -> String {
        let hash = |hash: &str| json!([{ "alg": "SHA-256", "content": hash }]);
        let components = self.parts.iter().map(|(place, part)| {
            let mut said = json!({ "type": "library", "bom-ref": place, "name": part.name });
            if place.starts_with(ADDRESS) {
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
                "timestamp": date::sortable(subject.seconds),
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
    pub fn to_spdx(&self, subject: &Subject<'_>) -> String {
        let checksum = |hash: &str| json!([{ "algorithm": "SHA256", "checksumValue": hash }]);
        let mut packages = vec![json!({
            "SPDXID": FILE,
            "name": subject.file,
            "versionInfo": subject.version,
            "packageFileName": subject.file,
            "checksums": checksum(subject.sha256),
            "licenseDeclared": env!("CARGO_PKG_LICENSE"),
        })];
        let mut relations = vec![relation(DOCUMENT, "DESCRIBES", FILE)];
        for (number, (place, part)) in self.parts.iter().enumerate() {
            let id = format!("{PART}{number}");
            let mut said = json!({ "SPDXID": id, "name": part.name });
            said["licenseDeclared"] = part.licence.as_deref().unwrap_or(UNSAID).into();
            if let Some(version) = &part.version {
                said["versionInfo"] = version.as_str().into();
            }
            if let Some(sha256) = &part.sha256 {
                said["checksums"] = checksum(sha256);
            }
            if place.starts_with(ADDRESS) {
                said["externalRefs"] = json!([{
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceType": "purl",
                    "referenceLocator": place,
                }]);
            }
            packages.push(said);
            relations.push(if part.is_opened {
                relation(&id, "OPTIONAL_DEPENDENCY_OF", FILE)
            } else {
                relation(FILE, "CONTAINS", &id)
            });
        }
        for package in &mut packages {
            package["downloadLocation"] = UNSAID.into();
            package["filesAnalyzed"] = false.into();
            package["licenseConcluded"] = UNSAID.into();
            package["copyrightText"] = UNSAID.into();
        }
        let bill = json!({
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": DOCUMENT,
            "name": subject.file,
            // What names a document to the whole world says what it is of.
            "documentNamespace": format!("{}/bills/{}", env!("CARGO_PKG_REPOSITORY"), subject.sha256),
            "creationInfo": {
                "created": date::sortable(subject.seconds),
                "creators": [concat!("Tool: oarlock-pack-", env!("CARGO_PKG_VERSION"))],
            },
            "packages": packages,
            "relationships": relations,
        });
        format!("{bill:#}\n")
    }
}

impl Part {
    /// A part of which nothing but its name and version is known, and the hash of its file.
    fn of_file(name: &str, version: &str, sha256: Option<&str>) -> Self {
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
pub(super) fn address(kind: &str, name: &str, version: &str) -> String {
    let mut written = format!("{ADDRESS}{kind}/{name}@");
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

fn relation(of: &str, kind: &str, to: &str) -> Value {
    json!({ "spdxElementId": of, "relationshipType": kind, "relatedSpdxElement": to })
}

/// As much of a bill of CycloneDX as ours say.
#[derive(Deserialize)]
struct Carried {
    metadata: Metadata,
    components: Vec<Component>,
}

#[derive(Deserialize)]
struct Metadata {
    component: Component,
}

#[derive(Deserialize)]
struct Component {
    #[serde(rename = "bom-ref")]
    reference: String,
    name: String,
    version: Option<String>,
    purl: Option<String>,
    scope: Option<String>,
    #[serde(default)]
    licenses: Vec<Licence>,
    #[serde(default)]
    hashes: Vec<Hash>,
}

#[derive(Deserialize)]
struct Licence {
    expression: String,
}

#[derive(Deserialize)]
struct Hash {
    alg: String,
    content: String,
}
