//! Works that go on side by side: cargo leaves a core idle where one crate is left to be compiled, and what packs has one thread.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, ScopedJoinHandle};

use crate::error::Error;

/// How many works at most, however many cores there are: compiling some parts takes gigabytes of memory.
const MOST: usize = 4;

/// What says how much cargo does at once, in place of the number of cores.
const JOBS: &str = "CARGO_BUILD_JOBS";

/// What is said of a failure at once; all of it comes when the others have ended, whose work the next run finds.
const FAILED: &str = "one failed; waiting for what goes on beside it";

/// What is heard of works while they go on.
pub(super) enum Heard<'h, W> {
    /// This one begins.
    Begins(&'h W),
    /// Something that one does beside, which takes long.
    Beside(String),
}

/// What a thread says of its work, which is known by its place.
enum Said {
    Beside(String),
    Ends(usize),
}

/// Has works done and gives what comes of them, in their order. At most as many go on as there are cores, and none of which one is
/// in the way of another; of those that wait, the first that may begins. `hear` is called by this thread.
///
/// # Errors
///
/// That of the first that fails. What goes on then comes to its end, and nothing else begins.
pub(super) fn side_by_side<W: Sync, T: Send>(
    works: &[W],
    in_the_way: impl Fn(&W, &W) -> bool,
    mut hear: impl FnMut(Heard<'_, W>),
    work: impl Fn(&W, &dyn Fn(String)) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let most = most(std::env::var(JOBS).ok());
    let (say, said) = mpsc::channel();
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
                hear(Heard::Begins(&works[place]));
                let (bell, work) = (Bell { place, say: say.clone() }, &work);
                let go = move || work(&works[place], &|text| bell.say(Said::Beside(text)));
                going.insert(place, scope.spawn(go));
                continue;
            }
            if going.is_empty() {
                break;
            }
            match said.recv() {
                Ok(Said::Beside(text)) => hear(Heard::Beside(text)),
                Ok(Said::Ends(place)) => match going.remove(&place).map(ScopedJoinHandle::join) {
                    Some(Ok(Ok(one))) => made[place] = Some(one),
                    Some(Ok(Err(error))) => {
                        if !going.is_empty() {
                            hear(Heard::Beside(FAILED.to_owned()));
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

/// How many works may go on, where somebody may have said how much cargo does at once.
fn most(said: Option<String>) -> usize {
    let said = said.and_then(|said| said.parse().ok()).filter(|jobs| *jobs > 0);
    said.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZero::get)).min(MOST)
}

/// Says that a work has ended, even where it panicked.
struct Bell {
    place: usize,
    say: Sender<Said>,
}

impl Bell {
    fn say(&self, said: Said) {
        // Who would hear it waits for this thread.
        let _ = self.say.send(said);
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.say(Said::Ends(self.place));
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
        let (mut begun, mut beside) = (Vec::new(), 0);
        let hear = |heard: Heard<'_, u64>| match heard {
            Heard::Begins(work) => begun.push(*work),
            Heard::Beside(text) => beside += usize::from(text == "beside"),
        };
        let made = side_by_side(
            &works,
            |_, _| false,
            hear,
            |work, tell| {
                thread::sleep(Duration::from_millis(5 * (20 - work) % 7));
                tell("beside".to_owned());
                Ok(work * 2)
            },
        );
        assert_eq!(made.expect("all"), works.iter().map(|work| work * 2).collect::<Vec<_>>());
        assert_eq!((begun, beside), (works, 20));
    }

    #[test]
    fn what_is_in_the_way_of_another_waits_for_its_end() {
        let works: Vec<u64> = (0..12).collect();
        let going = Mutex::new(Vec::new());
        let made = side_by_side(
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
        assert_eq!([most(Some("1".to_owned())), most(Some("64".to_owned()))], [1, MOST]);
        for no_number in [None, Some("0".to_owned()), Some("default".to_owned())] {
            assert!((1..=MOST).contains(&most(no_number)));
        }
    }

    #[test]
    fn nothing_begins_after_one_has_failed() {
        let mut begun = 0;
        let made: Result<Vec<()>, Error> =
            side_by_side(&[0; 50], |_, _| false, |_| begun += 1, |_, _| Err(Error::new("broken")));
        assert_eq!(made.expect_err("a failure").to_string(), "broken");
        assert!(begun <= MOST, "{begun} began");
    }

    #[test]
    #[should_panic(expected = "in a thread")]
    fn a_panic_is_passed_on() {
        let made = side_by_side(&[1, 2], |_, _| true, |_| (), |_, _| panic!("in a thread"));
        drop::<Result<Vec<()>, Error>>(made);
    }
}
