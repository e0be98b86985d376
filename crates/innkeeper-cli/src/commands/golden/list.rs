//! `golden list`: lists the goldens of a directory.

use innkeeper_agent::golden::{Category, Golden};
use serde_json::{Value, json};

use super::files::{GoldenFile, GoldenFiles};
use crate::cli::ListArgs;
use crate::exit::CliError;
use crate::output::{Output, Table};

pub(super) fn run(args: &ListArgs, output: &mut Output) -> Result<(), CliError> {
    let mut files = GoldenFiles::find(std::slice::from_ref(&args.dir))?;
    let mut table = Table::new([
        "test name",
        "provider",
        "model",
        "category",
        "origin",
        "calls",
        "requests",
        "recorded at",
    ]);
    let mut list = Vec::new();
    for file in files.by_ref() {
        let file = file?;
        table.add_row(row(&file.golden));
        list.push(entry(&file));
    }
    if output.is_json() {
        output.print_json(&list)?;
    } else if list.is_empty() {
        output.status(&format!("`{}` has no goldens", args.dir.display()))?;
    } else {
        output.print_table(&table)?;
    }
    files.report_skipped(output)
}

fn category(golden: &Golden) -> Option<&'static str> {
    golden.category.map(Category::as_str)
}

fn row(golden: &Golden) -> [String; 8] {
    [
        golden.test_name.clone(),
        golden.input.provider.clone(),
        golden.input.model.clone(),
        category(golden).unwrap_or("-").to_owned(),
        golden.origin.as_str().to_owned(),
        golden.tool_calls.len().to_string(),
        golden.provider_responses.len().to_string(),
        golden.recorded_at.clone(),
    ]
}

fn entry(file: &GoldenFile) -> Value {
    let golden = &file.golden;
    json!({
        "file": file.name(),
        "test_name": golden.test_name,
        "provider": golden.input.provider,
        "model": golden.input.model,
        "category": category(golden),
        "origin": golden.origin,
        "calls": golden.tool_calls.len(),
        "requests": golden.provider_responses.len(),
        "recorded_at": golden.recorded_at,
    })
}
