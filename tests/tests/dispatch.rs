//! From an op to the kernel that runs it: selection, refusals, and their messages.

use std::sync::Arc;

use oarlock_core::flags::Flags;
use oarlock_core::{
    Attribute, Attributes, Constant, Device, DimSelection, Dtype, Error, ErrorKind, Op, OpInvocation,
    Runtime, SelectionSource, Tensor,
};
use oarlock_tests::bare_host::{CPU_PLUGIN, SIM_PLUGIN, check_forced_isa, host_options};

fn runtime_with(flags: &[(&str, &str)]) -> Runtime {
    let options = host_options("tests", "", &[CPU_PLUGIN, SIM_PLUGIN]);
    let mut all = Flags::from_environment(|_| None).expect("defaults");
    for (name, value) in flags {
        all.set(name, value).expect("a flag");
    }
    Runtime::start(options, all).expect("a runtime")
}

fn start_runtime() -> (Runtime, Device) {
    let runtime = runtime_with(&[]);
    let cpu = runtime.device("cpu").expect("the CPU");
    (runtime, cpu)
}

fn float_tensor(device: &Device, dims: &[i64], values: &[f32]) -> Tensor {
    Tensor::from_slice(device, dims, values).expect("a tensor")
}

fn expect_failure(result: Result<Tensor, Error>) -> Error {
    result.expect_err("a refusal")
}

#[test]
fn kernels_of_the_cpu_use_the_instruction_set_that_is_forced() {
    let (runtime, _) = start_runtime();
    assert_eq!(check_forced_isa(&runtime), Ok(()));
}

#[test]
fn an_op_runs_and_its_site_is_found_again() {
    let (runtime, cpu) = start_runtime();
    let add = Op::latest(&runtime, "Add").unwrap();
    let (a, b) = (float_tensor(&cpu, &[2, 1], &[1.0, 2.0]), float_tensor(&cpu, &[3], &[10.0, 20.0, 30.0]));
    for _ in 0..3 {
        let sum = add.run(&runtime, &[&a, &b]).unwrap();
        assert_eq!(sum.dims(), [2, 3]);
        assert_eq!(sum.to_vec::<f32>().unwrap(), [11.0, 21.0, 31.0, 12.0, 22.0, 32.0]);
    }
}

#[test]
fn more_signatures_than_a_site_list_holds_still_run() {
    let (runtime, cpu) = start_runtime();
    let negate = Op::latest(&runtime, "Neg").unwrap();
    for round in 0..2 {
        for size in 1..100i64 {
            let values: Vec<f32> = (0..size).map(|at| (at + round) as f32).collect();
            let negated = negate.run(&runtime, &[&float_tensor(&cpu, &[size], &values)]).unwrap();
            assert_eq!(negated.to_vec::<f32>().unwrap()[size as usize - 1], -((size - 1 + round) as f32));
        }
    }
}

