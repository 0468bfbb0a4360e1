//! Weights in files beside the model.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use oarlock_core::{ErrorKind, Result};
use oarlock_model::Model;
use oarlock_model::import;
use oarlock_model::import::onnx::messages::*;
use prost::Message as _;
use tensor_proto::{DataLocation, DataType};

use crate::model_builder::*;

/// An external f32 tensor.
fn external_tensor(entries: &[(&str, &str)], dims: &[i64]) -> TensorProto {
    let entry = |(key, value): &(&str, &str)| StringStringEntryProto {
        key: Some((*key).into()),
        value: Some((*value).into()),
    };
    TensorProto {
        data_location: Some(DataLocation::External.into()),
        external_data: entries.iter().map(entry).collect(),
        ..build_tensor("w", DataType::Float, dims)
    }
}

/// A model with one weight, which is its output.
fn single_weight_model(weight: TensorProto) -> ModelProto {
    let mut proto = build_graph(&[], Vec::new(), &["w"]);
    proto.initializer = vec![weight];
    build_model(proto)
}

/// Writes a model into a directory and loads it from there.
fn load_from(directory: &Path, model: &ModelProto) -> Result<Model> {
    let path = directory.join("model.onnx");
    fs::write(&path, model.encode_to_vec()).unwrap();
    import::load_model(&path)
}

fn weight_elements(model: &Model) -> Vec<f64> {
    let graph = &model.graph;
    graph.value(graph.outputs[0]).weight.as_ref().unwrap().as_numbers().unwrap().to_floats().unwrap()
}

/// A directory with files of 100 f32 values, counting from 0.
fn weights_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..100).flat_map(|at| (at as f32).to_le_bytes()).collect();
    fs::create_dir(directory.path().join("below")).unwrap();
    fs::write(directory.path().join("weights"), &bytes).unwrap();
    fs::write(directory.path().join("below/weights"), &bytes).unwrap();
    directory
}

#[test]
fn weights_lie_anywhere_in_files_beside_the_model() {
    let directory = weights_directory();
    let all: Vec<f64> = (0..100).map(f64::from).collect();
    let whole = load_from(
        directory.path(),
        &single_weight_model(external_tensor(&[("location", "weights")], &[100])),
    )
    .unwrap();
    assert_eq!(weight_elements(&whole), all);
    let entries = [("location", "./below/weights"), ("offset", "40"), ("length", "20")];
    assert_eq!(
        weight_elements(
            &load_from(directory.path(), &single_weight_model(external_tensor(&entries, &[5]))).unwrap()
        ),
        all[10..15]
    );
}

#[test]
fn files_elsewhere_are_refused() {
    let (directory, elsewhere) = (weights_directory(), weights_directory());
    let target = elsewhere.path().join("weights");
    symlink(&target, directory.path().join("link")).unwrap();
    symlink(elsewhere.path(), directory.path().join("door")).unwrap();
    let absolute = target.display().to_string();
    let own = directory.path().join("weights").display().to_string();
    for location in
        [absolute.as_str(), &own, "../weights", "below/../weights", "link", "door/weights", "", "/"]
    {
        let error = load_from(
            directory.path(),
            &single_weight_model(external_tensor(&[("location", location)], &[100])),
        )
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{location}: {error}");
        assert_contains(
            error.message(),
            &["model.onnx`", "initializer `w`", "below the directory of the model"],
        );
    }
}

#[test]
fn links_within_the_directory_and_beside_a_linked_model_are_followed() {
    let (directory, cache) = (weights_directory(), weights_directory());
    symlink(directory.path().join("below/weights"), directory.path().join("link")).unwrap();
    let model = single_weight_model(external_tensor(&[("location", "link")], &[100]));
    assert_eq!(weight_elements(&load_from(directory.path(), &model).unwrap()).len(), 100);
    // The layout of model caches: links lead to both contents, which lie side by side.
    fs::write(cache.path().join("1f"), model.encode_to_vec()).unwrap();
    fs::rename(cache.path().join("weights"), cache.path().join("2e")).unwrap();
    let named = tempfile::tempdir().unwrap();
    symlink(cache.path().join("1f"), named.path().join("model.onnx")).unwrap();
    symlink(cache.path().join("2e"), named.path().join("link")).unwrap();
    assert_eq!(weight_elements(&import::load_model(&named.path().join("model.onnx")).unwrap()).len(), 100);
}

#[test]
fn files_that_are_missing_or_too_short_are_refused() {
    let directory = weights_directory();
    let refused = |entries: &[(&str, &str)], dims: &[i64]| {
        load_from(directory.path(), &single_weight_model(external_tensor(entries, dims)))
            .unwrap_err()
            .to_string()
    };
    assert_contains(&refused(&[("location", "gone")], &[1]), &["initializer `w`", "gone`, found none"]);
    assert_contains(
        &refused(&[("location", "below")], &[1]),
        &["expected a file", "below`: expected a file, found a directory"],
    );
    assert_contains(
        &refused(&[("location", "weights")], &[101]),
        &["404 bytes from byte 0 on, found a file of 400"],
    );
    let offset = |offset| refused(&[("location", "weights"), ("offset", offset)], &[1]);
    assert_contains(&offset("397"), &["4 bytes from byte 397 on, found a file of 400"]);
    assert_contains(&offset("18446744073709551615"), &["found a file of 400"]);
    assert_contains(&offset("-1"), &["a number of bytes as `offset`, found `-1`"]);
    let length = |length| refused(&[("location", "weights"), ("length", length)], &[1]);
    assert_contains(&length("8"), &["`length` to be 4, as dtype and shape want, found 8"]);
    assert_contains(&refused(&[], &[1]), &["the `location` of a file, found none"]);
}

