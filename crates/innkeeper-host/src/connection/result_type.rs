//! The types of results.

use innkeeper_protocol::{ViewError, method, skim};
use serde_json::value::RawValue;

use crate::error::ProtocolError;
use crate::session::RequestError;
use crate::text::display_prefix;

/// Maximum number of characters shown of an unexpected result type.
const MAX_SHOWN_CHARS: usize = 64;

/// The type of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// A complete result.
    Complete,
    /// An input request: the request must be sent again with responses.
    InputRequired,
    /// A created task that will have the result.
    Task,
}

impl ResultType {
    /// Returns the type of a result of the modern era.
    pub(super) fn from_result(result: &RawValue, method: &str) -> Result<Self, RequestError> {
        let kind = skim::members(result.get()).find(|(key, _)| *key == "resultType");
        match kind {
            None | Some((_, "\"complete\"" | "null")) => Ok(Self::Complete),
            Some((_, "\"input_required\"")) => Ok(Self::InputRequired),
            Some((_, "\"task\"")) if method == method::TOOLS_CALL => Ok(Self::Task),
            Some((_, other)) => {
                let error = ProtocolError::UnexpectedResultType(
                    display_prefix(other, MAX_SHOWN_CHARS).into(),
                );
                Err(RequestError::Protocol(error))
            }
        }
    }

    /// Checks that the application reads the same type as the host.
    pub(super) fn check_unambiguous(result: &RawValue) -> Result<(), RequestError> {
        let mut types = skim::members(result.get())
            .map(|(key, _)| key)
            .filter(|key| skim::decode_key(key) == "resultType");
        if types.next().is_none_or(|key| key == "resultType") && types.next().is_none() {
            return Ok(());
        }
        let pointer = "/resultType".to_owned();
        let expected = "one member without escapes";
        let found = "another spelling or two members";
        let error = ViewError { pointer, expected, found };
        Err(RequestError::Protocol(ProtocolError::InvalidResult(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_two_parsers_can_read_differently_is_rejected() {
        for (result, is_unambiguous) in [
            ("{}", true),
            (r#"{"resultType":"complete","x":{"resultType":1}}"#, true),
            (r#"{"resultType":"complete","resultType":"input_required"}"#, false),
            (r#"{"result\u0054ype":"input_required"}"#, false),
        ] {
            let raw = RawValue::from_string(result.to_owned()).unwrap();
            assert_eq!(ResultType::check_unambiguous(&raw).is_ok(), is_unambiguous, "{result}");
        }
    }

    #[test]
    fn a_result_of_an_unknown_type_is_rejected() {
        let result_type = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            ResultType::from_result(&raw, method::TOOLS_CALL)
        };
        assert!(matches!(result_type(r#"{"resultType": "complete"}"#), Ok(ResultType::Complete)));
        let error = result_type(r#"{"resultType": "poem\u001b"}"#).unwrap_err();
        let RequestError::Protocol(error @ ProtocolError::UnexpectedResultType(_)) = error else {
            panic!("{error:?}")
        };
        assert_eq!(error.to_string(), r#"unexpected `resultType` "poem\u001b""#);
        let raw = RawValue::from_string(r#"{"resultType": "task"}"#.to_owned()).unwrap();
        assert!(
            ResultType::from_result(&raw, method::PROMPTS_GET).is_err(),
            "only calls become tasks"
        );
    }
}
