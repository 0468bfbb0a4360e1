//! Paddle programs: arbitrary bytes, and programs of supported ops with arbitrary operands and attributes.
#![no_main]

#[expect(dead_code, reason = "the rest is for models that are run")]
mod message;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use oarlock_engine::graph;
use oarlock_engine::import::paddle::{self, messages::*};
use prost::Message as _;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
#[rustfmt::skip]
const OPS: [&str; 72] = [
    "arg_max", "assign", "assign_value", "batch_norm", "bilinear_interp_v2", "cast", "clip", "concat", "conv2d", "dropout",
    "elementwise_add", "expand_v2", "fc", "feed", "fetch", "fill_constant", "flatten_contiguous_range", "gather", "layer_norm",
    "lookup_table_v2", "matmul_v2", "mul", "pool2d", "reduce_mean", "relu", "reshape2", "scale", "slice", "split", "stack",
    "tile", "unsqueeze2", "cumsum", "fill_constant_batch_size_like", "group_norm", "one_hot_v2", "pad3d", "prelu", "unstack",
    "while", "conditional_block", "select_input", "write_to_array", "read_from_array", "lod_array_length", "tensor_array_to_tensor",
    "yolo_box", "prior_box", "box_coder", "multiclass_nms3", "roi_align", "unfold", "grid_sampler", "deformable_conv", "rnn",
    "conv2d_transpose", "conv3d", "max_pool2d_with_index", "quantize_linear", "fake_channel_wise_dequantize_max_abs", "set_value",
    "strided_slice", "put_along_axis", "argsort", "unique", "roll", "flip", "repeat_interleave", "maxout", "eye", "linspace",
    "crop_tensor",
];
/// Ops of Paddle 3.
#[rustfmt::skip]
const NEW_OPS: [&str; 24] = [
    "1.relu", "1.add", "1.full", "1.full_int_array", "1.reshape", "1.slice", "1.split", "1.sum", "1.matmul", "1.pool2d", "1.conv2d",
    "1.concat", "0.combine", "0.split", "0.slice", "1.create_array", "1.array_write_", "1.array_read", "1.array_to_tensor",
    "1.topk", "1.scale", "1.set_value_", "1.rnn", "1.unknown",
];
#[rustfmt::skip]
const OPERANDS: [&str; 16] = [
    "AxisTensor", "Bias", "Filter", "Ids", "Index", "Input", "Mean", "Min", "Out", "Output", "Scale", "Shape", "Variance", "W",
    "X", "Y",
];
#[rustfmt::skip]
const ATTRIBUTES: [&str; 44] = [
    "adaptive", "axes", "axis", "begin_norm_axis", "col", "decrease_axis", "dim", "dtype", "ends", "epsilon", "flatten",
    "in_num_col_dims", "is_test", "ksize", "out_dtype", "out_h", "padding_idx", "paddings", "pooling_type", "repeat_times",
    "scale", "sections", "shape", "start_axis", "starts", "stop_axis", "trans_x", "values",
    "sub_block", "is_scalar_condition", "anchors", "class_num", "min_sizes", "aspect_ratios", "variances", "kernel_sizes", "strides",
    "dilations", "groups", "mode", "num_layers", "quant_axis", "shifts", "offsets",
];
const TEXTS: [&str; 4] = ["avg", "max", "SAME", "NHWC"];

