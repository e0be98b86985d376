//! `dist`: builds programs whose start touches few pages, because the functions that it calls lie side by
//! side (decision 27).
//!
//! A first build writes a map of all sections, valgrind finds the functions that a start calls, and a second
//! build places their sections in one.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::program::{Program, relative_path, repository_root};
use crate::{TaskResult, output};

/// The target directory of the benchmark, which has most of the dependencies.
const TARGET: &str = "target/bench";
/// Maps, profiles, linker scripts and the home directory of the profiled programs.
const DIRECTORY: &str = "target/function-order";
/// The section of the called functions.
const SECTION: &str = ".text.start_functions";
/// The number of servers of each start.
const SERVER_COUNT: usize = 20;
/// Time for a start in the profiler, which slows a program down by a factor of about fifty.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// The length of the hash in a mangled name.
const HASH_DIGITS: usize = 16;

/// Builds the command line as it is released.
///
/// # Errors
///
/// The profiler is missing, or the program does not build or run.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("`dist` takes no `{argument}`"));
    }
    let program = OrderedProgram::CommandLine;
    program.build()?;
    let directory = repository_root().join("target/dist");
    let file = directory.join(program.name());
    fs::create_dir_all(&directory).map_err(|error| problem(&directory, &error))?;
    let size = fs::copy(program.path(), &file).map_err(|error| problem(&file, &error))?;
    output::print_line(format_args!("{}: {size} bytes", relative_path(&file)));
    Ok(())
}

/// A program that is built with its functions in order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OrderedProgram {
    /// The client of the benchmark: an application with the library.
    BenchClient,
    CommandLine,
}

impl OrderedProgram {
    fn name(self) -> &'static str {
        match self {
            Self::BenchClient => "peer-innkeeper",
            Self::CommandLine => "innkeeper",
        }
    }

    fn path(self) -> PathBuf {
        programs().join(self.name())
    }

    /// Builds the program with its functions in the order of the last commit of the code.
    ///
    /// # Errors
    ///
    /// The profiler is missing, or the program does not build or run.
    pub(crate) fn build(self) -> TaskResult {
        let log =
            Program::new("git").args("log -1 --format=%h -- crates bench Cargo.lock").output()?;
        let directory = repository_root().join(DIRECTORY);
        fs::create_dir_all(&directory).map_err(|error| problem(&directory, &error))?;
        let script = directory.join(format!("{}-{}.ld", self.name(), log.trim()));
        if !script.exists() {
            let text = linker_script(&self.called_sections()?);
            fs::write(&script, text).map_err(|error| problem(&script, &error))?;
        }
        self.compile(&[format!("-Clink-arg=-T{}", script.display())])
    }

    fn compile(self, compiler_arguments: &[String]) -> TaskResult {
        let package = match self {
            Self::BenchClient => {
                "--manifest-path bench/Cargo.toml --package innkeeper-bench --no-default-features \
                 --features innkeeper"
            }
            Self::CommandLine => "--package innkeeper-cli",
        };
        let cargo =
            Program::cargo("rustc --profile dist").args(package).arg("--bin").arg(self.name());
        let cargo = cargo.arg("--target-dir").path_arg(&repository_root().join(TARGET)).arg("--");
        compiler_arguments.iter().fold(cargo, Program::arg).run()
    }

    /// Builds the program with symbols and a map of its sections, starts it in the profiler, and returns
    /// the sections of the called functions.
    fn called_sections(self) -> TaskResult<CalledSections> {
        let version = Program::new("valgrind").arg("--version").output();
        version
            .map_err(|_| "the order of functions needs valgrind (`apt-get install valgrind`)")?;
        let map = repository_root().join(DIRECTORY).join("sections.map");
        let map_argument = format!("-Clink-arg=-Wl,-Map={}", map.display());
        self.compile(&["-Cstrip=debuginfo".to_owned(), map_argument])?;
        Program::cargo("build --profile dist --manifest-path bench/Cargo.toml --bin echo")
            .args("--package innkeeper-bench --no-default-features --target-dir")
            .path_arg(&repository_root().join(TARGET))
            .run()?;
        let profiles = match self {
            Self::BenchClient => self.profile_client()?,
            Self::CommandLine => self.profile_command_line()?,
        };
        let sections = called_sections(&read(&map)?, &profiles);
        if sections.is_empty() {
            let name = relative_path(&map);
            return Err(format!("no called function is in `{name}`: it is not a map of LLD"));
        }
        Ok(sections)
    }

    /// Starts the client with its servers.
    fn profile_client(self) -> TaskResult<String> {
        let Profiled { program, profile } = self.profiled("client");
        let program = program.args("--case start --runtime current --log on --servers");
        let program = program.arg(SERVER_COUNT.to_string()).arg("--echo").path_arg(&echo());
        program.output()?;
        read(&profile)
    }

    /// Starts the gateway until its servers are ready, ends it, and calls a tool.
    fn profile_command_line(self) -> TaskResult<String> {
        let directory = repository_root().join(DIRECTORY);
        let configuration = write_configuration()?;
        let start = |name| {
            let Profiled { program, profile } = self.profiled(name);
            let program = program.arg("--config").path_arg(&configuration);
            Profiled { program: program.env("HOME", &directory.to_string_lossy()), profile }
        };
        let gateway = start("gateway");
        let server = gateway.program.args("serve --listen 127.0.0.1:0");
        let mut server = server.start(&directory.join("gateway.log"))?;
        server.wait_for("http://", READY_TIMEOUT)?;
        drop(server);
        let call = start("call");
        call.program.args(r#"call echo0.echo {"message":"text"}"#).output()?;
        Ok(read(&gateway.profile)? + &read(&call.profile)?)
    }

    fn profiled(self, name: &str) -> Profiled {
        let profile = repository_root().join(DIRECTORY).join(format!("{name}.callgrind"));
        let program = Program::new("valgrind").args("--quiet --tool=callgrind --demangle=no");
        let program = program.arg(format!("--callgrind-out-file={}", profile.display()));
        Profiled { program: program.path_arg(&self.path()), profile }
    }
}