#[test]
fn views_are_taken_as_they_are_or_made_contiguous() {
    let (runtime, cpu) = start_runtime();
    let x = float_tensor(&cpu, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let transposed = x.transpose(&[1, 0]).unwrap();
    assert!(!transposed.is_contiguous());
    assert_eq!(transposed.to_vec::<f32>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let add = Op::latest(&runtime, "Add").unwrap();
    let sum = add.run(&runtime, &[&transposed, &transposed]).unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [2.0, 8.0, 4.0, 10.0, 6.0, 12.0]);
    let softmax = Op::latest(&runtime, "CumSum").unwrap();
    let axis = Tensor::from_slice(&cpu, &[], &[1i64]).unwrap();
    let sums = softmax.run(&runtime, &[&transposed, &axis]).unwrap();
    assert_eq!(sums.to_vec::<f32>().unwrap(), [1.0, 5.0, 2.0, 7.0, 3.0, 9.0]);
    let middle = x.slice(1, 1, 3, 1).unwrap().slice(0, 1, 2, 1).unwrap();
    assert_eq!(middle.to_vec::<f32>().unwrap(), [5.0, 6.0]);
    let repeated = float_tensor(&cpu, &[1, 2], &[7.0, 8.0]).expand(&[2, 2]).unwrap();
    assert_eq!(
        add.run(&runtime, &[&repeated, &repeated]).unwrap().to_vec::<f32>().unwrap(),
        [14.0, 16.0, 14.0, 16.0]
    );
}

#[test]
fn what_is_picked_is_what_slices_and_new_dimensions_give_one_by_one() {
    let (_, cpu) = start_runtime();
    let numbers: Vec<f32> = (0..60).map(|number| number as f32).collect();
    let x = float_tensor(&cpu, &[3, 4, 5], &numbers);
    let every_second = DimSelection::Range { begin: 1, count: 2, step: 2 };
    let found = x.select_view(&[DimSelection::At(2), DimSelection::New, every_second]).unwrap();
    let expected = x.slice(0, 2, 3, 1).unwrap().slice(1, 1, 4, 2).unwrap();
    assert_eq!(found.dims(), [1, 2, 5]);
    assert_eq!(found.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
    let again = found
        .select_view(&[
            DimSelection::Whole,
            DimSelection::At(1),
            DimSelection::Range { begin: 4, count: 1, step: 9 },
        ])
        .unwrap();
    assert_eq!((again.dims(), again.to_vec::<f32>().unwrap()), (&[1, 1][..], vec![59.0]));
    assert!(x.select_view(&[]).unwrap().is_contiguous());
    let none = DimSelection::Range { begin: 3, count: 0, step: 1 };
    assert!(x.select_view(&[none]).unwrap().to_vec::<f32>().unwrap().is_empty());
    for beyond in [
        vec![DimSelection::At(3)],
        vec![DimSelection::Range { begin: 2, count: 2, step: 1 }],
        vec![DimSelection::Range { begin: 0, count: 2, step: u64::MAX }],
        vec![DimSelection::Range { begin: 0, count: u64::MAX, step: 3 }],
        vec![DimSelection::Range { begin: 0, count: 1, step: 0 }],
        vec![DimSelection::Whole; 4],
    ] {
        assert_eq!(expect_failure(x.select_view(&beyond)).kind(), ErrorKind::OutOfRange, "{beyond:?}");
    }
}

#[test]
fn who_holds_a_tensor_keeps_what_it_was_when_a_part_is_replaced() {
    let (_, cpu) = start_runtime();
    let mut x = float_tensor(&cpu, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let address = x.host_address().unwrap();
    x.write_selection(&[DimSelection::At(1), DimSelection::At(0)], SelectionSource::One(&7f32.to_ne_bytes()))
        .unwrap();
    assert_eq!(x.host_address().unwrap(), address, "nobody else has it");
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 7.0, 5.0, 6.0]);
    let (clone, view) = (x.clone(), x.transpose(&[1, 0]).unwrap());
    x.write_selection(
        &[DimSelection::Whole, DimSelection::At(2)],
        SelectionSource::Of(&float_tensor(&cpu, &[2], &[8.0, 9.0])),
    )
    .unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0, 8.0, 7.0, 5.0, 9.0]);
    assert_eq!(clone.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 7.0, 5.0, 6.0]);
    // The source of a write may be a view of its target, and may broadcast.
    let row = x.select_view(&[DimSelection::At(0)]).unwrap();
    x.write_selection(&[], SelectionSource::Of(&row.unsqueeze(0).unwrap().expand(&[2, 3]).unwrap())).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0, 8.0, 1.0, 2.0, 8.0]);
    // A view becomes a contiguous tensor.
    let mut turned = view.clone();
    let last = DimSelection::Range { begin: 0, count: 2, step: 2 };
    turned.write_selection(&[last, DimSelection::At(1)], SelectionSource::One(&0f32.to_ne_bytes())).unwrap();
    assert_eq!(turned.to_vec::<f32>().unwrap(), [1.0, 0.0, 2.0, 5.0, 3.0, 0.0]);
    assert_eq!(view.to_vec::<f32>().unwrap(), [1.0, 7.0, 2.0, 5.0, 3.0, 6.0]);
    let wrong = float_tensor(&cpu, &[3], &[0.0; 3]);
    assert_eq!(
        x.write_selection(&[], SelectionSource::Of(&wrong)).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        x.write_selection(&[], SelectionSource::One(&[0; 3])).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn constants_of_the_host_are_not_written_to() {
    let (_, cpu) = start_runtime();
    let constant = Constant::new(Dtype::F32, &[2], [1f32, 2.0].map(f32::to_ne_bytes).concat()).unwrap();
    let mut x = Tensor::from_constant(&cpu, &constant).unwrap();
    x.write_selection(&[DimSelection::At(0)], SelectionSource::One(&5f32.to_ne_bytes())).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [5.0, 2.0]);
    assert_eq!(constant.bytes().unwrap()[..4], 1f32.to_ne_bytes());
}

