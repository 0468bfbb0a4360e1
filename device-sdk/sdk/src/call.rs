//! One call of a kernel, as the kernel sees it: operands, attributes, stream and workspace.

#![expect(
    unsafe_code,
    reason = "a call is a C struct; the host promises that its pointers hold during the call"
)]

use std::borrow::Cow;

use oarlock_abi as abi;

use crate::boundary::{checked_pointers, checked_reference, checked_references, checked_slice};
use crate::dtype::Element;
use crate::error::{PluginError, Result};
use crate::host::HostServices;
use crate::shape;

/// One call of a kernel: its operands, attributes, device and stream.
#[derive(Clone, Copy, Debug)]
pub struct KernelCall<'a> {
    raw: &'a abi::Call,
    host: HostServices,
    inputs: &'a [&'a abi::Tensor],
    /// Raw pointers, because the host rewrites the descriptor of an output that is allocated while the call runs.
    outputs: &'a [*const abi::Tensor],
}

impl<'a> KernelCall<'a> {
    /// # Safety
    ///
    /// `raw` is null, or a call in progress that stays unchanged for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new(raw: *const abi::Call, host: HostServices) -> Result<Self> {
        // SAFETY: the caller vouches for the call; the contract has each list match its count.
        unsafe {
            let raw = checked_reference(raw, "call")?;
            if raw.size < abi::Call::SIZE_AT_FIRST {
                let expected = abi::Call::SIZE_AT_FIRST;
                let found = raw.size;
                return Err(PluginError::invalid_argument(format!(
                    "expected a call of {expected} bytes, found {found}"
                ))
                .with_rule("S-2"));
            }
            let inputs = checked_references(raw.inputs, raw.inputs_count, "inputs")?;
            let outputs = checked_pointers(raw.outputs, raw.outputs_count, "outputs")?;
            Ok(Self { raw, host, inputs, outputs })
        }
    }

    /// The id of the device that the call runs on.
    #[inline]
    pub fn device(&self) -> u32 {
        self.raw.device
    }

    /// The stream to enqueue work on. Stream 0 is synchronous: its work is done when the call returns.
    #[inline]
    pub fn stream(&self) -> abi::Stream {
        self.raw.queue
    }

    /// The number of inputs, including optional ones that were left out.
    #[inline]
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs, including optional ones that were left out.
    #[inline]
    pub fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// The input at `index`; an error if it was left out.
    #[inline(always)]
    pub fn input(&self, index: usize) -> Result<TensorView<'a>> {
        match self.optional_input(index)? {
            Some(found) => Ok(found),
            None => Err(missing_operand("an input", index)),
        }
    }

    /// The input at `index`, or `None` if it was left out.
    #[inline(always)]
    pub fn optional_input(&self, index: usize) -> Result<Option<TensorView<'a>>> {
        match self.inputs.get(index) {
            // SAFETY: the host promises that the description holds during the call.
            Some(raw) => unsafe { TensorView::new(raw) },
            None => Ok(None),
        }
    }

    /// The output at `index`; an error if it was left out.
    #[inline(always)]
    pub fn output(&self, index: usize) -> Result<TensorView<'a>> {
        match self.optional_output(index)? {
            Some(found) => Ok(found),
            None => Err(missing_operand("an output", index)),
        }
    }

    /// The output at `index`, or `None` if it was left out.
    #[inline(always)]
    pub fn optional_output(&self, index: usize) -> Result<Option<TensorView<'a>>> {
        match self.outputs.get(index) {
            // SAFETY: as above; the host writes to it only while the kernel waits for `allocate_output`, and nothing refers to
            // it then.
            Some(raw) => unsafe { TensorView::new(&**raw) },
            None => Ok(None),
        }
    }

    /// Sets dtype and shape of an output whose shape depends on data; in a run, the output also gets its memory.
    /// [`KernelCall::output`] returns it afterwards.
    pub fn allocate_output(&self, index: u32, dtype: abi::Dtype, dims: &[i64]) -> Result<()> {
        // SAFETY: this is the call that the kernel is running.
        unsafe { self.host.allocate_output(self.raw, index, dtype, dims) }
    }

    /// Describes in a few words how the kernel will run the call that it is being prepared for, such as `Winograd, AVX-512`.
    /// Users see this in reports.
    pub fn describe_kernel(&self, way: &str) {
        // SAFETY: this is the call that the kernel is being prepared for.
        unsafe { self.host.describe_kernel(self.raw, way) }
    }

    /// Makes the elements of a constant readable, whose operand has the flag [`OperandFlags::ON_DEMAND`](crate::OperandFlags):
    /// until the kernel is prepared, or, if `keep` is set, as long as its state lives. To be called while the kernel is prepared.
    pub fn read_constant(&self, index: u32, keep: bool) -> Result<()> {
        // SAFETY: this is the call that the kernel is being prepared for.
        unsafe { self.host.read_constant(self.raw, index, keep) }
    }

    /// Scratch memory on the device, as large as [`Kernel::with_workspace`](crate::Kernel::with_workspace) asked for: block,
    /// offset and size in bytes.
    pub fn workspace(&self) -> (abi::Memory, u64, u64) {
        (self.raw.workspace, self.raw.workspace_offset, self.raw.workspace_size)
    }

    /// Seed and counter offset of the random generator. A call that draws n numbers uses the n counter values from the offset
    /// on.
    pub fn random_state(&self) -> (u64, u64) {
        (self.raw.random_seed, self.raw.random_offset)
    }

    /// The underlying C struct, for fields that this type does not wrap.
    pub fn as_raw(&self) -> &'a abi::Call {
        self.raw
    }

    /// An integer attribute; `None` if it is not set, an error if it has another kind.
    pub fn int_attribute(&self, name: &str) -> Result<Option<i64>> {
        self.find_attribute(name, abi::AttributeKind::INT, |a| {
            // SAFETY: the host promises that the list matches its count.
            unsafe { checked_slice(a.ints, a.ints_count, "ints") }
        })
        .map(|list| list.and_then(|ints| ints.first().copied()))
    }

    /// An attribute that is a list of integers; `None` if it is not set, an error if it has another kind.
    pub fn ints_attribute(&self, name: &str) -> Result<Option<&'a [i64]>> {
        self.find_attribute(name, abi::AttributeKind::INTS, |a| {
            // SAFETY: as above.
            unsafe { checked_slice(a.ints, a.ints_count, "ints") }
        })
    }

    /// A floating-point attribute; `None` if it is not set, an error if it has another kind.
    pub fn float_attribute(&self, name: &str) -> Result<Option<f64>> {
        self.find_attribute(name, abi::AttributeKind::FLOAT, |a| {
            // SAFETY: as above.
            unsafe { checked_slice(a.floats, a.floats_count, "floats") }
        })
        .map(|list| list.and_then(|floats| floats.first().copied()))
    }

    /// An attribute that is a list of floating-point numbers; `None` if it is not set, an error if it has another kind.
    pub fn floats_attribute(&self, name: &str) -> Result<Option<&'a [f64]>> {
        self.find_attribute(name, abi::AttributeKind::FLOATS, |a| {
            // SAFETY: as above.
            unsafe { checked_slice(a.floats, a.floats_count, "floats") }
        })
    }

    /// A text attribute; `None` if it is not set, an error if it has another kind or is not UTF-8.
    pub fn string_attribute(&self, name: &str) -> Result<Option<&'a str>> {
        let strings = self.find_attribute(name, abi::AttributeKind::STRING, |a| {
            // SAFETY: as above.
            unsafe { checked_slice(a.strings, a.strings_count, "strings") }
        })?;
        // SAFETY: the text of an attribute lives as long as the call.
        strings
            .and_then(|list| list.first())
            .map(|text| unsafe { crate::boundary::checked_text(*text, name) })
            .transpose()
    }

    fn find_attribute<T>(
        &self,
        name: &str,
        kind: abi::AttributeKind,
        read: impl FnOnce(&'a abi::Attribute) -> Result<&'a [T]>,
    ) -> Result<Option<&'a [T]>> {
        // SAFETY: the host promises that the list matches its count.
        let attributes =
            unsafe { checked_references(self.raw.attributes, self.raw.attributes_count, "attributes") }?;
        // SAFETY: the name of an attribute lives as long as the call.
        let named = |attribute: &&&'a abi::Attribute| unsafe { attribute.name.text() } == Some(name);
        let Some(attribute) = attributes.iter().find(named) else { return Ok(None) };
        if attribute.kind != kind {
            let expected = kind.name().unwrap_or("?");
            let found = attribute.kind.name().unwrap_or("something unknown");
            return Err(PluginError::invalid_argument(format!(
                "expected `{name}` to hold {expected}, found {found}"
            )));
        }
        read(attribute).map(Some)
    }
}

