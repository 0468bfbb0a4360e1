// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

use core::ffi::c_void;
use core::mem::{align_of, offset_of, size_of};

/// The major version of the contract.
pub const CONTRACT_MAJOR: u32 = 1;
/// The newest minor version of the contract that these bindings know.
pub const CONTRACT_MINOR: u32 = 2;
/// The profiles that are locked, with their versions.
pub const PROFILES: &[(&str, u32)] = &[("core", 1), ("async", 1)];

/// UTF-8 text: a pointer and a length in bytes, without a terminating zero. Empty text may have a null pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Str {
    /// The data of this.
    pub data: *const u8,
    /// The size of this.
    pub size: u64,
}

impl Str {
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self { data: core::ptr::null(), size: 0 };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for Str {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Str {}

/// A version of a device, a driver or a library. Components that it does not have are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The major of this.
    pub major: u32,
    /// The minor of this.
    pub minor: u32,
    /// The patch of this.
    pub patch: u32,
    /// The build of this.
    pub build: u32,
}

impl Version {
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self { major: 0, minor: 0, patch: 0, build: 0 };
}

/// An error, stored by the host. 0 means success.
///
/// The host's `error_create` makes an error, `error_read` reads it and `error_release` frees it. All three belong to the same
/// host, so the error outlives the plugin that reported it, and the host detects a number that it never made.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Error(pub u64);

/// A block of memory on a device. If the device is `host_addressable`, handle plus offset is the address of a byte.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Memory(pub u64);

/// An ordered queue of work on one device. 0 is the device's synchronous queue: calls finish before they return.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream(pub u64);

/// A point in a stream that other streams and the host can wait for.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(pub u64);

/// The kind of an error.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub u32);
impl Code {
    /// An argument has a value that is not allowed.
    pub const INVALID_ARGUMENT: Self = Self(1);
    /// The requested thing does not exist.
    pub const NOT_FOUND: Self = Self(2);
    /// An index or a size is out of bounds.
    pub const OUT_OF_RANGE: Self = Self(3);
    /// The thing to create already exists.
    pub const ALREADY_EXISTS: Self = Self(4);
    /// Memory, handles or another limited resource is exhausted.
    pub const RESOURCE_EXHAUSTED: Self = Self(5);
    /// The call is not allowed in the current state.
    pub const PRECONDITION_NOT_MET: Self = Self(6);
    /// The caller lacks the permission.
    pub const PERMISSION_DENIED: Self = Self(7);
    /// The work did not finish in time.
    pub const EXECUTION_TIMEOUT: Self = Self(8);
    /// The plugin does not implement what was requested.
    pub const UNIMPLEMENTED: Self = Self(9);
    /// The device or service is currently unreachable.
    pub const UNAVAILABLE: Self = Self(10);
    /// The plugin cannot continue, for instance after a caught panic or exception.
    pub const FATAL: Self = Self(11);
    /// A library or driver below the plugin failed; `native_code` is the number that it returned.
    pub const EXTERNAL: Self = Self(12);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::INVALID_ARGUMENT => Some("invalid_argument"),
            Self::NOT_FOUND => Some("not_found"),
            Self::OUT_OF_RANGE => Some("out_of_range"),
            Self::ALREADY_EXISTS => Some("already_exists"),
            Self::RESOURCE_EXHAUSTED => Some("resource_exhausted"),
            Self::PRECONDITION_NOT_MET => Some("precondition_not_met"),
            Self::PERMISSION_DENIED => Some("permission_denied"),
            Self::EXECUTION_TIMEOUT => Some("execution_timeout"),
            Self::UNIMPLEMENTED => Some("unimplemented"),
            Self::UNAVAILABLE => Some("unavailable"),
            Self::FATAL => Some("fatal"),
            Self::EXTERNAL => Some("external"),
            _ => None,
        }
    }
}

/// Properties of an error that a caller can act on.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorFlags(pub u32);
impl ErrorFlags {
    /// The same call may succeed later.
    pub const RETRYABLE: Self = Self(1 << 0);
    /// The device is gone; every handle on it is dead.
    pub const DEVICE_LOST: Self = Self(1 << 1);
    /// The error is a panic or an exception that the plugin's glue caught.
    pub const CAUGHT_PANIC: Self = Self(1 << 2);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::RETRYABLE => Some("retryable"),
            Self::DEVICE_LOST => Some("device_lost"),
            Self::CAUGHT_PANIC => Some("caught_panic"),
            _ => None,
        }
    }
}
impl ErrorFlags {
    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The bits of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl core::ops::BitOr for ErrorFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// The contents of an error.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ErrorInfo {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The code of this.
    pub code: Code,
    /// The bits of this.
    pub bits: ErrorFlags,
    /// The number that the library or driver below the plugin returned, or 0.
    pub native_code: i64,
    /// One sentence: what was expected, what was found and what to do.
    pub message: Str,
    /// The violated rule of this contract, such as `M-2`, or empty.
    pub rule: Str,
    /// The name of the plugin, or of the component of the host, that made the error. The host fills it in.
    pub origin: Str,
    /// The source file that made the error, or empty.
    pub file: Str,
    /// The line in that file, or 0.
    pub line: u32,
    /// The reserved of this.
    pub reserved: u32,
}

impl ErrorInfo {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 104;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        code: Code(0),
        bits: ErrorFlags(0),
        native_code: 0,
        message: Str::EMPTY,
        rule: Str::EMPTY,
        origin: Str::EMPTY,
        file: Str::EMPTY,
        line: 0,
        reserved: 0,
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for ErrorInfo {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for ErrorInfo {}

/// The severity of a log message.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogLevel(pub u32);
impl LogLevel {
    /// The constant `error`.
    pub const ERROR: Self = Self(1);
    /// The constant `warning`.
    pub const WARNING: Self = Self(2);
    /// The constant `info`.
    pub const INFO: Self = Self(3);
    /// The constant `debug`.
    pub const DEBUG: Self = Self(4);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::ERROR => Some("error"),
            Self::WARNING => Some("warning"),
            Self::INFO => Some("info"),
            Self::DEBUG => Some("debug"),
            _ => None,
        }
    }
}

/// The type of a tensor's elements. `i4`, `u4` and `f4e2m1` pack two elements into a byte, `i2` and `u2` four; the first
/// element is in the lowest bits.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dtype(pub u32);
impl Dtype {
    /// The constant `bool`.
    pub const BOOL: Self = Self(1);
    /// The constant `i4`.
    pub const I4: Self = Self(2);
    /// The constant `u4`.
    pub const U4: Self = Self(3);
    /// The constant `i8`.
    pub const I8: Self = Self(4);
    /// The constant `u8`.
    pub const U8: Self = Self(5);
    /// The constant `i16`.
    pub const I16: Self = Self(6);
    /// The constant `u16`.
    pub const U16: Self = Self(7);
    /// The constant `i32`.
    pub const I32: Self = Self(8);
    /// The constant `u32`.
    pub const U32: Self = Self(9);
    /// The constant `i64`.
    pub const I64: Self = Self(10);
    /// The constant `u64`.
    pub const U64: Self = Self(11);
    /// The constant `f8e4m3`.
    pub const F8E4M3: Self = Self(12);
    /// The constant `f8e5m2`.
    pub const F8E5M2: Self = Self(13);
    /// The constant `f16`.
    pub const F16: Self = Self(14);
    /// The constant `bf16`.
    pub const BF16: Self = Self(15);
    /// The constant `f32`.
    pub const F32: Self = Self(16);
    /// The constant `f64`.
    pub const F64: Self = Self(17);
    /// The constant `c64`.
    pub const C64: Self = Self(18);
    /// The constant `c128`.
    pub const C128: Self = Self(19);
    /// Elements are `str` values in host memory.
    pub const STRING: Self = Self(20);
    /// 4 exponent bits, 3 mantissa bits, no infinities and no negative zero.
    pub const F8E4M3FNUZ: Self = Self(21);
    /// 5 exponent bits, 2 mantissa bits, no infinities and no negative zero.
    pub const F8E5M2FNUZ: Self = Self(22);
    /// 8 exponent bits and nothing else: powers of 2.
    pub const F8E8M0: Self = Self(23);
    /// 2 exponent bits, 1 mantissa bit, no infinities and no NaN.
    pub const F4E2M1: Self = Self(24);
    /// The constant `i2`.
    pub const I2: Self = Self(25);
    /// The constant `u2`.
    pub const U2: Self = Self(26);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::BOOL => Some("bool"),
            Self::I4 => Some("i4"),
            Self::U4 => Some("u4"),
            Self::I8 => Some("i8"),
            Self::U8 => Some("u8"),
            Self::I16 => Some("i16"),
            Self::U16 => Some("u16"),
            Self::I32 => Some("i32"),
            Self::U32 => Some("u32"),
            Self::I64 => Some("i64"),
            Self::U64 => Some("u64"),
            Self::F8E4M3 => Some("f8e4m3"),
            Self::F8E5M2 => Some("f8e5m2"),
            Self::F16 => Some("f16"),
            Self::BF16 => Some("bf16"),
            Self::F32 => Some("f32"),
            Self::F64 => Some("f64"),
            Self::C64 => Some("c64"),
            Self::C128 => Some("c128"),
            Self::STRING => Some("string"),
            Self::F8E4M3FNUZ => Some("f8e4m3fnuz"),
            Self::F8E5M2FNUZ => Some("f8e5m2fnuz"),
            Self::F8E8M0 => Some("f8e8m0"),
            Self::F4E2M1 => Some("f4e2m1"),
            Self::I2 => Some("i2"),
            Self::U2 => Some("u2"),
            _ => None,
        }
    }
}

