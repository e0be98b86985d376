//! What a server's processes may use and touch, and which of it this system can enforce.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Supervisor;
use crate::audit::Fact;
use crate::config::{Limits, Sandbox};
use crate::event::{Event, Events};

/// What was configured; without any of it a server is started as if this did not exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    pub(super) limits: Limits,
    pub(super) sandbox: Option<Paths>,
}

/// A sandbox with the directory that its relative paths start at.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(super) sandbox: Sandbox,
    pub(super) from: PathBuf,
}

/// A key without effect and why.
type NotApplied = (&'static str, String);

impl Bounds {
    /// The bounds of a server that runs in the directory `from`.
    pub(crate) fn new(limits: Limits, sandbox: Option<&Sandbox>, from: &Path) -> Self {
        let sandbox = sandbox.map(|sandbox| Paths {
            sandbox: sandbox.clone(),
            from: std::path::absolute(from).unwrap_or_else(|_| from.to_owned()),
        });
        Self { limits, sandbox }
    }

    /// Tells of everything that has no effect here.
    pub(crate) fn tell_not_applied(
        &self,
        server: &Arc<str>,
        supervisor: &Supervisor,
        events: &Events,
    ) {
        for (what, reason) in self.not_applied(supervisor) {
            Fact::LimitNotApplied { what, why: &reason }.tell(server);
            events.publish(Event::LimitNotApplied { server: server.clone(), what, reason });
        }
    }

    /// Why the sandbox that was asked for cannot be had here at all, if so.
    pub(super) fn refused(&self, supervisor: &Supervisor) -> Option<&'static str> {
        self.sandbox.as_ref()?;
        if !cfg!(target_os = "linux") {
            return Some("a sandbox needs Linux");
        }
        let alone = matches!(supervisor, Supervisor::Group);
        alone.then_some("a sandbox needs the program `innkeeper-shim`, which was not found")
    }

    fn not_applied(&self, supervisor: &Supervisor) -> Vec<NotApplied> {
        let mut found = Vec::new();
        let mut limit = |key, set: Option<u64>, why: Option<&str>| {
            found.extend(set.and(why).map(|why| (key, why.to_owned())));
        };
        let nowhere = match supervisor {
            _ if cfg!(windows) => Some("limits are not applied on Windows yet"),
            Supervisor::Group => Some("it needs the program `innkeeper-shim`, which was not found"),
            Supervisor::Shim { .. } => None,
        };
        let elsewhere = (!cfg!(target_os = "linux")).then_some("this system does not enforce it");
        let Limits { memory, cpu_seconds, open_files, file_size, processes } = self.limits;
        limit("limits.memory", memory, nowhere.or(elsewhere));
        limit("limits.cpuSeconds", cpu_seconds, nowhere);
        limit("limits.openFiles", open_files, nowhere);
        limit("limits.fileSize", file_size, nowhere);
        limit("limits.processes", processes, nowhere.or(elsewhere));
        if self.refused(supervisor).is_none() {
            found.extend(self.sandbox.iter().flat_map(Paths::not_applied));
        }
        found
    }
}

impl Paths {
    fn not_applied(&self) -> Vec<NotApplied> {
        let Sandbox { read, write, network } = &self.sandbox;
        let mut found = Vec::new();
        for (key, paths) in [("sandbox.read", read), ("sandbox.write", write)] {
            let missing = paths.iter().filter(|path| !self.from.join(path).exists());
            found.extend(missing.map(|path| (key, format!("`{path}` does not exist"))));
        }
        if !network && !restricts_network() {
            let why = "this system cannot keep a program from connecting; Linux 6.7 can";
            found.push(("sandbox.network", why.to_owned()));
        }
        found
    }
}

#[cfg(target_os = "linux")]
fn restricts_network() -> bool {
    crate::shim::sockets::FILTERED || crate::shim::landlock::restricts_network()
}

#[cfg(not(target_os = "linux"))]
fn restricts_network() -> bool {
    false
}
