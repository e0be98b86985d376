//! Keys that are read and checked but change nothing yet; whoever builds one takes it off the list.

use super::place::{key, locate};
use super::source::Report;
use super::tree::Node;

/// Keys of a server without behaviour.
pub(super) const SERVER: &[&str] = &["restart"];

/// Keys of the `host` object without behaviour.
pub(super) const HOST: &[&str] = &["restart"];

/// Warns about every one of these keys that the user has set.
pub(super) fn warn<'k>(
    node: &Node,
    path: &str,
    keys: impl Iterator<Item = &'k str>,
    report: &mut Report,
) {
    for name in keys {
        if let Some(member) = node.get(name) {
            let place = locate(node, path, &[key(name)]);
            report.warning(member.at, place.key, format!("`{name}` is not in effect yet"));
        }
    }
}