/// A set of dtypes: bit n stands for the dtype with the value n.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DtypeSet(pub u64);
impl DtypeSet {
    /// The constant `bool`.
    pub const BOOL: Self = Self(1 << 1);
    /// The constant `i4`.
    pub const I4: Self = Self(1 << 2);
    /// The constant `u4`.
    pub const U4: Self = Self(1 << 3);
    /// The constant `i8`.
    pub const I8: Self = Self(1 << 4);
    /// The constant `u8`.
    pub const U8: Self = Self(1 << 5);
    /// The constant `i16`.
    pub const I16: Self = Self(1 << 6);
    /// The constant `u16`.
    pub const U16: Self = Self(1 << 7);
    /// The constant `i32`.
    pub const I32: Self = Self(1 << 8);
    /// The constant `u32`.
    pub const U32: Self = Self(1 << 9);
    /// The constant `i64`.
    pub const I64: Self = Self(1 << 10);
    /// The constant `u64`.
    pub const U64: Self = Self(1 << 11);
    /// The constant `f8e4m3`.
    pub const F8E4M3: Self = Self(1 << 12);
    /// The constant `f8e5m2`.
    pub const F8E5M2: Self = Self(1 << 13);
    /// The constant `f16`.
    pub const F16: Self = Self(1 << 14);
    /// The constant `bf16`.
    pub const BF16: Self = Self(1 << 15);
    /// The constant `f32`.
    pub const F32: Self = Self(1 << 16);
    /// The constant `f64`.
    pub const F64: Self = Self(1 << 17);
    /// The constant `c64`.
    pub const C64: Self = Self(1 << 18);
    /// The constant `c128`.
    pub const C128: Self = Self(1 << 19);
    /// The constant `string`.
    pub const STRING: Self = Self(1 << 20);
    /// The constant `f8e4m3fnuz`.
    pub const F8E4M3FNUZ: Self = Self(1 << 21);
    /// The constant `f8e5m2fnuz`.
    pub const F8E5M2FNUZ: Self = Self(1 << 22);
    /// The constant `f8e8m0`.
    pub const F8E8M0: Self = Self(1 << 23);
    /// The constant `f4e2m1`.
    pub const F4E2M1: Self = Self(1 << 24);
    /// The constant `i2`.
    pub const I2: Self = Self(1 << 25);
    /// The constant `u2`.
    pub const U2: Self = Self(1 << 26);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::BOOL => Some("bool"),
            Self::I4 => Some("i4"),
            Self::U4 => Some("u4"),
            Self::I8 => Some("i8"),
            Self::U8 => Some("u8"),
            Self::I16 => Some("i16"),
            Self::U16 => Some("u16"),
            Self::I32 => Some("i32"),
            Self::U32 => Some("u32"),
            Self::I64 => Some("i64"),
            Self::U64 => Some("u64"),
            Self::F8E4M3 => Some("f8e4m3"),
            Self::F8E5M2 => Some("f8e5m2"),
            Self::F16 => Some("f16"),
            Self::BF16 => Some("bf16"),
            Self::F32 => Some("f32"),
            Self::F64 => Some("f64"),
            Self::C64 => Some("c64"),
            Self::C128 => Some("c128"),
            Self::STRING => Some("string"),
            Self::F8E4M3FNUZ => Some("f8e4m3fnuz"),
            Self::F8E5M2FNUZ => Some("f8e5m2fnuz"),
            Self::F8E8M0 => Some("f8e8m0"),
            Self::F4E2M1 => Some("f4e2m1"),
            Self::I2 => Some("i2"),
            Self::U2 => Some("u2"),
            _ => None,
        }
    }
}
impl DtypeSet {
    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The bits of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl core::ops::BitOr for DtypeSet {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// Where a tensor is stored.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryKind(pub u32);
impl MemoryKind {
    /// On the device of the call.
    pub const DEVICE: Self = Self(0);
    /// In host memory; the handle is the address.
    pub const HOST: Self = Self(1);
    /// In page-locked host memory that the device allocated.
    pub const PINNED: Self = Self(2);
    /// In memory that has the same address on host and device.
    pub const UNIFIED: Self = Self(3);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::DEVICE => Some("device"),
            Self::HOST => Some("host"),
            Self::PINNED => Some("pinned"),
            Self::UNIFIED => Some("unified"),
            _ => None,
        }
    }
}

/// How a device plugin was verified.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SupportLevel(pub u32);
impl SupportLevel {
    /// Nothing is claimed.
    pub const UNSPECIFIED: Self = Self(0);
    /// It passed its tests against an emulation of the vendor's documented interface.
    pub const EMULATOR_VERIFIED: Self = Self(1);
    /// It passed its tests with the real compiler or driver, without the chip.
    pub const DRIVER_VERIFIED: Self = Self(2);
    /// It passed its tests on the chip.
    pub const HARDWARE_VERIFIED: Self = Self(3);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::UNSPECIFIED => Some("unspecified"),
            Self::EMULATOR_VERIFIED => Some("emulator_verified"),
            Self::DRIVER_VERIFIED => Some("driver_verified"),
            Self::HARDWARE_VERIFIED => Some("hardware_verified"),
            _ => None,
        }
    }
}

/// The sanitizer that a binary was built with. A plugin and its host must agree.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sanitizer(pub u32);
impl Sanitizer {
    /// The constant `none`.
    pub const NONE: Self = Self(0);
    /// The constant `address`.
    pub const ADDRESS: Self = Self(1);
    /// The constant `thread`.
    pub const THREAD: Self = Self(2);
    /// The constant `memory`.
    pub const MEMORY: Self = Self(3);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::NONE => Some("none"),
            Self::ADDRESS => Some("address"),
            Self::THREAD => Some("thread"),
            Self::MEMORY => Some("memory"),
            _ => None,
        }
    }
}

/// A link in the `next` chain of a struct. A reader skips an unknown link unless its header has the flag `must_understand`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Extension {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The kind of this.
    pub kind: u32,
    /// The reserved of this.
    pub reserved: u32,
}

impl Extension {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 24;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        kind: 0,
        reserved: 0,
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for Extension {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Extension {}

/// The `flags` in the header of every struct.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeaderFlags(pub u32);
impl HeaderFlags {
    /// A reader that does not know this struct, or not all of its fields, must refuse the call instead of ignoring them.
    pub const MUST_UNDERSTAND: Self = Self(1 << 0);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::MUST_UNDERSTAND => Some("must_understand"),
            _ => None,
        }
    }
}
impl HeaderFlags {
    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The bits of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl core::ops::BitOr for HeaderFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// The host, as it introduces itself in the query of a plugin. The fields up to `sanitizer` never move.
/// This struct lives until the plugin has answered; `context` and `services` live until the plugin is unloaded.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The host's major version of the contract. Different major versions are incompatible.
    pub contract_major: u32,
    /// The newest minor version that the host knows.
    pub contract_minor: u32,
    /// The oldest minor version of a plugin that the host still supports.
    pub contract_minor_oldest: u32,
    /// The sanitizer of this.
    pub sanitizer: Sanitizer,
    /// The name and version of the host program, for messages.
    pub name: Str,
    /// The first argument of every function of `services`.
    pub context: *mut c_void,
    /// The services of this.
    pub services: *const HostTable,
}

impl Host {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 64;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        contract_major: 0,
        contract_minor: 0,
        contract_minor_oldest: 0,
        sanitizer: Sanitizer(0),
        name: Str::EMPTY,
        context: core::ptr::null_mut(),
        services: core::ptr::null(),
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for Host {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Host {}

/// What a plugin offers beyond its tables.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PluginFlags(pub u64);
impl PluginFlags {
    /// Once `unload` has returned, no code of the plugin runs and nothing refers to it, so the host may unmap it.
    pub const UNLOADABLE: Self = Self(1 << 0);
    /// Each host in the process that queries the plugin gets a separate context. Without this flag, the plugin serves only
    /// the first host that queries it, and others refuse it.
    pub const SEVERAL_HOSTS: Self = Self(1 << 1);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::UNLOADABLE => Some("unloadable"),
            Self::SEVERAL_HOSTS => Some("several_hosts"),
            _ => None,
        }
    }
}
impl PluginFlags {
    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The bits of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl core::ops::BitOr for PluginFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// The plugin's answer to the query. The host zeroes it and sets `size`, which the plugin leaves as it is; the plugin fills
/// the fields that it knows. The fields up to `sanitizer` never move.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Plugin {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The major version of the contract the plugin was built with.
    pub contract_major: u32,
    /// The minor version the plugin was built with.
    pub contract_minor: u32,
    /// The oldest minor version of a host that the plugin works with.
    pub contract_minor_oldest: u32,
    /// The sanitizer of this.
    pub sanitizer: Sanitizer,
    /// The offers of this.
    pub offers: PluginFlags,
    /// A name of letters, digits, `-`, `_` and `.`, at most 64 bytes, such as `acme-npu`.
    pub name: Str,
    /// The plugin's own version, such as `1.4.2`.
    pub version: Str,
    /// The plugin's author or company.
    pub vendor: Str,
    /// The package that a user installs to update the plugin; empty means that it is called like the plugin.
    pub package: Str,
    /// The name that users type, such as `CustomCPU`. Empty when the plugin provides no device.
    pub device_type: Str,
    /// A variant of the device type, such as `V1`, or empty.
    pub device_subtype: Str,
    /// The environment variable that lists the ids of the visible devices, such as `ACME_VISIBLE_DEVICES`, or empty. The
    /// host hides the others. Do not name a variable that the driver itself evaluates.
    pub visible_devices_variable: Str,
    /// The support level of this.
    pub support_level: SupportLevel,
    /// The reserved of this.
    pub reserved: u32,
    /// The evidence for the support level: chip, driver, date.
    pub support_note: Str,
    /// The first argument of every function in this plugin's tables. Each kernel has its own context.
    pub context: *mut c_void,
    /// The core of this.
    pub core: *const CoreTable,
    /// The async of this.
    pub r#async: *const AsyncTable,
    /// Null. The tables of four profiles were here before they became drafts. A host does not read a table that an old plugin
    /// left here; it only reports it as draft 0.
    pub reserved_graph: *mut c_void,
    /// The reserved collective of this.
    pub reserved_collective: *mut c_void,
    /// The reserved profile of this.
    pub reserved_profile: *mut c_void,
    /// The reserved interop of this.
    pub reserved_interop: *mut c_void,
    /// The kernels of this.
    pub kernels: *const KernelTable,
    /// The layer of this.
    pub layer: *const LayerTable,
    /// Shuts the plugin down: joins its threads and frees its resources. Required if the plugin offers `unloadable`.
    pub unload: Option<unsafe extern "C" fn(context: *mut c_void) -> Error>,
    /// The drafts of profiles that the plugin provides; of one profile it may provide several.
    pub drafts: *const *const DraftProfile,
    /// How many `drafts` there are.
    pub drafts_count: u64,
}

