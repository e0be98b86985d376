//! Tests of the layers with a small crate of four modules.

use super::super::violations;
use super::*;

const DRAWING: &str = "# Map\n\n```layers innkeeper-toolcall\nhigh\nmiddle  side\nlow\n```\n";
const ROOT: &str = "mod high;\nmod middle;\nmod side;\nmod low;\n\
    pub use high::{High, inner::Deep as Renamed};\npub use low::Low;\n";
const MODULES: [&str; 4] = ["high", "middle", "side", "low"];

fn source_path(module: &str) -> String {
    format!("crates/innkeeper-toolcall/src/{module}.rs")
}

/// The violations in the crate after these files replace files or are added.
fn violations_with(changed: &[(&str, &str)]) -> Vec<String> {
    let mut files: BTreeMap<String, &str> =
        MODULES.iter().map(|module| (source_path(module), "//! A module.\n")).collect();
    files.insert(MAP_PATH.to_owned(), DRAWING);
    files.insert(source_path("lib"), ROOT);
    for (path, text) in changed {
        let is_module = !path.contains('.');
        files.insert(if is_module { source_path(path) } else { (*path).to_owned() }, text);
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    violations(check_module_layers, &files)
}

fn violations_of_middle(text: &str) -> Vec<String> {
    violations_with(&[("middle", text)])
}

#[test]
fn an_upward_use_names_the_line_the_module_and_the_layers() {
    assert_eq!(
        violations_of_middle("//! A module.\n\nuse crate::high::High;\n"),
        ["crates/innkeeper-toolcall/src/middle.rs:3: uses `high`, which is above `middle` in the \
          layers of ARCHITECTURE.md"]
    );
}

#[test]
fn an_upward_use_is_caught_in_each_form() {
    let forms = [
        "use crate::high;",
        "use crate::{low::Low, high::High};",
        "use crate::{low::{self}, high::{inner::{Deep as _}}};",
        "use {crate::high as other};",
        "use crate::high::*;",
        "use super::high::High;",
        "use self::super::high::High;",
        "pub use crate::high::High;",
        "pub(crate) use super::{high as h};",
        "fn f() { use crate::high::High; }",
        "fn f() { crate::high::run(); }",
        "fn f(x: super::high::High) {}",
        "fn f() -> Option<Vec<crate::high::High>> { None }",
        "impl crate::high::Trait for X {}",
        "impl<T: super::high::Trait> X<T> {}",
        "fn f(x: X) { match x { crate::high::High::A => {} } }",
        "fn f() { <X as crate::high::Trait>::run() }",
        "fn f() { crate::high::log!(); }",
        "fn f() { println!(\"{}\", crate::high::count()); }",
        "fn f() { vec![[(super::high::count())]]; }",
        "make! { use crate::{low::Low, high::High}; }",
        "make! { use crate::high::*; }",
        "macro_rules! m { () => { $crate::high::run() }; }",
        "mod inner { use super::super::high::High; }",
        "mod inner { fn f() { crate::high::run() } }",
        "mod inner { mod deep { use super::super::super::high::High; } }",
        "#[derive(crate::high::Derive)] struct X;",
        "#[serde(default = \"crate::high::count\")] struct X;",
        "#[path_of = \"crate::high::count\"] struct X;",
        "#[cfg(unix)] use crate::high::High;",
        "#[cfg(not(test))] use crate::high::High;",
        "#[cfg(any(test, unix))] use crate::high::High;",
        "use crate::r#high::High;",
    ];
    for form in forms {
        let found = violations_of_middle(form);
        assert_eq!(found.len(), 1, "{form}: {found:?}");
        assert!(found[0].contains("uses `high`, which is above `middle`"), "{form}: {found:?}");
    }
}

#[test]
fn a_name_that_the_root_re_exports_is_a_use_of_the_module_behind_the_name() {
    for form in ["use crate::High;", "use super::{Low, High};", "fn f(x: crate::Renamed) {}"] {
        let found = violations_of_middle(form);
        assert!(found.len() == 1 && found[0].contains("uses `high`"), "{form}: {found:?}");
    }
    assert!(violations_of_middle("use crate::{Low, Unknown};").is_empty());
    let root = format!("{ROOT}fn f() {{ use high::Local; }}\n");
    let found = violations_with(&[("lib", &root), ("middle", "use crate::Local;")]);
    assert!(found.is_empty(), "a name in a body is no name of the root: {found:?}");
    for export in ["pub use high::*;", "pub use crate::high::Found;", "pub use self::high::Found;"]
    {
        let root = format!("{ROOT}{export}\n");
        let found = violations_with(&[("lib", &root), ("middle", "use crate::Found;")]);
        assert!(found.len() == 1 && found[0].contains("uses `high`"), "{export}: {found:?}");
    }
}

#[test]
fn a_function_with_the_name_of_a_module_is_a_use_of_both() {
    let root = format!("{ROOT}pub use high::low;\n");
    let found = violations_with(&[("lib", &root), ("middle", "use crate::low;")]);
    assert!(found.len() == 1 && found[0].contains("uses `high`"), "{found:?}");
    let through = violations_with(&[("lib", &root), ("middle", "use crate::low::Low;")]);
    assert!(through.is_empty(), "{through:?}");
}

#[test]
fn a_use_in_a_file_of_a_submodule_belongs_to_the_module() {
    let deep = "crates/innkeeper-toolcall/src/middle/deep.rs";
    let found =
        violations_with(&[("middle", "mod deep;"), (deep, "use super::super::high::High;")]);
    assert!(found.len() == 1 && found[0].starts_with(deep), "{found:?}");
    let own = violations_with(&[("middle", "mod deep; use deep::X;"), (deep, "use super::high;")]);
    assert!(own.is_empty(), "{own:?}");
}

#[test]
fn a_sideways_use_is_caught() {
    let found = violations_of_middle("use crate::side::Side;");
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("uses `side`, which is beside `middle`"), "{found:?}");
}

