//! Prefetches: hints that memory will be read soon. A hint never faults, so an address need not be valid.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the intrinsic is an instruction, which every processor has")
)]

/// Prefetches a cache line into all cache levels.
#[inline(always)]
pub fn prefetch_l1<T>(address: *const T) {
    // SAFETY: every processor of the architecture has the instruction, which never faults.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches a cache line into L2, for data that L1 would evict before it is read.
#[inline(always)]
pub fn prefetch_l2<T>(address: *const T) {
    // SAFETY: as for `prefetch_l1`.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches a cache line that will be written.
#[inline(always)]
pub fn prefetch_to_write<T>(address: *mut T) {
    // SAFETY: as for `prefetch_l1`; processors without this prefetch ignore it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(address.cast_const().cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