#[test]
fn one_element_fills_a_tensor_and_other_bytes_are_refused() {
    let (runtime, cpu) = start_runtime();
    let x = Tensor::filled(&cpu, Dtype::F32, &[2, 3], &1.5f32.to_ne_bytes()).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.5; 6]);
    let x = Tensor::filled(&cpu, Dtype::I64, &[70], &[0xFF; 8]).unwrap();
    assert_eq!(x.to_vec::<i64>().unwrap(), [-1; 70]);
    assert_eq!(Tensor::filled(&cpu, Dtype::U8, &[0], &[1]).unwrap().element_count(), 0);
    let sim = runtime.device("sim").unwrap();
    assert_eq!(Tensor::filled(&sim, Dtype::I32, &[3], &[0; 4]).unwrap().to_vec::<i32>().unwrap(), [0; 3]);
    for (dtype, bytes) in [(Dtype::Bool, &[2][..]), (Dtype::F32, &[0; 3]), (Dtype::String, &[0; 16])] {
        let error = expect_failure(Tensor::filled(&cpu, dtype, &[2], bytes));
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn tensors_are_built_from_an_index_function_on_any_device() {
    let (runtime, cpu) = start_runtime();
    for device in [cpu, runtime.device("sim").unwrap()] {
        let x = Tensor::from_fn(&device, &[2, 3], |at| at as i16 * 2).unwrap();
        assert_eq!((x.dims(), x.to_vec::<i16>().unwrap()), (&[2, 3][..], vec![0, 2, 4, 6, 8, 10]));
        assert_eq!(Tensor::from_fn(&device, &[0], |_| 1u8).unwrap().element_count(), 0);
        let error = expect_failure(Tensor::from_fn(&device, &[1 << 50], |_| 0f64));
        assert_eq!(error.kind(), ErrorKind::ResourceExhausted);
    }
}

#[test]
fn complex_numbers_are_seen_as_their_parts_and_back() {
    let (_, cpu) = start_runtime();
    let parts =
        float_tensor(&cpu, &[3, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
    let numbers = parts.view_as_complex().unwrap();
    assert_eq!((numbers.dtype(), numbers.dims()), (Dtype::C64, &[3, 2][..]));
    let turned = numbers.transpose(&[1, 0]).unwrap().view_as_real().unwrap();
    assert_eq!(turned.dims(), [2, 3, 2]);
    assert_eq!(
        turned.to_vec::<f32>().unwrap(),
        [1.0, 2.0, 5.0, 6.0, 9.0, 10.0, 3.0, 4.0, 7.0, 8.0, 11.0, 12.0]
    );
    assert_eq!(turned.view_as_complex().unwrap().strides()[..], [1, 2]);
    // Parts that are not adjacent, and rows with an odd number of parts as their stride.
    for apart in [
        parts.transpose(&[0, 2, 1]).unwrap(),
        float_tensor(&cpu, &[3, 3], &[0.0; 9]).slice(1, 0, 2, 1).unwrap(),
    ] {
        assert_eq!(expect_failure(apart.view_as_complex()).kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(expect_failure(parts.view_as_real()).kind(), ErrorKind::InvalidArgument);
}

#[test]
fn shapes_that_depend_on_values_follow_them() {
    let (runtime, cpu) = start_runtime();
    let reshape = Op::latest(&runtime, "Reshape").unwrap();
    let x = float_tensor(&cpu, &[2, 3], &[0.0; 6]);
    for shape in [[3, 2], [-1, 1], [6, 1]] {
        let wanted = Tensor::from_slice(&cpu, &[2], &shape).unwrap();
        let found = reshape.run(&runtime, &[&x, &wanted]).unwrap();
        let first = if shape[0] == -1 { 6 } else { shape[0] };
        assert_eq!(found.dims(), [first, shape[1]]);
    }
    let bad = Tensor::from_slice(&cpu, &[2], &[4i64, 2]).unwrap();
    assert!(expect_failure(reshape.run(&runtime, &[&x, &bad])).to_string().contains("`Reshape` on `cpu:0`"));
}

#[test]
fn outputs_whose_shape_depends_on_data_are_taken_by_the_kernel() {
    let (runtime, cpu) = start_runtime();
    let nonzero = Op::latest(&runtime, "NonZero").unwrap();
    let found = nonzero.run(&runtime, &[&float_tensor(&cpu, &[2, 2], &[0.0, 1.0, 2.0, 0.0])]).unwrap();
    assert_eq!((found.dims(), found.to_vec::<i64>().unwrap()), ([2, 2].as_slice(), vec![0, 1, 1, 0]));
}

#[test]
fn a_tensor_of_texts_from_a_table_shares_it() {
    let (_runtime, cpu) = start_runtime();
    let table: Arc<[String]> = ["low", "high"].map(str::to_owned).into();
    let texts = Tensor::from_shared_strings(&cpu, &[3], &table, [1, 0, 1].into_iter()).unwrap();
    drop(table);
    assert_eq!(texts.to_strings().unwrap(), ["high", "low", "high"]);
    let table: Arc<[String]> = ["low"].map(str::to_owned).into();
    let refused = Tensor::from_shared_strings(&cpu, &[2], &table, [0].into_iter()).unwrap_err().to_string();
    assert!(refused.contains("expected 2 strings for the shape [2], found 1"), "{refused}");
}

#[test]
fn strings_move_and_keep_their_text() {
    let (runtime, cpu) = start_runtime();
    let words =
        Tensor::from_strings(&cpu, &[2, 2], ["a", "bc", "", "déf"].map(str::to_owned).to_vec()).unwrap();
    assert_eq!(words.transpose(&[1, 0]).unwrap().to_strings().unwrap(), ["a", "", "bc", "déf"]);
    let identity = Op::latest(&runtime, "Identity").unwrap();
    let copy = identity.run(&runtime, &[&words]).unwrap();
    drop(words);
    assert_eq!(copy.to_strings().unwrap(), ["a", "bc", "", "déf"]);
}

#[test]
fn an_invalid_call_names_op_operand_and_mismatched_values() {
    let (runtime, cpu) = start_runtime();
    let add = Op::latest(&runtime, "Add").unwrap();
    let a = float_tensor(&cpu, &[2], &[1.0, 2.0]);
    let ints = Tensor::from_slice(&cpu, &[2], &[1i32, 2]).unwrap();
    let error = expect_failure(add.run(&runtime, &[&a, &ints]));
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(
        (error.op(), error.operand(), error.device()),
        (Some("Add"), Some("input 1 (B)"), Some("cpu:0"))
    );
    let error = expect_failure(add.run(&runtime, &[&a, &float_tensor(&cpu, &[3], &[0.0; 3])]));
    assert!(error.message().contains("[2]") && error.message().contains("[3]"), "{error}");
    assert!(expect_failure(add.run(&runtime, &[&a])).to_string().contains("Add"));
    assert!(expect_failure(add.run(&runtime, &[&a, &a, &a])).to_string().contains("Add"));
    assert!(Op::latest(&runtime, "Ad").err().is_some_and(|error| error.to_string().contains("`Add`")));
}

#[test]
fn what_no_kernel_takes_is_told_apart() {
    let (runtime, cpu) = start_runtime();
    let decoder = Op::latest(&runtime, "ImageDecoder").unwrap();
    let bytes = Tensor::from_slice(&cpu, &[1], &[0u8]).expect("a tensor");
    let error = expect_failure(decoder.run(&runtime, &[&bytes]));
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.advice().is_some_and(|hint| hint.contains("oarlock kernels")), "{error:?}");
}

#[test]
fn an_explanation_names_the_chosen_kernel_and_rejection_reasons() {
    let (runtime, cpu) = start_runtime();
    let add = Op::latest(&runtime, "Add").unwrap();
    let a = float_tensor(&cpu, &[2], &[1.0, 2.0]);
    let call = OpInvocation { inputs: &[Some(&a), Some(&a)], outputs: 1, device: None, stream: None };
    let text = add.explain_call(&runtime, &call).unwrap().to_string();
    assert!(text.contains("chosen: `oarlock-cpu`"), "{text}");
}

#[test]
fn every_row_of_the_cpu_makes_sense() {
    let (runtime, _) = start_runtime();
    let registry = runtime.registry();
    let problems = registry.find_problems();
    let told: Vec<String> =
        problems.iter().map(|problem| format!("{}: {}", problem.entry.info().op, problem.error)).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    let ops: std::collections::BTreeSet<&str> =
        registry.entries().iter().map(|row| row.info().op.as_str()).collect();
    assert!(ops.len() >= 100, "{} ops", ops.len());
}

#[test]
fn nan_is_found_where_it_arises_and_skipped_where_the_user_says_so() {
    let looks = |flags: &[(&str, &str)]| {
        let runtime = runtime_with(flags);
        let cpu = runtime.device("cpu").unwrap();
        let x = float_tensor(&cpu, &[4], &[1.0, -1.0, 4.0, f32::INFINITY]);
        Op::latest(&runtime, "Sqrt").unwrap().run(&runtime, &[&x])
    };
    let error = expect_failure(looks(&[("check_nan_inf", "1")]));
    assert_eq!((error.kind(), error.op()), (ErrorKind::PreconditionNotMet, Some("Sqrt")));
    assert!(error.message().contains("numel:4 index:1 value:NaN, there are 1,1,2 nan,inf,num"), "{error}");
    assert!(looks(&[("check_nan_inf", "1"), ("check_nan_inf_skip_ops", "Sqrt")]).is_ok());
    assert!(looks(&[]).is_ok());
}

#[test]
fn nan_is_looked_for_in_floats_of_8_bits_and_in_complex_numbers() {
    let runtime = runtime_with(&[("check_nan_inf", "1")]);
    let cpu = runtime.device("cpu").unwrap();
    let identity = Op::latest(&runtime, "Identity").unwrap();
    let of_bytes = |dtype: Dtype, bytes: &[u8]| {
        let size = dtype.byte_size().unwrap() as usize;
        let x = Tensor::from_bytes(&cpu, dtype, &[(bytes.len() / size) as i64], bytes).unwrap();
        identity.run(&runtime, &[&x]).map_err(|error| error.message().to_owned())
    };
    let told = |dtype, bytes: &[u8]| of_bytes(dtype, bytes).expect_err("a number that is not finite");
    assert!(of_bytes(Dtype::F8E4M3, &[0x7E, 0xFE, 0x00]).is_ok() && of_bytes(Dtype::F8E5M2, &[0x7B]).is_ok());
    assert!(told(Dtype::F8E4M3, &[0x38, 0xFF]).contains("numel:2 index:1 value:NaN, there are 1,0,1"));
    assert!(told(Dtype::F8E5M2, &[0x3C, 0xFC, 0x7F]).contains("numel:3 index:1 value:-inf, there are 1,1,1"));
    let singles = [1.0, f32::INFINITY, 1.0, 1.0, f32::INFINITY, f32::NAN].map(f32::to_ne_bytes).concat();
    assert!(told(Dtype::C64, &singles).contains("numel:3 index:0 value:inf, there are 1,1,1"));
    let doubles = [1.0, 1.0, 1.0, f64::NAN].map(f64::to_ne_bytes).concat();
    assert!(told(Dtype::C128, &doubles).contains("numel:2 index:1 value:NaN, there are 1,0,1"));
    assert!(of_bytes(Dtype::C128, &doubles[..16]).is_ok());
}

#[test]
fn outputs_are_skipped_by_their_name_in_the_schema_and_by_their_place() {
    let divide = |skipped: &str| {
        let runtime = runtime_with(&[("check_nan_inf", "1"), ("check_nan_inf_skip_outputs", skipped)]);
        let cpu = runtime.device("cpu").unwrap();
        let x = float_tensor(&cpu, &[2], &[0.0, 1.0]);
        Op::latest(&runtime, "Div").unwrap().run(&runtime, &[&x, &x])
    };
    for skipped in ["Div:C", "Div:output 0", "Mul:C,Div:C"] {
        assert!(divide(skipped).is_ok(), "{skipped}");
    }
    for skipped in ["", "Mul:C", "Div:D", "Div:output"] {
        assert_eq!(expect_failure(divide(skipped)).operand(), Some("output 0 (C)"), "{skipped}");
    }
}

#[test]
fn random_numbers_follow_the_seed_and_differ_from_call_to_call() {
    let draw = |seed: &str| {
        let runtime = runtime_with(&[("random_seed", seed)]);
        let shape = Attributes::new().with_attribute("shape", Attribute::Ints(vec![4]));
        let op = Op::new(&runtime, "", "RandomNormal", 22, shape).unwrap();
        let call = OpInvocation { inputs: &[], outputs: 1, device: None, stream: None };
        let next = || op.invoke(&runtime, &call).unwrap().pop().flatten().unwrap().to_vec::<f32>().unwrap();
        (next(), next())
    };
    let (first, second) = draw("7");
    assert_ne!(first, second);
    assert_eq!(draw("7"), (first.clone(), second));
    assert_ne!(draw("8").0, first);
}

#[test]
fn a_reusable_call_runs_again_and_again() {
    let (runtime, cpu) = start_runtime();
    let a = float_tensor(&cpu, &[3], &[1.0, 2.0, 3.0]);
    let add = Op::latest(&runtime, "Add").unwrap();
    let call = OpInvocation { inputs: &[Some(&a), Some(&a)], outputs: 1, device: None, stream: None };
    let mut reusable = add.create_reusable_call(&runtime, &call).unwrap();
    for _ in 0..3 {
        reusable.run().unwrap();
    }
    let expected: Vec<u8> = [2.0f32, 4.0, 6.0].iter().flat_map(|value| value.to_ne_bytes()).collect();
    assert_eq!(reusable.read_output(0).unwrap(), expected);
    assert!(reusable.read_output(1).is_err());
}

#[test]
fn a_stream_of_another_device_is_refused_before_execution() {
    let (runtime, cpu) = start_runtime();
    let sims = [runtime.device("sim:0").unwrap(), runtime.device("sim:1").unwrap()];
    let add = Op::latest(&runtime, "Add").unwrap();
    for (device, other) in [(&cpu, &sims[0]), (&sims[0], &cpu), (&sims[0], &sims[1])] {
        let (x, stream) = (float_tensor(device, &[2], &[1.0, 2.0]), other.create_stream(0).unwrap());
        let call = OpInvocation { inputs: &[Some(&x); 2], outputs: 1, device: None, stream: Some(&stream) };
        for refused in [add.invoke(&runtime, &call).err(), add.create_reusable_call(&runtime, &call).err()] {
            let refused = refused.expect("a refusal");
            assert_eq!((refused.kind(), refused.op()), (ErrorKind::InvalidArgument, Some("Add")));
            let expected = format!("expected a stream of `{device}`, found one of `{other}`");
            assert_eq!(refused.message(), expected);
        }
        assert!(add.run(&runtime, &[&x, &x]).is_ok());
    }
}

#[test]
fn a_senseless_number_of_outputs_is_refused() {
    let (runtime, cpu) = start_runtime();
    let x = float_tensor(&cpu, &[2], &[1.0, 2.0]);
    for (op, outputs) in [("Add", 2), ("Neg", usize::MAX), ("Split", usize::MAX)] {
        let inputs = [Some(&x), Some(&x)];
        let inputs = &inputs[..if op == "Add" { 2 } else { 1 }];
        let call = OpInvocation { inputs, outputs, device: None, stream: None };
        let error = Op::latest(&runtime, op).unwrap().invoke(&runtime, &call).expect_err("a refusal");
        assert!(error.message().contains("expected at most"), "{op}: {error}");
    }
}

#[test]
fn nan_is_found_behind_a_packed_call_too() {
    let runtime = runtime_with(&[("check_nan_inf", "1")]);
    let x = float_tensor(&runtime.device("cpu").unwrap(), &[1], &[-1.0]);
    let call = OpInvocation { inputs: &[Some(&x)], outputs: 1, device: None, stream: None };
    let mut reusable = Op::latest(&runtime, "Sqrt").unwrap().create_reusable_call(&runtime, &call).unwrap();
    assert_eq!(reusable.run().unwrap_err().op(), Some("Sqrt"));
}

#[test]
fn constants_of_the_same_shape_are_told_apart() {
    let (runtime, cpu) = start_runtime();
    let product = Op::latest(&runtime, "MatMulInteger").unwrap();
    let bytes = |dims: &[i64], value: u8| {
        let values = vec![value; dims.iter().product::<i64>() as usize];
        Tensor::from_slice(&cpu, dims, &values).unwrap()
    };
    let x = bytes(&[2, 64], 1);
    let sum = |weights: &Tensor, constant_inputs| {
        let call =
            OpInvocation { inputs: &[Some(&x), Some(weights)], outputs: 1, device: None, stream: None };
        let outputs = product.invoke_with_constants(&runtime, &call, constant_inputs).unwrap();
        outputs[0].as_ref().unwrap().to_vec::<i32>().unwrap()[0]
    };
    // More than an op remembers, so that memory of forgotten constants is used again.
    for round in 0..200u8 {
        let weights = bytes(&[64, 48], round);
        for constant_inputs in [0b10, 0b10, 0] {
            assert_eq!(sum(&weights, constant_inputs), 64 * i32::from(round));
        }
    }
}

#[test]
fn kernels_learn_which_inputs_are_constant() {
    let (runtime, cpu) = start_runtime();
    let product = Op::new(&runtime, "oarlock", "DequantizedMatMul", 1, Attributes::new()).unwrap();
    let (x, weights) = (
        Tensor::from_slice(&cpu, &[2, 64], &[1u8; 128]).unwrap(),
        Tensor::from_slice(&cpu, &[64, 48], &[2u8; 64 * 48]).unwrap(),
    );
    let scale = float_tensor(&cpu, &[1], &[0.5]);
    let inputs = [Some(&x), Some(&weights), Some(&scale), Some(&scale)];
    let call = OpInvocation { inputs: &inputs, outputs: 1, device: None, stream: None };
    let refused = product.invoke(&runtime, &call).expect_err("a refusal");
    assert!(refused.to_string().contains("expected `W` to be constant"), "{refused}");
    let outputs = product.invoke_with_constants(&runtime, &call, 0b10).unwrap();
    assert_eq!(outputs[0].as_ref().unwrap().to_vec::<f32>().unwrap(), [32.0; 96]);
}
