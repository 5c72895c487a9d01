//! Columns of what is said about pods, their network, their storage and their admission.

use std::collections::BTreeSet;

use krafla_schema::object::{self, text_at};
use serde_json::Value;

use super::Builtin;
use super::builtin::{AGE, NAME, created, labels, name, or_none, template};

/// Most addresses or hosts that a cell shows.
const N_SHOWN_MAX: usize = 3;

/// Templates of pods.
pub const POD_TEMPLATE: Builtin = Builtin {
    columns: &[
        NAME,
        ("Containers", "string", 0, "Containers of the template"),
        ("Images", "string", 0, "Images of the template"),
        ("Pod Labels", "string", 0, "Labels of the pods"),
    ],
    cells: |object, _| {
        let [containers, images] = template(object.pointer("/template/spec/containers"));
        let labels = labels(object.pointer("/template/metadata/labels"));
        vec![name(object), containers.into(), images.into(), labels.into()]
    },
};

/// Revisions of sets.
pub const CONTROLLER_REVISION: Builtin = Builtin {
    columns: &[
        NAME,
        ("Controller", "string", 0, "Set that the revision is of"),
        ("Revision", "string", 0, "Number of the revision"),
        AGE,
    ],
    cells: |revision, now| {
        let owners = revision.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let owner = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
        let owner = owner.map_or("<none>".to_owned(), |owner| {
            let (group, kind) = (text_at(owner, "apiVersion"), text_at(owner, "kind").to_lowercase());
            let group = group.split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
            format!("{kind}{group}/{}", text_at(owner, "name"))
        });
        vec![name(revision), owner.into(), number(revision, "/revision"), created(revision, now)]
    },
};

/// Budgets of disruptions.
pub const DISRUPTION_BUDGET: Builtin = Builtin {
    columns: &[
        NAME,
        ("Min Available", "string", 0, "Pods that must be there"),
        ("Max Unavailable", "string", 0, "Pods that may be away"),
        ("Allowed Disruptions", "integer", 0, "Pods that may go now"),
        AGE,
    ],
    cells: |budget, now| {
        let bound = |path: &str| match budget.pointer(path) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => "N/A".to_owned(),
        };
        vec![
            name(budget),
            bound("/spec/minAvailable").into(),
            bound("/spec/maxUnavailable").into(),
            number(budget, "/status/disruptionsAllowed"),
            created(budget, now),
        ]
    },
};

/// Ingresses.
pub const INGRESS: Builtin = Builtin {
    columns: &[
        NAME,
        ("Class", "string", 0, "Class of the ingress"),
        ("Hosts", "string", 0, "Hosts of its rules"),
        ("Address", "string", 0, "Addresses of its balancer"),
        ("Ports", "string", 0, "Ports"),
        AGE,
    ],
    cells: |ingress, now| {
        let has_tls =
            ingress.pointer("/spec/tls").and_then(Value::as_array).is_some_and(|tls| !tls.is_empty());
        vec![
            name(ingress),
            or_none(text_at(ingress, "spec.ingressClassName")).into(),
            hosts(ingress).into(),
            balancer(ingress).into(),
            if has_tls { "80, 443" } else { "80" }.into(),
            created(ingress, now),
        ]
    },
};

/// Classes of ingresses.
pub const INGRESS_CLASS: Builtin = Builtin {
    columns: &[
        NAME,
        ("Controller", "string", 0, "Who takes care of ingresses of the class"),
        ("Parameters", "string", 0, "Object with its parameters"),
        AGE,
    ],
    cells: |class, now| {
        let parameters = class.pointer("/spec/parameters").map(|parameters| {
            let group = text_at(parameters, "apiGroup");
            let group = if group.is_empty() { group } else { format!(".{group}") };
            format!("{}{group}/{}", text_at(parameters, "kind"), text_at(parameters, "name"))
        });
        vec![
            default_name(class, &["ingressclass.kubernetes.io/is-default-class"]),
            text_at(class, "spec.controller").into(),
            parameters.unwrap_or_else(|| "<none>".into()).into(),
            created(class, now),
        ]
    },
};

/// Who has a role.
pub const ROLE_BINDING: Builtin = Builtin {
    columns: &[
        NAME,
        ("Role", "string", 0, "The role"),
        AGE,
        ("Users", "string", 1, "Users who have it"),
        ("Groups", "string", 1, "Groups that have it"),
        ("ServiceAccounts", "string", 1, "Service accounts that have it"),
    ],
    cells: |binding, now| {
        let role = format!("{}/{}", text_at(binding, "roleRef.kind"), text_at(binding, "roleRef.name"));
        let of = |kind: &str| {
            let subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
            let subjects = subjects.filter(|subject| subject["kind"] == kind).map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", text_at(subject, "namespace"), text_at(subject, "name")),
                _ => text_at(subject, "name"),
            });
            Value::from(subjects.collect::<Vec<_>>().join(", "))
        };
        vec![name(binding), role.into(), created(binding, now), of("User"), of("Group"), of("ServiceAccount")]
    },
};

