//! What to do about a cause: one line, and the command that does it.

use std::collections::BTreeMap;

use krafla_api::Quantity;
use krafla_why::{Lease, Means, Reason};
use serde_json::{Value, json};

use crate::amounts::asked;
use crate::facts::{Facts, count, field, list, pairs, quantity, text};
use crate::resource::Resource;
use crate::{Link, Subject, gang, nodes};

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The action in one line.
    pub what: String,
    /// The command that takes it, if there is one.
    pub command: Option<String>,
}

fn run(what: impl Into<String>, command: impl Into<String>) -> Remedy {
    Remedy { what: what.into(), command: Some(command.into()) }
}

fn say(what: impl Into<String>) -> Remedy {
    Remedy { what: what.into(), command: None }
}

/// An object as an argument of kubectl.
fn named(subject: &Subject) -> String {
    match subject.namespace.as_str() {
        "" => format!("{}/{}", subject.resource.word(), subject.name),
        namespace => format!("{}/{} -n {namespace}", subject.resource.word(), subject.name),
    }
}

fn patch(subject: &Subject, patch: &Value) -> String {
    format!("kubectl patch {} --type merge -p '{patch}'", named(subject))
}

fn json_patch(subject: &Subject, patch: &Value) -> String {
    format!("kubectl patch {} --type json -p '{patch}'", named(subject))
}

fn apply(object: &Value) -> String {
    format!("echo '{object}' | kubectl apply -f -")
}

/// Changes fields that cannot be changed in place.
fn edit_and_replace(subject: &Subject) -> String {
    let file = format!("{}.yaml", subject.name);
    format!(
        "kubectl get {} -o yaml > {file} && ${{EDITOR:-vi}} {file} && kubectl replace --force -f {file}",
        named(subject)
    )
}

/// The object that a person wrote, of which an object is a part.
fn author(facts: &Facts, subject: &Subject) -> Subject {
    let mut at = subject.clone();
    for _ in 0..4 {
        let Some(object) = at.find(facts) else { return at };
        let owner = list(object, "metadata.ownerReferences")
            .find(|it| it.get("controller") != Some(&Value::Bool(false)));
        let Some(owner) = owner else { return at };
        let Some(resource) = Resource::from_manifest(text(owner, "apiVersion"), text(owner, "kind")) else {
            return at;
        };
        // The template of a flow's job is an object of its own.
        if resource == Resource::JobFlow {
            return at;
        }
        at = Subject { resource, namespace: at.namespace, name: text(owner, "name").to_owned() };
    }
    at
}

/// What to do about a chain of causes.
pub(crate) fn remedies(facts: &Facts, subject: &Subject, chain: &[Link]) -> Vec<Remedy> {
    let mut found = Vec::new();
    for link in chain.iter().rev() {
        let more = of_link(facts, subject, link);
        found.extend(more.into_iter().filter(|it| !found.contains(it)).collect::<Vec<_>>());
        if !found.is_empty() {
            break;
        }
    }
    found
}

