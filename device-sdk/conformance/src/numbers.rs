//! Compares what every kernel computes with a reference: each dtype, in calls of awkward shapes and layouts.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::bench::{CheckAbort, TestBench, Verdict, lock_unpoisoned};
use crate::device::DeviceUnderTest;
use crate::elements::dtype_name;
use crate::findings::{KernelNumbers, NumbersOutcome};
use crate::kernel_record::KernelUnderTest;
use crate::trial::{CallLayout, KernelTrial, kernel_trials, references_of};

impl KernelNumbers {
    fn new(kernel: KernelUnderTest<'_>, dtype: &str, outcome: NumbersOutcome) -> Self {
        let (oldest, newest) = (kernel.raw.version_min, kernel.raw.version_max);
        let newest = if newest == 0 { String::new() } else { newest.to_string() };
        Self {
            op: kernel.op_name(),
            domain: kernel.domain(),
            versions: format!("{oldest}-{newest}"),
            dtype: dtype.to_owned(),
            outcome,
            calls: 0,
            refused: 0,
            worst_ulps: 0.0,
            message: None,
        }
    }

    /// Adds the results of another trial of the same kernel and dtype.
    fn add_trial(&mut self, finding: TrialFinding) {
        self.calls += finding.calls;
        self.refused += finding.refused;
        self.worst_ulps = self.worst_ulps.max(finding.worst_ulps);
        if let Some(failure) = finding.failure {
            self.outcome = NumbersOutcome::Failed;
            self.message.get_or_insert(failure);
        } else if self.outcome == NumbersOutcome::Refused && finding.calls > 0 {
            (self.outcome, self.message) = (NumbersOutcome::Passed, None);
        } else if self.outcome == NumbersOutcome::Refused {
            self.message = self.message.take().or(finding.refusal);
        }
    }
}

/// What one combination of dtypes gave.
#[derive(Default)]
struct TrialFinding {
    calls: u32,
    refused: u32,
    worst_ulps: f64,
    failure: Option<String>,
    refusal: Option<String>,
}

/// The check: runs all kernels on the first device, and keeps what they computed in the bench.
pub(crate) fn compare_all_kernels(bench: &TestBench) -> Verdict {
    let Some(device) = bench.devices()?.first().copied() else { return Ok(()) };
    let kernels = bench.subject().kernels.iter().map(|raw| KernelUnderTest { raw });
    for kernel in kernels.filter(|kernel| kernel.runs_on(&bench.subject().device_type)) {
        let mut rows = numbers_of_kernel(bench, kernel, device)?;
        rows.iter_mut().for_each(|row| bench.exceptions.judge_numbers(row));
        lock_unpoisoned(&bench.numbers).extend(rows);
    }
    let rows = lock_unpoisoned(&bench.numbers);
    let failed: Vec<&KernelNumbers> =
        rows.iter().filter(|row| row.outcome == NumbersOutcome::Failed).collect();
    match failed.as_slice() {
        [] if rows.iter().any(|row| row.outcome == NumbersOutcome::Passed) => Ok(()),
        [] => Err(CheckAbort::unsupported("no kernel took a call that the suite has a reference for")),
        [first, ..] => Err(CheckAbort::failed(format!(
            "{} of {} kernels and dtypes are wrong; the first: {}",
            failed.len(),
            rows.iter().filter(|row| row.calls > 0).count(),
            first.message.clone().unwrap_or_default()
        ))),
    }
}

fn numbers_of_kernel<'a>(
    bench: &'a TestBench,
    kernel: KernelUnderTest<'a>,
    device: DeviceUnderTest<'a>,
) -> Verdict<Vec<KernelNumbers>> {
    if references_of(kernel).is_empty() {
        return Ok(vec![KernelNumbers::new(kernel, "", NumbersOutcome::NoReference)]);
    }
    let mut rows: Vec<KernelNumbers> = Vec::new();
    for trial in kernel_trials(kernel, device)? {
        bench.begin_step(format!("{trial}"));
        let dtype = dtype_name(trial.dtype);
        if rows.last().is_none_or(|row| row.dtype != dtype) {
            rows.push(KernelNumbers::new(kernel, dtype, NumbersOutcome::Refused));
        }
        if let Some(reason) = bench.exceptions.unsupported_kernel(&kernel.op_name(), trial.dtype) {
            if let Some(row) = rows.last_mut() {
                row.message = Some(reason);
            }
            continue;
        }
        let finding = catch_unwind(AssertUnwindSafe(|| try_all_calls(&trial)));
        let finding = finding.unwrap_or_else(|_| TrialFinding {
            failure: Some(format!("{trial}: the reference panicked, which is a mistake of the suite")),
            ..TrialFinding::default()
        });
        if let Some(row) = rows.last_mut() {
            row.add_trial(finding);
        }
    }
    if rows.is_empty() {
        // Its operands are of dtypes that the suite does not compute with, or are not those of the reference.
        rows.push(KernelNumbers::new(kernel, "", NumbersOutcome::NoReference));
    }
    Ok(rows)
}

/// Tries each call in each layout, up to the first wrong result.
fn try_all_calls(trial: &KernelTrial<'_>) -> TrialFinding {
    let mut finding = TrialFinding::default();
    let in_place = trial.kernel.in_place_pairs().iter().map(|pair| CallLayout::InPlace(*pair));
    let layouts: Vec<CallLayout> =
        [CallLayout::Contiguous, CallLayout::Unaligned, CallLayout::Strided, CallLayout::Constant]
            .into_iter()
            .chain(in_place)
            .collect();
    for case in trial.cases() {
        let case = match trial.solve_case(case) {
            Ok(case) => case,
            Err(stop) => {
                finding.refused += 1;
                finding.refusal.get_or_insert(stop.into_message());
                continue;
            }
        };
        for layout in &layouts {
            match trial.run_and_compare(&case, *layout) {
                Ok(error) => {
                    finding.calls += 1;
                    finding.worst_ulps = finding.worst_ulps.max(error);
                }
                // A layout that does not apply is no refusal of the call.
                Err(CheckAbort::Unsupported(_)) if *layout != CallLayout::Contiguous => {}
                Err(CheckAbort::Unsupported(reason)) => {
                    finding.refused += 1;
                    finding.refusal.get_or_insert(reason);
                    break;
                }
                Err(CheckAbort::Failed(message)) => {
                    finding.calls += 1;
                    finding.failure = Some(format!("{trial}: {message}"));
                    return finding;
                }
            }
        }
    }
    finding
}
