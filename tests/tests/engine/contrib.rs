//! The ops that onnxruntime adds to ONNX: results that are known without a reference implementation, and refusals.
//! `tests/tests/backend` compares the rest.

use oarlock_core::{Element, Tensor};
use oarlock_engine::RuntimeValue;
use oarlock_engine::import::onnx::messages::tensor_proto::DataType;

use crate::onnx_file::{OnnxFile, float_attribute, int_attribute, ints_attribute, text_attribute};
use crate::sketch::{SHARED_RUNTIME, float_datum, random_datum, random_floats};

fn read_floats(datum: &RuntimeValue) -> Vec<f32> {
    datum.as_tensor().and_then(Tensor::to_vec).unwrap_or_else(|error| panic!("{error}"))
}

fn datum_dims(datum: &RuntimeValue) -> Vec<i64> {
    datum.as_tensor().expect("a tensor").dims().to_vec()
}

fn datum_of<T: Element>(dims: &[i64], elements: &[T]) -> RuntimeValue {
    let cpu = SHARED_RUNTIME.device("cpu").expect("the CPU");
    Tensor::from_slice(&cpu, dims, elements).expect("a tensor").into()
}

fn assert_near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let is_near = (found - expected).abs() <= 1e-5 + 1e-4 * expected.abs();
        assert!(is_near, "element {at}: expected {expected}, found {found}");
    }
}

fn import_refusal(file: &OnnxFile) -> String {
    let error = file.import_model().map(drop).expect_err("a refusal");
    format!("{error}; {}", error.advice().unwrap_or_default())
}

#[test]
fn a_sum_comes_before_an_activation() {
    let mut file = OnnxFile::default();
    file.add_input("x", DataType::Float, &[-1, -1]).add_floats("b", &[3], &[1.0, -1.0, 0.5]);
    file.add_node("FastGelu", "x b", "y", &[])
        .add_node("QuickGelu", "x", "z", &[float_attribute("alpha", 2.0)])
        .add_outputs("y z");
    let x = [0.5, 2.0, -1.0, 3.0, 0.0, 0.25_f32];
    let made = file.run_model(&[float_datum(&[2, 3], &x)]);
    let gelu = |x: f32| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh());
    let sums: Vec<f32> = x.iter().zip([1.0, -1.0, 0.5].iter().cycle()).map(|(x, b)| gelu(x + b)).collect();
    assert_near(&read_floats(&made[0]), &sums);
    let quick: Vec<f32> = x.iter().map(|x| x / (1.0 + (-2.0 * x).exp())).collect();
    assert_near(&read_floats(&made[1]), &quick);
}

#[test]
fn a_half_of_a_sum_is_the_gate_of_the_other() {
    let mut file = OnnxFile::default();
    file.add_input("x", DataType::Float, &[-1, -1, -1]).add_floats("b", &[4], &[1.0, 0.0, -1.0, 0.5]);
    file.add_node("BiasSplitGelu", "x b", "h", &[]).add_floats("c", &[2], &[10.0, 20.0]);
    file.add_node("BiasAdd", "h c h", "y", &[]).add_outputs("h y");
    let made = file.run_model(&[float_datum(&[1, 1, 4], &[1.0, 3.0, 2.0, -0.5])]);
    // GELU of 1 and of 0.
    let halves = [2.0 * 0.841_344_7, 0.0];
    assert_near(&read_floats(&made[0]), &halves);
    assert_near(&read_floats(&made[1]), &[2.0 * halves[0] + 10.0, 20.0]);
}

