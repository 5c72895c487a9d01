//! `krafla doctor`: what this machine offers.

use crate::support::{krafla, text};

#[test]
fn every_finding_has_a_state_and_a_remedy_if_it_needs_one() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let output = krafla().args(["doctor", "--output", "json", "--data-dir"]).arg(&data).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "these tests run pods: {}", text(&output.stdout));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["podsCanRun"], true);
    let findings = found["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["what"] == "pod addresses"), "{found:#}");
    for finding in findings {
        let has_remedy = finding["remedy"] != "";
        assert_eq!(finding["state"] != "ok", has_remedy, "{finding:#}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_data_directory_that_can_not_be_made_is_the_end() {
    let output = krafla().args(["doctor", "--data-dir", "/proc/nowhere"]).output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("missing  data directory: /proc/nowhere can not be written to"), "{said}");
    assert!(said.contains("--data-dir") && said.ends_with("pods can not run on this machine\n"), "{said}");
}
