//! The CustomResourceDefinitions of the Volcano kinds, generated from their types.
//!
//! ```text
//!   Kind::info       group, names, scope, subresources
//!   columns          what `kubectl get` shows
//!   volcano::*       fields, validation, defaults; the doc comments are the descriptions
//!   schema           Kubernetes' own types within them
//!                    └─> CustomResourceDefinition (apiextensions.k8s.io/v1)
//! ```

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::kind::{Kind, KindInfo, Scope};
use crate::schema;
use crate::volcano::{
    ColocationConfiguration, Command, CronJob, HyperNode, Job, JobFlow, JobTemplate, NodeShard, Numatopology,
    PodGroup, Queue,
};

/// The definitions of all Volcano kinds.
pub fn crds() -> Vec<Value> {
    crds_with(&|_| None)
}

/// The same, with the schemas of built-in types (`io.k8s.api.core.v1.PodSpec`) from `built_in` where it has them.
pub fn crds_with(built_in: &dyn Fn(&str) -> Option<Value>) -> Vec<Value> {
    Kind::VOLCANO.into_iter().filter_map(|kind| crd_with(kind, built_in)).collect()
}

/// The definition of one kind, if it is one of Volcano's.
pub fn crd(kind: Kind) -> Option<Value> {
    crd_with(kind, &|_| None)
}

fn crd_with(kind: Kind, built_in: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
    let mut schema = open_api_schema(kind)?;
    schema::make_structural(&mut schema, built_in);
    let info = kind.info();
    Some(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": info.qualified_plural(),
            // Helm must not remove the definitions with the release: all jobs would go with them.
            "annotations": { "helm.sh/resource-policy": "keep" },
        },
        "spec": {
            "group": info.group,
            "names": names(info),
            "scope": match info.scope {
                Scope::Cluster => "Cluster",
                Scope::Namespaced => "Namespaced",
            },
            "versions": [version(kind, schema)],
        },
    }))
}

fn names(info: &KindInfo) -> Value {
    let mut names = json!({
        "kind": info.kind,
        "listKind": format!("{}List", info.kind),
        "plural": info.plural,
        "singular": info.singular,
    });
    if !info.short_names.is_empty() {
        insert(&mut names, "shortNames", json!(info.short_names));
    }
    names
}

fn version(kind: Kind, schema: Value) -> Value {
    let info = kind.info();
    let mut version = json!({
        "name": info.version,
        "served": true,
        "storage": true,
        "schema": { "openAPIV3Schema": schema },
    });
    let columns = columns(kind);
    if !columns.is_empty() {
        insert(&mut version, "additionalPrinterColumns", columns.into());
    }
    if info.has_status_subresource {
        insert(&mut version, "subresources", json!({ "status": {} }));
    }
    version
}

/// What `kubectl get` shows besides the name. Priority 1 is for `-o wide`.
fn columns(kind: Kind) -> Vec<Value> {
    let column = |name: &str, column_type: &str, path: &str| json!({ "name": name, "type": column_type, "jsonPath": path });
    let wide = |mut column: Value| {
        insert(&mut column, "priority", json!(1));
        column
    };
    let age = |name| column(name, "date", ".metadata.creationTimestamp");
    match kind {
        Kind::VcJob => vec![
            column("STATUS", "string", ".status.state.phase"),
            column("minAvailable", "integer", ".status.minAvailable"),
            column("RUNNINGS", "integer", ".status.running"),
            age("AGE"),
            wide(column("QUEUE", "string", ".spec.queue")),
        ],
        Kind::PodGroup => vec![
            column("STATUS", "string", ".status.phase"),
            column("minMember", "integer", ".spec.minMember"),
            column("RUNNINGS", "integer", ".status.running"),
            age("AGE"),
            wide(column("QUEUE", "string", ".spec.queue")),
        ],
        Kind::JobFlow => vec![column("Status", "string", ".status.state.phase"), age("Age")],
        Kind::Queue => vec![
            column("PARENT", "string", ".spec.parent"),
            column("STATE", "string", ".status.state"),
            column("INQUEUE", "integer", ".status.inqueue"),
            column("PENDING", "integer", ".status.pending"),
            column("RUNNING", "integer", ".status.running"),
            wide(column("UNKNOWN", "integer", ".status.unknown")),
            wide(column("COMPLETED", "integer", ".status.completed")),
        ],
        Kind::HyperNode => vec![
            column("Tier", "string", ".spec.tier"),
            column("TierName", "string", ".spec.tierName"),
            column("NodeCount", "integer", ".status.nodeCount"),
            age("Age"),
        ],
        Kind::NodeShard => vec![age("AGE")],
        _ => Vec::new(),
    }
}

