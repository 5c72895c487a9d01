//! What pods and the machine use: processor time and memory, as `/proc` tells it.
//!
//! Nothing is measured until somebody asks. Then two looks, a moment apart, say how fast the processor's time is used.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use krafla_api::Key;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::Pid;

use crate::agent::Node;
use crate::mark;

/// How far apart the two looks are.
const WINDOW: Duration = Duration::from_millis(500);

/// What something uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Of the processor, in billionths of a core.
    pub cpu_nanos: u64,
    /// Memory that is in use.
    pub memory_bytes: u64,
}

/// What a node and its pods use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// How long it was looked at.
    pub window: Duration,
    /// The machine.
    pub machine: Amount,
    /// Containers that run, by pod and name.
    pub pods: BTreeMap<Key, BTreeMap<String, Amount>>,
}

/// One look.
#[derive(Clone, Debug, Default, PartialEq)]
struct Look {
    machine: Spent,
    containers: BTreeMap<(Key, String), Spent>,
}

/// Processor time so far, in ticks, and memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    ticks: u64,
    memory_bytes: u64,
}

impl Node {
    /// What this node and its pods use now.
    pub async fn usage(&self) -> Usage {
        let running = self.running();
        let (before, began) = (look(&running), Instant::now());
        tokio::time::sleep(WINDOW).await;
        let (after, window) = (look(&running), began.elapsed());
        usage(&before, &after, window, clock_ticks_per_second())
    }

    /// The containers that run, and their main processes. Those without a process use nothing.
    fn running(&self) -> Vec<(Key, String, Option<Pid>)> {
        let pods = self.shared.pods.present();
        let views = pods.iter().filter_map(|(pod, _)| self.shared.pods.view(&pod.metadata.uid));
        let containers = views.flat_map(|view| {
            let names: Vec<String> =
                view.pod.all_containers().map(|container| container.name.clone()).collect();
            let running = names.into_iter().filter_map(|name| {
                let record = view.attempts.latest(&name).filter(|record| record.is_running())?;
                Some((view.pod.key(), name, record.pid.and_then(Pid::from_raw)))
            });
            running.collect::<Vec<_>>()
        });
        containers.collect()
    }
}

fn look(running: &[(Key, String, Option<Pid>)]) -> Look {
    let mut containers: BTreeMap<(Key, String), Spent> =
        running.iter().map(|(pod, name, _)| ((pod.clone(), name.clone()), Spent::default())).collect();
    // All processes of a container have its mark.
    let by_mark: BTreeMap<u64, &(Key, String, Option<Pid>)> = running
        .iter()
        .filter_map(|container| Some((mark::raw_of_process(container.2?)?, container)))
        .collect();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids =
        processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(Pid::from_raw);
    for pid in pids.filter(|_| !by_mark.is_empty()) {
        let Some((pod, name, _)) = mark::raw_of_process(pid).and_then(|mark| by_mark.get(&mark)) else {
            continue;
        };
        let (Some(spent), Some(own)) = (containers.get_mut(&(pod.clone(), name.clone())), of_process(pid))
        else {
            continue;
        };
        spent.ticks = spent.ticks.saturating_add(own.ticks);
        spent.memory_bytes = spent.memory_bytes.saturating_add(own.memory_bytes);
    }
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    Look { machine: of_machine(&read("/proc/stat"), &read("/proc/meminfo")), containers }
}

/// What a process has used, and those of its children that have ended.
fn of_process(pid: Pid) -> Option<Spent> {
    let stat = mark::read(pid, "stat").ok()?;
    parse_stat(&String::from_utf8_lossy(&stat), page_size() as u64)
}

fn parse_stat(stat: &str, page_bytes: u64) -> Option<Spent> {
    // The name is in parentheses and may contain anything.
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
    let ticks = [11, 12, 13, 14].into_iter().filter_map(number).fold(0, u64::saturating_add);
    Some(Spent { ticks, memory_bytes: number(21)?.saturating_mul(page_bytes) })
}

fn of_machine(stat: &str, meminfo: &str) -> Spent {
    let cpu = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    // The fourth and the fifth number are time in which nothing was done.
    let busy = cpu.split_whitespace().take(8).enumerate().filter(|(index, _)| ![3, 4].contains(index));
    let ticks = busy.filter_map(|(_, text)| text.parse::<u64>().ok()).fold(0, u64::saturating_add);
    let kib = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    let used = kib("MemTotal").saturating_sub(kib("MemAvailable"));
    Spent { ticks, memory_bytes: used.saturating_mul(1024) }
}

fn usage(before: &Look, after: &Look, window: Duration, ticks_per_second: u64) -> Usage {
    let rate = |before: Spent, after: Spent| {
        let ticks = u128::from(after.ticks.saturating_sub(before.ticks));
        let nanos = ticks.saturating_mul(1_000_000_000) / u128::from(ticks_per_second.max(1));
        let per_second = nanos.saturating_mul(1_000_000_000) / window.as_nanos().max(1);
        Amount { cpu_nanos: u64::try_from(per_second).unwrap_or(u64::MAX), memory_bytes: after.memory_bytes }
    };
    let mut pods: BTreeMap<Key, BTreeMap<String, Amount>> = BTreeMap::new();
    for ((pod, name), now) in &after.containers {
        let first = before.containers.get(&(pod.clone(), name.clone())).copied().unwrap_or(*now);
        pods.entry(pod.clone()).or_default().insert(name.clone(), rate(first, *now));
    }
    Usage { window, machine: rate(before.machine, after.machine), pods }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_it_is_called() {
        let stat =
            "7 (a) b) S 1 7 7 0 -1 4194304 1 2 3 4 10 20 3 4 20 0 1 0 100 4096 50 18446744073709551615";
        assert_eq!(parse_stat(stat, 4096), Some(Spent { ticks: 37, memory_bytes: 50 * 4096 }));
        assert_eq!(parse_stat("", 4096), None);
    }

    #[test]
    fn the_machine_is_busy_when_it_is_not_idle() {
        let stat = "cpu  10 1 5 1000 99 2 3 4 7 0\ncpu0 1 1 1 1\n";
        let meminfo = "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    400 kB\n";
        assert_eq!(of_machine(stat, meminfo), Spent { ticks: 25, memory_bytes: 600 * 1024 });
    }

    #[test]
    fn two_looks_make_a_rate() {
        let pod = || (Key::new("ns", "p"), "main".to_owned());
        let look = |ticks| Look {
            machine: Spent { ticks: 2 * ticks, memory_bytes: 9 },
            containers: [(pod(), Spent { ticks, memory_bytes: 5 })].into(),
        };
        let used = usage(&look(100), &look(125), Duration::from_millis(500), 100);
        assert_eq!(used.pods[&pod().0]["main"], Amount { cpu_nanos: 500_000_000, memory_bytes: 5 });
        assert_eq!(used.machine, Amount { cpu_nanos: 1_000_000_000, memory_bytes: 9 });
    }
}
