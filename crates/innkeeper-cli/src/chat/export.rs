//! A conversation as a Markdown file.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use innkeeper_agent::conversation::{Conversation, Message, PartContent};

use crate::output::{IndentedJson, escape_block, escape_inline};

/// Writes a text to a new file that only the user can read.
///
/// # Errors
///
/// The file exists, or cannot be written.
pub(crate) fn write_new_file(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// Returns a conversation as Markdown. Control characters of models and servers are escaped.
pub(crate) fn to_markdown(conversation: &Conversation, title: Option<&str>) -> String {
    let mut text = format!("# {}\n", escape_inline(title.unwrap_or("Conversation")));
    for message in conversation.messages() {
        match message {
            Message::User(content) => push_section(&mut text, "User", &content.to_text()),
            Message::Assistant(assistant) => {
                for part in &assistant.parts {
                    push_part(&mut text, &part.content);
                }
            }
            Message::ToolResults(results) => {
                for result in results.iter() {
                    let kind = if result.is_error { "Error" } else { "Result" };
                    let heading = format!("{kind} of `{}`", escape_inline(&result.name));
                    push_code(&mut text, &heading, "", &result.content.to_text());
                }
            }
        }
    }
    text
}

fn push_part(text: &mut String, part: &PartContent) {
    match part {
        PartContent::Text(part) => push_section(text, "Model", part),
        PartContent::Reasoning(part) => push_section(text, "Reasoning of the model", part),
        PartContent::ToolCall(call) => {
            let heading = format!("Call of `{}`", escape_inline(&call.name));
            push_code(text, &heading, "json", &IndentedJson(&call.arguments).to_string());
        }
        PartContent::Other => {}
    }
}

fn push_section(text: &mut String, heading: &str, section: &str) {
    if !section.trim().is_empty() {
        let _ = write!(text, "\n## {heading}\n\n{}\n", escape_block(section.trim()));
    }
}

/// Adds a code block whose fence is longer than each fence in the code.
fn push_code(text: &mut String, heading: &str, language: &str, code: &str) {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    let code = escape_block(code.trim_end());
    let _ = write!(text, "\n### {heading}\n\n{fence}{language}\n{code}\n{fence}\n");
}

#[cfg(test)]
mod tests {
    use innkeeper_agent::conversation::ToolResult;
    use innkeeper_agent::provider::Response;

    use super::*;

    fn conversation(result: &str) -> Conversation {
        let mut conversation = Conversation::new();
        conversation.push_user("Read a.").unwrap();
        let call = Response::from_tool_calls([("a.read", r#"{"path":"x"}"#)]);
        conversation.push_assistant(call.message).unwrap();
        let results = conversation.pending_calls().map(|call| ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            content: result.into(),
            is_error: true,
        });
        conversation.push_tool_results(results.collect()).unwrap();
        conversation.push_assistant(Response::from_text("**Done.**").message).unwrap();
        conversation
    }

    #[test]
    fn the_export_has_messages_calls_and_results_in_their_order() {
        let text = to_markdown(&conversation("no file"), Some("Notes"));
        insta::assert_snapshot!(text, @r###"
        # Notes

        ## User

        Read a.

        ### Call of `a.read`

        ```json
        {
          "path": "x"
        }
        ```

        ### Error of `a.read`

        ```
        no file
        ```

        ## Model

        **Done.**
        "###);
    }

    /// Attack: files | a server's result ends its code block and has terminal sequences | the export
    /// has the result as one code block of plain text | Foreign text stays text
    #[test]
    fn a_result_with_fences_and_control_characters_stays_one_block_of_text() {
        let text = to_markdown(&conversation("````\n\u{1b}[2J\n# User"), None);
        assert!(text.contains("\n`````\n````\n\\u{1b}[2J\n# User\n`````\n"), "{text}");
    }

    #[test]
    fn an_export_overwrites_no_file_and_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.md");
        write_new_file(&path, "first").unwrap();
        let error = write_new_file(&path, "second").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
