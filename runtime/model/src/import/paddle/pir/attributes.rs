//! Converts attributes and types.

use oarlock_core::Result;
use serde_json::Value;

use crate::import::error_location::{invalid_model, quote_name};
use crate::import::paddle::TENSOR_ARRAY_TYPE;
use crate::import::paddle::messages::{VarType, op_desc::Attr, var_type};

/// The Paddle 2 number for the variable type of a tensor.
const DENSE_TENSOR_TYPE: i32 = 7;

/// The Paddle 2 number of a dtype, by its name in types (`f32`) or attributes (`float32`).
fn dtype_number(name: &str) -> Option<i32> {
    Some(match name {
        "bool" => 0,
        "i16" | "int16" => 1,
        "i32" | "int32" => 2,
        "i64" | "int64" => 3,
        "f16" | "float16" => 4,
        "f32" | "float32" => 5,
        "f64" | "float64" => 6,
        "ui8" | "uint8" => 20,
        "i8" | "int8" => 21,
        "bf16" | "bfloat16" => 22,
        "c64" | "complex64" => 23,
        "c128" | "complex128" => 24,
        "f8e4m3fn" | "float8_e4m3fn" => 32,
        "f8e5m2" | "float8_e5m2" => 33,
        _ => return None,
    })
}

/// Strips the dialect from a name, as in `0.t_f32`.
pub(super) fn strip_dialect(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, name)| name)
}

fn type_tag(value: &Value) -> &str {
    value.get("#").and_then(Value::as_str).map_or("", strip_dialect)
}

/// The types of a value, or of each element if it is a list.
pub(super) fn value_types(kind: &Value) -> Result<Vec<Option<VarType>>> {
    let data = || kind.get("D").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match type_tag(kind) {
        "t_vec" => {
            let mut all = Vec::new();
            for element in data() {
                all.extend(value_types(element)?);
            }
            Ok(all)
        }
        "t_dtensor" => Ok(vec![Some(VarType {
            r#type: Some(DENSE_TENSOR_TYPE),
            dense_tensor: Some(tensor_desc(data())?),
            tensor_array: None,
        })]),
        "t_dense_tensor_array" => Ok(vec![Some(VarType {
            r#type: Some(TENSOR_ARRAY_TYPE),
            dense_tensor: None,
            tensor_array: tensor_desc(data()).ok(),
        })]),
        _ => Ok(vec![None]),
    }
}

fn tensor_desc(data: &[Value]) -> Result<var_type::DenseTensorDesc> {
    let [element, dims, ..] = data else { return Err(invalid_model("the type of a tensor", "none")) };
    let name = type_tag(element);
    let data_type = name.strip_prefix("t_").and_then(dtype_number);
    let data_type = data_type.ok_or_else(|| invalid_model("a dtype of Paddle", quote_name(name)))?;
    let dims = dims.as_array().map(Vec::as_slice).unwrap_or_default();
    let dims: Option<Vec<i64>> = dims.iter().map(Value::as_i64).collect();
    let dims = dims.ok_or_else(|| invalid_model("sizes of dimensions", "something else"))?;
    let tensor = Some(var_type::TensorDesc { data_type: Some(data_type), dims });
    Ok(var_type::DenseTensorDesc { tensor })
}

/// A number. JSON has no infinity or NaN, so those are strings.
fn attribute_number(attribute: &Value) -> Option<f64> {
    match attribute.get("VD").and_then(Value::as_str) {
        Some("INF") => Some(f64::INFINITY),
        Some("-INF") => Some(f64::NEG_INFINITY),
        Some(_) => Some(f64::NAN),
        None => attribute.get("D").and_then(Value::as_f64),
    }
}

/// Converts an attribute and renames it. Attributes that do not affect results are dropped.
pub(super) fn convert_attribute(value: &Value, rename: impl Fn(&str) -> String) -> Option<Attr> {
    let name = value.get("N")?.as_str()?;
    let typed = value.get("AT")?;
    let data = typed.get("D");
    let mut result = Attr { name: Some(rename(name)), ..Attr::default() };
    match type_tag(typed) {
        "a_bool" => result.b = Some(data?.as_bool()?),
        "a_i32" | "a_i64" | "a_ui64" | "a_idx" => result.l = Some(data?.as_i64()?),
        "a_f32" | "a_f64" => result.float64 = Some(attribute_number(typed)?),
        "a_str" => result.s = Some(data?.as_str()?.to_owned()),
        "a_dtype" => result.l = Some(i64::from(dtype_number(data?.as_str()?).unwrap_or(-1))),
        "a_intarray" => result.longs = data?.as_array()?.iter().filter_map(Value::as_i64).collect(),
        "a_array" => {
            for element in data?.as_array()? {
                match type_tag(element) {
                    "a_bool" => result.bools.push(element.get("D")?.as_bool()?),
                    "a_f32" | "a_f64" => result.float64s.push(attribute_number(element)?),
                    "a_str" => result.strings.push(element.get("D")?.as_str()?.to_owned()),
                    _ => result.longs.push(element.get("D")?.as_i64()?),
                }
            }
        }
        _ => return None,
    }
    Some(result)
}
