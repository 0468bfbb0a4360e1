//! Copies structs of plugins that may be built with an older or a newer minor version of the contract.
//!
//! A struct is copied, up to the size that its author knew, over an empty one. Fields that the author did not know yet read as
//! zero, empty slots or empty text, so the host never has to look at sizes again (rules S-1 to S-3).

#![expect(unsafe_code, reason = "a copy is made through a pointer that a plugin gave")]

use std::mem::size_of;

use oarlock_abi as abi;

/// Limit on the length of a chain of extensions, so that a cycle ends.
const MAX_CHAIN_LENGTH: usize = 64;
/// Limit on the size of a struct. A larger value is garbage, not a size.
const MAX_STRUCT_BYTES: u32 = 1 << 16;

/// A struct of the contract that starts with a header.
///
/// # Safety
///
/// The type starts as [`abi::Extension`] does, and any bytes that follow are a valid value of the type.
pub(crate) unsafe trait ForeignStruct: Copy {
    /// The name in the contract, for messages.
    const NAME: &'static str;
    /// The size in the first version of the contract.
    const SIZE_AT_FIRST: u32;
    /// A value with only the size filled in.
    const EMPTY: Self;
}

/// A struct with slots that the host calls.
pub(crate) trait SlotTable: ForeignStruct {
    /// The first required slot that is empty.
    fn missing_required_slot(&self) -> Option<&'static str>;
    /// The first pair of slots that belong together but only one of which is filled.
    fn unpaired_slots(&self) -> Option<(&'static str, &'static str)>;
}

/// A violation of a rule by data that a plugin passed to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleBreach {
    pub(crate) rule: &'static str,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl RuleBreach {
    pub(crate) fn new(rule: &'static str, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { rule, expected: expected.into(), found: found.into() }
    }
}

/// Copies a struct of a plugin into one of the host's size.
///
/// # Safety
///
/// `source` points to a struct of this kind, as large as its `size` says, that nobody changes meanwhile; null and unaligned
/// pointers are detected.
pub(crate) unsafe fn copy_struct<T: ForeignStruct>(source: *const T) -> Result<T, RuleBreach> {
    let header = source.cast::<abi::Extension>();
    if source.is_null() || !header.is_aligned() {
        return Err(RuleBreach::new(
            "S-1",
            format!("the address of a `{}`", T::NAME),
            format!("`{source:p}`"),
        ));
    }
    // SAFETY: the pointer is aligned and not null, and every struct has at least a size and flags.
    let (size, flags) = unsafe { ((&raw const (*header).size).read(), (&raw const (*header).flags).read()) };
    if size < T::SIZE_AT_FIRST {
        let expected = format!("a `{}` of at least {} bytes", T::NAME, T::SIZE_AT_FIRST);
        return Err(RuleBreach::new("S-2", expected, format!("one of {size} bytes")));
    }
    if size > MAX_STRUCT_BYTES {
        let expected = format!("a `{}` of at most {MAX_STRUCT_BYTES} bytes", T::NAME);
        return Err(RuleBreach::new("S-1", expected, format!("one of {size} bytes")));
    }
    let known = size_of::<T>() as u32;
    let mut copy = T::EMPTY;
    // SAFETY: both sides have that many bytes, and any bytes are a valid value of the type.
    unsafe {
        std::ptr::copy_nonoverlapping(
            source.cast::<u8>(),
            (&raw mut copy).cast::<u8>(),
            size.min(known) as usize,
        );
    }
    // The copy has the size that the host knows, regardless of the size in the source.
    // SAFETY: every struct starts with its size.
    unsafe { (&raw mut copy).cast::<u32>().write(known) };
    if size > known {
        // SAFETY: the struct has this many bytes, according to its own size field.
        let rest = unsafe {
            std::slice::from_raw_parts(source.cast::<u8>().add(known as usize), (size - known) as usize)
        };
        let demanded = flags.contains(abi::HeaderFlags::MUST_UNDERSTAND);
        if let Some(position) = rest.iter().position(|byte| *byte != 0) {
            let expected = format!("nothing beyond the {known} bytes of `{}` that this host knows", T::NAME);
            let found = format!("{size} bytes, with data at {}", known as usize + position);
            return Err(RuleBreach::new("S-3", expected, found));
        }
        if demanded {
            let expected = format!("a `{}` that a host of this version can understand", T::NAME);
            return Err(RuleBreach::new("S-3", expected, "one that must be understood and is longer"));
        }
    }
    // SAFETY: the caller vouches for the struct, and so for its chain.
    unsafe { check_chain(header, T::NAME)? };
    Ok(copy)
}

/// Borrows a list in memory of a plugin.
///
/// # Safety
///
/// `first` is null, unaligned, or points to `count` elements that stay unchanged.
pub(crate) unsafe fn checked_list<'a, T>(
    first: *const T,
    count: u64,
    most: u64,
    what: &str,
) -> Result<&'a [T], RuleBreach> {
    if count == 0 {
        return Ok(&[]);
    }
    if count > most || first.is_null() || !first.is_aligned() {
        let expected = format!("a list of at most {most} {what}");
        return Err(RuleBreach::new("S-1", expected, format!("{count} at `{first:p}`")));
    }
    // SAFETY: the pointer is aligned and not null, and the caller vouches for the elements.
    Ok(unsafe { std::slice::from_raw_parts(first, count as usize) })
}