#[test]
fn distances_are_those_between_rows() {
    for (metric, root) in [("euclidean", true), ("sqeuclidean", false)] {
        let mut file = OnnxFile::default();
        file.add_input("a", DataType::Float, &[-1, -1]).add_input("b", DataType::Float, &[-1, -1]);
        file.add_node("CDist", "a b", "y", &[text_attribute("metric", metric)]).add_outputs("y");
        let made = file.run_model(&[
            float_datum(&[2, 2], &[0.0, 0.0, 1.0, 1.0]),
            float_datum(&[3, 2], &[3.0, 4.0, 1.0, 1.0, 0.0, 1.0]),
        ]);
        assert_eq!(datum_dims(&made[0]), [2, 3]);
        let squares = [25.0, 2.0, 1.0, 13.0, 0.0, 1.0_f32];
        let expected = squares.map(|square| if root { square.sqrt() } else { square });
        assert_near(&read_floats(&made[0]), &expected);
    }
    let mut file = OnnxFile::default();
    file.add_input("a", DataType::Float, &[-1, -1]);
    file.add_node("CDist", "a a", "y", &[text_attribute("metric", "cosine")]).add_outputs("y");
    assert!(import_refusal(&file).contains("`sqeuclidean`"), "{}", import_refusal(&file));
}

#[test]
fn pixels_of_a_grid_are_mixed_as_onnx_does_it() {
    for (mode, corner) in [("bilinear", 2.5), ("nearest", 1.0)] {
        let mut file = OnnxFile::default();
        file.add_input("x", DataType::Float, &[1, 1, 2, 2]).add_floats("g", &[1, 1, 1, 2], &[-0.1, -0.1]);
        file.add_node(
            "GridSample",
            "x g",
            "y",
            &[text_attribute("mode", mode), int_attribute("align_corners", 1)],
        )
        .add_outputs("y");
        let made = file.run_model(&[float_datum(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])]);
        // 0.45 of the way from the first pixel to the second, along both axes.
        let expected = if mode == "bilinear" { corner - 0.05 - 0.1 } else { corner };
        assert_near(&read_floats(&made[0]), &[expected]);
    }
}

