//! Compiles a body once for each level of instruction sets, and selects one at run time.

#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "code for instruction sets that not every processor has may only run where they are"
    )
)]

#[cfg(target_arch = "x86_64")]
use crate::isa::Isa;

/// Runs a closure in code that is compiled for the instruction sets of a level. Functions that it calls in inner loops must be
/// `#[inline(always)]`.
///
/// Each level has its own copy of the closure, called in one place: only then does the compiler inline it into the function with
/// that target feature.
#[macro_export]
macro_rules! with_isa {
    ($isa:expr, || $body:expr) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Isa::Sse41 => $crate::rows::isa_dispatch::with_sse41(
                $isa,
                #[inline(always)]
                || $body,
            ),
            isa => $crate::with_avx!(isa, || $body),
        }
    };
    // With `$level`, the body can name the level as a type, for functions that depend on FMA.
    ($isa:expr, $level:ident => || $body:expr) => {
        match $isa {
            #[cfg(x86_vectors)]
            $crate::isa::Isa::Avx512 | $crate::isa::Isa::Amx => $crate::rows::isa_dispatch::with_avx512(
                $isa,
                #[inline(always)]
                || {
                    type $level = $crate::isa::FmaTarget;
                    $body
                },
            ),
            #[cfg(x86_vectors)]
            $crate::isa::Isa::Avx2 | $crate::isa::Isa::AvxVnni => $crate::rows::isa_dispatch::with_avx2(
                $isa,
                #[inline(always)]
                || {
                    type $level = $crate::isa::FmaTarget;
                    $body
                },
            ),
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Isa::Sse41 => $crate::rows::isa_dispatch::with_sse41(
                $isa,
                #[inline(always)]
                || {
                    type $level = $crate::isa::BaselineTarget;
                    $body
                },
            ),
            #[cfg(arm_vectors)]
            $crate::isa::Isa::Neon | $crate::isa::Isa::DotProd | $crate::isa::Isa::I8mm => {
                $crate::rows::isa_dispatch::with_baseline(
                    #[inline(always)]
                    || {
                        type $level = $crate::isa::FmaTarget;
                        $body
                    },
                )
            }
            _ => $crate::rows::isa_dispatch::with_baseline(
                #[inline(always)]
                || {
                    type $level = $crate::isa::BaselineTarget;
                    $body
                },
            ),
        }
    };
}

/// Like [`with_isa!`], without a copy for SSE4.1, for loops that gain nothing from it, such as sums.
#[macro_export]
macro_rules! with_avx {
    ($isa:expr, || $body:expr) => {
        match $isa {
            #[cfg(x86_vectors)]
            isa @ ($crate::isa::Isa::Avx512 | $crate::isa::Isa::Amx) => {
                $crate::rows::isa_dispatch::with_avx512(
                    isa,
                    #[inline(always)]
                    || $body,
                )
            }
            #[cfg(x86_vectors)]
            isa @ ($crate::isa::Isa::Avx2 | $crate::isa::Isa::AvxVnni) => {
                $crate::rows::isa_dispatch::with_avx2(
                    isa,
                    #[inline(always)]
                    || $body,
                )
            }
            _ => $crate::rows::isa_dispatch::with_baseline(
                #[inline(always)]
                || $body,
            ),
        }
    };
}

/// Runs the body of [`with_isa!`] for AVX-512.
#[cfg(x86_vectors)]
#[inline(always)]
pub fn with_avx512<R>(isa: Isa, body: impl FnOnce() -> R) -> R {
    assert!(isa >= Isa::Avx512, "a level for this code");
    // SAFETY: levels above the lowest are only constructed on machines that have them.
    unsafe { run_avx512(body) }
}

/// Runs the body of [`with_isa!`] for AVX2.
#[cfg(x86_vectors)]
#[inline(always)]
pub fn with_avx2<R>(isa: Isa, body: impl FnOnce() -> R) -> R {
    assert!(isa >= Isa::Avx2, "a level for this code");
    // SAFETY: as above.
    unsafe { run_avx2(body) }
}

/// Runs the body of [`with_isa!`] for SSE4.1.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn with_sse41<R>(isa: Isa, body: impl FnOnce() -> R) -> R {
    assert!(isa >= Isa::Sse41, "a level for this code");
    // SAFETY: as above.
    unsafe { run_sse41(body) }
}

/// Runs the body of [`with_isa!`] with the baseline instructions.
#[inline(always)]
pub fn with_baseline<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
fn run_avx512<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.1,ssse3")]
fn run_sse41<R>(body: impl FnOnce() -> R) -> R {
    body()
}
