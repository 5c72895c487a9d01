//! The CustomResourceDefinitions of the Volcano kinds, generated from their types.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Metadata is the server's own; a CRD says only that it is there.
pub(crate) fn metadata(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// The metadata that a template may carry.
pub(crate) fn embedded_metadata(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "annotations": { "type": "object", "additionalProperties": { "type": "string" } },
            "finalizers": { "type": "array", "items": { "type": "string" } },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "name": { "type": "string" },
            "namespace": { "type": "string" },
        },
    })
}

/// A pod template passes through as it is, so that fields newer than this program survive.
pub(crate) fn pod_template(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "metadata": embedded_metadata(generator),
            "spec": {
                "type": "object",
                "required": ["containers"],
                "properties": {
                    "containers": {
                        "type": "array",
                        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    },
                },
                "x-kubernetes-preserve-unknown-fields": true,
            },
        },
    })
}

/// A volume claim passes through as it is.
pub(crate) fn volume_claim(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// The object that a Command is about.
pub(crate) fn owner_reference(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "required": ["apiVersion", "kind", "name", "uid"],
        "properties": {
            "apiVersion": { "type": "string" },
            "blockOwnerDeletion": { "type": "boolean" },
            "controller": { "type": "boolean" },
            "kind": { "type": "string" },
            "name": { "type": "string" },
            "uid": { "type": "string" },
        },
        "x-kubernetes-map-type": "atomic",
    })
}

/// Which pods a policy is about.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "matchExpressions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string" },
                        "operator": { "type": "string" },
                        "values": {
                            "type": "array",
                            "items": { "type": "string" },
                            "x-kubernetes-list-type": "atomic",
                        },
                    },
                },
                "x-kubernetes-list-type": "atomic",
            },
            "matchLabels": { "type": "object", "additionalProperties": { "type": "string" } },
        },
        "x-kubernetes-map-type": "atomic",
    })
}