#[test]
fn operands_of_a_product_are_turned_whether_their_dimensions_are_known_or_not() {
    for is_known in [true, false] {
        let mut file = OnnxFile::default();
        file.add_input("a", DataType::Float, &[-1, -1, -1]).add_floats("b", &[1, 2], &[2.0, 4.0]);
        // The result of a reshape to a computed shape is unknown.
        file.add_input("s", DataType::Int64, &[-1]).add_node(".Reshape", "a s", "r", &[]);
        let a = if is_known { "a" } else { "r" };
        let attributes =
            [int_attribute("transA", 1), int_attribute("transB", 1), float_attribute("alpha", 0.5)];
        file.add_node("FusedMatMul", &format!("{a} b"), "y", &attributes).add_outputs("y");
        let made = file.run_model(&[
            float_datum(&[1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            datum_of(&[3], &[1_i64, 2, 3]),
        ]);
        assert_eq!(datum_dims(&made[0]), [1, 3, 1]);
        assert_eq!(read_floats(&made[0]), [9.0, 12.0, 15.0]);
    }
}

#[test]
fn a_normalization_gives_the_sum_before_it_too() {
    let mut file = OnnxFile::default();
    file.add_input("x", DataType::Float, &[-1, -1, -1]).add_input("s", DataType::Float, &[-1, -1, -1]);
    file.add_floats("g", &[2], &[1.0, 3.0]).add_floats("c", &[2], &[0.5, 0.5]);
    file.add_node("SkipSimplifiedLayerNormalization", "x s g c", "y _ _ z", &[]).add_outputs("y z");
    let made = file.run_model(&[float_datum(&[1, 1, 2], &[1.0, 2.0]), float_datum(&[1, 1, 2], &[1.5, 1.5])]);
    assert_near(&read_floats(&made[1]), &[3.0, 4.0]);
    let root = 12.5_f32.sqrt();
    assert_near(&read_floats(&made[0]), &[3.0 / root, 12.0 / root]);
}

#[test]
fn numbers_of_eight_bits_are_rounded_once() {
    let mut file = OnnxFile::default();
    file.add_input("x", DataType::Uint8, &[-1, -1]).add_floats("xs", &[], &[0.5]).add_bytes("xz", &[], &[10]);
    file.add_floats("ys", &[1], &[0.25]).add_bytes("yz", &[1], &[3]);
    file.add_node(
        "QLinearReduceMean",
        "x xs xz ys yz",
        "y",
        &[ints_attribute("axes", &[1]), int_attribute("keepdims", 0)],
    );
    file.add_node("QLinearMul", "x xs xz x xs xz ys yz", "z", &[]).add_outputs("y z");
    let made = file.run_model(&[datum_of(&[2, 2], &[10_u8, 14, 12, 30])]);
    let bytes = |datum: &RuntimeValue| datum.as_tensor().and_then(Tensor::to_vec::<u8>).expect("bytes");
    // Means of 0 and 2, and of 1 and 10.
    assert_eq!((datum_dims(&made[0]), bytes(&made[0])), (vec![2], vec![7, 25]));
    assert_eq!(bytes(&made[1]), [3, 19, 7, 255]);
}

/// Attention of one kind on random rows, with an input `m` for a mask.
fn run_attention(op: &str, inputs: &str, attributes: &[i64], mask: Option<RuntimeValue>) -> Vec<f32> {
    let mut file = OnnxFile::default();
    file.add_input("x", DataType::Float, &[-1, -1, -1]);
    let (w, b) = (random_floats(4 * 24, 2), random_floats(24, 3));
    file.add_floats("w", &[4, 24], &w).add_floats("b", &[24], &b);
    let mut fed = vec![random_datum(&[2, 3, 4], 1)];
    if let Some(mask) = mask {
        file.add_input("m", DataType::Int32, &vec![-1; datum_dims(&mask).len()]);
        fed.push(mask);
    }
    file.add_node(
        op,
        inputs,
        "y",
        &[int_attribute("num_heads", 2), int_attribute("unidirectional", attributes[0])],
    );
    read_floats(&file.add_outputs("y").run_model(&fed)[0])
}

#[test]
fn masks_of_every_kind_hide_the_same_keys() {
    let causal = run_attention("Attention", "x w b", &[1], None);
    let ones: Vec<i32> = (0..2 * 5 * 5).map(|at| i32::from(at % 5 <= at / 5 % 5)).collect();
    assert_near(&run_attention("Attention", "x w b m", &[0], Some(datum_of(&[2, 1, 5, 5], &ones))), &causal);
    let flags = run_attention("Attention", "x w b m", &[0], Some(datum_of(&[2, 3], &[1, 1, 0, 0, 1, 1])));
    let lengths = run_attention("Attention", "x w b m", &[0], Some(datum_of(&[4], &[2, 3, 0, 1])));
    assert_near(&lengths, &flags);
    assert!(flags.iter().zip(&causal).any(|(a, b)| (a - b).abs() > 1e-3));
}

#[test]
fn heads_that_lie_in_turns_are_those_that_lie_apart() {
    let (heads, size, rows) = (2, 4, 3);
    let packed = random_floats(2 * rows * heads * 3 * size, 4);
    let of_part = |part: usize| -> Vec<f32> {
        let is_part = |at: &usize| at / size % 3 == part;
        (0..packed.len()).filter(is_part).map(|at| packed[at]).collect()
    };
    let run = |inputs: &str, shapes: &[&[i64]], fed: &[Vec<f32>]| {
        let mut file = OnnxFile::default();
        let names: Vec<&str> = inputs.split(' ').filter(|name| *name != "_").collect();
        for (name, shape) in names.iter().zip(shapes) {
            file.add_input(name, DataType::Float, &vec![-1; shape.len()]);
        }
        file.add_node("MultiHeadAttention", inputs, "y", &[int_attribute("num_heads", 2)]).add_outputs("y");
        let fed: Vec<RuntimeValue> =
            shapes.iter().zip(fed).map(|(shape, fed)| float_datum(shape, fed)).collect();
        read_floats(&file.run_model(&fed)[0])
    };
    let parts = [0, 1, 2].map(of_part);
    let apart = run("q k v", &[&[2, 3, 8][..]; 3], &parts);
    assert_near(&run("q", &[&[2, 3, 2, 3, 4]], std::slice::from_ref(&packed)), &apart);
    let is_other = |at: &usize| !(at / size).is_multiple_of(3);
    let both: Vec<f32> = (0..packed.len()).filter(is_other).map(|at| packed[at]).collect();
    assert_near(&run("q kv", &[&[2, 3, 8], &[2, 3, 2, 2, 4]], &[parts[0].clone(), both]), &apart);
}

/// Grouped attention of one new row per text; `texts` has the number of past rows of each.
fn run_grouped_attention(
    texts: &[usize],
    room: usize,
    past: &[Vec<f32>; 2],
    new: &[Vec<f32>; 3],
    window: i64,
) -> Vec<RuntimeValue> {
    let (count, size) = (texts.len() as i64, 8);
    let mut file = OnnxFile::default();
    file.add_input("q", DataType::Float, &[-1, -1, -1]).add_input("k", DataType::Float, &[-1, -1, -1]);
    file.add_input("v", DataType::Float, &[-1, -1, -1]).add_input("pk", DataType::Float, &[-1; 4]);
    file.add_input("pv", DataType::Float, &[-1; 4]).add_input("n", DataType::Int32, &[-1]).add_input(
        "t",
        DataType::Int32,
        &[],
    );
    let attributes = [
        int_attribute("num_heads", 4),
        int_attribute("kv_num_heads", 2),
        int_attribute("local_window_size", window),
        float_attribute("softcap", 3.0),
    ];
    file.add_node("GroupQueryAttention", "q k v pk pv n t", "y k2 v2", &attributes).add_outputs("y k2 v2");
    let rows = |values: &[f32], heads: i64| float_datum(&[count, 1, heads * size], values);
    let kept = |values: &[f32]| float_datum(&[count, 2, room as i64, size], values);
    let lengths: Vec<i32> = texts.iter().map(|text| *text as i32).collect();
    let total = lengths.iter().max().copied().unwrap_or(0) + 1;
    file.run_model(&[
        rows(&new[0], 4),
        rows(&new[1], 2),
        rows(&new[2], 2),
        kept(&past[0]),
        kept(&past[1]),
        datum_of(&[count], &lengths),
        datum_of(&[], &[total]),
    ])
}

#[test]
fn texts_of_different_lengths_see_what_each_would_see_alone() {
    let (size, room) = (8, 6);
    let new = [random_floats(2 * 32, 5), random_floats(2 * 16, 6), random_floats(2 * 16, 7)];
    let past = [random_floats(2 * 2 * room * size, 8), random_floats(2 * 2 * room * size, 9)];
    for window in [-1, 3] {
        let together = run_grouped_attention(&[5, 2], room, &past, &new, window);
        for (text, length) in [5_usize, 2].into_iter().enumerate() {
            let of_text = |all: &[f32]| all[all.len() / 2 * text..][..all.len() / 2].to_vec();
            let cut = |all: &Vec<f32>| -> Vec<f32> {
                of_text(all).chunks(room * size).flat_map(|head| head[..length * size].to_vec()).collect()
            };
            let alone = run_grouped_attention(
                &[length],
                length,
                &[cut(&past[0]), cut(&past[1])],
                &[0, 1, 2].map(|at| of_text(&new[at])),
                window,
            );
            assert_near(&of_text(&read_floats(&together[0])), &read_floats(&alone[0]));
            // The new row follows the past, wherever the past ends.
            let kept = of_text(&read_floats(&together[1]));
            let expected = read_floats(&alone[1]);
            for head in 0..2 {
                let own = &expected[head * (length + 1) * size..][..(length + 1) * size];
                assert_near(&kept[head * room * size..][..(length + 1) * size], own);
            }
        }
    }
}

#[test]
fn weights_of_four_bits_are_scaled_block_by_block() {
    let (rows, width, block) = (3_usize, 48_usize, 16_usize);
    let numbers: Vec<u8> = (0..rows * width).map(|at| (at * 7 % 16) as u8).collect();
    let packed: Vec<u8> = numbers.chunks(2).map(|pair| pair[0] | pair[1] << 4).collect();
    let scales: Vec<f32> = (0..rows * 3).map(|at| 0.125 * (1 + at % 4) as f32).collect();
    // Rows of three 4-bit numbers start on a byte boundary, so each has half a byte of padding.
    let zeros = [[1_u8, 2, 3], [4, 5, 6], [7, 8, 9]];
    let packed_zeros: Vec<u8> = zeros.iter().flat_map(|row| [row[0] | row[1] << 4, row[2] | 0xf0]).collect();
    let real_zeros: Vec<f32> = zeros.iter().flatten().map(|zero| f32::from(*zero)).collect();
    let x = random_floats(width, 1);
    let expected = |zero: &dyn Fn(usize, usize) -> f32| -> Vec<f32> {
        let weight = |row: usize, at: usize| {
            let scale = scales[row * 3 + at / block];
            (f32::from(numbers[row * width + at]) - zero(row, at / block)) * scale
        };
        (0..rows).map(|row| (0..width).map(|at| x[at] * weight(row, at)).sum()).collect()
    };
    let run = |inputs: &str| {
        let mut file = OnnxFile::default();
        file.add_input("x", DataType::Float, &[-1, -1]).add_bytes("w", &[3, 3, 8], &packed);
        file.add_floats("s", &[9], &scales).add_bytes("z", &[6], &packed_zeros).add_floats(
            "f",
            &[3, 3],
            &real_zeros,
        );
        let attributes = [
            int_attribute("K", 48),
            int_attribute("N", 3),
            int_attribute("block_size", 16),
            int_attribute("bits", 4),
        ];
        file.add_node("MatMulNBits", inputs, "y", &attributes).add_outputs("y");
        read_floats(&file.run_model(&[float_datum(&[1, 48], &x)])[0])
    };
    assert_near(&run("x w s"), &expected(&|_, _| 8.0));
    let given = expected(&|row, block| f32::from(zeros[row][block]));
    assert_near(&run("x w s z"), &given);
    assert_near(&run("x w s f"), &given);
}

#[test]
fn rows_may_be_rounded_to_eight_bits_if_the_model_says_so() {
    // Too many weights to be dequantized at import, so the kernel reads their bits.
    let (rows, width, block) = (640_usize, 512_usize, 32_usize);
    let blocks = width / block;
    let packed: Vec<u8> = (0..rows * width / 2).map(|at| (at * 37 % 251) as u8).collect();
    let scales: Vec<f32> = (0..rows * blocks).map(|at| 0.125 * (1 + at % 4) as f32).collect();
    let x = random_floats(width, 1);
    let run = |level: i64| {
        let mut file = OnnxFile::default();
        file.add_input("x", DataType::Float, &[1, width as i64]);
        file.add_bytes("w", &[rows as i64, blocks as i64, block as i64 / 2], &packed);
        file.add_floats("s", &[(rows * blocks) as i64], &scales);
        let attributes = [
            ("K", width as i64),
            ("N", rows as i64),
            ("block_size", 32),
            ("bits", 4),
            ("accuracy_level", level),
        ];
        let attributes = attributes.map(|(name, value)| int_attribute(name, value));
        file.add_node("MatMulNBits", "x w s", "y", &attributes).add_outputs("y");
        read_floats(&file.run_model(&[float_datum(&[1, width as i64], &x)])[0])
    };
    let (exact, rounded) = (run(0), run(4));
    for row in 0..rows {
        let (mut expected, mut most) = (0f64, 0f64);
        for at in 0..width {
            let byte = packed[(row * width + at) / 2];
            let weight = (f32::from(byte >> (at % 2 * 4) & 15) - 8.0) * scales[row * blocks + at / block];
            expected += f64::from(x[at] * weight);
            // Half a step of 254 of the largest element of a block.
            let largest = x[at / block * block..][..block].iter().fold(0f32, |most, x| most.max(x.abs()));
            most += f64::from(weight.abs() * largest) / 254.0;
        }
        assert!((f64::from(exact[row]) - expected).abs() <= 1e-3, "{row}: {} for {expected}", exact[row]);
        assert!(
            (f64::from(rounded[row]) - expected).abs() <= most + 1e-3,
            "{row}: {} for {expected}",
            rounded[row]
        );
    }
}

#[test]
fn what_is_not_understood_is_named() {
    let mut file = OnnxFile::default();
    file.add_input("x", DataType::Float, &[-1, -1, -1]).add_floats("w", &[4, 12], &[0.0; 48]);
    file.add_node("Attention", "x w", "y", &[int_attribute("num_heads", 2), int_attribute("do_rotary", 1)])
        .add_outputs("y");
    let message = import_refusal(&file);
    assert!(message.contains("com.microsoft.Attention") && message.contains("`do_rotary`"), "{message}");

    let mut file = OnnxFile::default();
    file.add_input("x", DataType::Float, &[-1, 16]).add_bytes("w", &[1, 1, 8], &[0; 8]).add_floats(
        "s",
        &[1],
        &[1.0],
    );
    file.add_int32s("g", &[16], &[0; 16]);
    let attributes = [int_attribute("K", 16), int_attribute("N", 1), int_attribute("block_size", 16)];
    file.add_node("MatMulNBits", "x w s _ g", "y", &attributes).add_outputs("y");
    assert!(import_refusal(&file).contains("no input `g_idx`"), "{}", import_refusal(&file));

    let mut file = OnnxFile::default();
    file.add_input("x", DataType::Int32, &[-1, -1]);
    file.add_node("GreedySearch", "x", "y", &[]).add_outputs("y");
    assert!(import_refusal(&file).contains("without its search"), "{}", import_refusal(&file));
}

#[test]
fn products_of_integers_become_floats_in_one_op() {
    let mut file = OnnxFile::default();
    file.add_input("x", DataType::Float, &[-1, 3]).add_bytes("w", &[3, 2], &[1, 250, 7, 128, 90, 3]);
    file.add_floats("s", &[2], &[0.5, 0.25]).add_bytes("z", &[2], &[100, 128]).add_floats(
        "b",
        &[2],
        &[1.0, -1.0],
    );
    file.add_node("DynamicQuantizeMatMul", "x w s z b", "y", &[]).add_outputs("y");
    // The quantization step is 1, and the zero point is 55.
    let x = float_datum(&[2, 3], &[200.0, -55.0, 1.0, 3.0, 0.0, 2.0]);
    let made = file.run_model(std::slice::from_ref(&x));
    let sums = [200.0 * -99.0 + 55.0 * 93.0 - 10.0, 200.0 * 122.0 - 125.0, 3.0 * -99.0 - 20.0, 366.0 - 250.0];
    let expected = [sums[0] * 0.5 + 1.0, sums[1] * 0.25 - 1.0, sums[2] * 0.5 + 1.0, sums[3] * 0.25 - 1.0];
    assert_near(&read_floats(&made[0]), &expected);
    let session = file.start_session();
    let plan = session.plan(&[x]).expect("a plan");
    let left: Vec<&str> = plan.graph().nodes.iter().map(|node| &*node.op).collect();
    assert_eq!(left, ["DynamicQuantizeLinear", "DequantizedMatMul"]);
}

#[test]
fn a_layer_of_constant_bytes_is_one_op() {
    let mut file = OnnxFile::default();
    file.add_input("x", DataType::Float, &[-1, -1, 1]);
    file.add_bytes("w", &[1, 1, 4], &[120, 130, 140, 150]).add_bytes("r", &[1, 1, 4], &[128, 131, 119, 110]);
    file.add_floats("s", &[1], &[0.125]).add_bytes("z", &[1], &[128]);
    let hidden = int_attribute("hidden_size", 1);
    file.add_node("DynamicQuantizeLSTM", "x w r _ _ _ _ _ s z s z", "y", &[hidden]).add_outputs("y");
    let session = file.start_session();
    let x = float_datum(&[3, 1, 1], &[0.5, -0.25, 1.0]);
    let plan = session.plan(&[x]).expect("a plan");
    assert_eq!(plan.graph().nodes.iter().map(|node| &*node.op).collect::<Vec<_>>(), ["DynamicQuantizedLSTM"]);
}
