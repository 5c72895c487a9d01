//! Recorded command lines that do something else here, and why.

const FAILS: &str = "what was asked for failed, so the exit code is not 0";
const SEPARATOR: &str = "`---` within a value does not end a document";
const FORMAT: &str = "an unknown format is an error";
const EVENTS: &str = "events of a pod with the name of the job are not the job's";
const NOTHING: &str = "a list without rows is `No resources found`";
const COUNTED: &str =
    "PodGroups are counted, as by `vcctl queue`; no component fills in the counters of the status";
const STORED: &str = "durations and ports are printed as they are stored";

/// A case as `file: name`, and the reason.
pub(crate) const DIFFERENCES: &[(&str, &str)] = &[
    ("vcctl-job-run: requests quantity is rewritten", "`1e0` is written as `1`"),
    ("vcctl-job-view: full job with events", EVENTS),
    ("vcctl-job-view: time zone", EVENTS),
    ("vcctl-jobflow: create existing", FAILS),
    ("vcctl-jobflow: create invalid", FAILS),
    ("vcctl-jobflow: create separator inside a value", SEPARATOR),
    ("vcctl-jobflow: create without name", FAILS),
    ("vcctl-jobflow: delete two by file, one missing", FAILS),
    ("vcctl-jobflow: describe all of a namespace, yaml", "`---` stands between documents"),
    ("vcctl-jobflow: describe unknown format", FORMAT),
    ("vcctl-jobflow: describe all, unknown format", FORMAT),
    ("vcctl-jobflow: describe format upper case", FORMAT),
    ("vcctl-jobtemplate: create in a missing namespace", FAILS),
    ("vcctl-jobtemplate: create invalid", FAILS),
    ("vcctl-jobtemplate: create separator inside a value", SEPARATOR),
    ("vcctl-jobtemplate: create without name", FAILS),
    ("vcctl-jobtemplate: delete two by file, one missing", FAILS),
    ("vcctl-jobtemplate: describe yaml", STORED),
    ("vcctl-jobtemplate: describe json", STORED),
    ("vcctl-jobtemplate: describe all, unknown format", FORMAT),
    ("vcctl-jobtemplate: describe format upper case", FORMAT),
    ("vcctl: help of an unknown topic", FAILS),
    ("vjobs: list scheduler matches nothing: header only", NOTHING),
    ("vjobs: list selector matches nothing: header only", NOTHING),
    ("vjobs: view with all namespaces flag", EVENTS),
    ("vqueues: list", COUNTED),
    ("vqueues: get", COUNTED),
    ("vqueues: get short flag", COUNTED),
    ("vqueues: positional lists", COUNTED),
];
