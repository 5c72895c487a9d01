//! The built-in resources: one row each.
//!
//! A row says what a resource is called and where it differs from the ordinary one: namespaced, with a DNS subdomain for
//! a name, all verbs, no generation, no status.

use std::sync::Arc;

use krafla_api::Scope;
use krafla_schema::names::NameRule;

use super::conversion::Conversion;
use super::scale::Scale;
use super::{Generation, Names, Resource, Subresource};
use crate::kinds::admission_policy::{AdmissionPolicy, PolicyBinding};
use crate::kinds::workload::Replicated;
use crate::kinds::{self, Rules};
use crate::store::ResourceId;
use crate::table::{self, Columns};

const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const NO_COLLECTION_DELETE: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];
const READ: &[&str] = &["get", "list"];
const READ_WRITE: &[&str] = &["get", "patch", "update"];
const CONNECT: &[&str] = &["create", "get"];
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];

const STATUS: Subresource = Subresource { name: "status", body: None, verbs: READ_WRITE };
const SCALE: Subresource =
    Subresource { name: "scale", body: Some(["autoscaling", "v1", "Scale"]), verbs: READ_WRITE };

/// All built-in resources.
pub(super) fn resources() -> Vec<Resource> {
    let mut rows = Vec::new();
    rows.extend(core());
    rows.extend(workloads());
    rows.extend(cluster());
    rows.extend(control());
    rows.extend(devices());
    rows.extend(reviews());
    rows.into_iter().map(Row::build).collect()
}

