//! The CPU device, and what all kernel crates share: instruction sets, threads, memory, operands, and mathematical functions.

#![expect(missing_docs, reason = "for the other crates of this plugin; names say what most of it is")]

#[cfg(x86_vectors)]
pub mod amx;
#[cfg(x86_vectors)]
mod amx_permission;
pub mod arithmetic;
pub mod attributes;
pub mod compute_element;
pub mod constant_cache;
pub mod device;
pub mod element_bytes;
pub mod f16_conversion;
pub mod float_bits;
pub mod fused_activation;
pub mod isa;
pub mod machine;
pub mod math;
pub mod memory;
pub mod prefetch;
pub mod product_precision;
pub mod quantized_operand;
pub mod row_blocks;
pub mod rows;
pub mod simd;
pub mod subnormals;
pub mod text_operand;
pub mod thread_team;
pub mod tile_block;
mod unrolled;
pub mod window;

/// The domain of Oarlock's own ops.
pub const OARLOCK_DOMAIN: &str = "oarlock";
