//! `function-order`: writes the list of the functions that a start calls.
//!
//! The build script of the command line places these functions side by side in the program of the
//! profile `dist`, and the build script of the benchmark does the same with its client.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::program::{Program, relative_path, repository_root};
use crate::{TaskResult, output};

/// The list. A line has a crate and a pattern of sections.
const LIST_PATH: &str = "crates/innkeeper-cli/function-order.txt";
/// The number of servers of each start.
const SERVER_COUNT: usize = 20;
/// Time for a start in the profiler, which slows a program down by a factor of about fifty.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// The length of the hash in a mangled name.
const HASH_DIGITS: usize = 16;

/// Builds the programs, starts them in the profiler and writes the list.
///
/// # Errors
///
/// The profiler is missing, a program does not build or run, or the list cannot be written.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("`function-order` takes no `{argument}`"));
    }
    let version = Program::new("valgrind").arg("--version").output();
    version
        .map_err(|_| "`function-order` needs valgrind (`apt-get install valgrind`)".to_owned())?;
    let profiler = Profiler::new()?;
    let library = profiler.lines_of_library()?;
    let command_line = profiler.lines_of_command_line()?;
    let list = format_list(&library, &command_line);
    let file = repository_root().join(LIST_PATH);
    fs::write(&file, &list).map_err(|error| problem(&file, &error))?;
    output::print_line(format_args!("{LIST_PATH}: {} lines", list.lines().count()));
    Ok(())
}

/// Returns the lines of the library, an empty line, and the further lines of the command line. A host of
/// an application has no pages with functions that only the command line calls.
fn format_list(library: &BTreeSet<String>, command_line: &BTreeSet<String>) -> String {
    let join =
        |lines: Vec<&String>| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let further = command_line.difference(library).collect();
    format!("{}\n{}", join(library.iter().collect()), join(further))
}

/// Builds programs with symbols and a map of their sections, and runs the programs in valgrind.
struct Profiler {
    /// The target directory of the benchmark, which has most of the dependencies.
    target: PathBuf,
    /// The programs.
    programs: PathBuf,
    /// Maps, profiles and the home directory of the programs.
    directory: PathBuf,
}

impl Profiler {
    fn new() -> TaskResult<Self> {
        let target = repository_root().join("target/bench");
        let directory = repository_root().join("target/function-order");
        fs::create_dir_all(&directory).map_err(|error| problem(&directory, &error))?;
        let programs = target.join("dist");
        Ok(Self { target, programs, directory })
    }