fuzz_target!(|bytes: &[u8]| {
    let Some((how, rest)) = bytes.split_first() else { return };
    let (rest, parameters) = rest.split_at(rest.len() - rest.len() / 4);
    let encoded = match how % 5 {
        0 => rest.to_vec(),
        4 => match json(&mut Unstructured::new(rest)) {
            Ok(program) => program.into_bytes(),
            Err(_) => return,
        },
        _ => match program(&mut Unstructured::new(rest)) {
            Ok(program) => program.encode_to_vec(),
            Err(_) => return,
        },
    };
    if let Ok(model) = paddle::decode_paddle(encoded.into(), Some(parameters.to_vec().into())) {
        graph::check_graph(&model.graph).expect("what is read is a graph");
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match data[..size].first() {
        Some(how) if how % 5 == 0 => message::mutate(data, size, max_size, parameters_size, seed),
        _ => fuzzer_mutate(data, size, max_size),
    }
});

/// Number of parameter bytes after a program of some size.
fn parameters_size(program: usize) -> usize {
    program / 3
}

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

/// Mostly a number in the range, sometimes any.
fn number(source: &mut Unstructured, from: i64, to: i64) -> Result<i64> {
    if source.ratio(1, 16)? { source.arbitrary() } else { source.int_in_range(from..=to) }
}

fn program(source: &mut Unstructured) -> Result<ProgramDesc> {
    let mut block =
        BlockDesc { vars: some(source, 6, variable)?, ops: some(source, 6, op)?, ..BlockDesc::default() };
    // The fed values exist from the start.
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
    let inner = some(source, 2, |source| {
        Ok(BlockDesc { vars: some(source, 2, variable)?, ops: some(source, 3, op)?, ..BlockDesc::default() })
    })?;
    Ok(ProgramDesc { blocks: [vec![block], inner].concat(), version: None })
}

/// A Paddle 3 program, with branches and loops.
fn json(source: &mut Unstructured) -> Result<String> {
    let block = block_in_json(source, 3)?;
    let kind = r#"{"magic":"pir","version":1}"#;
    Ok(format!(r#"{{"base_code":{kind},"program":{{"regions":[{block}]}}}}"#))
}

fn block_in_json(source: &mut Unstructured, deep: usize) -> Result<String> {
    let values = |source: &mut Unstructured, key: &str| {
        let kinds = [
            r##"{"#":"0.t_dtensor","D":[{"#":"0.t_f32"},[-1,2],"NCHW",[],0]}"##,
            r##"{"#":"0.t_vec","D":[{"#":"0.t_dtensor","D":[{"#":"0.t_i64"},[2],"NCHW",[],0]}]}"##,
            r##"{"#":"1.t_dense_tensor_array","D":[{"#":"0.t_f32"},[-1],"NCHW"]}"##,
        ];
        let all = some(source, 2, |source| {
            Ok(format!(r#"{{"{key}":{},"TT":{}}}"#, number(source, -2, 9)?, source.choose(&kinds)?))
        })?;
        Ok::<_, libfuzzer_sys::arbitrary::Error>(all.join(","))
    };
    let ops = some(source, 6, |source| {
        let name = match source.int_in_range(0..=4)? {
            0 if deep > 0 => "1.if",
            1 if deep > 0 => "1.while",
            2 => "2.yield",
            _ => source.choose(&NEW_OPS)?,
        };
        let regions = match name {
            "1.if" => vec![block_in_json(source, deep - 1)?, block_in_json(source, deep - 1)?],
            "1.while" => vec![block_in_json(source, deep - 1)?],
            _ => Vec::new(),
        };
        let attribute = |source: &mut Unstructured| {
            let values = [
                r##"{"#":"0.a_i32","D":1}"##,
                r##"{"#":"0.a_f64","VD":"INF"}"##,
                r##"{"#":"0.a_f64","D":1e300}"##,
                r##"{"#":"0.a_bool","D":true}"##,
                r##"{"#":"0.a_array","D":[{"#":"0.a_i64","D":-1},{"#":"0.a_i64","D":2}]}"##,
                r##"{"#":"1.a_intarray","D":[2,3]}"##,
                r##"{"#":"1.a_dtype","D":"int64"}"##,
            ];
            let name = one(source, &ATTRIBUTES)?.unwrap_or_default();
            Ok(format!(r#"{{"N":"{name}","AT":{}}}"#, source.choose(&values)?))
        };
        let (attributes, inputs, outputs) =
            (some(source, 3, attribute)?.join(","), values(source, "%")?, values(source, "%")?);
        let regions = regions.join(",");
        Ok(format!(
            r##"{{"#":"{name}","A":[{attributes}],"I":[{inputs}],"O":[{outputs}],"regions":[{regions}]}}"##
        ))
    })?;
    let feed = r##"{"#":"1.data","A":[{"N":"name","AT":{"#":"0.a_str","D":"x"}}],"I":[],"O":[{"%":1,"TT":{"#":"0.t_dtensor","D":[{"#":"0.t_f32"},[-1,2],"NCHW",[],0]}}]}"##;
    let ops: Vec<String> = [feed.to_owned()].into_iter().filter(|_| deep == 3).chain(ops).collect();
    let arguments = values(source, "#")?;
    Ok(format!(r#"{{"blocks":[{{"args":[{arguments}],"ops":[{}]}}]}}"#, ops.join(",")))
}

fn variable(source: &mut Unstructured) -> Result<VarDesc> {
    let tensor = var_type::TensorDesc {
        data_type: Some(number(source, 0, 6)? as i32),
        dims: some(source, 4, |source| number(source, -1, 4))?,
    };
    let kind = VarType {
        r#type: Some(number(source, 7, 13)? as i32),
        dense_tensor: Some(var_type::DenseTensorDesc { tensor: Some(tensor) }),
        tensor_array: None,
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
    match source.int_in_range(0..=8)? {
        0 => attribute.i = Some(number(source, -2, 6)? as i32),
        1 => attribute.l = Some(number(source, -2, 6)?),
        2 => attribute.f = Some(source.arbitrary()?),
        3 => attribute.b = Some(source.arbitrary()?),
        4 => attribute.s = one(source, &TEXTS)?,
        5 => attribute.block_idx = Some(number(source, 0, 2)? as i32),
        6 => attribute.floats = some(source, 4, |source| source.arbitrary())?,
        7 => attribute.longs = some(source, 4, |source| number(source, -1, 6))?,
        _ => attribute.ints = some(source, 4, |source| Ok(number(source, -1, 6)? as i32))?,
    }
    Ok(attribute)
}
