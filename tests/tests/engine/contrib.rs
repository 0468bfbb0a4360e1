//! The ops that onnxruntime adds to ONNX: what they give without anybody else to ask, and what is refused. What each
//! has to give is compared in `tests/tests/backend`.

use oarlock_core::{Element, Tensor};
use oarlock_engine::Datum;
use oarlock_engine::import::onnx::messages::tensor_proto::DataType;

use crate::file::{File, float, int, ints, text};
use crate::sketch::{RUNTIME, noise, random, tensor};

fn floats(datum: &Datum) -> Vec<f32> {
    datum.tensor().and_then(Tensor::to_vec).unwrap_or_else(|error| panic!("{error}"))
}

fn dims(datum: &Datum) -> Vec<i64> {
    datum.tensor().expect("a tensor").dims().to_vec()
}

fn of<T: Element>(dims: &[i64], elements: &[T]) -> Datum {
    let cpu = RUNTIME.device("cpu").expect("the CPU");
    Tensor::from_slice(&cpu, dims, elements).expect("a tensor").into()
}

fn assert_near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let is_near = (found - expected).abs() <= 1e-5 + 1e-4 * expected.abs();
        assert!(is_near, "element {at}: expected {expected}, found {found}");
    }
}

fn refusal(file: &File) -> String {
    let error = file.read().map(drop).expect_err("a refusal");
    format!("{error}; {}", error.advice().unwrap_or_default())
}

#[test]
fn a_sum_comes_before_an_activation() {
    let mut file = File::default();
    file.input("x", DataType::Float, &[-1, -1]).floats("b", &[3], &[1.0, -1.0, 0.5]);
    file.node("FastGelu", "x b", "y", &[]).node("QuickGelu", "x", "z", &[float("alpha", 2.0)]).outputs("y z");
    let x = [0.5, 2.0, -1.0, 3.0, 0.0, 0.25_f32];
    let made = file.run(&[tensor(&[2, 3], &x)]);
    let gelu = |x: f32| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh());
    let sums: Vec<f32> = x.iter().zip([1.0, -1.0, 0.5].iter().cycle()).map(|(x, b)| gelu(x + b)).collect();
    assert_near(&floats(&made[0]), &sums);
    let quick: Vec<f32> = x.iter().map(|x| x / (1.0 + (-2.0 * x).exp())).collect();
    assert_near(&floats(&made[1]), &quick);
}

#[test]
fn a_half_of_a_sum_is_the_gate_of_the_other() {
    let mut file = File::default();
    file.input("x", DataType::Float, &[-1, -1, -1]).floats("b", &[4], &[1.0, 0.0, -1.0, 0.5]);
    file.node("BiasSplitGelu", "x b", "h", &[]).floats("c", &[2], &[10.0, 20.0]);
    file.node("BiasAdd", "h c h", "y", &[]).outputs("h y");
    let made = file.run(&[tensor(&[1, 1, 4], &[1.0, 3.0, 2.0, -0.5])]);
    // GELU of 1 and of 0.
    let halves = [2.0 * 0.841_344_7, 0.0];
    assert_near(&floats(&made[0]), &halves);
    assert_near(&floats(&made[1]), &[2.0 * halves[0] + 10.0, 20.0]);
}

#[test]
fn distances_are_those_between_rows() {
    for (metric, root) in [("euclidean", true), ("sqeuclidean", false)] {
        let mut file = File::default();
        file.input("a", DataType::Float, &[-1, -1]).input("b", DataType::Float, &[-1, -1]);
        file.node("CDist", "a b", "y", &[text("metric", metric)]).outputs("y");
        let made = file
            .run(&[tensor(&[2, 2], &[0.0, 0.0, 1.0, 1.0]), tensor(&[3, 2], &[3.0, 4.0, 1.0, 1.0, 0.0, 1.0])]);
        assert_eq!(dims(&made[0]), [2, 3]);
        let squares = [25.0, 2.0, 1.0, 13.0, 0.0, 1.0_f32];
        let expected = squares.map(|square| if root { square.sqrt() } else { square });
        assert_near(&floats(&made[0]), &expected);
    }
    let mut file = File::default();
    file.input("a", DataType::Float, &[-1, -1]);
    file.node("CDist", "a a", "y", &[text("metric", "cosine")]).outputs("y");
    assert!(refusal(&file).contains("`sqeuclidean`"), "{}", refusal(&file));
}

