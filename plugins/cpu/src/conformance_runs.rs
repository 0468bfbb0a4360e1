//! The processors on which the conformance suite passed, and the support level that this implies for the current one.
//!
//! This plugin distinguishes processors by their family, as the vendor numbers it, and by the instruction sets that the kernels
//! use. If a processor of the same family passed the suite with the same instruction sets, the chip counts as tested. If only other
//! families passed, or a processor with more instruction sets was limited to these, then only the code was tested.

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::machine::ProcessorFamily;
use oarlock_sdk::SupportLevel;

/// A run of the conformance suite that passed. The page with its date in `docs/measurements` describes it.
struct SuiteRun {
    family: ProcessorFamily<'static>,
    /// The instruction sets that the kernels used.
    isa: Isa,
    /// True if the processor has more instruction sets and the option `isa` limited it to these.
    is_held: bool,
    processor: &'static str,
    date: &'static str,
}

/// Zen 3 and Zen 4, which share a family number.
const ZEN_3: ProcessorFamily<'_> = ProcessorFamily { maker: "AuthenticAMD", number: 25 };
/// The family of every Intel processor since the Pentium Pro.
const INTEL_6: ProcessorFamily<'_> = ProcessorFamily { maker: "GenuineIntel", number: 6 };

/// All runs. Of several runs with the same family and instruction sets, the list has the last.
const SUITE_RUNS: [SuiteRun; 4] = [
    SuiteRun {
        family: ZEN_3,
        isa: Isa::Avx512,
        is_held: false,
        processor: "an AMD EPYC (Zen 4)",
        date: "2026-11-21",
    },
    SuiteRun {
        family: ZEN_3,
        isa: Isa::Avx2,
        is_held: false,
        processor: "an AMD EPYC (Zen 3)",
        date: "2026-11-24",
    },
    SuiteRun {
        family: ZEN_3,
        isa: Isa::Scalar,
        is_held: true,
        processor: "an AMD EPYC (Zen 3)",
        date: "2026-11-24",
    },
    SuiteRun {
        family: INTEL_6,
        isa: Isa::Amx,
        is_held: false,
        processor: "an Intel Xeon (Emerald Rapids)",
        date: "2026-11-26",
    },
];

/// The support level of a processor of a family for kernels that use these instruction sets, and the reason.
pub(crate) fn support_level(family: &ProcessorFamily<'_>, isa: Isa) -> (SupportLevel, String) {
    let is_chip = |run: &&SuiteRun| run.family == *family && !run.is_held;
    let mut with_same_code = SUITE_RUNS.iter().filter(|run| run.isa == isa);
    if let Some(run) = with_same_code.clone().find(is_chip) {
        let SuiteRun { processor, date, .. } = run;
        let note = format!(
            "conformance suite 1.0 passed with `{isa}` on {processor} under Linux, {date}; this processor is of that family"
        );
        return (SupportLevel::HARDWARE_VERIFIED, note);
    }
    match with_same_code.next() {
        Some(SuiteRun { processor, date, is_held, .. }) => {
            let but = if *is_held { "which has more" } else { "and on none of this family" };
            let note = format!(
                "conformance suite 1.0 passed with `{isa}` on {processor}, {but}, under Linux, {date}"
            );
            (SupportLevel::DRIVER_VERIFIED, note)
        }
        None => {
            let note = format!(
                "the conformance suite was run on no processor with `{isa}` yet; `oarlock doctor` tries this one"
            );
            (SupportLevel::UNSPECIFIED, note)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_processor_counts_as_tested_as_far_as_one_like_it_was() {
        let level = |family: ProcessorFamily<'_>, isa| support_level(&family, isa).0;
        assert_eq!(level(ZEN_3, Isa::Avx512), SupportLevel::HARDWARE_VERIFIED);
        assert_eq!(level(ZEN_3, Isa::Avx2), SupportLevel::HARDWARE_VERIFIED);
        assert_eq!(level(ProcessorFamily { number: 23, ..ZEN_3 }, Isa::Avx2), SupportLevel::DRIVER_VERIFIED);
        assert_eq!(level(INTEL_6, Isa::Avx512), SupportLevel::DRIVER_VERIFIED);
        assert_eq!(level(ZEN_3, Isa::Scalar), SupportLevel::DRIVER_VERIFIED);
        assert_eq!(level(INTEL_6, Isa::Amx), SupportLevel::HARDWARE_VERIFIED);
        assert_eq!(level(ZEN_3, Isa::Amx), SupportLevel::DRIVER_VERIFIED);
    }

    #[test]
    fn the_note_says_what_was_tested_and_how_this_processor_differs() {
        let note = |family: ProcessorFamily<'_>, isa| support_level(&family, isa).1;
        assert!(note(ZEN_3, Isa::Avx2).contains("with `avx2` on an AMD EPYC (Zen 3)"));
        assert!(
            note(INTEL_6, Isa::Avx2).contains("(Zen 3), and on none of this family, under Linux, 2026-11-24")
        );
        assert!(note(ZEN_3, Isa::Scalar).contains("(Zen 3), which has more,"));
        assert!(note(INTEL_6, Isa::Amx).contains("with `amx` on an Intel Xeon (Emerald Rapids)"));
    }

    #[test]
    fn every_suite_run_appears_in_the_measurements_of_its_date() {
        let measurements = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measurements");
        for SuiteRun { isa, processor, date, .. } in &SUITE_RUNS {
            let page = std::fs::read_to_string(measurements.join(format!("{date}-cpu.md"))).unwrap();
            let row = format!("| {}", processor.trim_start_matches("an "));
            let instructions = match isa {
                Isa::Scalar => "`isa = \"scalar\"`",
                Isa::Sse41 => "SSE4.1",
                Isa::Avx2 => "AVX2",
                Isa::AvxVnni => "AVX-VNNI",
                Isa::Avx512 => "AVX-512",
                Isa::Amx => "AMX",
                Isa::Neon => "NEON",
                Isa::DotProd => "DotProd",
                Isa::I8mm => "I8MM",
            };
            let is_told = page.lines().any(|line| line.starts_with(&row) && line.contains(instructions));
            assert!(is_told, "{processor} with `{isa}` in the page of {date}");
        }
    }
}
