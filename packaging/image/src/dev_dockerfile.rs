//! The Dockerfile of the development image, for machines that have only an engine. Unlike the images that this crate assembles,
//! it runs package scripts, needs the network and installs Debian's current versions.

use std::collections::BTreeMap;

use oarlock_formats::error::Error;

use super::config::ImageConfig;
use super::image_root::{CONTAINER_USER, HOME_DIRECTORY};
use super::images::{ImageCatalog, ImageKind};
use serde_json::Value;
use tera::{Context, Tera};

const DEV_DOCKERFILE_TEMPLATE: &str = include_str!("../../../docker/Dockerfile.dev.tera");

/// The directory of links that the package scripts do not all create; links to libraries they do.
const LINK_DIRECTORY: &str = "usr/bin/";

/// Renders `Dockerfile` in the root of the sources: packages, environment and entry point of a build image.
///
/// # Errors
///
/// When the image does not exist or is not for building, or the template uses an unknown variable.
pub fn render_dev_dockerfile(images: &ImageCatalog, label: &str) -> Result<String, Error> {
    let failed = |error: tera::Error| Error::new(error.to_string()).in_file("docker/Dockerfile.dev.tera");
    let chosen = images.select_images(&[label.to_owned()])?;
    let image =
        chosen.first().ok_or_else(|| Error::new(format!("expected an image `{label}`, found none")))?;
    let config = ImageConfig::for_image(images, image, env!("CARGO_PKG_VERSION"), 0)?;
    let entry = config.entry_point().filter(|_| config.kind == ImageKind::Dev).ok_or_else(|| {
        Error::new(format!(
            "expected an image to build the sources with, found `{label}`, which runs programs"
        ))
    })?;
    let (mut layers, mut links) = (Vec::new(), Vec::new());
    for name in &image.layers {
        let layer = images.find_layer(name)?;
        layers.push(Value::from_iter([
            ("name", Value::from(name.as_str())),
            ("purpose", Value::from(layer.purpose.as_str())),
            ("packages", Value::from(layer.debian.clone())),
        ]));
        links.extend(layer.links.iter().filter_map(|(path, target)| {
            Some(BTreeMap::from([("name", path.strip_prefix(LINK_DIRECTORY)?), ("target", target)]))
        }));
    }
    // Components other than `main` contain nothing that the build needs.
    let only = images.debian.only.iter().filter(|(suite, _)| !suite.contains('/')).map(|(suite, sources)| {
        let sources_named = sources.iter().map(|source| format!("`{source}`")).collect::<Vec<_>>().join(", ");
        let pinned = sources.iter().map(|source| format!("src:{source}")).collect::<Vec<_>>().join(" ");
        BTreeMap::from([("suite", suite.clone()), ("sources", sources_named), ("pinned", pinned)])
    });
    let environment = config.environment.iter().map(|variable| {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        format!("{name}={}", Value::from(value).to_string().replace('$', "\\$"))
    });
    let mut context = Context::new();
    context.insert("image", label);
    context.insert("suite", images.debian.suites.first().map_or("", String::as_str));
    context.insert("only", &only.collect::<Vec<_>>());
    context.insert("layers", &layers);
    context.insert("links", &links);
    context.insert("user", &CONTAINER_USER);
    context.insert("home", HOME_DIRECTORY);
    context.insert("entry", &entry);
    context.insert("environment", &environment.collect::<Vec<_>>());
    context.insert("directory", &config.working_directory());
    let mut templates = Tera::new();
    templates.add_raw_template("Dockerfile", DEV_DOCKERFILE_TEMPLATE).map_err(failed)?;
    templates.render("Dockerfile", &context).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::super::ImageSources;
    use super::*;
    use oarlock_matrix::CpuArchitecture;

    #[test]
    fn an_image_that_runs_programs_has_no_tools() {
        let ImageSources { images, .. } =
            ImageSources::of_oarlock(CpuArchitecture::X86_64).expect("our own images");
        for label in ["plain", "slim"] {
            let error = render_dev_dockerfile(&images, label).expect_err("no tools").to_string();
            assert_eq!(
                error,
                format!("expected an image to build the sources with, found `{label}`, which runs programs")
            );
        }
    }
}
