//! Numbers about the process itself, under the names that every Go program has them by.

use std::fmt::Write;

/// Ticks in a second and bytes in a page, as Linux counts on every machine that Krafla runs on.
const TICKS_PER_SECOND: f64 = 100.0;
const PAGE_BYTES: f64 = 4096.0;

/// The page of numbers; empty where there is no `/proc`.
pub(super) fn page() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let fds = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let facts = Facts {
        stat: &read("/proc/self/stat"),
        limits: &read("/proc/self/limits"),
        of_system: &read("/proc/stat"),
        fds,
    };
    facts.page()
}

/// What the kernel says.
struct Facts<'a> {
    stat: &'a str,
    limits: &'a str,
    of_system: &'a str,
    fds: usize,
}

impl Facts<'_> {
    fn page(&self) -> String {
        // The name of the program stands in brackets and may hold anything; numbers follow the last bracket.
        let Some((_, numbers)) = self.stat.rsplit_once(')') else { return String::new() };
        let numbers: Vec<&str> = numbers.split_ascii_whitespace().collect();
        // The first of them is the third field of the file.
        let field = |number: usize| numbers.get(number.saturating_sub(3)).and_then(|text| text.parse().ok());
        let number = |of: usize| -> f64 { field(of).unwrap_or(0.0) };
        let started_at = self.booted_at() + number(22) / TICKS_PER_SECOND;
        let mut page = String::new();
        let cpu = (number(14) + number(15)) / TICKS_PER_SECOND;
        line(&mut page, "cpu_seconds_total", "counter", "Total user and system CPU time in seconds.", cpu);
        let fds_max = self.fds_max();
        line(&mut page, "max_fds", "gauge", "Maximum number of open file descriptors.", fds_max);
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 open files")]
        let fds = self.fds as f64;
        line(&mut page, "open_fds", "gauge", "Number of open file descriptors.", fds);
        let resident = number(24) * PAGE_BYTES;
        line(&mut page, "resident_memory_bytes", "gauge", "Resident memory size in bytes.", resident);
        let start = "Start time of the process since the Unix epoch in seconds.";
        line(&mut page, "start_time_seconds", "gauge", start, started_at);
        line(&mut page, "virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", number(23));
        page
    }

    fn booted_at(&self) -> f64 {
        let line = self.of_system.lines().find_map(|line| line.strip_prefix("btime "));
        line.and_then(|text| text.trim().parse().ok()).unwrap_or(0.0)
    }

    fn fds_max(&self) -> f64 {
        let line = self.limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        line.and_then(|rest| rest.split_ascii_whitespace().next())
            .map_or(0.0, |text| if text == "unlimited" { f64::INFINITY } else { text.parse().unwrap_or(0.0) })
    }
}

fn line(page: &mut String, name: &str, of_type: &str, help: &str, value: f64) {
    // Writing to a text cannot fail.
    let _ = write!(
        page,
        "# HELP process_{name} {help}\n# TYPE process_{name} {of_type}\nprocess_{name} {value}\n"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_what_the_kernel_says() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 1000 104857600 2560 184467";
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024  4096  files\n";
        let facts = Facts { stat, limits, of_system: "cpu 1\nbtime 1700000000\n", fds: 12 };
        let page = facts.page();
        let values: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "process_cpu_seconds_total 3",
            "process_max_fds 1024",
            "process_open_fds 12",
            "process_resident_memory_bytes 10485760",
            "process_start_time_seconds 1700000010",
            "process_virtual_memory_bytes 104857600",
        ];
        assert_eq!(values, expected);
        assert_eq!(Facts { stat: "", ..facts }.page(), "");
    }

    #[test]
    fn this_process_has_numbers() {
        let page = page();
        assert!(page.contains("\nprocess_open_fds "), "{page}");
    }
}
