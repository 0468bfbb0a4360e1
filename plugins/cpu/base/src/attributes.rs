//! Attributes that are lists of strings, or tensors.

#![expect(
    unsafe_code,
    reason = "attributes are C structs; the host promises that their lists match their counts"
)]

use oarlock_sdk::{Dtype, Element, KernelCall, PluginError, Result, abi, bf16, ensure, f16};

/// An attribute that is a list of strings; `None` if it is absent.
pub fn string_list<'a>(call: &KernelCall<'a>, name: &str) -> Result<Option<Vec<&'a str>>> {
    let Some(attribute) = find_attribute(call, name, abi::AttributeKind::STRINGS)? else { return Ok(None) };
    let text = |index: usize| {
        // SAFETY: the list has the index, and its text lives as long as the call.
        let text = unsafe { (*attribute.strings.add(index)).text() };
        text.ok_or_else(|| {
            PluginError::invalid_argument(format!("expected `{name}` in UTF-8, found other bytes"))
        })
    };
    (0..attribute.strings_count as usize).map(text).collect::<Result<_>>().map(Some)
}

#[derive(Clone, Copy)]
pub struct TensorAttribute<'a> {
    pub dtype: Dtype,
    bytes: &'a [u8],
}

pub fn tensor_attribute<'a>(call: &KernelCall<'a>, name: &str) -> Result<Option<TensorAttribute<'a>>> {
    let Some(attribute) = find_attribute(call, name, abi::AttributeKind::TENSOR)? else { return Ok(None) };
    ensure!(attribute.tensors_count > 0, invalid_argument, "expected `{name}` to hold a tensor, found none");
    // SAFETY: the list has an item, which is not null.
    let tensor = unsafe { &**attribute.tensors };
    let address = tensor.block.0.wrapping_add(tensor.offset) as *const u8;
    let size = if address.is_null() { 0 } else { tensor.size_in_bytes as usize };
    let address = if address.is_null() { std::ptr::dangling() } else { address };
    // SAFETY: the address holds the tensor's bytes for the duration of the call.
    let bytes = unsafe { std::slice::from_raw_parts(address, size) };
    Ok(Some(TensorAttribute { dtype: tensor.dtype, bytes }))
}

impl TensorAttribute<'_> {
    /// The elements as `f64`, which is exact for all dtypes but 64-bit integers.
    pub fn read_f64_values(&self) -> Result<Vec<f64>> {
        match self.dtype {
            Dtype::F16 => Ok(self.decode_elements::<f16, 2>(f16::from_ne_bytes).map(f64::from).collect()),
            Dtype::BF16 => Ok(self.decode_elements::<bf16, 2>(bf16::from_ne_bytes).map(f64::from).collect()),
            Dtype::F32 => Ok(self.decode_elements(f32::from_ne_bytes).map(f64::from).collect()),
            Dtype::F64 => Ok(self.decode_elements(f64::from_ne_bytes).collect()),
            _ => Ok(self.read_i64_values()?.into_iter().map(|number| number as f64).collect()),
        }
    }

    pub fn read_i64_values(&self) -> Result<Vec<i64>> {
        match self.dtype {
            Dtype::U8 | Dtype::BOOL => Ok(self.decode_elements(u8::from_ne_bytes).map(i64::from).collect()),
            Dtype::I8 => Ok(self.decode_elements(i8::from_ne_bytes).map(i64::from).collect()),
            Dtype::U16 => Ok(self.decode_elements(u16::from_ne_bytes).map(i64::from).collect()),
            Dtype::I16 => Ok(self.decode_elements(i16::from_ne_bytes).map(i64::from).collect()),
            Dtype::I32 => Ok(self.decode_elements(i32::from_ne_bytes).map(i64::from).collect()),
            Dtype::U32 => Ok(self.decode_elements(u32::from_ne_bytes).map(i64::from).collect()),
            Dtype::I64 => Ok(self.decode_elements(i64::from_ne_bytes).collect()),
            other => {
                let found = other.name().unwrap_or("an unknown dtype");
                Err(PluginError::unimplemented(format!("expected an attribute with integers, found {found}")))
            }
        }
    }

    fn decode_elements<T: Element, const N: usize>(&self, read: fn([u8; N]) -> T) -> impl Iterator<Item = T> {
        self.bytes.as_chunks::<N>().0.iter().map(move |bytes| read(*bytes))
    }
}

fn find_attribute<'a>(
    call: &KernelCall<'a>,
    name: &str,
    kind: abi::AttributeKind,
) -> Result<Option<&'a abi::Attribute>> {
    let raw = call.as_raw();
    for index in 0..raw.attributes_count as usize {
        // SAFETY: the list matches its count, and its items are not null.
        let attribute = unsafe { &**raw.attributes.add(index) };
        // SAFETY: the name lives as long as the call.
        if unsafe { attribute.name.text() } != Some(name) {
            continue;
        }
        ensure!(
            attribute.kind == kind,
            invalid_argument,
            "expected `{name}` to hold {}, found {}",
            kind.name().unwrap_or("?"),
            attribute.kind.name().unwrap_or("something unknown")
        );
        return Ok(Some(attribute));
    }
    Ok(None)
}
