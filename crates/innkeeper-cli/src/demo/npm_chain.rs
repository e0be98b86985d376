//! The chain over two reference servers: a file is counted, the count reported.

use serde_json::{Value, json};

use super::script::{Step, Surprise, text_of};

/// What the steps have learned so far.
#[derive(Debug, Default)]
pub(super) struct Memory {
    folder: String,
    file: String,
    lines: u64,
    words: u64,
    sum: u64,
    echoed: String,
    report: String,
}

pub(super) const CHAIN: &[Step<Memory>] = &[
    Step {
        tool: "filesystem.list_allowed_directories",
        purpose: "ask where files may be",
        arguments: |_| json!({}),
        learn: allowed_folder,
    },
    Step {
        tool: "filesystem.list_directory",
        purpose: "look what is there",
        arguments: |memory| json!({ "path": memory.folder }),
        learn: first_file,
    },
    Step {
        tool: "filesystem.read_text_file",
        purpose: "read and count a file",
        arguments: |memory| json!({ "path": below(&memory.folder, &memory.file) }),
        learn: counts,
    },
    Step {
        tool: "everything.get-sum",
        purpose: "add its lines and words",
        arguments: |memory| json!({ "a": memory.lines, "b": memory.words }),
        learn: sum,
    },
    Step {
        tool: "everything.echo",
        purpose: "have the sentence said back",
        arguments: |memory| json!({ "message": sentence(memory) }),
        learn: |memory, result| {
            memory.echoed = text_of(result);
            let said = memory.echoed.contains(&sentence(memory));
            said.then(|| format!("it said `{}`", memory.echoed)).ok_or(Surprise("the sentence"))
        },
    },
    Step {
        tool: "filesystem.write_file",
        purpose: "write what was said into a report",
        arguments: |memory| json!({ "path": report(memory), "content": memory.echoed }),
        learn: |memory, result| {
            let wanted = report(memory);
            let named = text_of(result).contains(&wanted);
            memory.report = wanted;
            named.then(|| "the report is written".to_owned()).ok_or(Surprise("the report's path"))
        },
    },
    Step {
        tool: "filesystem.read_text_file",
        purpose: "read the report back",
        arguments: |memory| json!({ "path": memory.report }),
        learn: |memory, result| {
            let text = text_of(result);
            let same = text == memory.echoed && text.contains(&memory.sum.to_string());
            same.then(|| format!("it has the sum {}", memory.sum)).ok_or(Surprise("the sum"))
        },
    },
];

fn allowed_folder(memory: &mut Memory, result: &Value) -> Result<String, Surprise> {
    let text = text_of(result);
    let folder = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.ends_with(':'));
    memory.folder = folder.ok_or(Surprise("a folder"))?.to_owned();
    Ok("one folder is allowed".to_owned())
}

fn first_file(memory: &mut Memory, result: &Value) -> Result<String, Surprise> {
    let text = text_of(result);
    let mut files = text.lines().filter_map(|line| line.trim().strip_prefix("[FILE] "));
    memory.file = files.next().ok_or(Surprise("a file"))?.to_owned();
    Ok(format!("{} files; the first is `{}`", files.count() + 1, memory.file))
}

fn counts(memory: &mut Memory, result: &Value) -> Result<String, Surprise> {
    let text = text_of(result);
    memory.lines = text.lines().count() as u64;
    memory.words = text.split_whitespace().count() as u64;
    if memory.words == 0 {
        return Err(Surprise("a single word"));
    }
    Ok(format!("{} lines, {} words", memory.lines, memory.words))
}

fn sum(memory: &mut Memory, result: &Value) -> Result<String, Surprise> {
    let text = text_of(result);
    let digits = text.rsplit(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
    let number = digits.and_then(|digits| digits.parse().ok());
    memory.sum = number.ok_or(Surprise("a number"))?;
    let right = memory.sum == memory.lines + memory.words;
    right.then(|| format!("the sum is {}", memory.sum)).ok_or(Surprise("the right sum"))
}

fn sentence(memory: &Memory) -> String {
    format!("{} has {} lines and words together", memory.file, memory.sum)
}

fn report(memory: &Memory) -> String {
    below(&memory.folder, &format!("report-{}.txt", memory.sum))
}

fn below(folder: &str, name: &str) -> String {
    let separator = if folder.contains('\\') { '\\' } else { '/' };
    format!("{}{separator}{name}", folder.trim_end_matches(separator))
}
