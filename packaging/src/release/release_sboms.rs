//! SBOMs of the files of a release, in the formats SPDX and CycloneDX. They combine the SBOMs of compiled parts, which wheels and
//! packages contain, with the lock of images.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;

use oarlock_formats::date;
use oarlock_formats::deb::DebPackage;
use oarlock_formats::error::Error;
use oarlock_formats::wheel::Wheel;
use oarlock_image::lock::LockedPackage;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};

/// The components of a file.
#[derive(Clone, Debug, Default)]
pub struct SbomDocument {
    /// Components by package URL.
    parts: BTreeMap<String, SbomPart>,
}

/// The file that an SBOM describes.
pub struct SbomSubject<'s> {
    /// The file name.
    pub file: &'s str,
    /// Its version.
    pub version: &'s str,
    /// Its SHA-256.
    pub sha256: &'s str,
    /// Its timestamp, in seconds since 1970.
    pub seconds: u64,
}

/// A component of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
struct SbomPart {
    name: String,
    version: Option<String>,
    /// Its license as an SPDX expression.
    license: Option<String>,
    /// The SHA-256 of its source archive.
    sha256: Option<String>,
    /// True if it is not part of the file, but a library that it may open at run time.
    is_opened: bool,
}

/// Suffixes of SBOM files in wheels and in packages.
const WHEEL_SBOM_SUFFIX: &str = ".cyclonedx.json";
const PACKAGE_SBOM_SUFFIX: &str = ".cyclonedx.json.gz";

/// Limit for decompression, larger than any SBOM.
const MAX_SBOM_BYTES: u64 = 64 << 20;

const PURL_PREFIX: &str = "pkg:";

/// Ids within an SPDX document; components are numbered.
const PART_ID_PREFIX: &str = "SPDXRef-Part-";
const FILE_ID: &str = "SPDXRef-File";
const DOCUMENT_ID: &str = "SPDXRef-DOCUMENT";

/// The SPDX value for unknown data.
const NO_ASSERTION: &str = "NOASSERTION";

impl SbomDocument {
    /// Reads the SBOM of a wheel.
    ///
    /// # Errors
    ///
    /// When it has none, or one that cannot be parsed.
    pub fn of_wheel(wheel: &Wheel) -> Result<Self, Error> {
        let mut sbom = Self::default();
        for (path, bytes) in wheel.files().filter(|(path, _)| path.ends_with(WHEEL_SBOM_SUFFIX)) {
            sbom.add_embedded_sbom(bytes).map_err(|error| error.in_part(path))?;
        }
        sbom.require_parts()
    }

    /// Reads the SBOM of one of our packages; it is empty for a package without compiled contents.
    ///
    /// # Errors
    ///
    /// When it has one that cannot be parsed.
    pub fn of_package(package: &DebPackage) -> Result<Self, Error> {
        let mut sbom = Self::default();
        for (path, bytes) in package.contents.files().filter(|(path, _)| path.ends_with(PACKAGE_SBOM_SUFFIX))
        {
            let mut unpacked = Vec::new();
            let read =
                GzDecoder::new(bytes).take(MAX_SBOM_BYTES).read_to_end(&mut unpacked).map_err(Error::from);
            read.and_then(|_| sbom.add_embedded_sbom(&unpacked)).map_err(|error| error.in_part(path))?;
        }
        Ok(sbom)
    }

    /// The SBOM of an image: our packages with their components, and Debian packages.
    ///
    /// # Errors
    ///
    /// When one of our packages has no name, or an SBOM that cannot be parsed.
    pub fn of_image(ours: &[DebPackage], debian: &[&LockedPackage]) -> Result<Self, Error> {
        let mut sbom = Self::default();
        for package in ours {
            let (name, version) = (package.name()?, package.version()?);
            sbom.parts.extend(Self::of_package(package)?.parts);
            let part = SbomPart::for_file(name, version, None);
            sbom.parts.insert(package_url("deb/oarlock", name, version), part);
        }
        for package in debian {
            let part = SbomPart::for_file(&package.name, &package.version, Some(&package.sha256));
            let place = format!(
                "{}?arch={}",
                package_url("deb/debian", &package.name, &package.version),
                package.architecture
            );
            sbom.parts.insert(place, part);
        }
        sbom.require_parts()
    }

