//! Prepares the sandbox of a server for its supervisor, which applies it.

mod landlock;
mod permitted_paths;
mod sockets;
mod system_calls;

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use innkeeper_config::SandboxConfig;
use innkeeper_supervisor::launch_request::{HandledRights, PathRule, Sandbox};
use permitted_paths::{PathProblem, WritableDirs};
use rustix::io::Errno;
use seccompiler::{BackendError, BpfProgram};

use super::{SandboxSpec, UnappliedSetting};

/// A sandbox with every string and every filter that the supervisor needs.
#[derive(Debug)]
pub(crate) struct PreparedSandbox {
    handled: Vec<HandledRights>,
    rules: Vec<PreparedRule>,
    /// Filters in the form of the kernel.
    filters: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct PreparedRule {
    path: CString,
    rights: u64,
    except_root: bool,
}

impl PreparedSandbox {
    /// Prepares the sandbox of a server whose program is this file.
    pub(crate) fn new(spec: &SandboxSpec, program: &Path) -> io::Result<Self> {
        let read = landlock::read_rights();
        let of_system = landlock::default_paths().filter_map(|(path, rights, except_root)| {
            Some((std::fs::canonicalize(path).ok()?, rights, except_root))
        });
        let writable = WritableDirs::new(spec);
        // A running instance can change a link to the program between this look and the execution.
        let program = writable.resolve(&spec.base_dir.join(program)).ok();
        let program = program.map(|path| (path, read, false));
        let read_paths = spec.sandbox.read.iter().map(|path| (path, read));
        let write_paths = spec.sandbox.write.iter().map(|path| (path, landlock::write_rights()));
        let of_server = read_paths.chain(write_paths).filter_map(|(path, rights)| {
            Some((writable.resolve(&spec.absolute(path)).ok()?, rights, false))
        });
        let rules = of_system.chain(program).chain(of_server);
        let rules =
            rules.map(|(path, rights, except_root)| prepare_rule(&path, rights, except_root));
        let rules = rules.collect::<io::Result<_>>()?;
        let filters = compile_filters(!spec.sandbox.write.is_empty(), spec.sandbox.network)
            .map_err(|_| io::Error::from(Errno::INVAL))?;
        let filters = filters.iter().map(encode_filter).collect();
        Ok(Self { handled: landlock::handled_rights(spec.sandbox.network), rules, filters })
    }

    pub(crate) fn request(&self) -> Sandbox<'_> {
        Sandbox {
            handled: self.handled.clone(),
            file_rights: landlock::file_rights(),
            rules: self.rules.iter().map(PreparedRule::request).collect(),
            filters: self.filters.iter().map(Vec::as_slice).collect(),
        }
    }
}

impl PreparedRule {
    fn request(&self) -> PathRule<'_> {
        PathRule { rights: self.rights, except_root: self.except_root, path: &self.path }
    }
}

/// Returns whether this kernel can restrict network connections.
pub(super) fn restricts_network() -> bool {
    system_calls::CAN_FILTER || landlock::restricts_network()
}

/// Returns a configured path without links, if the sandbox permits it.
pub(super) fn permitted_path(spec: &SandboxSpec, path: &str) -> Option<PathBuf> {
    WritableDirs::new(spec).resolve(&spec.absolute(path)).ok()
}

/// Returns the configured paths that the sandbox doesn't permit, with the reason.
pub(super) fn path_problems(spec: &SandboxSpec) -> Vec<UnappliedSetting> {
    let SandboxConfig { read, write, .. } = &spec.sandbox;
    let writable = WritableDirs::new(spec);
    let read = read.iter().map(|path| ("sandbox.read", path));
    let paths = read.chain(write.iter().map(|path| ("sandbox.write", path)));
    paths.filter_map(|(key, path)| {
        let problem = match writable.resolve(&spec.absolute(path)).err()? {
            PathProblem::Missing => format!("`{path}` does not exist"),
            PathProblem::Link(link) => {
                // The last name of the link: messages have no absolute paths that nobody wrote.
                let name = link.file_name().unwrap_or_default().display();
                format!(
                    "`{path}` is not permitted: `{name}` is a link in a directory that the server \
                     may write"
                )
            }
            PathProblem::OwnProcess(link) => format!(
                "`{path}` is not permitted: `{}` is another directory for each process",
                link.display()
            ),
        };
        Some((key, problem))
    }).collect()
}

fn prepare_rule(path: &Path, rights: u64, except_root: bool) -> io::Result<PreparedRule> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    Ok(PreparedRule { path, rights, except_root })
}

fn compile_filters(writes: bool, network: bool) -> Result<Vec<BpfProgram>, BackendError> {
    let mut filters = system_calls::compile_filters(writes)?;
    if !network {
        filters.extend(sockets::compile_filter()?);
    }
    Ok(filters)
}

/// Returns a filter as an array of the kernel's `sock_filter`.
fn encode_filter(filter: &BpfProgram) -> Vec<u8> {
    filter
        .iter()
        .flat_map(|of| -> [u8; 8] {
            let ([code, code_end], [a, b, c, d]) = (of.code.to_ne_bytes(), of.k.to_ne_bytes());
            [code, code_end, of.jt, of.jf, a, b, c, d]
        })
        .collect()
}
