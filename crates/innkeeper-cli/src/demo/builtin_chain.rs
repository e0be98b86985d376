//! The chain on the built-in servers: from a file to a note to a report.

use serde_json::{Value, json};

use super::script::{DemoStep, UnexpectedResult, structured_string};

/// Values that later steps need.
#[derive(Debug, Default)]
pub(super) struct ChainState {
    file_name: String,
    text: String,
    longest_word: String,
    note_id: String,
    /// Id and title of each note found.
    found_notes: Vec<(String, String)>,
    report_path: String,
}

pub(super) const CHAIN: &[DemoStep<ChainState>] = &[
    DemoStep {
        tool: "files.list_directory",
        purpose: "list the sample files",
        arguments: |_| json!({ "path": "." }),
        extract: select_longest_file,
    },
    DemoStep {
        tool: "files.read_text_file",
        purpose: "read the longest file",
        arguments: |memory| json!({ "path": memory.file_name }),
        extract: extract_text_and_word,
    },
    DemoStep {
        tool: "notes.add_note",
        purpose: "save the text as a note",
        arguments: |memory| json!({ "title": first_heading(&memory.text), "text": memory.text, "tags": [memory.file_name] }),
        extract: |memory, result| {
            memory.note_id = structured_string(result, "id", "the note's id")?;
            Ok(format!("the note is `{}`", memory.note_id))
        },
    },
    DemoStep {
        tool: "notes.find_notes",
        purpose: "find the note by a word of the file",
        arguments: |memory| json!({ "query": memory.longest_word }),
        extract: extract_matching_notes,
    },
    DemoStep {
        tool: "files.write_file",
        purpose: "write a report on the notes found",
        arguments: |memory| json!({ "path": format!("report-{}.md", memory.note_id), "content": report_text(memory) }),
        extract: |memory, result| {
            memory.report_path = structured_string(result, "path", "the report's path")?;
            Ok(format!("the report is `{}`", memory.report_path))
        },
    },
    DemoStep {
        tool: "files.read_text_file",
        purpose: "read the report back",
        arguments: |memory| json!({ "path": memory.report_path }),
        extract: |memory, result| {
            let text = structured_string(result, "text", "the report's text")?;
            let whole = text == report_text(memory) && text.contains(&memory.note_id);
            whole
                .then(|| format!("the report names `{}`", memory.note_id))
                .ok_or(UnexpectedResult("the note's id"))
        },
    },
    DemoStep {
        tool: "files.search_text",
        purpose: "find the report by the note's id",
        arguments: |memory| json!({ "query": memory.note_id }),
        extract: find_report_match,
    },
];

fn select_longest_file(state: &mut ChainState, result: &Value) -> Result<String, UnexpectedResult> {
    let entries = result["structuredContent"]["entries"].as_array();
    let files: Vec<_> =
        entries.into_iter().flatten().filter(|entry| entry["type"] == "file").collect();
    let longest = files.iter().max_by_key(|file| file["size"].as_u64());
    let name = longest.and_then(|file| file["name"].as_str()).ok_or(UnexpectedResult("a file"))?;
    state.file_name = name.to_owned();
    Ok(format!("{} files; the longest is `{name}`", files.len()))
}

fn extract_text_and_word(
    state: &mut ChainState,
    result: &Value,
) -> Result<String, UnexpectedResult> {
    state.text = structured_string(result, "text", "the file's text")?;
    let words = state.text.split(|c: char| !c.is_alphabetic());
    let longest = words.max_by_key(|word| word.chars().count()).unwrap_or_default();
    state.longest_word = longest.to_owned();
    if state.longest_word.is_empty() {
        return Err(UnexpectedResult("a word"));
    }
    Ok(format!("the longest word is `{}`", state.longest_word))
}

fn extract_matching_notes(
    state: &mut ChainState,
    result: &Value,
) -> Result<String, UnexpectedResult> {
    let notes = result["structuredContent"]["notes"]
        .as_array()
        .ok_or(UnexpectedResult("the found notes"))?;
    state.found_notes = notes
        .iter()
        .filter_map(|note| {
            Some((note["id"].as_str()?.to_owned(), note["title"].as_str()?.to_owned()))
        })
        .collect();
    if !state.found_notes.iter().any(|(id, _)| *id == state.note_id) {
        return Err(UnexpectedResult("the added note"));
    }
    Ok(format!("`{}` is one of {} notes found", state.note_id, state.found_notes.len()))
}

fn find_report_match(state: &mut ChainState, result: &Value) -> Result<String, UnexpectedResult> {
    let matches = result["structuredContent"]["matches"].as_array();
    let line = matches.into_iter().flatten().find(|entry| entry["path"] == *state.report_path);
    let line = line.ok_or(UnexpectedResult("a line of the report"))?;
    Ok(format!("found in line {}", line["line"]))
}

/// Returns the first line with letters, without its heading markers.
fn first_heading(text: &str) -> &str {
    let lines = text.lines().map(|line| line.trim_matches(['#', ' ']));
    lines.into_iter().find(|line| !line.is_empty()).unwrap_or("untitled")
}

fn report_text(state: &ChainState) -> String {
    let lines = state.found_notes.iter().map(|(id, title)| format!("- {id}: {title}\n"));
    format!("# Notes about {}\n\n{}", state.longest_word, lines.collect::<String>())
}
