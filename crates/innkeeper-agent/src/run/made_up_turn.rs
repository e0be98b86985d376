//! Finds where a model goes on with the turn of someone else: models that make calls in their text
//! often write the result of the call as well, or what the user says next.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::delimiters::MergedRanges;

/// The start of a turn of the user, of a tool or of the system: a token of a chat template, or a label
/// at the start of a line.
static TURN: LazyLock<Regex> = LazyLock::new(|| {
    let label = "(?i:user|human|observation|(?:tool|function)[ _](?:call[ _])?(?:result|response|output)s?)";
    Regex::new(&format!(
        r"(?m)<\|(?:im_start|start_header_id|start|turn)\|?>\s*(?:user|system|developer|tool|ipython|functions)\b|<start_of_turn>\s*(?:user|developer)\b|<\|(?:user|system|observation|tool|im_user|im_system|USER_TOKEN|SYSTEM_TOKEN)\|>|<｜(?:User|tool▁outputs?▁begin)｜>|\[INST\]|\[TOOL_RESULTS\]|<\|?(?:tool|function)_(?:response|result|output)s?\b[^<>\n]*>|^[ \t]*(?:[#*_\[(]+[ \t]*)*{label}[\])*_]*[:：]|^[ \t]*(?:#+[ \t]*|[*_\[]+){label}[\]*_]*[ \t]*$"
    ))
    .expect("the pattern is valid")
});

/// Returns where the first turn of someone else starts, outside of the ignored ranges.
pub(super) fn find_made_up_turn(text: &str, ignored: &[Range<usize>]) -> Option<usize> {
    let ignored = MergedRanges::new(ignored);
    TURN.find_iter(text).map(|found| found.start()).find(|start| !ignored.contains(*start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_of_someone_else_is_found_by_its_token_or_its_label() {
        for turn in [
            "<|im_start|>user\nHi",
            "<|im_start|>tool\n{}",
            "<|start_header_id|>ipython<|end_header_id|>\n\n{}",
            "<start_of_turn>user\nHi",
            "<|turn>user\nHi",
            "<|observation|>\n{}",
            "<｜User｜>Hi",
            "[INST] Hi",
            "<tool_response>\n{}",
            "<function_results>\n{}",
            "User: Hi",
            "Human:\nHi",
            "Observation: {}",
            "**Tool result:** {}",
            "### Tool Output:\n{}",
            "## User\n\nHi",
            "[Tool response]\n{}",
        ] {
            assert_eq!(find_made_up_turn(&format!("Hello.\n{turn}"), &[]), Some(7), "{turn}");
        }
    }

    #[test]
    fn words_about_users_and_results_are_no_turn() {
        for text in [
            "The user: Bob.",
            "Users:\n- Bob",
            "Result: 5",
            "user\nBob",
            "<|im_start|>assistant\nHi",
            "Observations of birds: 5",
            "The tool result is 5.",
            "<user>Bob</user>",
        ] {
            assert_eq!(find_made_up_turn(text, &[]), None, "{text}");
        }
    }

    #[test]
    fn what_is_ignored_has_no_turn() {
        let text = "`User: a`\nUser: b";
        let code = 0..9;
        assert_eq!(find_made_up_turn(text, std::slice::from_ref(&code)), Some(10));
        assert_eq!(find_made_up_turn("x User: a", &[]), None);
    }
}
