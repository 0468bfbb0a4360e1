//! `oarlock-pack app`.

use std::error::Error;
use std::path::PathBuf;

use super::say::say;

use clap::Args;
use oarlock_pack::app::{App, name_of};
use oarlock_pack::file;
use serde_json::json;

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Call {
    /// What runs, and what it is told: a program in Python, or any command of the image
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<String>,
    /// What the job is called; after its program, if you do not say
    #[arg(long)]
    name: Option<String>,
    /// What its image is called; after the job, if you do not say
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// The image that it begins with; with GPUs, the one for CUDA 12, if you do not say
    #[arg(long, value_name = "IMAGE")]
    base: Option<String>,
    /// The file with the modules of Python that it needs, as pip reads it
    #[arg(long, value_name = "FILE")]
    requirements: Option<String>,
    /// Where it listens
    #[arg(long)]
    port: Option<u16>,
    /// On how many hosts it runs at once; they find each other by `RANK`, `WORLD_SIZE` and `MASTER_ADDR`
    #[arg(long, default_value_t = 1)]
    hosts: u32,
    /// How many GPUs it takes of each
    #[arg(long, default_value_t = 0)]
    gpus: u32,
    /// What the cluster calls a GPU
    #[arg(long, value_name = "NAME", default_value = "nvidia.com/gpu")]
    gpu_resource: String,
    /// How many processors it takes of each host, such as `2` or `500m`
    #[arg(long, value_name = "NUMBER", default_value = "2")]
    cpu: String,
    /// How much memory it takes of each host, such as `4Gi`
    #[arg(long, value_name = "BYTES", default_value = "4Gi")]
    memory: String,
    /// How often it may fail and is started again
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    retries: u32,
    /// Where in the cluster it runs
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Where the files are written
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    out: PathBuf,
    /// Write over files that are there
    #[arg(long)]
    replace: bool,
}

const EXAMPLES: &str = "\
Examples:
  oarlock-pack app train.py                                   # an image and a job of a program in Python
  oarlock-pack app --gpus 1 --requirements needs.txt train.py # with a GPU and some modules
  oarlock-pack app --hosts 4 --gpus 8 train.py --epochs 3     # on four hosts
  oarlock-pack app --name bench oarlock bench model.onnx      # a command of the image";

pub(crate) fn run(call: &Call, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let version = env!("CARGO_PKG_VERSION");
    let ours =
        if call.gpus > 0 { format!("oarlock:{version}-gpu-cuda12") } else { format!("oarlock:{version}") };
    let name = call.name.clone().unwrap_or_else(|| name_of(&call.command[0]));
    let app = App {
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
    let files = app.files()?;
    let places: Vec<PathBuf> = files.iter().map(|(name, _)| call.out.join(name)).collect();
    if let Some(there) = places.iter().find(|place| place.exists() && !call.replace) {
        let there = there.display();
        return Err(format!("expected no file `{there}`, found one; `--replace` writes over it").into());
    }
    if !dry_run {
        for ((_, text), place) in files.iter().zip(&places) {
            file::write(place, text.as_bytes())?;
        }
    }
    if json {
        say!("{:#}", json!({ "files": places }));
        return Ok(());
    }
    // The image is made of that directory, with what is copied there later.
    let is_missing = |file: &&String| !call.out.join(file).exists();
    let program = call.command.first().filter(|it| it.ends_with(".py"));
    for file in program.into_iter().chain(&app.requirements).filter(is_missing) {
        eprintln!("note: there is no `{file}` in `{}`, which the image is made of", call.out.display());
    }
    let verb = if dry_run { "would write" } else { "wrote" };
    places.iter().for_each(|place| say!("{verb} {}", place.display()));
    let (image, out) = (&app.image, call.out.display());
    say!(
        "next: docker build --tag {image} {out} && docker push {image} && kubectl apply --filename {out}/job.yaml"
    );
    Ok(())
}