impl Plugin {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 256;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        contract_major: 0,
        contract_minor: 0,
        contract_minor_oldest: 0,
        sanitizer: Sanitizer(0),
        offers: PluginFlags(0),
        name: Str::EMPTY,
        version: Str::EMPTY,
        vendor: Str::EMPTY,
        package: Str::EMPTY,
        device_type: Str::EMPTY,
        device_subtype: Str::EMPTY,
        visible_devices_variable: Str::EMPTY,
        support_level: SupportLevel(0),
        reserved: 0,
        support_note: Str::EMPTY,
        context: core::ptr::null_mut(),
        core: core::ptr::null(),
        r#async: core::ptr::null(),
        reserved_graph: core::ptr::null_mut(),
        reserved_collective: core::ptr::null_mut(),
        reserved_profile: core::ptr::null_mut(),
        reserved_interop: core::ptr::null_mut(),
        kernels: core::ptr::null(),
        layer: core::ptr::null(),
        unload: None,
        drafts: core::ptr::null(),
        drafts_count: 0,
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for Plugin {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Plugin {}

/// One draft of a profile that is not locked yet. A host uses a draft only if it knows its number, and reports every draft
/// that it does not use.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DraftProfile {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The name of the profile, such as `graph`.
    pub profile: Str,
    /// The draft's number, such as `OARLOCK_GRAPH_DRAFT` in `oarlock/contract_draft.h`.
    pub number: u32,
    /// The reserved of this.
    pub reserved: u32,
    /// The profile's table. A host that knows a different number does not read it.
    pub table: *const c_void,
}

impl DraftProfile {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 48;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        profile: Str::EMPTY,
        number: 0,
        reserved: 0,
        table: core::ptr::null(),
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for DraftProfile {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for DraftProfile {}

/// Runs a part of a loop: the elements from `begin` up to but not including `end`, on the worker with the given number.
pub type Task = unsafe extern "C" fn(user: *mut c_void, begin: u64, end: u64, worker: u32);

/// The host's services. A plugin imports no symbols of the host; it calls these functions instead.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostTable {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The features that the author of the table knew, as bits.
    pub features: u64,
    /// Makes an error from `info` and returns it. Never returns 0.
    pub error_create: Option<unsafe extern "C" fn(context: *mut c_void, info: *const ErrorInfo) -> Error>,
    /// Reads an error. The text is valid until the error is released.
    pub error_read:
        Option<unsafe extern "C" fn(context: *mut c_void, failure: Error, info: *mut ErrorInfo) -> Error>,
    /// Frees an error. 0 is ignored.
    pub error_release: Option<unsafe extern "C" fn(context: *mut c_void, failure: Error) -> Error>,
    /// Writes a message to the host's log.
    pub log: Option<unsafe extern "C" fn(context: *mut c_void, level: LogLevel, message: Str) -> Error>,
    /// Reads the value that the user configured for this plugin under a key, or empty text. Valid until the plugin is unloaded.
    pub option: Option<unsafe extern "C" fn(context: *mut c_void, key: Str, value: *mut Str) -> Error>,
    /// The number of workers that `parallel_for` may use.
    pub worker_count: Option<unsafe extern "C" fn(context: *mut c_void, count: *mut u32) -> Error>,
    /// Runs `task` over 0..count on the host's threads, in pieces of at least `grain`, and returns when all are done.
    /// Plugins share the host's thread pool instead of creating their own, so that they do not compete for cores.
    pub parallel_for: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            count: u64,
            grain: u64,
            task: Option<Task>,
            user: *mut c_void,
        ) -> Error,
    >,
    /// Sets the dtype and shape of output `index` of the current call and, in `run`, allocates its memory; for outputs whose
    /// shape depends on data. From then on, the entry in the call's `outputs` describes it.
    pub output_allocate: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            call: *const Call,
            index: u32,
            dtype: Dtype,
            dims: *const i64,
            dims_count: u64,
        ) -> Error,
    >,
    /// Finds an experimental function by its versioned name, such as `graph_capture_since_1_3`.
    pub experimental:
        Option<unsafe extern "C" fn(context: *mut c_void, name: Str, function: *mut *mut c_void) -> Error>,
    /// Describes in a few words how the kernel will run the call that it is being prepared for, such as `Winograd, AVX-512`.
    /// Users see it in reports. Called in `prepare`, with the call passed there.
    pub kernel_describe:
        Option<unsafe extern "C" fn(context: *mut c_void, call: *const Call, way: Str) -> Error>,
    /// Reads the elements of a constant input whose operand has the flag `on_demand`. If `keep` is 0, they can be read until
    /// `prepare` returns, otherwise as long as the state lives. Called in `prepare`, with the call passed there. Does nothing
    /// for other inputs, whose elements are always in memory.
    pub constant_read:
        Option<unsafe extern "C" fn(context: *mut c_void, call: *const Call, index: u32, keep: u32) -> Error>,
    /// Fails if the caller of the work that runs on this thread wants it to stop. A kernel that runs long asks now and then,
    /// returns the error, and need not have written its outputs.
    pub stop_check: Option<unsafe extern "C" fn(context: *mut c_void) -> Error>,
}

impl HostTable {
    /// What these bindings understand: one bit for each minor version.
    pub const FEATURES: u64 = 1 << 0 | 1 << 1 | 1 << 2;
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 96;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        features: Self::FEATURES,
        error_create: None,
        error_read: None,
        error_release: None,
        log: None,
        option: None,
        worker_count: None,
        parallel_for: None,
        output_allocate: None,
        experimental: None,
        kernel_describe: None,
        constant_read: None,
        stop_check: None,
    };
    /// The name of each slot and whether it must be filled.
    pub const SLOTS: &[(&str, bool)] = &[
        ("error_create", true),
        ("error_read", true),
        ("error_release", true),
        ("log", true),
        ("option", true),
        ("worker_count", true),
        ("parallel_for", true),
        ("output_allocate", true),
        ("experimental", true),
        ("kernel_describe", false),
        ("constant_read", false),
        ("stop_check", false),
    ];

    /// Empties a slot; whether there is one of that name.
    pub fn clear_slot(&mut self, name: &str) -> bool {
        match name {
            "error_create" => self.error_create = None,
            "error_read" => self.error_read = None,
            "error_release" => self.error_release = None,
            "log" => self.log = None,
            "option" => self.option = None,
            "worker_count" => self.worker_count = None,
            "parallel_for" => self.parallel_for = None,
            "output_allocate" => self.output_allocate = None,
            "experimental" => self.experimental = None,
            "kernel_describe" => self.kernel_describe = None,
            "constant_read" => self.constant_read = None,
            "stop_check" => self.stop_check = None,
            _ => return false,
        }
        true
    }
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for HostTable {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for HostTable {}

/// Properties and capabilities of a device.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceFlags(pub u64);
impl DeviceFlags {
    /// Device memory can be read and written by the host at the address handle + offset.
    pub const HOST_ADDRESSABLE: Self = Self(1 << 0);
    /// Device memory is ordinary host memory, so copies to the device gain nothing.
    pub const SHARES_HOST_MEMORY: Self = Self(1 << 1);
    /// Software simulates memory, streams and events; timings are meaningless.
    pub const SIMULATED: Self = Self(1 << 2);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::HOST_ADDRESSABLE => Some("host_addressable"),
            Self::SHARES_HOST_MEMORY => Some("shares_host_memory"),
            Self::SIMULATED => Some("simulated"),
            _ => None,
        }
    }
}
impl DeviceFlags {
    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The bits of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl core::ops::BitOr for DeviceFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// A description of a device for people.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceInfo {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The product name, such as `Acme NPU 910`.
    pub name: Str,
    /// The vendor of this.
    pub vendor: Str,
    /// The bus address, such as `0000:3b:00.0`, or empty.
    pub bus_id: Str,
    /// The bits of this.
    pub bits: DeviceFlags,
    /// The number of cores or multiprocessors, or 0 if unknown.
    pub compute_units: u32,
    /// The alignment that kernels require of memory, in bytes; 0 means 1.
    pub memory_alignment: u32,
}

impl DeviceInfo {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 80;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        name: Str::EMPTY,
        vendor: Str::EMPTY,
        bus_id: Str::EMPTY,
        bits: DeviceFlags(0),
        compute_units: 0,
        memory_alignment: 0,
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for DeviceInfo {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for DeviceInfo {}

/// Devices, their memory, and synchronous copies. The device is an argument of every call; there is no current device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CoreTable {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The features that the author of the table knew, as bits.
    pub features: u64,
    /// Initializes the back end. No other call comes earlier.
    pub initialize: Option<unsafe extern "C" fn(context: *mut c_void) -> Error>,
    /// Shuts the back end down. No other call comes later.
    pub finalize: Option<unsafe extern "C" fn(context: *mut c_void) -> Error>,
    /// Initializes one device. Called once for every visible device when the host starts the plugin.
    pub device_init: Option<unsafe extern "C" fn(context: *mut c_void, device: u32) -> Error>,
    /// Frees the resources of one device. Called before `finalize`.
    pub device_deinit: Option<unsafe extern "C" fn(context: *mut c_void, device: u32) -> Error>,
    /// Waits until all work on the device is done.
    pub device_synchronize: Option<unsafe extern "C" fn(context: *mut c_void, device: u32) -> Error>,
    /// The number of devices.
    pub device_count: Option<unsafe extern "C" fn(context: *mut c_void, count: *mut u32) -> Error>,
    /// The ids of the devices. They need not be 0, 1, 2 and so on. The host has room for as many as `device_count` said; with less
    /// room, write as many as fit, and set the count to the number of all.
    pub device_list: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            ids: *mut u32,
            ids_capacity: u64,
            ids_count: *mut u64,
        ) -> Error,
    >,
    /// Describes a device.
    pub device_info:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, info: *mut DeviceInfo) -> Error>,
    /// The compute capability of the chip.
    pub compute_capability:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, capability: *mut Version) -> Error>,
    /// The version of the vendor's runtime library that is installed.
    pub runtime_version: Option<unsafe extern "C" fn(context: *mut c_void, installed: *mut Version) -> Error>,
    /// The version of the vendor's driver that is installed.
    pub driver_version: Option<unsafe extern "C" fn(context: *mut c_void, installed: *mut Version) -> Error>,
    /// Allocates `size` bytes of device memory. The handle is not 0, which means no block.
    pub memory_allocate: Option<
        unsafe extern "C" fn(context: *mut c_void, device: u32, size: u64, block: *mut Memory) -> Error,
    >,
    /// Frees device memory. `size` is the size that was requested.
    pub memory_deallocate:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, block: Memory, size: u64) -> Error>,
    /// Allocates page-locked host memory that the device can copy from and to directly.
    pub host_memory_allocate: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            size: u64,
            address: *mut *mut c_void,
        ) -> Error,
    >,
    /// Frees page-locked host memory.
    pub host_memory_deallocate: Option<
        unsafe extern "C" fn(context: *mut c_void, device: u32, address: *mut c_void, size: u64) -> Error,
    >,
    /// Allocates memory that has the same address on host and device.
    pub unified_memory_allocate: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            size: u64,
            address: *mut *mut c_void,
        ) -> Error,
    >,
    /// Frees unified memory.
    pub unified_memory_deallocate: Option<
        unsafe extern "C" fn(context: *mut c_void, device: u32, address: *mut c_void, size: u64) -> Error,
    >,
    /// Copies from the host to the device.
    pub memory_copy_h2d: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            target: Memory,
            target_offset: u64,
            source: *const c_void,
            source_size: u64,
        ) -> Error,
    >,
    /// Copies from the device to the host.
    pub memory_copy_d2h: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            target: *mut c_void,
            target_size: u64,
            source: Memory,
            source_offset: u64,
        ) -> Error,
    >,
    /// Copies within a device. The ranges do not overlap.
    pub memory_copy_d2d: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            target: Memory,
            target_offset: u64,
            source: Memory,
            source_offset: u64,
            size: u64,
        ) -> Error,
    >,
    /// Copies between two devices of this plugin.
    pub memory_copy_p2p: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            target_device: u32,
            target: Memory,
            target_offset: u64,
            source_device: u32,
            source: Memory,
            source_offset: u64,
            size: u64,
        ) -> Error,
    >,
    /// Fills device memory with a byte value.
    pub memory_set: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            target: Memory,
            target_offset: u64,
            byte: u8,
            size: u64,
        ) -> Error,
    >,
    /// The device's memory and the part of it that is free, in bytes.
    pub memory_stats: Option<
        unsafe extern "C" fn(context: *mut c_void, device: u32, total: *mut u64, free: *mut u64) -> Error,
    >,
    /// The smallest allocation, and its granularity: a request of n bytes occupies n plus the extra padding, rounded up to a
    /// multiple of this size.
    pub min_chunk_size:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, size: *mut u64) -> Error>,
    /// Requests above this size bypass the host's pool and go straight to the device.
    pub max_chunk_size:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, size: *mut u64) -> Error>,
    /// The largest allocation.
    pub max_alloc_size:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, size: *mut u64) -> Error>,
    /// Padding in bytes that the host's pool adds to every request.
    pub extra_padding_size:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, size: *mut u64) -> Error>,
    /// The size of the first chunk that the host's pool allocates.
    pub init_alloc_size:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, size: *mut u64) -> Error>,
    /// The size of every further chunk that the host's pool allocates.
    pub realloc_size:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, size: *mut u64) -> Error>,
    /// Finds an experimental function by its versioned name.
    pub experimental:
        Option<unsafe extern "C" fn(context: *mut c_void, name: Str, function: *mut *mut c_void) -> Error>,
}