#[cold]
fn missing_operand(what: &str, index: usize) -> PluginError {
    PluginError::invalid_argument(format!("expected {what} {index}, found none"))
}

/// The descriptor of one operand of a call. It is cheap to copy; the elements stay in the memory of the device.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    dtype: abi::Dtype,
    layout: abi::Layout,
    bits: abi::TensorFlags,
    block: abi::Memory,
    offset: u64,
    size_in_bytes: u64,
    dims: &'a [i64],
    strides: &'a [i64],
}

impl<'a> TensorView<'a> {
    /// # Safety
    ///
    /// `dims` and `strides` match their counts and stay readable for `'a`.
    #[inline(always)]
    unsafe fn new(raw: &abi::Tensor) -> Result<Option<Self>> {
        if raw.bits.contains(abi::TensorFlags::ABSENT) {
            return Ok(None);
        }
        // SAFETY: the caller vouches for both lists.
        let (dims, strides) = unsafe {
            (
                checked_slice(raw.dims, raw.dims_count, "dims")?,
                checked_slice(raw.strides, raw.strides_count, "strides")?,
            )
        };
        if !strides.is_empty() && strides.len() != dims.len() {
            let (expected, found) = (dims.len(), strides.len());
            return Err(PluginError::invalid_argument(format!(
                "expected {expected} strides or none, found {found}"
            )));
        }
        let &abi::Tensor { dtype, layout, bits, block, offset, size_in_bytes, .. } = raw;
        Ok(Some(Self { dtype, layout, bits, block, offset, size_in_bytes, dims, strides }))
    }

