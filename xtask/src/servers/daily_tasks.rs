//! Ten everyday tasks with each of three hosts: time, keystrokes and processes left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::leftovers::RunMarker;
use super::{ROUNDS, Tools, create_dir};
use crate::program::{MeasuredRun, Program, relative_path, repository_root};
use crate::{TaskResult, figures, output};

const TASKS: &str = include_str!("../../published_servers/daily_tasks.toml");

/// The page with the table.
const PAGE: &str = "docs/reports/daily-tasks.md";

/// The hosts, by the keys of the file of tasks and by their names in the table.
const HOSTS: [(&str, &str); 3] =
    [("innkeeper", "innkeeper"), ("mcporter", "mcporter"), ("inspector", "Inspector")];

/// Maximum time of one task.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The remote server and its address.
const REMOTE_PACKAGE: &str = "@modelcontextprotocol/server-everything@2026.8.31";
const REMOTE_URL: &str = "http://127.0.0.1:47113/mcp";
const REMOTE_PORT: &str = "47113";

/// Maximum time until the remote server listens, with its download.
const REMOTE_START_SECONDS: u64 = 240;

/// A task of a user.
#[derive(Debug)]
struct DailyTask {
    name: String,
    /// Seconds after which the task is interrupted.
    interrupt_after: Option<u64>,
    /// The line and the expected output of each host; `None` if the host has no command.
    lines: Vec<Option<TaskLine>>,
}

/// What a user types for a task, and what the output must contain.
#[derive(Debug)]
struct TaskLine {
    text: String,
    expected: String,
}

/// The measured task with one host.
#[derive(Debug)]
struct TaskCell {
    seconds: f64,
    keystrokes: usize,
    leftovers: usize,
    is_done: bool,
}

/// Runs all tasks with all hosts and prints the table.
pub(super) fn run(tools: &Tools, is_written: bool) -> TaskResult {
    let tasks = read()?;
    let user = User::new(tools)?;
    let remote = user.start_remote_server()?;
    let rows = measure_tasks(&user, &tasks);
    remote.kill_leftovers();
    let text = format!("{}\n\n{}", figures::describe_machine(), markdown(&tasks, &rows?));
    output::print_line(&text);
    if is_written { figures::write_to_page(PAGE, "daily-tasks", &text) } else { Ok(()) }
}

fn measure_tasks(user: &User, tasks: &[DailyTask]) -> TaskResult<Vec<Vec<Option<TaskCell>>>> {
    // A user trusts the servers of a file once.
    user.run("innkeeper tools --trust", None)?;
    let mut rows = Vec::new();
    for task in tasks {
        let cells = task.lines.iter().map(|line| match line {
            Some(line) => measure(user, task, line).map(Some),
            None => Ok(None),
        });
        let row: Vec<Option<TaskCell>> = cells.collect::<Result<_, _>>()?;
        output::print_line(format!("{}: {}", task.name, row_cells(&row).join(", ")));
        rows.push(row);
    }
    Ok(rows)
}

