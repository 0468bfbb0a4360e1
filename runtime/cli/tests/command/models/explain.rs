//! `oarlock explain`.

use serde_json::Value;

use super::model_builder::ModelBuilder;
use super::user_with_models;

#[test]
fn every_node_has_a_device_a_kernel_and_a_reason() {
    let outcome = user_with_models().run_command(&["explain", "pair.onnx", "--passes", "--shape", "n=1000"]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    let lines: Vec<&str> = outcome.out.lines().collect();
    assert_eq!(lines[..2], ["pair.onnx", "ONNX, IR 8 by tests, opsets acme 1, ai.onnx 18; on cpu:0"]);
    for start in ["  a  f32[n]  planned for f32 [1000]", "passes", "2 nodes", "memory"] {
        assert!(lines.iter().any(|line| line.starts_with(start)), "{start} in {}", outcome.out);
    }
    let add = lines.iter().find(|line| line.starts_with("  Add")).unwrap();
    assert!(
        add.contains("sum: f32 [1000]") && add.contains("cpu:0") && add.contains("`oarlock-cpu`"),
        "{add}"
    );
    assert!(add.contains("kernel"), "{add}");
}

#[test]
fn a_size_that_nobody_gave_is_assumed_and_told() {
    let outcome = user_with_models().run_command(&["explain", "product.onnx"]);
    assert!(
        outcome.out.contains("  `batch` is taken as 1; `--shape batch=SIZE` says otherwise\n"),
        "{}",
        outcome.out
    );
    let outcome = user_with_models().run_command(&["explain", "product.onnx", "-i", "f32:[[1,2,3],[4,5,6]]"]);
    assert!(
        outcome.out.contains("planned for f32 [2, 3]") && !outcome.out.contains("is taken as"),
        "{}",
        outcome.out
    );
}

#[test]
fn inputs_too_large_for_memory_are_explained_but_not_generated() {
    let user = user_with_models();
    let outcome = user.run_command(&["explain", "pair.onnx", "--shape", "n=10000000000000"]);
    assert!(outcome.out.contains("planned for f32 [10000000000000]"), "{} {}", outcome.out, outcome.err);
    // The allocation alone would succeed, but memory does not suffice for a tensor on top of it.
    let machine = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = machine.lines().find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB"));
    let most = total.unwrap().trim().parse::<u64>().unwrap() * 1024;
    let shape = format!("a={}", most / 4 * 3 / size_of::<f32>() as u64);
    let outcome = user.run_command(&["run", "pair.onnx", "--random", "0", "--shape", &shape]);
    assert!(outcome.status == 1 && outcome.err.contains("a shape that fits into memory"), "{}", outcome.err);
    assert!(outcome.err.contains("hint: give a smaller one with `--shape`"), "{}", outcome.err);
    let fixed = ModelBuilder::new()
        .with_input(&format!("x: f32[{}]", most / 4))
        .with_node("y = Size(x)")
        .with_output("y: i64[]");
    user.write_file("fixed.onnx", &fixed.into_bytes());
    let outcome = user.run_command(&["run", "fixed.onnx", "--random", "0"]);
    assert!(outcome.err.contains("hint: the model takes no other shape"), "{}", outcome.err);
}

#[test]
fn an_explanation_is_there_for_programs_and_for_browsers() {
    let user = user_with_models();
    let arguments = ["explain", "product.onnx", "--json", "--html", "page.html", "--svg", "graph.svg"];
    let report = user.run_command(&arguments).parse_json();
    assert_eq!((&report["format"], &report["nodes_in_file"]), (&"ONNX, IR 8".into(), &2.into()));
    let nodes = report["nodes"].as_array().unwrap();
    let chosen = |node: &Value| {
        let considered = node["considered"].as_array().unwrap();
        considered.iter().filter(|row| row["chosen"] == true).count()
    };
    assert!(nodes.iter().all(|node| chosen(node) == 1 && node["why"].is_string()), "{nodes:?}");
    assert!(nodes.iter().any(|node| node["flops"] == 12), "{nodes:?}");
    let product = nodes.iter().find(|node| node["op"].as_str().unwrap().contains("MatMul")).unwrap();
    let how = product["how"].as_str().unwrap();
    assert!(how.contains("one pass") && how.ends_with(" by `oarlock-cpu`"), "{how}");
    assert_eq!(report["memory"]["weights_bytes"], 24);
    assert!(report["memory"]["arenas"].is_array() && report["passes"].is_array());
    let read = |name: &str| std::fs::read_to_string(user.home.path().join(name)).unwrap();
    let (page, picture) = (read("page.html"), read("graph.svg"));
    assert!(page.contains("<svg") && !page.contains("<script") && !page.contains("href="), "{page}");
    assert!(picture.starts_with("<svg xmlns=") && picture.contains("MatMul") && !picture.contains("NaN"));
}

#[test]
fn values_that_live_at_the_same_time_never_share_their_memory() {
    let user = user_with_models();
    let mut model =
        super::model_builder::ModelBuilder::new().with_input("x: f32[64, 64]").with_node("v0 = Sin(x)");
    for step in 0..12 {
        // Each step reads the previous value and an older one, so that several are live at once.
        let older = step / 2;
        model = model.with_node(&format!("v{} = MatMul(v{step}, v{older})", step + 1));
    }
    user.write_file("chain.onnx", &model.with_output("v12: f32[64, 64]").into_bytes());
    let arena =
        user.run_command(&["explain", "chain.onnx", "--json"]).parse_json()["memory"]["arenas"][0].clone();
    let number = |part: &Value, name: &str| part[name].as_u64().unwrap();
    let (values, size) = (arena["values"].as_array().unwrap(), number(&arena, "bytes"));
    assert!(values.len() >= 10 && size < number(&arena, "bytes_apart"), "{arena}");
    for (at, one) in values.iter().enumerate() {
        assert!(number(one, "offset") + number(one, "bytes") <= size, "{one}");
        for other in &values[at + 1..] {
            let together = number(one, "first_step") < number(other, "last_step")
                && number(other, "first_step") < number(one, "last_step");
            let apart = number(one, "offset") + number(one, "bytes") <= number(other, "offset")
                || number(other, "offset") + number(other, "bytes") <= number(one, "offset");
            assert!(!together || apart, "{one} and {other} overlap");
        }
    }
}

#[test]
fn nodes_of_branches_stand_below_their_choice() {
    let user = user_with_models();
    let model = super::model_builder::ModelBuilder::new()
        .with_input("c: bool[]")
        .with_input("x: f32[n]")
        .with_branches(["Relu(x)", "Neg(x)"])
        .with_output("y: f32[…]");
    user.write_file("choice.onnx", &model.into_bytes());
    let outcome = user.run_command(&["explain", "choice.onnx"]);
    let ops: Vec<&str> = outcome.out.lines().filter(|line| line.contains("cpu:0  ")).collect();
    assert_eq!(ops.len(), 3, "{} {}", outcome.out, outcome.err);
    assert!(ops[0].starts_with("  If ") && ops[1].starts_with("    Relu "), "{ops:?}");
    assert!(ops[2].ends_with("in `else_branch`, which is planned when it runs"), "{ops:?}");
    let run = |choice: &str| user.run_command(&["run", "choice.onnx", "-i", choice, "-i", "x=f32:[-2]"]).out;
    assert_eq!(
        (run("c=bool:true"), run("c=bool:false")),
        ("y: f32 [1]\n[0.0]\n".into(), "y: f32 [1]\n[2.0]\n".into())
    );
    let checked = user.run_command(&["check", "choice.onnx"]);
    assert!(checked.out.contains("cpu:0 runs all of it, 3 nodes"), "{}", checked.out);
}

#[test]
fn a_node_that_nobody_can_run_is_named() {
    let outcome = user_with_models().run_command(&["explain", "foreign.onnx"]);
    assert_eq!((outcome.status, outcome.out.as_str()), (1, ""));
    assert!(outcome.err.contains("`Magic`") || outcome.err.contains("Magic"), "{}", outcome.err);
}
