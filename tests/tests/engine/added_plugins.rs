//! Kernel plugins that are added to a running runtime.

#![expect(unsafe_code, reason = "one plugin is linked in, whose kernel reads the elements of its operands")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use oarlock_core::{Attribute, Attributes, Dtype, ErrorKind, Op, Runtime, Tensor};
use oarlock_engine::graph::Node;
use oarlock_engine::{Session, SessionOptions};
use oarlock_host::{BuiltInPlugin, PluginManifest};
use oarlock_sdk::{DtypeSet, HostServices, Kernel, OperandSpec, Plugin, abi};
use oarlock_tests::plugin_compiler;
use tempfile::TempDir;

use crate::sketch::{GraphSketch, datum_bytes, run_session, start_runtime};

static PLUGIN_DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| {
    let place = tempfile::tempdir().expect("a directory for temporary files");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
    place
});

const KERNELS_MANIFEST: &str = "name = \"extension\"\nkind = \"kernels\"\n";
const DEVICE_MANIFEST: &str =
    "name = \"Good\"\nkind = \"device\"\ndevice_type = \"Good\"\nprofiles = [\"core\"]\n";

/// Compiles a plugin of `tests/plugins` under a separate name and writes its manifest, since the host cannot start this program
/// as a probe.
pub(crate) fn compile_plugin(source: &str, target: &str, about: &str) -> PathBuf {
    let file = PLUGIN_DIRECTORY.path().join(target);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = plugin_compiler(source.ends_with(".cpp"), abi::SANITIZER == abi::Sanitizer::ADDRESS);
    compiler.arg("-o").arg(&file).arg(root.join("plugins").join(source));
    assert!(compiler.status().expect("a compiler").success(), "{compiler:?}");
    write_manifest(&file, about);
    file
}

fn write_manifest(file: &Path, about: &str) {
    let contract = oarlock_host::HOST_CONTRACT;
    let more = format!("contract = \"{contract}\"\narchitecture = \"{}-linux\"\n", std::env::consts::ARCH);
    let version = if about == DEVICE_MANIFEST { "1.0.0" } else { "0" };
    let text = format!("{about}version = \"{version}\"\n{more}");
    fs::write(PluginManifest::path_beside(file), text).expect("the directory can be written");
}

pub(crate) fn start_random_sim() -> Arc<Runtime> {
    Arc::new(start_runtime("mode random; seed 1; devices 1", &[]))
}

fn scaling_op(runtime: &Runtime, factor: f64) -> oarlock_core::Result<Op> {
    let mut attributes = Attributes::new();
    attributes.set("factor", Attribute::Float(factor));
    Op::new(runtime, "test.ops", "times", runtime.latest_opset("test.ops", "times"), attributes)
}

#[test]
fn an_op_of_an_added_plugin_is_called_and_is_a_node_of_models() {
    let runtime = start_random_sim();
    let early = scaling_op(&runtime, 3.0).err().expect("nobody has the op yet");
    assert_eq!(early.kind(), ErrorKind::NotFound, "{early}");
    let added =
        runtime.add_plugin(&compile_plugin("good_ops.c", "libgood_ops.so", KERNELS_MANIFEST)).unwrap();
    assert_eq!((added.info().name.as_str(), added.info().kernel_count), ("extension", 1));

    let cpu = runtime.device("cpu").unwrap();
    let x = Tensor::from_slice(&cpu, &[2, 2], &[1f32, -2.0, 0.5, f32::INFINITY]).unwrap();
    let made = scaling_op(&runtime, 3.0).unwrap().run(&runtime, &[&x]).unwrap();
    assert_eq!(made.dims(), [2, 2]);
    assert_eq!(made.to_vec::<f32>().unwrap(), [3.0, -6.0, 1.5, f32::INFINITY]);
    let wrong = Tensor::from_slice(&cpu, &[1], &[1i64]).unwrap();
    let error = scaling_op(&runtime, 3.0).unwrap().run(&runtime, &[&wrong]).expect_err("no kernel for i64");
    assert!(error.to_string().contains("i64"), "{error}");

    let mut sketch = GraphSketch::new();
    let input = sketch.add_input("x", Dtype::F32, &[-1]);
    let relu = sketch.add_op("Relu", &[input]);
    let y = sketch.add_op("of a domain of its own", &[relu]);
    let node = sketch.graph.nodes.last_mut().unwrap();
    *node = Node { domain: "test.ops".into(), op: "times".into(), opset: 1, ..node.clone() };
    node.attributes.set("factor", Attribute::Float(5.0));
    let end = sketch.add_op("Neg", &[y]);
    let sketch = sketch.with_outputs(&[end]);
    let session = Session::new(runtime, &sketch.to_model(), &SessionOptions::default()).unwrap();
    for size in [0, 1, 3] {
        let elements: Vec<f32> = (0..size).map(|index| index as f32 - 1.0).collect();
        let fed = Tensor::from_slice(&cpu, &[i64::from(size)], &elements).unwrap();
        let expected: Vec<u8> =
            elements.iter().flat_map(|element| (-(element.max(0.0) * 5.0)).to_ne_bytes()).collect();
        assert_eq!(datum_bytes(&run_session(&session, &[fed.into()])[0]), expected, "{size}");
    }
}