fn of_link(facts: &Facts, subject: &Subject, link: &Link) -> Vec<Remedy> {
    let about = &link.about;
    let author = author(facts, if about.resource == Resource::Queue { subject } else { about });
    let object = about.find(facts).unwrap_or(&Value::Null);
    let namespace = if about.namespace.is_empty() { &subject.namespace } else { &about.namespace };
    let in_namespace = |resource: Resource, name: &str| Subject {
        resource,
        namespace: if resource.is_namespaced() { namespace.clone() } else { String::new() },
        name: name.to_owned(),
    };
    let pod_logs = |previous: &str| format!("kubectl logs {} -n {}{previous}", about.name, about.namespace);
    let edit = |what: String| run(what, edit_and_replace(&author));
    match link.reason.root() {
        // Capacity.
        Reason::LargerThanNodes { resource, largest, .. } => vec![
            edit(format!("lower the request for {resource} to at most {largest}")),
            say(format!("add a node with more {resource}")),
        ],
        Reason::NeverFitsNodes { resource, limit, .. } => {
            let mut all = smaller_gang(facts, &author);
            all.push(edit(format!("lower the requests: all nodes together have {limit} {resource}")));
            all.push(say(format!("add nodes with more {resource}")));
            all
        }
        Reason::ResourceUnknown { resource } => vec![
            edit(format!("remove the request for {resource}")),
            say(format!("add a node that offers {resource}; for `krafla up`: --capacity {resource}=1")),
        ],
        Reason::NodesFull { resource, .. } | Reason::ClusterFull { resource, .. } => {
            let mut all = smaller_gang(facts, &author);
            let using = format!("see which pods use {resource}");
            all.push(say(format!("wait until other jobs have ended, or delete one of them; {using}:")));
            if let Some(last) = all.last_mut() {
                last.command =
                    Some("kubectl get pods -A -o wide --field-selector status.phase=Running".to_owned());
            }
            all.push(edit(format!("lower the request for {resource}")));
            all
        }
        Reason::ClusterOverused => vec![
            run("wait until other jobs have ended; see which pods run", "kubectl get pods -A -o wide"),
            edit("lower the requests".to_owned()),
        ],
        Reason::NodesCrowded { .. } => vec![
            run("wait until pods have ended, or delete finished work", "kubectl get pods -A -o wide"),
            say("add a node"),
        ],
        Reason::NoNodes => vec![run("add a node; see what there is", "kubectl get nodes")],
        Reason::Tainted { nodes, taint } => {
            let node = nodes.first().map_or("NODE", |it| it.as_str());
            let (key, effect) = taint.rsplit_once(':').unwrap_or((taint, "NoSchedule"));
            let key = key.split('=').next().unwrap_or(key);
            vec![
                run("remove the taint", format!("kubectl taint node {node} {key}:{effect}-")),
                edit(format!("add a toleration for {taint} to the pod template")),
            ]
        }
        Reason::SelectorUnmatched { wanted } => vec![
            run("label a node", format!("kubectl label node {} {wanted} --overwrite", any_node(facts))),
            edit(format!("remove {wanted} from nodeSelector of the pod template")),
        ],
        Reason::AffinityUnmatched => {
            let label = nodes::label_for_affinity(facts, field(object, "spec"));
            let label = label.map(|(key, value)| {
                run(
                    "label a node",
                    format!("kubectl label node {} {key}={value} --overwrite", any_node(facts)),
                )
            });
            let edit = edit("correct nodeAffinity of the pod template".to_owned());
            label.into_iter().chain([edit]).collect()
        }
        Reason::PodsUnmatched { rule } => vec![
            edit(format!("correct {rule} of the pod template")),
            say("wait until other pods have ended or started"),
        ],
        Reason::NodesCordoned { nodes } => {
            let node = nodes.first().map_or("NODE", |it| it.as_str());
            vec![run("let the node take pods again", format!("kubectl uncordon {node}"))]
        }
        Reason::NodesNotReady { nodes } => {
            let node = nodes.first().map_or("NODE", |it| it.as_str());
            vec![run("see what the node reports", format!("kubectl describe node {node}"))]
        }
        Reason::PortTaken { port } => vec![
            edit(format!("use another hostPort than {port}, or none")),
            say("wait until the other pod has ended"),
        ],
        Reason::NodeMissing { node } => {
            vec![edit(format!("remove spec.nodeName {node}, or name an existing node"))]
        }
        Reason::NodeSilent { node } => {
            vec![run(
                "see whether the node is ready and its kubelet runs",
                format!("kubectl describe node {node}"),
            )]
        }
        Reason::NotHandled { scheduler } => vec![
            say(format!("start the scheduler {scheduler}")),
            edit(match author.resource {
                Resource::VcJob => "set spec.schedulerName to volcano".to_owned(),
                _ => "remove spec.schedulerName from the pod template, or set it to volcano".to_owned(),
            }),
        ],
        Reason::Gated { pod, .. } => {
            let pod = in_namespace(Resource::Pod, pod.as_str());
            vec![
                run(
                    "remove the gates, if their controller does not",
                    json_patch(&pod, &json!([{ "op": "remove", "path": "/spec/schedulingGates" }])),
                ),
                say("wait for the controller that owns the gates"),
            ]
        }
        Reason::SchedulingGated => vec![run(
            "remove the gates, if their controller does not",
            json_patch(about, &json!([{ "op": "remove", "path": "/spec/schedulingGates" }])),
        )],

        // Queues.
        Reason::QueueMissing { queue } | Reason::QueueMissingForJob { queue } | Reason::NoQueue { queue } => {
            vec![
                run("create the queue", format!("krafla vcctl queue create --name {queue} --weight 1")),
                edit("use another queue in spec.queue".to_owned()),
            ]
        }
        Reason::QueueClosed { queue, .. } | Reason::QueueIsClosed { queue } => vec![
            run("open the queue", format!("krafla vcctl queue operate --action open --name {queue}")),
            edit("use another queue in spec.queue".to_owned()),
        ],
        Reason::QueueLimit { queue, resource }
        | Reason::QueueFull { queue, resource, .. }
        | Reason::NeverFitsQueue { queue, resource, .. }
        | Reason::QueueQuota { queue, resource } => {
            raise_capability(facts, subject, queue.as_str(), resource.as_str(), &author)
        }
        Reason::QueueShare { queue, resource } => vec![
            say("wait until other jobs of the queue have ended"),
            run(
                format!("give the queue a larger share of {resource}"),
                patch(
                    &in_namespace(Resource::Queue, queue.as_str()),
                    &json!({ "spec": { "weight": weight(facts, queue.as_str()) } }),
                ),
            ),
        ],
        Reason::Behind { first } => {
            let (namespace, name) = first.as_str().split_once('/').unwrap_or(("default", first.as_str()));
            vec![
                run("see why the first in line waits", format!("krafla why podgroup/{name} -n {namespace}")),
                say("give this job a higher priorityClassName, or use another queue"),
            ]
        }
        Reason::PodsLeaving | Reason::TooEarly => vec![say("wait: the scheduler makes room")],
        Reason::GangNotReady { .. } | Reason::PodsMissing { .. } | Reason::PodsOfTaskMissing { .. } => {
            let mut all = vec![run(
                "see which pods are missing or wait",
                format!("kubectl get pods,podgroup -n {namespace}"),
            )];
            all.extend(smaller_gang(facts, &author));
            all
        }

        // Refusals.
        Reason::QuotaExceeded { quota, requested, used, limited } => {
            let hard = raised_quota(requested, used, limited);
            let subject = in_namespace(Resource::ResourceQuota, quota.as_str());
            vec![
                run("raise the quota", patch(&subject, &json!({ "spec": { "hard": hard } }))),
                run("or end pods that use it up", format!("kubectl get pods -n {namespace}")),
                edit("or lower the requests".to_owned()),
            ]
        }
        Reason::QuotaUsedUp { quota } => vec![
            run(
                "see what the quota allows, and raise it",
                format!("kubectl describe resourcequota {quota} -n {namespace}"),
            ),
            run("or end pods that use it up", format!("kubectl get pods -n {namespace}")),
        ],
        Reason::QuotaUnspecified { missing, .. } => {
            vec![edit(format!("set {missing} in resources of the pod template"))]
        }
        Reason::AboveLimit { resource, of, but, .. } | Reason::AboveLimitUnset { resource, of, but, .. } => {
            limits(facts, &author, namespace, resource.as_str(), of.as_str(), but, "max")
        }
        Reason::BelowLimit { resource, of, but, .. } | Reason::BelowLimitUnset { resource, of, but, .. } => {
            limits(facts, &author, namespace, resource.as_str(), of.as_str(), but, "min")
        }
        Reason::AccountMissing { name, .. } => {
            vec![run(
                "create the service account",
                format!("kubectl create serviceaccount {name} -n {namespace}"),
            )]
        }
        Reason::PriorityClassMissing { class } => vec![
            run("create the priority class", format!("kubectl create priorityclass {class} --value=1000")),
            edit("or use another priorityClassName".to_owned()),
        ],
        Reason::RuntimeClassMissing { class } => vec![
            run(
                "create the runtime class",
                apply(&json!({
                    "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass",
                    "metadata": { "name": class.as_str() }, "handler": class.as_str(),
                })),
            ),
            edit("or remove runtimeClassName from the pod template".to_owned()),
        ],
        Reason::WebhookDenied { webhook, .. } => vec![
            edit("change what the webhook objects to".to_owned()),
            run(
                format!("or see who runs {webhook}"),
                "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
            ),
        ],
        Reason::WebhookDown { .. } => vec![run(
            "start the webhook's server, or remove its configuration",
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        )],
        Reason::PolicyDenied { policy, .. } => vec![
            edit("change what the policy objects to".to_owned()),
            run("or see the policy", format!("kubectl get validatingadmissionpolicy {policy} -o yaml")),
        ],
        Reason::PodSecurity { .. } => vec![
            edit("set the securityContext that the namespace demands".to_owned()),
            run("or see the namespace's labels", format!("kubectl get namespace {namespace} --show-labels")),
        ],
        Reason::NamespaceTerminating { namespace } => {
            vec![run(
                "create it in another namespace; see what keeps this one",
                format!("kubectl get namespace {namespace} -o yaml"),
            )]
        }
        Reason::NoRight { .. } => vec![say("grant the right with a Role and a RoleBinding")],

        // Missing objects.
        Reason::NotFound { kind, name } => missing(facts, &author, namespace, kind.as_str(), name.as_str()),
        Reason::ClaimMissing { claim, .. } | Reason::VolumeClaimMissing { claim, .. } => {
            missing(facts, &author, namespace, "persistentvolumeclaim", claim.as_str())
        }
        Reason::ClaimPending { claim } | Reason::ClaimWaits { claim, .. } => vec![run(
            "see why the claim has no volume; create one, or a StorageClass that does",
            format!("kubectl describe pvc {claim} -n {namespace}"),
        )],
        Reason::KeyMissing { key, kind, object } => {
            let name = object.as_str().rsplit('/').next().unwrap_or_default();
            let field = if kind.as_str() == "Secret" { "stringData" } else { "data" };
            let resource = if kind.as_str() == "Secret" { Resource::Secret } else { Resource::ConfigMap };
            vec![
                run(
                    "add the key",
                    patch(&in_namespace(resource, name), &json!({ field: { key.as_str(): "VALUE" } })),
                ),
                edit("or mark the reference as optional".to_owned()),
            ]
        }
        Reason::TemplateMissing { template, .. } => vec![
            run(
                "create the JobTemplate from your file",
                format!("kubectl apply -n {namespace} -f {template}.yaml"),
            ),
            edit("or correct the name of the step".to_owned()),
        ],
        Reason::VolumesLate { .. } => vec![run(
            "see which volume is late",
            format!("kubectl describe pod {} -n {namespace}", about.name),
        )],

        // Containers.
        Reason::CommandNotFound { command, .. }
        | Reason::CommandMissing { command }
        | Reason::NotExecutable { command } => vec![
            edit(format!("correct the command {:?}", command.as_str())),
            say(format!("or install {} on the machine of the node", command.as_str())),
        ],
        Reason::CommandNotInImage { command } => {
            vec![edit(format!("correct the command {:?}, or use an image that has it", command.as_str()))]
        }
        Reason::NoWorkingDir { dir } => vec![run("create the directory", format!("mkdir -p {dir}"))],
        Reason::ImagePull { image } | Reason::ImagePullFailed { image, .. } => vec![
            edit(format!("correct the image {image:?}")),
            run(
                "or give the pod credentials for its registry",
                format!(
                    "kubectl create secret docker-registry NAME -n {namespace} --docker-server=SERVER --docker-username=USER --docker-password=PASSWORD"
                ),
            ),
        ],
        Reason::OutOfMemory { .. } => vec![
            edit(match memory_limit(object) {
                Some((limit, double)) => {
                    format!("raise resources.limits.memory from {limit}, for example to {double}")
                }
                None => "raise resources.limits.memory".to_owned(),
            }),
            run("or find out what uses the memory", pod_logs("")),
        ],
        Reason::Exited { container, code } => {
            let previous = if text(object, "status.phase") == "Failed" { "" } else { " --previous" };
            let logs = format!("{} -c {container}{previous}", pod_logs(""));
            match code {
                126 | 127 => vec![
                    run("correct the command: the shell did not find it; see the log", logs),
                    edit("then create it again".to_owned()),
                ],
                _ => vec![
                    run("see what the container printed", logs),
                    edit("correct the program or its input, and create it again".to_owned()),
                ],
            }
        }
        Reason::CrashLoop { .. } | Reason::Restarts { .. } => {
            vec![run("see why the container ended", pod_logs(" --previous"))]
        }
        Reason::ProbeFails { .. } => {
            vec![run("see what the container printed", pod_logs("")), edit("or correct the probe".to_owned())]
        }
        Reason::Evicted { .. } => vec![
            run(
                "see what the node lacks, or who took the place",
                format!("kubectl describe pod {} -n {namespace}", about.name),
            ),
            edit("set a policy for PodEvicted (RestartJob), or a higher priorityClassName".to_owned()),
        ],
        Reason::PodDeadline => vec![edit("raise activeDeadlineSeconds of the pod template".to_owned())],

        // Jobs.
        Reason::NoController { lease: Lease::Held(holder) } => vec![run(
            format!(
                "see the logs of the lease holder {holder}, and whether its --controllers exclude this kind"
            ),
            "kubectl get lease -n volcano-system vc-controller-manager -o yaml",
        )],
        Reason::NoController { .. } => vec![
            run(
                "start the controllers",
                "krafla controller-manager --kubeconfig \"${KUBECONFIG:-$HOME/.kube/config}\"",
            ),
            say("or run `krafla up` without --without-controllers"),
        ],
        Reason::Odd { .. }
        | Reason::Contradictory { .. }
        | Reason::JobUnreadable { .. }
        | Reason::Unreadable { .. }
        | Reason::NoTasks => {
            vec![edit("correct the field, and create the job again".to_owned())]
        }
        Reason::NoReplicas => vec![run(
            "give a task replicas",
            json_patch(about, &json!([{ "op": "replace", "path": "/spec/tasks/0/replicas", "value": 1 }])),
        )],
        Reason::MinAvailable { replicas, .. } => vec![run(
            "lower minAvailable to the number of replicas",
            patch(about, &json!({ "spec": { "minAvailable": replicas } })),
        )],
        Reason::Deleted { .. } => vec![
            say("start the controller of these finalizers: it removes them when it is done"),
            run(
                "if that controller does not exist any more, remove them",
                patch(about, &json!({ "metadata": { "finalizers": null } })),
            ),
        ],
        Reason::Aborted => vec![resume(about)],
        Reason::Commanded { .. } if text(object, "status.state.phase") == "Aborted" => vec![resume(about)],
        Reason::PolicyActed { .. } if text(object, "status.state.phase") == "Aborted" => vec![resume(about)],
        Reason::Suspended | Reason::CronSuspended => {
            vec![run("resume it", patch(about, &json!({ "spec": { "suspend": false } })))]
        }
        Reason::NoParallelism => {
            vec![run("let pods run", patch(about, &json!({ "spec": { "parallelism": 1 } })))]
        }
        Reason::ManagedBy { manager } => vec![
            say(format!("run the controller {manager}")),
            edit("or create the job again without spec.managedBy".to_owned()),
        ],
        Reason::PodEnding { pod } | Reason::PodsEnding { pod, .. } => vec![
            say("wait for terminationGracePeriodSeconds of the pods"),
            run(
                "if their node is gone, delete them at once",
                format!("kubectl delete pod {pod} -n {namespace} --force --grace-period=0"),
            ),
        ],
        Reason::TaskDependsOn { on, .. } => {
            let on = on.first().map_or("", |it| it.as_str());
            vec![run(
                format!("see why task {on} has fewer ready pods than its minAvailable"),
                format!(
                    "kubectl get pods -n {namespace} -l volcano.sh/job-name={},volcano.sh/task-spec={on}",
                    about.name
                ),
            )]
        }
        Reason::TaskUnknown { .. } => vec![edit("correct dependsOn.name of the task".to_owned())],
        Reason::RetriesExhausted { .. } => {
            vec![edit("correct the cause, raise maxRetry if need be, and create the job again".to_owned())]
        }
        Reason::BackoffLimit { .. } => vec![edit(
            "correct the cause, raise backoffLimit if need be, and create the job again".to_owned(),
        )],
        Reason::DeadlineExceeded { seconds } => {
            vec![edit(format!("raise activeDeadlineSeconds above {seconds}, and create the job again"))]
        }
        Reason::FailurePolicy { .. }
        | Reason::IndexesFailed { .. }
        | Reason::DependencyFailed { .. }
        | Reason::TooFewSucceeded { .. } => vec![
            run(
                "see what the failed pods printed",
                format!("kubectl get pods -n {namespace} --field-selector status.phase=Failed"),
            ),
            edit("correct the cause, and create the job again".to_owned()),
        ],

        // Flows.
        Reason::StepDependsOn { on, .. } => {
            let step = on.first().and_then(|it| it.split(' ').next()).unwrap_or_default();
            vec![run(
                "see why that job has not completed",
                format!("krafla why vcjob/{}-{step} -n {namespace}", about.name),
            )]
        }
        Reason::StepWaitsForProbe { job, .. } => vec![run(
            "see whether the pods of that job answer",
            format!("krafla why vcjob/{job} -n {namespace}"),
        )],
        Reason::ProbeMistaken { .. } => vec![edit("correct dependsOn.probe".to_owned())],
        Reason::StepUnknown { .. } | Reason::StepsInRing { .. } => {
            vec![edit("correct dependsOn.targets".to_owned())]
        }
        Reason::ForeignJob { job, .. } => {
            vec![run("delete the other job", format!("kubectl delete vcjob {job} -n {namespace}"))]
        }
        Reason::StepAborted { step } => vec![resume(&Subject {
            resource: Resource::VcJob,
            namespace: namespace.clone(),
            name: format!("{}-{step}", about.name),
        })],
        Reason::StepFailed { step } => vec![
            run("see why the job failed", format!("krafla why vcjob/{}-{step} -n {namespace}", about.name)),
            run(
                "then delete it: the flow creates it again",
                format!("kubectl delete vcjob {}-{step} -n {namespace}", about.name),
            ),
        ],

        // CronJobs.
        Reason::RunActive { job } => vec![
            run(
                "see why the last run has not ended",
                format!(
                    "krafla why {}/{job} -n {namespace}",
                    if about.resource == Resource::CronJob { "job" } else { "vcjob" }
                ),
            ),
            run("or let runs overlap", patch(about, &json!({ "spec": { "concurrencyPolicy": "Allow" } }))),
        ],
        Reason::RunMissed { seconds, .. } => vec![
            run(
                "allow more time",
                patch(
                    about,
                    &json!({ "spec": { "startingDeadlineSeconds": seconds.saturating_mul(10).max(60) } }),
                ),
            ),
            say("the next run starts in time, if the controllers run"),
        ],
        Reason::ZoneUnknown { .. } => vec![run(
            "use a time zone of the IANA database",
            patch(about, &json!({ "spec": { "timeZone": "Etc/UTC" } })),
        )],
        Reason::TooManyMissed { .. } => vec![run(
            "look at the last hour only",
            patch(about, &json!({ "spec": { "startingDeadlineSeconds": 3600 } })),
        )],
        Reason::ScheduleInvalid { .. } | Reason::NeverDue { .. } => {
            vec![run("correct the schedule", patch(about, &json!({ "spec": { "schedule": "0 * * * *" } })))]
        }
        Reason::NextRun { .. } => {
            let word = about.resource;
            match word {
                Resource::CronJob => vec![run(
                    "run it now",
                    format!(
                        "kubectl create job {}-now -n {namespace} --from=cronjob/{}",
                        about.name, about.name
                    ),
                )],
                _ => Vec::new(),
            }
        }
        Reason::NoNode { .. } | Reason::Unstated => {
            link.reason.remedy(Means::Cluster).map(say).into_iter().collect()
        }
        Reason::Progress { .. } => Vec::new(),
        _ => {
            let known = link.reason.remedy(Means::Cluster).map(say);
            let look = run("see all that is reported", format!("kubectl describe {}", named(about)));
            known.into_iter().chain([look]).collect()
        }
    }
}

