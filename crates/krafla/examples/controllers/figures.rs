//! What this process has cost so far.

use crate::Failure;

/// A line of this process' status, in megabytes.
pub(crate) fn memory(line: &str) -> Result<f64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let found = status.lines().find_map(|text| text.strip_prefix(line)).ok_or("no such line")?;
    Ok(found.trim().trim_end_matches(" kB").parse::<f64>()? * 1024.0 / 1e6)
}

/// Processor time of this process: fields 14 and 15 of its line, in hundredths of a second.
pub(crate) fn cpu_seconds() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(") ").ok_or("no name")?.1;
    let ticks = |n| after_name.split(' ').nth(n).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / 100.0)
}
