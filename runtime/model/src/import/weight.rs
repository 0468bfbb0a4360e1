//! Builds weights from bytes of a file.

use bytes::Bytes;
use oarlock_core::{Constant, Dtype, Result};

use super::file_part::constant_of_file;
use crate::graph::Weight;

const _: () = assert!(cfg!(target_endian = "little"), "models hold their numbers with the lowest byte first");

/// Weights up to this size are copied, so that they do not keep the whole model that they were decoded from in memory.
const TINY_WEIGHT_BYTES: usize = 256;

/// Builds a weight, which shares the bytes unless they are few or have to be converted.
pub(super) fn weight_from_bytes(dtype: Dtype, dims: &[i64], bytes: Bytes) -> Result<Weight> {
    let bytes = if bytes.len() <= TINY_WEIGHT_BYTES { Bytes::copy_from_slice(&bytes) } else { bytes };
    let bytes = if dtype == Dtype::Bool { normalize_booleans(bytes) } else { bytes };
    let constant = Constant::new(dtype, dims, bytes.clone())?;
    Ok(Weight::Numbers(constant_of_file(constant, &bytes)))
}

/// Normalizes booleans to 0 or 1, which all readers rely on.
fn normalize_booleans(bytes: Bytes) -> Bytes {
    if bytes.iter().all(|byte| *byte <= 1) {
        return bytes;
    }
    bytes.iter().map(|byte| u8::from(*byte != 0)).collect()
}
