//! Answers of a kube-apiserver 1.36, recorded as data, replayed against this server.
//!
//! ```text
//!   tests/golden/apiserver/NN-area.json -> krafla-recorded -> the server, in this process
//!                                                |
//!                          differences <- the recorded answers
//! ```
//!
//! One test per area; `KRAFLA_RECORDED='^patch/strategic'` plays only the cases whose id the expression matches. Cases
//! that are known to differ are listed with the reason in DEVIATIONS.md, and must differ.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on stops")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on stops")]

mod deviations;
mod server;
mod sessions;

use deviations::Deviations;
use futures_util::StreamExt;
use krafla_apiserver::RunningServer;
use krafla_recorded::case::{self, Case};
use krafla_recorded::client::{Client, Target};
use krafla_recorded::{differences, play};
use regex::Regex;
use server::{ABILITIES, RUNTIME};

/// How many cases of one area are played at once.
const AT_ONCE: usize = 8;

macro_rules! areas {
    ($($name:ident: $file:literal,)*) => {
        /// All files.
        const FILES: &[&str] = &[$($file),*];
        $(
            #[test]
            fn $name() {
                replay($file);
            }
        )*
    };
}

areas! {
    crud: "01-crud.json",
    pods: "02-pods.json",
    jobs: "03-jobs.json",
    lists: "04-lists.json",
    watch: "05-watch.json",
    patch: "06-patch.json",
    apply: "07-apply.json",
    crds: "08-crds.json",
    gc: "09-gc.json",
    discovery: "10-discovery.json",
    tables: "11-tables.json",
    negotiation: "12-negotiation.json",
    admission: "14-admission.json",
    protobuf: "15-protobuf.json",
    parameters: "16-parameters.json",
    authorization: "17-authorization.json",
    siblings: "18-siblings.json",
    pod_security: "19-pod-security.json",
    kinds: "20-kinds.json",
}

/// Cases that look at what the garbage collector is about to take away, recorded while it did not run.
const RACES: [&str; 1] = ["crud/job-life"];

/// The cases of a file that this server can be asked.
fn playable(file: &str) -> Vec<Case> {
    let is_able = |case: &Case| {
        case.needs.iter().all(|need| ABILITIES.contains(&need.as_str())) && !RACES.contains(&case.id.as_str())
    };
    case::load(file).into_iter().filter(is_able).collect()
}

/// Plays an area and fails when a case ends other than DEVIATIONS.md says.
fn replay(file: &str) {
    let only = std::env::var("KRAFLA_RECORDED").map(|text| Regex::new(&text).expect("KRAFLA_RECORDED"));
    let mut cases = playable(file);
    cases.retain(|case| only.as_ref().map_or(true, |only| only.is_match(&case.id)));
    let n_cases = cases.len();
    let cases = cases.into_iter().map(|case| (server::of(&case), case)).collect();
    let verdicts = RUNTIME.block_on(play_all(cases));
    let deviations = Deviations::read();
    let mut complaints = Vec::new();
    let mut n_passed = 0;
    for (id, differences) in verdicts {
        n_passed += usize::from(differences.is_empty());
        match (deviations.has(&id), differences.is_empty()) {
            (false, false) => complaints.push(format!("{id}\n{}", differences.join("\n"))),
            (true, true) => complaints.push(format!("{id} passes: remove it from DEVIATIONS.md")),
            (true, false) if only.is_ok() => println!("{id}\n{}", differences.join("\n")),
            (false, true) | (true, false) => {}
        }
    }
    println!("{file}: {n_passed} of {n_cases} cases are answered as recorded");
    assert!(complaints.is_empty(), "{file}: {} surprises\n{}", complaints.len(), complaints.join("\n"));
}

/// What differs, by case.
async fn play_all(cases: Vec<(&'static RunningServer, Case)>) -> Vec<(String, Vec<String>)> {
    let plays = cases.into_iter().map(|(server, case)| {
        let target = Target::new(server.address(), server.ca_pem(), server.token());
        let client = Client::new(target.with_limited(server::LIMITED_TOKEN));
        tokio::spawn(async move {
            let steps = case.steps();
            let differences = match play::play(client, &case, &steps).await {
                Ok(answers) => differences::of_case(&steps, &answers),
                Err(error) => vec![format!("  {error}")],
            };
            (case.id, differences)
        })
    });
    futures_util::stream::iter(plays)
        .buffered(AT_ONCE)
        .map(|played| played.expect("a case is played to its end"))
        .collect()
        .await
}

/// How many of a hundred cases must be answered as recorded.
const PASSING_MIN_PERCENT: usize = 97;

/// Since listed cases must differ and others must not, the list alone says how many pass.
#[test]
fn nearly_everything_is_answered_as_recorded() {
    let deviations = Deviations::read();
    let sessions = sessions::load().into_iter().map(|session| session.id);
    let cases = FILES.iter().flat_map(|file| playable(file)).map(|case| case.id);
    let ids: Vec<String> = cases.chain(sessions).collect();
    for pattern in deviations.patterns() {
        assert!(ids.iter().any(|id| deviations::is_match(pattern, id)), "{pattern} names no case");
    }
    let n_listed = ids.iter().filter(|id| deviations.has(id)).count();
    let n_passing = ids.len() - n_listed;
    assert!(n_passing * 100 >= ids.len() * PASSING_MIN_PERCENT, "{n_passing} of {} cases pass", ids.len());
}