/// Classes of storage.
pub const STORAGE_CLASS: Builtin = Builtin {
    columns: &[
        NAME,
        ("Provisioner", "string", 0, "Who makes the volumes"),
        ("ReclaimPolicy", "string", 0, "What becomes of volumes that are given back"),
        ("VolumeBindingMode", "string", 0, "When volumes are made"),
        ("AllowVolumeExpansion", "string", 0, "Whether volumes can grow"),
        AGE,
    ],
    cells: |class, now| {
        let or = |field: &str, default: &str| match text_at(class, field) {
            text if text.is_empty() => default.to_owned(),
            text => text,
        };
        let marks = [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ];
        vec![
            default_name(class, &marks),
            text_at(class, "provisioner").into(),
            or("reclaimPolicy", "Delete").into(),
            or("volumeBindingMode", "Immediate").into(),
            (class["allowVolumeExpansion"] == true).into(),
            created(class, now),
        ]
    },
};

/// Classes of runtimes.
pub const RUNTIME_CLASS: Builtin = Builtin {
    columns: &[NAME, ("Handler", "string", 0, "What runs the containers"), AGE],
    cells: |class, now| vec![name(class), text_at(class, "handler").into(), created(class, now)],
};

/// Volumes that are attached to nodes.
pub const VOLUME_ATTACHMENT: Builtin = Builtin {
    columns: &[
        NAME,
        ("Attacher", "string", 0, "Driver that attaches it"),
        ("PV", "string", 0, "The volume"),
        ("Node", "string", 0, "The node"),
        ("Attached", "boolean", 0, "Whether it is attached"),
        AGE,
    ],
    cells: |attachment, now| {
        vec![
            name(attachment),
            text_at(attachment, "spec.attacher").into(),
            text_at(attachment, "spec.source.persistentVolumeName").into(),
            text_at(attachment, "spec.nodeName").into(),
            (object::at(attachment, "/status/attached") == true).into(),
            created(attachment, now),
        ]
    },
};

/// Drivers of a node's storage.
pub const CSI_NODE: Builtin = Builtin {
    columns: &[NAME, ("Drivers", "integer", 0, "Number of drivers"), AGE],
    cells: |node, now| vec![name(node), length(node, "/spec/drivers"), created(node, now)],
};

/// Drivers of storage.
pub const CSI_DRIVER: Builtin = Builtin {
    columns: &[
        NAME,
        ("AttachRequired", "boolean", 0, "Whether volumes are attached before they are mounted"),
        ("PodInfoOnMount", "boolean", 0, "Whether the driver is told of the pod"),
        ("StorageCapacity", "boolean", 0, "Whether the driver tells how much there is"),
        ("TokenRequests", "string", 0, "Audiences of the tokens that the driver needs"),
        ("RequiresRepublish", "boolean", 0, "Whether volumes are mounted again and again"),
        ("Modes", "string", 0, "Lives that volumes may have"),
        AGE,
    ],
    cells: |driver, now| {
        let is = |field: &str, default: bool| {
            Value::from(driver.pointer(field).and_then(Value::as_bool).unwrap_or(default))
        };
        let audiences = driver.pointer("/spec/tokenRequests").and_then(Value::as_array).map(|requests| {
            requests.iter().map(|request| text_at(request, "audience")).collect::<Vec<_>>().join(",")
        });
        vec![
            name(driver),
            is("/spec/attachRequired", true),
            is("/spec/podInfoOnMount", false),
            is("/spec/storageCapacity", false),
            audiences.unwrap_or_else(|| "<unset>".into()).into(),
            is("/spec/requiresRepublish", false),
            or_none(object::strings(driver.pointer("/spec/volumeLifecycleModes")).join(",")).into(),
            created(driver, now),
        ]
    },
};

/// Configurations of webhooks.
pub const WEBHOOK_CONFIGURATION: Builtin = Builtin {
    columns: &[NAME, ("Webhooks", "integer", 0, "Number of webhooks"), AGE],
    cells: |configuration, now| {
        vec![name(configuration), length(configuration, "/webhooks"), created(configuration, now)]
    },
};

/// Policies of admission that refuse.
pub const ADMISSION_POLICY: Builtin = Builtin {
    columns: &[NAME, ("Validations", "integer", 0, "Number of validations"), PARAMETERS, AGE],
    cells: |policy, now| {
        let n_rules = length(policy, "/spec/validations");
        vec![name(policy), n_rules, parameter_kind(policy), created(policy, now)]
    },
};

/// Policies of admission that change what is admitted.
pub const MUTATING_POLICY: Builtin = Builtin {
    columns: &[NAME, ("Mutations", "integer", 0, "Number of mutations"), PARAMETERS, AGE],
    cells: |policy, now| {
        let n_rules = length(policy, "/spec/mutations");
        vec![name(policy), n_rules, parameter_kind(policy), created(policy, now)]
    },
};

