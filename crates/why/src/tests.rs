//! What is written is read back, for every variant; and other programs' texts become the same reasons.

use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;

use crate::{Lack, Lacks, Lease, Name, Pending, Reason, Tally};

/// Values of a gap.
pub(crate) trait Sample: Sized {
    fn sample() -> BoxedStrategy<Self>;
}

impl Sample for Name {
    fn sample() -> BoxedStrategy<Name> {
        "[a-z][a-z0-9./-]{0,10}[a-z0-9]".prop_map(Name::from).boxed()
    }
}

impl Sample for String {
    fn sample() -> BoxedStrategy<String> {
        "[a-z][a-z0-9=]{0,8} [a-z0-9=]{1,8}".boxed()
    }
}

impl Sample for u32 {
    fn sample() -> BoxedStrategy<u32> {
        any::<u32>().boxed()
    }
}

impl Sample for Vec<Name> {
    fn sample() -> BoxedStrategy<Vec<Name>> {
        proptest::collection::vec(Name::sample(), 1..4).boxed()
    }
}

impl Sample for Vec<String> {
    fn sample() -> BoxedStrategy<Vec<String>> {
        proptest::collection::vec("[a-z]{1,5} \\([A-Z][a-z]{1,5}\\)", 1..4).boxed()
    }
}

fn tally(min: usize) -> BoxedStrategy<Vec<(u32, String)>> {
    proptest::collection::vec((u32::sample(), "[A-Z][a-z]{1,8}".prop_map(String::from)), min..4).boxed()
}

impl Sample for Tally {
    fn sample() -> BoxedStrategy<Tally> {
        tally(0).prop_map(Tally).boxed()
    }
}

impl Sample for Pending {
    fn sample() -> BoxedStrategy<Pending> {
        tally(0).prop_map(Pending).boxed()
    }
}

impl Sample for Lacks {
    fn sample() -> BoxedStrategy<Lacks> {
        let any_lack = proptest::strategy::Union::new(Lack::strategies().into_iter().map(|(_, it)| it));
        let one = (proptest::option::of(u32::sample()), any_lack);
        proptest::collection::vec(one, 0..4).prop_map(Lacks).boxed()
    }
}

impl Sample for Lease {
    fn sample() -> BoxedStrategy<Lease> {
        let holder = "[a-z]{1,5}_[0-9]{1,5}";
        prop_oneof![
            Just(Lease::Missing),
            Just(Lease::Free),
            holder.prop_map(Lease::Held),
            (holder, any::<u64>()).prop_map(|(holder, seconds)| Lease::Expired { holder, seconds }),
        ]
        .boxed()
    }
}

impl Sample for Box<Reason> {
    fn sample() -> BoxedStrategy<Box<Reason>> {
        let lone = prop_oneof![
            (Name::sample(), Name::sample())
                .prop_map(|(queue, resource)| Reason::QueueShare { queue, resource }),
            (u32::sample(), Lacks::sample()).prop_map(|(nodes, lacks)| Reason::NoNode { nodes, lacks }),
            (Name::sample(), Name::sample()).prop_map(|(kind, name)| Reason::NotFound { kind, name }),
            Just(Reason::TooEarly),
            String::sample().prop_map(|text| Reason::Other { text }),
        ];
        let nested = lone.prop_recursive(2, 4, 1, |within| {
            (Name::sample(), within)
                .prop_map(|(pod, because)| Reason::OfPod { pod, because: Box::new(because) })
        });
        nested.prop_map(Box::new).boxed()
    }
}

#[test]
fn what_is_written_is_read_back_for_every_variant() {
    for (variant, strategy) in Reason::strategies() {
        // A runner counts the cases of all its runs.
        let config = ProptestConfig { cases: 64, ..ProptestConfig::default() };
        let rng = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
        let mut runner = proptest::test_runner::TestRunner::new_with_rng(config, rng);
        let law = |reason: Reason| {
            let text = reason.to_string();
            prop_assert_eq!(Reason::parse(&text), reason, "{}: {}", variant, text);
            Ok(())
        };
        if let Err(error) = runner.run(&strategy, law) {
            panic!("{error}");
        }
    }
}

