//! Files that are written for a program, and names that are refused.

use super::*;

fn example_app() -> AppDeployment {
    AppDeployment {
        name: "fit-a-line".to_owned(),
        base: "oarlock:0.1.0".to_owned(),
        image: "me/fit-a-line:1".to_owned(),
        command: vec!["fit_a_line.py".to_owned(), "--epochs=\"3\"".to_owned()],
        requirements: None,
        port: None,
        hosts: 1,
        gpus: 0,
        gpu_resource: "nvidia.com/gpu".to_owned(),
        cpu: "2".to_owned(),
        memory: "4Gi".to_owned(),
        retries: 2,
        namespace: None,
    }
}

fn rendered_file(app: &AppDeployment, name: &str) -> String {
    let files = app.render_files().expect("files");
    files.into_iter().find(|(it, _)| *it == name).expect("a file").1
}

#[test]
fn an_image_of_a_program_is_a_few_lines_on_ours() {
    let text = rendered_file(&example_app(), "Dockerfile");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        lines,
        ["FROM oarlock:0.1.0", "COPY --chown=10001 . .", r#"CMD ["fit_a_line.py","--epochs=\"3\""]"#]
    );
    let text = rendered_file(
        &AppDeployment { requirements: Some("needs.txt".to_owned()), port: Some(8080), ..example_app() },
        "Dockerfile",
    );
    assert!(
        text.contains("\nRUN pip install --requirement needs.txt\n") && text.contains("\nEXPOSE 8080\n"),
        "{text}"
    );
}

#[test]
fn a_job_on_one_host_has_no_service_and_no_numbers() {
    let text = rendered_file(&example_app(), "job.yaml");
    for none in ["kind: Service", "Indexed", "RANK", "nvidia.com/gpu", "namespace"] {
        assert!(!text.contains(none), "{none} in {text}");
    }
    assert!(text.contains("\n          args: [\"fit_a_line.py\",\"--epochs=\\\"3\\\"\"]\n"), "{text}");
}

#[test]
fn a_digest_pins_the_image_below_and_words_mean_the_same_in_a_cluster() {
    let base = format!("registry.example.org/oarlock:0.1.0@sha256:{}", "0f".repeat(32));
    let app = AppDeployment {
        base: base.clone(),
        command: vec!["echo".to_owned(), "$(RANK)".to_owned()],
        ..example_app()
    };
    assert!(rendered_file(&app, "Dockerfile").contains(&format!("FROM {base}\n")));
    assert!(rendered_file(&app, "Dockerfile").contains(r#"CMD ["echo","$(RANK)"]"#));
    assert!(rendered_file(&app, "job.yaml").contains(r#"args: ["echo","$$(RANK)"]"#));
}

#[test]
fn several_hosts_find_each_other_and_each_has_its_gpus() {
    let text = rendered_file(
        &AppDeployment { hosts: 4, gpus: 2, namespace: Some("team".to_owned()), ..example_app() },
        "job.yaml",
    );
    for line in [
        "  completionMode: Indexed\n  completions: 4\n  parallelism: 4\n",
        "      subdomain: \"fit-a-line\"\n",
        "              value: \"fit-a-line-0.fit-a-line\"\n",
        "              nvidia.com/gpu: 2\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert_eq!(text.matches("  namespace: \"team\"\n").count(), 2, "{text}");
}

#[test]
fn what_a_cluster_or_an_engine_does_not_take_is_refused() {
    let refused = |app: AppDeployment| app.render_files().expect_err("a name that nobody takes").to_string();
    let long = "x".repeat(62);
    for (app, expected) in [
        (AppDeployment { name: "Fit_a_line".to_owned(), ..example_app() }, "found `Fit_a_line`"),
        (AppDeployment { name: "x: y\nz".to_owned(), ..example_app() }, "found `x: y\\nz`"),
        (AppDeployment { name: long, hosts: 11, ..example_app() }, "of at most 60 lower-case letters"),
        (AppDeployment { namespace: Some("-".to_owned()), ..example_app() }, "expected a namespace"),
        (AppDeployment { image: "Me/app".to_owned(), ..example_app() }, "found `Me/app`"),
        (AppDeployment { base: "oarlock:x y".to_owned(), ..example_app() }, "found `x y`"),
        (AppDeployment { hosts: 0, ..example_app() }, "expected 1 to 100000 hosts, found 0"),
        (AppDeployment { hosts: 100_001, ..example_app() }, "expected 1 to 100000 hosts, found 100001"),
        (
            AppDeployment { base: "oarlock:0.1.0-slim".to_owned(), ..example_app() },
            "expected an image with Python",
        ),
        (AppDeployment { base: "oarlock@sha256:12".to_owned(), ..example_app() }, "found `oarlock@sha256`"),
        (
            AppDeployment { requirements: Some("../needs.txt".to_owned()), ..example_app() },
            "below the directory",
        ),
        (AppDeployment { name: "1st".to_owned(), hosts: 2, ..example_app() }, "begins with a letter"),
        (
            AppDeployment { cpu: "many".to_owned(), ..example_app() },
            "expected processors such as `2` or `500m`, found `many`",
        ),
        (
            AppDeployment { memory: "4 GB".to_owned(), ..example_app() },
            "expected memory such as `512Mi` or `4Gi`, found `4 GB`",
        ),
        (AppDeployment { memory: "-1".to_owned(), ..example_app() }, "found `-1`"),
        (
            AppDeployment { gpu_resource: "gpu".to_owned(), ..example_app() },
            "such as `nvidia.com/gpu`; found `gpu`",
        ),
        (AppDeployment { requirements: Some("a b".to_owned()), ..example_app() }, "whose name has no space"),
    ] {
        let error = refused(app);
        assert!(error.contains(expected), "{expected} in {error}");
    }
}

#[test]
fn a_job_is_called_after_its_program() {
    for (program, name) in [
        ("examples/fit_a_line.py", "fit-a-line"),
        ("Train.py", "train"),
        ("_.py", "app"),
        // The program's image would have the same name as ours.
        ("oarlock", "app"),
        ("model.tar.gz", "model"),
    ] {
        assert_eq!(derive_job_name(program), name);
    }
}
