//! Prepares the launch of a server for its supervisor.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;

use innkeeper_config::ResourceLimits;
use innkeeper_supervisor::launch_request::{LaunchRequest, Limits};
use rustix::io::Errno;

use crate::ProcessSpec;
use crate::confinement::Confinement;
#[cfg(target_os = "linux")]
use crate::confinement::sandbox::PreparedSandbox;
use crate::tree_tag::TreeTag;

/// Encodes the launch of a server with the tag of its tree.
///
/// # Errors
/// A string contains a zero byte ([`InvalidInput`](io::ErrorKind::InvalidInput)), or the launch is
/// too large ([`ArgumentListTooLong`](io::ErrorKind::ArgumentListTooLong)).
pub(super) fn encode_launch(spec: &ProcessSpec, tag: &TreeTag) -> io::Result<Vec<u8>> {
    let arguments = [spec.program.as_os_str()].into_iter();
    let arguments = arguments.chain(spec.args.iter().map(AsRef::as_ref));
    let arguments = arguments.map(c_string).collect::<io::Result<Vec<_>>>()?;
    let environment = environment(spec, tag)?;
    let directory =
        spec.cwd.as_ref().map_or(Ok(CString::default()), |cwd| c_string(cwd.as_os_str()))?;
    #[cfg(target_os = "linux")]
    let sandbox = match &spec.confinement.sandbox {
        Some(sandbox) => Some(PreparedSandbox::new(sandbox, &spec.program)?),
        None => None,
    };
    #[cfg(target_os = "linux")]
    let sandbox = sandbox.as_ref().map(PreparedSandbox::request);
    #[cfg(not(target_os = "linux"))]
    let sandbox = spec.confinement.sandbox.as_ref().map(|_| Default::default());
    let request = LaunchRequest {
        arguments: arguments.iter().map(CString::as_c_str).collect(),
        environment: environment.iter().map(CString::as_c_str).collect(),
        directory: &directory,
        max_processes: spec.confinement.limits.processes,
        limits: limits(&spec.confinement, tag),
        sandbox,
    };
    request.encode().map_err(|_| io::ErrorKind::ArgumentListTooLong.into())
}

/// Returns the complete environment. The last variable of a name takes precedence.
fn environment(spec: &ProcessSpec, tag: &TreeTag) -> io::Result<Vec<CString>> {
    let (tag_name, tag_value) = tag.variable();
    let variables = spec.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    let variables = variables.chain([(OsStr::new(tag_name), OsStr::new(tag_value))]);
    let variables: BTreeMap<&OsStr, &OsStr> = variables.collect();
    let joined = variables.into_iter().map(|(name, value)| {
        let bytes = [name.as_bytes(), b"=", value.as_bytes()].concat();
        CString::new(bytes).map_err(io::Error::from)
    });
    joined.collect()
}

fn limits(confinement: &Confinement, tag: &TreeTag) -> Limits {
    // The supervisor enforces the process limit.
    let ResourceLimits { memory, cpu_seconds, open_files, file_size, processes: _ } =
        confinement.limits;
    let is_limited = [memory, cpu_seconds, open_files, file_size].iter().any(Option::is_some);
    // The server's memory must not be written to a core file that others can read.
    let core = (is_limited || confinement.sandbox.is_some()).then_some(0);
    Limits { locks: tag.lock_limit(), core, open_files, file_size, cpu_seconds, memory }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
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
    use std::path::{Path, PathBuf};

    use innkeeper_supervisor::launch_request::PREFIX_BYTES;

    use super::*;

    fn spec(limits: ResourceLimits) -> ProcessSpec {
        ProcessSpec {
            command: "server".to_owned(),
            program: PathBuf::from("/bin/server"),
            args: vec!["--flag".into()],
            env: vec![("A".into(), "1".into()), ("B".into(), "".into()), ("A".into(), "2".into())],
            cwd: None,
            confinement: Confinement::new(limits, None, Path::new("/")),
        }
    }

    #[test]
    fn without_limits_the_launch_sets_only_the_mark_of_the_tree() {
        for limits in [
            ResourceLimits::default(),
            ResourceLimits { processes: Some(1), ..ResourceLimits::default() },
        ] {
            let tag = TreeTag::new();
            let frame = encode_launch(&spec(limits), &tag).unwrap();
            let launch = LaunchRequest::parse(&frame[PREFIX_BYTES..]).unwrap();
            assert_eq!(launch.limits, Limits { locks: tag.lock_limit(), ..Limits::default() });
            assert_eq!((launch.max_processes, launch.sandbox), (limits.processes, None));
        }
    }

    #[test]
    fn the_last_variable_of_a_name_is_the_one_that_a_server_gets() {
        let tag = TreeTag::new();
        let frame = encode_launch(&spec(ResourceLimits::default()), &tag).unwrap();
        let launch = LaunchRequest::parse(&frame[PREFIX_BYTES..]).unwrap();
        assert_eq!(launch.arguments, [c"/bin/server", c"--flag"]);
        assert_eq!(launch.environment[..2], [c"A=2", c"B="]);
        let (name, value) = tag.variable();
        assert_eq!(launch.environment[2].to_str().unwrap(), format!("{name}={value}"));
        assert_eq!(launch.environment.len(), 3);
    }

    #[test]
    fn a_zero_byte_in_an_argument_or_a_variable_is_refused() {
        let zero = || spec(ResourceLimits::default());
        for spec in [
            ProcessSpec { args: vec!["a\0b".into()], ..zero() },
            ProcessSpec { env: vec![("A".into(), "a\0b".into())], ..zero() },
            ProcessSpec { cwd: Some("/a\0b".into()), ..zero() },
        ] {
            let error = encode_launch(&spec, &TreeTag::new()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{spec:?}");
        }
    }
}
