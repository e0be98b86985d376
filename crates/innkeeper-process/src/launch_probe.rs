//! Detects whether a launcher has started its server.

#[cfg(target_os = "linux")]
use std::ffi::OsString;

use super::ProcessSpec;

/// The state of a launcher between two checks.
#[derive(Debug)]
pub struct LaunchProbe {
    #[cfg(target_os = "linux")]
    args: Vec<OsString>,
    #[cfg(target_os = "linux")]
    launchers: &'static [&'static str],
    #[cfg(target_os = "linux")]
    stack_start: Option<u64>,
}

impl LaunchProbe {
    /// Creates a probe for a launch whose program is one of these launchers.
    #[cfg(target_os = "linux")]
    pub fn new(launch: &ProcessSpec, launchers: &'static [&'static str]) -> Self {
        Self { args: launch.args.clone(), launchers, stack_start: None }
    }

    /// Creates a probe on a system that does not report processes.
    #[cfg(not(target_os = "linux"))]
    pub fn new(_: &ProcessSpec, _: &'static [&'static str]) -> Self {
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

    use super::LaunchProbe;
    use crate::shim::tree;

    /// Maximum size in bytes of a command line: Linux allows at most 6 MiB.
    const MAX_COMMAND_LINE_BYTES: u64 = 6 << 20;

    impl LaunchProbe {
        /// Checks the launcher's process. The launcher has become another program if the process
        /// was executed again and its command line no longer names the launcher. Script
        /// interpreters and wrappers keep the name in their arguments, and a launcher that changes
        /// its process title keeps its name in the title.
        pub fn has_started(&mut self, pid: Pid) -> bool {
            if tree::has_children(pid) {
                return true;
            }
            let Some((stack, args)) = process_image(pid) else { return false };
            if self.is_launcher(&args) {
                self.stack_start = Some(stack);
                return false;
            }
            self.stack_start.is_none_or(|before| before != stack)
        }

        fn is_launcher(&self, argv: &[OsString]) -> bool {
            let title = argv.first().map(|arg| arg.as_bytes()).unwrap_or_default();
            let program = title.split(|byte| *byte == b' ').next().unwrap_or_default();
            let program = Path::new(OsStr::from_bytes(program)).file_stem();
            let is_known =
                program.is_some_and(|name| self.launchers.iter().any(|launcher| name == *launcher));
            is_known || argv.ends_with(&self.args)
        }
    }

    /// Returns the start of a process's stack, which changes with every `exec`, and its command
    /// line. `None` during an `exec` and after the exit.
    fn process_image(pid: Pid) -> Option<(u64, Vec<OsString>)> {
        let stack = tree::ProcessStat::read(pid)?.stack_start;
        let mut line = Vec::new();
        let file = File::open(format!("/proc/{pid}/cmdline")).ok()?;
        file.take(MAX_COMMAND_LINE_BYTES).read_to_end(&mut line).ok()?;
        let line = line.strip_suffix(b"\0").unwrap_or(&line);
        let args = line.split(|byte| *byte == 0).map(|arg| OsStr::from_bytes(arg).to_owned());
        (!line.is_empty()).then(|| (stack, args.collect()))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_launcher_is_recognised_by_its_arguments_or_by_its_name() {
            let args = ["run", "pkg", "x"].map(OsString::from).to_vec();
            let launching =
                LaunchProbe { args, launchers: &["npx", "npm", "pipx"], stack_start: None };
            let is_launcher = |line: &str| {
                let argv: Vec<OsString> = line.split('|').map(OsString::from).collect();
                launching.is_launcher(&argv)
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
