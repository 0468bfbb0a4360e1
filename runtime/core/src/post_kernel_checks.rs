//! Checks that run after every kernel if flags enable them: synchronization, and a search for NaN and infinity.

use num_complex::Complex;

use crate::flags::Flags;
use crate::schema::{self, OpSchema};
use crate::stream::Stream;
use crate::{Dtype, Error, Result, Tensor};

/// The flags `benchmark` and `check_nan_inf`, cached because looking flags up by name is slow.
#[derive(Debug)]
pub(crate) struct PostKernelChecks {
    is_on: bool,
    waits: bool,
    looks: bool,
    skipped_ops: Vec<String>,
    /// Pairs of an op and an output: its position, or a part of its name.
    skipped_outputs: Vec<(String, String)>,
}

impl PostKernelChecks {
    pub(crate) fn new(flags: &Flags) -> Self {
        let (waits, looks) = (flags.is_enabled("benchmark"), flags.is_enabled("check_nan_inf"));
        let pair = |text: String| text.split_once(':').map(|(op, output)| (op.to_owned(), output.to_owned()));
        Self {
            is_on: waits || looks,
            waits,
            looks,
            skipped_ops: flags.word_list("check_nan_inf_skip_ops"),
            skipped_outputs: flags
                .word_list("check_nan_inf_skip_outputs")
                .into_iter()
                .filter_map(pair)
                .collect(),
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.is_on
    }

    /// Does nothing unless a check is enabled.
    #[inline]
    pub(crate) fn check_outputs(
        &self,
        op: &'static str,
        stream: &Stream,
        outputs: &[Option<Tensor>],
    ) -> Result<()> {
        if self.is_on { self.inspect_outputs(op, stream, outputs) } else { Ok(()) }
    }

    #[cold]
    fn inspect_outputs(&self, op: &'static str, stream: &Stream, outputs: &[Option<Tensor>]) -> Result<()> {
        if self.waits {
            stream.synchronize().map_err(|error| error.with_op(op))?;
        }
        if !self.looks || self.skipped_ops.iter().any(|skipped| skipped == op) {
            return Ok(());
        }
        let schema = schema_for_op(op);
        for (index, output) in outputs.iter().enumerate() {
            let Some(tensor) = output else { continue };
            let place = format!("output {index}");
            let name = schema.and_then(|schema| schema.formal_output(index)).map(|formal| formal.name);
            let is_skipped = |(of, part): &(String, String)| {
                of == op && (place == *part || name.is_some_and(|name| name.contains(part.as_str())))
            };
            if self.skipped_outputs.iter().any(is_skipped) {
                continue;
            }
            let operand = name.map_or_else(|| place.clone(), |name| format!("{place} ({name})"));
            check_finite(tensor, &operand).map_err(|error| error.with_op(op).with_device(tensor.device()))?;
        }
        Ok(())
    }
}

/// The newest schema of an op. Only the name is known here, so the first domain that has such an op wins.
fn schema_for_op(op: &str) -> Option<&'static OpSchema> {
    schema::domain_names().ok()?.find_map(|domain| schema::latest_schema(domain, op).ok())
}

/// Counts of finite and non-finite elements, and the first that is not finite.
#[derive(Default)]
struct NonFiniteTally {
    nan: u64,
    infinite: u64,
    finite: u64,
    first: Option<(u64, f64)>,
}

impl NonFiniteTally {
    fn tally_elements(elements: impl Iterator<Item = f64>) -> Self {
        let mut tally = Self::default();
        for (at, element) in (0..).zip(elements) {
            match element {
                element if element.is_nan() => tally.nan += 1,
                element if element.is_infinite() => tally.infinite += 1,
                _ => tally.finite += 1,
            }
            if !element.is_finite() {
                tally.first.get_or_insert((at, element));
            }
        }
        tally
    }
}

