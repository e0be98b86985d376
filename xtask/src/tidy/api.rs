//! Checks that the committed list of each library's public items is that of its sources.

use super::Violation;
use crate::api;
use crate::repository::Repository;

/// Checks the files of `cargo xtask api`.
pub(super) fn check_api(repository: &Repository) -> Vec<Violation> {
    let message =
        "differs from the sources; run `cargo xtask api --write`, and look at what changed";
    let outdated = api::outdated_files(repository).into_iter();
    outdated.map(|path| Violation::new(&path, 0, message)).collect()
}
