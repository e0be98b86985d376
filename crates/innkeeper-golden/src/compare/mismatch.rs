//! What a run does otherwise than its golden.

use std::fmt;

use crate::difference::{Difference, shorten, shown_strings};

/// The place of a call in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallPlace {
    /// The number of the call, counted from 1.
    pub call: usize,
    /// The number of the response with the call among the responses with calls, counted from 1.
    pub response: usize,
}

/// A limit of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// `max_tokens`.
    Tokens,
    /// `max_calls`.
    Calls,
    /// `max_iterations`.
    Iterations,
    /// `max_seconds`.
    Seconds,
}

/// What a run does otherwise than its golden, or than the rules want. `Display` gives one line.
#[derive(Clone, Debug, PartialEq)]
pub enum Mismatch {
    /// A field has another value.
    FieldDiffers(Difference),
    /// An id stands for something else than in the golden.
    IdDiffers {
        /// The JSON pointer of the id.
        place: String,
        /// The golden's id.
        expected: Option<String>,
        /// The run's id.
        actual: Option<String>,
    },
    /// A call of the golden is missing.
    MissingCall {
        /// Its place in the golden.
        place: CallPlace,
        /// The tool and its arguments.
        call: String,
    },
    /// The golden has no such call.
    ExtraCall {
        /// Its place in the run.
        place: CallPlace,
        /// The tool and its arguments.
        call: String,
    },
    /// A call came in another response.
    MovedCall {
        /// The tool and its arguments.
        call: String,
        /// The place in the golden.
        expected: CallPlace,
        /// The place in the run.
        actual: CallPlace,
    },
    /// An argument of a call differs.
    ArgumentDiffers {
        /// The tool.
        tool: String,
        /// The place in the run.
        place: CallPlace,
        /// The argument.
        difference: Difference,
    },
    /// A forbidden tool was called.
    ForbiddenTool {
        /// The tool.
        tool: String,
        /// The first call.
        place: CallPlace,
        /// The number of its calls.
        calls: usize,
    },
    /// A tool was called that the golden did not call.
    NewTool {
        /// The tool.
        tool: String,
        /// The first call.
        place: CallPlace,
        /// The number of its calls.
        calls: usize,
    },
    /// The run ended otherwise: with or without success, or with another failure.
    OutcomeChanged {
        /// The golden's failure; `None` for success.
        expected: Option<String>,
        /// The run's failure; `None` for success.
        actual: Option<String>,
    },
    /// An error differs, is missing or is new.
    ErrorDiffers {
        /// The number of the error, counted from 1.
        error: usize,
        /// The golden's error.
        expected: Option<String>,
        /// The run's error.
        actual: Option<String>,
    },
    /// A limit is exceeded.
    BoundExceeded {
        /// The limit.
        bound: Bound,
        /// The value of the run.
        value: f64,
        /// The greatest value that is allowed.
        limit: f64,
    },
    /// A limit cannot be judged, because the provider did not report the tokens of each response.
    BoundUnknown {
        /// The limit.
        bound: Bound,
    },
    /// The last text says something else.
    TextDiffers {
        /// The similarity of the texts.
        similarity: f64,
        /// The similarity that is required.
        min_similarity: f64,
        /// The golden's text.
        expected: Option<String>,
        /// The run's text.
        actual: Option<String>,
    },
    /// The last text does not contain a text.
    TextMissing {
        /// The text that is required.
        part: String,
        /// The run's text.
        actual: Option<String>,
    },
}

impl fmt::Display for CallPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, response } = self;
        write!(f, "call {call} (response {response})")
    }
}

impl Bound {
    fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "max_tokens",
            Self::Calls => "max_calls",
            Self::Iterations => "max_iterations",
            Self::Seconds => "max_seconds",
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FieldDiffers(Difference { path, expected, actual }) => {
                write_field(f, path, expected.as_deref(), actual.as_deref())
            }
            Self::IdDiffers { place, expected, actual } => write!(
                f,
                "`{place}`: expected the id that stands for {}, got {}",
                quote(expected.as_deref()),
                quote(actual.as_deref())
            ),
            Self::MissingCall { place, call } => {
                write!(f, "{place}: expected `{call}`, got no such call")
            }
            Self::ExtraCall { place, call } => {
                write!(f, "{place}: expected no such call, got `{call}`")
            }
            Self::MovedCall { call, expected, actual } => {
                write!(f, "`{call}`: expected as {expected}, got as {actual}")
            }
            Self::ArgumentDiffers { tool, place, difference } => {
                write!(f, "{place} of `{tool}`, argument ")?;
                let Difference { path, expected, actual } = difference;
                write_field(f, path, expected.as_deref(), actual.as_deref())
            }
            Self::ForbiddenTool { tool, place, calls } => {
                write!(f, "`{tool}`: expected no call, got {} from {place} on", count(*calls))
            }
            Self::NewTool { tool, place, calls } => write!(
                f,
                "`{tool}`: expected no call of a new tool, got {} from {place} on",
                count(*calls)
            ),
            Self::OutcomeChanged { expected, actual } => {
                let [expected, actual] = [expected, actual].map(|failure| match failure {
                    Some(failure) => format!("the failure {}", quote(Some(failure))),
                    None => "success".to_owned(),
                });
                write!(f, "expected {expected}, got {actual}")
            }
            Self::ErrorDiffers { error, expected, actual } => {
                let [expected, actual] =
                    [expected, actual].map(|error| error.as_deref().unwrap_or("no error"));
                write!(f, "error {error}: expected {expected}, got {actual}")
            }
            Self::BoundExceeded { bound, value, limit } => {
                write!(f, "`{}`: expected at most {limit}, got {value}", bound.as_str())
            }
            Self::BoundUnknown { bound } => write!(
                f,
                "`{}`: expected a count of tokens, but the provider did not report all of them",
                bound.as_str()
            ),
            Self::TextDiffers { similarity, min_similarity, expected, actual } => {
                let [expected, actual] = quote_both(expected.as_deref(), actual.as_deref());
                let similarity = floor(*similarity);
                write!(
                    f,
                    "expected a text like {expected}, got {actual} \
                     (similarity {similarity:.2}, required {min_similarity})"
                )
            }
            Self::TextMissing { part, actual } => write!(
                f,
                "expected a text with {}, got {}",
                quote(Some(part)),
                quote(actual.as_deref())
            ),
        }
    }
}

fn write_field(
    f: &mut fmt::Formatter<'_>,
    path: &str,
    expected: Option<&str>,
    actual: Option<&str>,
) -> fmt::Result {
    let path = if path.is_empty() { "the value" } else { path };
    let [expected, actual] = [expected, actual].map(|value| value.unwrap_or("nothing"));
    write!(f, "`{path}`: expected {expected}, got {actual}")
}

fn count(calls: usize) -> String {
    match calls {
        1 => "1 call".to_owned(),
        _ => format!("{calls} calls"),
    }
}

/// Rounds down, so that a similarity of 0.799 is not shown as the required 0.8.
fn floor(similarity: f64) -> f64 {
    (similarity * 100.0).floor() / 100.0
}

fn quote(text: Option<&str>) -> String {
    match text {
        Some(text) => serde_json::Value::from(shorten(text)).to_string(),
        None => "nothing".to_owned(),
    }
}

fn quote_both(expected: Option<&str>, actual: Option<&str>) -> [String; 2] {
    match (expected, actual) {
        (Some(expected), Some(actual)) => shown_strings(expected, actual),
        (expected, actual) => [quote(expected), quote(actual)],
    }
}
