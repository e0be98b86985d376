//! The licences of the shipped packages, as SPDX expressions.

use super::policy::{POLICY_FILE, Policy};
use super::resolved::PackageGraph;

/// Returns a line for each package whose licence is not accepted.
pub(super) fn check(graph: &PackageGraph, policy: &Policy) -> Vec<String> {
    let problems = graph.packages.iter().filter_map(|package| {
        let name = format!("package `{} {}`", package.name, package.version);
        let Some(licence) = &package.licence else {
            return Some(format!("{name} has no licence expression in its manifest"));
        };
        match is_accepted(licence, &policy.licences) {
            Some(true) => None,
            Some(false) => Some(format!(
                "{name} has the licence `{licence}`; replace the package, or add the licence with \
                 a reason to `{POLICY_FILE}`"
            )),
            None => Some(format!("{name} has the invalid licence expression `{licence}`")),
        }
    });
    problems.collect()
}

/// Whether the accepted licences satisfy an SPDX expression; `None` for an invalid expression.
/// Old manifests write `/` for `OR`.
fn is_accepted(expression: &str, accepted: &[String]) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut parser = Parser { tokens: spaced.split_whitespace().collect(), accepted };
    parser.tokens.reverse();
    let is_accepted = parser.alternatives()?;
    parser.tokens.is_empty().then_some(is_accepted)
}

/// A parser that evaluates; `AND` binds stronger than `OR`.
struct Parser<'a> {
    /// The tokens that follow, in reverse order.
    tokens: Vec<&'a str>,
    accepted: &'a [String],
}

impl Parser<'_> {
    fn alternatives(&mut self) -> Option<bool> {
        let mut is_accepted = self.conjunction()?;
        while self.accept("OR") {
            is_accepted |= self.conjunction()?;
        }
        Some(is_accepted)
    }

    fn conjunction(&mut self) -> Option<bool> {
        let mut is_accepted = self.operand()?;
        while self.accept("AND") {
            is_accepted &= self.operand()?;
        }
        Some(is_accepted)
    }

    fn operand(&mut self) -> Option<bool> {
        if self.accept("(") {
            let is_accepted = self.alternatives()?;
            return self.accept(")").then_some(is_accepted);
        }
        let mut id = self.identifier()?.to_owned();
        if self.accept("WITH") {
            // An exception belongs to its licence: the list has both as one entry.
            id = format!("{id} WITH {}", self.identifier()?);
        }
        Some(self.accepted.contains(&id))
    }

    fn identifier(&mut self) -> Option<&str> {
        let token = self.tokens.pop()?;
        let is_identifier = !["OR", "AND", "WITH", "(", ")"].contains(&token);
        is_identifier.then_some(token)
    }

    fn accept(&mut self, token: &str) -> bool {
        let is_next = self.tokens.last() == Some(&token);
        if is_next {
            self.tokens.pop();
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::resolved::Package;
    use super::*;

    fn accepted() -> Vec<String> {
        ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).to_vec()
    }

    #[test]
    fn an_expression_is_accepted_if_the_accepted_licences_satisfy_it() {
        for (expression, expected) in [
            ("MIT", Some(true)),
            ("GPL-3.0-only", Some(false)),
            ("MIT OR GPL-3.0-only", Some(true)),
            ("GPL-3.0-only/MIT", Some(true)),
            ("GPL-3.0-only / LGPL-3.0-only", Some(false)),
            ("MIT AND ISC", Some(true)),
            ("MIT AND GPL-3.0-only", Some(false)),
            ("GPL-3.0-only AND MIT OR ISC", Some(true)),
            ("ISC OR MIT AND GPL-3.0-only", Some(true)),
            ("(ISC OR MIT) AND GPL-3.0-only", Some(false)),
            ("(GPL-3.0-only OR MIT) AND ISC", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("Apache-2.0", Some(false)),
            ("MIT WITH LLVM-exception", Some(false)),
        ] {
            assert_eq!(is_accepted(expression, &accepted()), expected, "{expression}");
        }
    }

    #[test]
    fn an_invalid_expression_is_neither_accepted_nor_rejected() {
        for expression in ["", "MIT OR", "OR MIT", "MIT ISC", "(MIT", "MIT)", "MIT WITH", "()"] {
            assert_eq!(is_accepted(expression, &accepted()), None, "{expression}");
        }
    }

    #[test]
    fn a_package_without_an_accepted_licence_is_reported_with_its_licence() {
        let package = |name: &str, licence: Option<&str>| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.map(str::to_owned),
            dependents: BTreeSet::new(),
        };
        let packages = vec![
            package("free", Some("MIT")),
            package("copyleft", Some("GPL-3.0-only")),
            package("unknown", None),
            package("broken", Some("MIT OR")),
        ];
        let policy = Policy { licences: accepted(), duplicates: BTreeMap::new() };
        let problems = check(&PackageGraph { packages }, &policy);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].starts_with("package `copyleft 1.0.0` has the licence `GPL-3.0-only`"));
        assert_eq!(
            problems[1],
            "package `unknown 1.0.0` has no licence expression in its manifest"
        );
        assert!(problems[2].contains("invalid licence expression `MIT OR`"));
    }
}
