//! The kernel records of a plugin.

#![expect(unsafe_code, reason = "kernels are described by lists behind raw pointers")]

use oarlock_abi as abi;

/// Limit on the operands of a kernel that the suite reads; the host has already refused longer lists.
const MAX_OPERANDS: u64 = 1 << 10;

/// A kernel of the subject.
#[derive(Clone, Copy)]
pub(crate) struct KernelUnderTest<'a> {
    pub(crate) raw: &'a abi::Kernel,
}

/// A list in memory of the plugin.
fn plugin_slice<'a, T>(first: *const T, count: u64) -> &'a [T] {
    if first.is_null() || count == 0 || count > MAX_OPERANDS {
        return &[];
    }
    // SAFETY: whoever made the subject vouches for its kernels, whose lists live until the plugin is unloaded.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}

fn plugin_text(text: abi::Str) -> String {
    // SAFETY: as for `plugin_slice`.
    let text = unsafe { text.text() };
    text.unwrap_or("(not UTF-8)").to_owned()
}

/// Copies the operands of a list; null entries are skipped.
fn plugin_operands(first: *const *const abi::Operand, count: u64) -> Vec<abi::Operand> {
    let all = plugin_slice(first, count).iter().filter(|operand| !operand.is_null());
    // SAFETY: as for `plugin_slice`; an operand is at least as large as it was in the first version of the contract.
    all.map(|operand| unsafe { **operand }).collect()
}

impl<'a> KernelUnderTest<'a> {
    pub(crate) fn op_name(self) -> String {
        plugin_text(self.raw.op)
    }

    pub(crate) fn domain(self) -> String {
        plugin_text(self.raw.domain)
    }

    pub(crate) fn inputs(self) -> Vec<abi::Operand> {
        plugin_operands(self.raw.inputs, self.raw.inputs_count)
    }

    pub(crate) fn outputs(self) -> Vec<abi::Operand> {
        plugin_operands(self.raw.outputs, self.raw.outputs_count)
    }

    pub(crate) fn in_place_pairs(self) -> &'a [abi::InPlace] {
        plugin_slice(self.raw.in_place, self.raw.in_place_count)
    }

    /// True if the kernel runs on a device type; an empty name means the plugin's own.
    pub(crate) fn runs_on(self, device_type: &str) -> bool {
        self.raw.device_type.is_empty() || plugin_text(self.raw.device_type) == device_type
    }

    /// The record as text, to be compared with a later copy.
    pub(crate) fn record_text(self) -> String {
        let describe = |operand: &abi::Operand| {
            let abi::Operand { dtypes, dtype_group, rank_min, rank_max, bits, place, .. } = operand;
            let (dtypes, bits, place, name) = (dtypes.0, bits.0, place.0, plugin_text(operand.name));
            format!("{name}:{dtypes:x}/{dtype_group}/{rank_min}-{rank_max}/{bits}/{place}")
        };
        let join = |operands: Vec<abi::Operand>| operands.iter().map(describe).collect::<Vec<_>>().join(", ");
        let (op, domain, device_type) = (self.op_name(), self.domain(), plugin_text(self.raw.device_type));
        let (inputs, outputs) = (join(self.inputs()), join(self.outputs()));
        format!(
            "{domain} {op} {device_type}: ({inputs}) to ({outputs}), in place {:?}",
            self.in_place_pairs()
        )
    }
}