    /// Adds the components of another file, which this one contains.
    pub fn add_components(&mut self, other: &Self) {
        self.parts.extend(other.parts.clone());
    }

    /// Adds the components of an embedded SBOM.
    fn add_embedded_sbom(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let carried: CycloneDxDocument = serde_json::from_slice(bytes)
            .map_err(|error| Error::new(format!("expected an SBOM of CycloneDX: {error}")))?;
        for component in std::iter::once(carried.metadata.component).chain(carried.components) {
            let part = SbomPart {
                name: component.name,
                version: component.version,
                license: component.licenses.into_iter().next().map(|it| it.expression),
                sha256: component.hashes.into_iter().find(|it| it.alg == "SHA-256").map(|it| it.content),
                is_opened: component.scope.as_deref() == Some("optional"),
            };
            self.parts.insert(component.purl.unwrap_or(component.reference), part);
        }
        Ok(())
    }

    fn require_parts(self) -> Result<Self, Error> {
        if self.parts.is_empty() {
            return Err(Error::new("expected an SBOM, found none"));
        }
        Ok(self)
    }

    /// Renders the SBOM as CycloneDX 1.5.
    #[must_use]
    pub fn to_cyclonedx(&self, subject: &SbomSubject<'_>) -> String {
        let hash = |hash: &str| json!([{ "alg": "SHA-256", "content": hash }]);
        let components = self.parts.iter().map(|(place, part)| {
            let mut component = json!({ "type": "library", "bom-ref": place, "name": part.name });
            if place.starts_with(PURL_PREFIX) {
                component["purl"] = place.as_str().into();
            }
            if let Some(version) = &part.version {
                component["version"] = version.as_str().into();
            }
            if let Some(license) = &part.license {
                component["licenses"] = json!([{ "expression": license }]);
            }
            if let Some(sha256) = &part.sha256 {
                component["hashes"] = hash(sha256);
            }
            if part.is_opened {
                component["scope"] = "optional".into();
            }
            component
        });
        let sbom = json!({
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
        format!("{sbom:#}\n")
    }

    /// Renders the SBOM as SPDX 2.3.
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
            let mut component = json!({ "SPDXID": id, "name": part.name });
            component["licenseDeclared"] = part.license.as_deref().unwrap_or(NO_ASSERTION).into();
            if let Some(version) = &part.version {
                component["versionInfo"] = version.as_str().into();
            }
            if let Some(sha256) = &part.sha256 {
                component["checksums"] = checksum(sha256);
            }
            if place.starts_with(PURL_PREFIX) {
                component["externalRefs"] = json!([{
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceType": "purl",
                    "referenceLocator": place,
                }]);
            }
            packages.push(component);
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
        let sbom = json!({
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": DOCUMENT_ID,
            "name": subject.file,
            // A namespace must be globally unique, so it contains the hash of the file.
            "documentNamespace": format!("{}/sboms/{}", env!("CARGO_PKG_REPOSITORY"), subject.sha256),
            "creationInfo": {
                "created": date::format_iso8601(subject.seconds),
                "creators": [concat!("Tool: oarlock-pack-", env!("CARGO_PKG_VERSION"))],
            },
            "packages": packages,
            "relationships": relations,
        });
        format!("{sbom:#}\n")
    }
}

impl SbomPart {
    /// A component with only a name, a version and a file hash.
    fn for_file(name: &str, version: &str, sha256: Option<&str>) -> Self {
        Self {
            name: name.to_owned(),
            version: Some(version.to_owned()),
            license: None,
            sha256: sha256.map(str::to_owned),
            is_opened: false,
        }
    }
}

/// A package URL, which identifies a package globally.
pub(super) fn package_url(kind: &str, name: &str, version: &str) -> String {
    let mut written = format!("{PURL_PREFIX}{kind}/{name}@");
    for byte in version.bytes() {
        // Writing to a `String` cannot fail.
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

/// The fields of CycloneDX that our own SBOMs use.
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
