//! Whether a launcher has started the server it was told to: as its child, or by becoming it.

#[cfg(target_os = "linux")]
use std::ffi::OsString;

use super::Launch;

/// What is remembered of a launcher between two looks at it.
#[derive(Debug)]
pub(crate) struct Launching {
    #[cfg(target_os = "linux")]
    args: Vec<OsString>,
    #[cfg(target_os = "linux")]
    launchers: &'static [&'static str],
    #[cfg(target_os = "linux")]
    stack: Option<u64>,
}

impl Launching {
    /// A launch whose program is one of these launchers.
    #[cfg(target_os = "linux")]
    pub(crate) fn new(launch: &Launch, launchers: &'static [&'static str]) -> Self {
        Self { args: launch.args.clone(), launchers, stack: None }
    }

    /// The same where nobody can look at a process.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn new(_: &Launch, _: &'static [&'static str]) -> Self {
        Self {}
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{OsStr, OsString};
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use rustix::process::Pid;

    use super::Launching;
    use crate::shim::tree;

    /// The longest command line that is read, in bytes: Linux takes 6 MiB at most.
    const COMMAND_LINE: u64 = 6 << 20;

    impl Launching {
        /// Looks at the launcher's process. It has become another program when it was executed anew
        /// and its words are not those that it was started with any more: interpreters of scripts
        /// and wrappers around a launcher keep these, and a launcher that shows a title in their
        /// place keeps its name.
        pub(crate) fn has_started(&mut self, pid: Pid) -> bool {
            if tree::has_children(pid) {
                return true;
            }
            let Some((stack, words)) = image(pid) else { return false };
            if self.is_launcher(&words) {
                self.stack = Some(stack);
                return false;
            }
            self.stack.is_none_or(|before| before != stack)
        }

        fn is_launcher(&self, words: &[OsString]) -> bool {
            let title = words.first().map(|word| word.as_bytes()).unwrap_or_default();
            let program = title.split(|byte| *byte == b' ').next().unwrap_or_default();
            let program = Path::new(OsStr::from_bytes(program)).file_stem();
            let named = program.is_some_and(|name| self.launchers.iter().any(|one| name == *one));
            named || words.ends_with(&self.args)
        }
    }

    /// Where the stack of a process begins, which every execution changes, and its command line.
    /// `None` while it is executed, and once it has ended.
    fn image(pid: Pid) -> Option<(u64, Vec<OsString>)> {
        let stack = tree::Stat::read(pid)?.stack;
        let mut line = Vec::new();
        let file = File::open(format!("/proc/{pid}/cmdline")).ok()?;
        file.take(COMMAND_LINE).read_to_end(&mut line).ok()?;
        let line = line.strip_suffix(b"\0").unwrap_or(&line);
        let words = line.split(|byte| *byte == 0).map(|word| OsStr::from_bytes(word).to_owned());
        (!line.is_empty()).then(|| (stack, words.collect()))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_launcher_is_known_by_the_words_it_was_started_with_or_by_its_name() {
            let args = ["run", "pkg", "x"].map(OsString::from).to_vec();
            let launching = Launching { args, launchers: &["npx", "npm", "pipx"], stack: None };
            let is_launcher = |line: &str| {
                let words: Vec<OsString> = line.split('|').map(OsString::from).collect();
                launching.is_launcher(&words)
            };
            assert!(is_launcher("/usr/bin/python3|/usr/bin/pipx|run|pkg|x"));
            assert!(is_launcher("mise|exec|pipx|run|pkg|x"));
            assert!(is_launcher("npm exec pkg x"));
            assert!(is_launcher("/opt/bin/npx|-y|other"));
            assert!(!is_launcher("/venv/bin/python|/venv/bin/pkg|x"));
            assert!(!is_launcher("node|/cache/server.js"));
        }
    }
}
