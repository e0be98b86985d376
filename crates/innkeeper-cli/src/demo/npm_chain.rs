//! The chain on two reference servers from npm: counts a file and writes a report.

use serde_json::{Value, json};

use super::script::{DemoStep, UnexpectedResult, result_text};

/// Values that later steps need.
#[derive(Debug, Default)]
pub(super) struct ChainState {
    folder: String,
    file_name: String,
    line_count: u64,
    word_count: u64,
    sum: u64,
    echoed: String,
    report_text: String,
}

pub(super) const CHAIN: &[DemoStep<ChainState>] = &[
    DemoStep {
        tool: "filesystem.list_allowed_directories",
        purpose: "list the allowed directories",
        arguments: |_| json!({}),
        extract: extract_allowed_folder,
    },
    DemoStep {
        tool: "filesystem.list_directory",
        purpose: "list the files",
        arguments: |memory| json!({ "path": memory.folder }),
        extract: extract_first_file,
    },
    DemoStep {
        tool: "filesystem.read_text_file",
        purpose: "read a file and count its lines and words",
        arguments: |memory| json!({ "path": join_path(&memory.folder, &memory.file_name) }),
        extract: count_lines_and_words,
    },
    DemoStep {
        tool: "everything.get-sum",
        purpose: "add the two counts",
        arguments: |memory| json!({ "a": memory.line_count, "b": memory.word_count }),
        extract: extract_sum,
    },
    DemoStep {
        tool: "everything.echo",
        purpose: "echo a sentence",
        arguments: |memory| json!({ "message": sentence(memory) }),
        extract: |memory, result| {
            memory.echoed = result_text(result);
            let said = memory.echoed.contains(&sentence(memory));
            said.then(|| format!("the server echoed `{}`", memory.echoed))
                .ok_or(UnexpectedResult("the sentence"))
        },
    },
    DemoStep {
        tool: "filesystem.write_file",
        purpose: "write the echoed sentence to a report",
        arguments: |memory| json!({ "path": report_path(memory), "content": memory.echoed }),
        extract: |memory, result| {
            let wanted = report_path(memory);
            let named = result_text(result).contains(&wanted);
            memory.report_text = wanted;
            named
                .then(|| "the report is written".to_owned())
                .ok_or(UnexpectedResult("the report's path"))
        },
    },
    DemoStep {
        tool: "filesystem.read_text_file",
        purpose: "read the report back",
        arguments: |memory| json!({ "path": memory.report_text }),
        extract: |memory, result| {
            let text = result_text(result);
            let same = text == memory.echoed && text.contains(&memory.sum.to_string());
            same.then(|| format!("the report has the sum {}", memory.sum))
                .ok_or(UnexpectedResult("the sum"))
        },
    },
];

fn extract_allowed_folder(
    state: &mut ChainState,
    result: &Value,
) -> Result<String, UnexpectedResult> {
    let text = result_text(result);
    let directory =
        text.lines().map(str::trim).find(|line| !line.is_empty() && !line.ends_with(':'));
    state.folder = directory.ok_or(UnexpectedResult("a directory"))?.to_owned();
    Ok("one directory is allowed".to_owned())
}

fn extract_first_file(state: &mut ChainState, result: &Value) -> Result<String, UnexpectedResult> {
    let text = result_text(result);
    let mut files = text.lines().filter_map(|line| line.trim().strip_prefix("[FILE] "));
    state.file_name = files.next().ok_or(UnexpectedResult("a file"))?.to_owned();
    Ok(format!("{} files; the first is `{}`", files.count() + 1, state.file_name))
}

fn count_lines_and_words(
    state: &mut ChainState,
    result: &Value,
) -> Result<String, UnexpectedResult> {
    let text = result_text(result);
    state.line_count = text.lines().count() as u64;
    state.word_count = text.split_whitespace().count() as u64;
    if state.word_count == 0 {
        return Err(UnexpectedResult("a word"));
    }
    Ok(format!("{} lines, {} words", state.line_count, state.word_count))
}

fn extract_sum(state: &mut ChainState, result: &Value) -> Result<String, UnexpectedResult> {
    let text = result_text(result);
    let digits = text.rsplit(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
    let number = digits.and_then(|digits| digits.parse().ok());
    state.sum = number.ok_or(UnexpectedResult("a number"))?;
    let right = state.sum == state.line_count + state.word_count;
    right.then(|| format!("the sum is {}", state.sum)).ok_or(UnexpectedResult("the correct sum"))
}

fn sentence(state: &ChainState) -> String {
    format!("{} has {} lines and words together", state.file_name, state.sum)
}

fn report_path(state: &ChainState) -> String {
    join_path(&state.folder, &format!("report-{}.txt", state.sum))
}

fn join_path(dir: &str, name: &str) -> String {
    let separator = if dir.contains('\\') { '\\' } else { '/' };
    format!("{}{separator}{name}", dir.trim_end_matches(separator))
}