    /// Starts the gateway until its servers are ready, ends it, and calls a tool.
    fn lines_of_command_line(&self) -> TaskResult<BTreeSet<String>> {
        let map = self.build("--package innkeeper-cli --bin innkeeper")?;
        let configuration = self.write_configuration()?;
        let start = |name| {
            let (program, file) = self.profile(name);
            let program = program.path_arg(&self.programs.join("innkeeper")).arg("--config");
            (program.path_arg(&configuration).env("HOME", &self.directory.to_string_lossy()), file)
        };
        let (program, gateway_profile) = start("gateway");
        let log = self.directory.join("gateway.log");
        let mut gateway = program.args("serve --listen 127.0.0.1:0").start(&log)?;
        gateway.wait_for("http://", READY_TIMEOUT)?;
        drop(gateway);
        let (program, call_profile) = start("call");
        program.args(r#"call echo0.echo {"message":"text"}"#).output()?;
        let profiles = read(&gateway_profile)? + &read(&call_profile)?;
        Ok(list_lines(&map, &profiles))
    }

    /// Starts the client of the benchmark, which is an application with the library.
    fn lines_of_library(&self) -> TaskResult<BTreeSet<String>> {
        let map = self.build(
            "--manifest-path bench/Cargo.toml --package innkeeper-bench --no-default-features \
             --features innkeeper --bin peer-innkeeper",
        )?;
        let (program, file) = self.profile("library");
        let program = program.path_arg(&self.programs.join("peer-innkeeper"));
        let program = program.args("--case start --runtime current --log on --servers");
        let program = program.arg(SERVER_COUNT.to_string()).arg("--echo");
        program.path_arg(&self.programs.join("echo")).output()?;
        Ok(list_lines(&map, &read(&file)?))
    }

    /// Builds a program and returns the map of its sections.
    fn build(&self, package: &str) -> TaskResult<String> {
        let server = "build --profile dist --manifest-path bench/Cargo.toml --package innkeeper-bench \
                      --no-default-features --bin echo --target-dir";
        Program::cargo(server).path_arg(&self.target).run()?;
        let map = self.directory.join("sections.map");
        Program::cargo(&format!("rustc --profile dist {package} --target-dir"))
            .path_arg(&self.target)
            .args("-- -Cstrip=debuginfo")
            .arg(format!("-Clink-arg=-Wl,-Map={}", map.display()))
            .run()?;
        read(&map)
    }

    /// Returns the profiler without a program, and the file of the profile.
    fn profile(&self, name: &str) -> (Program, PathBuf) {
        let file = self.directory.join(format!("{name}.callgrind"));
        let program = Program::new("valgrind").args("--quiet --tool=callgrind --demangle=no");
        (program.arg(format!("--callgrind-out-file={}", file.display())), file)
    }

    /// Writes a configuration with echo servers.
    fn write_configuration(&self) -> TaskResult<PathBuf> {
        let server = json!({ "command": self.programs.join("echo").to_string_lossy() });
        let servers: Map<String, Value> =
            (0..SERVER_COUNT).map(|number| (format!("echo{number}"), server.clone())).collect();
        let file = self.directory.join("mcp.json");
        let text = json!({ "servers": servers }).to_string();
        fs::write(&file, text).map_err(|error| problem(&file, &error))?;
        Ok(file)
    }
}

fn read(file: &Path) -> TaskResult<String> {
    fs::read_to_string(file).map_err(|error| problem(file, &error))
}

fn problem(file: &Path, error: &std::io::Error) -> String {
    format!("`{}`: {error}", relative_path(file))
}

/// Returns the lines of the list for the sections of a map whose functions are in the profiles.
fn list_lines(map: &str, profiles: &str) -> BTreeSet<String> {
    let functions: HashSet<&str> = called_functions(profiles).collect();
    let lines = map.lines().filter_map(|line| {
        // LLD writes `ADDRESS ADDRESS SIZE ALIGNMENT FILE:(SECTION)`.
        let (file, section) = line.strip_suffix(')')?.rsplit_once(":(")?;
        let name = section.strip_prefix(".text.")?;
        let name = name.strip_prefix("unlikely.").unwrap_or(name);
        functions.contains(name).then(|| list_line(file, section)).flatten()
    });
    lines.collect()
}

/// Returns the functions in profiles of callgrind.
fn called_functions(profiles: &str) -> impl Iterator<Item = &str> {
    profiles.lines().filter_map(|line| {
        let entry = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn="))?;
        // A later line of the same function has its number alone.
        let (_, name) = entry.split_once(") ")?;
        // Callgrind numbers the levels of a recursion.
        Some(name.split_once('\'').map_or(name, |(name, _)| name))
    })
}

/// Returns the crate of an object file, and a pattern of its section without hashes. The hashes differ
/// between compilers, directories and versions of packages.
fn list_line(file: &str, section: &str) -> Option<String> {
    // The compiler names a file `….CRATE.HASH-cgu.NUMBER.rcgu.o`.
    let (before, _) = file.rsplit_once("-cgu.")?;
    let (before, _) = before.rsplit_once('.')?;
    let (_, name) = before.rsplit_once('.')?;
    Some(format!("{name} {}", section_pattern(section)?))
}

/// Returns a pattern for the section of a function, in the mangling of this project's crates or in that
/// of the standard library.
fn section_pattern(section: &str) -> Option<String> {
    // The compiler appends a number to a function that another object file calls.
    let section = section.split_once(".llvm.").map_or(section, |(section, _)| section);
    if section.contains("_ZN") {
        let (name, hash) = section.rsplit_once("17h")?;
        let is_hash = hash.strip_suffix('E').is_some_and(|hash| hash.len() == HASH_DIGITS);
        return is_hash.then(|| format!("{name}17h*"));
    }
    let mut pattern = String::new();
    let mut rest = section;
    while let Some((before, after)) = rest.split_once("Cs") {
        pattern.push_str(before);
        pattern.push_str("Cs");
        let digits = after.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let is_hash = digits > 0 && after[digits..].starts_with('_');
        rest = if is_hash { &after[digits..] } else { after };
        pattern.push_str(if is_hash { "*" } else { "" });
    }
    section.contains("_R").then(|| format!("{pattern}{rest}*"))
}
