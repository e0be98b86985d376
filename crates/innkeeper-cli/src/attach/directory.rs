//! The directory of the sockets, which only the user can open.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use innkeeper_host::Environment;

use crate::state_dir::state_dir;

pub(crate) fn socket_directory(environment: &Environment) -> Option<PathBuf> {
    let runtime = environment.get("XDG_RUNTIME_DIR").filter(|path| path.starts_with('/'));
    match runtime {
        Some(runtime) => Some(PathBuf::from(runtime).join("innkeeper")),
        None => state_dir(environment).map(|state| state.join("sockets")),
    }
}

pub(super) fn socket_path(environment: &Environment, digest: &str) -> Option<PathBuf> {
    Some(socket_directory(environment)?.join(format!("{digest}.sock")))
}

/// Creates the directory of a socket if it does not exist.
pub(super) fn create(socket: &Path) -> io::Result<()> {
    let Some(directory) = socket.parent() else { return Ok(()) };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    check(socket)
}

/// Returns an error unless the directory of a socket belongs to the user and nobody else can open
/// it.
pub(super) fn check(socket: &Path) -> io::Result<()> {
    let Some(directory) = socket.parent() else { return Ok(()) };
    let metadata = directory.symlink_metadata()?;
    let is_own = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    if is_own && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    let problem = format!("`{}` is not a directory that only you can open", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

/// Returns whether the process at the other end of a stream has the same user.
pub(super) fn is_same_user(stream: &tokio::net::UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}
