//! The bounds of a server as they are handed to its shim.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::config::Limits;
use crate::server::process::bounds::{Bounds, Paths};
use crate::shim::wire::{self, Confine, Os};

/// How the server is to be confined by `program`, the shim's own; `None` without bounds that a
/// process sets itself, so that nothing stands between shim and server.
pub(super) fn confine(
    bounds: &Bounds,
    program: &Path,
    args: &[OsString],
) -> io::Result<Option<Confine>> {
    // The tree is counted by the shim.
    let Limits { memory, cpu_seconds, open_files, file_size, processes: _ } = bounds.limits;
    let sandbox = bounds.sandbox.as_ref().map(sandbox);
    let limited = [memory, cpu_seconds, open_files, file_size].iter().any(Option::is_some);
    if !limited && sandbox.is_none() {
        return Ok(None);
    }
    // The shim starts it in the server's directory. A name alone is looked up there.
    let named = program.components().nth(1).is_none();
    let program = if named { program.to_owned() } else { std::path::absolute(program)? };
    Ok(Some(Confine {
        program: program.as_os_str().into(),
        args: args.iter().map(|arg| arg.as_os_str().into()).collect(),
        bounds: wire::Bounds { memory, cpu_seconds, open_files, file_size, sandbox },
    }))
}

fn sandbox(paths: &Paths) -> wire::Sandbox {
    let absolute = |list: &[String]| -> Vec<Os> {
        list.iter().map(|path| paths.from.join(path).as_os_str().into()).collect()
    };
    wire::Sandbox {
        read: absolute(&paths.sandbox.read),
        write: absolute(&paths.sandbox.write),
        network: paths.sandbox.network,
    }
}

/// What is said when a process could not confine itself.
pub(super) fn words(errno: i32) -> String {
    let without = [Errno::OPNOTSUPP, Errno::NOSYS].map(Errno::raw_os_error);
    if without.contains(&errno) {
        return "a sandbox needs Landlock, which this kernel lacks or has turned off".to_owned();
    }
    io::Error::from_raw_os_error(errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confined(limits: Limits) -> Option<Confine> {
        let bounds = Bounds::new(limits, None, Path::new("/"));
        confine(&bounds, Path::new("bin/innkeeper-shim"), &["__shim".into()]).unwrap()
    }

    #[test]
    fn without_bounds_that_a_process_sets_itself_nothing_stands_before_the_server() {
        assert_eq!(confined(Limits::default()), None);
        assert_eq!(confined(Limits { processes: Some(1), ..Limits::default() }), None);
    }

    #[test]
    fn the_program_is_found_from_another_directory() {
        let confine = confined(Limits { open_files: Some(64), ..Limits::default() }).unwrap();
        let program = OsString::from(confine.program);
        assert!(Path::new(&program).is_absolute(), "{program:?}");
    }
}
