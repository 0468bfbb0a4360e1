//! The example program of the book's page about using Oarlock as a library, which includes it from here.

// ANCHOR: program
use oarlock::{Attribute, Attributes, Op, Tensor};

fn softmax_of_sum() -> oarlock::Result<Vec<f32>> {
    let runtime = oarlock::start("my-program 1.0")?;
    for refusal in runtime.host().report().refusals() {
        eprintln!("not used: {refusal}");
    }

    let cpu = runtime.device("cpu")?;
    let a = Tensor::from_slice(&cpu, &[2, 1], &[0.0f32, 1.0])?;
    let b = Tensor::from_slice(&cpu, &[2], &[1.0f32, 1.0])?;
    let sum = Op::latest(&runtime, "Add")?.run(&runtime, &[&a, &b])?;

    let last_axis = Attributes::default().with_attribute("axis", Attribute::Int(-1));
    let softmax = Op::new(&runtime, "ai.onnx", "Softmax", 13, last_axis)?;
    softmax.run(&runtime, &[&sum])?.to_vec()
}
// ANCHOR_END: program

#[test]
fn the_program_of_the_book_computes() {
    assert_eq!(softmax_of_sum().expect("it runs on every machine"), [0.5; 4]);
}
