//! Processes that a host leaves behind, found by a variable in their environment.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::program::Program;

/// Time for the processes of a server to end after their host.
const GRACE: Duration = Duration::from_millis(500);

/// A variable that every process of one server has in its environment.
#[derive(Debug)]
pub(super) struct RunMarker {
    variable: &'static str,
    value: String,
}

impl RunMarker {
    pub(super) fn new(server: &str) -> Self {
        let value = format!("{server}-{}", std::process::id());
        Self { variable: "PUBLISHED_SERVER_RUN", value }
    }

    /// Creates a marker for a home directory that no other process has. Each host gives its servers
    /// this variable.
    pub(super) fn home_directory(home: &Path) -> Self {
        Self { variable: "HOME", value: home.display().to_string() }
    }

    pub(super) fn variable(&self) -> &'static str {
        self.variable
    }

    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// Kills the processes with this variable and returns their number.
    pub(super) fn kill_leftovers(&self) -> usize {
        if self.processes().is_empty() {
            return 0;
        }
        sleep(GRACE);
        let left = self.processes();
        for process in &left {
            // The process may have ended.
            let _ = Program::new("kill").arg("-9").arg(process).output();
        }
        left.len()
    }

    fn processes(&self) -> Vec<String> {
        let entry = format!("{}={}", self.variable(), self.value());
        let names = fs::read_dir("/proc").into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let processes = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        processes
            .filter(|process| {
                let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
            })
            .collect()
    }
}
