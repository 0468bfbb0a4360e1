//! Plugins of kernels that are added while a runtime runs.

#![expect(unsafe_code, reason = "one plugin is linked in, whose kernel reads the elements of its operands")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use oarlock_core::{Attribute, Attributes, Dtype, ErrorKind, Op, Runtime, Tensor};
use oarlock_engine::graph::Node;
use oarlock_engine::{Session, SessionOptions};
use oarlock_host::{BuiltIn, Manifest};
use oarlock_sdk::{DtypeSet, Host, Kernel, Operand, Plugin, abi};
use oarlock_tests::plugin_compiler;
use tempfile::TempDir;

use crate::sketch::{Sketch, bytes, run, runtime};

static PLACE: LazyLock<TempDir> = LazyLock::new(|| {
    let place = tempfile::tempdir().expect("a directory for temporary files");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
    place
});

const KERNELS: &str = "name = \"extension\"\nkind = \"kernels\"\n";
const DEVICE: &str = "name = \"Good\"\nkind = \"device\"\ndevice_type = \"Good\"\nprofiles = [\"core\"]\n";

/// Compiles a plugin of `tests/plugins`, under a name of its own, and says in a manifest what it is: this program cannot be
/// started to ask it.
fn compiled(source: &str, target: &str, about: &str) -> PathBuf {
    let file = PLACE.path().join(target);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = plugin_compiler(false, abi::SANITIZER == abi::Sanitizer::ADDRESS);
    compiler.arg("-o").arg(&file).arg(root.join("plugins").join(source));
    assert!(compiler.status().expect("a compiler").success(), "{compiler:?}");
    write_manifest(&file, about);
    file
}

fn write_manifest(file: &Path, about: &str) {
    let contract = oarlock_host::HOST_CONTRACT;
    let more = format!("contract = \"{contract}\"\narchitecture = \"{}-linux\"\n", std::env::consts::ARCH);
    let version = if about == DEVICE { "1.0.0" } else { "0" };
    let text = format!("{about}version = \"{version}\"\n{more}");
    fs::write(Manifest::path_beside(file), text).expect("the directory can be written");
}

fn started() -> Arc<Runtime> {
    Arc::new(runtime("mode random; seed 1; devices 1", &[]))
}

fn times(runtime: &Runtime, factor: f64) -> oarlock_core::Result<Op> {
    let mut attributes = Attributes::new();
    attributes.set("factor", Attribute::Float(factor));
    Op::new(runtime, "test.ops", "times", runtime.newest_opset("test.ops", "times"), attributes)
}

#[test]
fn an_op_of_an_added_plugin_is_called_and_is_a_node_of_models() {
    let runtime = started();
    let early = times(&runtime, 3.0).err().expect("nobody has the op yet");
    assert_eq!(early.kind(), ErrorKind::NotFound, "{early}");
    let added = runtime.add_plugin(&compiled("good_ops.c", "libgood_ops.so", KERNELS)).unwrap();
    assert_eq!((added.info().name.as_str(), added.info().kernel_count), ("extension", 1));

    let cpu = runtime.device("cpu").unwrap();
    let x = Tensor::from_slice(&cpu, &[2, 2], &[1f32, -2.0, 0.5, f32::INFINITY]).unwrap();
    let made = times(&runtime, 3.0).unwrap().run(&runtime, &[&x]).unwrap();
    assert_eq!(made.dims(), [2, 2]);
    assert_eq!(made.to_vec::<f32>().unwrap(), [3.0, -6.0, 1.5, f32::INFINITY]);
    let wrong = Tensor::from_slice(&cpu, &[1], &[1i64]).unwrap();
    let error = times(&runtime, 3.0).unwrap().run(&runtime, &[&wrong]).expect_err("no kernel for i64");
    assert!(error.to_string().contains("i64"), "{error}");

    let mut sketch = Sketch::new();
    let input = sketch.input("x", Dtype::F32, &[-1]);
    let relu = sketch.op("Relu", &[input]);
    let y = sketch.op("of a domain of its own", &[relu]);
    let node = sketch.graph.nodes.last_mut().unwrap();
    *node = Node { domain: "test.ops".into(), op: "times".into(), opset: 1, ..node.clone() };
    node.attributes.set("factor", Attribute::Float(5.0));
    let end = sketch.op("Neg", &[y]);
    let sketch = sketch.output(&[end]);
    let session = Session::new(runtime, &sketch.model(), &SessionOptions::default()).unwrap();
    for size in [0, 1, 3] {
        let elements: Vec<f32> = (0..size).map(|index| index as f32 - 1.0).collect();
        let fed = Tensor::from_slice(&cpu, &[i64::from(size)], &elements).unwrap();
        let expected: Vec<u8> =
            elements.iter().flat_map(|element| (-(element.max(0.0) * 5.0)).to_ne_bytes()).collect();
        assert_eq!(bytes(&run(&session, &[fed.into()])[0]), expected, "{size}");
    }
}

