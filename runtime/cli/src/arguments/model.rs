//! The arguments of the model commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use oarlock_engine::PrecisionMode;

use super::parse_assignment;

/// A model, and what it runs on.
#[derive(Args, Debug)]
pub(crate) struct ModelArguments {
    /// The model file, or a directory with one model in it; `-` reads standard input
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// A device, such as `cpu` or `opencl:1`. With several, as in `opencl,cpu`, each node runs on the first that has a kernel for
    /// it; nodes without one run on the CPU, and a note says so
    #[arg(short, long = "device", value_name = "DEVICE", value_delimiter = ',')]
    pub(crate) devices: Vec<String>,
    /// The shape of an input, as in `x=1x3x224x224`, or the size of a named dimension, as in `batch=8`
    #[arg(long = "shape", value_name = "NAME=SIZES", value_parser = parse_shape)]
    pub(crate) shapes: Vec<(String, Vec<i64>)>,
    /// The number of threads for kernels on the CPU; by default as many as the process may use at once
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Leave out the passes that only make the model faster, to see their effect; results may differ in the last digits
    #[arg(long)]
    pub(crate) plain: bool,
    /// A flag and its value; may be given several times
    #[arg(long = "set", value_name = "FLAG=VALUE", value_parser = parse_assignment)]
    pub(crate) flags: Vec<(String, String)>,
}

/// How exactly a model is computed.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct PrecisionArguments {
    /// The precision of f32 products: `bf16` rounds their factors where the processor is faster that way, and reports the error
    #[arg(long, value_name = "PRECISION", default_value = PrecisionMode::default().name(), value_parser = precision_parser())]
    pub(crate) precision: PrecisionMode,
}

fn precision_parser() -> impl TypedValueParser<Value = PrecisionMode> {
    let of_name = |name: String| {
        PrecisionMode::ALL.into_iter().find(|precision| precision.name() == name).unwrap_or_default()
    };
    PossibleValuesParser::new(PrecisionMode::ALL.map(PrecisionMode::name)).map(of_name)
}

/// What a model is given.
#[derive(Args, Debug)]
pub(crate) struct InputArguments {
    /// An input: `NAME=FILE.npy`, `NAME=f32:[1,2]`, `NAME=-` to leave it empty, or `FILE.npz` for all inputs in it; may be given
    /// several times
    #[arg(short, long = "input", value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub(crate) inputs: Vec<OsString>,
    /// Make up missing inputs, the same ones for the same seed
    #[arg(long, value_name = "SEED")]
    pub(crate) random: Option<u64>,
}

/// One run of a model.
#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) feeds: InputArguments,
    #[command(flatten)]
    pub(crate) choice: ModelArguments,
    #[command(flatten)]
    pub(crate) exactness: PrecisionArguments,
    /// Where to write the outputs: a directory for one `.npy` file each, a file that ends in `.npz`, or, for a model with one
    /// output, a file that ends in `.npy`
    #[arg(short, long, value_name = "DIR|FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
}

/// Many runs of a model.
#[derive(Args, Debug)]
pub(crate) struct BenchArguments {
    #[command(flatten)]
    pub(crate) feeds: InputArguments,
    #[command(flatten)]
    pub(crate) choice: ModelArguments,
    #[command(flatten)]
    pub(crate) exactness: PrecisionArguments,
    /// The number of threads that run the model at once, as the clients of a server do
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) callers: u16,
    /// The number of measured runs of each caller; by default as many as fit into about three seconds
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: Option<u32>,
    /// The number of runs of each caller between the first and the measured ones
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    pub(crate) warmup: u32,
    /// Measure another runtime too, in turns
    #[arg(long, value_name = "RUNTIME", value_enum)]
    pub(crate) compare: Option<PeerRuntime>,
    /// The Python that has the other runtime; by default `python3` on the `PATH`
    #[arg(long, value_name = "PATH", requires = "compare", value_hint = ValueHint::ExecutablePath)]
    pub(crate) python: Option<PathBuf>,
    /// Write the report as an HTML page with plots
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}

/// A runtime to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerRuntime {
    OnnxRuntime,
}

impl ValueEnum for PeerRuntime {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::OnnxRuntime]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new("onnxruntime"))
    }
}

/// A question about how a model is run.
#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    pub(crate) choice: ModelArguments,
    #[command(flatten)]
    pub(crate) exactness: PrecisionArguments,
    /// An input whose shape to plan for, as for `oarlock run`
    #[arg(short, long = "input", value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub(crate) inputs: Vec<OsString>,
    /// Show what each pass over the graph changed
    #[arg(long)]
    pub(crate) passes: bool,
    /// Write the answer as an HTML page, with pictures of the graph and the memory
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Write a picture of the graph
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) svg: Option<PathBuf>,
}

/// A model to optimize.
#[derive(Args, Debug)]
pub(crate) struct OptimizeArguments {
    #[command(flatten)]
    pub(crate) choice: ModelArguments,
    /// The ONNX file to write
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// A run to trace.
#[derive(Args, Debug)]
pub(crate) struct TraceArguments {
    #[command(flatten)]
    pub(crate) feeds: InputArguments,
    #[command(flatten)]
    pub(crate) choice: ModelArguments,
    #[command(flatten)]
    pub(crate) exactness: PrecisionArguments,
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "trace.json", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// The number of traced runs, after a first one that prepares kernels
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
}

/// Splits `NAME=SIZES`, with the sizes joined by `x`. No sizes means a scalar.
fn parse_shape(text: &str) -> Result<(String, Vec<i64>), String> {
    let (name, sizes) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or(EXPECTED_SHAPE)?;
    if sizes.is_empty() {
        return Ok((name.to_owned(), Vec::new()));
    }
    let size = |text: &str| text.parse().ok().filter(|size: &i64| *size >= 0);
    let sizes: Option<Vec<i64>> = sizes.split(['x', ',']).map(size).collect();
    Ok((name.to_owned(), sizes.ok_or(EXPECTED_SHAPE)?))
}

const EXPECTED_SHAPE: &str = "expected a name, `=` and sizes such as `1x3x224x224`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_a_name_and_sizes() {
        assert_eq!(parse_shape("x=1x3x224"), Ok(("x".to_owned(), vec![1, 3, 224])));
        assert_eq!(parse_shape("a=b=2,0"), Ok(("a=b".to_owned(), vec![2, 0])));
        assert_eq!(parse_shape("x="), Ok(("x".to_owned(), Vec::new())));
        for wrong in ["x", "=1", "x=1x", "x=-1", "x=axb"] {
            assert_eq!(parse_shape(wrong), Err(EXPECTED_SHAPE.to_owned()), "{wrong}");
        }
    }
}