impl CoreTable {
    /// What these bindings understand: one bit for each minor version.
    pub const FEATURES: u64 = 1 << 0 | 1 << 1 | 1 << 2;
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 264;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        features: Self::FEATURES,
        initialize: None,
        finalize: None,
        device_init: None,
        device_deinit: None,
        device_synchronize: None,
        device_count: None,
        device_list: None,
        device_info: None,
        compute_capability: None,
        runtime_version: None,
        driver_version: None,
        memory_allocate: None,
        memory_deallocate: None,
        host_memory_allocate: None,
        host_memory_deallocate: None,
        unified_memory_allocate: None,
        unified_memory_deallocate: None,
        memory_copy_h2d: None,
        memory_copy_d2h: None,
        memory_copy_d2d: None,
        memory_copy_p2p: None,
        memory_set: None,
        memory_stats: None,
        min_chunk_size: None,
        max_chunk_size: None,
        max_alloc_size: None,
        extra_padding_size: None,
        init_alloc_size: None,
        realloc_size: None,
        experimental: None,
    };
    /// The name of each slot and whether it must be filled.
    pub const SLOTS: &[(&str, bool)] = &[
        ("initialize", false),
        ("finalize", false),
        ("device_init", false),
        ("device_deinit", false),
        ("device_synchronize", true),
        ("device_count", true),
        ("device_list", true),
        ("device_info", false),
        ("compute_capability", true),
        ("runtime_version", true),
        ("driver_version", true),
        ("memory_allocate", true),
        ("memory_deallocate", true),
        ("host_memory_allocate", false),
        ("host_memory_deallocate", false),
        ("unified_memory_allocate", false),
        ("unified_memory_deallocate", false),
        ("memory_copy_h2d", true),
        ("memory_copy_d2h", true),
        ("memory_copy_d2d", true),
        ("memory_copy_p2p", false),
        ("memory_set", false),
        ("memory_stats", true),
        ("min_chunk_size", true),
        ("max_chunk_size", false),
        ("max_alloc_size", false),
        ("extra_padding_size", false),
        ("init_alloc_size", false),
        ("realloc_size", false),
        ("experimental", false),
    ];

    /// Empties a slot; whether there is one of that name.
    pub fn clear_slot(&mut self, name: &str) -> bool {
        match name {
            "initialize" => self.initialize = None,
            "finalize" => self.finalize = None,
            "device_init" => self.device_init = None,
            "device_deinit" => self.device_deinit = None,
            "device_synchronize" => self.device_synchronize = None,
            "device_count" => self.device_count = None,
            "device_list" => self.device_list = None,
            "device_info" => self.device_info = None,
            "compute_capability" => self.compute_capability = None,
            "runtime_version" => self.runtime_version = None,
            "driver_version" => self.driver_version = None,
            "memory_allocate" => self.memory_allocate = None,
            "memory_deallocate" => self.memory_deallocate = None,
            "host_memory_allocate" => self.host_memory_allocate = None,
            "host_memory_deallocate" => self.host_memory_deallocate = None,
            "unified_memory_allocate" => self.unified_memory_allocate = None,
            "unified_memory_deallocate" => self.unified_memory_deallocate = None,
            "memory_copy_h2d" => self.memory_copy_h2d = None,
            "memory_copy_d2h" => self.memory_copy_d2h = None,
            "memory_copy_d2d" => self.memory_copy_d2d = None,
            "memory_copy_p2p" => self.memory_copy_p2p = None,
            "memory_set" => self.memory_set = None,
            "memory_stats" => self.memory_stats = None,
            "min_chunk_size" => self.min_chunk_size = None,
            "max_chunk_size" => self.max_chunk_size = None,
            "max_alloc_size" => self.max_alloc_size = None,
            "extra_padding_size" => self.extra_padding_size = None,
            "init_alloc_size" => self.init_alloc_size = None,
            "realloc_size" => self.realloc_size = None,
            "experimental" => self.experimental = None,
            _ => return false,
        }
        true
    }
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for CoreTable {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for CoreTable {}

/// Called on a thread of the plugin when a stream reaches the callback. `failure` is the stream's error, or 0; the receiver
/// releases it.
pub type StreamReached = unsafe extern "C" fn(device: u32, stream: Stream, user: *mut c_void, failure: Error);

/// Streams and events. A device without asynchronous work may omit the whole table: the host then does all work synchronously.
/// Host memory that is passed to an asynchronous call stays valid until the stream is past the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsyncTable {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The features that the author of the table knew, as bits.
    pub features: u64,
    /// Creates a stream. A smaller number is a higher priority, on devices that support priorities. The handle is not 0, which
    /// means the device's synchronous queue.
    pub stream_create: Option<
        unsafe extern "C" fn(context: *mut c_void, device: u32, priority: i32, queue: *mut Stream) -> Error,
    >,
    /// Destroys a stream, once its work is done.
    pub stream_destroy:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, queue: Stream) -> Error>,
    /// Whether all work in the stream is done: 1 or 0.
    pub stream_query: Option<
        unsafe extern "C" fn(context: *mut c_void, device: u32, queue: Stream, done: *mut u32) -> Error,
    >,
    /// Waits until all work in the stream is done, and reports its errors.
    pub stream_synchronize:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, queue: Stream) -> Error>,
    /// Adds a callback to the stream, called when all earlier work is done.
    pub stream_add_callback: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            queue: Stream,
            reached: Option<StreamReached>,
            user: *mut c_void,
        ) -> Error,
    >,
    /// Makes later work in the stream wait until the event has happened. An event that was never recorded counts as happened.
    pub stream_wait_event:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, queue: Stream, point: Event) -> Error>,
    /// Creates an event. The handle is not 0.
    pub event_create:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, point: *mut Event) -> Error>,
    /// Destroys an event. Work that already waits for it is not affected.
    pub event_destroy: Option<unsafe extern "C" fn(context: *mut c_void, device: u32, point: Event) -> Error>,
    /// Records the event at the end of the stream.
    pub event_record:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, queue: Stream, point: Event) -> Error>,
    /// Whether the event has happened: 1 or 0.
    pub event_query: Option<
        unsafe extern "C" fn(context: *mut c_void, device: u32, point: Event, done: *mut u32) -> Error,
    >,
    /// Waits for the event, and reports errors of the work before it.
    pub event_synchronize:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, point: Event) -> Error>,
    /// The time between two events that have happened, in nanoseconds.
    pub event_elapsed: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            start: Event,
            end: Event,
            nanoseconds: *mut u64,
        ) -> Error,
    >,
    /// Copies from the host to the device, in the stream.
    pub memory_copy_h2d_async: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            queue: Stream,
            target: Memory,
            target_offset: u64,
            source: *const c_void,
            size: u64,
        ) -> Error,
    >,
    /// Copies from the device to the host, in the stream.
    pub memory_copy_d2h_async: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            queue: Stream,
            target: *mut c_void,
            source: Memory,
            source_offset: u64,
            size: u64,
        ) -> Error,
    >,
    /// Copies within the device, in the stream.
    pub memory_copy_d2d_async: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            queue: Stream,
            target: Memory,
            target_offset: u64,
            source: Memory,
            source_offset: u64,
            size: u64,
        ) -> Error,
    >,
    /// Copies between two devices of this plugin, in a stream of the source device.
    pub memory_copy_p2p_async: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            target_device: u32,
            target: Memory,
            target_offset: u64,
            source_device: u32,
            queue: Stream,
            source: Memory,
            source_offset: u64,
            size: u64,
        ) -> Error,
    >,
    /// Fills device memory with a byte value, in the stream.
    pub memory_set_async: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            queue: Stream,
            target: Memory,
            target_offset: u64,
            byte: u8,
            size: u64,
        ) -> Error,
    >,
    /// Allocates device memory that is usable from this point of the stream on.
    pub memory_allocate_async: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            queue: Stream,
            size: u64,
            block: *mut Memory,
        ) -> Error,
    >,
    /// Frees device memory once the stream is past this point.
    pub memory_deallocate_async: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            queue: Stream,
            block: Memory,
            size: u64,
        ) -> Error,
    >,
}

impl AsyncTable {
    /// What these bindings understand: one bit for each minor version.
    pub const FEATURES: u64 = 1 << 0 | 1 << 1 | 1 << 2;
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 176;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        features: Self::FEATURES,
        stream_create: None,
        stream_destroy: None,
        stream_query: None,
        stream_synchronize: None,
        stream_add_callback: None,
        stream_wait_event: None,
        event_create: None,
        event_destroy: None,
        event_record: None,
        event_query: None,
        event_synchronize: None,
        event_elapsed: None,
        memory_copy_h2d_async: None,
        memory_copy_d2h_async: None,
        memory_copy_d2d_async: None,
        memory_copy_p2p_async: None,
        memory_set_async: None,
        memory_allocate_async: None,
        memory_deallocate_async: None,
    };
    /// The name of each slot and whether it must be filled.
    pub const SLOTS: &[(&str, bool)] = &[
        ("stream_create", true),
        ("stream_destroy", true),
        ("stream_query", false),
        ("stream_synchronize", true),
        ("stream_add_callback", false),
        ("stream_wait_event", true),
        ("event_create", true),
        ("event_destroy", true),
        ("event_record", true),
        ("event_query", false),
        ("event_synchronize", true),
        ("event_elapsed", false),
        ("memory_copy_h2d_async", false),
        ("memory_copy_d2h_async", false),
        ("memory_copy_d2d_async", false),
        ("memory_copy_p2p_async", false),
        ("memory_set_async", false),
        ("memory_allocate_async", false),
        ("memory_deallocate_async", false),
    ];

    /// Empties a slot; whether there is one of that name.
    pub fn clear_slot(&mut self, name: &str) -> bool {
        match name {
            "stream_create" => self.stream_create = None,
            "stream_destroy" => self.stream_destroy = None,
            "stream_query" => self.stream_query = None,
            "stream_synchronize" => self.stream_synchronize = None,
            "stream_add_callback" => self.stream_add_callback = None,
            "stream_wait_event" => self.stream_wait_event = None,
            "event_create" => self.event_create = None,
            "event_destroy" => self.event_destroy = None,
            "event_record" => self.event_record = None,
            "event_query" => self.event_query = None,
            "event_synchronize" => self.event_synchronize = None,
            "event_elapsed" => self.event_elapsed = None,
            "memory_copy_h2d_async" => self.memory_copy_h2d_async = None,
            "memory_copy_d2h_async" => self.memory_copy_d2h_async = None,
            "memory_copy_d2d_async" => self.memory_copy_d2d_async = None,
            "memory_copy_p2p_async" => self.memory_copy_p2p_async = None,
            "memory_set_async" => self.memory_set_async = None,
            "memory_allocate_async" => self.memory_allocate_async = None,
            "memory_deallocate_async" => self.memory_deallocate_async = None,
            _ => return false,
        }
        true
    }
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for AsyncTable {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for AsyncTable {}

/// The meaning of an operand's dimensions, in order. Strides define where elements are stored, the layout what they mean.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout(pub u32);
impl Layout {
    /// The order that the op defines; for ops on images: batch, channels, then spatial dimensions.
    pub const PLAIN: Self = Self(0);
    /// Batch, spatial dimensions, then channels.
    pub const CHANNELS_LAST: Self = Self(1);
    /// Private to the plugin, which alone can read it.
    pub const OPAQUE: Self = Self(2);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::PLAIN => Some("plain"),
            Self::CHANNELS_LAST => Some("channels_last"),
            Self::OPAQUE => Some("opaque"),
            _ => None,
        }
    }
}