#[test]
fn a_plugin_is_added_once_and_what_is_none_changes_nothing() {
    let runtime = started();
    let file = compiled("good_ops.c", "libonce.so", KERNELS);
    runtime.add_plugin(&file).unwrap();
    let kernels = runtime.registry().rows().len();
    let copy = PLACE.path().join("libcopy.so");
    fs::copy(&file, &copy).unwrap();
    write_manifest(&copy, KERNELS);
    let text = PLACE.path().join("libtext.so");
    fs::write(&text, "no plugin").unwrap();
    let device = compiled("good.c", "libdevice.so", DEVICE);
    let missing = PLACE.path().join("libmissing.so");
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
        assert_eq!(runtime.registry().rows().len(), kernels);
    }
    let cpu = runtime.device("cpu").unwrap();
    let x = Tensor::from_slice(&cpu, &[1], &[2f32]).unwrap();
    let made = times(&runtime, 2.0).unwrap().run(&runtime, &[&x]).unwrap();
    assert_eq!(made.to_vec::<f32>().unwrap(), [4.0]);
}

#[test]
fn a_plugin_that_is_linked_in_is_added_likewise() {
    fn negating(_: &Host) -> oarlock_sdk::Result<Plugin> {
        let kernel = Kernel::new("negate", |_, call| {
            let (x, y) = (call.input(0)?, call.output(0)?);
            // SAFETY: the memory of the CPU can be addressed, and the output is nobody else's.
            let (x, y) = unsafe { (x.elements::<f32>()?, y.elements_mut::<f32>()?) };
            y.iter_mut().zip(x).for_each(|(y, x)| *y = -x);
            Ok(())
        });
        let kernel = kernel
            .domain("test.linked")
            .device_type("cpu")
            .inputs([Operand::new(DtypeSet::F32)])
            .outputs([Operand::new(DtypeSet::F32)])
            .infer(|_, call| call.allocate_output(0, call.input(0)?.dtype(), call.input(0)?.dims()));
        Ok(Plugin::without_device("negating", "1").kernels([kernel]))
    }
    let runtime = started();
    let plugin = BuiltIn { name: "negating", query: oarlock_sdk::query!(negating) };
    runtime.add_built_in(plugin).unwrap();
    let again = runtime.add_built_in(plugin).expect_err("it is there").to_string();
    assert!(again.contains("loaded already"), "{again}");
    let cpu = runtime.device("cpu").unwrap();
    let x = Tensor::from_slice(&cpu, &[2], &[1f32, -2.0]).unwrap();
    let op = Op::new(&runtime, "test.linked", "negate", 1, Attributes::new()).unwrap();
    assert_eq!(op.run(&runtime, &[&x]).unwrap().to_vec::<f32>().unwrap(), [-1.0, 2.0]);
}