/// `v1`.
fn core() -> Vec<Row> {
    let v1 = |kind, plural| Row::new("", "v1", kind, plural);
    vec![
        v1("Binding", "bindings").verbs(CREATE),
        v1("ComponentStatus", "componentstatuses")
            .singular("componentstatus")
            .cluster()
            .short("cs")
            .verbs(READ),
        v1("ConfigMap", "configmaps").short("cm").columns(table::CONFIG_MAP).rules(kinds::config::ConfigMap),
        v1("Endpoints", "endpoints")
            .singular("endpoints")
            .short("ep")
            .create_on_update()
            .deprecated("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
            .columns(table::ENDPOINTS)
            .rules(kinds::network::Endpoints),
        v1("Event", "events")
            .short("ev")
            .named(NameRule::PathSegment)
            .create_on_update()
            .selectable(&EVENT_FIELDS)
            .columns(table::EVENT)
            .rules(kinds::event::Event::Core),
        v1("LimitRange", "limitranges").short("limits").create_on_update().rules(kinds::limits::LimitRange),
        v1("Namespace", "namespaces")
            .returns_deleted()
            .cluster()
            .short("ns")
            .named(NameRule::DnsLabel)
            .verbs(NO_COLLECTION_DELETE)
            .status()
            .sub("finalize", None, &["update"])
            .selectable(&["status.phase"])
            .columns(table::NAMESPACE)
            .rules(kinds::namespace::Namespace),
        v1("Node", "nodes")
            .cluster()
            .short("no")
            .status()
            .sub("proxy", Some(["", "v1", "NodeProxyOptions"]), PROXY)
            .selectable(&["spec.unschedulable"])
            .columns(table::NODE)
            .rules(kinds::node::Node),
        v1("PersistentVolumeClaim", "persistentvolumeclaims")
            .short("pvc")
            .status()
            .returns_deleted()
            .columns(table::PERSISTENT_VOLUME_CLAIM)
            .rules(kinds::volume::PersistentVolumeClaim),
        v1("PersistentVolume", "persistentvolumes")
            .cluster()
            .short("pv")
            .status()
            .returns_deleted()
            .columns(table::PERSISTENT_VOLUME)
            .rules(kinds::volume::PersistentVolume),
        v1("Pod", "pods")
            .returns_deleted()
            .short("po")
            .in_all()
            .counted()
            .status()
            .sub("attach", Some(["", "v1", "PodAttachOptions"]), CONNECT)
            .sub("binding", Some(["", "v1", "Binding"]), CREATE)
            .sub("ephemeralcontainers", None, READ_WRITE)
            .sub("eviction", Some(["policy", "v1", "Eviction"]), CREATE)
            .sub("exec", Some(["", "v1", "PodExecOptions"]), CONNECT)
            .sub("log", None, &["get"])
            .sub("portforward", Some(["", "v1", "PodPortForwardOptions"]), CONNECT)
            .sub("proxy", Some(["", "v1", "PodProxyOptions"]), PROXY)
            .sub("resize", None, READ_WRITE)
            .selectable(&POD_FIELDS)
            .columns(table::POD)
            .rules(kinds::pod::Pod),
        v1("PodTemplate", "podtemplates")
            .returns_deleted()
            .counted()
            .columns(table::POD_TEMPLATE)
            .rules(kinds::workload::PodTemplate),
        v1("ReplicationController", "replicationcontrollers")
            .short("rc")
            .in_all()
            .counted()
            .status()
            .scale()
            .selectable(&["status.replicas"])
            .columns(table::REPLICATION_CONTROLLER)
            .rules(Replicated::ReplicationController),
        v1("ResourceQuota", "resourcequotas")
            .returns_deleted()
            .short("quota")
            .status()
            .columns(table::RESOURCE_QUOTA)
            .rules(kinds::limits::ResourceQuota),
        v1("Secret", "secrets").selectable(&["type"]).columns(table::SECRET).rules(kinds::config::Secret),
        v1("ServiceAccount", "serviceaccounts")
            .returns_deleted()
            .short("sa")
            .sub("token", Some(["authentication.k8s.io", "v1", "TokenRequest"]), CREATE)
            .columns(table::SERVICE_ACCOUNT)
            .rules(kinds::account::ServiceAccount),
        v1("Service", "services")
            .returns_deleted()
            .short("svc")
            .in_all()
            .named(NameRule::DnsLabel)
            .status()
            .sub("proxy", Some(["", "v1", "ServiceProxyOptions"]), PROXY)
            .create_on_update()
            .selectable(&["spec.clusterIP", "spec.type"])
            .columns(table::SERVICE)
            .rules(kinds::service::Service),
    ]
}

const POD_FIELDS: [&str; 9] = [
    "spec.hostNetwork",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.nominatedNodeName",
    "status.phase",
    "status.podIP",
    "status.podIPs",
];

const EVENT_FIELDS: [&str; 12] = [
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.resourceVersion",
    "involvedObject.uid",
    "reason",
    "reportingComponent",
    "reportingController",
    "source",
    "type",
];

/// What runs pods, and what belongs to them.
fn workloads() -> Vec<Row> {
    let apps = |kind, plural| Row::new("apps", "v1", kind, plural);
    vec![
        apps("ControllerRevision", "controllerrevisions")
            .columns(table::CONTROLLER_REVISION)
            .rules(kinds::driver::ControllerRevision),
        apps("DaemonSet", "daemonsets")
            .short("ds")
            .in_all()
            .counted()
            .status()
            .columns(table::DAEMON_SET)
            .rules(Replicated::DaemonSet),
        apps("Deployment", "deployments")
            .short("deploy")
            .in_all()
            .counted()
            .status()
            .scale()
            .columns(table::DEPLOYMENT)
            .rules(Replicated::Deployment),
        apps("ReplicaSet", "replicasets")
            .short("rs")
            .in_all()
            .counted()
            .status()
            .scale()
            .columns(table::REPLICA_SET)
            .rules(Replicated::ReplicaSet),
        apps("StatefulSet", "statefulsets")
            .short("sts")
            .named(NameRule::DnsLabel)
            .in_all()
            .counted()
            .status()
            .scale()
            .columns(table::STATEFUL_SET)
            .rules(Replicated::StatefulSet),
        Row::new("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
            .short("hpa")
            .in_all()
            .status()
            .columns(table::AUTOSCALER)
            .rules(kinds::autoscaler::Autoscaler::V2),
        Row::new("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
            .short("hpa")
            .in_all()
            .status()
            .columns(table::AUTOSCALER)
            .stored_as(("autoscaling", "v2"), kinds::autoscaler::conversion())
            .rules(kinds::autoscaler::Autoscaler::V1),
        Row::new("batch", "v1", "CronJob", "cronjobs")
            .short("cj")
            .in_all()
            .counted()
            .status()
            .columns(table::CRON_JOB)
            .rules(kinds::job::CronJob),
        Row::new("batch", "v1", "Job", "jobs")
            .in_all()
            .counted()
            .status()
            .selectable(&["status.successful"])
            .columns(table::JOB)
            .rules(kinds::job::Job),
        Row::new("coordination.k8s.io", "v1", "Lease", "leases")
            .needs_version()
            .create_on_update()
            .columns(table::LEASE)
            .rules(kinds::lease::Lease),
        Row::new("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
            .counted()
            .columns(table::ENDPOINT_SLICE)
            .rules(kinds::network::EndpointSlice),
        Row::new("events.k8s.io", "v1", "Event", "events")
            .short("ev")
            .create_on_update()
            .selectable(&EVENT_FIELDS)
            .columns(table::EVENT)
            .stored_as(("", "v1"), kinds::event::conversion())
            .rules(kinds::event::Event::New),
        Row::new("networking.k8s.io", "v1", "Ingress", "ingresses")
            .singular("ingress")
            .short("ing")
            .counted()
            .status()
            .columns(table::INGRESS)
            .rules(kinds::network::Ingress),
        Row::new("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
            .singular("networkpolicy")
            .short("netpol")
            .counted()
            .columns(table::NETWORK_POLICY)
            .rules(kinds::network::NetworkPolicy),
        Row::new("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
            .short("pdb")
            .named(NameRule::PathSegment)
            .counted()
            .needs_version()
            .status()
            .columns(table::DISRUPTION_BUDGET)
            .rules(kinds::policy::PodDisruptionBudget),
    ]
}

/// What is set up once for a cluster.
fn cluster() -> Vec<Row> {
    let rbac = |kind, plural| {
        let row = Row::new("rbac.authorization.k8s.io", "v1", kind, plural);
        row.named(NameRule::PathSegment).create_on_update()
    };
    let admission = |kind, plural| {
        let row = Row::new("admissionregistration.k8s.io", "v1", kind, plural);
        row.cluster().counted().needs_version().category("api-extensions")
    };
    let storage = |kind, plural| Row::new("storage.k8s.io", "v1", kind, plural);
    vec![
        admission("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
            .singular("mutatingadmissionpolicy")
            .columns(table::MUTATING_POLICY)
            .rules(AdmissionPolicy { is_mutating: true }),
        admission("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
            .columns(table::ADMISSION_POLICY_BINDING)
            .rules(PolicyBinding { is_mutating: true }),
        admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
            .columns(table::WEBHOOK_CONFIGURATION)
            .rules(kinds::webhook::Configuration { is_mutating: true }),
        admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
            .singular("validatingadmissionpolicy")
            .status()
            .columns(table::ADMISSION_POLICY)
            .rules(AdmissionPolicy { is_mutating: false }),
        admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
            .columns(table::ADMISSION_POLICY_BINDING)
            .rules(PolicyBinding { is_mutating: false }),
        admission("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
            .columns(table::WEBHOOK_CONFIGURATION)
            .rules(kinds::webhook::Configuration { is_mutating: false }),
        Row::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
            .cluster()
            .short("crd")
            .short("crds")
            .category("api-extensions")
            .counted()
            .needs_version()
            .status()
            .columns(table::CUSTOM_RESOURCE_DEFINITION)
            .rules(kinds::crd::CustomResourceDefinition),
        Row::new("networking.k8s.io", "v1", "IngressClass", "ingressclasses")
            .singular("ingressclass")
            .cluster()
            .counted()
            .columns(table::INGRESS_CLASS)
            .rules(kinds::network::IngressClass),
        Row::new("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
            .singular("runtimeclass")
            .cluster()
            .needs_version()
            .create_on_update()
            .columns(table::RUNTIME_CLASS)
            .rules(kinds::driver::RuntimeClass),
        rbac("ClusterRole", "clusterroles").cluster().rules(kinds::rbac::Role { is_namespaced: false }),
        rbac("ClusterRoleBinding", "clusterrolebindings")
            .cluster()
            .columns(table::ROLE_BINDING)
            .rules(kinds::rbac::Binding { is_namespaced: false }),
        rbac("Role", "roles").rules(kinds::rbac::Role { is_namespaced: true }),
        rbac("RoleBinding", "rolebindings")
            .columns(table::ROLE_BINDING)
            .rules(kinds::rbac::Binding { is_namespaced: true }),
        Row::new("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses")
            .singular("priorityclass")
            .cluster()
            .short("pc")
            .generation(Generation::Fixed)
            .columns(table::PRIORITY_CLASS)
            .rules(kinds::priority::PriorityClass),
        storage("CSIDriver", "csidrivers")
            .cluster()
            .needs_version()
            .returns_deleted()
            .columns(table::CSI_DRIVER)
            .generation(Generation::CountsChanges)
            .rules(kinds::driver::CsiDriver),
        storage("CSINode", "csinodes")
            .cluster()
            .needs_version()
            .returns_deleted()
            .columns(table::CSI_NODE)
            .rules(kinds::driver::CsiNode),
        storage("CSIStorageCapacity", "csistoragecapacities")
            .singular("csistoragecapacity")
            .needs_version()
            .rules(kinds::driver::CsiStorageCapacity),
        storage("StorageClass", "storageclasses")
            .singular("storageclass")
            .cluster()
            .returns_deleted()
            .short("sc")
            .columns(table::STORAGE_CLASS)
            .rules(kinds::driver::StorageClass),
        storage("VolumeAttachment", "volumeattachments")
            .cluster()
            .needs_version()
            .status()
            .returns_deleted()
            .columns(table::VOLUME_ATTACHMENT)
            .rules(kinds::driver::VolumeAttachment),
        storage("VolumeAttributesClass", "volumeattributesclasses")
            .singular("volumeattributesclass")
            .cluster()
            .returns_deleted()
            .short("vac")
            .columns(table::VOLUME_ATTRIBUTES_CLASS)
            .rules(kinds::driver::VolumeAttributesClass),
    ]
}

/// How requests are served: which server answers, and which requests come first.
fn control() -> Vec<Row> {
    let flow = |kind, plural| {
        let row = Row::new("flowcontrol.apiserver.k8s.io", "v1", kind, plural);
        row.cluster().counted().status()
    };
    vec![
        Row::new("apiregistration.k8s.io", "v1", "APIService", "apiservices")
            .cluster()
            .named(NameRule::PathSegment)
            .needs_version()
            .status()
            .category("api-extensions")
            .columns(table::API_SERVICE)
            .rules(kinds::aggregation::ApiService),
        Row::new("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests")
            .cluster()
            .short("csr")
            .named(NameRule::PathSegment)
            .status()
            .sub("approval", None, READ_WRITE)
            .returns_deleted()
            .selectable(&["spec.signerName"])
            .columns(table::CERTIFICATE_REQUEST)
            .rules(kinds::certificate::CertificateSigningRequest),
        flow("FlowSchema", "flowschemas").columns(table::FLOW_SCHEMA).rules(kinds::flow::FlowSchema),
        flow("PriorityLevelConfiguration", "prioritylevelconfigurations")
            .columns(table::PRIORITY_LEVEL)
            .rules(kinds::flow::PriorityLevel),
    ]
}

/// Devices, and what claims them.
fn devices() -> Vec<Row> {
    let device = |kind, plural| Row::new("resource.k8s.io", "v1", kind, plural).returns_deleted();
    vec![
        device("DeviceClass", "deviceclasses")
            .singular("deviceclass")
            .cluster()
            .counted()
            .columns(table::NAME_AND_AGE_TEXT)
            .rules(kinds::device::DeviceClass),
        device("ResourceClaim", "resourceclaims")
            .status()
            .columns(table::RESOURCE_CLAIM)
            .rules(kinds::device::ResourceClaim),
        device("ResourceClaimTemplate", "resourceclaimtemplates")
            .columns(table::NAME_AND_AGE_TEXT)
            .rules(kinds::device::ResourceClaimTemplate),
        device("ResourceSlice", "resourceslices")
            .cluster()
            .counted()
            .selectable(&["spec.driver", "spec.nodeName"])
            .columns(table::RESOURCE_SLICE)
            .rules(kinds::device::ResourceSlice),
    ]
}

/// Questions that are answered and not stored.
fn reviews() -> Vec<Row> {
    let authorization = |kind, plural| Row::new("authorization.k8s.io", "v1", kind, plural).verbs(CREATE);
    let authentication = |kind, plural| Row::new("authentication.k8s.io", "v1", kind, plural).verbs(CREATE);
    vec![
        authentication("SelfSubjectReview", "selfsubjectreviews").cluster(),
        authentication("TokenReview", "tokenreviews").cluster(),
        authorization("LocalSubjectAccessReview", "localsubjectaccessreviews"),
        authorization("SelfSubjectAccessReview", "selfsubjectaccessreviews").cluster(),
        authorization("SelfSubjectRulesReview", "selfsubjectrulesreviews").cluster(),
        authorization("SubjectAccessReview", "subjectaccessreviews").cluster(),
    ]
}

/// One row of the table: the names, and whatever is not ordinary.
struct Row {
    resource: Resource,
}

impl Row {
    fn new(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Row {
        let names = Names {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            list_kind: format!("{kind}List").into(),
            plural: plural.into(),
            singular: kind.to_lowercase().into(),
            short_names: Vec::new(),
            categories: Vec::new(),
        };
        let resource = Resource {
            stored_as: (names.api_version().into(), names.kind.clone()),
            names,
            scope: Scope::Namespaced,
            storage: storage_of(group, plural),
            verbs: ALL,
            subresources: Vec::new(),
            name_rule: NameRule::DnsSubdomain,
            generation: Generation::Untouched,
            unconditional_update: true,
            create_on_update: false,
            returns_deleted: false,
            selectable: Vec::new(),
            columns: table::NAME_AND_TIME.into(),
            rules: Arc::new(kinds::Plain),
            schema: krafla_schema::builtin().kind(group, version, kind),
            custom: None,
            is_custom: false,
            scale: None,
            conversion: None,
            deprecation: None,
        };
        Row { resource }
    }

    fn build(self) -> Resource {
        self.resource
    }

    fn singular(mut self, singular: &'static str) -> Row {
        self.resource.names.singular = singular.into();
        self
    }

    fn short(mut self, name: &'static str) -> Row {
        self.resource.names.short_names.push(name.into());
        self
    }

    fn category(mut self, name: &'static str) -> Row {
        self.resource.names.categories.push(name.into());
        self
    }

    fn in_all(self) -> Row {
        self.category("all")
    }

    fn cluster(mut self) -> Row {
        self.resource.scope = Scope::Cluster;
        self
    }

    fn named(mut self, rule: NameRule) -> Row {
        self.resource.name_rule = rule;
        self
    }

    fn verbs(mut self, verbs: &'static [&'static str]) -> Row {
        self.resource.verbs = verbs;
        self
    }

    fn sub(
        mut self,
        name: &'static str,
        body: Option<[&'static str; 3]>,
        verbs: &'static [&'static str],
    ) -> Row {
        self.resource.subresources.push(Subresource { name, body, verbs });
        self
    }

    fn status(mut self) -> Row {
        self.resource.subresources.push(STATUS);
        self
    }

    fn scale(mut self) -> Row {
        self.resource.subresources.push(SCALE);
        self.resource.scale = Some(Scale::default());
        self
    }

    fn generation(mut self, generation: Generation) -> Row {
        self.resource.generation = generation;
        self
    }

    fn counted(self) -> Row {
        self.generation(Generation::Counts)
    }

    fn needs_version(mut self) -> Row {
        self.resource.unconditional_update = false;
        self
    }

    fn create_on_update(mut self) -> Row {
        self.resource.create_on_update = true;
        self
    }

    /// Served here, but stored in the form of another group or version.
    fn stored_as(mut self, (group, version): (&str, &str), conversion: Conversion) -> Row {
        let resource = &mut self.resource;
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        resource.stored_as.0 = api_version.into();
        resource.storage = storage_of(group, &resource.names.plural);
        resource.conversion = Some(conversion);
        self
    }

    fn deprecated(mut self, warning: &str) -> Row {
        self.resource.deprecation = Some(warning.to_owned());
        self
    }

    fn returns_deleted(mut self) -> Row {
        self.resource.returns_deleted = true;
        self
    }

    fn selectable(mut self, fields: &[&str]) -> Row {
        self.resource.selectable = fields.iter().map(|field| (*field).to_owned()).collect();
        self
    }

    fn columns(mut self, columns: impl Into<Columns>) -> Row {
        self.resource.columns = columns.into();
        self
    }

    fn rules(mut self, rules: impl Rules + 'static) -> Row {
        self.resource.rules = Arc::new(rules);
        self
    }
}

/// Where the objects of a resource are stored.
fn storage_of(group: &str, plural: &str) -> ResourceId {
    if group.is_empty() {
        ResourceId::from(plural)
    } else {
        ResourceId::from(format!("{plural}.{group}").as_str())
    }
}

/// What kube-apiserver calls the resource in its storage, which some messages show.
pub(super) fn storage_prefix(resource: &Resource) -> &str {
    match (&*resource.names.group, &*resource.names.plural) {
        ("", "endpoints") => "services/endpoints",
        ("", "limitranges") => "limitranges",
        ("", "nodes") => "minions",
        ("", "replicationcontrollers") => "controllers",
        ("", "services") => "services/specs",
        ("networking.k8s.io", "ingresses") => "ingress",
        (_, plural) => plural,
    }
}
