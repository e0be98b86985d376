//! Checks the calls and forms that wait for the answer of an operator.

use super::{indexed, seconds};
use crate::checks::entry_checker::EntryChecker;
use crate::form::raw;
use crate::settings::serve::ApprovalConfig;
use crate::text::key_location::{PathSegment, key_segment};

pub(super) fn approval(checker: &mut EntryChecker<'_>, typed: raw::Approval) -> ApprovalConfig {
    let defaults = ApprovalConfig::default();
    let mut tools = Vec::new();
    for (index, pattern) in indexed(typed.tools) {
        // A pattern with a space at its end would match no tool, and its calls would need no approval.
        // Names of servers and tools can have a space inside.
        if pattern.is_empty() || pattern.trim() != pattern {
            let path = [key_segment("approval"), key_segment("tools"), PathSegment::Index(index)];
            checker.error(&path, "expected the name of a tool, such as `notes.delete_*`");
        }
        tools.push(pattern);
    }
    ApprovalConfig {
        tools,
        expiry: seconds(typed.expiry_seconds).unwrap_or(defaults.expiry),
        elicitations: typed.elicitations.unwrap_or(defaults.elicitations),
    }
}
