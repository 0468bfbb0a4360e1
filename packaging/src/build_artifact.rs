//! The output of compiling a part of the matrix.

use oarlock_formats::wheel::Wheel;

/// Facts about a compiled part of the matrix.
#[derive(Clone, Debug)]
pub struct CompiledPart {
    /// Its name in the matrix, such as `cuda12`.
    pub part: String,
    /// Its cargo package, such as `oarlock-plugin-cuda`.
    pub package: String,
    /// The libraries that it opens with `dlopen`.
    pub opens: Vec<String>,
    /// Its SBOM.
    pub sbom: String,
    /// The licenses of its third-party crates.
    pub licenses: String,
    /// Our own license.
    pub license: String,
}

/// A plugin as a shared object, with its manifest.
#[derive(Clone, Debug)]
pub struct BuiltPlugin {
    /// The part that it was compiled from.
    pub built: CompiledPart,
    /// The shared object.
    pub library: Vec<u8>,
    /// Its manifest, which a host reads instead of loading the plugin.
    pub manifest: Option<String>,
}

/// The Python package, as a wheel of any file name.
#[derive(Debug)]
pub struct BuiltCore {
    /// The part that it was compiled from.
    pub built: CompiledPart,
    /// The wheel with all its files.
    pub wheel: Wheel,
}

/// A program or a library that goes into no wheel.
#[derive(Debug)]
pub struct BuiltFile {
    /// The part that it was compiled from.
    pub built: CompiledPart,
    /// The contents of the file.
    pub bytes: Vec<u8>,
}

/// The output of compiling one part.
#[derive(Debug)]
pub(crate) enum BuildArtifact {
    Core(BuiltCore),
    Plugin(BuiltPlugin),
    Other(BuiltFile),
}

impl BuildArtifact {
    pub(crate) fn compiled_part(&self) -> &CompiledPart {
        match self {
            Self::Core(core) => &core.built,
            Self::Plugin(plugin) => &plugin.built,
            Self::Other(other) => &other.built,
        }
    }
}
