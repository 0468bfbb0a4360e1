//! The instruction sets that kernels use: the best that the processor and the operating system support, or fewer on request.
//! [`Isa::vectorize`] compiles one generic source for each of them.

#![cfg_attr(
    x86_vectors,
    expect(unsafe_code, reason = "code for an instruction set may only run where the machine has it")
)]

use std::fmt;

use oarlock_sdk::HostServices;

#[cfg(x86_vectors)]
use crate::{amx_permission, machine};

/// A level of instruction sets, in ascending order. Kernels may use all features of their level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// The baseline of the architecture.
    Scalar,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-VNNI, on top of AVX2. A processor with AVX-512 may lack it.
    AvxVnni,
    /// AVX-512 F, BW, CD, DQ and VL, on top of all of AVX2.
    Avx512,
    /// AMX for bf16 and int8, on top of AVX-512 with BF16 and VNNI.
    Amx,
}

impl Isa {
    /// All levels, in ascending order.
    pub const ALL: [Self; 5] = [Self::Scalar, Self::Avx2, Self::AvxVnni, Self::Avx512, Self::Amx];

    /// The level for dtypes that AMX does not multiply: those of 32 and 64 bits.
    pub fn without_amx(self) -> Self {
        self.min(Self::Avx512)
    }

    /// The best level of this machine.
    pub fn best_level() -> Self {
        Self::ALL.into_iter().rfind(|isa| isa.is_available()).unwrap_or(Self::Scalar)
    }

    /// True if this machine has the level.
    pub fn is_available(self) -> bool {
        #[cfg(x86_vectors)]
        return match self {
            Self::Scalar => true,
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            Self::AvxVnni => Self::Avx2.is_available() && is_x86_feature_detected!("avxvnni"),
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            Self::Amx => {
                Self::Avx512.is_available()
                    && is_x86_feature_detected!("avx512bf16")
                    && is_x86_feature_detected!("avx512vnni")
                    && amx_permission::is_amx_available()
            }
        };
        #[cfg(not(x86_vectors))]
        {
            self == Self::Scalar
        }
    }

    /// True if one instruction multiplies pairs of bf16 and accumulates both products (AVX512-BF16). A processor of the level
    /// `Avx512` may lack it.
    pub fn has_bf16(self) -> bool {
        #[cfg(x86_vectors)]
        {
            self >= Self::Avx512 && is_x86_feature_detected!("avx512bf16")
        }
        #[cfg(not(x86_vectors))]
        {
            false
        }
    }

    /// True if many products are faster in bf16 than in f32. Without AMX, Intel processors have two ports for f32 FMAs but only one
    /// for bf16, so the products per cycle are the same; there, only code that waits for memory gains from bf16.
    pub fn prefers_bf16(self) -> bool {
        #[cfg(x86_vectors)]
        {
            let is_intel = machine::processor_vendor() == "GenuineIntel";
            self == Self::Amx || self.has_bf16() && !is_intel
        }
        #[cfg(not(x86_vectors))]
        {
            false
        }
    }

    /// The level set by the plugin's option `isa`, if the machine has it; otherwise the best.
    pub fn from_host_option(host: &HostServices) -> Self {
        let best = Self::best_level();
        let Some(wanted) = host.option("isa") else { return best };
        match Self::ALL.into_iter().find(|isa| isa.to_string() == wanted) {
            Some(isa) if isa.is_available() => isa,
            Some(isa) => {
                host.log(
                    oarlock_sdk::LogLevel::WARNING,
                    &format!("expected an instruction set this machine has, found `isa = \"{isa}\"`; using `{best}`"),
                );
                best
            }
            None => {
                host.log(
                    oarlock_sdk::LogLevel::WARNING,
                    &format!(
                        "expected `isa` to be `scalar`, `avx2`, `avx-vnni`, `avx512` or `amx`, found `{wanted}`; using `{best}`"
                    ),
                );
                best
            }
        }
    }
}

/// An instruction set as a type, so that generic code can branch on it at compile time.
pub trait SimdTarget: Copy + Send + Sync + 'static {
    /// True if multiply-add is one instruction. Without FMA, `mul_add` is a slow library call.
    const HAS_FMA: bool;
}

/// The baseline of the architecture.
#[derive(Clone, Copy)]
pub struct BaselineTarget;

/// AVX2 with FMA, or a superset. AVX-512 shares it: generic code only needs to know about FMA, and the compiler picks the width.
#[cfg(any(x86_vectors, test))]
#[derive(Clone, Copy)]
pub struct FmaTarget;

impl SimdTarget for BaselineTarget {
    const HAS_FMA: bool = false;
}

#[cfg(any(x86_vectors, test))]
impl SimdTarget for FmaTarget {
    const HAS_FMA: bool = true;
}

/// Work that [`Isa::vectorize`] compiles once for each instruction set.
pub trait SimdTask {
    type Output;

    /// Does the work. This function and everything it calls must be `#[inline(always)]`: only code that is inlined into the caller
    /// is compiled with the caller's instruction set.
    fn run_on_target<T: SimdTarget>(self) -> Self::Output;
}

impl Isa {
    /// Runs the copy of the work that was compiled for this level.
    #[inline]
    pub fn vectorize<W: SimdTask>(self, work: W) -> W::Output {
        match self {
            // SAFETY: levels above the lowest are only constructed on machines that have them.
            #[cfg(x86_vectors)]
            Self::Avx512 | Self::Amx => unsafe { run_avx512(work) },
            // SAFETY: as above.
            #[cfg(x86_vectors)]
            Self::Avx2 | Self::AvxVnni => unsafe { run_avx2(work) },
            _ => work.run_on_target::<BaselineTarget>(),
        }
    }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn run_avx512<W: SimdTask>(work: W) -> W::Output {
    work.run_on_target::<FmaTarget>()
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<W: SimdTask>(work: W) -> W::Output {
    work.run_on_target::<FmaTarget>()
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avx-vnni",
            Self::Avx512 => "avx512",
            Self::Amx => "amx",
        })
    }
}