const PARAMETERS: (&str, &str, i32, &str) = ("ParamKind", "string", 0, "Kind of its parameters");

fn parameter_kind(policy: &Value) -> Value {
    let kind = policy.pointer("/spec/paramKind");
    kind.map_or_else(
        || "<unset>".into(),
        |kind| format!("{}/{}", text_at(kind, "apiVersion"), text_at(kind, "kind")).into(),
    )
}

/// Where policies of admission hold.
pub const ADMISSION_POLICY_BINDING: Builtin = Builtin {
    columns: &[
        NAME,
        ("PolicyName", "string", 0, "The policy"),
        ("ParamRef", "string", 0, "Its parameters"),
        AGE,
    ],
    cells: |binding, now| {
        let parameters =
            match (text_at(binding, "spec.paramRef.name"), text_at(binding, "spec.paramRef.namespace")) {
                (name, _) if name.is_empty() => "<unset>".to_owned(),
                (name, namespace) if namespace.is_empty() => format!("*/{name}"),
                (name, namespace) => format!("{namespace}/{name}"),
            };
        vec![
            name(binding),
            text_at(binding, "spec.policyName").into(),
            parameters.into(),
            created(binding, now),
        ]
    },
};

fn number(object: &Value, path: &str) -> Value {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(0).into()
}

fn length(object: &Value, path: &str) -> Value {
    object.pointer(path).and_then(Value::as_array).map_or(0, Vec::len).into()
}

/// The name, with a note if an annotation says that the object is what others get who name none.
fn default_name(object: &Value, marks: &[&str]) -> Value {
    let annotations = object.pointer("/metadata/annotations");
    let is_default =
        marks.iter().any(|mark| annotations.and_then(|all| all.get(*mark)).is_some_and(|v| v == "true"));
    let note = if is_default { " (default)" } else { "" };
    format!("{}{note}", object::name(object)).into()
}

fn hosts(ingress: &Value) -> String {
    let rules = ingress.pointer("/spec/rules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut shown: Vec<&str> = Vec::new();
    let mut has_more = false;
    for rule in rules {
        has_more |= shown.len() == N_SHOWN_MAX;
        let host = rule["host"].as_str().unwrap_or_default();
        if !has_more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.join(","), has_more) {
        (shown, _) if shown.is_empty() => "*".to_owned(),
        (shown, false) => shown,
        (shown, true) => format!("{shown} + {} more...", rules.len() - N_SHOWN_MAX),
    }
}

/// Where a balancer can be reached.
pub(super) fn balancer(object: &Value) -> String {
    let points = object.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    let place = |point: &Value| match text_at(point, "ip") {
        ip if ip.is_empty() => text_at(point, "hostname"),
        ip => ip,
    };
    let places: BTreeSet<String> =
        points.into_iter().flatten().map(place).filter(|place| !place.is_empty()).collect();
    places.into_iter().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use krafla_api::Time;
    use serde_json::json;

    use super::*;

    fn check(kind: Builtin, mut object: Value, expected: Expect) {
        object["metadata"]["name"] = "a".into();
        let cells = (kind.cells)(&object, Time(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(cells.len(), kind.columns.len());
        expected.assert_eq(&Value::from(cells).to_string());
    }

    #[test]
    fn hosts_are_cut_short() {
        let rules = ["a", "b", "", "c", "d", "e"].map(|host| json!({"host": host}));
        let balancer = json!({"ingress": [{"ip": "10.0.0.1"}, {"hostname": "example.org"}]});
        check(
            INGRESS,
            json!({"spec": {"rules": rules}, "status": {"loadBalancer": balancer}}),
            expect![[r#"["a","<none>","a,b,c + 3 more...","10.0.0.1,example.org","80","<unknown>"]"#]],
        );
        check(
            INGRESS,
            json!({"spec": {"tls": [{}]}}),
            expect![[r#"["a","<none>","*","","80, 443","<unknown>"]"#]],
        );
    }

    #[test]
    fn every_kind_has_a_cell_for_each_column() {
        for kind in [
            POD_TEMPLATE,
            CONTROLLER_REVISION,
            DISRUPTION_BUDGET,
            INGRESS_CLASS,
            ROLE_BINDING,
            STORAGE_CLASS,
            RUNTIME_CLASS,
            VOLUME_ATTACHMENT,
            CSI_NODE,
            CSI_DRIVER,
            WEBHOOK_CONFIGURATION,
            ADMISSION_POLICY,
            MUTATING_POLICY,
            ADMISSION_POLICY_BINDING,
        ] {
            assert_eq!((kind.cells)(&json!({}), Time(jiff::Timestamp::UNIX_EPOCH)).len(), kind.columns.len());
        }
    }
}
