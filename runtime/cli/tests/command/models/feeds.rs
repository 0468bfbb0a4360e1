//! Inputs given to a model, and the errors for wrong ones.

use zip::CompressionMethod;

use super::{float_bytes, npy_file, npz_file, user_with_models};

#[test]
fn what_a_model_cannot_be_given_is_said_with_what_it_wants() {
    let user = user_with_models();
    user.write_file("wide.npy", &npy_file("<f8", "(1, 3)", &[0; 24]));
    user.write_file("text.npz", b"text");
    let array = || npy_file("<f4", "(1,)", &float_bytes(&[1.0]));
    user.write_file("other.npz", &npz_file(&[("c", array())], CompressionMethod::Stored));
    user.write_file("broken.npz", &npz_file(&[("a", array()[..20].to_vec())], CompressionMethod::Stored));
    user.write_file("cut.onnx", &super::model_builder::product_model()[..40]);
    user.write_file("empty.onnx", b"");
    let calls: &[&[&str]] = &[
        &["product.onnx"],
        &["pair.onnx", "-i", "a=f32:[1]"],
        &["product.onnx", "-i", "X=f32:[[1,2,3]]"],
        &["product.onnx", "-i", "z=f32:[[1,2,3]]", "--random", "0"],
        &["product.onnx", "-i", "x=f32:[1,2,3]"],
        &["product.onnx", "-i", "x=f32:[[1,2]]"],
        &["product.onnx", "-i", "x=wide.npy"],
        &["product.onnx", "-i", "x=nowhere.npy"],
        &["pair.onnx", "-i", "a=f32:[1,2]", "-i", "b=f32:[1,2,3]"],
        &["pair.onnx", "-i", "a=f32:[1]", "-i", "a=f32:[1]"],
        &["pair.onnx", "-i", "f32:[1]"],
        &["pair.onnx", "-i", "text.npz"],
        &["pair.onnx", "-i", "nowhere.npz"],
        &["pair.onnx", "-i", "other.npz"],
        &["pair.onnx", "-i", "broken.npz"],
        &["pair.onnx", "--random", "0", "--shape", "m=3"],
        &["pair.onnx", "--random", "0", "--shape", "n=2x3"],
        &["product.onnx", "--random", "0", "--shape", "x=1x4"],
        &["product.onnx", "-i", "x=f32:[[1,2,3]]", "--shape", "batch=5"],
        &["product.onnx", "-i", "x=f32:[[1,2,3]]", "--shape", "x=5x3"],
        &["product.onnx", "--random", "0", "--shape", "batch=3", "--shape", "batch=4"],
        &["product.onnx", "--random", "0", "--shape", "x=3x3", "--shape", "batch=4"],
        &["product.onnx", "-i", "x=."],
        &["product.onnx", "--random", "0", "--shape", "x=1000000000000x3"],
        &["product.onnx", "--random", "0", "-d", "tpu"],
        &["foreign.onnx", "--random", "0"],
        &["nowhere.onnx", "--random", "0"],
        &[".", "--random", "0"],
        &["empty.onnx", "--random", "0"],
        &["cut.onnx", "--random", "0"],
    ];
    let mut message = String::new();
    for call in calls {
        let outcome = user.run_command(&[&["run"], *call].concat());
        assert_eq!((outcome.status, outcome.out.as_str()), (1, ""), "{call:?} {}", outcome.err);
        message += &format!("$ oarlock run {}\n{}\n", call.join(" "), outcome.err);
    }
    insta::assert_snapshot!("run_errors", message.trim_end());
}

#[test]
fn random_inputs_are_reproducible_for_a_seed() {
    let user = user_with_models();
    let result = |seed: &str, input: &str| {
        let outcome = user.run_command(&["run", "pair.onnx", "--random", seed, "--shape", input]);
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        outcome.out
    };
    assert_eq!(result("5", "n=4"), result("5", "a=4"));
    assert_ne!(result("5", "n=4"), result("6", "n=4"));
}

#[test]
fn what_is_made_up_and_assumed_is_told() {
    let user = user_with_models();
    let outcome = user.run_command(&["run", "pair.onnx", "-i", "a=f32:[1,2]", "--random", "0"]);
    assert_eq!(outcome.err, "note: `b` is made up: f32 [2], normally distributed\n");
    let outcome = user.run_command(&["run", "lookup.onnx", "--random", "3"]);
    assert_eq!(
        outcome.err,
        "note: `tokens` is made up: i64 [1], 0 and 1, which are legal tokens, indices and masks\n\
         note: `length` is taken as 1; `--shape length=SIZE` says otherwise\n"
    );
}