/// Properties of an operand of a call.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorFlags(pub u32);
impl TensorFlags {
    /// The contents do not change during the lifetime of the kernel's state, so `prepare` may pack them.
    pub const CONSTANT: Self = Self(1 << 0);
    /// The operand is optional and was omitted; no other field is valid.
    pub const ABSENT: Self = Self(1 << 1);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::CONSTANT => Some("constant"),
            Self::ABSENT => Some("absent"),
            _ => None,
        }
    }
}
impl TensorFlags {
    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The bits of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl core::ops::BitOr for TensorFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// An operand of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The block of this.
    pub block: Memory,
    /// The offset of the first element from the start of the block, in bytes.
    pub offset: u64,
    /// The bytes from the start of the first element to the end of the last, including gaps.
    pub size_in_bytes: u64,
    /// The dtype of this.
    pub dtype: Dtype,
    /// The bits of this.
    pub bits: TensorFlags,
    /// The place of this.
    pub place: MemoryKind,
    /// The layout of this.
    pub layout: Layout,
    /// The sizes of the dimensions; in `infer`, -1 is a size that is not known yet.
    pub dims: *const i64,
    /// How many `dims` there are.
    pub dims_count: u64,
    /// The distance in elements from one index to the next, for each dimension. An empty list means contiguous and row-major.
    pub strides: *const i64,
    /// How many `strides` there are.
    pub strides_count: u64,
}

impl Tensor {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 88;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        block: Memory(0),
        offset: 0,
        size_in_bytes: 0,
        dtype: Dtype(0),
        bits: TensorFlags(0),
        place: MemoryKind(0),
        layout: Layout(0),
        dims: core::ptr::null(),
        dims_count: 0,
        strides: core::ptr::null(),
        strides_count: 0,
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for Tensor {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Tensor {}

/// The type of an attribute.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttributeKind(pub u32);
impl AttributeKind {
    /// The constant `int`.
    pub const INT: Self = Self(1);
    /// The constant `float`.
    pub const FLOAT: Self = Self(2);
    /// The constant `string`.
    pub const STRING: Self = Self(3);
    /// The constant `tensor`.
    pub const TENSOR: Self = Self(4);
    /// The constant `graph`.
    pub const GRAPH: Self = Self(5);
    /// The constant `ints`.
    pub const INTS: Self = Self(6);
    /// The constant `floats`.
    pub const FLOATS: Self = Self(7);
    /// The constant `strings`.
    pub const STRINGS: Self = Self(8);
    /// The constant `tensors`.
    pub const TENSORS: Self = Self(9);
    /// The constant `graphs`.
    pub const GRAPHS: Self = Self(10);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::INT => Some("int"),
            Self::FLOAT => Some("float"),
            Self::STRING => Some("string"),
            Self::TENSOR => Some("tensor"),
            Self::GRAPH => Some("graph"),
            Self::INTS => Some("ints"),
            Self::FLOATS => Some("floats"),
            Self::STRINGS => Some("strings"),
            Self::TENSORS => Some("tensors"),
            Self::GRAPHS => Some("graphs"),
            _ => None,
        }
    }
}

/// A named constant of a node. A single value is a list with one item. Booleans, dtypes, layouts and memory kinds are ints.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The name of this.
    pub name: Str,
    /// The kind of this.
    pub kind: AttributeKind,
    /// The reserved of this.
    pub reserved: u32,
    /// The ints of this.
    pub ints: *const i64,
    /// How many `ints` there are.
    pub ints_count: u64,
    /// The floats of this.
    pub floats: *const f64,
    /// How many `floats` there are.
    pub floats_count: u64,
    /// The strings of this.
    pub strings: *const Str,
    /// How many `strings` there are.
    pub strings_count: u64,
    /// The tensors of this.
    pub tensors: *const *const Tensor,
    /// How many `tensors` there are.
    pub tensors_count: u64,
    /// The graphs of this.
    pub graphs: *const *const Graph,
    /// How many `graphs` there are.
    pub graphs_count: u64,
}

impl Attribute {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 120;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        name: Str::EMPTY,
        kind: AttributeKind(0),
        reserved: 0,
        ints: core::ptr::null(),
        ints_count: 0,
        floats: core::ptr::null(),
        floats_count: 0,
        strings: core::ptr::null(),
        strings_count: 0,
        tensors: core::ptr::null(),
        tensors_count: 0,
        graphs: core::ptr::null(),
        graphs_count: 0,
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for Attribute {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Attribute {}

/// One call of a kernel: everything that the kernel may read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The device of this.
    pub device: u32,
    /// The reserved of this.
    pub reserved: u32,
    /// The queue of this.
    pub queue: Stream,
    /// The inputs of this.
    pub inputs: *const *const Tensor,
    /// How many `inputs` there are.
    pub inputs_count: u64,
    /// The outputs of this.
    pub outputs: *const *const Tensor,
    /// How many `outputs` there are.
    pub outputs_count: u64,
    /// Those that the node has, and the defaults of the op's schema for those that it leaves out.
    pub attributes: *const *const Attribute,
    /// How many `attributes` there are.
    pub attributes_count: u64,
    /// Scratch memory on the device, of the size that the kernel's `workspace` function returned.
    pub workspace: Memory,
    /// The workspace offset of this.
    pub workspace_offset: u64,
    /// The workspace size of this.
    pub workspace_size: u64,
    /// The state of the random generator. A kernel that draws n numbers uses the n counter values from `random_offset` on.
    pub random_seed: u64,
    /// The random offset of this.
    pub random_offset: u64,
    /// The host's record of the call, for `output_allocate` and `kernel_describe`.
    pub host_call: *mut c_void,
}

impl Call {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 128;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        device: 0,
        reserved: 0,
        queue: Stream(0),
        inputs: core::ptr::null(),
        inputs_count: 0,
        outputs: core::ptr::null(),
        outputs_count: 0,
        attributes: core::ptr::null(),
        attributes_count: 0,
        workspace: Memory(0),
        workspace_offset: 0,
        workspace_size: 0,
        random_seed: 0,
        random_offset: 0,
        host_call: core::ptr::null_mut(),
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for Call {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Call {}

/// What a kernel accepts as an operand.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperandFlags(pub u32);
impl OperandFlags {
    /// The operand may be omitted.
    pub const OPTIONAL: Self = Self(1 << 0);
    /// The operand stands for all further operands; only the last one may have this flag.
    pub const VARIADIC: Self = Self(1 << 1);
    /// The operand need not be contiguous.
    pub const STRIDED: Self = Self(1 << 2);
    /// A constant need not be aligned to the size of its elements; in a mapped file it often is not.
    pub const UNALIGNED: Self = Self(1 << 3);
    /// The elements of a constant need not be in memory. `prepare` calls `constant_read` before it reads them, and says there
    /// whether the state reads them too. The address of a constant is its own as long as the state lives.
    pub const ON_DEMAND: Self = Self(1 << 4);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::OPTIONAL => Some("optional"),
            Self::VARIADIC => Some("variadic"),
            Self::STRIDED => Some("strided"),
            Self::UNALIGNED => Some("unaligned"),
            Self::ON_DEMAND => Some("on_demand"),
            _ => None,
        }
    }
}
impl OperandFlags {
    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The bits of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl core::ops::BitOr for OperandFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// Special values for a number of dimensions.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rank(pub u32);
impl Rank {
    /// Any number of dimensions.
    pub const ANY: Self = Self(4294967295);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::ANY => Some("any"),
            _ => None,
        }
    }
}

/// A kernel's requirements on one operand.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The operand's name in the schema of the op, or empty.
    pub name: Str,
    /// The dtypes of this.
    pub dtypes: DtypeSet,
    /// Operands with the same nonzero group must have the same dtype.
    pub dtype_group: u32,
    /// The smallest number of dimensions.
    pub rank_min: u32,
    /// The largest number of dimensions; `OARLOCK_RANK_ANY` for no limit.
    pub rank_max: u32,
    /// The bits of this.
    pub bits: OperandFlags,
    /// The place of this.
    pub place: MemoryKind,
    /// The only layout that the kernel accepts.
    pub layout: Layout,
}

impl Operand {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 64;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        name: Str::EMPTY,
        dtypes: DtypeSet(0),
        dtype_group: 0,
        rank_min: 0,
        rank_max: 0,
        bits: OperandFlags(0),
        place: MemoryKind(0),
        layout: Layout(0),
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for Operand {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Operand {}

/// An output that may use the memory of an input.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InPlace {
    /// The output of this.
    pub output: u32,
    /// The input of this.
    pub input: u32,
}

impl InPlace {
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self { output: 0, input: 0 };
}

/// Properties of a kernel.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelFlags(pub u32);
impl KernelFlags {
    /// The same inputs always produce bit-identical outputs.
    pub const DETERMINISTIC: Self = Self(1 << 0);
    /// The kernel may return before its work in the stream is done (rules K-6 and K-7).
    pub const ASYNCHRONOUS: Self = Self(1 << 1);
    /// The kernel sets the shape of at least one output with `output_allocate`.
    pub const ALLOCATES_OUTPUTS: Self = Self(1 << 2);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::DETERMINISTIC => Some("deterministic"),
            Self::ASYNCHRONOUS => Some("asynchronous"),
            Self::ALLOCATES_OUTPUTS => Some("allocates_outputs"),
            _ => None,
        }
    }
}
impl KernelFlags {
    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The bits of both.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl core::ops::BitOr for KernelFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// A kernel: an implementation of one op for one type of device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The name of the op in its schema, such as `Add`.
    pub op: Str,
    /// The op's domain; empty is the domain of ONNX.
    pub domain: Str,
    /// The device type that the kernel runs on; empty means the plugin's own.
    pub device_type: Str,
    /// The first version of the op (its since-version) that the kernel implements.
    pub version_min: u32,
    /// The last version of the op that the kernel implements; 0 means all later ones.
    pub version_max: u32,
    /// If several kernels match, the one with the highest score runs. An ordinary kernel has a score of 100.
    pub score: i32,
    /// The bits of this.
    pub bits: KernelFlags,
    /// The inputs of this.
    pub inputs: *const *const Operand,
    /// How many `inputs` there are.
    pub inputs_count: u64,
    /// The outputs of this.
    pub outputs: *const *const Operand,
    /// How many `outputs` there are.
    pub outputs_count: u64,
    /// The in place of this.
    pub in_place: *const InPlace,
    /// How many `in_place` there are.
    pub in_place_count: u64,
    /// The first argument of every function of this kernel.
    pub context: *mut c_void,
    /// Checks whether the kernel accepts this call: returns success, or `unimplemented` with the reason as the message. It may
    /// look at shapes and attributes, but must not read elements, not even those of constants.
    pub supports: Option<unsafe extern "C" fn(context: *mut c_void, call: *const Call) -> Error>,
    /// Sets the dtypes and shapes of the outputs with `output_allocate`. For ops that the host has no schema for.
    pub infer: Option<unsafe extern "C" fn(context: *mut c_void, call: *const Call) -> Error>,
    /// The size of the scratch memory that the call needs, in bytes.
    pub workspace:
        Option<unsafe extern "C" fn(context: *mut c_void, call: *const Call, size: *mut u64) -> Error>,
    /// Creates the state for a call site: packs constants, chooses an algorithm. Only operands with the flag `constant` have
    /// contents yet; they are where every operand of the kernel is, by default in device memory.
    pub prepare: Option<
        unsafe extern "C" fn(context: *mut c_void, call: *const Call, state: *mut *mut c_void) -> Error,
    >,
    /// Computes the outputs.
    pub run:
        Option<unsafe extern "C" fn(context: *mut c_void, state: *mut c_void, call: *const Call) -> Error>,
    /// Frees a state that `prepare` created.
    pub release: Option<unsafe extern "C" fn(context: *mut c_void, state: *mut c_void) -> Error>,
}