#[test]
fn a_model_in_memory_has_weights_in_files_only_with_a_directory() {
    let directory = weights_directory();
    let bytes = bytes::Bytes::from(
        single_weight_model(external_tensor(&[("location", "weights")], &[100])).encode_to_vec(),
    );
    assert!(import::onnx::decode_onnx(bytes.clone(), Some(directory.path())).is_ok());
    assert_contains(
        &import::onnx::decode_onnx(bytes, None).unwrap_err().to_string(),
        &["no directory to look for it"],
    );
}

#[test]
fn pipes_are_refused_without_waiting_for_them() {
    let directory = weights_directory();
    let pipe = directory.path().join("pipe");
    let result = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(result.success());
    assert_contains(
        &import::load_model(&pipe).unwrap_err().to_string(),
        &["expected a file", "found a pipe or a device"],
    );
}

/// Weights of many sizes: those in the window of the reader, those read into memory of their own, and those in huge pages.
fn sized_weights() -> Vec<TensorProto> {
    let sizes = [1, 100, 2_000, 5_000, 300_000, 700_000];
    let elements = |size: usize| (0..size).map(|at| (at % 251) as f32).collect::<Vec<_>>();
    let named = |(at, size): (usize, &usize)| TensorProto {
        name: Some(format!("w{at}")),
        raw_data: Some(elements(*size).iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>().into()),
        ..build_tensor("", DataType::Float, &[*size as i64])
    };
    sizes.iter().enumerate().map(named).collect()
}

fn all_elements(model: &Model) -> Vec<Vec<f64>> {
    let graph = &model.graph;
    let numbers =
        |output: &_| graph.value(*output).weight.as_ref().unwrap().as_numbers().unwrap().to_floats();
    graph.outputs.iter().map(|output| numbers(output).unwrap()).collect()
}

#[test]
fn nothing_that_happens_to_the_files_afterwards_changes_a_weight() {
    let mut proto = build_graph(&[], Vec::new(), &["w0", "w1", "w2", "w3", "w4", "w5", "far"]);
    proto.initializer = sized_weights();
    let far = external_tensor(&[("location", "weights"), ("offset", "40")], &[90]);
    proto.initializer.push(TensorProto { name: Some("far".to_owned()), ..far });
    let model = build_model(proto);
    let destroy: [fn(&Path); 4] = [
        |path| fs::File::options().write(true).open(path).unwrap().set_len(0).unwrap(),
        |path| fs::write(path, vec![0xff; fs::metadata(path).unwrap().len() as usize]).unwrap(),
        |path| fs::remove_file(path).unwrap(),
        |path| fs::File::options().write(true).open(path).unwrap().set_len(5_000).unwrap(),
    ];
    for destroy in destroy {
        let directory = weights_directory();
        let loaded = load_from(directory.path(), &model).unwrap();
        let before = all_elements(&loaded);
        assert_eq!(before[5][699_999], f64::from(699_999 % 251));
        assert_eq!(before[6][..2], [10.0, 11.0]);
        for name in ["model.onnx", "weights"] {
            destroy(&directory.path().join(name));
        }
        assert_eq!(all_elements(&loaded), before);
    }
}

#[test]
fn weights_of_files_begin_at_cache_lines() {
    let directory = weights_directory();
    let mut proto = build_graph(&[], Vec::new(), &["w3", "w4", "w5"]);
    proto.initializer = sized_weights();
    let graph = load_from(directory.path(), &build_model(proto)).unwrap().graph;
    for output in &graph.outputs {
        let numbers = graph.value(*output).weight.as_ref().unwrap().as_numbers().unwrap();
        assert_eq!(numbers.address() % 64, 0);
    }
}

#[test]
fn tensors_that_overlap_cannot_take_any_amount_of_memory() {
    let overlapping = |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("w{at}")).collect();
        let mut proto = build_graph(&[], Vec::new(), &names.iter().map(String::as_str).collect::<Vec<_>>());
        let tensor = |(at, name): (usize, &String)| {
            let offset = (4 * at).to_string();
            let tensor = external_tensor(&[("location", "weights"), ("offset", &offset)], &[90]);
            TensorProto { name: Some(name.clone()), ..tensor }
        };
        proto.initializer = names.iter().enumerate().map(tensor).collect();
        load_from(weights_directory().path(), &build_model(proto))
    };
    assert!(overlapping(4).is_ok());
    assert_contains(&overlapping(6).unwrap_err().to_string(), &["at most 4 times the size of their file"]);
}
