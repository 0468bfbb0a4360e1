//! The directory that a plugin was loaded from.

use std::fs;
use std::path::PathBuf;

/// The directory of the shared object that contains this code, or of the program if the code is linked into it. Look there
/// for vendor libraries that a package manager installed beside the plugin.
///
/// `None` if the system does not reveal it.
#[must_use]
pub fn plugin_directory() -> Option<PathBuf> {
    let here = plugin_directory as fn() -> Option<PathBuf> as usize;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let file = maps.lines().find_map(|line| mapped_file(line, here))?;
    PathBuf::from(file).parent().map(PathBuf::from)
}

/// The file of a line such as `7f00-7f80 r-xp 00001000 08:01 42   /lib/foo.so`, if the range contains the address.
fn mapped_file(line: &str, address: usize) -> Option<&str> {
    let (range, rest) = line.split_once(' ')?;
    let (begin, end) = range.split_once('-')?;
    let [begin, end] = [begin, end].map(|text| usize::from_str_radix(text, 16).ok());
    let at = rest.find('/')?;
    (begin?..end?).contains(&address).then_some(&rest[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statically_linked_code_reports_the_directory_of_the_program() {
        let program = std::env::current_exe().expect("this program");
        assert_eq!(plugin_directory().as_deref(), program.parent());
    }

    #[test]
    fn only_files_count_and_spaces_belong_to_their_names() {
        let line = "1000-2000 r-xp 00001000 08:01 42                 /opt/my plugins/foo.so";
        assert_eq!(mapped_file(line, 0x1fff), Some("/opt/my plugins/foo.so"));
        assert_eq!(mapped_file(line, 0x2000), None);
        assert_eq!(mapped_file("1000-2000 r-xp 00000000 00:00 0    [vdso]", 0x1000), None);
        assert_eq!(mapped_file("nothing", 0), None);
    }
}
