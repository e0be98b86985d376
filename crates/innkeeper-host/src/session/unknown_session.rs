//! Recognizes that a server does not know the session of a request, by the words and codes of many SDKs.

use innkeeper_protocol::ErrorObject;

/// The codes with which servers refuse a request that they do not process: that of the specification
/// for an unknown session, and JSON-RPC's invalid request.
const REFUSAL_CODES: [i64; 2] = [-32_001, -32_600];

/// What servers say of a session that they do not have, in lower case.
const LOST_WORDS: [&str; 27] = [
    "not found",
    "not be found",
    "unknown",
    "invalid",
    "expired",
    "no valid",
    "not valid",
    "not exist",
    "n't exist",
    "no such",
    "no active",
    "not active",
    "inactive",
    "terminated",
    "closed",
    "has ended",
    "missing",
    "required",
    "not initialized",
    "unrecognized",
    "not recognized",
    "lost",
    "no longer",
    "stale",
    "not find",
    "cannot find",
    "no session",
];

/// Maximum number of characters of a message that count: such messages are short.
const MAX_MESSAGE_CHARS: usize = 512;

/// Returns whether a text says that the server does not have a session.
pub(crate) fn names_unknown_session(text: &str) -> bool {
    let text: String = text.chars().take(MAX_MESSAGE_CHARS).flat_map(char::to_lowercase).collect();
    text.contains("session") && LOST_WORDS.iter().any(|words| text.contains(words))
}

/// Returns whether the error response to a request can only mean that the server does not know the
/// session of the request, and did not run the request.
pub(crate) fn refuses_session(error: &ErrorObject) -> bool {
    REFUSAL_CODES.contains(&error.code) && names_unknown_session(&error.message)
}

/// What remains of the words of a refusal besides [`LOST_WORDS`], if it is about the session of the
/// request and not about one of a tool, such as a browser or a payment.
const PLAIN_WORDS: [&str; 22] = [
    "a", "an", "bad", "client", "does", "error", "exist", "has", "header", "id", "in", "is", "it",
    "mcp", "no", "or", "please", "provided", "request", "session", "the", "was",
];

/// Returns whether the error response to a request, which it names, is plainly about the session of the
/// request: it has a code for requests that are not processed, and no word about anything else.
pub(crate) fn plainly_refuses_session(error: &ErrorObject) -> bool {
    let message = error.message.to_lowercase();
    let mut words = message.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    refuses_session(error)
        && words.all(|word| {
            PLAIN_WORDS.contains(&word)
                || LOST_WORDS.iter().any(|words| words.split(' ').any(|known| known == word))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_many_sdks_name_an_unknown_session_and_other_errors_do_not() {
        for text in [
            "Session not found",
            "Bad Request: No valid session ID provided",
            "Invalid session ID",
            "Unauthorized: Session does not exist",
            "SESSION_EXPIRED",
            "session 5f2 has expired",
            "Mcp-Session-Id header is required",
            "The session was terminated",
        ] {
            assert!(names_unknown_session(text), "{text}");
        }
        for text in ["not found", "invalid arguments", "session opened", "text too long", ""] {
            assert!(!names_unknown_session(text), "{text}");
        }
    }

    #[test]
    fn a_refusal_with_other_words_may_be_about_the_session_of_a_tool() {
        let plainly = |code, message: &str| {
            plainly_refuses_session(&ErrorObject { code, message: message.into(), data: None })
        };
        for message in
            ["Session not found", "Invalid or expired session", "MCP session has expired"]
        {
            assert!(plainly(-32_001, message), "{message}");
        }
        for message in ["browser session 5 is closed", "Session 7f not found", "not found"] {
            assert!(!plainly(-32_001, message), "{message}");
        }
        assert!(
            !plainly(-32_000, "Session expired") && !plainly(-32_602, "session id is required")
        );
    }

    #[test]
    fn an_error_of_a_tool_about_its_own_sessions_refuses_no_session() {
        let error = |code, message: &str| ErrorObject { code, message: message.into(), data: None };
        assert!(refuses_session(&error(-32_001, "Session not found")));
        assert!(refuses_session(&error(-32_600, "Session not found")));
        assert!(!refuses_session(&error(-32_603, "browser session 5 not found")));
        assert!(!refuses_session(&error(-32_001, "Request timed out")));
    }
}