fn resume(job: &Subject) -> Remedy {
    run("resume it", format!("krafla vcctl job resume --name {} -n {}", job.name, job.namespace))
}

fn any_node(facts: &Facts) -> &str {
    let open = facts.all(Resource::Node).find(|node| crate::amounts::is_open(node));
    open.or_else(|| facts.all(Resource::Node).next()).map_or("NODE", |node| text(node, "metadata.name"))
}

/// A job that may start with fewer pods.
fn smaller_gang(facts: &Facts, author: &Subject) -> Vec<Remedy> {
    if author.resource != Resource::VcJob {
        return Vec::new();
    }
    let Some(job) = author.find(facts) else { return Vec::new() };
    let min = count(job, "spec.minAvailable");
    if min < 2 {
        return Vec::new();
    }
    let command = patch(author, &json!({ "spec": { "minAvailable": 1 } }));
    vec![run(format!("let the job start with fewer than {min} pods"), command)]
}

fn weight(facts: &Facts, queue: &str) -> u32 {
    let queue = facts.get(Resource::Queue, "", queue);
    queue.map_or(1, |it| count(it, "spec.weight")).max(1).saturating_mul(2)
}

/// Raises a queue's limit by what the job needs.
fn raise_capability(
    facts: &Facts,
    subject: &Subject,
    queue: &str,
    resource: &str,
    author: &Subject,
) -> Vec<Remedy> {
    let stored = facts.get(Resource::Queue, "", queue);
    let limit = stored.and_then(|it| gang::of_map(it, "spec.capability", resource)).unwrap_or(Quantity::ZERO);
    let need = needed(facts, subject, resource);
    let raised = limit + need;
    let queue = Subject { resource: Resource::Queue, namespace: String::new(), name: queue.to_owned() };
    let mut all = vec![run(
        format!("raise the limit of the queue for {resource}"),
        patch(&queue, &json!({ "spec": { "capability": { resource: raised.to_string() } } })),
    )];
    all.push(say("wait until other jobs of the queue have ended"));
    if author.resource != Resource::Queue {
        all.push(run("lower the requests, or use another queue", edit_and_replace(author)));
    }
    all
}

