//! Models that are no networks: the ops of the domain `ai.onnx.ml`.

use super::call::{Call, wrong_attribute};
use super::fact::{Dim, Listed, PartialDims};
use super::output::{Output, Shape, one};
use super::table::{LATEST, Rule, rule};
use crate::{Attribute, Dtype, Error, Result};

const DOMAIN: &str = "ai.onnx.ml";

pub(super) const RULES: &[Rule] = &[
    rule("Binarizer Imputer Scaler Normalizer", 1, LATEST, &[], |call| one(call.shape(0)?)).of_domain(DOMAIN),
    rule("ArrayFeatureExtractor", 1, LATEST, &[], extract).of_domain(DOMAIN),
    rule("FeatureVectorizer", 1, LATEST, &[], put_side_by_side).of_domain(DOMAIN),
    rule("OneHotEncoder", 1, LATEST, &[], one_hot).of_domain(DOMAIN),
    rule("LabelEncoder", 1, 1, &[], label_by_class).of_domain(DOMAIN),
    rule("LabelEncoder", 2, LATEST, &[], label).of_domain(DOMAIN),
    rule("LinearRegressor", 1, LATEST, &[], |call| regress(call, "targets")).of_domain(DOMAIN),
    rule("TreeEnsemble TreeEnsembleRegressor", 1, LATEST, &[], |call| regress(call, "n_targets"))
        .of_domain(DOMAIN),
    rule("SVMRegressor", 1, LATEST, &[], |call| one([rows(call)?, Dim::Known(1)].as_slice()))
        .of_domain(DOMAIN),
    rule("SVMClassifier", 1, LATEST, &[], classify_by_vectors).of_domain(DOMAIN),
    rule("LinearClassifier", 1, LATEST, &[], |call| classify(call, "classlabels_ints")).of_domain(DOMAIN),
    rule("TreeEnsembleClassifier", 1, LATEST, &[], |call| classify(call, "classlabels_int64s"))
        .of_domain(DOMAIN),
];

/// How many rows of features there are. A single row may come without a dimension of its own.
fn rows(call: &Call<'_>) -> Result<Dim> {
    match call.dims(0)? {
        None => Ok(Dim::Unknown),
        Some([_]) => Ok(Dim::Known(1)),
        Some([rows, _]) => Ok(*rows),
        Some(dims) => Err(call.wrong(0, "one or two dimensions", Listed(dims))),
    }
}

fn extract(call: &Call<'_>) -> Result<Vec<Output>> {
    let indices = match call.dims(1)? {
        Some(dims) => super::fact::product(dims)?,
        None => Dim::Unknown,
    };
    let Some(dims) = call.dims_of_at_least(0, 1)? else { return one(None) };
    let outer = if dims.len() == 1 { &[Dim::Known(1)] } else { &dims[..dims.len() - 1] };
    one(outer.iter().copied().chain([indices]).collect::<PartialDims>())
}

fn put_side_by_side(call: &Call<'_>) -> Result<Vec<Output>> {
    let widths = call.int_list("inputdimensions")?.unwrap_or_default();
    let total = widths.iter().try_fold(Dim::Known(0), |sum, width| sum.plus(Dim::Known(*width)))?;
    if widths.iter().any(|width| *width < 0) {
        return Err(wrong_attribute("inputdimensions", "sizes of at least 0", format!("{widths:?}")));
    }
    one([rows(call)?, total].as_slice())
}

/// How many items a list has that is an attribute.
fn count(call: &Call<'_>, name: &str) -> Option<usize> {
    match call.attribute(name)? {
        Attribute::Ints(list) => Some(list.len()),
        Attribute::Floats(list) => Some(list.len()),
        Attribute::Strings(list) => Some(list.len()),
        _ => None,
    }
}

fn one_hot(call: &Call<'_>) -> Result<Vec<Output>> {
    let is_text = call.input(0)?.dtype == Dtype::String;
    let categories = count(call, if is_text { "cats_strings" } else { "cats_int64s" }).unwrap_or(0);
    let with_categories = |dims: &[Dim]| dims.iter().copied().chain([Dim::from(categories)]).collect();
    one(call.dims(0)?.map(with_categories) as Shape)
}

/// Version 1 turns classes into numbers and numbers into classes.
fn label_by_class(call: &Call<'_>) -> Result<Vec<Output>> {
    let dtype = if call.input(0)?.dtype == Dtype::String { Dtype::I64 } else { Dtype::String };
    one(Output::from(call.shape(0)?).of_dtype(dtype))
}

fn label(call: &Call<'_>) -> Result<Vec<Output>> {
    let is_there = |name| count(call, name).is_some();
    let dtype = match () {
        () if is_there("values_strings") => Dtype::String,
        () if is_there("values_int64s") => Dtype::I64,
        () if is_there("values_floats") => Dtype::F32,
        () => {
            let values = call.constant("values_tensor")?;
            values.map(crate::Constant::dtype).ok_or_else(|| {
                Error::invalid_argument(
                    "expected an attribute with values such as `values_int64s`, found none",
                )
            })?
        }
    };
    one(Output::from(call.shape(0)?).of_dtype(dtype))
}

fn regress(call: &Call<'_>, attribute: &str) -> Result<Vec<Output>> {
    let targets = match call.int(attribute)? {
        Some(targets) if targets < 1 => return Err(wrong_attribute(attribute, "at least 1", targets)),
        Some(targets) => targets,
        // Without a number, as many as leaves vote for.
        None => {
            let list = ["leaf_targetids", "target_ids"].map(|name| call.int_list(name));
            let [of_leaves, of_nodes] = list;
            let ids = of_leaves?.or(of_nodes?).unwrap_or_default();
            ids.iter().max().map_or(1, |last| last.saturating_add(1))
        }
    };
    one([rows(call)?, Dim::Known(targets)].as_slice())
}

/// The class of each row, and the scores of all classes.
fn classify(call: &Call<'_>, numbers: &str) -> Result<Vec<Output>> {
    let (numbers, words) =
        (count(call, numbers).unwrap_or(0), count(call, "classlabels_strings").unwrap_or(0));
    let (classes, dtype) = if words > 0 { (words, Dtype::String) } else { (numbers, Dtype::I64) };
    let rows = rows(call)?;
    let scores = Output::from([rows, Dim::from(classes)].as_slice()).of_dtype(Dtype::F32);
    Ok(vec![Output::from([rows].as_slice()).of_dtype(dtype), scores])
}

/// The same by support vectors: without probabilities there is a score for each pair of more than two classes.
fn classify_by_vectors(call: &Call<'_>) -> Result<Vec<Output>> {
    let mut outputs = classify(call, "classlabels_ints")?;
    let is_given = |name| count(call, name).is_some_and(|count| count > 0);
    let labels = count(call, "classlabels_ints").max(count(call, "classlabels_strings")).unwrap_or(0);
    if is_given("vectors_per_class") && !is_given("prob_a") && labels > 2 {
        let pairs = Dim::Known(labels as i64).times(labels as i64 - 1)?.over(2)?;
        outputs[1] = Output::from([rows(call)?, pairs].as_slice()).of_dtype(Dtype::F32);
    }
    Ok(outputs)
}
