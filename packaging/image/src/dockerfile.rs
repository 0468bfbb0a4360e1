//! The Dockerfile from which an engine builds the same image.

use std::collections::BTreeMap;

use oarlock_formats::error::Error;

use super::config::{DescribedLayer, ImageConfig};
use super::images::ImageKind;
use super::name::ImageName;
use serde_json::{Value, json};
use tera::{Context, Tera};

const DOCKERFILE_TEMPLATE: &str = include_str!("../../../docker/Dockerfile.tera");

/// The default name that engines look for.
pub const DOCKERFILE_NAME: &str = "Dockerfile";

/// The file name of a layer beside the Dockerfile.
#[must_use]
pub fn layer_file_name(layer: &str) -> String {
    format!("{layer}.tar.gz")
}

/// Renders a Dockerfile for an image with its layers beside it.
///
/// # Errors
///
/// When the template uses an unknown variable.
pub fn render_dockerfile(
    name: &ImageName,
    config: &ImageConfig,
    layers: &[DescribedLayer<'_>],
) -> Result<String, Error> {
    let failed = |error: tera::Error| Error::new(error.to_string()).in_file("docker/Dockerfile.tera");
    // Engines expand `$NAME` in values.
    let quoted = |text: &str| Value::from(text).to_string().replace('$', "\\$");
    let layers = layers.iter().map(|layer| {
        BTreeMap::from([
            ("name", layer.name.to_owned()),
            ("purpose", layer.purpose.to_owned()),
            ("file", layer_file_name(layer.name)),
        ])
    });
    let variables = config.environment.iter().map(|variable| {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        format!("{name}={}", quoted(value))
    });
    let labels = config.labels().into_iter().map(|(name, value)| format!("{name}={}", quoted(&value)));
    let command = config.command();
    let mut context = Context::new();
    context.insert("title", &config.title);
    context.insert("name", &name.to_string());
    context.insert("architecture", config.architecture.debian_name());
    context.insert("layers", &layers.collect::<Vec<_>>());
    context.insert("environment", &variables.collect::<Vec<_>>());
    context.insert("labels", &labels.collect::<Vec<_>>());
    context.insert("user", &config.user());
    context.insert("is_root", &(config.kind == ImageKind::Dev));
    context.insert("directory", &config.working_directory());
    context.insert("port", &config.port());
    context.insert("health", &config.health_check().map(|health| json!(health).to_string()));
    context.insert("entry", &config.entry_point().map(|entry| json!([entry]).to_string()));
    context.insert("command", &(!command.is_empty()).then(|| json!(command).to_string()));
    let mut templates = Tera::new();
    templates.add_raw_template(DOCKERFILE_NAME, DOCKERFILE_TEMPLATE).map_err(failed)?;
    templates.render(DOCKERFILE_NAME, &context).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::super::layer::PackedLayer;
    use super::*;
    use oarlock_formats::tree::FileTree;
    use oarlock_matrix::CpuArchitecture;

    fn render_example(kind: ImageKind, has_entry: bool, has_notebook: bool) -> String {
        let packed = PackedLayer::new(&FileTree::default(), 0, kind).expect("a layer");
        let layers = [
            DescribedLayer { name: "base", purpose: "the C library", packed: &packed },
            DescribedLayer { name: "library", purpose: "what it is all for", packed: &packed },
        ];
        let config = ImageConfig {
            kind,
            title: "An image <of> ours".to_owned(),
            version: "1.0".to_owned(),
            architecture: CpuArchitecture::X86_64,
            has_entry,
            has_notebook,
            environment: vec!["PATH=/usr/bin".to_owned(), "LANG=C.UTF-8".to_owned()],
            seconds: 0,
        };
        render_dockerfile(&ImageName::new("oarlock", "1.0").expect("a name"), &config, &layers)
            .expect("a text")
    }

    #[test]
    fn the_text_says_what_the_image_says() {
        assert_eq!(
            render_example(ImageKind::Prod, true, false),
            include_str!("../../tests/images/Dockerfile")
        );
    }

    #[test]
    fn an_image_to_build_the_sources_begins_as_root_and_is_not_asked_how_it_is() {
        let text = render_example(ImageKind::Dev, true, false);
        assert!(
            text.contains("\nUSER 0:0\nWORKDIR /oarlock\nENTRYPOINT [\"/usr/bin/oarlock-dev\"]\n"),
            "{text}"
        );
        assert!(text.contains("\n# The entry point switches"), "{text}");
    }

    #[test]
    fn an_image_without_an_entry_point_runs_the_given_command() {
        let text = render_example(ImageKind::Prod, false, false);
        assert!(text.ends_with("\nCMD [\"oarlock\",\"--help\"]\n") && !text.contains("ENTRYPOINT"), "{text}");
    }

    #[test]
    fn an_image_with_notebooks_serves_them_and_says_where() {
        let text = render_example(ImageKind::Prod, true, true);
        assert!(
            text.ends_with("\nENTRYPOINT [\"/usr/bin/oarlock-entry\"]\nCMD [\"oarlock-notebook\"]\n"),
            "{text}"
        );
        for line in
            ["EXPOSE 8888", "HEALTHCHECK --interval=60s --timeout=10s CMD [\"oarlock-notebook\",\"--check\"]"]
        {
            assert!(text.lines().any(|it| it == line), "{text}");
        }
    }
}