/// What a job, gang or pod needs of a resource.
fn needed(facts: &Facts, subject: &Subject, resource: &str) -> Quantity {
    let Some(object) = subject.find(facts) else { return Quantity::from_units(1) };
    let of_group = |group: &Value| gang::of_map(group, "spec.minResources", resource);
    let need = match subject.resource {
        Resource::PodGroup => of_group(object),
        Resource::Pod => Some(asked(field(object, "spec"), resource)),
        Resource::Queue => crate::line::waiting_in(facts, &subject.name).into_iter().find_map(of_group),
        _ => facts.owned(object, Resource::PodGroup).find_map(of_group),
    };
    let of_tasks = || {
        let tasks = list(object, "spec.tasks").map(|task| {
            asked(field(task, "template.spec"), resource).times(i64::from(count(task, "replicas").max(1)))
        });
        tasks.sum::<Quantity>()
    };
    need.filter(|it| !it.is_zero()).unwrap_or_else(of_tasks).max(Quantity::from_units(1))
}

/// `cpu=1,pods=2` as a map.
fn amounts(text: &str) -> BTreeMap<String, Quantity> {
    let parts = text.split(',').filter_map(|part| part.trim().split_once('='));
    parts.filter_map(|(name, amount)| Some((name.to_owned(), amount.parse().ok()?))).collect()
}

