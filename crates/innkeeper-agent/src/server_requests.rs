//! Requests of servers to the application: messages of the model (sampling) and input of the user
//! (elicitation).
//!
//! A [`ServerRequestHandler`] answers the requests with a model and a [`UserPrompter`], within the
//! [`ServerRequestSettings`]. Each request has an audit event.

mod audit;
mod budget;
mod depth;
mod elicitation;
pub mod form;
mod handler;
mod request_observer;
mod sampling;
mod user_prompter;

pub(crate) use request_observer::RequestObserver;

pub use handler::{ServerRequestHandler, ServerRequestSettings};
pub use user_prompter::{
    ElicitationMode, ElicitationRequest, ElicitationResponse, SamplingRequest, UserPrompter,
};
