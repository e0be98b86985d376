//! The shipped packages and their dependencies, as cargo resolves them for all platforms.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::TaskResult;

/// A package that the project ships.
#[derive(Debug, PartialEq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// The licence expression of the manifest.
    pub(super) licence: Option<String>,
    /// The packages that depend on the package, as `name version`.
    pub(super) dependents: BTreeSet<String>,
}

/// All packages that the project ships, by id.
#[derive(Debug)]
pub(super) struct PackageGraph {
    pub(super) packages: Vec<Package>,
}

impl PackageGraph {
    /// Reads the output of `cargo metadata`, and follows the dependencies of the roots, without the
    /// dependencies of tests.
    ///
    /// # Errors
    ///
    /// The text has another form, or a root does not exist.
    pub(super) fn parse(metadata: &str, roots: &[&str]) -> TaskResult<Self> {
        let metadata: Value = serde_json::from_str(metadata)
            .map_err(|error| format!("output of `cargo metadata`: {error}"))?;
        let by_id = |list: &Value| -> BTreeMap<String, Value> {
            array(list).map(|item| (text(&item["id"]), item.clone())).collect()
        };
        let packages = by_id(&metadata["packages"]);
        let nodes = by_id(&metadata["resolve"]["nodes"]);
        let member_ids: Vec<String> = array(&metadata["workspace_members"]).map(text).collect();
        let mut open = Vec::new();
        for root in roots {
            // A package of another author may have the same name.
            let id = member_ids.iter().find(|id| packages[*id]["name"] == *root);
            open.push(id.cloned().ok_or_else(|| format!("package `{root}` does not exist"))?);
        }
        let mut dependents: BTreeMap<String, BTreeSet<String>> =
            open.iter().map(|root| (root.clone(), BTreeSet::new())).collect();
        while let Some(id) = open.pop() {
            let node = nodes.get(&id).ok_or_else(|| format!("package `{id}` is not resolved"))?;
            for dependency in array(&node["deps"]).filter(|dependency| is_shipped(dependency)) {
                let target = text(&dependency["pkg"]);
                let of_target = dependents.entry(target.clone()).or_insert_with(|| {
                    open.push(target);
                    BTreeSet::new()
                });
                of_target.insert(display_name(&packages[&id]));
            }
        }
        let packages = dependents.into_iter().map(|(id, dependents)| Package {
            name: text(&packages[&id]["name"]),
            version: text(&packages[&id]["version"]),
            licence: packages[&id]["license"].as_str().map(str::to_owned),
            dependents,
        });
        Ok(Self { packages: packages.collect() })
    }
}

/// Whether a dependency is one of the product or of its build, and not of its tests.
fn is_shipped(dependency: &Value) -> bool {
    array(&dependency["dep_kinds"]).any(|kind| kind["kind"] != "dev")
}

fn display_name(package: &Value) -> String {
    format!("{} {}", text(&package["name"]), text(&package["version"]))
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata() -> String {
        let package = |id: &str, version: &str| {
            json!({"id": id, "name": id.trim_end_matches('2'),
            "version": version, "license": "MIT"})
        };
        let node = |id: &str, deps: &[(&str, Option<&str>)]| {
            let deps: Vec<Value> = deps
                .iter()
                .map(|(id, kind)| json!({"pkg": id, "dep_kinds": [{"kind": kind}]}))
                .collect();
            json!({"id": id, "deps": deps})
        };
        json!({
            "packages": [package("app", "0.1.0"), package("a", "1.0.0"), package("a2", "2.0.0"),
                package("b", "1.0.0"), package("test", "1.0.0")],
            "workspace_members": ["app"],
            "resolve": {"nodes": [
                node("app", &[("a", None), ("test", Some("dev")), ("b", Some("build"))]),
                node("a", &[]), node("a2", &[]), node("b", &[("a2", None), ("app", None)]),
                node("test", &[("a", None)])]},
        })
        .to_string()
    }

    #[test]
    fn the_tree_has_the_dependencies_of_the_product_and_of_builds_and_none_of_tests() {
        let graph = PackageGraph::parse(&metadata(), &["app"]).unwrap();
        let lines: Vec<String> = graph
            .packages
            .iter()
            .map(|package| format!("{} {} {:?}", package.name, package.version, package.dependents))
            .collect();
        assert_eq!(
            lines,
            [
                r#"a 1.0.0 {"app 0.1.0"}"#,
                r#"a 2.0.0 {"b 1.0.0"}"#,
                r#"app 0.1.0 {"b 1.0.0"}"#,
                r#"b 1.0.0 {"app 0.1.0"}"#,
            ]
        );
    }

    #[test]
    fn a_root_that_is_no_member_of_the_workspace_is_an_error() {
        let error = PackageGraph::parse(&metadata(), &["a"]).unwrap_err();
        assert_eq!(error, "package `a` does not exist");
        assert!(PackageGraph::parse("", &[]).is_err());
    }
}