#[test]
fn a_downward_use_passes() {
    let text =
        "use crate::low::Low;\nuse std::high::X;\nuse ::high::Y;\nfn f() { m!(crate::low::x) }";
    assert_eq!(violations_of_middle(text), [""; 0]);
    assert_eq!(violations_with(&[("high", "use crate::{low, middle::X, side};")]), [""; 0]);
}

#[test]
fn comments_and_visibilities_and_strings_are_not_uses() {
    let text = "//! [`crate::high`]\n/// [x](crate::high::High)\n// crate::high::x\n\
        pub(in crate::high) fn f() { g(\"crate::high::x\"); }\n\
        make! { pub(in crate::high) fn f() {} /* crate::high::x */ }\n\
        #[doc = \"crate::high::x\"] struct X { pub(in super::high) x: u8 }\n";
    assert_eq!(violations_of_middle(text), [""; 0]);
}

#[test]
fn test_code_is_exempt() {
    let forms = [
        "#[cfg(test)]\nuse crate::high::High;",
        "#[cfg(test)]\nmod tests { use crate::high::High; }",
        "#[cfg(test)]\nmod tests;",
        "mod tests;",
        "#[cfg(test)]\nmod probe;",
        "#[cfg(fuzzing)]\nmod probe;",
        "#[cfg(any(test, fuzzing))]\npub mod probe;",
        "#![cfg(test)]\nuse crate::high::High;",
        "#[cfg(all(test, unix))]\nfn f() { crate::high::run() }",
        "enum E { #[cfg(test)] A(crate::high::High), B }",
        "struct S { #[cfg(test)] a: crate::high::High }",
        "fn f(x: E) { match x { #[cfg(test)] E::A => crate::high::run(), E::B => {} } }",
        "fn f() { #[cfg(test)] if crate::high::is_ready() { return; } }",
        "fn f() { #[cfg(test)] let x = crate::high::run(); }",
        "fn f() { #[cfg(test)] log!(crate::high::run()); }",
        "fn f() -> S { S { #[cfg(test)] a: crate::high::run() } }",
        "impl X { #[cfg(test)] fn f() { crate::high::run() } }",
        "#[cfg_attr(test, derive(crate::high::Derive))] struct X;",
    ];
    let (tests, probe) = (source_path("middle/tests"), source_path("middle/probe"));
    for form in forms {
        let text = "use crate::high::High;";
        let found = violations_with(&[("middle", form), (&tests, text), (&probe, text)]);
        assert_eq!(found, [""; 0], "{form}");
    }
}

#[test]
fn product_code_beside_test_code_is_checked() {
    let forms = [
        "struct S { #[cfg(test)] a: u8, b: crate::high::High }",
        "fn f() { #[cfg(test)] let x = 1; crate::high::run(); }",
        "#[cfg(test)] mod tests {}\nuse crate::high::High;",
        "fn f(x: E) { match x { #[cfg(test)] E::A => {} E::B => crate::high::run() } }",
    ];
    for form in forms {
        let found = violations_of_middle(form);
        assert_eq!(found.len(), 1, "{form}: {found:?}");
    }
}

#[test]
fn the_root_and_programs_are_exempt() {
    let program = "crates/innkeeper-toolcall/src/bin/tool.rs";
    assert_eq!(violations_with(&[(program, "use crate::high::High;")]), [""; 0]);
}

#[test]
fn an_import_of_the_whole_crate_is_caught() {
    for form in ["use crate::*;", "use super::*;", "use crate as root;", "use super::{self as x};"]
    {
        let found = violations_of_middle(form);
        assert!(found.len() == 1 && found[0].contains("imports all of"), "{form}: {found:?}");
    }
}

#[test]
fn a_module_outside_the_drawing_is_caught_and_a_test_module_is_not() {
    let root = format!("{ROOT}mod extra;\n#[cfg(test)]\nmod simulation;\n");
    assert_eq!(
        violations_with(&[("lib", &root), ("extra", ""), ("simulation", "")]),
        ["ARCHITECTURE.md:3: the layers of `innkeeper-toolcall` do not contain the module `extra`"]
    );
}