/// Refuses an extension that must be understood, since this version of the contract has none.
///
/// # Safety
///
/// `first` and what its `next` leads to are headers of structs.
unsafe fn check_chain(first: *const abi::Extension, name: &str) -> Result<(), RuleBreach> {
    // SAFETY: the caller vouches for the header.
    let mut next = unsafe { (&raw const (*first).next).read() };
    for _ in 0..MAX_CHAIN_LENGTH {
        if next.is_null() {
            return Ok(());
        }
        if !next.is_aligned() {
            return Err(RuleBreach::new(
                "S-1",
                format!("the address of an extension of `{name}`"),
                format!("`{next:p}`"),
            ));
        }
        // SAFETY: the pointer is aligned and not null, and the caller vouches for the chain.
        let extension = unsafe { next.read() };
        if extension.size < abi::Extension::SIZE_AT_FIRST {
            let expected =
                format!("extensions of `{name}` of at least {} bytes", abi::Extension::SIZE_AT_FIRST);
            return Err(RuleBreach::new("S-2", expected, format!("one of {} bytes", extension.size)));
        }
        if extension.flags.contains(abi::HeaderFlags::MUST_UNDERSTAND) {
            let expected = format!("extensions of `{name}` that a host of this version understands");
            return Err(RuleBreach::new(
                "S-1",
                expected,
                format!("one of kind {} that it must", extension.kind),
            ));
        }
        next = extension.next;
    }
    let expected = format!("a chain of at most {MAX_CHAIN_LENGTH} extensions of `{name}`");
    Err(RuleBreach::new("S-1", expected, "one that is longer or leads back to itself"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of a later version that has two more slots.
    #[repr(C)]
    struct LongerTable {
        table: abi::LayerTable,
        tail: [u64; 2],
    }

    fn copy_longer_table(tail: [u64; 2], flags: abi::HeaderFlags) -> Result<abi::LayerTable, RuleBreach> {
        let size = size_of::<LongerTable>() as u32;
        let longer = LongerTable { table: abi::LayerTable { size, flags, ..abi::LayerTable::EMPTY }, tail };
        // SAFETY: the struct is as large as it says.
        unsafe { copy_struct((&raw const longer).cast()) }
    }

    fn broken_rule<T>(result: Result<T, RuleBreach>) -> Option<&'static str> {
        result.err().map(|breach| breach.rule)
    }

    #[test]
    fn a_longer_struct_passes_while_its_end_is_zero() {
        let table = copy_longer_table([0, 0], abi::HeaderFlags(0)).unwrap();
        assert_eq!(table.size as usize, size_of::<abi::LayerTable>());
        assert_eq!(broken_rule(copy_longer_table([0, 7], abi::HeaderFlags(0))), Some("S-3"));
        assert_eq!(broken_rule(copy_longer_table([0, 0], abi::HeaderFlags::MUST_UNDERSTAND)), Some("S-3"));
    }

    #[test]
    fn a_struct_that_is_too_short_or_absurdly_long_is_a_breach() {
        for (size, broken) in [(0, "S-2"), (abi::LayerTable::SIZE_AT_FIRST - 1, "S-2"), (u32::MAX, "S-1")] {
            let table = abi::LayerTable { size, ..abi::LayerTable::EMPTY };
            // SAFETY: no more is read than the header when the size is one of these.
            assert_eq!(broken_rule(unsafe { copy_struct(&raw const table) }), Some(broken), "{size}");
        }
        // SAFETY: neither address is followed.
        unsafe {
            assert_eq!(broken_rule(copy_struct::<abi::LayerTable>(std::ptr::null())), Some("S-1"));
            assert_eq!(
                broken_rule(copy_struct::<abi::LayerTable>(std::ptr::without_provenance(13))),
                Some("S-1")
            );
        }
    }

    #[test]
    fn a_chain_of_extensions_is_passed_over_unless_it_must_be_understood_or_never_ends() {
        let table = |next: *const abi::Extension| abi::LayerTable { next, ..abi::LayerTable::EMPTY };
        let mut extension = abi::Extension { kind: 77, ..abi::Extension::EMPTY };
        let chained = |table: abi::LayerTable| {
            // SAFETY: the table and its chain are the test's own.
            broken_rule(unsafe { copy_struct(&raw const table) })
        };
        assert_eq!(chained(table(&raw const extension)), None);
        extension.flags = abi::HeaderFlags::MUST_UNDERSTAND;
        assert_eq!(chained(table(&raw const extension)), Some("S-1"));
        extension.flags = abi::HeaderFlags(0);
        extension.next = &raw const extension;
        assert_eq!(chained(table(&raw const extension)), Some("S-1"));
    }
}
