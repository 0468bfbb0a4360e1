//! The nodes of a plan that the CPU runs because no requested device has a kernel for them, as data and in words.

use std::collections::BTreeMap;
use std::fmt;

use oarlock_core::Error;
use oarlock_core::registry::MissingKernel;

/// Ops listed for each reason in one sentence; the rest are only counted.
const MAX_NAMED_OPS: usize = 6;

/// Node counts for each device, and the ops that fell back to the CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FallbackSummary {
    /// Names of the devices that come before the CPU.
    pub devices: Vec<String>,
    /// Name of the CPU device.
    pub cpu: String,
    /// True if the CPU was named as well, so that it is meant to run what the other devices cannot.
    pub is_cpu_named: bool,
    /// Nodes that need a kernel. Copies, views and control flow need none.
    pub nodes: usize,
    /// Those nodes, counted by the device that runs them.
    pub nodes_by_device: BTreeMap<String, usize>,
    /// Ops that the CPU runs because the devices before it have no kernel, the most frequent first.
    pub ops: Vec<FallbackOp>,
    /// Nodes on the CPU because they compute shapes or other values that the host reads before it calls a kernel.
    pub shape_nodes: usize,
    /// Nodes on the CPU because they handle text.
    pub text_nodes: usize,
    /// Nodes on the CPU because copying their operands would cost more than a device gains.
    pub small_nodes: usize,
}

/// An op that the devices have no kernel for, with the number of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackOp {
    /// Name, with the domain unless it is ONNX's own.
    pub op: String,
    /// The kind of kernel that the first device lacks: for the op, for a dtype, or for these operands.
    pub missing: MissingKernel,
    /// The message of the dispatch error, for people.
    pub reason: String,
    /// Nodes of this op that fell back.
    pub count: usize,
    /// Name of the first such node; may be empty.
    pub first_node: String,
}

impl FallbackSummary {
    /// Puts the most frequent ops first.
    pub(crate) fn sorted(mut self) -> Self {
        self.ops.sort_by_key(|op| (op.missing, std::cmp::Reverse(op.count)));
        self
    }

    /// Number of nodes that the CPU runs because other devices have no kernel for them.
    pub fn fallback_nodes(&self) -> usize {
        self.ops.iter().map(|op| op.count).sum()
    }

    /// The error to return if the CPU may not run them.
    pub fn to_error(&self) -> Error {
        let named = |op: &FallbackOp| match (op.count, op.first_node.as_str()) {
            (1, "") => format!("`{}`", op.op),
            (1, name) => format!("`{}` (`{name}`)", op.op),
            (count, "") => format!("`{}` ({count} nodes)", op.op),
            (count, name) => format!("`{}` ({count} nodes, `{name}` the first)", op.op),
        };
        let ops: Vec<String> = self.ops.iter().map(named).collect();
        let message = format!(
            "expected kernels of {} for all nodes that take one, found none for {} of {}: {}",
            quote_names(&self.devices),
            self.fallback_nodes(),
            self.nodes,
            list_first_ops(&ops)
        );
        Error::unimplemented(message).with_advice(format!(
            "name `{}` as the last device, or set `kernel_fallback=models`, to have the CPU run them; \
             `explain` then says why for each node",
            self.cpu.split(':').next().unwrap_or_default()
        ))
    }
}

