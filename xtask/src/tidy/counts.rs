//! Counts of what makes code hard to read, by crate. The ceilings only go down.

use std::collections::BTreeMap;
use std::fmt;

use syn::visit::{self, Visit};
use syn::{Expr, FnArg, ItemMod, ItemStruct, Local, Pat, Signature, Stmt, Type};

use super::Violation;
use super::layers::{cyclic_uses, is_excluded};
use crate::repository::{Repository, is_test_file};

/// The ceilings: a line has a crate, a kind and a number.
const CEILINGS_PATH: &str = "xtask/ceilings.txt";

/// Most fields of a struct.
const MAX_FIELDS: usize = 8;
/// The settings and recordings as they are in a file, whose structs have a field for each key.
const FILE_FORMS: [&str; 3] = [
    "crates/innkeeper-config/src/form/",
    "crates/innkeeper-config/src/settings/",
    "crates/innkeeper-golden/src/file.rs",
];
/// Most lines of code in a file beside a directory of its name.
const MAX_FACE_LINES: usize = 150;

/// What is counted.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum CountKind {
    /// Modules that use each other in a cycle, as pairs of user and used.
    CyclicUse,
    /// `drop` of the value of a call.
    DroppedCall,
    /// A file beside a directory of its name that is more than its entrance.
    LargeFace,
    /// A closure with a name.
    NamedClosure,
    /// A `let` of several values at once.
    PackedLet,
    /// A function that takes a tuple.
    TupleParameter,
    /// A struct with many fields.
    WideStruct,
}

impl fmt::Display for CountKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CyclicUse => "cyclic-use",
            Self::DroppedCall => "dropped-call",
            Self::LargeFace => "large-face",
            Self::NamedClosure => "named-closure",
            Self::PackedLet => "packed-let",
            Self::TupleParameter => "tuple-parameter",
            Self::WideStruct => "wide-struct",
        })
    }
}

/// The crate and the kind of a count.
type CountKey = (String, String);

/// What is counted, by crate and kind: the file, or the modules of a cycle.
#[derive(Default)]
struct Counts(BTreeMap<CountKey, Vec<String>>);

impl Counts {
    fn count(repository: &Repository) -> Self {
        let mut counts = Self::default();
        for (path, source) in repository.sources().filter(|(path, _)| !is_test_file(path)) {
            let Some((name, inside)) = product_file(path) else { continue };
            let mut found = FileCounts::default();
            // `cargo check` reports invalid Rust.
            if let Ok(file) = syn::parse_file(&source.text) {
                found.visit_file(&file);
            }
            let directory = path.trim_end_matches(".rs");
            let is_face = repository.sources().any(|(other, _)| {
                other.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
            });
            if is_face && source.code_lines() > MAX_FACE_LINES {
                found.0.push(CountKind::LargeFace);
            }
            if FILE_FORMS.iter().any(|form| path.starts_with(form)) {
                found.0.retain(|kind| *kind != CountKind::WideStruct);
            }
            for kind in found.0 {
                counts.add(name, kind, inside.to_owned());
            }
            if ["lib.rs", "main.rs"].contains(&inside) {
                for pair in cyclic_uses(repository, name) {
                    counts.add(name, CountKind::CyclicUse, pair);
                }
            }
        }
        counts
    }

    fn add(&mut self, name: &str, kind: CountKind, place: String) {
        self.0.entry((name.to_owned(), kind.to_string())).or_default().push(place);
    }
}

fn parse_ceilings(text: &str) -> Option<BTreeMap<CountKey, usize>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let ceilings = lines.map(|line| {
        let mut words = line.split_whitespace();
        let key = (words.next()?.to_owned(), words.next()?.to_owned());
        Some((key, words.next()?.parse().ok()?))
    });
    ceilings.collect()
}

/// Checks that no count is above its ceiling, and no ceiling above its count.
pub(super) fn check_counts(repository: &Repository) -> Vec<Violation> {
    let text = repository.text(CEILINGS_PATH).unwrap_or_default();
    let Some(mut ceilings) = parse_ceilings(text) else {
        return vec![Violation::new(CEILINGS_PATH, 0, "a line is not `CRATE KIND NUMBER`")];
    };
    let mut violations = Vec::new();
    for ((name, kind), places) in Counts::count(repository).0 {
        let count = places.len();
        let ceiling = ceilings.remove(&(name.clone(), kind.clone())).unwrap_or(0);
        let message = match count.cmp(&ceiling) {
            std::cmp::Ordering::Equal => continue,
            std::cmp::Ordering::Greater => {
                let places = places.join(", ");
                format!("`{name}` has {count} of `{kind}`, and {ceiling} is the most: {places}")
            }
            std::cmp::Ordering::Less => format!("lower the ceiling: `{name} {kind} {count}`"),
        };
        violations.push(Violation::new(CEILINGS_PATH, 0, message));
    }
    violations.extend(ceilings.keys().map(|(name, kind)| {
        Violation::new(CEILINGS_PATH, 0, format!("remove `{name} {kind}`: there is none left"))
    }));
    violations
}

