//! An application that depends on `innkeeper` alone: servers as child processes, in the process of
//! the application, and behind a sign-in; a model with a conversation of the application.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod acceptance;
mod agent;
mod callbacks;
mod calls;
mod protected_server;
mod server;
mod sign_in;
