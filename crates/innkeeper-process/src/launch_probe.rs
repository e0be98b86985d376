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
    #[cfg(target_os = "linux")]
    written_bytes: u64,
}

impl LaunchProbe {
    /// Creates a probe for a launch whose program is one of these launchers.
    #[cfg(target_os = "linux")]
    pub fn new(launch: &ProcessSpec, launchers: &'static [&'static str]) -> Self {
        Self { args: launch.args.clone(), launchers, stack_start: None, written_bytes: 0 }
    }

    /// Creates a probe on a system that does not report processes.
    #[cfg(not(target_os = "linux"))]
    pub fn new(_: &ProcessSpec, _: &'static [&'static str]) -> Self {
        Self {}
    }

    /// Returns the number of bytes that the launcher had written at the last check; 0 on a system
    /// that does not report the number.
    pub fn written_bytes(&self) -> u64 {
        #[cfg(target_os = "linux")]
        return self.written_bytes;
        #[cfg(not(target_os = "linux"))]
        return 0;
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{OsStr, OsString};
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use rustix::process::Pid;

    use super::LaunchProbe;
    use crate::tree;

    /// Maximum size in bytes of a command line: Linux allows at most 6 MiB.
    const MAX_COMMAND_LINE_BYTES: u64 = 6 << 20;

    impl LaunchProbe {
        /// Checks the launcher's process. The server is a child that has the standard input and
        /// output of the launcher: install scripts and other programs that a launcher runs have
        /// pipes of their own. The launcher has become the server if the process was executed again
        /// and its command line no longer names the launcher. Script interpreters and wrappers keep
        /// the name in their arguments, and a launcher that changes its process title keeps its name
        /// in the title.
        pub fn has_started(&mut self, pid: Pid) -> bool {
            let Some(image) = ProcessImage::read(pid) else { return false };
            self.written_bytes = written_bytes(pid).unwrap_or(self.written_bytes);
            if self.has_server_child(pid, &image.args) {
                return true;
            }
            if self.is_launcher(&image.args) {
                self.stack_start = Some(image.stack_start);
                return false;
            }
            self.stack_start.is_none_or(|before| before != image.stack_start)
        }

        /// Returns whether a child of a launcher is the server. A wrapper starts the launcher as a
        /// child.
        fn has_server_child(&self, pid: Pid, args: &[OsString]) -> bool {
            let own = StandardStreams::read(pid);
            tree::running_children(pid).into_iter().any(|child| {
                let Some(image) = ProcessImage::read(child) else { return false };
                // Before `exec`, a child is a copy of its parent.
                if image.args == args {
                    return false;
                }
                // Without permission to read the streams, each child counts as the server.
                let has_own_streams = match (&own, StandardStreams::read(child)) {
                    (Some(own), Some(streams)) => *own != streams,
                    _ => false,
                };
                match () {
                    () if has_own_streams => false,
                    () if self.has_launcher_name(&image.args) => {
                        self.has_server_child(child, &image.args)
                    }
                    () => true,
                }
            })
        }

        fn is_launcher(&self, argv: &[OsString]) -> bool {
            self.is_launcher_name(argv.first()) || argv.ends_with(&self.args)
        }

        /// Returns whether the program, or the script that an interpreter runs, is a launcher.
        fn has_launcher_name(&self, argv: &[OsString]) -> bool {
            argv.iter().take(2).any(|arg| self.is_launcher_name(Some(arg)))
        }

        fn is_launcher_name(&self, arg: Option<&OsString>) -> bool {
            let title = arg.map(|arg| arg.as_bytes()).unwrap_or_default();
            let program = title.split(|byte| *byte == b' ').next().unwrap_or_default();
            let program = Path::new(OsStr::from_bytes(program)).file_stem().unwrap_or_default();
            let program = program.as_bytes();
            let program = program.strip_suffix(b"-cli").unwrap_or(program);
            self.launchers.iter().any(|launcher| launcher.as_bytes() == program)
        }
    }

    /// The files behind the standard input and the standard output of a process.
    #[derive(PartialEq, Eq)]
    struct StandardStreams([PathBuf; 2]);

    impl StandardStreams {
        /// Returns `None` if a stream is closed, and without permission.
        fn read(pid: Pid) -> Option<Self> {
            let file = |number| std::fs::read_link(format!("/proc/{pid}/fd/{number}")).ok();
            Some(Self([file(0)?, file(1)?]))
        }
    }

    /// Returns the number of bytes that a process has written to any file or pipe.
    fn written_bytes(pid: Pid) -> Option<u64> {
        let counters = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
        let written = counters.lines().find_map(|line| line.strip_prefix("wchar: "));
        written?.trim().parse().ok()
    }

    /// The program that a process executes.
    struct ProcessImage {
        /// Start of the stack, which changes with every `exec`.
        stack_start: u64,
        /// Command line.
        args: Vec<OsString>,
    }

    impl ProcessImage {
        /// Returns `None` during an `exec` and after the exit.
        fn read(pid: Pid) -> Option<Self> {
            let stack_start = tree::ProcessStat::read(pid)?.stack_start;
            let mut line = Vec::new();
            let file = File::open(format!("/proc/{pid}/cmdline")).ok()?;
            file.take(MAX_COMMAND_LINE_BYTES).read_to_end(&mut line).ok()?;
            let line = line.strip_suffix(b"\0").unwrap_or(&line);
            let args = line.split(|byte| *byte == 0).map(|arg| OsStr::from_bytes(arg).to_owned());
            (!line.is_empty()).then(|| Self { stack_start, args: args.collect() })
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_launcher_is_recognised_by_its_arguments_or_by_its_name() {
            let args = ["run", "pkg", "x"].map(OsString::from).to_vec();
            let launching = LaunchProbe {
                args,
                launchers: &["npx", "npm", "pipx"],
                stack_start: None,
                written_bytes: 0,
            };
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
            let wraps = |line: &str| {
                let argv: Vec<OsString> = line.split('|').map(OsString::from).collect();
                launching.has_launcher_name(&argv)
            };
            assert!(wraps("node|/usr/lib/node_modules/npm/bin/npx-cli.js|-y|pkg"));
            assert!(wraps("npm exec pkg x"));
            assert!(!wraps("sh|-c|npx-server"));
            assert!(!wraps("/venv/bin/python|/venv/bin/pkg|npx"));
        }
    }
}
