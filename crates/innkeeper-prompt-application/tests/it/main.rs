//! Runs the usage of document 004, and tests its configuration, trait and template.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod document;
mod messages;
mod usage;
