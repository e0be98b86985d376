//! Tests of the list, and of the build script that orders the functions.

use super::*;

#[test]
fn a_line_has_the_crate_and_the_section_of_a_called_function_without_hashes() {
    let map = "\
3c0ee0 3c0ee0 2af5 16 .text\n\
3c0ee0 3c0ee0   10 16         /t/deps/a-1f.tokio-2f.tokio.3f-cgu.0.rcgu.o.rcgu.o:(.text._ZN5tokio4poll17h0123456789abcdefE)\n\
3c0ee0 3c0ee0    1  1                 tokio::poll\n\
3c0ef0 3c0ef0   10 16         /t/deps/a-1f.a.4f-cgu.0.rcgu.o:(.text.unlikely._ZN1a17hot17h0123456789abcdefE.llvm.17)\n\
3c0f00 3c0f00   10 16         /t/deps/a-1f.a.4f-cgu.0.rcgu.o:(.text._ZN1a6unused17h0123456789abcdefE)\n\
3c0f10 3c0f10   10 16         /t/deps/a-1f.std-5f.std.6f-cgu.0.rcgu.o.rcgu.o:(.text._RNvNtCsjr_3std4Cs_x)\n\
3c0f20 3c0f20   10 16         /t/libring.rlib(x.o):(.text.memcpy)\n";
    let profile = "fl=(1) a.rs\n\
                   fn=(1) _ZN5tokio4poll17h0123456789abcdefE\n\
                   cfn=(2) _ZN1a17hot17h0123456789abcdefE.llvm.17'2\n\
                   fn=(1)\n\
                   fn=(3) memcpy\n\
                   fn=(4) _RNvNtCsjr_3std4Cs_x\n";
    let lines: Vec<String> = list_lines(map, profile).into_iter().collect();
    assert_eq!(
        lines,
        [
            "a .text.unlikely._ZN1a17hot17h*",
            "std .text._RNvNtCs*_3std4Cs_x*",
            "tokio .text._ZN5tokio4poll17h*"
        ]
    );
}

#[test]
fn the_list_has_two_sorted_parts_of_plain_patterns_without_a_repetition() {
    let text = fs::read_to_string(repository_root().join(LIST_PATH)).unwrap();
    let (library, command_line) = text.split_once("\n\n").unwrap();
    let lines = |part: &str| part.lines().map(str::to_owned).collect::<BTreeSet<String>>();
    assert_eq!(text, format_list(&lines(library), &lines(command_line)));
    for line in library.lines().chain(command_line.lines()) {
        let (name, pattern) = line.split_once(' ').unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{line}");
        assert!(pattern.starts_with(".text.") && pattern.ends_with('*'), "{line}");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.$*".contains(&byte);
        assert!(pattern.bytes().all(is_plain), "{line}");
    }
}

#[cfg(target_os = "linux")]
mod linked {
    use super::*;

    /// The name of the section that the build script adds.
    const SECTION: &str = "\0.text.start_functions\0";

    /// A program with the build script of the command line.
    struct Package {
        directory: PathBuf,
    }

    impl Package {
        fn new(name: &str) -> Self {
            let directory =
                std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
            fs::create_dir_all(directory.join("src")).unwrap();
            let script = repository_root().join("crates/innkeeper-cli/build.rs");
            let manifest = format!(
                "[package]\nname = \"innkeeper-cli\"\nedition = \"2024\"\nbuild = {:?}\n\
                 [[bin]]\nname = \"innkeeper\"\npath = \"src/main.rs\"\n\
                 [profile.dist]\ninherits = \"release\"\n\
                 [workspace]\n",
                script.to_string_lossy()
            );
            fs::write(directory.join("Cargo.toml"), manifest).unwrap();
            let main =
                "fn main() { println!(\"{}\", std::panic::catch_unwind(|| panic!()).is_err()) }";
            fs::write(directory.join("src/main.rs"), main).unwrap();
            Self { directory }
        }

        /// Builds and runs the program; returns whether its functions are ordered.
        fn is_ordered(&self, profile: &str, flags: &str) -> bool {
            let target = self.directory.join("target");
            Program::cargo("build --quiet --offline")
                .args(&format!("--profile {profile} --target-dir"))
                .path_arg(&target)
                .current_dir(&self.directory)
                .env("RUSTFLAGS", flags)
                .output()
                .unwrap();
            let program = target.join(profile).join("innkeeper");
            assert_eq!(Program::new(&program).output().unwrap(), "true\n");
            let bytes = fs::read(program).unwrap();
            bytes.windows(SECTION.len()).any(|window| window == SECTION.as_bytes())
        }
    }

    impl Drop for Package {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }

    #[test]
    fn a_linker_without_scripts_links_the_program_without_an_order() {
        use std::os::unix::fs::PermissionsExt as _;

        let package = Package::new("no-order");
        let linker = package.directory.join("linker");
        let text = "#!/bin/sh\ncase \"$*\" in *\" -T/\"*) exit 1 ;; esac\nexec cc \"$@\"\n";
        fs::write(&linker, text).unwrap();
        fs::set_permissions(&linker, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!package.is_ordered("dist", &format!("-Clinker={}", linker.display())));
    }

    #[test]
    fn the_installed_profile_alone_orders_functions() {
        let package = Package::new("order");
        assert!(package.is_ordered("dist", ""));
        assert!(!package.is_ordered("release", ""));
    }
}