#[test]
fn a_drawn_name_that_is_no_module_is_caught() {
    let page = DRAWING.replace("low\n", "low  ghost\n");
    assert_eq!(
        violations_with(&[(MAP_PATH, &page)]),
        [
            "ARCHITECTURE.md:6: the layers contain `ghost`, which is no module of `innkeeper-toolcall`"
        ]
    );
}

#[test]
fn a_wrong_drawing_is_caught() {
    let pages = [
        (DRAWING.replace("low\n", "low  high\n"), "contain `high` twice"),
        (format!("{DRAWING}\n{DRAWING}"), "a second time"),
        (format!("{DRAWING}\n```layers\nx\n```\n"), "write the crate"),
        (format!("{DRAWING}\n```layers innkeeper-none\nx\n```\n"), "no crate"),
        (format!("{DRAWING}\n```layers innkeeper-toolcall/none\nx\n```\n"), "which is no module"),
        ("# Map\n".to_owned(), "does not draw the layers of `innkeeper-toolcall`"),
    ];
    for (page, expected) in pages {
        let found = violations_with(&[(MAP_PATH, &page)]);
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:?}");
    }
}

#[test]
fn an_optional_crate_without_a_drawing_is_not_checked() {
    let files = [
        ("crates/innkeeper-other/src/lib.rs", "mod a;\nmod b;\n"),
        ("crates/innkeeper-other/src/a.rs", "use crate::b::B;\n"),
        ("crates/innkeeper-other/src/b.rs", "use crate::a::A;\n"),
    ];
    assert_eq!(violations_with(&files), [""; 0]);
}

#[test]
fn a_host_without_a_drawing_is_caught() {
    let found = violations_with(&[("crates/innkeeper-host/src/lib.rs", "")]);
    assert!(found.len() == 1 && found[0].contains("`innkeeper-host`"), "{found:?}");
}

#[test]
fn a_file_that_is_missing_or_does_not_parse_is_caught() {
    let missing = violations_of_middle("mod deep;");
    assert!(missing.len() == 1 && missing[0].contains("without the file"), "{missing:?}");
    let broken = violations_of_middle("fn f( {}");
    assert!(broken.len() == 1 && broken[0].contains("is not Rust"), "{broken:?}");
}

#[test]
fn submodules_are_checked_where_a_drawing_of_the_module_exists() {
    let page = format!("{DRAWING}\n```layers innkeeper-toolcall/low\ntop\nbottom\n```\n");
    let (top, bottom) = (source_path("low/top"), source_path("low/bottom"));
    let low = "mod top;\nmod bottom;\nuse top::Top;\nstruct Low;\n";
    let texts = [
        ("use super::top::Top;", 2),
        ("use crate::low::top::Top;", 2),
        ("use super::Top;", 2),
        ("use super::*;", 1),
        ("use super::Low;", 0),
    ];
    for (text, count) in texts {
        let files = [("low", low), (top.as_str(), "use super::bottom::B;"), (&bottom, text)];
        let found = violations_with(&[files.as_slice(), &[(MAP_PATH, &page)]].concat());
        assert_eq!(found.len(), count, "{text}: {found:?}");
        let undrawn = violations_with(&files);
        assert_eq!(undrawn, [""; 0], "{text}");
    }
}

#[test]
fn a_cycle_names_its_modules() {
    let page = format!("{DRAWING}\n```layers innkeeper-toolcall/low\ntop\nbottom  other\n```\n");
    let files = [
        (MAP_PATH, page.as_str()),
        (
            "low",
            "mod top { use super::{bottom::B, other::O}; }\nmod other {}\n\
                 mod bottom { use super::top::T; }\n",
        ),
    ];
    let found = violations_with(&files);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        found[1],
        "ARCHITECTURE.md:9: modules of `innkeeper-toolcall/low` use each other in a cycle: \
         `bottom`, `top`"
    );
}

/// Proves: TR1.6
#[test]
fn the_seven_parts_of_the_host_have_tests_of_their_own_and_dependencies_in_one_direction() {
    let repository = Repository::load().unwrap();
    for (part, module) in [
        ("configuration loader", "innkeeper-config/src/"),
        ("process manager", "innkeeper-process/src/"),
        ("protocol handler", "innkeeper-protocol/src/"),
        ("registry", "innkeeper-host/src/registry"),
        ("router", "innkeeper-host/src/call"),
        ("cache", "innkeeper-host/src/cache"),
        ("metrics collector", "innkeeper-host/src/metrics"),
    ] {
        let in_module = |path: &str| {
            let rest = path.strip_prefix("crates/").and_then(|path| path.strip_prefix(module));
            rest.is_some_and(|rest| module.ends_with('/') || rest.starts_with(['/', '.']))
        };
        let mut texts = repository.texts().filter(|(path, _)| in_module(path));
        let has_test = |text: &str| text.contains("#[test]") || text.contains("#[tokio::test");
        assert!(texts.any(|(_, text)| has_test(text)), "the {part} has no tests");
    }
    assert_eq!(check_module_layers(&repository), []);
}
