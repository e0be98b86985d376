//! Builds the small supervisor program, which the library contains.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The cfg of a library that contains the program.
const CFG: &str = "innkeeper_embedded_supervisor";

/// The package and the program.
const NAME: &str = "innkeeper-supervisor";

/// The profile in the manifest of the workspace.
const PROFILE: &str = "supervisor";

/// A static program at a fixed address, without the files of libc that start a program, and without
/// tables for unwinding.
const FLAGS: [&str; 11] = [
    "--cfg=innkeeper_freestanding",
    "-Crelocation-model=static",
    "-Cforce-unwind-tables=no",
    "-Clink-arg=-nostartfiles",
    "-Clink-arg=-nostdlib",
    "-Clink-arg=-static",
    "-Clink-arg=-no-pie",
    "-Clink-arg=-Wl,--build-id=none",
    "-Clink-arg=-Wl,--no-eh-frame-hdr",
    "-Clink-arg=-Wl,-z,norelro",
    "-Clink-arg=-Wl,-z,noexecstack",
];

/// Variables of the outer build that would change the program.
const OUTER_VARIABLES: [&str; 5] = [
    "RUSTFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-check-cfg=cfg({CFG})");
    println!("cargo::rerun-if-changed=build.rs");
    if !is_supported() {
        return Ok(());
    }
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("..").join(NAME);
    for file in ["src", "Cargo.toml", "../../Cargo.toml", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", package.join(file).display());
    }
    let directory = PathBuf::from(variable("OUT_DIR")?);
    let program = build(&package, &directory.join("target"))?;
    fs::copy(program, directory.join(NAME))?;
    println!("cargo::rustc-cfg={CFG}");
    Ok(())
}

/// Returns whether the program exists for the target.
fn is_supported() -> bool {
    let is = |key: &str, values: &[&str]| {
        variable(&format!("CARGO_CFG_TARGET_{key}")).is_ok_and(|value| values.contains(&&*value))
    };
    is("OS", &["linux"])
        && is("ENV", &["gnu", "musl"])
        && is("ARCH", &["x86_64", "aarch64"])
        && is("POINTER_WIDTH", &["64"])
        && is("ENDIAN", &["little"])
}

/// Builds the program and returns its path.
#[expect(clippy::disallowed_methods, reason = "a build script starts Cargo")]
fn build(package: &Path, target_directory: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = variable("TARGET")?;
    let mut flags = FLAGS.to_vec();
    if target.ends_with("-musl") {
        // The compiler adds its own copy of libc otherwise.
        flags.push("-Clink-self-contained=no");
    }
    let mut cargo = Command::new(variable("CARGO")?);
    for name in OUTER_VARIABLES {
        cargo.env_remove(name);
    }
    let status = cargo
        .current_dir(package)
        .args(["build", "--quiet", "--locked", "--package", NAME, "--bin", NAME])
        .args(["--profile", PROFILE, "--target", &target, "--target-dir"])
        .arg(target_directory)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .status()?;
    if !status.success() {
        return Err(format!("the supervisor program was not built: {status}").into());
    }
    Ok(target_directory.join(target).join(PROFILE).join(NAME))
}

fn variable(name: &str) -> Result<String, Box<dyn Error>> {
    let value = env::var_os(name).and_then(|value| value.into_string().ok());
    value.ok_or_else(|| format!("the build has no variable `{name}`").into())
}
