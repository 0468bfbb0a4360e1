//! The layers of the tree, around the CPU device.

use oarlock_conformance::SuiteSettings;
use oarlock_host::{BuiltInPlugin, Host};
use oarlock_tests::bare_host::{CPU_PLUGIN, host_options};

#[test]
fn the_trace_layer_conforms_and_so_does_the_processor_through_it() {
    let trace = BuiltInPlugin { name: "trace", query: oarlock_plugin_trace::QUERY };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("trace.json");
    let config = format!("[plugins]\nlayers = ['trace']\n[plugin.trace]\nfile = '{}'", file.display());
    let host = Host::start(&host_options("tests 1.0", &config, &[CPU_PLUGIN, trace])).expect("a host");
    let layer = host.plugin("trace").expect("the layer");
    let report =
        layer.check_conformance(host.plugins(), &SuiteSettings::default(), &mut |_| {}).expect("a report");
    assert!(report.has_passed(), "{}", report.render_text());
    assert_eq!(report.passed_profiles(), ["core", "async", "kernels", "layer"]);
}
