//! Invalid matrices are rejected with a reason.

use oarlock_matrix::WheelMatrix;

/// A valid matrix of two wheels.
const GOOD_MATRIX: &str = r#"
host = "https://example.org/"

[axes]
platform = ["linux"]
device = ["cpu", "cuda"]
python = ["py3-none"]

[tags]
linux = "manylinux_2_28_x86_64"

[[channels]]
name = "release"
version = "1.0"

[[wheels]]
platform = "linux"
device = "*"
python = "*"
names.release = { label = "{device}", directory = "/{device}", distribution = "example-{device}" }
"#;

/// The error for the valid matrix with a text replaced.
fn refusal_after_replacing(text: &str, instead: &str) -> String {
    assert!(GOOD_MATRIX.contains(text), "{text}");
    read_refusal(&GOOD_MATRIX.replacen(text, instead, 1))
}

fn read_refusal(text: &str) -> String {
    match WheelMatrix::from_toml("matrix.toml", text) {
        Ok(matrix) => matrix
            .wheels
            .iter()
            .map(|wheel| wheel.file_path() + "\n")
            .collect::<String>()
            .trim_end()
            .to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn all_combinations_are_there() {
    assert_eq!(
        read_refusal(GOOD_MATRIX),
        "/cpu/example_cpu-1.0-py3-none-manylinux_2_28_x86_64.whl\n\
         /cuda/example_cuda-1.0-py3-none-manylinux_2_28_x86_64.whl"
    );
}

#[test]
fn a_value_that_an_axis_does_not_have_is_named() {
    assert_eq!(
        refusal_after_replacing("device = \"*\"", "device = \"cudo\""),
        "`matrix.toml`: expected a value of the axis `device`, one of `cpu`, `cuda`; found `cudo`"
    );
    assert_eq!(
        refusal_after_replacing("device = \"*\"", "device = \"*\"\nblas = \"mkl\""),
        "`matrix.toml`: expected `blas` in [axes] before it is used, found `blas = \"mkl\"`"
    );
}

#[test]
fn an_axis_or_a_field_that_there_is_not_is_refused() {
    assert!(
        refusal_after_replacing("device = \"*\"", "devices = \"*\"")
            .contains("unknown variant `devices`, expected one of `platform`")
    );
    assert!(refusal_after_replacing("label =", "labels = \"x\", label =").contains("unknown field `labels`"));
    assert!(refusal_after_replacing("host =", "hosts = \"x\"\nhost =").contains("unknown field `hosts`"));
}

#[test]
fn what_serves_gpus_is_a_version_that_wheels_have_and_says_which() {
    let of = |text: &str| {
        refusal_after_replacing("[[channels]]", &format!("[accelerators.12]\n{text}\n\n[[channels]]"))
    };
    let error = of("lowest = \"5.0\"");
    assert!(error.contains("expected `accelerator` in [axes] before it is used"), "{error}");
    assert!(of("lowest = \"new\"").contains("expected a number such as `12` or `12.4`, found `new`"));
    assert!(of("highest = \"9.0\"").contains("missing field `lowest`"));
}

#[test]
fn what_a_gpu_may_have_at_most_is_no_less_than_what_it_must() {
    let accelerators = "[accelerators.12]\nlowest = \"9.0\"\nhighest = \"5.0\"\n\n[[channels]]";
    assert_eq!(
        refusal_after_replacing("[[channels]]", accelerators),
        "`matrix.toml`: line 12: expected a `highest` that is not below `lowest`, which is 9.0; found 5.0"
    );
}

#[test]
fn an_address_is_one_that_can_be_fetched_from() {
    for bad in [
        "javascript:alert(1)",
        "//example.org",
        "example.org",
        "https://",
        "https://a b",
        "https://a/?b",
        "ftp://a",
        "https://a'b",
        "",
    ] {
        let message = refusal_after_replacing("https://example.org/", bad);
        let wanted = "`matrix.toml`: line 2: expected an address such as `https://example.org/wheels`, without a query";
        assert_eq!(message, format!("{wanted}, found `{}`", bad.escape_debug()));
        let pages = refusal_after_replacing("host =", &format!("pages_host = \"{bad}\"\nhost ="));
        assert_eq!(pages, message);
    }
    for good in ["http://127.0.0.1:8080", "file:///srv/wheels", "https://[::1]/wheels/"] {
        assert!(!refusal_after_replacing("https://example.org/", good).contains("expected"), "{good}");
    }
}

#[test]
fn libraries_and_packages_are_named_as_they_are_found() {
    let part = |line: &str| GOOD_MATRIX.to_owned() + &format!("[parts.it]\npackage = \"it\"\n{line}\n");
    let last = part("").lines().count();
    for key in ["opens", "names"] {
        for good in ["libcuda.so.1", "libopenblas.so", "libnvrtc-builtins.so", "libx_1+.so.1.20"] {
            assert_eq!(
                read_refusal(&part(&format!("{key} = [\"{good}\"]"))),
                read_refusal(GOOD_MATRIX),
                "{good}"
            );
        }
        for bad in [
            "cuda.so.1",
            "libcuda",
            "lib.so",
            "libcuda.so.",
            "libcuda.so.x",
            "libcuda.so1",
            "lib/x.so",
            "/lib/libx.so",
            "",
        ] {
            assert_eq!(
                read_refusal(&part(&format!("{key} = [\"libm.so.6\", \"{bad}\"]"))),
                format!(
                    "`matrix.toml`: line {last}: expected the name of a library such as `libcuda.so.1`, found `{bad}`"
                )
            );
        }
    }
    for good in ["mkl>=2023.0,<2027", "nvidia-cublas-cu12==12.*", "a~=1.2"] {
        assert_eq!(
            read_refusal(&part(&format!("libraries = [\"{good}\"]"))),
            read_refusal(GOOD_MATRIX),
            "{good}"
        );
    }
    for bad in [
        "libmkl_rt.so.2",
        "mkl",
        ">=1",
        "MKL>=1",
        "mkl>=x",
        "mkl >=1; extra == 'x'",
        "mkl>=1 evil",
        "a b>=1",
        "",
    ] {
        let message = read_refusal(&part(&format!("libraries = [\"{bad}\"]")));
        let wanted = format!(
            "`matrix.toml`: line {last}: expected a package of Python with the versions that will do"
        );
        assert!(
            message.starts_with(&wanted) && message.contains(&format!("found `{}`", bad.escape_debug())),
            "{bad}: {message}"
        );
    }
}

#[test]
fn two_wheels_of_one_name_are_refused() {
    assert_eq!(
        refusal_after_replacing("distribution = \"example-{device}\"", "distribution = \"example\""),
        "`matrix.toml`: expected a file name for each wheel; `cpu` of channel `release` and `cuda` of channel `release` \
         are both `example-1.0-py3-none-manylinux_2_28_x86_64.whl`"
    );
    let told_apart = GOOD_MATRIX
        .replacen("distribution = \"example-{device}\"", "distribution = \"example\"", 1)
        .replacen("host =", "file_names = \"unique in a directory\"\nhost =", 1);
    assert_eq!(read_refusal(&told_apart).lines().count(), 2);
    let same_path = told_apart.replacen("directory = \"/{device}\"", "directory = \"/all\"", 1);
    assert!(read_refusal(&same_path).contains("expected a path for each wheel"));
}

#[test]
fn two_wheels_of_one_label_are_refused() {
    assert_eq!(
        refusal_after_replacing("label = \"{device}\"", "label = \"one\""),
        "`matrix.toml`: expected a label for each wheel of channel `release`; two are `one`"
    );
    let other = "device = [\"cpu\", \"cuda\"]\npython = [\"py3-none\", \"cp311-abi3\"]";
    let for_all = GOOD_MATRIX.replacen("device = [\"cpu\", \"cuda\"]\npython = [\"py3-none\"]", other, 1);
    assert_eq!(
        read_refusal(&for_all).lines().count(),
        4,
        "nobody builds them, so one label is for all versions of Python"
    );
    let built =
        for_all.replacen("[[wheels]]", "[parts.it]\npackage = \"it\"\n[[wheels]]\nparts = [\"it\"]", 1);
    assert!(read_refusal(&built).ends_with("two are `cpu`"));
}

#[test]
fn what_is_no_version_and_no_tag_is_refused() {
    assert_eq!(
        refusal_after_replacing("\"1.0\"", "\"newest\""),
        "`matrix.toml`: expected a version such as `1.2.3` or `1.2.3+cuda12`, found `newest`"
    );
    assert_eq!(
        refusal_after_replacing("\"1.0\"", "\"1.0.RC1\""),
        "`matrix.toml`: expected the version as it is written in names, `1.0rc1`; found `1.0.RC1`"
    );
    assert!(refusal_after_replacing("py3-none", "python3").contains("expected an interpreter and its ABI"));
    assert!(
        refusal_after_replacing("manylinux_2_28_x86_64", "linux").contains("expected the tag of a platform")
    );
    assert!(
        refusal_after_replacing("example-{device}", "Example-{device}")
            .contains("wheel `cpu` of channel `release`: expected a distribution")
    );
    assert!(
        refusal_after_replacing("name = \"release\"\nversion = \"1.0\"", "name = \"release\"")
            .contains("either `version` or `no_version`")
    );
}

#[test]
fn paths_stay_below_the_host() {
    for bad in
        ["/../{device}", "{device}", "/a//{device}", "/a b/{device}", "/.hidden/{device}", "/{device}/"]
    {
        let message = refusal_after_replacing("directory = \"/{device}\"", &format!("directory = \"{bad}\""));
        assert!(message.contains("expected nothing or a path such as"), "{bad}: {message}");
    }
    let page = GOOD_MATRIX.to_owned() + "[[pages]]\nchannel = \"release\"\npath = \"/../all.html\"\n";
    assert!(read_refusal(&page).contains("found `/../all.html`"));
}

#[test]
fn placeholders_are_axes_that_have_a_value() {
    assert!(
        refusal_after_replacing("label = \"{device}\"", "label = \"{divice}\"")
            .contains("found `{divice}` in `{divice}`")
    );
    assert!(refusal_after_replacing("label = \"{device}\"", "label = \"{blas}\"").contains("found `{blas}`"));
    assert!(
        refusal_after_replacing("label = \"{device}\"", "label = \"{device\"")
            .contains("expected `}` after `{`")
    );
}

#[test]
fn a_channel_that_there_is_not_is_named() {
    assert_eq!(
        refusal_after_replacing("names.release", "names.releases"),
        "`matrix.toml`: expected a channel, one of `release`; found `releases`"
    );
}

#[test]
fn what_is_excluded_is_not_there_and_must_have_been() {
    let exclusion = |device: &str| {
        GOOD_MATRIX.to_owned()
            + &format!("[[exclude]]\ndevice = \"{device}\"\nbecause = \"nobody has one\"\n")
    };
    assert_eq!(read_refusal(&exclusion("cuda")).lines().count(), 1);
    assert!(read_refusal(&exclusion("cudo")).contains("found `cudo`"));
    let nothing = exclusion("cuda").replacen("device = \"*\"", "device = \"cpu\"", 1);
    assert_eq!(
        read_refusal(&nothing),
        "`matrix.toml`: expected each exclusion to exclude something; the one because “nobody has one” does not"
    );
}

#[test]
fn invalid_matrix_text_is_reported_with_its_position() {
    assert!(read_refusal("host = ").starts_with("`matrix.toml`: line 1: "));
    assert!(read_refusal("").contains("missing field"));
}

#[test]
fn pages_have_a_path_each() {
    let page = |path: &str| {
        GOOD_MATRIX.to_owned()
            + &format!("[[pages]]\nchannel = \"release\"\ndevice = \"*\"\npath = \"{path}\"\n")
    };
    assert_eq!(WheelMatrix::from_toml("", &page("/{device}.html")).map(|matrix| matrix.pages.len()), Ok(2));
    assert!(read_refusal(&page("/all.html")).contains("two are `/all.html`"));
}