#[test]
fn random_integer_inputs_are_valid_indices() {
    let user = user_with_models();
    let outcome =
        user.run_command(&["run", "lookup.onnx", "--random", "1", "--shape", "length=50", "--json"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let statistics = outcome.parse_json()["outputs"][0]["statistics"].clone();
    assert_eq!((statistics["min"].as_f64(), statistics["max"].as_f64()), (Some(1.0), Some(4.0)));
}

#[test]
fn an_input_without_a_shape_wants_one() {
    let user = user_with_models();
    let model = super::model_builder::ModelBuilder::new()
        .with_input("x: f32[…]")
        .with_node("y = Relu(x)")
        .with_output("y: f32[…]");
    user.write_file("shapeless.onnx", &model.into_bytes());
    let outcome = user.run_command(&["run", "shapeless.onnx", "--random", "0"]);
    assert!(outcome.status == 1 && outcome.err.contains("`--shape x=1x3x224x224`"), "{}", outcome.err);
    let outcome = user.run_command(&["run", "shapeless.onnx", "--random", "0", "--shape", "x=2x2"]);
    assert!(outcome.out.starts_with("y: f32 [2, 2]\n"), "{} {}", outcome.out, outcome.err);
    let outcome = user.run_command(&["run", "shapeless.onnx", "--random", "0", "--shape", "x="]);
    assert!(outcome.out.starts_with("y: f32 []\n"), "{} {}", outcome.out, outcome.err);
}

#[test]
fn sizes_that_a_model_leaves_open_are_suggested_by_the_rest_of_it() {
    let user = user_with_models();
    let model = super::model_builder::ModelBuilder::new()
        .with_input("x: f32[?, ?]")
        .with_weight("m", &[5, 2], &[1.0; 10])
        .with_node("y = MatMul(x, m)")
        .with_output("y: f32[?, 2]");
    user.write_file("product.onnx", &model.into_bytes());
    for arguments in [&["run", "product.onnx"][..], &["bench", "product.onnx"], &["check", "product.onnx"]] {
        let outcome = user.run_command(arguments);
        assert!(
            outcome.status == 1 && outcome.err.contains("`--shape x=1x5`"),
            "{arguments:?}: {}",
            outcome.err
        );
    }
    let image = super::model_builder::ModelBuilder::new()
        .with_input("x: f32[…]")
        .with_weight("w", &[4, 3, 1, 1], &[1.0; 12])
        .with_weight("m", &[4 * 6 * 6, 1], &[1.0; 4 * 6 * 6])
        .with_node("c = Conv(x, w)")
        .with_node("f = Flatten(c)")
        .with_node("y = MatMul(f, m)")
        .with_output("y: f32[1, 1]");
    user.write_file("image.onnx", &image.into_bytes());
    let outcome = user.run_command(&["run", "image.onnx", "--random", "0"]);
    assert!(outcome.err.contains("`--shape x=1x3x6x6`"), "{}", outcome.err);
    let outcome = user.run_command(&["run", "image.onnx", "--random", "0", "--shape", "x=1x3x6x6"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
}

#[test]
fn inputs_are_left_empty_with_a_dash() {
    let user = user_with_models();
    let asked = super::model_builder::ModelBuilder::new()
        .with_input("x: optional f32[…]")
        .with_node("y = OptionalHasElement(x)");
    user.write_file("asked.onnx", &asked.with_output("y: bool[]").into_bytes());
    let counted = super::model_builder::ModelBuilder::new().with_input("x: optional sequence f32[…]");
    let counted = counted.with_node("s = OptionalGetElement(x)").with_node("y = SequenceLength(s)");
    user.write_file("counted.onnx", &counted.with_output("y: i64[]").into_bytes());
    let length = super::model_builder::ModelBuilder::new()
        .with_input("x: sequence f32[…]")
        .with_node("y = SequenceLength(x)");
    user.write_file("length.onnx", &length.with_output("y: i64[]").into_bytes());
    let run = |arguments: &[&str]| {
        let outcome = user.run_command(&[&["run"], arguments].concat());
        format!("{}{}", outcome.out, outcome.err)
    };
    assert_eq!(run(&["asked.onnx", "-i", "x=-"]), "y: bool []\nfalse\n");
    assert_eq!(run(&["asked.onnx", "-i", "-"]), "y: bool []\nfalse\n");
    assert_eq!(run(&["asked.onnx", "-i", "x=f32:1"]), "y: bool []\ntrue\n");
    assert_eq!(run(&["counted.onnx", "-i", "x=f32:1", "-i", "x=f32:2"]), "y: i64 []\n2\n");
    assert_eq!(run(&["length.onnx", "-i", "x=f32:1", "-i", "x=f32:2"]), "y: i64 []\n2\n");
    assert_eq!(run(&["length.onnx", "-i", "x=-"]), "y: i64 []\n0\n");
    for contradiction in [["x=f32:1", "x=-"], ["x=-", "x=f32:1"]] {
        let message = run(&["length.onnx", "-i", contradiction[0], "-i", contradiction[1]]);
        assert!(message.contains("expected each input once, found `x` twice"), "{message}");
    }
    assert!(run(&["asked.onnx"]).contains("`x` is left empty with `-i x=-`"), "{}", run(&["asked.onnx"]));
    let message = run(&["lookup.onnx", "-i", "tokens=-"]);
    assert!(message.contains("expected i64[length], found an optional that holds nothing"), "{message}");
}