/// Runs a task once for the caches of the package runners and then [`ROUNDS`] times.
fn measure(user: &User, task: &DailyTask, line: &TaskLine) -> TaskResult<TaskCell> {
    user.run(&line.text, task.interrupt_after)?;
    user.marker.kill_leftovers();
    // A task that is not done runs once.
    let before = task.interrupt_after.map_or(Duration::ZERO, Duration::from_secs);
    let (mut times, mut leftovers, mut is_done) = (Vec::new(), 0, true);
    for _ in 0..ROUNDS {
        let run = user.run(&line.text, task.interrupt_after)?;
        leftovers = leftovers.max(user.marker.kill_leftovers());
        is_done &= run.stdout.contains(&line.expected) || run.stderr.contains(&line.expected);
        is_done &= run.elapsed >= before && run.elapsed < before + TIME_LIMIT;
        times.push(run.elapsed.saturating_sub(before).as_secs_f64());
        if !is_done {
            break;
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    let keystrokes = line.text.chars().count() + 1;
    Ok(TaskCell { seconds: times[times.len() / 2], keystrokes, leftovers, is_done })
}

/// A user: a home directory, a project with a configuration, and a search path.
#[derive(Debug)]
struct User {
    home: PathBuf,
    project: PathBuf,
    caches: PathBuf,
    path: String,
    marker: RunMarker,
}

impl User {
    /// Creates the directories, with the same configuration in the default place of each host.
    fn new(tools: &Tools) -> TaskResult<Self> {
        let home = tools.home.join("daily-tasks");
        if home.exists() {
            fs::remove_dir_all(&home)
                .map_err(|error| format!("`{}`: {error}", relative_path(&home)))?;
        }
        let project = home.join("project");
        let npx = |package: &str, argument: &[&str]| {
            let args: Vec<&str> = ["-y", package].iter().chain(argument).copied().collect();
            json!({ "command": "npx", "args": args })
        };
        let servers = json!({
            "files": npx("@modelcontextprotocol/server-filesystem@2026.8.31", &["."]),
            "everything": npx("@modelcontextprotocol/server-everything@2026.8.31", &[]),
            "remote": { "type": "streamable-http", "url": REMOTE_URL },
            "search": npx("@brave/brave-search-mcp-server@2.1.4", &[]),
        });
        let text = json!({ "mcpServers": servers }).to_string();
        for file in ["project/mcp.json", "project/config/mcporter.json", ".mcp-inspector/mcp.json"]
        {
            let file = home.join(file);
            file.parent().map_or(Ok(()), create_dir)?;
            fs::write(&file, &text)
                .map_err(|error| format!("`{}`: {error}", relative_path(&file)))?;
        }
        let bin = |path: &str| tools.home.join(path).display().to_string();
        let release = repository_root().join("target/release").display().to_string();
        let path = [release, bin("peers/node_modules/.bin"), tools.path.clone()].join(":");
        let marker = RunMarker::home_directory(&home);
        Ok(Self { project, caches: tools.home.join("cache"), path, marker, home })
    }

    /// Starts the server of the URL, with a home directory of its own.
    fn start_remote_server(&self) -> TaskResult<RunMarker> {
        let home = self.home.join("remote");
        create_dir(&home)?;
        let line = format!(
            "PORT={REMOTE_PORT} setsid npx -y {REMOTE_PACKAGE} streamableHttp > log 2>&1 &"
        );
        self.shell(&line, &home, 5).current_dir(&home).measure(&home)?;
        let log = home.join("log");
        for _ in 0..REMOTE_START_SECONDS {
            if fs::read_to_string(&log).is_ok_and(|text| text.contains("listening")) {
                return Ok(RunMarker::home_directory(&home));
            }
            sleep(Duration::from_secs(1));
        }
        RunMarker::home_directory(&home).kill_leftovers();
        Err(format!("the remote server does not listen; see `{}`", relative_path(&log)))
    }

    /// Runs a line in the project, with SIGINT to its process group after a number of seconds.
    fn run(&self, line: &str, interrupt_after: Option<u64>) -> TaskResult<MeasuredRun> {
        let limit = TIME_LIMIT.as_secs();
        let program = match interrupt_after {
            None => self.shell(line, &self.home, limit),
            Some(seconds) => {
                let line = format!("exec timeout -s INT -k {limit} {seconds} {line}");
                self.shell(&line, &self.home, seconds + limit + 5)
            }
        };
        program.current_dir(&self.project).measure(&self.home)
    }

    fn shell(&self, line: &str, home: &Path, time_limit: u64) -> Program {
        Program::with_time_limit("sh", time_limit)
            .arg("-c")
            .arg(line)
            .env("PATH", &self.path)
            .env("HOME", &home.display().to_string())
            .env("npm_config_cache", &self.caches.join("npm").display().to_string())
            // Without a desktop, the search of Inspector for a keychain takes time.
            .env("MCP_INSPECTOR_SECRET_STORE", "memory")
    }
}

/// Reads the file of tasks.
fn read() -> TaskResult<Vec<DailyTask>> {
    let table: toml::Table =
        TASKS.parse().map_err(|error| format!("`daily_tasks.toml`: {error}"))?;
    let entries = table.get("task").and_then(toml::Value::as_array);
    entries.ok_or("`daily_tasks.toml` has no `task`")?.iter().map(parse).collect()
}

fn parse(entry: &toml::Value) -> TaskResult<DailyTask> {
    let text = |key: &str| entry.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let expected = |host: &str| {
        let expected = entry.get("expect")?;
        Some(expected.as_str().or_else(|| expected.get(host)?.as_str())?.to_owned())
    };
    let lines = HOSTS.iter().map(|(host, _)| match (text(host), expected(host)) {
        (None, _) => Ok(None),
        (Some(text), Some(expected)) => Ok(Some(TaskLine { text, expected })),
        (Some(_), None) => {
            Err(format!("`daily_tasks.toml`: no `expect` for `{host}` in `{entry}`"))
        }
    });
    Ok(DailyTask {
        name: text("name").ok_or_else(|| format!("`daily_tasks.toml`: no `name` in `{entry}`"))?,
        interrupt_after: entry
            .get("interrupt_after")
            .and_then(toml::Value::as_integer)
            .and_then(|seconds| u64::try_from(seconds).ok()),
        lines: lines.collect::<Result<_, _>>()?,
    })
}

fn row_cells(row: &[Option<TaskCell>]) -> Vec<String> {
    row.iter()
        .map(|cell| match cell {
            None => "no command".to_owned(),
            Some(TaskCell { seconds, keystrokes, leftovers, is_done }) => {
                let time = if *is_done { format!("{seconds:.2} s") } else { "not done".to_owned() };
                format!("{time} / {keystrokes} / {leftovers}")
            }
        })
        .collect()
}

/// Returns the table of times, keystrokes and processes, and the lines.
fn markdown(tasks: &[DailyTask], rows: &[Vec<Option<TaskCell>>]) -> String {
    let mut table = vec![vec!["task".to_owned()]];
    table[0].extend(HOSTS.iter().map(|(_, name)| (*name).to_owned()));
    for (task, row) in tasks.iter().zip(rows) {
        let mut cells = vec![task.name.clone()];
        cells.extend(row_cells(row));
        table.push(cells);
    }
    let mut text = figures::markdown_table(&table);
    text.push_str("\nThe lines:\n\n```text\n");
    for task in tasks {
        text.push_str(&format!("{}\n", task.name));
        for line in task.lines.iter().flatten() {
            text.push_str(&format!("  {}\n", line.text));
        }
    }
    text.push_str("```\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_ten_tasks_and_each_has_a_line_of_this_host() {
        let tasks = read().unwrap();
        assert_eq!(tasks.len(), 10);
        assert!(tasks.iter().all(|task| task.lines[0].is_some()));
    }

    #[test]
    fn a_task_without_the_expected_output_is_not_done() {
        let cell = |is_done| TaskCell { seconds: 0.5, keystrokes: 9, leftovers: 0, is_done };
        let cells = row_cells(&[Some(cell(true)), Some(cell(false)), None]);
        assert_eq!(cells, ["0.50 s / 9 / 0", "not done / 9 / 0", "no command"]);
    }
}
