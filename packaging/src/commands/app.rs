//! `oarlock-pack app`.

use std::error::Error;
use std::path::PathBuf;

use oarlock_formats::file;
use oarlock_image::ImageName;
use oarlock_pack::app::{AppDeployment, derive_job_name};

use super::container_engine;
use super::say::say;
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct AppArguments {
    /// The program and its arguments: a Python program, or any command of the image
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<String>,
    /// The name of the job; by default the program's name
    #[arg(long)]
    name: Option<String>,
    /// The name of the image; by default the job's name
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// The base image; by default the one for CUDA 12 with NVIDIA GPUs, and the one for OpenCL with others
    #[arg(long, value_name = "IMAGE")]
    base: Option<String>,
    /// A pip requirements file for the program
    #[arg(long, value_name = "FILE")]
    requirements: Option<String>,
    /// The port that the program listens on
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// The number of hosts; they find each other by `RANK`, `WORLD_SIZE` and `MASTER_ADDR`
    #[arg(long, default_value_t = 1)]
    hosts: u32,
    /// The number of GPUs per host
    #[arg(long, default_value_t = 0)]
    gpus: u32,
    /// The resource name of a GPU in the cluster
    #[arg(long, value_name = "NAME", default_value = "nvidia.com/gpu")]
    gpu_resource: String,
    /// The processors per host, such as `2` or `500m`
    #[arg(long, value_name = "NUMBER", default_value = "2")]
    cpu: String,
    /// The memory per host, such as `4Gi`
    #[arg(long, value_name = "BYTES", default_value = "4Gi")]
    memory: String,
    /// The number of restarts after failures
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    retries: u32,
    /// The namespace in the cluster
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// The directory to write to
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    out: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    replace: bool,
    /// Build the image with Docker or podman. Existing files stay, and the image is built from them
    #[arg(long)]
    build: bool,
}

pub(crate) fn run(call: &AppArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    if let Some(late) = misplaced_option(call) {
        eprintln!(
            "note: `{late}` comes after the program and is passed to it; options of `app` come before the program"
        );
    }
    let version = env!("CARGO_PKG_VERSION");
    let device = match call.gpus {
        0 => "",
        _ if call.gpu_resource.starts_with("nvidia.com/") => "-gpu-cuda12",
        _ => "-opencl",
    };
    let ours = format!("oarlock:{version}{device}");
    let name = call.name.clone().unwrap_or_else(|| derive_job_name(&call.command[0]));
    let app = AppDeployment {
        image: call.image.clone().unwrap_or_else(|| format!("{name}:latest")),
        name,
        base: call.base.clone().unwrap_or(ours),
        command: call.command.clone(),
        requirements: call.requirements.clone(),
        port: call.port,
        hosts: call.hosts,
        gpus: call.gpus,
        gpu_resource: call.gpu_resource.clone(),
        cpu: call.cpu.clone(),
        memory: call.memory.clone(),
        retries: call.retries,
        namespace: call.namespace.clone(),
    };
    let files = app.render_files()?;
    let files: Vec<(PathBuf, String)> =
        files.into_iter().map(|(name, text)| (call.out.join(name), text)).collect();
    let (kept, written): (Vec<_>, Vec<_>) =
        files.iter().partition(|(place, _)| place.exists() && !call.replace);
    if let Some((there, _)) = kept.first().filter(|_| !call.build) {
        let there = there.display();
        return Err(format!("expected no file `{there}`, found one; `--replace` writes over it").into());
    }
    // Report problems with the engine before writing any file.
    let engine = if call.build && !dry_run { Some(container_engine::find_engine()?) } else { None };
    let missing = missing_files(call);
    // An absolute path refers to the image, whether or not this machine has it.
    if let Some(file) = missing.iter().find(|file| engine.is_some() && !file.starts_with('/')) {
        let out = call.out.display();
        return Err(format!(
            "`{out}`: expected `{file}`, for the image is made of what is there; found none"
        )
        .into());
    }
    if !dry_run {
        for (place, text) in &written {
            file::write_file(place, text.as_bytes())?;
        }
    }
    let built = engine
        .map(|engine| container_engine::build_image(&engine, &call.out, &ImageName::parse_name(&app.image)?))
        .transpose()?;
    if json {
        let places =
            |files: &[&(PathBuf, String)]| files.iter().map(|(place, _)| place.clone()).collect::<Vec<_>>();
        say!("{:#}", json!({ "files": places(&written), "kept": places(&kept), "engine": built }));
        return Ok(());
    }
    for file in missing {
        eprintln!("note: there is no `{file}` in `{}`, which the image is made of", call.out.display());
    }
    let verb = if dry_run { "would write" } else { "wrote" };
    written.iter().for_each(|(place, _)| say!("{verb} {}", place.display()));
    kept.iter().for_each(|(place, _)| say!("kept {}", place.display()));
    let (image, out) = (&app.image, call.out.display());
    let build = match &built {
        Some(id) => {
            say!("built {image}, {id}");
            String::new()
        }
        None => format!("docker build --tag {image} {out} && "),
    };
    say!("next: {build}docker push {image} && kubectl apply --filename {out}/job.yaml");
    if !image.contains('/') {
        eprintln!(
            "note: `--image registry.example.org/team/{image}` sets the registry from which a cluster pulls the image"
        );
    }
    Ok(())
}

/// An option of this command that appears among the program's arguments.
fn misplaced_option(call: &AppArguments) -> Option<&String> {
    let own = AppArguments::augment_args(clap::Command::new("app"));
    let is_own = |word: &&String| {
        let name = word.strip_prefix("--").and_then(|word| word.split('=').next());
        name.is_some_and(|name| own.get_arguments().any(|it| it.get_long() == Some(name)))
    };
    call.command.iter().skip(1).find(is_own)
}

/// Files that the program needs and that are missing from the build context.
fn missing_files(call: &AppArguments) -> Vec<&String> {
    let program = call.command.first().filter(|it| it.ends_with(".py"));
    let files = program.into_iter().chain(&call.requirements);
    files.filter(|file| file.starts_with('/') || !call.out.join(file).exists()).collect()
}