/// A quota that what was refused fits into.
fn raised_quota(requested: &str, used: &str, limited: &str) -> Value {
    let (requested, used, limited) = (amounts(requested), amounts(used), amounts(limited));
    let raised = limited.iter().map(|(name, limit)| {
        let want = requested.get(name).copied().unwrap_or(Quantity::ZERO)
            + used.get(name).copied().unwrap_or(Quantity::ZERO);
        (name.clone(), Value::String(want.max(*limit).to_string()))
    });
    Value::Object(raised.collect())
}

/// What to do about a LimitRange.
fn limits(
    facts: &Facts,
    author: &Subject,
    namespace: &str,
    resource: &str,
    of: &str,
    but: &str,
    bound: &str,
) -> Vec<Remedy> {
    let wanted =
        but.rsplit(' ').next().filter(|_| but.contains(" is ")).and_then(|it| it.parse::<Quantity>().ok());
    let mut all = Vec::new();
    let found = facts.all(Resource::LimitRange).find_map(|range| {
        let mut items = list(range, "spec.limits").enumerate();
        let (index, _) = items.find(|(_, it)| {
            text(it, "type") == of
                && pairs(it, bound).any(|(name, value)| name == resource && quantity(value).is_some())
        })?;
        Some((range, index))
    });
    if let (Some((range, index)), Some(wanted)) = (found, wanted) {
        let subject = Subject::new(Resource::LimitRange, range);
        let path = format!("/spec/limits/{index}/{bound}/{}", resource.replace('~', "~0").replace('/', "~1"));
        let change = json!([{ "op": "replace", "path": path, "value": wanted.to_string() }]);
        all.push(run("change the LimitRange", json_patch(&subject, &change)));
    } else {
        all.push(run(
            "see the LimitRange of the namespace",
            format!("kubectl get limitrange -n {namespace} -o yaml"),
        ));
    }
    let what = if bound == "max" { "lower" } else { "raise" };
    all.push(run(format!("or {what} {resource} in resources of the pod template"), edit_and_replace(author)));
    all
}

