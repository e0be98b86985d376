//! Prepares the sandbox of a server for its supervisor, which applies it.

mod landlock;
mod sockets;
mod system_calls;

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use innkeeper_supervisor::launch_request::{HandledRights, PathRule, Sandbox};
use rustix::io::Errno;
use seccompiler::{BackendError, BpfProgram};

use crate::confinement::SandboxSpec;

/// A sandbox with every string and every filter that the supervisor needs.
#[derive(Debug)]
pub(super) struct PreparedSandbox {
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
    pub(super) fn new(spec: &SandboxSpec, program: &Path) -> io::Result<Self> {
        let read = landlock::read_rights();
        let of_server = |paths: &[String], rights| {
            let paths = paths.iter().map(|path| spec.base_dir.join(path));
            paths.map(|path| prepare_rule(&path, rights, false)).collect::<io::Result<Vec<_>>>()
        };
        let mut rules = landlock::default_paths()
            .map(|(path, rights, except_root)| prepare_rule(Path::new(path), rights, except_root))
            .collect::<io::Result<Vec<_>>>()?;
        rules.push(prepare_rule(program, read, false)?);
        rules.extend(of_server(&spec.sandbox.read, read)?);
        rules.extend(of_server(&spec.sandbox.write, landlock::write_rights())?);
        let filters = compile_filters(!spec.sandbox.write.is_empty(), spec.sandbox.network)
            .map_err(|_| io::Error::from(Errno::INVAL))?;
        let filters = filters.iter().map(encode_filter).collect();
        Ok(Self { handled: landlock::handled_rights(spec.sandbox.network), rules, filters })
    }

    /// Returns the sandbox for a launch.
    pub(super) fn request(&self) -> Sandbox<'_> {
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
pub(crate) fn restricts_network() -> bool {
    system_calls::CAN_FILTER || landlock::restricts_network()
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
    let instruction = |of: &seccompiler::sock_filter| -> [u8; 8] {
        let ([code, code_end], [a, b, c, d]) = (of.code.to_ne_bytes(), of.k.to_ne_bytes());
        [code, code_end, of.jt, of.jf, a, b, c, d]
    };
    filter.iter().flat_map(instruction).collect()
}
