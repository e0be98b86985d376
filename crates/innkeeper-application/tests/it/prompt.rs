//! Runs the usage of document 004, and tests its configuration, trait and template.

mod document;
mod messages;
mod usage;
