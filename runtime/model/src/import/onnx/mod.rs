//! Imports ONNX files.
//!
//! A model is decoded into the messages of `onnx-ml.proto` and then imported: `scope` resolves names, `importer` builds
//! graphs, `node` builds nodes, and `function_call` inlines functions. Nothing in the file is trusted, and errors say where in
//! the model they are.
//!
//! Where the standard is stricter than real models, import is lenient: nodes may be in any order that can be sorted, names of
//! nodes may repeat or be missing, and the type of an attribute may be left to its content.
//!
//! Up to IR 3, every initializer had to be an input too; since then it may be one, to be overridable. Both become overridable
//! initializers here.

mod attribute;
mod budget;
mod contrib;
mod external_data;
mod function_call;
mod functions;
mod importer;
mod legacy;
pub mod messages;
mod node;
mod opsets;
mod scope;
mod shadowed_names;
mod sparse_tensor;
mod tensor;
mod topological_order;
mod traditional_ml;
mod typed_data;
mod value_types;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use oarlock_core::{Error, Result};
use prost::{DecodeError, Message as _};

use self::external_data::ExternalFiles;
use self::importer::OnnxImporter;
use self::messages::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use super::error_location::{ErrorLocation as _, invalid_model, quote_name};
use super::file_format::name_format;
use super::model_file::ModelFile;
use super::{MapKeys, ModelMetadata};
use crate::Model;
use crate::graph::Weight;
use oarlock_core::schema::{ONNX_ML_DOMAIN, displayed_domain, normalize_domain};

/// Supported versions of the file format. A newer one could change what a model means.
const IR_VERSIONS: std::ops::RangeInclusive<i64> = 3..=14;

/// Reads a model from a file, with its weights, which may be in external files beside it.
pub fn load_onnx(path: &Path) -> Result<Model> {
    let file = ModelFile::open(path)?;
    let read = || {
        // External files may lie beside the path or, if it is a symbolic link, beside its target: model caches keep the
        // model and its weights as links into one directory.
        let led_to = path.canonicalize().ok();
        let beside = [Some(path), led_to.as_deref()];
        let directories = beside.into_iter().flatten().filter_map(Path::parent);
        let directories = directories.map(or_current_directory).collect();
        let model = decoded_model(file.decode()?, file.size(), || file.read_ends())?;
        import_onnx(&model, || file.read_ends(), directories)
    };
    read().with_location(|| quote_name(&path.display().to_string()))
}

/// Reads a model from memory. External weights are resolved in `directory` and below; without one they are refused.
pub fn decode_onnx(bytes: Bytes, directory: Option<&Path>) -> Result<Model> {
    let model = decoded_model(ModelProto::decode(bytes.clone()), bytes.len() as u64, || bytes.to_vec())?;
    import_onnx(&model, || bytes.to_vec(), directory.into_iter().map(or_current_directory).collect())
}

/// Reads a tensor from a file of its own, as in ONNX's test suite.
pub fn load_tensor(path: &Path) -> Result<Weight> {
    let file = ModelFile::open(path)?;
    let read = || {
        let tensor: TensorProto = file
            .decode()?
            .map_err(|error| invalid_model("an ONNX tensor", format!("something else: {error}")))?;
        tensor::import_weight(&tensor, &mut ExternalFiles::new(Vec::new()))
    };
    read().with_location(|| quote_name(&path.display().to_string()))
}

/// Replaces the empty path by the current directory.
fn or_current_directory(directory: &Path) -> PathBuf {
    if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory.to_owned() }
}

/// The model as the decoder found it. `ends` are the bytes by which a foreign format is recognized.
fn decoded_model(
    decoded: std::result::Result<ModelProto, DecodeError>,
    size: u64,
    ends: impl FnOnce() -> Vec<u8>,
) -> Result<ModelProto> {
    if size == 0 {
        return Err(invalid_model("an ONNX model", "an empty file"));
    }
    decoded.map_err(|error| {
        let hint = "the file may be cut off, or of another format";
        let found = format!("{size} bytes that are no protobuf message of ONNX: {error}");
        name_format(invalid_model("an ONNX model", found).with_advice(hint), "an ONNX model", &ends())
    })
}

fn import_onnx(
    model: &ModelProto,
    ends: impl FnOnce() -> Vec<u8>,
    directories: Vec<PathBuf>,
) -> Result<Model> {
    let ir_version = model.ir_version.unwrap_or_default();
    if !IR_VERSIONS.contains(&ir_version) {
        let (oldest, newest) = (IR_VERSIONS.start(), IR_VERSIONS.end());
        let found = match model.ir_version {
            Some(version) => format!("{version}"),
            None => "none; is this an ONNX model?".to_owned(),
        };
        let error = invalid_model(format!("an IR version from {oldest} to {newest}"), found);
        return Err(name_format(Error::unimplemented(error.message()), "an ONNX model", &ends()));
    }
    let opsets = opsets::read_opset_imports(&model.opset_import)?;
    let graph = model.graph.as_ref().ok_or_else(|| invalid_model("a graph", "a model without one"))?;
    shadowed_names::check_shadowing(graph)?;
    let maps = map_keys(graph)?;
    let (graph, weight_files) = OnnxImporter::new(model, &opsets, directories)?.import_model(graph)?;
    let producer = [&model.producer_name, &model.producer_version];
    let producer: Vec<&str> = producer.into_iter().flatten().map(String::as_str).collect();
    let metadata =
        model.metadata_props.iter().map(|entry| (entry.key().to_owned(), entry.value().to_owned()));
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let labels = ModelMetadata {
        producer_name: text(&model.producer_name),
        domain: text(&model.domain),
        version: model.model_version,
        description: text(&model.doc_string),
        graph_description: model.graph.as_ref().map_or_else(String::new, |graph| text(&graph.doc_string)),
    };
    Ok(Model {
        graph,
        labels,
        maps,
        weight_files,
        format: format!("ONNX, IR {ir_version}"),
        producer: producer.join(" ").trim().to_owned(),
        metadata: metadata.collect(),
        opsets: opsets
            .into_iter()
            .map(|(domain, opset)| (displayed_domain(domain).to_owned(), opset))
            .collect::<BTreeMap<_, _>>(),
    })
}

/// The keys of the graph's outputs that a `ZipMap` makes. The node itself becomes an `Identity`.
fn map_keys(graph: &GraphProto) -> Result<BTreeMap<String, MapKeys>> {
    let outputs: HashSet<&str> = graph.output.iter().map(ValueInfoProto::name).collect();
    let is_map = |node: &&NodeProto| node.op_type() == "ZipMap" && node.domain() == ONNX_ML_DOMAIN;
    let mut keys = BTreeMap::new();
    for node in graph.node.iter().filter(is_map) {
        let Some(name) = node.output.first().filter(|name| outputs.contains(name.as_str())) else { continue };
        for attribute in &node.attribute {
            let found = match attribute.name() {
                "classlabels_int64s" if !attribute.ints.is_empty() => {
                    MapKeys::Numbers(attribute.ints.clone())
                }
                "classlabels_strings" if !attribute.strings.is_empty() => {
                    let texts = attribute.strings.iter().map(|text| tensor::utf8_text(text));
                    MapKeys::Texts(texts.collect::<Result<_>>()?)
                }
                _ => continue,
            };
            keys.insert(name.clone(), found);
        }
    }
    Ok(keys)
}
