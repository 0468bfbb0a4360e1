//! The languages and kinds of plugins that there are templates for, and the sources of each.

/// A source of the sample plugin: its path in `src`, and its text.
pub(crate) type TemplateSource = (&'static str, &'static str);

/// A language to write a plugin in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaffoldLanguage {
    /// C11.
    C,
    /// C++17.
    Cpp,
    /// Rust, with the crate `oarlock-sdk`.
    Rust,
}

/// What a plugin brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaffoldKind {
    /// A device with memory of its own, streams, events and kernels.
    Device,
    /// Kernels for a device of another plugin.
    Kernels,
    /// A layer, which wraps other plugins.
    Layer,
    /// A device that also compiles graphs, by a draft of a profile.
    Graph,
}

impl ScaffoldLanguage {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::C, Self::Cpp, Self::Rust];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Rust => "rust",
        }
    }
}

impl ScaffoldKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Device, Self::Kernels, Self::Layer, Self::Graph];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Kernels => "kernels",
            Self::Layer => "layer",
            Self::Graph => "graph",
        }
    }

    /// What the template of this kind is, in a sentence.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::Device => {
                "a simulated chip with memory that the host cannot look into, streams that run beside the program, events, and \
                 the kernels Add, Sub, Mul, Relu, MatMul and Softmax"
            }
            Self::Kernels => {
                "two kernels for the device `cpu`: Relu, and the op ScaledAdd of a domain of its own"
            }
            Self::Layer => "a layer that counts how often each kernel of the other plugins runs",
            Self::Graph => {
                "the device of `device`, which also provides draft 1 of the profile `graph`; today no host calls that draft"
            }
        }
    }

    /// True if the plugin has a device type.
    #[must_use]
    pub fn has_device(self) -> bool {
        matches!(self, Self::Device | Self::Graph)
    }
}

/// Embeds sources of a directory of templates.
macro_rules! sources {
    ($directory:literal: $($file:literal)+) => {
        [$(($file, include_str!(concat!("../../templates/", $directory, "/", $file)))),+]
    };
}

const C_DEVICE: [TemplateSource; 4] = sources!("c/device": "kernels.c" "memory.c" "sample_npu.h" "stream.c");
const C_PLUGIN: [TemplateSource; 1] = sources!("c/device": "plugin.c");
const C_KERNELS: [TemplateSource; 1] = sources!("c/kernels": "plugin.c");
const C_LAYER: [TemplateSource; 1] = sources!("c/layer": "plugin.c");
const C_GRAPH: [TemplateSource; 3] = sources!("c/graph": "graph.c" "graph.h" "plugin.c");
const CPP_DEVICE: [TemplateSource; 4] =
    sources!("cpp/device": "kernels.cpp" "memory.cpp" "sample_npu.h" "stream.cpp");
const CPP_PLUGIN: [TemplateSource; 1] = sources!("cpp/device": "plugin.cpp");
const CPP_KERNELS: [TemplateSource; 1] = sources!("cpp/kernels": "plugin.cpp");
const CPP_LAYER: [TemplateSource; 1] = sources!("cpp/layer": "plugin.cpp");
const CPP_GRAPH: [TemplateSource; 3] = sources!("cpp/graph": "graph.cpp" "graph.h" "plugin.cpp");
const RUST_DEVICE: [TemplateSource; 4] =
    sources!("rust/device/src": "kernels.rs" "lib.rs" "memory.rs" "stream.rs");
const RUST_KERNELS: [TemplateSource; 1] = sources!("rust/kernels/src": "lib.rs");
const RUST_LAYER: [TemplateSource; 1] = sources!("rust/layer/src": "lib.rs");

/// The sources of a plugin of this kind in this language; empty if there is no such template.
pub(crate) fn template_sources(language: ScaffoldLanguage, kind: ScaffoldKind) -> Vec<TemplateSource> {
    use ScaffoldKind::{Device, Graph, Kernels, Layer};
    use ScaffoldLanguage::{C, Cpp, Rust};
    match (language, kind) {
        (C, Device) => [&C_DEVICE[..], &C_PLUGIN].concat(),
        (C, Kernels) => C_KERNELS.to_vec(),
        (C, Layer) => C_LAYER.to_vec(),
        (C, Graph) => [&C_DEVICE[..], &C_GRAPH].concat(),
        (Cpp, Device) => [&CPP_DEVICE[..], &CPP_PLUGIN].concat(),
        (Cpp, Kernels) => CPP_KERNELS.to_vec(),
        (Cpp, Layer) => CPP_LAYER.to_vec(),
        (Cpp, Graph) => [&CPP_DEVICE[..], &CPP_GRAPH].concat(),
        (Rust, Device) => RUST_DEVICE.to_vec(),
        (Rust, Kernels) => RUST_KERNELS.to_vec(),
        (Rust, Layer) => RUST_LAYER.to_vec(),
        // The SDK has no traits for drafts.
        (Rust, Graph) => Vec::new(),
    }
}
