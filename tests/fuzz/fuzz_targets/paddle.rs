//! Programs of Paddle: any bytes, and programs of ops that are supported, with operands and attributes that may be any.
#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use oarlock_engine::graph;
use oarlock_engine::import::paddle::{self, messages::*};
use prost::Message as _;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
#[rustfmt::skip]
const OPS: [&str; 39] = [
    "arg_max", "assign", "assign_value", "batch_norm", "bilinear_interp_v2", "cast", "clip", "concat", "conv2d", "dropout",
    "elementwise_add", "expand_v2", "fc", "feed", "fetch", "fill_constant", "flatten_contiguous_range", "gather", "layer_norm",
    "lookup_table_v2", "matmul_v2", "mul", "pool2d", "reduce_mean", "relu", "reshape2", "scale", "slice", "split", "stack",
    "tile", "unsqueeze2", "cumsum", "fill_constant_batch_size_like", "group_norm", "one_hot_v2", "pad3d", "prelu", "unstack",
];
#[rustfmt::skip]
const OPERANDS: [&str; 16] = [
    "AxisTensor", "Bias", "Filter", "Ids", "Index", "Input", "Mean", "Min", "Out", "Output", "Scale", "Shape", "Variance", "W",
    "X", "Y",
];
#[rustfmt::skip]
const ATTRIBUTES: [&str; 28] = [
    "adaptive", "axes", "axis", "begin_norm_axis", "col", "decrease_axis", "dim", "dtype", "ends", "epsilon", "flatten",
    "in_num_col_dims", "is_test", "ksize", "out_dtype", "out_h", "padding_idx", "paddings", "pooling_type", "repeat_times",
    "scale", "sections", "shape", "start_axis", "starts", "stop_axis", "trans_x", "values",
];
const TEXTS: [&str; 4] = ["avg", "max", "SAME", "NHWC"];

fuzz_target!(|bytes: &[u8]| {
    let Some((how, rest)) = bytes.split_first() else { return };
    let (rest, parameters) = rest.split_at(rest.len() - rest.len() / 4);
    let encoded = match how % 4 {
        0 => rest.to_vec(),
        _ => match program(&mut Unstructured::new(rest)) {
            Ok(program) => program.encode_to_vec(),
            Err(_) => return,
        },
    };
    if let Ok(model) = paddle::decode(encoded.into(), Some(parameters.to_vec().into())) {
        graph::check(&model.graph).expect("what is read is a graph");
    }
});

fn some<T>(
    source: &mut Unstructured,
    most: usize,
    make: impl Fn(&mut Unstructured) -> Result<T>,
) -> Result<Vec<T>> {
    (0..source.int_in_range(0..=most)?).map(|_| make(source)).collect()
}

fn one(source: &mut Unstructured, of: &[&str]) -> Result<Option<String>> {
    Ok(Some((*source.choose(of)?).to_owned()))
}

/// Mostly a number in a range, and sometimes any.
fn number(source: &mut Unstructured, from: i64, to: i64) -> Result<i64> {
    if source.ratio(1, 16)? { source.arbitrary() } else { source.int_in_range(from..=to) }
}

fn program(source: &mut Unstructured) -> Result<ProgramDesc> {
    let mut block =
        BlockDesc { vars: some(source, 6, variable)?, ops: some(source, 6, op)?, ..BlockDesc::default() };
    // What is fed is what there is to begin with.
    for (column, name) in NAMES.iter().take(4).enumerate() {
        let out = op_desc::Var { parameter: Some("Out".into()), arguments: vec![(*name).to_owned()] };
        let column = op_desc::Attr { i: Some(column as i32), name: Some("col".into()), ..Default::default() };
        let feed = OpDesc {
            r#type: Some("feed".into()),
            outputs: vec![out],
            attrs: vec![column],
            ..Default::default()
        };
        block.ops.insert(0, feed);
    }
    Ok(ProgramDesc { blocks: vec![block], version: None })
}

fn variable(source: &mut Unstructured) -> Result<VarDesc> {
    let tensor = var_type::TensorDesc {
        data_type: Some(number(source, 0, 6)? as i32),
        dims: some(source, 4, |source| number(source, -1, 4))?,
    };
    let kind = VarType {
        r#type: Some(number(source, 7, 10)? as i32),
        dense_tensor: Some(var_type::DenseTensorDesc { tensor: Some(tensor) }),
    };
    Ok(VarDesc { name: one(source, &NAMES)?, r#type: Some(kind), persistable: Some(source.ratio(1, 8)?) })
}

fn operands(source: &mut Unstructured) -> Result<op_desc::Var> {
    Ok(op_desc::Var {
        parameter: one(source, &OPERANDS)?,
        arguments: some(source, 3, |source| Ok((*source.choose(&NAMES)?).to_owned()))?,
    })
}

fn op(source: &mut Unstructured) -> Result<OpDesc> {
    Ok(OpDesc {
        r#type: one(source, &OPS)?,
        inputs: some(source, 4, operands)?,
        outputs: some(source, 2, operands)?,
        attrs: some(source, 4, attribute)?,
    })
}

fn attribute(source: &mut Unstructured) -> Result<op_desc::Attr> {
    let mut attribute = op_desc::Attr { name: one(source, &ATTRIBUTES)?, ..op_desc::Attr::default() };
    match source.int_in_range(0..=6)? {
        0 => attribute.i = Some(number(source, -2, 6)? as i32),
        1 => attribute.l = Some(number(source, -2, 6)?),
        2 => attribute.f = Some(source.arbitrary()?),
        3 => attribute.b = Some(source.arbitrary()?),
        4 => attribute.s = one(source, &TEXTS)?,
        5 => attribute.longs = some(source, 4, |source| number(source, -1, 6))?,
        _ => attribute.ints = some(source, 4, |source| Ok(number(source, -1, 6)? as i32))?,
    }
    Ok(attribute)
}
