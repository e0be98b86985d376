//! `goldens`: records the constructed goldens of `tests/goldens` again.
//!
//! The scripted model writes the responses in the providers' documented forms (`providers` checks them
//! with the providers' own clients), and the command line records real runs over them with real
//! servers. The address of the scripted model becomes that of the provider.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::program::{Program, relative_path, repository_root};
use crate::test::BUILD_ARGS;
use crate::{TaskResult, output};

/// The directory of the goldens.
const GOLDENS_DIR: &str = "tests/goldens";

/// Time for the start of the scripted model.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A run of a model that writes the same responses each time.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    file: String,
    provider: String,
    model: String,
    prompt: String,
    category: Option<String>,
    tool_calling: Option<String>,
    /// Whether the golden is never recorded again, because it proves that old goldens replay.
    #[serde(default)]
    frozen: bool,
    /// The responses, in the form of `innkeeper-llm`.
    steps: Value,
}

/// Records all scenarios, or those whose file contains `part`.
///
/// # Errors
///
/// A program does not build or run, or a run cannot be recorded.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let part = arguments.first().copied().unwrap_or_default();
    Program::cargo(BUILD_ARGS).run()?;
    let goldens = repository_root().join(GOLDENS_DIR);
    let text = read(&goldens.join("shared/scenarios.json"))?;
    let scenarios: Vec<Scenario> =
        serde_json::from_str(&text).map_err(|error| format!("scenarios.json: {error}"))?;
    for scenario in scenarios.iter().filter(|scenario| scenario.file.contains(part)) {
        if scenario.frozen && goldens.join(&scenario.file).exists() {
            continue;
        }
        record(scenario, &goldens)?;
        output::print_line(format_args!("recorded {}", scenario.file));
    }
    write_definitions(&goldens)
}

fn record(scenario: &Scenario, goldens: &Path) -> TaskResult {
    let programs = repository_root().join("target/debug");
    let script = repository_root().join("target/golden-script.json");
    let steps = json!({"steps": scenario.steps, "chunks": 300}).to_string();
    write(&script, &steps)?;
    let log = repository_root().join("target/golden-model.log");
    let model = Program::new(programs.join("innkeeper-llm")).path_arg(&script);
    let mut model = model.with_open_input().start(&log)?;
    let origin = model.wait_for("http://", START_TIMEOUT)?;
    let (path, public) = match scenario.provider.as_str() {
        "openai" => ("/v1", "https://api.openai.com/v1"),
        "anthropic" => ("", "https://api.anthropic.com"),
        "gemini" => ("", "https://generativelanguage.googleapis.com"),
        _ => ("", "http://localhost:11434"),
    };
    let local = format!("http://{origin}{path}");
    let file = goldens.join(&scenario.file);
    fs::create_dir_all(file.parent().unwrap_or(goldens))
        .map_err(|error| format!("`{}`: {error}", relative_path(&file)))?;
    let ask = Program::new(programs.join("innkeeper"))
        .args("--config tests/goldens/shared/mcp.json ask --provider")
        .arg(&scenario.provider)
        .arg("--model")
        .arg(&scenario.model)
        .arg("--base-url")
        .arg(&local)
        .arg("--record")
        .path_arg(&file)
        .env("CI", "");
    let ask = match &scenario.tool_calling {
        Some(mode) => ask.arg("--tool-calling").arg(mode),
        None => ask,
    };
    // The run itself may fail: that is what some goldens show.
    let ran = ask.arg(&scenario.prompt).run();
    drop(model);
    let text = read(&file).map_err(|error| format!("{error} ({ran:?})"))?;
    let text = text.replace(&local, public).replacen("\"recorded\"", "\"constructed\"", 1);
    let text = match &scenario.category {
        Some(category) if !text.contains("\"category\"") => {
            let line = "\"origin\": \"constructed\",";
            text.replacen(line, &format!("{line}\n  \"category\": \"{category}\","), 1)
        }
        _ => text,
    };
    write(&file, &text)
}

/// Writes the definitions of all tools of the goldens.
fn write_definitions(goldens: &Path) -> TaskResult {
    let golden = read(&goldens.join("openai/happy_path_database_query.json"))?;
    let golden: Value = serde_json::from_str(&golden).map_err(|error| error.to_string())?;
    let text = serde_json::to_string_pretty(&json!({"tools": golden["tools"]}));
    let text = text.map_err(|error| error.to_string())?;
    write(&goldens.join("shared/tool_schema_definitions.json"), &format!("{text}\n"))
}

fn read(file: &Path) -> TaskResult<String> {
    fs::read_to_string(file).map_err(|error| format!("`{}`: {error}", relative_path(file)))
}

fn write(file: &Path, text: &str) -> TaskResult {
    fs::write(file, text).map_err(|error| format!("`{}`: {error}", relative_path(file)))
}