/// Returns the crate of a file of the product, and the path in its sources.
fn product_file(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("crates/")?.split_once("/src/")
}

/// What a file has.
#[derive(Default)]
struct FileCounts(Vec<CountKind>);

impl<'ast> Visit<'ast> for FileCounts {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_excluded(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        if item.fields.len() > MAX_FIELDS && !is_excluded(&item.attrs) {
            self.0.push(CountKind::WideStruct);
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        match (&local.pat, local.init.as_ref().map(|init| &*init.expr)) {
            (Pat::Tuple(_), Some(Expr::Tuple(_))) => self.0.push(CountKind::PackedLet),
            (Pat::Ident(_), Some(Expr::Closure(_))) => self.0.push(CountKind::NamedClosure),
            _ => {}
        }
        visit::visit_local(self, local);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(Expr::Call(call), _) = statement
            && let Expr::Path(function) = &*call.func
            && function.path.is_ident("drop")
            && call.args.iter().any(is_call)
        {
            self.0.push(CountKind::DroppedCall);
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        let takes_tuple = signature.inputs.iter().any(|input| match input {
            FnArg::Typed(input) => is_tuple(&input.ty),
            FnArg::Receiver(_) => false,
        });
        if takes_tuple {
            self.0.push(CountKind::TupleParameter);
        }
        visit::visit_signature(self, signature);
    }
}

fn is_call(expression: &Expr) -> bool {
    match expression {
        Expr::Call(_) | Expr::MethodCall(_) => true,
        Expr::Await(awaited) => is_call(&awaited.base),
        _ => false,
    }
}

fn is_tuple(kind: &Type) -> bool {
    match kind {
        Type::Tuple(tuple) => !tuple.elems.is_empty(),
        Type::Reference(reference) => is_tuple(&reference.elem),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    const CODE: &str = "//! A.
        struct Wide { a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8, i: u8 }
        fn take((a, b): (u8, u8), c: &(u8, u8)) {
            let (d, e) = (a, b);
            let (f, g) = pair();
            let add = |x| x + 1;
            drop(add(d));
            drop(e);
            drop(send().await);
        }
        #[cfg(test)]
        mod tests { fn f() { let (a, b) = (1, 2); } }";
    const COUNTED: &str = "a dropped-call 2\na named-closure 1\na packed-let 1\n\
                           a tuple-parameter 1\na wide-struct 1\n";

    fn check(ceilings: &str) -> Vec<String> {
        violations(check_counts, &[("crates/a/src/b.rs", CODE), (CEILINGS_PATH, ceilings)])
    }

    #[test]
    fn a_count_has_a_ceiling_that_only_goes_down() {
        assert_eq!(check(COUNTED), [""; 0]);
        let lower = COUNTED.replace("call 2", "call 1");
        assert_eq!(
            check(&lower),
            ["xtask/ceilings.txt: `a` has 2 of `dropped-call`, and 1 is the most: b.rs, b.rs"]
        );
        let higher = COUNTED.replace("let 1", "let 2");
        assert_eq!(check(&higher), ["xtask/ceilings.txt: lower the ceiling: `a packed-let 1`"]);
        let further = format!("{COUNTED}b packed-let 1\n");
        assert_eq!(
            check(&further),
            ["xtask/ceilings.txt: remove `b packed-let`: there is none left"]
        );
    }

    #[test]
    fn a_file_beside_its_directory_is_an_entrance() {
        let long = format!("//! B.\n{}", "fn f() {}\n".repeat(MAX_FACE_LINES + 1));
        let files = [("crates/a/src/b.rs", &*long), ("crates/a/src/b/c.rs", "//! C.")];
        let expected = "xtask/ceilings.txt: `a` has 1 of `large-face`, and 0 is the most: b.rs";
        assert_eq!(violations(check_counts, &files), [expected]);
        assert_eq!(violations(check_counts, &files[..1]), [""; 0]);
    }
}