/// A program in the profiler.
struct Profiled {
    program: Program,
    /// The file with the called functions, once the program has ended.
    profile: PathBuf,
}

fn programs() -> PathBuf {
    repository_root().join(TARGET).join("dist")
}

fn echo() -> PathBuf {
    programs().join("echo")
}

/// Writes a configuration with echo servers.
fn write_configuration() -> TaskResult<PathBuf> {
    let server = json!({ "command": echo().to_string_lossy() });
    let servers: Map<String, Value> =
        (0..SERVER_COUNT).map(|number| (format!("echo{number}"), server.clone())).collect();
    let file = repository_root().join(DIRECTORY).join("mcp.json");
    let text = json!({ "servers": servers }).to_string();
    fs::write(&file, text).map_err(|error| problem(&file, &error))?;
    Ok(file)
}

fn read(file: &Path) -> TaskResult<String> {
    fs::read_to_string(file).map_err(|error| problem(file, &error))
}

fn problem(file: &Path, error: &std::io::Error) -> String {
    format!("`{}`: {error}", relative_path(file))
}

/// Patterns for the sections of called functions, by the crate of the object file: the linker looks at one
/// pattern of files for each crate.
type CalledSections = BTreeMap<String, BTreeSet<String>>;

/// Returns a script that adds one section to those of the linker. A pattern without a function matches
/// nothing.
fn linker_script(sections: &CalledSections) -> String {
    let inputs: String = sections
        .iter()
        .map(|(name, patterns)| {
            let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
            format!("    *.{name}.*-cgu.*({})\n", patterns.join("\n      "))
        })
        .collect();
    format!("SECTIONS {{\n  {SECTION} : {{\n{inputs}  }}\n}} INSERT BEFORE .text;\n")
}

/// Returns the sections of a map whose functions are in the profiles.
fn called_sections(map: &str, profiles: &str) -> CalledSections {
    let functions: HashSet<&str> = called_functions(profiles).collect();
    let mut sections = CalledSections::new();
    for line in map.lines() {
        if let Some((file, section)) = mapped_section(line)
            && functions.contains(section.function)
            && let Some(name) = crate_name(file)
            && let Some(pattern) = section_pattern(section.name)
        {
            sections.entry(name.to_owned()).or_default().insert(pattern);
        }
    }
    sections
}

/// A section with one function.
struct FunctionSection<'a> {
    name: &'a str,
    function: &'a str,
}

/// Returns the file and the section of a line of LLD: `ADDRESS ADDRESS SIZE ALIGNMENT FILE:(SECTION)`.
fn mapped_section(line: &str) -> Option<(&str, FunctionSection<'_>)> {
    let (file, name) = line.strip_suffix(')')?.rsplit_once(":(")?;
    let function = name.strip_prefix(".text.")?;
    let function = function.strip_prefix("unlikely.").unwrap_or(function);
    Some((file, FunctionSection { name, function }))
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

/// Returns the crate of an object file, which the compiler names `….CRATE.HASH-cgu.NUMBER.rcgu.o`.
fn crate_name(file: &str) -> Option<&str> {
    let (before, _) = file.rsplit_once("-cgu.")?;
    let (before, _) = before.rsplit_once('.')?;
    let (_, name) = before.rsplit_once('.')?;
    Some(name)
}

/// Returns a pattern for the section of a function without its hashes, which the arguments of the compiler
/// change, in the mangling of this project's crates or in that of the standard library.
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