#[test]
fn pixels_of_a_grid_are_mixed_as_onnx_does_it() {
    for (mode, corner) in [("bilinear", 2.5), ("nearest", 1.0)] {
        let mut file = File::default();
        file.input("x", DataType::Float, &[1, 1, 2, 2]).floats("g", &[1, 1, 1, 2], &[-0.1, -0.1]);
        file.node("GridSample", "x g", "y", &[text("mode", mode), int("align_corners", 1)]).outputs("y");
        let made = file.run(&[tensor(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])]);
        // At 0.45 of the way from each first pixel to the second.
        let expected = if mode == "bilinear" { corner - 0.05 - 0.1 } else { corner };
        assert_near(&floats(&made[0]), &[expected]);
    }
}

#[test]
fn operands_of_a_product_are_turned_whether_their_dimensions_are_known_or_not() {
    for is_known in [true, false] {
        let mut file = File::default();
        file.input("a", DataType::Float, &[-1, -1, -1]).floats("b", &[1, 2], &[2.0, 4.0]);
        // Nobody says what a reshape to a computed shape makes.
        file.input("s", DataType::Int64, &[-1]).node(".Reshape", "a s", "r", &[]);
        let a = if is_known { "a" } else { "r" };
        let attributes = [int("transA", 1), int("transB", 1), float("alpha", 0.5)];
        file.node("FusedMatMul", &format!("{a} b"), "y", &attributes).outputs("y");
        let made = file.run(&[tensor(&[1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), of(&[3], &[1_i64, 2, 3])]);
        assert_eq!(dims(&made[0]), [1, 3, 1]);
        assert_eq!(floats(&made[0]), [9.0, 12.0, 15.0]);
    }
}

#[test]
fn a_normalisation_gives_the_sum_before_it_too() {
    let mut file = File::default();
    file.input("x", DataType::Float, &[-1, -1, -1]).input("s", DataType::Float, &[-1, -1, -1]);
    file.floats("g", &[2], &[1.0, 3.0]).floats("c", &[2], &[0.5, 0.5]);
    file.node("SkipSimplifiedLayerNormalization", "x s g c", "y _ _ z", &[]).outputs("y z");
    let made = file.run(&[tensor(&[1, 1, 2], &[1.0, 2.0]), tensor(&[1, 1, 2], &[1.5, 1.5])]);
    assert_near(&floats(&made[1]), &[3.0, 4.0]);
    let root = 12.5_f32.sqrt();
    assert_near(&floats(&made[0]), &[3.0 / root, 12.0 / root]);
}

#[test]
fn numbers_of_eight_bits_are_rounded_once() {
    let mut file = File::default();
    file.input("x", DataType::Uint8, &[-1, -1]).floats("xs", &[], &[0.5]).bytes("xz", &[], &[10]);
    file.floats("ys", &[1], &[0.25]).bytes("yz", &[1], &[3]);
    file.node("QLinearReduceMean", "x xs xz ys yz", "y", &[ints("axes", &[1]), int("keepdims", 0)]);
    file.node("QLinearMul", "x xs xz x xs xz ys yz", "z", &[]).outputs("y z");
    let made = file.run(&[of(&[2, 2], &[10_u8, 14, 12, 30])]);
    let bytes = |datum: &Datum| datum.tensor().and_then(Tensor::to_vec::<u8>).expect("bytes");
    // Means of 0 and 2, and of 1 and 10.
    assert_eq!((dims(&made[0]), bytes(&made[0])), (vec![2], vec![7, 25]));
    assert_eq!(bytes(&made[1]), [3, 19, 7, 255]);
}

/// Attention of one kind on rows of random numbers, with an input `m` where there is one.
fn attention(op: &str, inputs: &str, attributes: &[i64], mask: Option<Datum>) -> Vec<f32> {
    let mut file = File::default();
    file.input("x", DataType::Float, &[-1, -1, -1]);
    let (w, b) = (noise(4 * 24, 2), noise(24, 3));
    file.floats("w", &[4, 24], &w).floats("b", &[24], &b);
    let mut fed = vec![random(&[2, 3, 4], 1)];
    if let Some(mask) = mask {
        file.input("m", DataType::Int32, &vec![-1; dims(&mask).len()]);
        fed.push(mask);
    }
    file.node(op, inputs, "y", &[int("num_heads", 2), int("unidirectional", attributes[0])]);
    floats(&file.outputs("y").run(&fed)[0])
}

#[test]
fn masks_of_every_kind_hide_the_same_keys() {
    let causal = attention("Attention", "x w b", &[1], None);
    let ones: Vec<i32> = (0..2 * 5 * 5).map(|at| i32::from(at % 5 <= at / 5 % 5)).collect();
    assert_near(&attention("Attention", "x w b m", &[0], Some(of(&[2, 1, 5, 5], &ones))), &causal);
    let flags = attention("Attention", "x w b m", &[0], Some(of(&[2, 3], &[1, 1, 0, 0, 1, 1])));
    let lengths = attention("Attention", "x w b m", &[0], Some(of(&[4], &[2, 3, 0, 1])));
    assert_near(&lengths, &flags);
    assert!(flags.iter().zip(&causal).any(|(a, b)| (a - b).abs() > 1e-3));
}

#[test]
fn heads_that_lie_in_turns_are_those_that_lie_apart() {
    let (heads, size, rows) = (2, 4, 3);
    let packed = noise(2 * rows * heads * 3 * size, 4);
    let of_part = |part: usize| -> Vec<f32> {
        let is_part = |at: &usize| at / size % 3 == part;
        (0..packed.len()).filter(is_part).map(|at| packed[at]).collect()
    };
    let run = |inputs: &str, shapes: &[&[i64]], fed: &[Vec<f32>]| {
        let mut file = File::default();
        let names: Vec<&str> = inputs.split(' ').filter(|name| *name != "_").collect();
        for (name, shape) in names.iter().zip(shapes) {
            file.input(name, DataType::Float, &vec![-1; shape.len()]);
        }
        file.node("MultiHeadAttention", inputs, "y", &[int("num_heads", 2)]).outputs("y");
        let fed: Vec<Datum> = shapes.iter().zip(fed).map(|(shape, fed)| tensor(shape, fed)).collect();
        floats(&file.run(&fed)[0])
    };
    let parts = [0, 1, 2].map(of_part);
    let apart = run("q k v", &[&[2, 3, 8][..]; 3], &parts);
    assert_near(&run("q", &[&[2, 3, 2, 3, 4]], std::slice::from_ref(&packed)), &apart);
    let is_other = |at: &usize| !(at / size).is_multiple_of(3);
    let both: Vec<f32> = (0..packed.len()).filter(is_other).map(|at| packed[at]).collect();
    assert_near(&run("q kv", &[&[2, 3, 8], &[2, 3, 2, 2, 4]], &[parts[0].clone(), both]), &apart);
}

/// Grouped attention of one new row of each text, with so many rows of the past.
fn grouped(
    texts: &[usize],
    room: usize,
    past: &[Vec<f32>; 2],
    new: &[Vec<f32>; 3],
    window: i64,
) -> Vec<Datum> {
    let (count, size) = (texts.len() as i64, 8);
    let mut file = File::default();
    file.input("q", DataType::Float, &[-1, -1, -1]).input("k", DataType::Float, &[-1, -1, -1]);
    file.input("v", DataType::Float, &[-1, -1, -1]).input("pk", DataType::Float, &[-1; 4]);
    file.input("pv", DataType::Float, &[-1; 4]).input("n", DataType::Int32, &[-1]).input(
        "t",
        DataType::Int32,
        &[],
    );
    let attributes = [
        int("num_heads", 4),
        int("kv_num_heads", 2),
        int("local_window_size", window),
        float("softcap", 3.0),
    ];
    file.node("GroupQueryAttention", "q k v pk pv n t", "y k2 v2", &attributes).outputs("y k2 v2");
    let rows = |values: &[f32], heads: i64| tensor(&[count, 1, heads * size], values);
    let kept = |values: &[f32]| tensor(&[count, 2, room as i64, size], values);
    let lengths: Vec<i32> = texts.iter().map(|text| *text as i32).collect();
    let total = lengths.iter().max().copied().unwrap_or(0) + 1;
    file.run(&[
        rows(&new[0], 4),
        rows(&new[1], 2),
        rows(&new[2], 2),
        kept(&past[0]),
        kept(&past[1]),
        of(&[count], &lengths),
        of(&[], &[total]),
    ])
}

#[test]
fn texts_of_different_lengths_see_what_each_would_see_alone() {
    let (size, room) = (8, 6);
    let new = [noise(2 * 32, 5), noise(2 * 16, 6), noise(2 * 16, 7)];
    let past = [noise(2 * 2 * room * size, 8), noise(2 * 2 * room * size, 9)];
    for window in [-1, 3] {
        let together = grouped(&[5, 2], room, &past, &new, window);
        for (text, length) in [5_usize, 2].into_iter().enumerate() {
            let of_text = |all: &[f32]| all[all.len() / 2 * text..][..all.len() / 2].to_vec();
            let cut = |all: &Vec<f32>| -> Vec<f32> {
                of_text(all).chunks(room * size).flat_map(|head| head[..length * size].to_vec()).collect()
            };
            let alone = grouped(
                &[length],
                length,
                &[cut(&past[0]), cut(&past[1])],
                &[0, 1, 2].map(|at| of_text(&new[at])),
                window,
            );
            assert_near(&of_text(&floats(&together[0])), &floats(&alone[0]));
            // The new row lies behind the past, wherever that ends.
            let kept = of_text(&floats(&together[1]));
            let expected = floats(&alone[1]);
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
    // Rows of three begin with a byte, so each has half a byte of nothing.
    let zeros = [[1_u8, 2, 3], [4, 5, 6], [7, 8, 9]];
    let packed_zeros: Vec<u8> = zeros.iter().flat_map(|row| [row[0] | row[1] << 4, row[2] | 0xf0]).collect();
    let real_zeros: Vec<f32> = zeros.iter().flatten().map(|zero| f32::from(*zero)).collect();
    let x = noise(width, 1);
    let expected = |zero: &dyn Fn(usize, usize) -> f32| -> Vec<f32> {
        let weight = |row: usize, at: usize| {
            let scale = scales[row * 3 + at / block];
            (f32::from(numbers[row * width + at]) - zero(row, at / block)) * scale
        };
        (0..rows).map(|row| (0..width).map(|at| x[at] * weight(row, at)).sum()).collect()
    };
    let run = |inputs: &str| {
        let mut file = File::default();
        file.input("x", DataType::Float, &[-1, -1]).bytes("w", &[3, 3, 8], &packed);
        file.floats("s", &[9], &scales).bytes("z", &[6], &packed_zeros).floats("f", &[3, 3], &real_zeros);
        let attributes = [int("K", 48), int("N", 3), int("block_size", 16), int("bits", 4)];
        file.node("MatMulNBits", inputs, "y", &attributes).outputs("y");
        floats(&file.run(&[tensor(&[1, 48], &x)])[0])
    };
    assert_near(&run("x w s"), &expected(&|_, _| 8.0));
    let given = expected(&|row, block| f32::from(zeros[row][block]));
    assert_near(&run("x w s z"), &given);
    assert_near(&run("x w s f"), &given);
}

#[test]
fn what_is_not_understood_is_named() {
    let mut file = File::default();
    file.input("x", DataType::Float, &[-1, -1, -1]).floats("w", &[4, 12], &[0.0; 48]);
    file.node("Attention", "x w", "y", &[int("num_heads", 2), int("do_rotary", 1)]).outputs("y");
    let message = refusal(&file);
    assert!(message.contains("com.microsoft.Attention") && message.contains("`do_rotary`"), "{message}");

    let mut file = File::default();
    file.input("x", DataType::Float, &[-1, 16]).bytes("w", &[1, 1, 8], &[0; 8]).floats("s", &[1], &[1.0]);
    file.words("g", &[16], &[0; 16]);
    let attributes = [int("K", 16), int("N", 1), int("block_size", 16)];
    file.node("MatMulNBits", "x w s _ g", "y", &attributes).outputs("y");
    assert!(refusal(&file).contains("no input `g_idx`"), "{}", refusal(&file));

    let mut file = File::default();
    file.input("x", DataType::Int32, &[-1, -1]);
    file.node("GreedySearch", "x", "y", &[]).outputs("y");
    assert!(refusal(&file).contains("without its search"), "{}", refusal(&file));
}

#[test]
fn products_of_integers_become_floats_in_one_op() {
    let mut file = File::default();
    file.input("x", DataType::Float, &[-1, 3]).bytes("w", &[3, 2], &[1, 250, 7, 128, 90, 3]);
    file.floats("s", &[2], &[0.5, 0.25]).bytes("z", &[2], &[100, 128]).floats("b", &[2], &[1.0, -1.0]);
    file.node("DynamicQuantizeMatMul", "x w s z b", "y", &[]).outputs("y");
    // A step is 1, and the zero point 55.
    let x = tensor(&[2, 3], &[200.0, -55.0, 1.0, 3.0, 0.0, 2.0]);
    let made = file.run(std::slice::from_ref(&x));
    let sums = [200.0 * -99.0 + 55.0 * 93.0 - 10.0, 200.0 * 122.0 - 125.0, 3.0 * -99.0 - 20.0, 366.0 - 250.0];
    let expected = [sums[0] * 0.5 + 1.0, sums[1] * 0.25 - 1.0, sums[2] * 0.5 + 1.0, sums[3] * 0.25 - 1.0];
    assert_near(&floats(&made[0]), &expected);
    let session = file.session();
    let plan = session.plan(&[x]).expect("a plan");
    let left: Vec<&str> = plan.graph().nodes.iter().map(|node| &*node.op).collect();
    assert_eq!(left, ["DynamicQuantizeLinear", "DequantizedMatMul"]);
}

#[test]
fn a_layer_of_constant_bytes_is_one_op() {
    let mut file = File::default();
    file.input("x", DataType::Float, &[-1, -1, 1]);
    file.bytes("w", &[1, 1, 4], &[120, 130, 140, 150]).bytes("r", &[1, 1, 4], &[128, 131, 119, 110]);
    file.floats("s", &[1], &[0.125]).bytes("z", &[1], &[128]);
    let hidden = int("hidden_size", 1);
    file.node("DynamicQuantizeLSTM", "x w r _ _ _ _ _ s z s z", "y", &[hidden]).outputs("y");
    let session = file.session();
    let x = tensor(&[3, 1, 1], &[0.5, -0.25, 1.0]);
    let plan = session.plan(&[x]).expect("a plan");
    assert_eq!(plan.graph().nodes.iter().map(|node| &*node.op).collect::<Vec<_>>(), ["DynamicQuantizedLSTM"]);
}
