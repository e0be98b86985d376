//! The check of a response before the application receives the result.

use innkeeper_protocol::ViewError;
use serde_json::value::RawValue;

use crate::error::ProtocolError;
use crate::event::CallOutcome;
use crate::guard::Finding;
use crate::session::RequestError;

/// The reason a result is not returned to the application.
#[derive(Debug)]
pub(crate) enum ResultRejection {
    /// The result is missing or unusable.
    Error(RequestError),
    /// The guard withheld the result.
    Withheld(Vec<Finding>),
}

impl ResultRejection {
    /// Checks a response; `suspect` can also withhold the content of an error.
    pub(super) fn check(
        response: Result<Box<RawValue>, RequestError>,
        check_result: impl FnOnce(&RawValue) -> Result<CallOutcome, Self>,
        suspect: impl FnOnce(&RequestError) -> Option<Vec<Finding>>,
    ) -> Result<(Box<RawValue>, CallOutcome), Self> {
        let checked = match response {
            Ok(result) => check_result(&result).map(|outcome| (result, outcome)),
            Err(failure) => Err(Self::Error(failure)),
        };
        checked.map_err(|rejection| match rejection {
            Self::Error(failure) => suspect(&failure).map_or(Self::Error(failure), Self::Withheld),
            Self::Withheld(findings) => Self::Withheld(findings),
        })
    }
}

impl From<ViewError> for ResultRejection {
    fn from(error: ViewError) -> Self {
        Self::Error(RequestError::Protocol(ProtocolError::InvalidResult(error)))
    }
}
