//! The commands that a person types in the chat, such as `/tools`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlashCommand {
    Help,
    Tools,
    Servers,
    Restart,
    Disable,
    Enable,
    Reload,
    Model,
    Prompts,
    Prompt,
    Resources,
    Attach,
    Detach,
    Undo,
    Redo,
    Fork,
    Compact,
    Clear,
    Save,
    List,
    Resume,
    Remove,
    Export,
    Rules,
    Tokens,
    Log,
    Details,
    Copy,
    Edit,
    Quit,
}

impl SlashCommand {
    /// All commands with their arguments and purposes, in the order of `/help`.
    pub(crate) const ALL: [(Self, &str, &str, &str); 30] = [
        (Self::Help, "help", "", "list the commands and the keys"),
        (Self::Tools, "tools", "[SERVER]", "list the tools"),
        (Self::Servers, "servers", "", "list the servers with their state, latency and stderr"),
        (Self::Restart, "restart", "SERVER", "restart a server"),
        (Self::Disable, "disable", "SERVER", "hide a server from the model in this conversation"),
        (Self::Enable, "enable", "SERVER", "offer a disabled server to the model again"),
        (Self::Reload, "reload", "", "apply changes of the configuration file"),
        (Self::Model, "model", "PROVIDER [MODEL]", "continue with another model"),
        (Self::Prompts, "prompts", "", "list the prompts of the servers"),
        (Self::Prompt, "prompt", "SERVER.NAME [KEY=VALUE …]", "send a prompt of a server"),
        (Self::Resources, "resources", "", "list the resources of the servers"),
        (Self::Attach, "attach", "URI|FILE", "attach a resource or a file to the next message"),
        (Self::Detach, "detach", "", "remove the attachments of the next message"),
        (Self::Undo, "undo", "", "remove the last exchange and edit its message"),
        (Self::Redo, "redo", "", "bring back the exchange that /undo removed"),
        (Self::Fork, "fork", "", "continue in a copy of the conversation"),
        (Self::Compact, "compact", "", "let the model summarize the older messages"),
        (Self::Clear, "clear", "", "start a new conversation"),
        (Self::Save, "save", "[TITLE]", "show where the conversation is stored, set its title"),
        (Self::List, "list", "", "list the stored conversations"),
        (Self::Resume, "resume", "ID", "continue a stored conversation"),
        (Self::Remove, "remove", "ID", "remove a stored conversation"),
        (Self::Export, "export", "FILE", "write the conversation to a new Markdown file"),
        (Self::Rules, "rules", "[remove TOOL]", "list what runs without a question, remove a rule"),
        (Self::Tokens, "tokens", "", "show the tokens of this conversation"),
        (Self::Log, "log", "[LEVEL|off]", "show log messages of servers from this level on"),
        (Self::Details, "details", "", "open or close all calls and reasoning"),
        (Self::Copy, "copy", "", "copy the selected block or the last response"),
        (Self::Edit, "edit", "", "write the message in $VISUAL or $EDITOR"),
        (Self::Quit, "quit", "", "stop the servers and leave"),
    ];

    /// Returns whether a recorded chat can have the command. Its recording has the model, the servers'
    /// configuration and typed messages, each with the response to it.
    pub(crate) fn is_recordable(self) -> bool {
        match self {
            Self::Reload
            | Self::Model
            | Self::Prompt
            | Self::Attach
            | Self::Undo
            | Self::Redo
            | Self::Compact
            | Self::Clear
            | Self::Resume => false,
            Self::Help
            | Self::Tools
            | Self::Servers
            | Self::Restart
            | Self::Disable
            | Self::Enable
            | Self::Prompts
            | Self::Resources
            | Self::Detach
            | Self::Fork
            | Self::Save
            | Self::List
            | Self::Remove
            | Self::Export
            | Self::Rules
            | Self::Tokens
            | Self::Log
            | Self::Details
            | Self::Copy
            | Self::Edit
            | Self::Quit => true,
        }
    }

    pub(crate) fn typed_name(self) -> String {
        let found = Self::ALL.iter().find(|(command, ..)| *command == self);
        found.map_or_else(String::new, |(_, name, ..)| format!("/{name}"))
    }

    fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known, ..)| *known == name);
        found.map(|(command, ..)| *command)
    }
}

/// A typed line: a message for the model, or a command with its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypedLine {
    Message(String),
    Command(SlashCommand, String),
    /// A line that starts with `/` and a word that is no command.
    UnknownCommand(String),
}

/// Parses a typed line. Two slashes at the start are one slash of a message.
pub(crate) fn parse_line(text: &str) -> TypedLine {
    let Some(rest) = text.strip_prefix('/') else { return TypedLine::Message(text.to_owned()) };
    if rest.starts_with('/') {
        return TypedLine::Message(rest.to_owned());
    }
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    // A path is a message.
    if name.contains('/') || name.is_empty() {
        return TypedLine::Message(text.to_owned());
    }
    match SlashCommand::from_name(name) {
        Some(command) => TypedLine::Command(command, argument.trim().to_owned()),
        None => TypedLine::UnknownCommand(name.to_owned()),
    }
}

/// Returns the text of `/help`.
pub(crate) fn help_text() -> String {
    let commands = SlashCommand::ALL.iter().map(|(_, name, arguments, purpose)| {
        let usage = format!("/{name} {arguments}");
        format!("  {usage:<34} {purpose}")
    });
    commands.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_only_if_it_starts_with_a_slash_and_a_word() {
        let message = |text: &str| TypedLine::Message(text.to_owned());
        assert_eq!(parse_line("hello /help"), message("hello /help"));
        assert_eq!(parse_line("//help"), message("/help"));
        assert_eq!(parse_line("/etc/hosts is a file"), message("/etc/hosts is a file"));
        assert_eq!(parse_line("/"), message("/"));
        let tools = TypedLine::Command(SlashCommand::Tools, "files".to_owned());
        assert_eq!(parse_line("/tools  files "), tools);
        assert_eq!(parse_line("/tool"), TypedLine::UnknownCommand("tool".to_owned()));
    }

    #[test]
    fn every_command_has_its_own_name_in_the_help() {
        for (command, name, ..) in SlashCommand::ALL {
            assert_eq!(parse_line(&format!("/{name}")), TypedLine::Command(command, String::new()));
            assert!(help_text().contains(&format!("/{name} ")));
        }
    }
}
