//! The instruction sets that kernels use: the best that the processor and the operating system support, or fewer on request.
//! [`Isa::vectorize`] compiles one generic source for each of them.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "code for an instruction set may only run where the machine has it")
)]

#[cfg(arm_vectors)]
use std::arch::is_aarch64_feature_detected;
use std::fmt;

use oarlock_sdk::HostServices;

#[cfg(x86_vectors)]
use crate::{amx_permission, machine};

/// A level of instruction sets, in ascending order. Kernels may use all features of their level. Each architecture has its own levels
/// above the lowest. Those of x86 come last, so that code for both can ask for `isa >= Isa::Avx2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// The baseline of the architecture, without vector types of our own.
    Scalar,
    /// NEON, which every 64-bit ARM processor has.
    Neon,
    /// Dot products of bytes (FEAT_DotProd), on top of NEON.
    DotProd,
    /// Products of bytes of different signs and of bf16 (FEAT_I8MM and FEAT_BF16), on top of dot products.
    I8mm,
    /// SSE4.1 and SSSE3, for processors without AVX2. It has no AVX instruction, so builds without AVX have it too.
    Sse41,
    /// AVX2 with FMA and F16C, on top of SSE4.1.
    Avx2,
    /// AVX-VNNI, on top of AVX2. A processor with AVX-512 may lack it.
    AvxVnni,
    /// AVX-512 F, BW, CD, DQ and VL, on top of all of AVX2.
    Avx512,
    /// AMX for bf16 and int8, on top of AVX-512 with BF16 and VNNI.
    Amx,
}

impl Isa {
    /// All levels of the architecture, in ascending order.
    #[cfg(not(arm_vectors))]
    pub const ALL: [Self; 6] =
        [Self::Scalar, Self::Sse41, Self::Avx2, Self::AvxVnni, Self::Avx512, Self::Amx];
    #[cfg(arm_vectors)]
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Neon, Self::DotProd, Self::I8mm];

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
        #[cfg(target_arch = "x86_64")]
        return match self {
            Self::Scalar => true,
            Self::Sse41 => is_x86_feature_detected!("sse4.1") && is_x86_feature_detected!("ssse3"),
            #[cfg(x86_vectors)]
            Self::Avx2 => {
                Self::Sse41.is_available()
                    && is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(x86_vectors)]
            Self::AvxVnni => Self::Avx2.is_available() && is_x86_feature_detected!("avxvnni"),
            #[cfg(x86_vectors)]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(x86_vectors)]
            Self::Amx => {
                Self::Avx512.is_available()
                    && is_x86_feature_detected!("avx512bf16")
                    && is_x86_feature_detected!("avx512vnni")
                    && amx_permission::is_amx_available()
            }
            _ => false,
        };
        #[cfg(arm_vectors)]
        return match self {
            Self::Scalar | Self::Neon => true,
            Self::DotProd => is_aarch64_feature_detected!("dotprod"),
            Self::I8mm => {
                Self::DotProd.is_available()
                    && is_aarch64_feature_detected!("i8mm")
                    && is_aarch64_feature_detected!("bf16")
            }
            _ => false,
        };
        #[cfg(not(any(target_arch = "x86_64", arm_vectors)))]
        {
            self == Self::Scalar
        }
    }

    /// True if one instruction multiplies pairs of bf16 and accumulates both products (AVX512-BF16, FEAT_BF16). A processor of the
    /// level `Avx512` may lack it.
    pub fn has_bf16(self) -> bool {
        #[cfg(x86_vectors)]
        {
            self >= Self::Avx512 && is_x86_feature_detected!("avx512bf16")
        }
        #[cfg(not(x86_vectors))]
        {
            self == Self::I8mm
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
            self.has_bf16()
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
                    &format!("expected `isa` to be {}, found `{wanted}`; using `{best}`", level_names()),
                );
                best
            }
        }
    }
}

/// The names of all levels, for a message.
fn level_names() -> String {
    let names: Vec<String> = Isa::ALL.iter().map(|isa| format!("`{isa}`")).collect();
    let (last, others) = names.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
    format!("{} or {last}", others.join(", "))
}

/// An instruction set as a type, so that generic code can branch on it at compile time.
pub trait SimdTarget: Copy + Send + Sync + 'static {
    /// True if multiply-add is one instruction. Without FMA, `mul_add` is a slow library call.
    const HAS_FMA: bool;
}

/// The baseline of the architecture, or SSE4.1.
#[derive(Clone, Copy)]
pub struct BaselineTarget;

/// AVX2 with FMA, a superset, or NEON. They share it: generic code only needs to know about FMA, and the compiler picks the width.
#[cfg(any(x86_vectors, arm_vectors, test))]
#[derive(Clone, Copy)]
pub struct FmaTarget;

impl SimdTarget for BaselineTarget {
    const HAS_FMA: bool = false;
}

#[cfg(any(x86_vectors, arm_vectors, test))]
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
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Sse41 => unsafe { run_sse41(work) },
            #[cfg(arm_vectors)]
            Self::Neon | Self::DotProd | Self::I8mm => work.run_on_target::<FmaTarget>(),
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

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.1,ssse3")]
fn run_sse41<W: SimdTask>(work: W) -> W::Output {
    work.run_on_target::<BaselineTarget>()
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar => "scalar",
            Self::Sse41 => "sse4.1",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avx-vnni",
            Self::Avx512 => "avx512",
            Self::Amx => "amx",
            Self::Neon => "neon",
            Self::DotProd => "dotprod",
            Self::I8mm => "i8mm",
        })
    }
}
