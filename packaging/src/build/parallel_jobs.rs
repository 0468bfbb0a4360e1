//! Runs build jobs in parallel: cargo leaves cores idle while it compiles the last crate, and packing is single-threaded.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, ScopedJoinHandle};

use oarlock_formats::error::Error;

/// The maximum number of jobs on any number of cores: compiling some parts takes gigabytes of memory.
const MAX_JOBS: usize = 4;

/// Limits cargo's parallelism, which is otherwise the number of cores.
const CARGO_JOBS_VARIABLE: &str = "CARGO_BUILD_JOBS";

/// Shown as soon as a job fails. The full error follows when the other jobs have finished; the next run reuses their output.
const FAILED_MESSAGE: &str = "one failed; waiting for the other jobs";

/// Progress of the jobs.
pub(super) enum JobEvent<'h, W> {
    Begins(&'h W),
    /// A job starts slow side work.
    SideStep(String),
}

/// A message from a job's thread, which identifies the job by its index.
enum JobMessage {
    SideStep(String),
    Ends(usize),
}

/// Runs jobs and returns their results in order. At most one job runs per core, and never two that conflict (`in_the_way`); the
/// first waiting job that may run starts next. `on_event` runs on the calling thread.
///
/// # Errors
///
/// The error of the first job that fails. Running jobs then finish, and no other job starts.
pub(super) fn run_jobs<W: Sync, T: Send>(
    works: &[W],
    in_the_way: impl Fn(&W, &W) -> bool,
    mut on_event: impl FnMut(JobEvent<'_, W>),
    work: impl Fn(&W, &dyn Fn(String)) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let most = max_parallel_jobs(std::env::var(CARGO_JOBS_VARIABLE).ok());
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let mut waiting: Vec<usize> = (0..works.len()).collect();
        let mut going: BTreeMap<usize, ScopedJoinHandle<'_, Result<T, Error>>> = BTreeMap::new();
        let mut made: Vec<Option<T>> = works.iter().map(|_| None).collect();
        let mut failed = None;
        loop {
            let is_free =
                |place: &usize| !going.keys().any(|other| in_the_way(&works[*other], &works[*place]));
            let may_begin = failed.is_none() && going.len() < most;
            if let Some(next) = waiting.iter().position(is_free).filter(|_| may_begin) {
                let place = waiting.remove(next);
                on_event(JobEvent::Begins(&works[place]));
                let (bell, work) = (JobNotifier { place, sender: sender.clone() }, &work);
                let go =
                    move || work(&works[place], &|text| bell.notify_scheduler(JobMessage::SideStep(text)));
                going.insert(place, scope.spawn(go));
                continue;
            }
            if going.is_empty() {
                break;
            }
            match receiver.recv() {
                Ok(JobMessage::SideStep(text)) => on_event(JobEvent::SideStep(text)),
                Ok(JobMessage::Ends(place)) => match going.remove(&place).map(ScopedJoinHandle::join) {
                    Some(Ok(Ok(one))) => made[place] = Some(one),
                    Some(Ok(Err(error))) => {
                        if !going.is_empty() {
                            on_event(JobEvent::SideStep(FAILED_MESSAGE.to_owned()));
                        }
                        failed = failed.or(Some(error));
                    }
                    Some(Err(panicked)) => panic::resume_unwind(panicked),
                    None => {}
                },
                Err(mpsc::RecvError) => break,
            }
        }
        failed.map_or_else(|| Ok(made.into_iter().flatten().collect()), Err)
    })
}

/// The number of jobs at a time, given the value of the variable for cargo's parallelism.
fn max_parallel_jobs(setting: Option<String>) -> usize {
    let setting = setting.and_then(|setting| setting.parse().ok()).filter(|jobs| *jobs > 0);
    setting.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZero::get)).min(MAX_JOBS)
}

/// Reports the end of a job when dropped, even after a panic.
struct JobNotifier {
    place: usize,
    sender: Sender<JobMessage>,
}

impl JobNotifier {
    fn notify_scheduler(&self, message: JobMessage) {
        // The receiver waits for this thread.
        let _ = self.sender.send(message);
    }
}

impl Drop for JobNotifier {
    fn drop(&mut self) {
        self.notify_scheduler(JobMessage::Ends(self.place));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_comes_of_works_is_in_their_order_and_each_begins_once() {
        let works: Vec<u64> = (0..20).collect();
        let (mut begun, mut side_steps) = (Vec::new(), 0);
        let on_event = |event: JobEvent<'_, u64>| match event {
            JobEvent::Begins(work) => begun.push(*work),
            JobEvent::SideStep(text) => side_steps += usize::from(text == "beside"),
        };
        let made = run_jobs(
            &works,
            |_, _| false,
            on_event,
            |work, report| {
                thread::sleep(Duration::from_millis(5 * (20 - work) % 7));
                report("beside".to_owned());
                Ok(work * 2)
            },
        );
        assert_eq!(made.expect("all"), works.iter().map(|work| work * 2).collect::<Vec<_>>());
        assert_eq!((begun, side_steps), (works, 20));
    }

    #[test]
    fn what_is_in_the_way_of_another_waits_for_its_end() {
        let works: Vec<u64> = (0..12).collect();
        let going = Mutex::new(Vec::new());
        let made = run_jobs(
            &works,
            |one, other| one % 3 == other % 3,
            |_| (),
            |work, _| {
                let mut list = going.lock().expect("a list");
                assert!(!list.contains(&(work % 3)), "{work} beside {list:?}");
                list.push(work % 3);
                drop(list);
                thread::sleep(Duration::from_millis(3));
                going.lock().expect("a list").retain(|lane| *lane != work % 3);
                Ok(())
            },
        );
        assert_eq!(made.expect("all").len(), 12);
    }

    #[test]
    fn who_has_little_memory_says_how_many_go_on() {
        assert_eq!(
            [max_parallel_jobs(Some("1".to_owned())), max_parallel_jobs(Some("64".to_owned()))],
            [1, MAX_JOBS]
        );
        for no_number in [None, Some("0".to_owned()), Some("default".to_owned())] {
            assert!((1..=MAX_JOBS).contains(&max_parallel_jobs(no_number)));
        }
    }

    #[test]
    fn nothing_begins_after_one_has_failed() {
        let mut begun = 0;
        let made: Result<Vec<()>, Error> =
            run_jobs(&[0; 50], |_, _| false, |_| begun += 1, |_, _| Err(Error::new("broken")));
        assert_eq!(made.expect_err("a failure").to_string(), "broken");
        assert!(begun <= MAX_JOBS, "{begun} began");
    }

    #[test]
    #[should_panic(expected = "in a thread")]
    fn a_panic_is_passed_on() {
        let made = run_jobs(&[1, 2], |_, _| true, |_| (), |_, _| panic!("in a thread"));
        drop::<Result<Vec<()>, Error>>(made);
    }
}