/// One sentence for a log line.
impl fmt::Display for FallbackSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fallen, devices) = (self.fallback_nodes(), quote_names(&self.devices));
        let (runs, has) =
            (if fallen == 1 { "runs" } else { "run" }, if self.devices.len() == 1 { "has" } else { "have" });
        write!(f, "{fallen} of the {} nodes that take a kernel {runs} on `{}`, ", self.nodes, self.cpu)?;
        write!(f, "as {devices} {has} ")?;
        let kinds = [
            (MissingKernel::Op, "for"),
            (MissingKernel::Dtype, "for the dtypes of"),
            (MissingKernel::Operands, "for the operands of"),
        ];
        let of_kind = |(kind, words): (MissingKernel, &str)| {
            let named = |op: &FallbackOp| match op.count {
                1 => format!("`{}`", op.op),
                count => format!("`{}` ({count})", op.op),
            };
            let ops: Vec<String> = self.ops.iter().filter(|op| op.missing == kind).map(named).collect();
            (!ops.is_empty()).then(|| format!("{words} {}", list_first_ops(&ops)))
        };
        let kinds: Vec<String> = kinds.into_iter().filter_map(of_kind).collect();
        write!(f, "no kernel {}", kinds.join(", none "))?;
        let kept = [
            (self.shape_nodes, "to compute shapes"),
            (self.text_nodes, "as text is on the host alone"),
            (self.small_nodes, "as copying would take longer"),
        ];
        kept.into_iter().filter(|(count, _)| *count > 0).try_for_each(|(count, why)| {
            write!(f, "; {count} more {} there on purpose, {why}", if count == 1 { "is" } else { "are" })
        })
    }
}

/// Lists the first few ops and counts the rest.
fn list_first_ops(ops: &[String]) -> String {
    let (named, more) = ops.split_at(ops.len().min(MAX_NAMED_OPS));
    match more.len() {
        0 => join_texts(named),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn quote_names(names: &[String]) -> String {
    join_texts(&names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>())
}

fn join_texts(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fallback_op(op: &str, missing: MissingKernel, count: usize) -> FallbackOp {
        let (reason, first_node) = (String::new(), op.to_uppercase());
        FallbackOp { op: op.to_owned(), missing, reason, count, first_node }
    }

    fn fallback_summary(ops: Vec<FallbackOp>) -> FallbackSummary {
        FallbackSummary {
            devices: vec!["opencl:0".to_owned()],
            cpu: "cpu:0".to_owned(),
            nodes: 12,
            ops,
            ..FallbackSummary::default()
        }
    }

    #[test]
    fn one_sentence_says_how_many_where_which_and_why() {
        let all = ["Conv", "Relu", "Gemm", "TopK", "Tan", "Sin", "Cos", "Abs"]
            .map(|name| fallback_op(name, MissingKernel::Op, 1));
        assert_eq!(
            fallback_summary(all.to_vec()).to_string(),
            "8 of the 12 nodes that take a kernel run on `cpu:0`, as `opencl:0` has no kernel for `Conv`, `Relu`, `Gemm`, `TopK`, `Tan`, `Sin` \
             and 2 more"
        );
        let kinds = vec![
            fallback_op("Conv", MissingKernel::Op, 2),
            fallback_op("Add", MissingKernel::Dtype, 1),
            fallback_op("Max", MissingKernel::Operands, 1),
        ];
        assert_eq!(
            FallbackSummary { shape_nodes: 3, ..fallback_summary(kinds) }.to_string(),
            "4 of the 12 nodes that take a kernel run on `cpu:0`, as `opencl:0` has no kernel for `Conv` (2), none for the dtypes of `Add`, none for \
             the operands of `Max`; 3 more are there on purpose, to compute shapes"
        );
        assert_eq!(
            fallback_summary(vec![fallback_op("Add", MissingKernel::Dtype, 1)]).to_string(),
            "1 of the 12 nodes that take a kernel runs on `cpu:0`, as `opencl:0` has no kernel for the dtypes of `Add`"
        );
    }

    #[test]
    fn the_error_names_the_first_nodes_and_what_to_do() {
        let error = fallback_summary(vec![
            fallback_op("Conv", MissingKernel::Op, 2),
            fallback_op("Add", MissingKernel::Dtype, 1),
        ])
        .to_error();
        assert_eq!(
            error.message(),
            "expected kernels of `opencl:0` for all nodes that take one, found none for 3 of 12: `Conv` (2 nodes, `CONV` the first) and \
             `Add` (`ADD`)"
        );
        assert!(
            error
                .advice()
                .unwrap()
                .starts_with("name `cpu` as the last device, or set `kernel_fallback=models`"),
            "{error:?}"
        );
    }
}
