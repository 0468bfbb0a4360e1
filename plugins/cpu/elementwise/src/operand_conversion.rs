//! How an operand gets from memory into a loop and back: in place, or through a conversion.

use oarlock_sdk::{Dtype, PluginError, Result};

use super::conversion::find_conversion;
use super::element_loop::ElementLoop;

/// The path between the dtype of an operand and that of a loop.
#[derive(Clone, Copy)]
pub(super) struct OperandConversion {
    /// The dtype in memory.
    pub(super) dtype: Dtype,
    /// Bytes of an element in the loop.
    pub(super) computed_size: usize,
    /// Bits of an element in memory.
    pub(super) bits: usize,
    /// Converts one to the other; `None` if they are the same.
    pub(super) converter: Option<&'static dyn ElementLoop>,
}

impl OperandConversion {
    /// An operand that the loop takes in place.
    pub(super) fn without_conversion(dtype: Dtype) -> Self {
        let bits = dtype_bits(dtype);
        Self { dtype, computed_size: bits / 8, bits, converter: None }
    }

    /// An input that the loop takes as another dtype.
    pub(super) fn for_input(dtype: Dtype, computed: Dtype) -> Result<Self> {
        Self::between_dtypes(dtype, computed, (dtype, computed))
    }

    /// An output that the loop makes as another dtype.
    pub(super) fn for_output(dtype: Dtype, computed: Dtype) -> Result<Self> {
        Self::between_dtypes(dtype, computed, (computed, dtype))
    }

    fn between_dtypes(dtype: Dtype, computed: Dtype, (from, to): (Dtype, Dtype)) -> Result<Self> {
        if dtype == computed {
            return Ok(Self::without_conversion(dtype));
        }
        let name = |dtype: Dtype| dtype.name().unwrap_or("an unknown dtype");
        let converter = find_conversion(from, to).ok_or_else(|| {
            PluginError::unimplemented(format!(
                "expected dtypes that can be converted, found {} and {}",
                name(from),
                name(to)
            ))
        })?;
        Ok(Self {
            // Loops never compute in packed dtypes, so there is no remainder.
            computed_size: dtype_bits(computed) / 8,
            converter: Some(converter),
            ..Self::without_conversion(dtype)
        })
    }

    /// Replaces the conversion.
    pub(super) fn with_conversion(self, converter: Option<&'static dyn ElementLoop>) -> Self {
        Self { converter, ..self }
    }

    /// The size of an element before or after its conversion, whichever is larger.
    pub(super) fn max_element_size(&self) -> usize {
        self.computed_size.max(self.bits.div_ceil(8))
    }

    /// True if several elements share a byte of memory.
    pub(super) fn is_packed(&self) -> bool {
        self.bits < 8
    }

    /// The number of elements before this one in the same byte.
    pub(super) fn packed_offset(&self, index: usize) -> usize {
        if self.is_packed() { index % (8 / self.bits) } else { 0 }
    }

    /// The alignment that addresses of the operand must have.
    pub(super) fn alignment(&self) -> usize {
        match self.dtype {
            // Complex numbers are aligned like their parts.
            Dtype::C64 => 4,
            Dtype::C128 => 8,
            _ => self.bits.div_ceil(8),
        }
    }

    pub(super) fn byte_count(&self, elements: usize) -> usize {
        (elements * self.bits).div_ceil(8)
    }
}

/// Bits of an element; 0 for dtypes that are not numbers.
fn dtype_bits(dtype: Dtype) -> usize {
    match dtype {
        Dtype::I2 | Dtype::U2 => 2,
        Dtype::I4 | Dtype::U4 | Dtype::F4E2M1 => 4,
        Dtype::BOOL
        | Dtype::I8
        | Dtype::U8
        | Dtype::F8E4M3
        | Dtype::F8E4M3FNUZ
        | Dtype::F8E5M2
        | Dtype::F8E5M2FNUZ
        | Dtype::F8E8M0 => 8,
        Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::BF16 => 16,
        Dtype::I32 | Dtype::U32 | Dtype::F32 => 32,
        Dtype::I64 | Dtype::U64 | Dtype::F64 | Dtype::C64 => 64,
        Dtype::C128 => 128,
        _ => 0,
    }
}

/// The dtype in which elements are computed: `f32` for the smaller floats, whole bytes for packed integers.
pub(super) fn compute_dtype(dtype: Dtype) -> Dtype {
    match dtype {
        Dtype::F4E2M1
        | Dtype::F8E4M3
        | Dtype::F8E4M3FNUZ
        | Dtype::F8E5M2
        | Dtype::F8E5M2FNUZ
        | Dtype::F8E8M0
        | Dtype::F16
        | Dtype::BF16 => Dtype::F32,
        Dtype::I2 | Dtype::I4 => Dtype::I8,
        Dtype::U2 | Dtype::U4 => Dtype::U8,
        other => other,
    }
}
