//! The real program, driven from outside.

mod program;

mod builtin_servers;
mod command_line;
