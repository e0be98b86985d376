//! Requests of servers to the application: messages of the model (sampling) and input of the user
//! (elicitation).

pub mod form;
mod user_prompter;

pub use user_prompter::{
    ElicitationMode, ElicitationRequest, ElicitationResponse, SamplingRequest, UserPrompter,
};
