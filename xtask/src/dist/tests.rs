//! Tests of the list of called functions, and of the linker script.

use super::*;

#[test]
fn the_sections_of_called_functions_are_listed_by_crate_without_hashes() {
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
    let sections = called_sections(map, profile);
    let lines: Vec<String> = sections
        .iter()
        .flat_map(|(name, patterns)| {
            patterns.iter().map(move |pattern| format!("{name} {pattern}"))
        })
        .collect();
    assert_eq!(
        lines,
        [
            "a .text.unlikely._ZN1a17hot17h*",
            "std .text._RNvNtCs*_3std4Cs_x*",
            "tokio .text._ZN5tokio4poll17h*"
        ]
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_linked_with_the_script_has_called_functions_in_one_section_and_runs() {
    let directory = std::env::temp_dir().join(format!("xtask-{}-order", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let [source, script, program] =
        ["probe.rs", "probe.ld", "probe"].map(|name| directory.join(name));
    let main = "fn main() { println!(\"{}\", std::panic::catch_unwind(|| panic!()).is_err()) }";
    fs::write(&source, main).unwrap();
    let patterns = BTreeSet::from([".text.*5probe4main*".to_owned()]);
    let sections = CalledSections::from([("probe".to_owned(), patterns)]);
    fs::write(&script, linker_script(&sections)).unwrap();
    let compiler = Program::new("rustc").path_arg(&source).arg("-o").path_arg(&program);
    compiler.arg(format!("-Clink-arg=-T{}", script.display())).output().unwrap();
    assert_eq!(Program::new(&program).output().unwrap(), "true\n");
    let bytes = fs::read(&program).unwrap();
    let names = [format!("\0{SECTION}\0"), "\0.text\0".to_owned()];
    for name in names {
        assert!(bytes.windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
    }
    fs::remove_dir_all(directory).unwrap();
}
