//! Notices that a server may have other lists than its last ones, although it reported no change: a
//! server without sessions restarts unseen.

use std::sync::atomic::{AtomicBool, Ordering};

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::method;

use crate::error::{CallError, UnavailableReason};
use crate::session::ListChanges;

/// HTTP statuses of a proxy whose server is away.
const SERVER_AWAY: [u16; 2] = [502, 503];

/// Whether the server could not be reached since its last response.
#[derive(Debug, Default)]
pub(crate) struct ListDoubt {
    was_away: AtomicBool,
}

impl ListDoubt {
    /// Returns the lists to read again after a response that came with this attempt.
    pub(super) fn after_response(&self, attempt: u32) -> Option<ListChanges> {
        let was_away =
            self.was_away.load(Ordering::Relaxed) && self.was_away.swap(false, Ordering::Relaxed);
        let all = ListChanges { tools: true, prompts: true, resources: true, notified: false };
        (was_away || attempt > 1).then_some(all)
    }

    /// Returns the lists to read again after this error.
    pub(super) fn after_error(&self, error: &CallError, request: &str) -> Option<ListChanges> {
        if let CallError::Unavailable { reason, .. } = error
            && is_away(reason)
        {
            self.was_away.store(true, Ordering::Relaxed);
        }
        // The list had the name, and its schema allowed the arguments.
        let CallError::Server { error, .. } = error else { return None };
        if ![code::METHOD_NOT_FOUND, code::INVALID_PARAMS].contains(&error.code) {
            return None;
        }
        let none = ListChanges::default();
        match request {
            method::TOOLS_CALL => Some(ListChanges { tools: true, ..none }),
            method::PROMPTS_GET => Some(ListChanges { prompts: true, ..none }),
            _ => None,
        }
    }
}

fn is_away(reason: &UnavailableReason) -> bool {
    if let UnavailableReason::Busy { status, .. } = reason {
        return SERVER_AWAY.contains(status);
    }
    matches!(reason, UnavailableReason::Unreachable { .. } | UnavailableReason::ConnectionLost(_))
}

#[cfg(test)]
mod tests {
    use innkeeper_protocol::ErrorObject;

    use super::*;
    use crate::error::ConnectFailureKind;

    fn refused(code: i64) -> CallError {
        let error = ErrorObject { code, message: "unknown tool".to_owned(), data: None };
        CallError::Server { server: "a".into(), item: "a.b".into(), error }
    }

    #[test]
    fn the_first_response_after_a_lost_server_doubts_all_lists_once() {
        let doubt = ListDoubt::default();
        assert_eq!(doubt.after_response(1), None);
        let kind = ConnectFailureKind::Refused;
        let reason = UnavailableReason::Unreachable { kind, cause: "refused".into() };
        let lost =
            CallError::Unavailable { server: "a".into(), reason, may_have_run: false, attempts: 1 };
        assert_eq!(doubt.after_error(&lost, method::TOOLS_CALL), None);
        let all =
            Some(ListChanges { tools: true, prompts: true, resources: true, notified: false });
        assert_eq!(doubt.after_response(1), all);
        assert_eq!(doubt.after_response(1), None);
        assert_eq!(doubt.after_response(2), all, "an earlier attempt failed");
    }

    #[test]
    fn a_server_that_refuses_a_listed_name_is_asked_for_that_list() {
        let doubt = ListDoubt::default();
        let tools = Some(ListChanges { tools: true, ..ListChanges::default() });
        assert_eq!(doubt.after_error(&refused(code::INVALID_PARAMS), method::TOOLS_CALL), tools);
        let prompts = Some(ListChanges { prompts: true, ..ListChanges::default() });
        assert_eq!(
            doubt.after_error(&refused(code::METHOD_NOT_FOUND), method::PROMPTS_GET),
            prompts
        );
        assert_eq!(doubt.after_error(&refused(code::INTERNAL_ERROR), method::TOOLS_CALL), None);
    }
}
