//! What the suite says about kernels: which it compares, and how closely.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use oarlock_conformance::{NumbersOutcome, describe_tolerances};

use crate::started_plugin::StartedPlugin;

const MARKS: [&str; 2] = ["<!-- references -->\n", "<!-- /references -->"];

/// With `OARLOCK_WRITE`, the page is written.
#[test]
fn the_page_for_vendors_has_the_tolerances_of_the_suite() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/vendor/check.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(MARKS[0]).expect("the mark before the table");
    let (_, after) = rest.split_once(MARKS[1]).expect("the mark after the table");
    let expected = format!("{before}{}\n{}\n{}{after}", MARKS[0], describe_tolerances(), MARKS[1]);
    if std::env::var_os("OARLOCK_WRITE").is_some() {
        fs::write(&path, &expected).expect("a page that may be written");
    }
    assert!(page == expected, "the page is stale; run the test with `OARLOCK_WRITE=1`");
}

#[test]
fn every_kernel_of_the_processor_with_a_reference_is_right_in_each_dtype() {
    let report = StartedPlugin::load_cpu_with_kernels().run_checks();
    let named = |outcome: NumbersOutcome| -> BTreeSet<&str> {
        let rows = report.numbers.iter().filter(|row| row.outcome == outcome);
        rows.map(|row| row.op.as_str()).collect()
    };
    assert_eq!(named(NumbersOutcome::Failed), BTreeSet::new(), "{}", report.render_text());
    let right = named(NumbersOutcome::Passed);
    assert!(right.len() > 120, "only {} ops are compared", right.len());
    // One of each family, in the dtypes that kernels seldom have.
    for (op, dtype) in [
        ("Relu", "i16"),
        ("Add", "u8"),
        ("Where", "bool"),
        ("Cast", "bf16"),
        ("ReduceSum", "u64"),
        ("Softmax", "f16"),
        ("MatMul", "i32"),
        ("LayerNormalization", "bf16"),
        ("Conv", "f64"),
        ("MaxPool", "u8"),
        ("Pad", "bool"),
        ("Gather", "i8"),
        ("QuantizeLinear", "u8"),
    ] {
        let row = report
            .numbers
            .iter()
            .find(|row| row.op == op && row.dtype == dtype && row.outcome == NumbersOutcome::Passed);
        let row = row.unwrap_or_else(|| panic!("`{op}` of {dtype} is not compared"));
        assert!(row.calls > 0, "{row:?}");
    }
}