    /// The type of the elements. [`dispatch!`](crate::dispatch) turns it into a Rust type.
    #[inline]
    pub fn dtype(&self) -> abi::Dtype {
        self.dtype
    }

    /// The size of each dimension. During shape inference, -1 stands for an unknown size.
    #[inline]
    pub fn dims(&self) -> &'a [i64] {
        self.dims
    }

    /// The stride of each dimension in elements; empty if the tensor is contiguous, with the last dimension fastest.
    #[inline]
    pub fn strides(&self) -> &'a [i64] {
        self.strides
    }

    /// The meaning of the dimensions, such as channels first or last. Independently of it, the strides define where elements are.
    pub fn layout(&self) -> abi::Layout {
        self.layout
    }

    /// The product of all dimensions; an error if one is negative or the product overflows.
    pub fn element_count(&self) -> Result<usize> {
        shape::element_count(self.dims)
    }

    /// True if the bytes stay the same as long as the kernel's prepared state lives, so that `prepare` may pack them.
    pub fn is_constant(&self) -> bool {
        self.bits.contains(abi::TensorFlags::CONSTANT)
    }

    /// The memory block, and the offset of the first element in bytes.
    #[inline]
    pub fn memory_location(&self) -> (abi::Memory, u64) {
        (self.block, self.offset)
    }

    /// The number of bytes from the first element to the end of the last, gaps included.
    #[inline]
    pub fn size_in_bytes(&self) -> u64 {
        self.size_in_bytes
    }

    /// The elements of a contiguous tensor, on a device whose memory the host can address. An error if `T` is not its dtype.
    ///
    /// # Safety
    ///
    /// The device is host-addressable, and nothing writes the elements for `'a`.
    pub unsafe fn elements<T: Element>(&self) -> Result<&'a [T]> {
        let (address, count) = self.checked_address::<T>()?;
        if count == 0 {
            return Ok(&[]);
        }
        // SAFETY: the address is aligned and not null, the operand has `count` elements, and the caller vouches for the rest.
        Ok(unsafe { core::slice::from_raw_parts(address, count) })
    }

    /// The elements as a mutable slice; otherwise like [`TensorView::elements`].
    ///
    /// # Safety
    ///
    /// The device is host-addressable, and nothing else touches the elements for `'a`.
    pub unsafe fn elements_mut<T: Element>(&self) -> Result<&'a mut [T]> {
        let (address, count) = self.checked_address::<T>()?;
        if count == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as for `elements`.
        Ok(unsafe { core::slice::from_raw_parts_mut(address.cast_mut(), count) })
    }

    /// The bytes of a contiguous tensor. Unlike [`TensorView::elements`], this permits any alignment.
    ///
    /// # Safety
    ///
    /// The device is host-addressable, and nothing writes the elements for `'a`.
    pub unsafe fn element_bytes<T: Element>(&self) -> Result<&'a [u8]> {
        let count = self.checked_count::<T>()?;
        let address = self.block.0.wrapping_add(self.offset) as *const u8;
        if count == 0 || address.is_null() {
            return Ok(&[]);
        }
        // SAFETY: the operand has `count` elements, and the caller vouches for the rest.
        Ok(unsafe { core::slice::from_raw_parts(address, count * size_of::<T>()) })
    }

    /// The elements of a constant at any alignment, as [`OperandFlags::UNALIGNED`](crate::OperandFlags) permits: borrowed if
    /// they are aligned, otherwise copied.
    ///
    /// # Safety
    ///
    /// The device is host-addressable, and the operand is constant.
    pub unsafe fn constant_elements<T: Element>(&self) -> Result<Cow<'a, [T]>> {
        let address = self.block.0.wrapping_add(self.offset) as *const T;
        if address.is_aligned() {
            // SAFETY: the caller vouches for what `elements` requires.
            return unsafe { self.elements() }.map(Cow::Borrowed);
        }
        let count = self.checked_count::<T>()?;
        let mut elements: Vec<T> = Vec::with_capacity(count);
        // SAFETY: the operand has `count` elements, every bit pattern of which is valid; the copy has room for them, and a copy
        // of bytes needs no alignment.
        unsafe {
            core::ptr::copy_nonoverlapping(
                address.cast::<u8>(),
                elements.as_mut_ptr().cast::<u8>(),
                count * size_of::<T>(),
            );
            elements.set_len(count);
        }
        Ok(Cow::Owned(elements))
    }

    fn checked_address<T: Element>(&self) -> Result<(*const T, usize)> {
        let count = self.checked_count::<T>()?;
        let address = self.block.0.wrapping_add(self.offset) as *const T;
        if count > 0 && (address.is_null() || !address.is_aligned()) {
            return Err(PluginError::invalid_argument(format!(
                "expected an aligned address, found {address:p}"
            )));
        }
        Ok((address, count))
    }

    /// Checks dtype, contiguity and size, on which typed access relies; returns the number of elements.
    fn checked_count<T: Element>(&self) -> Result<usize> {
        if self.dtype != T::DTYPE {
            let (expected, found) = (T::DTYPE.name().unwrap_or("?"), self.dtype.name().unwrap_or("unknown"));
            return Err(PluginError::invalid_argument(format!(
                "expected elements of {expected}, found {found}"
            )));
        }
        if !self.strides.is_empty() {
            return Err(PluginError::invalid_argument(
                "expected a contiguous operand, found one with strides",
            ));
        }
        let count = self.element_count()?;
        let needed = (count as u64).checked_mul(size_of::<T>() as u64);
        if needed.is_none_or(|needed| needed > self.size_in_bytes) {
            let found = self.size_in_bytes;
            return Err(PluginError::out_of_range(format!(
                "expected room for {count} elements, found {found} bytes"
            )));
        }
        Ok(count)
    }
}
