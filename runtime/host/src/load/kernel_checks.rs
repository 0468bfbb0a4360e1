//! Checks the kernels of a plugin (rules K-1 and K-2) and copies their requirements.
//!
//! A kernel that can never be chosen, because a dtype does not exist or a rank is impossible, is a bug that its vendor wants to
//! know about immediately, so it is not skipped silently.

#![expect(unsafe_code, reason = "kernels lie behind pointers that a plugin gave")]

use oarlock_abi as abi;

use crate::foreign_struct::{RuleBreach, SlotTable, checked_list, copy_struct};
use crate::load::checked_text::{checked_name, checked_text};
use crate::{KernelInfo, OperandInfo};

/// Limit on the kernels of one plugin.
const MAX_KERNELS: u64 = 1 << 16;
/// Limit on the operands of one kernel.
const MAX_OPERANDS: u64 = 1 << 10;
/// Limit on the name of an op, a domain or an operand.
const MAX_OP_LENGTH: u64 = 256;

/// A kernel, checked and copied.
#[derive(Clone, Debug)]
pub(crate) struct KernelRecord {
    pub(crate) info: KernelInfo,
    pub(crate) kernel: abi::Kernel,
}

/// Checks all kernels of a table; `device_type` is the plugin's own.
///
/// # Safety
///
/// Addresses and sizes in everything that the table points to are as the contract requires.
pub(crate) unsafe fn check_kernels(
    table: &abi::KernelTable,
    device_type: Option<&str>,
) -> Result<Vec<KernelRecord>, RuleBreach> {
    // SAFETY: the caller vouches for the list.
    let all = unsafe { checked_list(table.kernels, table.kernels_count, MAX_KERNELS, "kernels")? };
    // SAFETY: and for each kernel in it.
    all.iter().map(|kernel| unsafe { check_kernel(*kernel, device_type) }).collect()
}

/// # Safety
///
/// As for [`check_kernels`].
unsafe fn check_kernel(
    source: *const abi::Kernel,
    device_type: Option<&str>,
) -> Result<KernelRecord, RuleBreach> {
    // SAFETY: the caller vouches for the kernel; null and a wrong alignment are detected.
    let kernel = unsafe { copy_struct(source)? };
    // SAFETY: the texts are those of the kernel, for which the caller vouches.
    let (op, domain) = unsafe {
        (
            checked_text(kernel.op, "name of an op", MAX_OP_LENGTH)?,
            checked_text(kernel.domain, "domain of an op", MAX_OP_LENGTH)?,
        )
    };
    let wrong = |rule, expected: &str, found: String| {
        Err(RuleBreach::new(rule, format!("{expected} in the kernel for `{op}`"), found))
    };
    if op.trim().is_empty() {
        return Err(RuleBreach::new("K-1", "a kernel that names an op", "one without a name"));
    }
    let device_type = match device_type {
        _ if !kernel.device_type.is_empty() => {
            // SAFETY: the text is that of the kernel, for which the caller vouches.
            unsafe { checked_name(kernel.device_type, "the device type of a kernel")? }
        }
        Some(own) => own.to_owned(),
        None => {
            return wrong("K-1", "a device type, since the plugin has none of its own,", "none".to_owned());
        }
    };
    if kernel.version_max != 0 && kernel.version_max < kernel.version_min {
        let found = format!("{} to {}", kernel.version_min, kernel.version_max);
        return wrong("K-1", "versions in rising order", found);
    }
    if let Some(slot) = kernel.missing_required_slot() {
        return wrong("K-2", &format!("a function in `{slot}`"), "none".to_owned());
    }
    if let Some((one, other)) = kernel.unpaired_slots() {
        return wrong(
            "K-2",
            &format!("`{one}` and `{other}` filled together"),
            "only one of them".to_owned(),
        );
    }
    // SAFETY: the lists of operands are those of the kernel, for which the caller vouches.
    let (inputs, outputs) = unsafe {
        (
            check_operands(&op, "input", kernel.inputs, kernel.inputs_count)?,
            check_operands(&op, "output", kernel.outputs, kernel.outputs_count)?,
        )
    };
    // SAFETY: the list of pairs is that of the kernel, for which the caller vouches.
    let pairs =
        unsafe { checked_list(kernel.in_place, kernel.in_place_count, MAX_OPERANDS, "in-place pairs")? };
    for pair in pairs {
        if !has_operand(&inputs, pair.input) || !has_operand(&outputs, pair.output) {
            let found = format!("output {} in place of input {}", pair.output, pair.input);
            return wrong("K-1", "in-place pairs of operands that exist", found);
        }
    }
    let info = KernelInfo {
        domain,
        device_type,
        version_min: kernel.version_min,
        version_max: (kernel.version_max != 0).then_some(kernel.version_max),
        score: kernel.score,
        deterministic: kernel.bits.contains(abi::KernelFlags::DETERMINISTIC),
        asynchronous: kernel.bits.contains(abi::KernelFlags::ASYNCHRONOUS),
        allocates_outputs: kernel.bits.contains(abi::KernelFlags::ALLOCATES_OUTPUTS),
        inputs,
        outputs,
        in_place: pairs.iter().map(|pair| (pair.output, pair.input)).collect(),
        op,
    };
    Ok(KernelRecord { info, kernel })
}

