//! Isolated plugins that die or lie: the host goes on.

use std::time::Duration;

use oarlock_host::{Host, HostConfig, HostOptions, PluginDevice, PluginFailure, ProbeCommand};

use super::common::PluginDirectory;
use super::{compile_template, isolating_options, kill_process, only_device, wait_for_turn};

/// Numbers that look random and are the same in each run.
struct SeededNumbers(u64);

impl SeededNumbers {
    fn from_seed(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next_below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Uses a device in every way, until something fails.
fn use_device(device: &PluginDevice, numbers: &mut SeededNumbers) -> PluginFailure {
    let round = |numbers: &mut SeededNumbers| {
        let size = 1 + numbers.next_below(1 << 20) as usize;
        let mut block = device.allocate(size as u64)?;
        let stream = device.create_stream(0)?;
        let event = device.create_event()?;
        let data = vec![numbers.next_below(256) as u8; size];
        block.write_bytes(0, &data)?;
        stream.record_event(&event)?;
        stream.wait_for(&event)?;
        event.synchronize()?;
        let mut pinned = device.allocate_pinned(size)?;
        pinned.as_bytes_mut().copy_from_slice(&data);
        block.write_bytes(0, pinned.as_bytes())?;
        let mut back = vec![0; size];
        block.read_bytes(0, &mut back)?;
        stream.synchronize()?;
        device.memory_stats()?;
        Ok::<bool, PluginFailure>(back == data)
    };
    loop {
        match round(numbers) {
            Ok(is_right) => assert!(is_right, "what was copied there and back is unchanged"),
            Err(failure) => return failure,
        }
    }
}

#[test]
fn a_process_that_is_killed_at_any_moment_is_a_lost_device() {
    let _alone = wait_for_turn();
    let directory = PluginDirectory::new();
    compile_template(&directory);
    for seed in 1..=200 {
        let mut numbers = SeededNumbers::from_seed(seed);
        let host = Host::start(&isolating_options(&directory)).expect("a sound configuration");
        let device = only_device(&host);
        let process = device.plugin().process_id().expect("an isolated plugin");
        let moment = Duration::from_micros(numbers.next_below(4000));
        let failure = std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(moment);
                kill_process(process);
            });
            use_device(&device, &mut numbers)
        });
        assert!(failure.is_device_lost(), "seed {seed}: {failure}");
        let again = device.allocate(1).expect_err("the device stays lost");
        assert!(again.is_device_lost(), "seed {seed}: {again}");
    }
}

/// The numbers of open files and of mapped ranges of memory.
fn count_resources() -> (usize, usize) {
    let files = std::fs::read_dir("/proc/self/fd").expect("a list of files").count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a list of maps");
    (files, maps.lines().filter(|line| line.contains("oarlock-isolation")).count())
}

#[test]
fn nothing_is_left_of_a_hundred_processes() {
    let _alone = wait_for_turn();
    let directory = PluginDirectory::new();
    compile_template(&directory);
    let open_once = |is_killed: bool| {
        let host = Host::start(&isolating_options(&directory)).expect("a sound configuration");
        let device = only_device(&host);
        device.allocate(64).expect("memory");
        let process = device.plugin().process_id().expect("an isolated plugin");
        if is_killed {
            kill_process(process);
            device.allocate(64).expect_err("the process is gone");
        }
        drop(device);
        drop(host);
        assert!(!std::path::Path::new(&format!("/proc/{process}")).exists(), "process {process} has ended");
    };
    open_once(false);
    let before = count_resources();
    (0..100).for_each(|number| open_once(number % 2 == 0));
    assert_eq!(count_resources(), before);
    assert_eq!(before.1, 0);
}

/// Options for a host whose child processes overwrite the shared memory at random.
fn hostile_options(directory: &PluginDirectory, seed: u64) -> HostOptions {
    let mut options = isolating_options(directory);
    let text = "[plugins.isolated]\ncall_timeout_ms = 300\n";
    let path = std::path::Path::new("test.toml");
    options.config = HostConfig::parse_file(path, text.as_bytes()).expect("a sound configuration");
    let probe = options.probe.take().expect("a program").program;
    let program = probe.with_file_name("hostile_child");
    assert!(program.exists(), "build it first: `cargo build -p oarlock-host --examples`");
    options.probe = Some(ProbeCommand { program, arguments: vec![seed.to_string().into()] });
    options
}

#[test]
fn a_process_that_answers_garbage_neither_crashes_the_host_nor_hangs_it() {
    let _alone = wait_for_turn();
    let directory = PluginDirectory::new();
    compile_template(&directory);
    let (mut started, mut lost) = (0, 0);
    for seed in 1..=40 {
        let mut options = hostile_options(&directory, seed);
        // The probe is the same program, which behaves when it probes.
        options.cache_home = Some(directory.path().join("cache"));
        let host = Host::start(&options).expect("a sound configuration");
        let devices = host.devices();
        let Some(device) = devices.first() else { continue };
        started += 1;
        let mut numbers = SeededNumbers::from_seed(seed);
        // Wrong results are what a hostile plugin may return; the host just has to survive them.
        let used = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..20 {
                if use_device(device, &mut numbers).is_device_lost() {
                    return true;
                }
            }
            false
        }));
        lost += usize::from(used.unwrap_or(false));
    }
    assert!(started > 20 && lost > 0, "{started} were started, {lost} were lost");
    let host = Host::start(&isolating_options(&directory)).expect("a sound configuration");
    only_device(&host).allocate(64).expect("an honest process");
}
