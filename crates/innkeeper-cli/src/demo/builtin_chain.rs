//! The chain over the built-in servers: a file becomes a note, the note a report.

use serde_json::{Value, json};

use super::script::{Step, Surprise, structured};

/// What the steps have learned so far.
#[derive(Debug, Default)]
pub(super) struct Memory {
    file: String,
    text: String,
    /// The longest word of the text.
    word: String,
    note: String,
    /// Id and title of every note that was found.
    found: Vec<(String, String)>,
    report: String,
}

pub(super) const CHAIN: &[Step<Memory>] = &[
    Step {
        tool: "files.list_directory",
        purpose: "look what is there",
        arguments: |_| json!({ "path": "." }),
        learn: longest_file,
    },
    Step {
        tool: "files.read_text_file",
        purpose: "read the longest file",
        arguments: |memory| json!({ "path": memory.file }),
        learn: text_and_word,
    },
    Step {
        tool: "notes.add_note",
        purpose: "keep its text as a note",
        arguments: |memory| json!({ "title": title(&memory.text), "text": memory.text, "tags": [memory.file] }),
        learn: |memory, result| {
            memory.note = structured(result, "id", "the note's id")?;
            Ok(format!("the note is `{}`", memory.note))
        },
    },
    Step {
        tool: "notes.find_notes",
        purpose: "find it again by a word of the file",
        arguments: |memory| json!({ "query": memory.word }),
        learn: notes_with_word,
    },
    Step {
        tool: "files.write_file",
        purpose: "write a report of what was found",
        arguments: |memory| json!({ "path": format!("report-{}.md", memory.note), "content": report(memory) }),
        learn: |memory, result| {
            memory.report = structured(result, "path", "the report's path")?;
            Ok(format!("the report is `{}`", memory.report))
        },
    },
    Step {
        tool: "files.read_text_file",
        purpose: "read the report back",
        arguments: |memory| json!({ "path": memory.report }),
        learn: |memory, result| {
            let text = structured(result, "text", "the report's text")?;
            let whole = text == report(memory) && text.contains(&memory.note);
            whole.then(|| format!("it names `{}`", memory.note)).ok_or(Surprise("the note's id"))
        },
    },
    Step {
        tool: "files.search_text",
        purpose: "find the report by the note's id",
        arguments: |memory| json!({ "query": memory.note }),
        learn: report_among_matches,
    },
];

fn longest_file(memory: &mut Memory, result: &Value) -> Result<String, Surprise> {
    let entries = result["structuredContent"]["entries"].as_array();
    let files: Vec<_> =
        entries.into_iter().flatten().filter(|entry| entry["type"] == "file").collect();
    let longest = files.iter().max_by_key(|file| file["size"].as_u64());
    let name = longest.and_then(|file| file["name"].as_str()).ok_or(Surprise("a file"))?;
    memory.file = name.to_owned();
    Ok(format!("{} files; the longest is `{name}`", files.len()))
}

fn text_and_word(memory: &mut Memory, result: &Value) -> Result<String, Surprise> {
    memory.text = structured(result, "text", "the file's text")?;
    let words = memory.text.split(|c: char| !c.is_alphabetic());
    let longest = words.max_by_key(|word| word.chars().count()).unwrap_or_default();
    memory.word = longest.to_owned();
    if memory.word.is_empty() {
        return Err(Surprise("a single word"));
    }
    Ok(format!("its longest word is `{}`", memory.word))
}

fn notes_with_word(memory: &mut Memory, result: &Value) -> Result<String, Surprise> {
    let notes = result["structuredContent"]["notes"].as_array().ok_or(Surprise("any notes"))?;
    let named =
        |note: &Value| Some((note["id"].as_str()?.to_owned(), note["title"].as_str()?.to_owned()));
    memory.found = notes.iter().filter_map(named).collect();
    if !memory.found.iter().any(|(id, _)| *id == memory.note) {
        return Err(Surprise("the note that was just added"));
    }
    Ok(format!("`{}` is among {} found", memory.note, memory.found.len()))
}

fn report_among_matches(memory: &mut Memory, result: &Value) -> Result<String, Surprise> {
    let matches = result["structuredContent"]["matches"].as_array();
    let line = matches.into_iter().flatten().find(|found| found["path"] == *memory.report);
    let line = line.ok_or(Surprise("a line of the report"))?;
    Ok(format!("it stands in line {}", line["line"]))
}

/// The first line that has letters, without what marks it as a heading.
fn title(text: &str) -> &str {
    let lines = text.lines().map(|line| line.trim_matches(['#', ' ']));
    lines.into_iter().find(|line| !line.is_empty()).unwrap_or("untitled")
}

fn report(memory: &Memory) -> String {
    let lines = memory.found.iter().map(|(id, title)| format!("- {id}: {title}\n"));
    format!("# Notes about {}\n\n{}", memory.word, lines.collect::<String>())
}
