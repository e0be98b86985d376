//! Encodes the confinement of a server for its shim.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use innkeeper_config::ResourceLimits;
use rustix::io::Errno;

use crate::confinement::{Confinement, SandboxSpec};
use crate::shim::wire;
use crate::shim::wire::{ConfineCommand, WireOsString};
use crate::tree_tag::TreeTag;

/// Returns the command that confines the server with `program`, the shim's own executable. On Linux
/// each server needs the command, for the mark of the tree and the parent-death signal. On other
/// systems, returns `None` if no setting must be applied by the process itself, so that the shim
/// starts the server directly.
pub(super) fn confine_command(
    requested: &Confinement,
    tag: &TreeTag,
    program: &Path,
    args: &[OsString],
) -> io::Result<Option<ConfineCommand>> {
    // The shim enforces the process limit.
    let ResourceLimits { memory, cpu_seconds, open_files, file_size, processes: _ } =
        requested.limits;
    let sandbox = requested.sandbox.as_ref().map(wire_sandbox);
    let limited = [memory, cpu_seconds, open_files, file_size].iter().any(Option::is_some);
    if cfg!(not(target_os = "linux")) && !limited && sandbox.is_none() {
        return Ok(None);
    }
    // The shim starts the program in the server's directory; it searches bare names there.
    let is_bare_name = program.components().nth(1).is_none();
    let program = if is_bare_name { program.to_owned() } else { std::path::absolute(program)? };
    Ok(Some(ConfineCommand {
        program: program.as_os_str().into(),
        args: args.iter().map(|arg| arg.as_os_str().into()).collect(),
        confinement: wire::Confinement {
            memory,
            cpu_seconds,
            open_files,
            file_size,
            lock_limit: tag.lock_limit(),
            sandbox,
        },
    }))
}

fn wire_sandbox(paths: &SandboxSpec) -> wire::Sandbox {
    let absolute = |list: &[String]| -> Vec<WireOsString> {
        list.iter().map(|path| paths.base_dir.join(path).as_os_str().into()).collect()
    };
    wire::Sandbox {
        read: absolute(&paths.sandbox.read),
        write: absolute(&paths.sandbox.write),
        network: paths.sandbox.network,
    }
}

/// Describes the error of a process that could not confine itself.
pub(super) fn describe_errno(errno: i32) -> String {
    let without = [Errno::OPNOTSUPP, Errno::NOSYS].map(Errno::raw_os_error);
    if without.contains(&errno) {
        return "sandboxing requires Landlock, which this kernel lacks or disables".to_owned();
    }
    io::Error::from_raw_os_error(errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confined(limits: ResourceLimits) -> Option<ConfineCommand> {
        let confinement = Confinement::new(limits, None, Path::new("/"));
        let (program, args) = (Path::new("bin/innkeeper-shim"), ["__shim".into()]);
        confine_command(&confinement, &TreeTag::new(), program, &args).unwrap()
    }

    #[test]
    fn without_limits_the_command_sets_only_the_mark_of_the_tree() {
        for limits in [
            ResourceLimits::default(),
            ResourceLimits { processes: Some(1), ..ResourceLimits::default() },
        ] {
            let confinement = confined(limits).map(|confine| confine.confinement);
            let Some(confinement) = confinement.filter(|_| cfg!(target_os = "linux")) else {
                continue;
            };
            assert!(confinement.lock_limit.is_some());
            assert_eq!(wire::Confinement { lock_limit: None, ..confinement }, Default::default());
        }
    }

    #[test]
    fn the_program_is_found_from_another_directory() {
        let confine =
            confined(ResourceLimits { open_files: Some(64), ..ResourceLimits::default() }).unwrap();
        let program = OsString::from(confine.program);
        assert!(Path::new(&program).is_absolute(), "{program:?}");
    }
}