#[test]
fn every_text_is_a_reason_and_keeps_its_words() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let law = |text: String| {
        let reason = Reason::parse(&text);
        if let Reason::Other { text: kept } = &reason {
            prop_assert_eq!(kept.as_str(), text.trim());
        }
        Ok(())
    };
    runner.run(&"[ -~]{0,60}", law).unwrap();
    let long = "pod a: ".repeat(2_000) + &"queue x may not use more ".repeat(2_000);
    assert_ne!(Reason::parse(&long).word(), "QueueLimit");
}

/// What other programs write, and the reason that it is.
#[test]
fn other_programs_texts_become_the_same_reasons() {
    let table = [
        (
            "0/3 nodes are unavailable: 1 Insufficient cpu, 2 node(s) had untolerated taint {gpu: true}.",
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {gpu: true}",
        ),
        (
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu",
        ),
        (
            "0/1 nodes are available: persistentvolumeclaim \"data\" not found. not found",
            "0/1 nodes are available: persistentvolumeclaim \"data\" not found",
        ),
        (
            "0/1 nodes are available: 1 node(s) had taint {a: b}, that the pod didn't tolerate.",
            "0/1 nodes are available: 1 node(s) had untolerated taint {a: b}",
        ),
        (
            "0/1 nodes are available: 1 node(s) didn't match node selector.",
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector",
        ),
        (
            "all nodes are unavailable: 2 Insufficient memory.",
            "0/0 nodes are available: 2 Insufficient memory",
        ),
        (
            "pod group is not ready, 2 Pending, 4 minAvailable",
            "pod group is not ready, 2 Pending, 4 minAvailable",
        ),
        (
            "pod group is not ready, 2 Pending, 4 minAvailable.",
            "pod group is not ready, 2 Pending, 4 minAvailable",
        ),
        (
            "3/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 3 Unschedulable, 1 Schedulable. Origin reason is train-w-0: 0/3 nodes are unavailable: 3 Insufficient cpu.",
            "3/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 3 Unschedulable, 1 Schedulable; 0/3 nodes are available: 3 Insufficient cpu",
        ),
        (
            "3/4 tasks in gang unschedulable: 2 Insufficient cpu",
            "3/4 tasks in gang unschedulable: pod group is not ready, 3 Pending, 4 minAvailable; 0/0 nodes are available: 2 Insufficient cpu",
        ),
        ("queue resource quota insufficient: insufficient cpu", "queue of-the-job has too little cpu left"),
        (
            "can only submit job to queue with state `Open`, queue `research` status is `Closed`",
            "queue research is closed",
        ),
        (
            "unable to find job queue: queues.scheduling.volcano.sh \"research\" not found",
            "queue research does not exist",
        ),
        ("Error: configmap \"settings\" not found", "configmap \"settings\" not found"),
        (
            "MountVolume.SetUp failed for volume \"data\" : secret \"key\" not found",
            "MountVolume.SetUp failed for volume \"data\" : secret \"key\" not found",
        ),
        ("couldn't find key a in ConfigMap ns/settings", "couldn't find key a in ConfigMap ns/settings"),
        (
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: exec: \"trian\": executable file not found in $PATH: unknown",
            "the image has no command \"trian\"",
        ),
        (
            "Back-off pulling image \"nginx:nope\": ErrImagePull: not found",
            "Back-off pulling image \"nginx:nope\"",
        ),
        (
            "Error creating: pods \"a-x7\" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=1, limited: cpu=2",
            "pods \"a-x7\" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=1, limited: cpu=2",
        ),
        (
            "pods \"a\" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Pod is 1Gi, but limit is 2Gi]",
            "pods \"a\" is forbidden: maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            "pods \"a\" is forbidden: error looking up service account ns/runner: serviceaccount \"runner\" not found",
            "pods \"a\" is forbidden: error looking up service account ns/runner: serviceaccount \"runner\" not found",
        ),
        (
            "admission webhook \"a.example.com\" denied the request: no",
            "admission webhook \"a.example.com\" denied the request: no",
        ),
        (
            "Pod was active on the node longer than the specified deadline",
            "the pod was active longer than its activeDeadlineSeconds",
        ),
        (
            "The node was low on resource: memory. Threshold quantity: 100Mi",
            "the pod was evicted: The node was low on resource: memory. Threshold quantity: 100Mi",
        ),
    ];
    for (text, reason) in table {
        let read = Reason::parse(text);
        assert_eq!(read.to_string(), reason, "{text}: {read:?}");
        assert_ne!(read.root().word(), "Other", "{text}: {read:?}");
    }
}
