//! Orders the functions of the program that is installed, so that a start touches few pages.
//!
//! The build of the benchmark uses this file too.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The functions that a start calls: a crate and a pattern of sections per line. The functions of a start
/// of the library come first, and after an empty line those that only the command line calls.
const LIST: &str = include_str!("function-order.txt");

/// The profile in the manifest of the workspace.
const PROFILE: &str = "dist";

/// The section of these functions in the program.
const SECTION: &str = ".text.start_functions";

/// The programs with an order, by package.
const PROGRAMS: [(&str, &str); 2] =
    [("innkeeper-cli", "innkeeper"), ("innkeeper-bench", "peer-innkeeper")];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=function-order.txt");
    let directory = PathBuf::from(variable("OUT_DIR")?);
    if variable("CARGO_CFG_TARGET_OS")? != "linux" || !is_installed_profile(&directory) {
        return Ok(());
    }
    if !is_supported(&directory)? {
        println!(
            "cargo::warning=the linker does not order functions: the program uses more memory"
        );
        return Ok(());
    }
    let package = variable("CARGO_PKG_NAME")?;
    let (_, program) = PROGRAMS
        .iter()
        .find(|(name, _)| *name == package)
        .ok_or_else(|| format!("the package `{package}` has no program with an order"))?;
    let script = directory.join("function-order.ld");
    fs::write(&script, linker_script(LIST))?;
    println!("cargo::rustc-link-arg-bin={program}={}", script_option(&script));
    Ok(())
}

/// Returns whether the directory belongs to a build with the profile: `dist/build/…/out`. Cargo tells
/// build scripts no name of a profile.
fn is_installed_profile(output_directory: &Path) -> bool {
    let build = output_directory.ancestors().find(|path| path.ends_with("build"));
    build.and_then(Path::parent).is_some_and(|path| path.ends_with(PROFILE))
}

/// Returns a script that adds one section to those of the linker. A line of the list without a function
/// matches nothing.
fn linker_script(list: &str) -> String {
    let inputs: String = list.split("\n\n").map(input_patterns).collect();
    format!("SECTIONS {{\n  {SECTION} : {{\n{inputs}  }}\n}} INSERT BEFORE .text;\n")
}

/// Returns the patterns of some lines by their object files: the linker looks at one pattern of files
/// for each crate.
fn input_patterns(lines: &str) -> String {
    let mut crates: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, pattern) in lines.lines().filter_map(|line| line.split_once(' ')) {
        crates.entry(name).or_default().push(pattern);
    }
    crates
        .iter()
        .map(|(name, patterns)| format!("    *.{name}.*-cgu.*({})\n", patterns.join("\n      ")))
        .collect()
}

fn script_option(script: &Path) -> String {
    format!("-T{}", script.display())
}

/// Links a program with one function in the section, and returns whether the program has that section
/// and the one of all other functions. Not every linker knows `INSERT`.
#[expect(clippy::disallowed_methods, reason = "a build script starts the compiler")]
fn is_supported(directory: &Path) -> Result<bool, Box<dyn Error>> {
    let file = |name: &str| directory.join(name);
    let (source, script, program) = (file("probe.rs"), file("probe.ld"), file("probe"));
    fs::write(&source, "fn main() {}\n")?;
    fs::write(&script, linker_script("probe .text.*5probe4main*"))?;
    let mut compiler = Command::new(variable("RUSTC")?);
    compiler.arg(&source).arg("-o").arg(&program).args(["--edition=2024", "--target"]);
    compiler.arg(variable("TARGET")?);
    if let Ok(linker) = variable("RUSTC_LINKER") {
        compiler.arg(format!("-Clinker={linker}"));
    }
    let flags = variable("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    compiler.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    compiler.arg(format!("-Clink-arg={}", script_option(&script)));
    if !compiler.stderr(Stdio::null()).status()?.success() {
        return Ok(false);
    }
    let bytes = fs::read(&program)?;
    let has = |name: &str| {
        let name = [b"\0", name.as_bytes(), b"\0"].concat();
        bytes.windows(name.len()).any(|window| window == name)
    };
    Ok(has(SECTION) && has(".text"))
}

fn variable(name: &str) -> Result<String, Box<dyn Error>> {
    let value = env::var_os(name).and_then(|value| value.into_string().ok());
    value.ok_or_else(|| format!("the build has no variable `{name}`").into())
}
