//! How asking a model fails, told apart by what can be done about it.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// A model that gave no answer.
#[derive(Debug)]
pub struct LlmError {
    /// The provider.
    pub provider: String,
    /// The model that was asked.
    pub model: Box<str>,
    /// What can be done about it.
    pub class: Class,
    /// The HTTP status, if there was an answer over HTTP.
    pub status: Option<u16>,
    /// What is wrong, in the provider's words where it has some; 2,000 characters at most.
    pub message: Box<str>,
    /// What the model had written, where the provider tells it in the error: a call may be in it.
    pub written: Option<Box<str>>,
    /// What is behind it.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// What can be done about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Ask again later; not before this long, where the provider says it.
    Later {
        /// How long.
        after: Option<Duration>,
    },
    /// The connection failed or broke; asking again may help.
    Connection,
    /// No answer in the time there was.
    TimedOut,
    /// The key is missing, wrong, or not allowed to do this.
    Key,
    /// No money or quota is left.
    Billing,
    /// There is no such model or endpoint.
    NotFound,
    /// The request is too long for the model: shorten it.
    TooLong,
    /// The model takes no tools in the provider's own form: tell it of them in the prompt.
    NoTools,
    /// The provider could not read the call its model wrote: ask again.
    Malformed,
    /// The provider declines to have this answered.
    Refused,
    /// The request is wrong in another way; asking again does not help.
    Request,
    /// The answer cannot be understood.
    Unreadable,
    /// Our own limit on requests: nothing was sent.
    RateLimited {
        /// When the next one may be sent.
        after: Duration,
    },
}

impl Class {
    /// Whether asking the same again may help.
    pub fn may_be_repeated(self) -> bool {
        match self {
            Self::Later { .. } | Self::Connection | Self::TimedOut | Self::Unreadable => true,
            Self::Key
            | Self::Billing
            | Self::NotFound
            | Self::TooLong
            | Self::NoTools
            | Self::Malformed
            | Self::Refused
            | Self::Request
            | Self::RateLimited { .. } => false,
        }
    }

    /// How long the provider, or our own limit, wants us to wait, where either says it.
    pub fn wait(self) -> Option<Duration> {
        match self {
            Self::Later { after } => after,
            Self::RateLimited { after } => Some(after),
            Self::Connection
            | Self::TimedOut
            | Self::Key
            | Self::Billing
            | Self::NotFound
            | Self::TooLong
            | Self::NoTools
            | Self::Malformed
            | Self::Refused
            | Self::Request
            | Self::Unreadable => None,
        }
    }

    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Later { .. } => "later",
            Self::Connection => "connection",
            Self::TimedOut => "timed_out",
            Self::Key => "key",
            Self::Billing => "billing",
            Self::NotFound => "not_found",
            Self::TooLong => "too_long",
            Self::NoTools => "no_tools",
            Self::Malformed => "malformed",
            Self::Refused => "refused",
            Self::Request => "request",
            Self::Unreadable => "unreadable",
            Self::RateLimited { .. } => "rate_limited",
        }
    }

    /// What to do, as a sentence's end.
    fn hint(self) -> &'static str {
        match self {
            Self::Later { .. } => "try again later",
            Self::Connection => "check that the address is right and reachable",
            Self::TimedOut => "try again, or allow more time",
            Self::Key => "check the key",
            Self::Billing => "check the account's quota and billing",
            Self::NotFound => "check the model's name and the address",
            Self::TooLong => "shorten the conversation or offer fewer tools",
            Self::NoTools => "call tools by prompt with this model",
            Self::Malformed => "ask again",
            Self::Refused => "ask for something else",
            Self::Request => "see what the provider says",
            Self::Unreadable => "check that the address is that of this provider's interface",
            Self::RateLimited { .. } => "wait, or raise the limit of requests a minute",
        }
    }
}

impl LlmError {
    /// A failure of a provider of one's own.
    pub fn new(provider: impl Into<String>, class: Class, message: impl Into<Box<str>>) -> Self {
        Self {
            provider: provider.into(),
            model: Box::default(),
            class,
            status: None,
            message: message.into(),
            written: None,
            source: None,
        }
    }
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.provider)?;
        if !self.model.is_empty() {
            write!(f, " (model `{}`)", self.model)?;
        }
        if let Some(status) = self.status {
            write!(f, " answered {status}")?;
        }
        write!(f, ": {}; {}", self.message, self.class.hint())?;
        match self.class.wait() {
            Some(after) => write!(f, " (in {:.0} s)", after.as_secs_f64().ceil()),
            None => Ok(()),
        }
    }
}

impl Error for LlmError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
