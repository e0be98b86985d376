//! Resource limits and sandbox of a server's processes.

#[cfg(target_os = "linux")]
pub(crate) mod sandbox;

use std::path::{Component, Path, PathBuf};

use innkeeper_config::{ResourceLimits, SandboxConfig};

use crate::supervisor::Supervisor;

/// The configured limits and sandbox; the default changes nothing about a start.
#[derive(Clone, Debug, Default)]
pub struct Confinement {
    pub(super) limits: ResourceLimits,
    pub(super) sandbox: Option<SandboxSpec>,
}

/// A sandbox with the base directory of its relative paths.
#[derive(Clone, Debug)]
pub(crate) struct SandboxSpec {
    pub(super) sandbox: SandboxConfig,
    pub(super) base_dir: PathBuf,
}

/// A configuration key without effect, with the reason.
pub type UnappliedSetting = (&'static str, String);

impl Confinement {
    /// Creates the confinement of a server that runs in the directory `from`.
    pub fn new(limits: ResourceLimits, sandbox: Option<&SandboxConfig>, from: &Path) -> Self {
        let sandbox = sandbox.map(|sandbox| SandboxSpec {
            sandbox: sandbox.clone(),
            base_dir: std::path::absolute(from).unwrap_or_else(|_| from.to_owned()),
        });
        Self { limits, sandbox }
    }

    /// Returns the first path in `write` of the sandbox for which `condition` holds. The condition gets
    /// what the server may write: an absolute path without links.
    pub fn find_write_path(&self, condition: impl Fn(&Path) -> bool) -> Option<&str> {
        let spec = self.sandbox.as_ref()?;
        let mut write = spec.sandbox.write.iter().map(String::as_str);
        write.find(|path| permitted_path(spec, path).is_some_and(|path| condition(&path)))
    }

    /// Returns the reason if the requested sandbox is unavailable on this system.
    pub(super) fn sandbox_unavailable_reason(
        &self,
        supervisor: &Supervisor,
    ) -> Option<&'static str> {
        self.sandbox.as_ref()?;
        if !cfg!(target_os = "linux") {
            return Some("sandboxing requires Linux");
        }
        let no_shim = matches!(supervisor, Supervisor::Group);
        no_shim.then_some("sandboxing requires `innkeeper-shim`, which was not found")
    }

    /// Returns the settings that have no effect on this system.
    pub fn unapplied_settings(&self, supervisor: &Supervisor) -> Vec<UnappliedSetting> {
        let mut unapplied = Vec::new();
        let mut limit = |key, set: Option<u64>, reason: Option<&str>| {
            unapplied.extend(set.and(reason).map(|reason| (key, reason.to_owned())));
        };
        let nowhere = match supervisor {
            _ if cfg!(windows) => Some("limits are not supported on Windows"),
            Supervisor::Group => Some("requires `innkeeper-shim`, which was not found"),
            Supervisor::Embedded(_) | Supervisor::Shim { .. } => None,
        };
        let elsewhere = (!cfg!(target_os = "linux")).then_some("not enforced on this system");
        let ResourceLimits { memory, cpu_seconds, open_files, file_size, processes } = self.limits;
        limit("limits.memory", memory, nowhere.or(elsewhere));
        limit("limits.cpuSeconds", cpu_seconds, nowhere);
        limit("limits.openFiles", open_files, nowhere);
        limit("limits.fileSize", file_size, nowhere);
        limit("limits.processes", processes, nowhere.or(elsewhere));
        if self.sandbox_unavailable_reason(supervisor).is_none() {
            unapplied.extend(self.sandbox.iter().flat_map(SandboxSpec::unapplied_settings));
        }
        unapplied
    }
}

impl SandboxSpec {
    /// Returns the absolute form of a path. `..` takes the name before it back: what lies behind a
    /// link may be the choice of the server.
    pub(crate) fn absolute(&self, path: &str) -> PathBuf {
        let mut absolute = PathBuf::new();
        for component in self.base_dir.join(path).components() {
            match component {
                Component::ParentDir => drop(absolute.pop()),
                Component::CurDir => {}
                Component::Normal(_) | Component::RootDir | Component::Prefix(_) => {
                    absolute.push(component);
                }
            }
        }
        absolute
    }

    fn unapplied_settings(&self) -> Vec<UnappliedSetting> {
        let mut unapplied = path_problems(self);
        if !self.sandbox.network && !restricts_network() {
            let reason = "blocking network connections requires Linux 6.7 or later";
            unapplied.push(("sandbox.network", reason.to_owned()));
        }
        unapplied
    }
}

#[cfg(target_os = "linux")]
use sandbox::{path_problems, permitted_path, restricts_network};

#[cfg(not(target_os = "linux"))]
fn permitted_path(spec: &SandboxSpec, path: &str) -> Option<PathBuf> {
    std::fs::canonicalize(spec.absolute(path)).ok()
}

#[cfg(not(target_os = "linux"))]
fn path_problems(_spec: &SandboxSpec) -> Vec<UnappliedSetting> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn restricts_network() -> bool {
    false
}
