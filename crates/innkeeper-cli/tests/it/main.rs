//! Integration tests of the program as a child process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking where it stands")]

mod program;
mod terminal;

mod screens;
mod serve;
mod server_requests;

mod activity;
#[cfg(unix)]
mod agents;
#[cfg(target_os = "linux")]
mod approvals;
mod arguments;
mod ask;
#[cfg(unix)]
mod attach;
mod builtin_servers;
mod certificates;
mod chat;
#[cfg(target_os = "linux")]
mod chat_terminal;
mod check;
mod client_pages;
mod command_line;
mod command_line_server;
mod commands;
mod connection_service;
mod console_browser;
mod content;
mod edit_server;
mod extract;
mod first_minute;
mod found_files;
mod golden;
#[cfg(target_os = "linux")]
mod host_secrets;
mod log_stats;
mod login;
mod model;
mod pages;
mod partial;
mod pins;
#[cfg(unix)]
mod planted_files;
mod published_clients;
mod real_servers;
#[cfg(unix)]
mod reloads;
#[cfg(target_os = "linux")]
mod replicas;
#[cfg(target_os = "linux")]
mod service_manager;
mod signals;
mod text_output;
mod tools;
mod trust;
mod why;
