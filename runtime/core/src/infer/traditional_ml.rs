//! Classical machine learning: the ops of the domain `ai.onnx.ml`.

use super::context::{InferenceContext, attribute_error};
use super::fact::{DisplayDims, PartialDim, PartialDims};
use super::output::{InferredOutput, PartialShape, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::schema::ONNX_ML_DOMAIN;
use crate::{Attribute, Dtype, Error, Result};

pub(super) const RULES: &[InferenceRule] = &[
    rule("Binarizer Imputer Scaler Normalizer", 1, LATEST, &[], |call| single_output(call.input_shape(0)?))
        .in_domain(ONNX_ML_DOMAIN),
    rule("ArrayFeatureExtractor", 1, LATEST, &[], infer_feature_extractor).in_domain(ONNX_ML_DOMAIN),
    rule("FeatureVectorizer", 1, LATEST, &[], infer_feature_vectorizer).in_domain(ONNX_ML_DOMAIN),
    rule("OneHotEncoder", 1, LATEST, &[], infer_one_hot_encoder).in_domain(ONNX_ML_DOMAIN),
    rule("LabelEncoder", 1, 1, &[], infer_class_encoder).in_domain(ONNX_ML_DOMAIN),
    rule("LabelEncoder", 2, LATEST, &[], infer_label_encoder).in_domain(ONNX_ML_DOMAIN),
    rule("LinearRegressor", 1, LATEST, &[], infer_linear_regressor).in_domain(ONNX_ML_DOMAIN),
    rule("TreeEnsemble TreeEnsembleRegressor", 1, LATEST, &[], |call| infer_regressor(call, "n_targets"))
        .in_domain(ONNX_ML_DOMAIN),
    rule("SVMRegressor", 1, LATEST, &[], |call| {
        single_output([row_count(call)?, PartialDim::Known(1)].as_slice())
    })
    .in_domain(ONNX_ML_DOMAIN),
    rule("SVMClassifier", 1, LATEST, &[], infer_svm_classifier).in_domain(ONNX_ML_DOMAIN),
    rule("LinearClassifier", 1, LATEST, &[], infer_linear_classifier).in_domain(ONNX_ML_DOMAIN),
    rule("TreeEnsembleClassifier", 1, LATEST, &[], |call| infer_classifier(call, "classlabels_int64s"))
        .in_domain(ONNX_ML_DOMAIN),
];

/// The number of rows of features. A single row may come without a dimension for rows.
fn row_count(call: &InferenceContext<'_>) -> Result<PartialDim> {
    match call.input_dims(0)? {
        None => Ok(PartialDim::Unknown),
        Some([_]) => Ok(PartialDim::Known(1)),
        Some([rows, _]) => Ok(*rows),
        Some(dims) => Err(call.input_error(0, "one or two dimensions", DisplayDims(dims))),
    }
}

fn infer_feature_extractor(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let indices = match call.input_dims(1)? {
        Some(dims) => super::fact::dim_product(dims)?,
        None => PartialDim::Unknown,
    };
    let Some(dims) = call.dims_of_at_least(0, 1)? else { return single_output(None) };
    let outer = if dims.len() == 1 { &[PartialDim::Known(1)] } else { &dims[..dims.len() - 1] };
    single_output(outer.iter().copied().chain([indices]).collect::<PartialDims>())
}

fn infer_feature_vectorizer(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let widths = call.ints_attribute("inputdimensions")?.unwrap_or_default();
    let total =
        widths.iter().try_fold(PartialDim::Known(0), |sum, width| sum.try_add(PartialDim::Known(*width)))?;
    if widths.iter().any(|width| *width < 0) {
        return Err(attribute_error("inputdimensions", "sizes of at least 0", format!("{widths:?}")));
    }
    single_output([row_count(call)?, total].as_slice())
}

fn attribute_length(call: &InferenceContext<'_>, name: &str) -> Option<usize> {
    match call.attribute(name)? {
        Attribute::Ints(list) => Some(list.len()),
        Attribute::Floats(list) => Some(list.len()),
        Attribute::Strings(list) => Some(list.len()),
        _ => None,
    }
}

fn infer_one_hot_encoder(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let is_text = call.input(0)?.dtype == Dtype::String;
    let categories =
        attribute_length(call, if is_text { "cats_strings" } else { "cats_int64s" }).unwrap_or(0);
    let with_categories =
        |dims: &[PartialDim]| dims.iter().copied().chain([PartialDim::from(categories)]).collect();
    single_output(call.input_dims(0)?.map(with_categories) as PartialShape)
}

/// Version 1 maps strings to integers and integers to strings.
fn infer_class_encoder(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let dtype = if call.input(0)?.dtype == Dtype::String { Dtype::I64 } else { Dtype::String };
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(dtype))
}

fn infer_label_encoder(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let is_there = |name| attribute_length(call, name).is_some();
    let dtype = match () {
        () if is_there("values_strings") => Dtype::String,
        () if is_there("values_int64s") => Dtype::I64,
        () if is_there("values_floats") => Dtype::F32,
        () => {
            let values = call.tensor_attribute("values_tensor")?;
            values.map(crate::Constant::dtype).ok_or_else(|| {
                Error::invalid_argument(
                    "expected an attribute with values such as `values_int64s`, found none",
                )
            })?
        }
    };
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(dtype))
}

