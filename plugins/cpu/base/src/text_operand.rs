//! Operands of strings. An element is the address of its text, which the creator of the operand keeps alive.

#![expect(unsafe_code, reason = "elements of text are addresses in memory that the call vouches for")]

use oarlock_sdk::{Dtype, PluginError, Result, Str, TensorView, ensure};

pub fn read_texts<'a>(input: &TensorView<'a>) -> Result<Vec<&'a str>> {
    let (address, count) = text_elements(input)?;
    let text = |index: usize| {
        // SAFETY: the operand has the element, and the call vouches that its text lives while the call runs.
        let text = unsafe { (*address.add(index)).text() };
        text.ok_or_else(|| PluginError::invalid_argument("expected text in UTF-8, found other bytes"))
    };
    (0..count).map(text).collect()
}

/// Writes strings of inputs to an output. They are borrowed: the host keeps the text of the inputs alive for the output, too.
pub fn write_texts<'a>(output: &TensorView<'_>, texts: impl ExactSizeIterator<Item = &'a str>) -> Result<()> {
    let (address, count) = text_elements(output)?;
    let found = texts.len();
    ensure!(found == count, invalid_argument, "expected room for {found} texts, found room for {count}");
    for (index, text) in texts.enumerate() {
        // SAFETY: the operand has the element, nothing else accesses it, and its old value needs no drop.
        unsafe { address.add(index).write(Str::borrowed(text)) };
    }
    Ok(())
}

/// The address of the elements, and their number.
fn text_elements(operand: &TensorView<'_>) -> Result<(*mut Str, usize)> {
    ensure!(
        operand.dtype() == Dtype::STRING && operand.strides().is_empty(),
        invalid_argument,
        "expected a contiguous operand of text, found {} with strides {:?}",
        operand.dtype().name().unwrap_or("an unknown dtype"),
        operand.strides()
    );
    let count = operand.element_count()?;
    let needed = (count as u64).checked_mul(size_of::<Str>() as u64);
    ensure!(
        needed.is_some_and(|needed| needed <= operand.size_in_bytes()),
        out_of_range,
        "expected room for {count} texts, found {} bytes",
        operand.size_in_bytes()
    );
    let (block, offset) = operand.memory_location();
    let address = block.0.wrapping_add(offset) as *mut Str;
    ensure!(
        count == 0 || !address.is_null() && address.is_aligned(),
        invalid_argument,
        "expected an aligned address, found {address:p}"
    );
    Ok((address, count))
}