impl Kernel {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 184;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        op: Str::EMPTY,
        domain: Str::EMPTY,
        device_type: Str::EMPTY,
        version_min: 0,
        version_max: 0,
        score: 0,
        bits: KernelFlags(0),
        inputs: core::ptr::null(),
        inputs_count: 0,
        outputs: core::ptr::null(),
        outputs_count: 0,
        in_place: core::ptr::null(),
        in_place_count: 0,
        context: core::ptr::null_mut(),
        supports: None,
        infer: None,
        workspace: None,
        prepare: None,
        run: None,
        release: None,
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for Kernel {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Kernel {}

/// The kernels a plugin provides.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelTable {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The features that the author of the table knew, as bits.
    pub features: u64,
    /// The kernels of this.
    pub kernels: *const *const Kernel,
    /// How many `kernels` there are.
    pub kernels_count: u64,
}

impl KernelTable {
    /// What these bindings understand: one bit for each minor version.
    pub const FEATURES: u64 = 1 << 0 | 1 << 1 | 1 << 2;
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 40;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        features: Self::FEATURES,
        kernels: core::ptr::null(),
        kernels_count: 0,
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for KernelTable {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for KernelTable {}

/// A value that flows through a graph.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GraphValue {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The name of this.
    pub name: Str,
    /// The dtype of this.
    pub dtype: Dtype,
    /// 1 if the number of dimensions is known.
    pub rank_known: u32,
    /// The sizes of the dimensions; -1 is an unknown size.
    pub dims: *const i64,
    /// How many `dims` there are.
    pub dims_count: u64,
    /// The tensor if the value is a constant, or null.
    pub constant: *const Tensor,
}

impl GraphValue {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 64;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        name: Str::EMPTY,
        dtype: Dtype(0),
        rank_known: 0,
        dims: core::ptr::null(),
        dims_count: 0,
        constant: core::ptr::null(),
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for GraphValue {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for GraphValue {}

/// A node of a graph. `inputs` and `outputs` are indices into the graph's values; 2^32-1 is an omitted operand.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GraphNode {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The name of this.
    pub name: Str,
    /// The op of this.
    pub op: Str,
    /// The domain of this.
    pub domain: Str,
    /// The version of this.
    pub version: u32,
    /// The reserved of this.
    pub reserved: u32,
    /// The inputs of this.
    pub inputs: *const u32,
    /// How many `inputs` there are.
    pub inputs_count: u64,
    /// The outputs of this.
    pub outputs: *const u32,
    /// How many `outputs` there are.
    pub outputs_count: u64,
    /// The attributes of this.
    pub attributes: *const *const Attribute,
    /// How many `attributes` there are.
    pub attributes_count: u64,
}

impl GraphNode {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 120;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        name: Str::EMPTY,
        op: Str::EMPTY,
        domain: Str::EMPTY,
        version: 0,
        reserved: 0,
        inputs: core::ptr::null(),
        inputs_count: 0,
        outputs: core::ptr::null(),
        outputs_count: 0,
        attributes: core::ptr::null(),
        attributes_count: 0,
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for GraphNode {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for GraphNode {}

/// A graph, with its nodes in topological order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Graph {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The name of this.
    pub name: Str,
    /// The values of this.
    pub values: *const *const GraphValue,
    /// How many `values` there are.
    pub values_count: u64,
    /// The nodes of this.
    pub nodes: *const *const GraphNode,
    /// How many `nodes` there are.
    pub nodes_count: u64,
    /// The inputs of this.
    pub inputs: *const u32,
    /// How many `inputs` there are.
    pub inputs_count: u64,
    /// The outputs of this.
    pub outputs: *const u32,
    /// How many `outputs` there are.
    pub outputs_count: u64,
}

impl Graph {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 96;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        name: Str::EMPTY,
        values: core::ptr::null(),
        values_count: 0,
        nodes: core::ptr::null(),
        nodes_count: 0,
        inputs: core::ptr::null(),
        inputs_count: 0,
        outputs: core::ptr::null(),
        outputs_count: 0,
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for Graph {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Graph {}

/// The kind of a table that a layer wraps. Drafts are not wrapped. 3 to 6 were profiles that became drafts; these numbers are
/// not reused.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableKind(pub u32);
impl TableKind {
    /// The constant `core`.
    pub const CORE: Self = Self(1);
    /// The constant `async`.
    pub const ASYNC: Self = Self(2);
    /// The constant `kernel`.
    pub const KERNEL: Self = Self(7);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::CORE => Some("core"),
            Self::ASYNC => Some("async"),
            Self::KERNEL => Some("kernel"),
            _ => None,
        }
    }
}

/// A layer stands between the host and other plugins: it wraps their tables in its own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LayerTable {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The features that the author of the table knew, as bits.
    pub features: u64,
    /// Wraps the next table: returns a context and a table of the same kind. A layer that has no interest in this kind returns
    /// the next context and table unchanged. A slot that is empty in the next table stays empty.
    pub wrap: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            kind: TableKind,
            plugin: Str,
            next_context: *mut c_void,
            next_table: *mut c_void,
            wrapped_context: *mut *mut c_void,
            wrapped_table: *mut *mut c_void,
        ) -> Error,
    >,
    /// Frees a wrapper that the host no longer uses. Not called for a context and a table that `wrap` returned unchanged.
    pub unwrap: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            kind: TableKind,
            wrapped_context: *mut c_void,
            wrapped_table: *mut c_void,
        ) -> Error,
    >,
}

impl LayerTable {
    /// What these bindings understand: one bit for each minor version.
    pub const FEATURES: u64 = 1 << 0 | 1 << 1 | 1 << 2;
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 40;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        features: Self::FEATURES,
        wrap: None,
        unwrap: None,
    };
    /// The name of each slot and whether it must be filled.
    pub const SLOTS: &[(&str, bool)] = &[("wrap", true), ("unwrap", true)];

