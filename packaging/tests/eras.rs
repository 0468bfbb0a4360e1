//! Matrices reproduce PaddlePaddle's published tables byte for byte.

use oarlock_matrix::{HISTORICAL_MATRICES, OWN_MATRIX, WheelMatrix};
use oarlock_matrix::{link_page, matrix_table};

/// The paths of a channel, in the order of publication.
fn channel_paths(era: &str, channel: &str) -> Vec<String> {
    let matrix = WheelMatrix::historical(era).expect("the matrix of an era");
    matrix
        .wheels
        .iter()
        .filter(|wheel| wheel.channel == channel)
        .map(oarlock_matrix::MatrixRow::file_path)
        .collect()
}

/// The paths of a channel in a table.
fn published_paths(table: &str, channel: &str) -> Vec<String> {
    let rows =
        table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.filter(|row| row[0] == channel).map(|row| row[2].to_owned()).collect()
}

#[test]
fn the_wheels_of_an_era_are_those_that_were_published() {
    let first = include_str!("published/wheels-1.5.tsv");
    let second = include_str!("published/wheels-2.2.1.tsv");
    for (era, table, channel, count) in [
        ("1.5", first, "release", 34),
        ("1.5", first, "dev", 30),
        ("2.2.1", second, "release", 63),
        ("2.2.1", second, "develop", 62),
    ] {
        let published = published_paths(table, channel);
        assert_eq!(published.len(), count);
        assert_eq!(channel_paths(era, channel), published);
    }
}

#[test]
fn the_labels_are_those_that_were_published() {
    for (era, table) in [
        ("1.5", include_str!("published/wheels-1.5.tsv")),
        ("2.2.1", include_str!("published/wheels-2.2.1.tsv")),
    ] {
        let matrix = WheelMatrix::historical(era).expect("the matrix of an era");
        let ours: Vec<[String; 3]> =
            matrix.wheels.iter().map(|it| [it.channel.clone(), it.label.clone(), it.file_path()]).collect();
        let published = table.lines().filter(|line| !line.starts_with('#'));
        let published: Vec<[String; 3]> = published
            .map(|line| {
                line.split('\t').map(str::to_owned).collect::<Vec<_>>().try_into().expect("three columns")
            })
            .collect();
        assert_eq!(ours, published);
    }
}

#[test]
fn the_pages_of_2_3_2_list_what_a_command_with_them_would_find() {
    let matrix = WheelMatrix::historical("2.3.2").expect("the matrix of an era");
    assert_eq!(matrix.pages.len(), 9);
    let page = |path: &str| {
        let page = matrix.pages.iter().find(|page| page.path == path).expect("a page of this path");
        link_page::render_link_page(&matrix, page)
    };
    let noavx = page("/whl/linux/openblas/noavx/stable.html");
    assert_eq!(noavx.matches("<a href").count(), 1);
    assert!(noavx.contains(
        "https://paddle-wheel.bj.bcebos.com/2.3.2/linux/linux-cpu-openblas-noavx/paddlepaddle-2.3.2-cp38-cp38-linux_x86_64.whl"
    ));
    let avx = page("/whl/linux/mkl/avx/stable.html");
    for suffix in [".post101", "", ".post111", ".post112", ".post116"] {
        assert!(
            avx.contains(&format!(">paddlepaddle_gpu-2.3.2{suffix}-cp310-cp310-linux_x86_64.whl</a>")),
            "{suffix}"
        );
    }
    assert!(page("/whl/rocm/develop.html").contains("paddlepaddle_rocm-0.0.0-cp37-cp37m-linux_x86_64.whl"));
}

#[test]
fn only_the_newest_sources_of_1_5_have_names_that_pip_refuses() {
    for (era, _) in HISTORICAL_MATRICES {
        let matrix = WheelMatrix::historical(era).expect("the matrix of an era");
        let refused = matrix.wheels.iter().filter(|wheel| !wheel.name.is_valid());
        assert_eq!(refused.count(), if *era == "1.5" { 30 } else { 0 }, "{era}");
    }
}

#[test]
fn our_own_wheels_have_one_core_and_one_name_each() {
    let matrix = WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix");
    let rows = matrix_table::table_rows(&matrix, None);
    assert!(rows.iter().all(|row| row.distribution == "oarlock" || !row.parts.contains(&"core".to_owned())));
    let jobs = matrix_table::ci_jobs(&rows);
    let planned = rows.iter().filter(|row| row.planned.is_some()).count();
    assert_eq!(jobs["include"].as_array().map(Vec::len), Some(rows.len() - planned));
}