/// Decodes only enough to tell NaN from finite numbers: the format has no infinities, and the exact value does not matter.
fn decode_f8e4m3(byte: u8) -> f64 {
    if byte & 0x7F == 0x7F { f64::NAN } else { 0.0 }
}

/// Likewise, for formats whose only NaN is the bit pattern of negative zero.
fn decode_fnuz(byte: u8) -> f64 {
    if byte == 0x80 { f64::NAN } else { 0.0 }
}

/// Likewise, for the format that has only an exponent.
fn decode_f8e8m0(byte: u8) -> f64 {
    if byte == 0xFF { f64::NAN } else { 0.0 }
}

/// Decodes exactly: the byte is the upper half of an `f16`.
fn decode_f8e5m2(byte: u8) -> f64 {
    half::f16::from_bits(u16::from(byte) << 8).into()
}

/// A real number of the same class as a complex one: NaN comes before infinity, and infinity before finite.
fn classify_complex(real: f64, imaginary: f64) -> f64 {
    let parts = [real, imaginary];
    let is_found = |is: fn(f64) -> bool| parts.into_iter().find(|part| is(*part));
    is_found(f64::is_nan).or_else(|| is_found(f64::is_infinite)).unwrap_or(real)
}

fn check_finite(tensor: &Tensor, name: &str) -> Result<()> {
    let tally = match tensor.dtype() {
        Dtype::F8E4M3 => NonFiniteTally::tally_elements(tensor.to_bytes()?.into_iter().map(decode_f8e4m3)),
        Dtype::F8E5M2 => NonFiniteTally::tally_elements(tensor.to_bytes()?.into_iter().map(decode_f8e5m2)),
        Dtype::F8E4M3Fnuz | Dtype::F8E5M2Fnuz => {
            NonFiniteTally::tally_elements(tensor.to_bytes()?.into_iter().map(decode_fnuz))
        }
        Dtype::F8E8M0 => NonFiniteTally::tally_elements(tensor.to_bytes()?.into_iter().map(decode_f8e8m0)),
        Dtype::F16 => {
            NonFiniteTally::tally_elements(tensor.to_vec::<half::f16>()?.into_iter().map(f64::from))
        }
        Dtype::BF16 => {
            NonFiniteTally::tally_elements(tensor.to_vec::<half::bf16>()?.into_iter().map(f64::from))
        }
        Dtype::F32 => NonFiniteTally::tally_elements(tensor.to_vec::<f32>()?.into_iter().map(f64::from)),
        Dtype::F64 => NonFiniteTally::tally_elements(tensor.to_vec::<f64>()?.into_iter()),
        Dtype::C64 => {
            let parts = |element: Complex<f32>| classify_complex(element.re.into(), element.im.into());
            NonFiniteTally::tally_elements(tensor.to_vec::<Complex<f32>>()?.into_iter().map(parts))
        }
        Dtype::C128 => {
            let parts = |element: Complex<f64>| classify_complex(element.re, element.im);
            NonFiniteTally::tally_elements(tensor.to_vec::<Complex<f64>>()?.into_iter().map(parts))
        }
        Dtype::Bool
        | Dtype::I2
        | Dtype::U2
        | Dtype::F4E2M1
        | Dtype::I4
        | Dtype::U4
        | Dtype::I8
        | Dtype::U8
        | Dtype::I16
        | Dtype::U16
        | Dtype::I32
        | Dtype::U32
        | Dtype::I64
        | Dtype::U64
        | Dtype::String => return Ok(()),
    };
    let Some((at, value)) = tally.first else { return Ok(()) };
    let NonFiniteTally { nan, infinite, finite, .. } = tally;
    let count = tensor.element_count();
    Err(Error::precondition_not_met(format!(
        "expected finite numbers, found NaN or infinity: numel:{count} index:{at} value:{value}, there are \
         {nan},{infinite},{finite} nan,inf,num"
    ))
    .with_operand(name)
    .with_advice(
        "the flags `check_nan_inf_skip_ops` and `check_nan_inf_skip_outputs` pass over what may have them",
    ))
}
