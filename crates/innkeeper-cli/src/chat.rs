//! The interactive chat: a conversation between a person, a model and the tools of all servers.

pub(crate) mod attachment;
pub(crate) mod call_text;
pub(crate) mod command_work;
pub(crate) mod completion;
pub(crate) mod conversation_file;
pub(crate) mod export;
pub(crate) mod external_editor;
pub(crate) mod file_thread;
pub(crate) mod first_run;
pub(crate) mod listings;
pub(crate) mod permanent_rules;
pub(crate) mod plain;
pub(crate) mod question;
pub(crate) mod recording;
pub(crate) mod server_log;
pub(crate) mod servers;
pub(crate) mod session;
pub(crate) mod slash_command;
pub(crate) mod terminal;