fn has_operand(operands: &[OperandInfo], index: u32) -> bool {
    (index as usize) < operands.len() || operands.last().is_some_and(|last| last.variadic)
}

/// # Safety
///
/// As for [`check_kernels`].
unsafe fn check_operands(
    op: &str,
    side: &str,
    first: *const *const abi::Operand,
    count: u64,
) -> Result<Vec<OperandInfo>, RuleBreach> {
    // SAFETY: the caller vouches for the list.
    let all = unsafe { checked_list(first, count, MAX_OPERANDS, "operands")? };
    let mut operands = Vec::with_capacity(all.len());
    for (index, source) in all.iter().enumerate() {
        // SAFETY: and for each operand in it.
        let operand = unsafe { copy_struct(*source)? };
        let wrong = |expected: &str, found: String| {
            Err(RuleBreach::new(
                "K-1",
                format!("{expected} of {side} {index} of the kernel for `{op}`"),
                found,
            ))
        };
        if operand.dtypes.0 == 0 || operand.dtypes.0 & !abi::ALL_DTYPES != 0 {
            return wrong("a set of dtypes that exist", format!("the bits {:#x}", operand.dtypes.0));
        }
        if operand.rank_min > operand.rank_max {
            return wrong("ranks in rising order", format!("{} to {}", operand.rank_min, operand.rank_max));
        }
        if operand.place.name().is_none() {
            return wrong("a kind of memory", format!("the number {}", operand.place.0));
        }
        if operand.layout.name().is_none() {
            return wrong("a layout", format!("the number {}", operand.layout.0));
        }
        let variadic = operand.bits.contains(abi::OperandFlags::VARIADIC);
        if variadic && index + 1 != all.len() {
            return wrong("nothing variadic but the last", "a variadic one before it".to_owned());
        }
        operands.push(OperandInfo {
            // SAFETY: the caller vouches for what the operands in its list point to.
            name: unsafe { checked_text(operand.name, "name of an operand", MAX_OP_LENGTH)? },
            dtypes: operand.dtypes.0,
            dtype_group: operand.dtype_group,
            rank_min: operand.rank_min,
            rank_max: operand.rank_max,
            place: operand.place.0,
            layout: operand.layout.0,
            optional: operand.bits.contains(abi::OperandFlags::OPTIONAL),
            variadic,
            strided: operand.bits.contains(abi::OperandFlags::STRIDED),
            unaligned: operand.bits.contains(abi::OperandFlags::UNALIGNED),
            on_demand: operand.bits.contains(abi::OperandFlags::ON_DEMAND),
        });
    }
    Ok(operands)
}
