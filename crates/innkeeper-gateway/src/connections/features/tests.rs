//! Tests of features.

use serde_json::json;

use super::*;

fn capabilities(value: Value) -> ClientCapabilities {
    serde_json::from_value(value).unwrap()
}

fn registry(features: &[(&str, Feature)]) -> CapabilityRegistry {
    let mut registry = CapabilityRegistry::new();
    for (name, feature) in features {
        registry.register_feature(*name, feature.clone()).unwrap();
    }
    registry
}

fn feature(level: FeatureCapabilityLevel) -> Feature {
    Feature { level, ..Feature::default() }
}

/// Proves: B19
#[test]
fn a_feature_has_the_version_of_the_argument_else_of_the_property_else_the_first() {
    let properties = json!({ "version": "2.1" }).as_object().unwrap().clone();
    let registry = registry(&[
        (
            "argument",
            Feature {
                version: Some("3".to_owned()),
                properties: properties.clone(),
                level: FeatureCapabilityLevel::Required,
                version_compatibility: VersionCompatibility::Exact,
                required_properties: vec!["methods".to_owned()],
            },
        ),
        ("property", Feature { properties, ..Feature::default() }),
        ("neither", Feature::default()),
    ]);
    let declared = registry.declaration();
    assert_eq!(
        declared["argument"],
        json!({ "supported": true, "version": "3.0.0", "level": "required",
            "version_compatibility": "exact", "properties": { "version": "2.1" },
            "required_properties": ["methods"] })
    );
    assert_eq!(declared["property"]["version"], "2.1.0");
    assert_eq!(declared["neither"]["version"], "1.0.0");
}

#[test]
fn a_name_is_registered_once_and_with_a_version() {
    let mut registry = registry(&[("jobs", Feature::default())]);
    let error = registry.register_feature("jobs", Feature::default()).unwrap_err();
    assert_eq!(error.to_string(), "feature `jobs` is already registered");
    let invalid = Feature { version: Some("newest".to_owned()), ..Feature::default() };
    let error = registry.register_feature("tasks", invalid).unwrap_err();
    assert!(matches!(error, FeatureError::Version { .. }));
    assert!(!registry.declaration().contains_key("tasks"));
}

/// Proves: B20
#[test]
fn only_a_missing_required_feature_rejects_a_client() {
    use FeatureCapabilityLevel::{Experimental, Optional, Preferred, Required};
    for (level, rejects) in
        [(Required, true), (Preferred, false), (Optional, false), (Experimental, false)]
    {
        let registry = registry(&[("jobs", feature(level))]);
        for client in
            [json!({}), json!({ "jobs": false }), json!({ "jobs": { "supported": false }})]
        {
            let reasons = registry.incompatibilities(&capabilities(client.clone()));
            assert_eq!(!reasons.is_empty(), rejects, "{level:?}: {client}");
        }
        for client in [json!({ "jobs": true }), json!({ "jobs": {}, "unknown": true })] {
            let reasons = registry.incompatibilities(&capabilities(client));
            assert_eq!(reasons, Vec::<String>::new());
        }
    }
}

/// Proves: B22
#[test]
fn a_missing_property_is_named_with_its_feature() {
    let required_properties = vec!["methods".to_owned(), "limits".to_owned()];
    let registry = registry(&[("jobs", Feature { required_properties, ..Feature::default() })]);
    let reasons = |client| registry.incompatibilities(&capabilities(client));
    let missing = "feature `jobs` lacks the required property `limits`";
    assert_eq!(reasons(json!({ "jobs": { "properties": { "methods": [] } } })), [missing]);
    assert_eq!(reasons(json!({ "jobs": { "methods": [] } })), [missing], "beside `properties`");
    assert_eq!(reasons(json!({ "jobs": true })).len(), 2);
    assert!(reasons(json!({ "jobs": { "methods": [], "limits": null } })).is_empty());
}

/// Proves: B23
#[test]
fn a_rejection_lists_every_reason() {
    let required_properties = vec!["methods".to_owned()];
    let exact = VersionCompatibility::Exact;
    let registry = registry(&[
        ("core", feature(FeatureCapabilityLevel::Required)),
        ("off", feature(FeatureCapabilityLevel::Required)),
        ("jobs", Feature { required_properties, ..Feature::default() }),
        ("exact", Feature { version_compatibility: exact, ..Feature::default() }),
        ("wrong", Feature::default()),
    ]);
    let client = json!({ "off": false, "jobs": { "version": "2.0" }, "exact": { "version": "1.1" },
        "wrong": { "version": "x\u{1b}[31m" } });
    assert_eq!(
        registry.incompatibilities(&capabilities(client)),
        [
            "required feature `core` is missing",
            "required feature `off` is not supported by the client",
            "feature `jobs`: the client has version `2.0`, the server accepts `1.0.0` up to, but \
             not, `2.0.0`",
            "feature `jobs` lacks the required property `methods`",
            "feature `exact`: the client has version `1.1`, the server accepts exactly `1.0.0`",
            "version of feature `wrong`: `x\\u{1b}[31m` is not a version such as `1.2.0`",
        ]
    );
}

/// Proves: B24
#[test]
fn a_feature_is_enabled_only_if_both_sides_declare_it() {
    let registry = registry(&[("jobs", Feature::default())]);
    let is_enabled = |name, client| registry.is_feature_enabled(name, &capabilities(client));
    assert!(is_enabled("jobs", json!({ "jobs": true })));
    assert!(is_enabled("jobs", json!({ "jobs": {} })));
    assert!(is_enabled("jobs", json!({ "jobs": { "supported": true, "version": "1.0" } })));
    assert!(!is_enabled("jobs", json!({ "jobs": false })));
    assert!(!is_enabled("jobs", json!({ "jobs": { "supported": false } })));
    assert!(!is_enabled("jobs", json!({})), "the client does not name the feature");
    assert!(!is_enabled("other", json!({ "other": true })), "the server has no such feature");
}

#[test]
fn the_core_features_are_those_of_the_connection_service() {
    let declared = CapabilityRegistry::with_core_features().declaration();
    let features: Vec<_> = declared
        .iter()
        .map(|(name, feature)| (&**name, feature["version"].clone(), feature["level"].clone()))
        .collect();
    let expected = [
        ("core.jsonrpc", "2.0.0", "required"),
        ("core.transport.http", "1.0.0", "required"),
        ("core.transport.sse", "1.0.0", "preferred"),
        ("tools", "1.0.0", "optional"),
        ("prompts", "1.0.0", "optional"),
        ("resources", "1.0.0", "optional"),
    ];
    let expected = expected.map(|(name, version, level)| (name, json!(version), json!(level)));
    assert_eq!(features, expected);
}

#[test]
fn other_forms_of_a_feature_are_rejected_and_a_valid_one_survives_the_store() {
    for value in [
        json!(1),
        json!("yes"),
        json!({ "supported": "yes" }),
        json!({ "version": 1 }),
        json!({ "properties": [] }),
    ] {
        assert!(serde_json::from_value::<ClientFeature>(value).is_err());
    }
    let value = json!({ "supported": false, "version": "1", "properties": { "a": 1 }, "b": 2 });
    let parsed: ClientFeature = serde_json::from_value(value).unwrap();
    let stored = serde_json::to_value(&parsed).unwrap();
    assert_eq!(serde_json::from_value::<ClientFeature>(stored).unwrap(), parsed);
}