#[test]
fn a_plugin_is_added_once_and_what_is_none_changes_nothing() {
    let runtime = start_random_sim();
    let file = compile_plugin("good_ops.c", "libonce.so", KERNELS_MANIFEST);
    runtime.add_plugin(&file).unwrap();
    let kernels = runtime.registry().entries().len();
    let copy = PLUGIN_DIRECTORY.path().join("libcopy.so");
    fs::copy(&file, &copy).unwrap();
    write_manifest(&copy, KERNELS_MANIFEST);
    let text = PLUGIN_DIRECTORY.path().join("libtext.so");
    fs::write(&text, "no plugin").unwrap();
    let device = compile_plugin("good.c", "libdevice.so", DEVICE_MANIFEST);
    let missing = PLUGIN_DIRECTORY.path().join("libmissing.so");
    let refused = [
        (&file, "once"),
        (&copy, "loaded already"),
        (&text, "shared object"),
        (&device, "plugin of kernels only"),
        (&missing, "libmissing.so"),
    ];
    for (file, words) in refused {
        let error = runtime.add_plugin(file).expect_err(words).to_string();
        assert!(error.contains(words), "expected `{words}` in: {error}");
        assert_eq!(runtime.registry().entries().len(), kernels);
    }
    let cpu = runtime.device("cpu").unwrap();
    let x = Tensor::from_slice(&cpu, &[1], &[2f32]).unwrap();
    let made = scaling_op(&runtime, 2.0).unwrap().run(&runtime, &[&x]).unwrap();
    assert_eq!(made.to_vec::<f32>().unwrap(), [4.0]);
}

#[test]
fn a_plugin_that_is_linked_in_is_added_likewise() {
    fn negating_plugin(_: &HostServices) -> oarlock_sdk::Result<Plugin> {
        let kernel = Kernel::new("negate", |_, call| {
            let (x, y) = (call.input(0)?, call.output(0)?);
            // SAFETY: the memory of the CPU is addressable, and nothing else uses the output.
            let (x, y) = unsafe { (x.elements::<f32>()?, y.elements_mut::<f32>()?) };
            y.iter_mut().zip(x).for_each(|(y, x)| *y = -x);
            Ok(())
        });
        let kernel = kernel
            .with_domain("test.linked")
            .with_device_type("cpu")
            .with_inputs([OperandSpec::new(DtypeSet::F32)])
            .with_outputs([OperandSpec::new(DtypeSet::F32)])
            .with_shape_inference(|_, call| {
                call.allocate_output(0, call.input(0)?.dtype(), call.input(0)?.dims())
            });
        Ok(Plugin::for_kernels("negating", "1").with_kernels([kernel]))
    }
    let runtime = start_random_sim();
    let plugin = BuiltInPlugin { name: "negating", query: oarlock_sdk::query!(negating_plugin) };
    runtime.add_built_in(plugin).unwrap();
    let again = runtime.add_built_in(plugin).expect_err("it is there").to_string();
    assert!(again.contains("loaded already"), "{again}");
    let cpu = runtime.device("cpu").unwrap();
    let x = Tensor::from_slice(&cpu, &[2], &[1f32, -2.0]).unwrap();
    let op = Op::new(&runtime, "test.linked", "negate", 1, Attributes::new()).unwrap();
    assert_eq!(op.run(&runtime, &[&x]).unwrap().to_vec::<f32>().unwrap(), [-1.0, 2.0]);
}