/// How a missing object comes to exist.
fn missing(facts: &Facts, author: &Subject, namespace: &str, kind: &str, name: &str) -> Vec<Remedy> {
    let command = match kind.trim_end_matches('s') {
        "configmap" => format!(
            "kubectl create configmap {name} -n {namespace}{}",
            keys(facts, author, "configMapKeyRef", name)
        ),
        "secret" => format!(
            "kubectl create secret generic {name} -n {namespace}{}",
            keys(facts, author, "secretKeyRef", name)
        ),
        "serviceaccount" => format!("kubectl create serviceaccount {name} -n {namespace}"),
        "priorityclas" | "priorityclass.scheduling.k8s.io" => {
            format!("kubectl create priorityclass {name} --value=1000")
        }
        "persistentvolumeclaim" => apply(&json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
        })),
        "queue" | "queues.scheduling.volcano.sh" => {
            format!("krafla vcctl queue create --name {name} --weight 1")
        }
        "podgroup" => {
            return vec![
                run(
                    "create the PodGroup",
                    apply(&json!({
                        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
                        "metadata": { "name": name, "namespace": namespace }, "spec": { "minMember": 1 },
                    })),
                ),
                run(
                    "or correct the annotation scheduling.k8s.io/group-name of the pod",
                    edit_and_replace(author),
                ),
            ];
        }
        _ => return vec![say(format!("create the {kind} {name}, or correct the reference"))],
    };
    vec![
        run(format!("create the {kind} {name}"), command),
        run("or correct the reference, or mark it as optional", edit_and_replace(author)),
    ]
}

/// The keys that pods read from an object, as flags of kubectl.
fn keys(facts: &Facts, author: &Subject, field_name: &str, name: &str) -> String {
    let object = author.find(facts).unwrap_or(&Value::Null);
    let mut keys = std::collections::BTreeSet::new();
    collect(object, field_name, name, &mut keys);
    keys.iter().map(|key| format!(" --from-literal={key}=VALUE")).collect()
}

fn collect(value: &Value, field_name: &str, name: &str, keys: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(reference) = fields.get(field_name).filter(|it| text(it, "name") == name) {
                keys.extend(reference.get("key").and_then(Value::as_str).map(str::to_owned));
            }
            fields.values().for_each(|it| collect(it, field_name, name, keys));
        }
        Value::Array(items) => items.iter().for_each(|it| collect(it, field_name, name, keys)),
        _ => {}
    }
}

fn memory_limit(pod: &Value) -> Option<(String, String)> {
    let limit = list(pod, "spec.containers").find_map(|it| gang::of_map(it, "resources.limits", "memory"))?;
    Some((limit.to_string(), limit.times(2).to_string()))
}