    /// Empties a slot; whether there is one of that name.
    pub fn clear_slot(&mut self, name: &str) -> bool {
        match name {
            "wrap" => self.wrap = None,
            "unwrap" => self.unwrap = None,
            _ => return false,
        }
        true
    }
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for LayerTable {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for LayerTable {}

/// Every rule of the contract: its number, who notices a breach, and what it says.
pub const RULES: &[(&str, &str, &str)] = &[
    ("E-1", "host", "A plugin exports `oarlock_plugin_query` and nothing else."),
    (
        "E-2",
        "host",
        "A plugin imports no symbol of the host. It finds every service of the host in `services`.",
    ),
    (
        "E-3",
        "conformance",
        "`oarlock_plugin_query` may be called more than once and may be called on any thread; it starts no thread and touches no device.",
    ),
    (
        "E-4",
        "host",
        "A name is not empty, is at most 64 bytes long and has only ASCII letters, digits, `-`, `_` and `.`.",
    ),
    ("E-5", "host", "A plugin provides a device (with `core`), kernels or a layer."),
    ("E-6", "host", "A plugin with a table of another device profile also has `core`. Drafts are exempt."),
    (
        "V-1",
        "host",
        "Both sides state their versions of the contract before anything else is read. Major versions are equal, and each side's newest minor version is at least the other side's oldest.",
    ),
    ("V-2", "contract", "A slot never turns from optional to required within a version of its profile."),
    (
        "V-3",
        "contract",
        "Experimental functions are looked up by a versioned name; they are never in a table.",
    ),
    ("V-4", "host", "A host reads the table of a draft only if it knows the draft by the same number."),
    (
        "S-1",
        "host",
        "Every struct and table starts with the size that its author knows, flags, and a `next` that is null or a chain of extensions.",
    ),
    ("S-2", "host", "The size of a struct is at least what it was in version 1.0 of the contract."),
    (
        "S-3",
        "host",
        "Fields that a struct has beyond those its reader knows are zero, or the reader has the feature bit for them.",
    ),
    ("S-4", "validate", "Padding is explicit and zero, and its name is `reserved` or begins with it."),
    ("S-5", "host", "Text is valid UTF-8."),
    (
        "S-6",
        "conformance",
        "Memory that a plugin's structs and tables point to stays valid and does not change until the plugin is unloaded.",
    ),
    ("P-1", "host", "Every required slot of a profile is filled."),
    (
        "P-2",
        "host",
        "Of a pair of slots that acquire and release a resource, both are filled or both are empty.",
    ),
    (
        "R-1",
        "sdk",
        "A function that fails returns an error that the host made, and leaves its outputs unchanged.",
    ),
    ("R-2", "sdk", "Panics and exceptions end at the boundary and become errors with the code `fatal`."),
    (
        "R-3",
        "conformance",
        "A plugin does not end or abort the process, does not fork it and does not change its signal handlers.",
    ),
    ("R-4", "host", "A plugin prints nothing; it calls `log`."),
    ("R-5", "conformance", "An error says what was expected, what was found and what to do."),
    (
        "R-6",
        "validate",
        "Once a device is lost, every call on it fails with the flag `device_lost`; handles on it can still be freed.",
    ),
    (
        "T-1",
        "conformance",
        "Every function may be called on any thread. Calls on the same stream or event are not concurrent, except queries and waits.",
    ),
    (
        "T-2",
        "conformance",
        "A function that accepts a callback returns without waiting for it. The callback runs exactly once, on a thread of the plugin.",
    ),
    ("D-1", "host", "`device_list` returns exactly `device_count` ids, all different."),
    (
        "D-2",
        "conformance",
        "A call with a device that is not in the list fails with `invalid_argument` or `not_found`; it does not crash.",
    ),
    ("D-3", "contract", "No call changes the meaning of another call: there is no current device."),
    ("M-1", "validate", "A block is freed once, with the device and the size that it was allocated with."),
    ("M-2", "host", "The range of a copy or a fill lies within its block."),
    (
        "M-3",
        "conformance",
        "An allocation that cannot be satisfied fails with `resource_exhausted` and leaves the device usable.",
    ),
    ("M-4", "host", "The host never requests 0 bytes from a plugin."),
    ("M-5", "conformance", "Data copied to a device and back is unchanged."),
    ("A-1", "conformance", "Work in one stream happens in the order in which it was added."),
    (
        "A-2",
        "nobody",
        "An error in a stream is reported by the next synchronization of the stream or of an event recorded after it.",
    ),
    ("A-3", "host", "A stream or event is used only on the device that it was created on."),
    (
        "K-1",
        "host",
        "A kernel names an op and has requirements that can be met: known dtypes, rank_min at most rank_max, only the last operand variadic, in-place pairs of existing operands.",
    ),
    ("K-2", "host", "`run` is filled; `release` is filled if `prepare` is."),
    ("K-3", "conformance", "A kernel writes its outputs and its workspace and nothing else."),
    ("K-4", "conformance", "Several threads may call `run` with one state concurrently."),
    ("K-5", "host", "The first element of an operand is aligned to the size of an element."),
    (
        "K-6",
        "host",
        "A call, its lists and its tensors live until the function that gets them returns. The memory of its operands and its workspace live until its work in the stream is done. `release` may come while work that uses the state is pending; the kernel keeps what that work needs.",
    ),
    (
        "K-7",
        "conformance",
        "The work of a kernel takes its place in the stream of the call. A kernel without the flag `asynchronous` also returns only when its work is done; nobody synchronizes the stream for it.",
    ),
    (
        "L-1",
        "conformance",
        "A layer passes on calls that it does not know, and fills no slot that is empty below it.",
    ),
];

// The compiler agrees with the contract on every size, alignment and offset.
const _: () = {
    assert!(size_of::<Str>() == 16);
    assert!(align_of::<Str>() == 8);
    assert!(offset_of!(Str, data) == 0);
    assert!(offset_of!(Str, size) == 8);
    assert!(size_of::<Version>() == 16);
    assert!(align_of::<Version>() == 4);
    assert!(offset_of!(Version, major) == 0);
    assert!(offset_of!(Version, minor) == 4);
    assert!(offset_of!(Version, patch) == 8);
    assert!(offset_of!(Version, build) == 12);
    assert!(size_of::<ErrorInfo>() == 104);
    assert!(align_of::<ErrorInfo>() == 8);
    assert!(offset_of!(ErrorInfo, size) == 0);
    assert!(offset_of!(ErrorInfo, flags) == 4);
    assert!(offset_of!(ErrorInfo, next) == 8);
    assert!(offset_of!(ErrorInfo, code) == 16);
    assert!(offset_of!(ErrorInfo, bits) == 20);
    assert!(offset_of!(ErrorInfo, native_code) == 24);
    assert!(offset_of!(ErrorInfo, message) == 32);
    assert!(offset_of!(ErrorInfo, rule) == 48);
    assert!(offset_of!(ErrorInfo, origin) == 64);
    assert!(offset_of!(ErrorInfo, file) == 80);
    assert!(offset_of!(ErrorInfo, line) == 96);
    assert!(offset_of!(ErrorInfo, reserved) == 100);
    assert!(size_of::<Extension>() == 24);
    assert!(align_of::<Extension>() == 8);
    assert!(offset_of!(Extension, size) == 0);
    assert!(offset_of!(Extension, flags) == 4);
    assert!(offset_of!(Extension, next) == 8);
    assert!(offset_of!(Extension, kind) == 16);
    assert!(offset_of!(Extension, reserved) == 20);
    assert!(size_of::<Host>() == 64);
    assert!(align_of::<Host>() == 8);
    assert!(offset_of!(Host, size) == 0);
    assert!(offset_of!(Host, flags) == 4);
    assert!(offset_of!(Host, next) == 8);
    assert!(offset_of!(Host, contract_major) == 16);
    assert!(offset_of!(Host, contract_minor) == 20);
    assert!(offset_of!(Host, contract_minor_oldest) == 24);
    assert!(offset_of!(Host, sanitizer) == 28);
    assert!(offset_of!(Host, name) == 32);
    assert!(offset_of!(Host, context) == 48);
    assert!(offset_of!(Host, services) == 56);
    assert!(size_of::<Plugin>() == 272);
    assert!(align_of::<Plugin>() == 8);
    assert!(offset_of!(Plugin, size) == 0);
    assert!(offset_of!(Plugin, flags) == 4);
    assert!(offset_of!(Plugin, next) == 8);
    assert!(offset_of!(Plugin, contract_major) == 16);
    assert!(offset_of!(Plugin, contract_minor) == 20);
    assert!(offset_of!(Plugin, contract_minor_oldest) == 24);
    assert!(offset_of!(Plugin, sanitizer) == 28);
    assert!(offset_of!(Plugin, offers) == 32);
    assert!(offset_of!(Plugin, name) == 40);
    assert!(offset_of!(Plugin, version) == 56);
    assert!(offset_of!(Plugin, vendor) == 72);
    assert!(offset_of!(Plugin, package) == 88);
    assert!(offset_of!(Plugin, device_type) == 104);
    assert!(offset_of!(Plugin, device_subtype) == 120);
    assert!(offset_of!(Plugin, visible_devices_variable) == 136);
    assert!(offset_of!(Plugin, support_level) == 152);
    assert!(offset_of!(Plugin, reserved) == 156);
    assert!(offset_of!(Plugin, support_note) == 160);
    assert!(offset_of!(Plugin, context) == 176);
    assert!(offset_of!(Plugin, core) == 184);
    assert!(offset_of!(Plugin, r#async) == 192);
    assert!(offset_of!(Plugin, reserved_graph) == 200);
    assert!(offset_of!(Plugin, reserved_collective) == 208);
    assert!(offset_of!(Plugin, reserved_profile) == 216);
    assert!(offset_of!(Plugin, reserved_interop) == 224);
    assert!(offset_of!(Plugin, kernels) == 232);
    assert!(offset_of!(Plugin, layer) == 240);
    assert!(offset_of!(Plugin, unload) == 248);
    assert!(offset_of!(Plugin, drafts) == 256);
    assert!(offset_of!(Plugin, drafts_count) == 264);
    assert!(size_of::<DraftProfile>() == 48);
    assert!(align_of::<DraftProfile>() == 8);
    assert!(offset_of!(DraftProfile, size) == 0);
    assert!(offset_of!(DraftProfile, flags) == 4);
    assert!(offset_of!(DraftProfile, next) == 8);
    assert!(offset_of!(DraftProfile, profile) == 16);
    assert!(offset_of!(DraftProfile, number) == 32);
    assert!(offset_of!(DraftProfile, reserved) == 36);
    assert!(offset_of!(DraftProfile, table) == 40);
    assert!(size_of::<HostTable>() == 120);
    assert!(align_of::<HostTable>() == 8);
    assert!(offset_of!(HostTable, size) == 0);
    assert!(offset_of!(HostTable, flags) == 4);
    assert!(offset_of!(HostTable, next) == 8);
    assert!(offset_of!(HostTable, features) == 16);
    assert!(offset_of!(HostTable, error_create) == 24);
    assert!(offset_of!(HostTable, error_read) == 32);
    assert!(offset_of!(HostTable, error_release) == 40);
    assert!(offset_of!(HostTable, log) == 48);
    assert!(offset_of!(HostTable, option) == 56);
    assert!(offset_of!(HostTable, worker_count) == 64);
    assert!(offset_of!(HostTable, parallel_for) == 72);
    assert!(offset_of!(HostTable, output_allocate) == 80);
    assert!(offset_of!(HostTable, experimental) == 88);
    assert!(offset_of!(HostTable, kernel_describe) == 96);
    assert!(offset_of!(HostTable, constant_read) == 104);
    assert!(offset_of!(HostTable, stop_check) == 112);
    assert!(size_of::<DeviceInfo>() == 80);
    assert!(align_of::<DeviceInfo>() == 8);
    assert!(offset_of!(DeviceInfo, size) == 0);
    assert!(offset_of!(DeviceInfo, flags) == 4);
    assert!(offset_of!(DeviceInfo, next) == 8);
    assert!(offset_of!(DeviceInfo, name) == 16);
    assert!(offset_of!(DeviceInfo, vendor) == 32);
    assert!(offset_of!(DeviceInfo, bus_id) == 48);
    assert!(offset_of!(DeviceInfo, bits) == 64);
    assert!(offset_of!(DeviceInfo, compute_units) == 72);
    assert!(offset_of!(DeviceInfo, memory_alignment) == 76);
    assert!(size_of::<CoreTable>() == 264);
    assert!(align_of::<CoreTable>() == 8);
    assert!(offset_of!(CoreTable, size) == 0);
    assert!(offset_of!(CoreTable, flags) == 4);
    assert!(offset_of!(CoreTable, next) == 8);
    assert!(offset_of!(CoreTable, features) == 16);
    assert!(offset_of!(CoreTable, initialize) == 24);
    assert!(offset_of!(CoreTable, finalize) == 32);
    assert!(offset_of!(CoreTable, device_init) == 40);
    assert!(offset_of!(CoreTable, device_deinit) == 48);
    assert!(offset_of!(CoreTable, device_synchronize) == 56);
    assert!(offset_of!(CoreTable, device_count) == 64);
    assert!(offset_of!(CoreTable, device_list) == 72);
    assert!(offset_of!(CoreTable, device_info) == 80);
    assert!(offset_of!(CoreTable, compute_capability) == 88);
    assert!(offset_of!(CoreTable, runtime_version) == 96);
    assert!(offset_of!(CoreTable, driver_version) == 104);
    assert!(offset_of!(CoreTable, memory_allocate) == 112);
    assert!(offset_of!(CoreTable, memory_deallocate) == 120);
    assert!(offset_of!(CoreTable, host_memory_allocate) == 128);
    assert!(offset_of!(CoreTable, host_memory_deallocate) == 136);
    assert!(offset_of!(CoreTable, unified_memory_allocate) == 144);
    assert!(offset_of!(CoreTable, unified_memory_deallocate) == 152);
    assert!(offset_of!(CoreTable, memory_copy_h2d) == 160);
    assert!(offset_of!(CoreTable, memory_copy_d2h) == 168);
    assert!(offset_of!(CoreTable, memory_copy_d2d) == 176);
    assert!(offset_of!(CoreTable, memory_copy_p2p) == 184);
    assert!(offset_of!(CoreTable, memory_set) == 192);
    assert!(offset_of!(CoreTable, memory_stats) == 200);
    assert!(offset_of!(CoreTable, min_chunk_size) == 208);
    assert!(offset_of!(CoreTable, max_chunk_size) == 216);
    assert!(offset_of!(CoreTable, max_alloc_size) == 224);
    assert!(offset_of!(CoreTable, extra_padding_size) == 232);
    assert!(offset_of!(CoreTable, init_alloc_size) == 240);
    assert!(offset_of!(CoreTable, realloc_size) == 248);
    assert!(offset_of!(CoreTable, experimental) == 256);
    assert!(size_of::<AsyncTable>() == 176);
    assert!(align_of::<AsyncTable>() == 8);
    assert!(offset_of!(AsyncTable, size) == 0);
    assert!(offset_of!(AsyncTable, flags) == 4);
    assert!(offset_of!(AsyncTable, next) == 8);
    assert!(offset_of!(AsyncTable, features) == 16);
    assert!(offset_of!(AsyncTable, stream_create) == 24);
    assert!(offset_of!(AsyncTable, stream_destroy) == 32);
    assert!(offset_of!(AsyncTable, stream_query) == 40);
    assert!(offset_of!(AsyncTable, stream_synchronize) == 48);
    assert!(offset_of!(AsyncTable, stream_add_callback) == 56);
    assert!(offset_of!(AsyncTable, stream_wait_event) == 64);
    assert!(offset_of!(AsyncTable, event_create) == 72);
    assert!(offset_of!(AsyncTable, event_destroy) == 80);
    assert!(offset_of!(AsyncTable, event_record) == 88);
    assert!(offset_of!(AsyncTable, event_query) == 96);
    assert!(offset_of!(AsyncTable, event_synchronize) == 104);
    assert!(offset_of!(AsyncTable, event_elapsed) == 112);
    assert!(offset_of!(AsyncTable, memory_copy_h2d_async) == 120);
    assert!(offset_of!(AsyncTable, memory_copy_d2h_async) == 128);
    assert!(offset_of!(AsyncTable, memory_copy_d2d_async) == 136);
    assert!(offset_of!(AsyncTable, memory_copy_p2p_async) == 144);
    assert!(offset_of!(AsyncTable, memory_set_async) == 152);
    assert!(offset_of!(AsyncTable, memory_allocate_async) == 160);
    assert!(offset_of!(AsyncTable, memory_deallocate_async) == 168);
    assert!(size_of::<Tensor>() == 88);
    assert!(align_of::<Tensor>() == 8);
    assert!(offset_of!(Tensor, size) == 0);
    assert!(offset_of!(Tensor, flags) == 4);
    assert!(offset_of!(Tensor, next) == 8);
    assert!(offset_of!(Tensor, block) == 16);
    assert!(offset_of!(Tensor, offset) == 24);
    assert!(offset_of!(Tensor, size_in_bytes) == 32);
    assert!(offset_of!(Tensor, dtype) == 40);
    assert!(offset_of!(Tensor, bits) == 44);
    assert!(offset_of!(Tensor, place) == 48);
    assert!(offset_of!(Tensor, layout) == 52);
    assert!(offset_of!(Tensor, dims) == 56);
    assert!(offset_of!(Tensor, dims_count) == 64);
    assert!(offset_of!(Tensor, strides) == 72);
    assert!(offset_of!(Tensor, strides_count) == 80);
    assert!(size_of::<Attribute>() == 120);
    assert!(align_of::<Attribute>() == 8);
    assert!(offset_of!(Attribute, size) == 0);
    assert!(offset_of!(Attribute, flags) == 4);
    assert!(offset_of!(Attribute, next) == 8);
    assert!(offset_of!(Attribute, name) == 16);
    assert!(offset_of!(Attribute, kind) == 32);
    assert!(offset_of!(Attribute, reserved) == 36);
    assert!(offset_of!(Attribute, ints) == 40);
    assert!(offset_of!(Attribute, ints_count) == 48);
    assert!(offset_of!(Attribute, floats) == 56);
    assert!(offset_of!(Attribute, floats_count) == 64);
    assert!(offset_of!(Attribute, strings) == 72);
    assert!(offset_of!(Attribute, strings_count) == 80);
    assert!(offset_of!(Attribute, tensors) == 88);
    assert!(offset_of!(Attribute, tensors_count) == 96);
    assert!(offset_of!(Attribute, graphs) == 104);
    assert!(offset_of!(Attribute, graphs_count) == 112);
    assert!(size_of::<Call>() == 128);
    assert!(align_of::<Call>() == 8);
    assert!(offset_of!(Call, size) == 0);
    assert!(offset_of!(Call, flags) == 4);
    assert!(offset_of!(Call, next) == 8);
    assert!(offset_of!(Call, device) == 16);
    assert!(offset_of!(Call, reserved) == 20);
    assert!(offset_of!(Call, queue) == 24);
    assert!(offset_of!(Call, inputs) == 32);
    assert!(offset_of!(Call, inputs_count) == 40);
    assert!(offset_of!(Call, outputs) == 48);
    assert!(offset_of!(Call, outputs_count) == 56);
    assert!(offset_of!(Call, attributes) == 64);
    assert!(offset_of!(Call, attributes_count) == 72);
    assert!(offset_of!(Call, workspace) == 80);
    assert!(offset_of!(Call, workspace_offset) == 88);
    assert!(offset_of!(Call, workspace_size) == 96);
    assert!(offset_of!(Call, random_seed) == 104);
    assert!(offset_of!(Call, random_offset) == 112);
    assert!(offset_of!(Call, host_call) == 120);
    assert!(size_of::<Operand>() == 64);
    assert!(align_of::<Operand>() == 8);
    assert!(offset_of!(Operand, size) == 0);
    assert!(offset_of!(Operand, flags) == 4);
    assert!(offset_of!(Operand, next) == 8);
    assert!(offset_of!(Operand, name) == 16);
    assert!(offset_of!(Operand, dtypes) == 32);
    assert!(offset_of!(Operand, dtype_group) == 40);
    assert!(offset_of!(Operand, rank_min) == 44);
    assert!(offset_of!(Operand, rank_max) == 48);
    assert!(offset_of!(Operand, bits) == 52);
    assert!(offset_of!(Operand, place) == 56);
    assert!(offset_of!(Operand, layout) == 60);
    assert!(size_of::<InPlace>() == 8);
    assert!(align_of::<InPlace>() == 4);
    assert!(offset_of!(InPlace, output) == 0);
    assert!(offset_of!(InPlace, input) == 4);
    assert!(size_of::<Kernel>() == 184);
    assert!(align_of::<Kernel>() == 8);
    assert!(offset_of!(Kernel, size) == 0);
    assert!(offset_of!(Kernel, flags) == 4);
    assert!(offset_of!(Kernel, next) == 8);
    assert!(offset_of!(Kernel, op) == 16);
    assert!(offset_of!(Kernel, domain) == 32);
    assert!(offset_of!(Kernel, device_type) == 48);
    assert!(offset_of!(Kernel, version_min) == 64);
    assert!(offset_of!(Kernel, version_max) == 68);
    assert!(offset_of!(Kernel, score) == 72);
    assert!(offset_of!(Kernel, bits) == 76);
    assert!(offset_of!(Kernel, inputs) == 80);
    assert!(offset_of!(Kernel, inputs_count) == 88);
    assert!(offset_of!(Kernel, outputs) == 96);
    assert!(offset_of!(Kernel, outputs_count) == 104);
    assert!(offset_of!(Kernel, in_place) == 112);
    assert!(offset_of!(Kernel, in_place_count) == 120);
    assert!(offset_of!(Kernel, context) == 128);
    assert!(offset_of!(Kernel, supports) == 136);
    assert!(offset_of!(Kernel, infer) == 144);
    assert!(offset_of!(Kernel, workspace) == 152);
    assert!(offset_of!(Kernel, prepare) == 160);
    assert!(offset_of!(Kernel, run) == 168);
    assert!(offset_of!(Kernel, release) == 176);
    assert!(size_of::<KernelTable>() == 40);
    assert!(align_of::<KernelTable>() == 8);
    assert!(offset_of!(KernelTable, size) == 0);
    assert!(offset_of!(KernelTable, flags) == 4);
    assert!(offset_of!(KernelTable, next) == 8);
    assert!(offset_of!(KernelTable, features) == 16);
    assert!(offset_of!(KernelTable, kernels) == 24);
    assert!(offset_of!(KernelTable, kernels_count) == 32);
    assert!(size_of::<GraphValue>() == 64);
    assert!(align_of::<GraphValue>() == 8);
    assert!(offset_of!(GraphValue, size) == 0);
    assert!(offset_of!(GraphValue, flags) == 4);
    assert!(offset_of!(GraphValue, next) == 8);
    assert!(offset_of!(GraphValue, name) == 16);
    assert!(offset_of!(GraphValue, dtype) == 32);
    assert!(offset_of!(GraphValue, rank_known) == 36);
    assert!(offset_of!(GraphValue, dims) == 40);
    assert!(offset_of!(GraphValue, dims_count) == 48);
    assert!(offset_of!(GraphValue, constant) == 56);
    assert!(size_of::<GraphNode>() == 120);
    assert!(align_of::<GraphNode>() == 8);
    assert!(offset_of!(GraphNode, size) == 0);
    assert!(offset_of!(GraphNode, flags) == 4);
    assert!(offset_of!(GraphNode, next) == 8);
    assert!(offset_of!(GraphNode, name) == 16);
    assert!(offset_of!(GraphNode, op) == 32);
    assert!(offset_of!(GraphNode, domain) == 48);
    assert!(offset_of!(GraphNode, version) == 64);
    assert!(offset_of!(GraphNode, reserved) == 68);
    assert!(offset_of!(GraphNode, inputs) == 72);
    assert!(offset_of!(GraphNode, inputs_count) == 80);
    assert!(offset_of!(GraphNode, outputs) == 88);
    assert!(offset_of!(GraphNode, outputs_count) == 96);
    assert!(offset_of!(GraphNode, attributes) == 104);
    assert!(offset_of!(GraphNode, attributes_count) == 112);
    assert!(size_of::<Graph>() == 96);
    assert!(align_of::<Graph>() == 8);
    assert!(offset_of!(Graph, size) == 0);
    assert!(offset_of!(Graph, flags) == 4);
    assert!(offset_of!(Graph, next) == 8);
    assert!(offset_of!(Graph, name) == 16);
    assert!(offset_of!(Graph, values) == 32);
    assert!(offset_of!(Graph, values_count) == 40);
    assert!(offset_of!(Graph, nodes) == 48);
    assert!(offset_of!(Graph, nodes_count) == 56);
    assert!(offset_of!(Graph, inputs) == 64);
    assert!(offset_of!(Graph, inputs_count) == 72);
    assert!(offset_of!(Graph, outputs) == 80);
    assert!(offset_of!(Graph, outputs_count) == 88);
    assert!(size_of::<LayerTable>() == 40);
    assert!(align_of::<LayerTable>() == 8);
    assert!(offset_of!(LayerTable, size) == 0);
    assert!(offset_of!(LayerTable, flags) == 4);
    assert!(offset_of!(LayerTable, next) == 8);
    assert!(offset_of!(LayerTable, features) == 16);
    assert!(offset_of!(LayerTable, wrap) == 24);
    assert!(offset_of!(LayerTable, unwrap) == 32);
};
