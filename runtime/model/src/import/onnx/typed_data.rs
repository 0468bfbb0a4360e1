//! Decodes tensors whose elements are in typed lists instead of raw bytes.

use bytes::Bytes;
use oarlock_core::{Dtype, Result, shape};

use super::messages::TensorProto;
use crate::import::error_location::invalid_model;

/// The bytes of a tensor, from the list that ONNX prescribes for its dtype.
pub(super) fn typed_bytes(tensor: &TensorProto, dtype: Dtype) -> Result<Bytes> {
    match dtype {
        Dtype::F32 => {
            encode_list(tensor, dtype, 1, "float_data", &tensor.float_data, |it| Some(it.to_ne_bytes()))
        }
        Dtype::C64 => {
            encode_list(tensor, dtype, 2, "float_data", &tensor.float_data, |it| Some(it.to_ne_bytes()))
        }
        Dtype::F64 => {
            encode_list(tensor, dtype, 1, "double_data", &tensor.double_data, |it| Some(it.to_ne_bytes()))
        }
        Dtype::C128 => {
            encode_list(tensor, dtype, 2, "double_data", &tensor.double_data, |it| Some(it.to_ne_bytes()))
        }
        Dtype::I64 => {
            encode_list(tensor, dtype, 1, "int64_data", &tensor.int64_data, |it| Some(it.to_ne_bytes()))
        }
        Dtype::U64 => {
            encode_list(tensor, dtype, 1, "uint64_data", &tensor.uint64_data, |it| Some(it.to_ne_bytes()))
        }
        Dtype::U32 => encode_list(tensor, dtype, 1, "uint64_data", &tensor.uint64_data, |it| {
            u32::try_from(it).ok().map(u32::to_ne_bytes)
        }),
        Dtype::I32 => {
            encode_list(tensor, dtype, 1, "int32_data", &tensor.int32_data, |it| Some(it.to_ne_bytes()))
        }
        Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::BF16 => {
            encode_list(tensor, dtype, 1, "int32_data", &tensor.int32_data, |it| {
                let signed = || i16::try_from(it).ok().map(i16::to_ne_bytes);
                u16::try_from(it).ok().map(u16::to_ne_bytes).or_else(signed)
            })
        }
        Dtype::Bool
        | Dtype::I2
        | Dtype::U2
        | Dtype::I4
        | Dtype::U4
        | Dtype::F4E2M1
        | Dtype::I8
        | Dtype::U8
        | Dtype::F8E4M3
        | Dtype::F8E4M3Fnuz
        | Dtype::F8E5M2
        | Dtype::F8E5M2Fnuz
        | Dtype::F8E8M0 => encode_list(tensor, dtype, 1, "int32_data", &tensor.int32_data, |it| {
            let signed = || i8::try_from(it).ok().map(i8::to_ne_bytes);
            u8::try_from(it).ok().map(u8::to_ne_bytes).or_else(signed)
        }),
        Dtype::String => Err(invalid_model("numbers", "strings")),
    }
}

/// Encodes a list in which an element takes `parts` numbers; sub-byte elements share one.
fn encode_list<T: Copy + std::fmt::Display, const SIZE: usize>(
    tensor: &TensorProto,
    dtype: Dtype,
    parts: u64,
    field: &str,
    numbers: &[T],
    encode: impl Fn(T) -> Option<[u8; SIZE]>,
) -> Result<Bytes> {
    let elements = shape::element_count(&tensor.dims)?;
    let expected = match dtype.byte_size() {
        Some(_) => elements.saturating_mul(parts),
        None => elements.div_ceil(u64::from(8 / dtype.bits())),
    };
    let found = numbers.len();
    if found as u64 != expected {
        let dims = &tensor.dims;
        return Err(invalid_model(
            format!("{expected} numbers in `{field}` for {dtype} of shape {dims:?}"),
            found,
        ));
    }
    let mut bytes = Vec::with_capacity(numbers.len() * SIZE);
    for number in numbers {
        let encoded =
            encode(*number).ok_or_else(|| invalid_model(format!("numbers that are {dtype}"), number))?;
        bytes.extend_from_slice(&encoded);
    }
    Ok(bytes.into())
}