fn infer_regressor(call: &InferenceContext<'_>, attribute: &str) -> Result<Vec<InferredOutput>> {
    let targets = match call.int_attribute(attribute)? {
        Some(targets) if targets < 1 => return Err(attribute_error(attribute, "at least 1", targets)),
        Some(targets) => targets,
        // Without the attribute, the highest target of a leaf determines the number.
        None => {
            let list = ["leaf_targetids", "target_ids"].map(|name| call.ints_attribute(name));
            let [of_leaves, of_nodes] = list;
            let ids = of_leaves?.or(of_nodes?).unwrap_or_default();
            ids.iter().max().map_or(1, |last| last.saturating_add(1))
        }
    };
    single_output([row_count(call)?, PartialDim::Known(targets)].as_slice())
}

/// The class of each row, and the scores of all classes.
fn infer_classifier(call: &InferenceContext<'_>, numbers: &str) -> Result<Vec<InferredOutput>> {
    let (numbers, words) = (
        attribute_length(call, numbers).unwrap_or(0),
        attribute_length(call, "classlabels_strings").unwrap_or(0),
    );
    let (classes, dtype) = if words > 0 { (words, Dtype::String) } else { (numbers, Dtype::I64) };
    let rows = row_count(call)?;
    let scores = InferredOutput::from([rows, PartialDim::from(classes)].as_slice()).with_dtype(Dtype::F32);
    Ok(vec![InferredOutput::from([rows].as_slice()).with_dtype(dtype), scores])
}

/// Each intercept belongs to a result, and there may be more labels than that. One result tells two classes apart by its sign;
/// without labels, they are 0 and 1, and there is only the score of the second.
fn infer_linear_classifier(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let mut outputs = infer_classifier(call, "classlabels_ints")?;
    let count = |name| attribute_length(call, name).unwrap_or(0);
    let (texts, intercepts) = (count("classlabels_strings"), count("intercepts"));
    let labels = if texts > 0 { texts } else { count("classlabels_ints") };
    let results = if intercepts > 0 { intercepts } else { labels };
    match (results, labels) {
        (0, _) => return Err(attribute_error("classlabels_ints", "labels of classes", "none")),
        (1, 0) => {
            outputs[1] = InferredOutput::from([row_count(call)?, PartialDim::Known(1)].as_slice())
                .with_dtype(Dtype::F32);
        }
        (1, 2) => {}
        (1, _) => return Err(attribute_error("intercepts", format!("one for each of {labels} classes"), 1)),
        (results, labels) if results <= labels => {
            outputs[1] = InferredOutput::from([row_count(call)?, PartialDim::from(results)].as_slice())
                .with_dtype(Dtype::F32);
        }
        _ => {
            return Err(attribute_error(
                "intercepts",
                format!("at most one for each of {labels} classes"),
                intercepts,
            ));
        }
    }
    expect_coefficients(call, results)?;
    Ok(outputs)
}

fn infer_linear_regressor(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let outputs = infer_regressor(call, "targets")?;
    let targets = usize::try_from(call.int_attribute("targets")?.unwrap_or(1)).unwrap_or(usize::MAX);
    let intercepts = attribute_length(call, "intercepts").unwrap_or(0);
    if intercepts > 0 && intercepts != targets {
        return Err(attribute_error(
            "intercepts",
            format!("none or one for each of {targets} targets"),
            intercepts,
        ));
    }
    expect_coefficients(call, targets)?;
    Ok(outputs)
}

/// Checks that there is a coefficient for each feature of each result. There may be more, as in models made for more features;
/// like onnxruntime, kernels then read those at the front.
fn expect_coefficients(call: &InferenceContext<'_>, results: usize) -> Result<()> {
    let found = attribute_length(call, "coefficients").unwrap_or(0);
    let Some([.., PartialDim::Known(features)]) = call.input_dims(0)? else { return Ok(()) };
    let wanted = usize::try_from(*features).ok().and_then(|features| features.checked_mul(results));
    if wanted.is_none_or(|wanted| wanted > found) {
        return Err(attribute_error(
            "coefficients",
            format!("at least one for each of {features} features and {results} results"),
            found,
        ));
    }
    Ok(())
}

/// Like [`infer_classifier`], but without probabilities there is a score for each pair of classes if there are more
/// than two.
fn infer_svm_classifier(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let mut outputs = infer_classifier(call, "classlabels_ints")?;
    let is_given = |name| attribute_length(call, name).is_some_and(|count| count > 0);
    let labels = attribute_length(call, "classlabels_ints")
        .max(attribute_length(call, "classlabels_strings"))
        .unwrap_or(0);
    if is_given("vectors_per_class") && !is_given("prob_a") && labels > 2 {
        let pairs = PartialDim::Known(labels as i64).try_mul(labels as i64 - 1)?.try_div(2)?;
        outputs[1] = InferredOutput::from([row_count(call)?, pairs].as_slice()).with_dtype(Dtype::F32);
    }
    Ok(outputs)
}