fn open_api_schema(kind: Kind) -> Option<Value> {
    Some(match kind {
        Kind::VcJob => root_schema::<Job>(),
        Kind::VcCronJob => root_schema::<CronJob>(),
        Kind::JobFlow => root_schema::<JobFlow>(),
        Kind::JobTemplate => root_schema::<JobTemplate>(),
        Kind::Command => root_schema::<Command>(),
        Kind::PodGroup => root_schema::<PodGroup>(),
        Kind::Queue => root_schema::<Queue>(),
        Kind::HyperNode => root_schema::<HyperNode>(),
        Kind::Numatopology => root_schema::<Numatopology>(),
        Kind::NodeShard => root_schema::<NodeShard>(),
        Kind::ColocationConfiguration => root_schema::<ColocationConfiguration>(),
        _ => return None,
    })
}

fn root_schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::default();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("title");
    }
    if let Some(properties) = schema.get_mut("properties") {
        insert(properties, "apiVersion", json!({ "type": "string" }));
        insert(properties, "kind", json!({ "type": "string" }));
    }
    schema
}

fn insert(object: &mut Value, key: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use expect_test::expect;

    use super::*;

    /// Calls `visit` with the path of every schema below `schema`, and the schema.
    fn walk(path: &str, schema: &Value, visit: &mut dyn FnMut(&str, &Value)) {
        visit(path, schema);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            walk(&format!("{path}.{name}"), property, visit);
        }
        for (keyword, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
            if let Some(schema) = schema.get(keyword) {
                walk(&format!("{path}{mark}"), schema, visit);
            }
        }
    }

    fn schema_of(crd: &Value) -> &Value {
        &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    }

    #[test]
    fn every_schema_is_structural() {
        const KEYWORDS: [&str; 18] = [
            "additionalProperties",
            "anyOf",
            "default",
            "description",
            "enum",
            "format",
            "items",
            "maxLength",
            "maximum",
            "minItems",
            "minLength",
            "minimum",
            "pattern",
            "properties",
            "required",
            "type",
            "x-kubernetes-int-or-string",
            "x-kubernetes-list-map-keys",
        ];
        for crd in crds() {
            walk("", schema_of(&crd), &mut |path, schema| {
                let is_quantity = schema["x-kubernetes-int-or-string"] == true;
                assert!(schema["type"].is_string() || is_quantity, "{path} has no type: {schema}");
                let unknown = |keyword: &&String| {
                    let kubernetes = ["list-type", "map-type", "preserve-unknown-fields", "validations"];
                    let own =
                        keyword.strip_prefix("x-kubernetes-").is_some_and(|word| kubernetes.contains(&word));
                    !own && !KEYWORDS.contains(&keyword.as_str())
                };
                let unknown = schema.as_object().and_then(|fields| fields.keys().find(unknown));
                assert_eq!(unknown, None, "{path}");
            });
        }
    }

    #[test]
    fn every_field_of_ours_has_a_description() {
        let built_in = |path: &str| {
            [
                "metadata",
                "template",
                "target.",
                "labelSelector.",
                "labelMatch.",
                ".spec.selector.",
                "conditions[].",
                ".apiVersion",
                ".kind",
            ]
            .iter()
            .any(|part| path.contains(part))
        };
        for crd in crds() {
            walk("", schema_of(&crd), &mut |path, schema| {
                let is_field = !path.ends_with("[]") && !path.ends_with("{}");
                let text = schema["description"].as_str().unwrap_or_default();
                assert!(!is_field || built_in(path) || text.len() > 3, "{} {path}", crd["metadata"]["name"]);
            });
        }
    }

    #[test]
    fn a_table_of_built_in_types_fills_the_places_kept_for_them() {
        let table =
            |name: &str| Some(json!({ "type": "object", "properties": { "from": { "type": name } } }));
        let crds = crds_with(&table);
        let job = schema_of(&crds[0]);
        let claim = &job["properties"]["spec"]["properties"]["volumes"]["items"]["properties"]["volumeClaim"];
        assert_eq!(claim["properties"]["from"]["type"], "io.k8s.api.core.v1.PersistentVolumeClaimSpec");
        assert_eq!(claim["description"], "The claim to create.");
    }

    #[test]
    fn names_scopes_columns_and_subresources() {
        let mut table = String::new();
        for crd in crds() {
            let (spec, version) = (&crd["spec"], &crd["spec"]["versions"][0]);
            let names = &spec["names"];
            let (scope, subresources) = (&spec["scope"], &version["subresources"]);
            let line = format!("{} {} {} {scope}", crd["metadata"]["name"], version["name"], names["kind"]);
            writeln!(table, "{line} short {} subresources {subresources}", names["shortNames"]).ok();
            for column in version["additionalPrinterColumns"].as_array().into_iter().flatten() {
                let (name, of_type, path) = (&column["name"], &column["type"], &column["jsonPath"]);
                let wide = if column["priority"] == 1 { " wide" } else { "" };
                writeln!(table, "  {name} {of_type} {path}{wide}").ok();
            }
        }
        expect![[r#"
            jobs.batch.volcano.sh v1alpha1 Job Namespaced short [vcjob,vj] subresources {status:{}}
              STATUS string .status.state.phase
              minAvailable integer .status.minAvailable
              RUNNINGS integer .status.running
              AGE date .metadata.creationTimestamp
              QUEUE string .spec.queue wide
            cronjobs.batch.volcano.sh v1alpha1 CronJob Namespaced short [cronvcjob,cronvj] subresources {status:{}}
            jobflows.flow.volcano.sh v1alpha1 JobFlow Namespaced short [jf] subresources {status:{}}
              Status string .status.state.phase
              Age date .metadata.creationTimestamp
            jobtemplates.flow.volcano.sh v1alpha1 JobTemplate Namespaced short [jt] subresources {status:{}}
            commands.bus.volcano.sh v1alpha1 Command Namespaced short null subresources null
            podgroups.scheduling.volcano.sh v1beta1 PodGroup Namespaced short [pg,podgroup-v1beta1] subresources null
              STATUS string .status.phase
              minMember integer .spec.minMember
              RUNNINGS integer .status.running
              AGE date .metadata.creationTimestamp
              QUEUE string .spec.queue wide
            queues.scheduling.volcano.sh v1beta1 Queue Cluster short [q,queue-v1beta1] subresources {status:{}}
              PARENT string .spec.parent
              STATE string .status.state
              INQUEUE integer .status.inqueue
              PENDING integer .status.pending
              RUNNING integer .status.running
              UNKNOWN integer .status.unknown wide
              COMPLETED integer .status.completed wide
            hypernodes.topology.volcano.sh v1alpha1 HyperNode Cluster short [hn] subresources {status:{}}
              Tier string .spec.tier
              TierName string .spec.tierName
              NodeCount integer .status.nodeCount
              Age date .metadata.creationTimestamp
            numatopologies.nodeinfo.volcano.sh v1alpha1 Numatopology Cluster short [numatopo] subresources null
            nodeshards.shard.volcano.sh v1alpha1 NodeShard Cluster short [nsh] subresources {status:{}}
              AGE date .metadata.creationTimestamp
            colocationconfigurations.config.volcano.sh v1alpha1 ColocationConfiguration Namespaced short null subresources {status:{}}
        "#]].assert_eq(&table.replace('"', ""));
    }

    #[test]
    fn validation_and_defaults() {
        let mut table = String::new();
        for kind in Kind::VOLCANO {
            if matches!(kind, Kind::JobTemplate | Kind::Command) {
                continue;
            }
            let crd = crd(kind).unwrap_or_default();
            writeln!(table, "{}", kind.info().kind).ok();
            walk("", schema_of(&crd), &mut |path, schema| {
                let is_repeated = path.contains(".jobTemplate.spec.") || path.contains(".jobSpec.");
                let rules = [
                    "required",
                    "default",
                    "minimum",
                    "maximum",
                    "minLength",
                    "maxLength",
                    "minItems",
                    "pattern",
                    "enum",
                ];
                let rules: Vec<String> = rules
                    .into_iter()
                    .filter_map(|rule| Some((rule, schema.get(rule)?)))
                    .map(|(rule, value)| match value.as_str() {
                        Some(crate::volcano::DNS_SUBDOMAIN) => "subdomain".to_owned(),
                        _ => format!("{rule}={value}"),
                    })
                    .collect();
                if !rules.is_empty() && !is_repeated && schema["x-kubernetes-int-or-string"] != true {
                    writeln!(table, "  {} {}", path.trim_start_matches('.'), rules.join(" ")).ok();
                }
            });
        }
        expect![[r#"
            Job
              spec.maxRetry default=3 minimum=0
              spec.minAvailable minimum=0
              spec.minSuccess minimum=1
              spec.networkTopology.highestTierAllowed minimum=0
              spec.networkTopology.highestTierName maxLength=253
              spec.networkTopology.mode default=hard enum=[hard,soft]
              spec.policies[].event enum=[*,PodPending,PodRunning,PodFailed,PodEvicted,Unknown,TaskCompleted,OutOfSync,CommandIssued,JobUpdated,TaskFailed]
              spec.policies[].events[] enum=[*,PodPending,PodRunning,PodFailed,PodEvicted,Unknown,TaskCompleted,OutOfSync,CommandIssued,JobUpdated,TaskFailed]
              spec.priorityClassName maxLength=253 subdomain
              spec.queue default=default maxLength=253 subdomain
              spec.schedulerName maxLength=63
              spec.tasks minItems=1
              spec.tasks[].maxRetry minimum=0
              spec.tasks[].minAvailable minimum=0
              spec.tasks[].name maxLength=63 pattern=^[a-z0-9]([-a-z0-9]*[a-z0-9])?$
              spec.tasks[].partitionPolicy required=[partitionSize,totalPartitions]
              spec.tasks[].partitionPolicy.minPartitions default=0 minimum=0
              spec.tasks[].partitionPolicy.networkTopology.highestTierAllowed minimum=0
              spec.tasks[].partitionPolicy.networkTopology.highestTierName maxLength=253
              spec.tasks[].partitionPolicy.networkTopology.mode default=hard enum=[hard,soft]
              spec.tasks[].partitionPolicy.partitionSize minimum=1
              spec.tasks[].partitionPolicy.totalPartitions minimum=1
              spec.tasks[].policies[].event enum=[*,PodPending,PodRunning,PodFailed,PodEvicted,Unknown,TaskCompleted,OutOfSync,CommandIssued,JobUpdated,TaskFailed]
              spec.tasks[].policies[].events[] enum=[*,PodPending,PodRunning,PodFailed,PodEvicted,Unknown,TaskCompleted,OutOfSync,CommandIssued,JobUpdated,TaskFailed]
              spec.tasks[].replicas minimum=0
              spec.tasks[].template.spec required=[containers]
              spec.tasks[].template.spec.containers[] required=[name]
              spec.tasks[].template.spec.containers[].ports[] required=[containerPort]
              spec.tasks[].template.spec.containers[].ports[].protocol default=TCP
              spec.tasks[].template.spec.initContainers[] required=[name]
              spec.tasks[].template.spec.initContainers[].ports[] required=[containerPort]
              spec.tasks[].template.spec.initContainers[].ports[].protocol default=TCP
              spec.tasks[].topologyPolicy enum=[none,best-effort,restricted,single-numa-node]
              spec.ttlSecondsAfterFinished minimum=0
              spec.volumes[] required=[mountPath]
              spec.volumes[].mountPath minLength=1 pattern=^[^:]+$
              spec.volumes[].volumeClaimName maxLength=253
              status.conditions[] required=[status]
              status.failed minimum=0
              status.minAvailable minimum=0
              status.pending minimum=0
              status.retryCount minimum=0
              status.running minimum=0
              status.state.phase enum=[Pending,Aborting,Aborted,Running,Restarting,Completing,Completed,Terminating,Terminated,Failed]
              status.succeeded minimum=0
              status.terminating minimum=0
              status.unknown minimum=0
              status.version minimum=0
            CronJob
              spec required=[jobTemplate,schedule]
              spec.concurrencyPolicy default=Allow enum=[Allow,Forbid,Replace]
              spec.failedJobsHistoryLimit default=1 minimum=0
              spec.startingDeadlineSeconds minimum=0
              spec.successfulJobsHistoryLimit default=3 minimum=0
              spec.suspend default=false
            JobFlow
              spec.flows[] required=[name]
              spec.flows[].dependsOn.probe.httpGetList[].httpHeader required=[name,value]
              spec.flows[].dependsOn.probe.httpGetList[].port minimum=0 maximum=65535
              spec.flows[].dependsOn.probe.httpGetList[].taskName maxLength=253
              spec.flows[].dependsOn.probe.taskStatusList[].phase maxLength=63
              spec.flows[].dependsOn.probe.taskStatusList[].taskName maxLength=253
              spec.flows[].dependsOn.probe.tcpSocketList[] required=[port]
              spec.flows[].dependsOn.probe.tcpSocketList[].port minimum=0 maximum=65535
              spec.flows[].dependsOn.probe.tcpSocketList[].taskName maxLength=253
              spec.flows[].name minLength=1
              spec.jobRetainPolicy enum=[retain,delete]
              status.jobStatusList[].restartCount minimum=0
              status.state.phase enum=[Succeed,Terminating,Failed,Running,Pending]
            PodGroup
              spec.minMember minimum=0
              spec.networkTopology.highestTierAllowed minimum=0
              spec.networkTopology.highestTierName maxLength=253
              spec.networkTopology.mode default=hard enum=[hard,soft]
              spec.priorityClassName maxLength=253
              spec.queue default=default maxLength=253 subdomain
              spec.subGroupPolicy[].labelSelector.matchExpressions[] required=[key,operator]
              spec.subGroupPolicy[].minSubGroups default=0 minimum=0
              spec.subGroupPolicy[].name maxLength=253
              spec.subGroupPolicy[].networkTopology.highestTierAllowed minimum=0
              spec.subGroupPolicy[].networkTopology.highestTierName maxLength=253
              spec.subGroupPolicy[].networkTopology.mode default=hard enum=[hard,soft]
              spec.subGroupPolicy[].subGroupSize default=1 minimum=1
              status.failed minimum=0
              status.phase enum=[Pending,Running,Unknown,Inqueue,Completed]
              status.running minimum=0
              status.succeeded minimum=0
            Queue
              spec.dequeueStrategy default=traverse enum=[fifo,traverse]
              spec.parent maxLength=253 subdomain
              spec.priority minimum=0
              spec.type maxLength=253
              spec.weight default=1 minimum=1 maximum=65535
              status.completed minimum=0
              status.inqueue minimum=0
              status.pending minimum=0
              status.running minimum=0
              status.state enum=[Open,Closed,Closing,Unknown]
              status.unknown minimum=0
            HyperNode
              spec required=[tier]
              spec.members minItems=1
              spec.members[] required=[type]
              spec.members[].selector.exactMatch required=[name]
              spec.members[].selector.exactMatch.name minLength=1 maxLength=253 subdomain
              spec.members[].selector.labelMatch.matchExpressions[] required=[key,operator]
              spec.members[].selector.regexMatch required=[pattern]
              spec.members[].selector.regexMatch.pattern minLength=1
              spec.members[].type enum=[Node,HyperNode]
              spec.tier minimum=0
              spec.tierName maxLength=253
              status.conditions[] required=[lastTransitionTime,message,reason,status,type]
              status.conditions[].message maxLength=32768
              status.conditions[].observedGeneration minimum=0
              status.conditions[].reason minLength=1 maxLength=1024 pattern=^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$
              status.conditions[].status enum=[True,False,Unknown]
              status.conditions[].type maxLength=316 pattern=^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$
              status.nodeCount minimum=0
            Numatopology
              spec.cpuDetail{}.core minimum=0
              spec.cpuDetail{}.numa minimum=0
              spec.cpuDetail{}.socket minimum=0
            NodeShard
               required=[spec]
              spec required=[nodesDesired]
            ColocationConfiguration
               required=[spec]
              spec.memoryQos.highRatio default=100 minimum=0 maximum=100
              spec.memoryQos.lowRatio default=0 minimum=0 maximum=100
              spec.memoryQos.minRatio default=0 minimum=0 maximum=100
              spec.selector.matchExpressions[] required=[key,operator]
              status.conditions[] required=[lastTransitionTime,message,reason,status,type]
              status.conditions[].message maxLength=32768
              status.conditions[].observedGeneration minimum=0
              status.conditions[].reason minLength=1 maxLength=1024 pattern=^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$
              status.conditions[].status enum=[True,False,Unknown]
              status.conditions[].type maxLength=316 pattern=^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$
        "#]].assert_eq(&table.replace('"', ""));
    }
}
