//! Applies the Landlock rules of a sandbox to the process that becomes the server.

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::{self, Errno};

use crate::launch_request::{HandledRights, PathRule, Sandbox};
use crate::system::{Ruleset, landlock_version};

/// Permanently restricts this process, the program it executes and their descendants. An older
/// kernel applies the rights that it supports.
pub(crate) fn restrict(sandbox: &Sandbox<'_>) -> io::Result<()> {
    let handled = handled_rights(sandbox, landlock_version()?).ok_or(Errno::OPNOTSUPP)?;
    let ruleset = Ruleset::new(handled)?;
    let is_root = rustix::process::geteuid().is_root();
    for rule in sandbox.rules.iter().filter(|rule| !(is_root && rule.except_root)) {
        permit(&ruleset, handled, sandbox.file_rights, rule)?;
    }
    rustix::thread::set_no_new_privs(true)?;
    ruleset.restrict_self()
}

/// Returns the rights that a kernel with this version of Landlock handles.
fn handled_rights(sandbox: &Sandbox<'_>, version: usize) -> Option<HandledRights> {
    let newest = sandbox.handled.len();
    sandbox.handled.get(version.min(newest).checked_sub(1)?).copied()
}

/// Adds a rule. A missing path is skipped: access is denied unless allowed. So is a path with a link:
/// the host has resolved all links, so someone has replaced a part of the path since.
fn permit(
    ruleset: &Ruleset,
    handled: HandledRights,
    file_rights: u64,
    rule: &PathRule<'_>,
) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let without_links = ResolveFlags::NO_SYMLINKS;
    let path = match openat2(CWD, rule.path, flags, Mode::empty(), without_links) {
        Ok(path) => path,
        Err(Errno::NOSYS) => return Err(Errno::NOSYS),
        Err(_) => return Ok(()),
    };
    let mode = rustix::fs::fstat(&path)?.st_mode;
    let is_directory = FileType::from_raw_mode(mode) == FileType::Directory;
    let of_kind = if is_directory { u64::MAX } else { file_rights };
    match rule.rights & handled.files & of_kind {
        // The kernel refuses a rule without rights.
        0 => Ok(()),
        rights => ruleset.permit(rights, rustix::fd::AsFd::as_fd(&path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_kernel_gets_the_newest_known_rights_and_an_older_one_its_own() {
        let rights = |files| HandledRights { files, ..HandledRights::default() };
        let sandbox =
            Sandbox { handled: vec![rights(1), rights(3), rights(7)], ..Sandbox::default() };
        let of = |version| handled_rights(&sandbox, version).map(|handled| handled.files);
        assert_eq!([of(1), of(2), of(3), of(9)], [Some(1), Some(3), Some(7), Some(7)]);
        assert_eq!(of(0), None, "a kernel without Landlock");
        assert_eq!(handled_rights(&Sandbox::default(), 7), None);
    }
}
