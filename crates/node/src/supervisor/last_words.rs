//! What a container says of its own end, in a file that it was told of or by the end of its log.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::logs::last_lines;

/// A kubelet's limits.
const MESSAGE_BYTES_MAX: u64 = 4096;
const LOG_BYTES_MAX: usize = 2048;
const LOG_LINES_MAX: usize = 80;

/// Where a container may write why it ended, beside its other files.
pub(crate) const MESSAGE_EXTENSION: &str = "message";

/// Why a container could not be staged; none if it could.
pub(super) fn of_failed_stage(place: &Path) -> Option<String> {
    let path = place.with_added_extension("error");
    let message = read_end(&path, MESSAGE_BYTES_MAX)?;
    let _ = fs::remove_file(path);
    Some(message)
}

/// What a container wrote about its end; the end of its log if it wrote nothing and `from_log`.
pub(super) fn of_container(place: &Path, from_log: bool) -> String {
    let message =
        read_end(&place.with_added_extension(MESSAGE_EXTENSION), MESSAGE_BYTES_MAX).unwrap_or_default();
    if !message.is_empty() || !from_log {
        return message;
    }
    // Entries are longer than what they say, by their time and stream.
    let entries = read_end(&place.with_added_extension("log"), 16 * LOG_BYTES_MAX as u64).unwrap_or_default();
    last_lines(&entries, LOG_LINES_MAX, LOG_BYTES_MAX)
}

fn read_end(path: &Path, n_bytes_max: u64) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let begin = file.metadata().ok()?.len().saturating_sub(n_bytes_max);
    file.seek(SeekFrom::Start(begin)).ok()?;
    let mut bytes = Vec::new();
    file.take(n_bytes_max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_taken_at_its_word_before_its_log() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("main.0");
        assert_eq!(of_container(&place, true), "");
        fs::write(place.with_added_extension("log"), "2026-11-15T08:00:00Z stderr F no such model\n")
            .unwrap();
        assert_eq!(of_container(&place, false), "");
        assert_eq!(of_container(&place, true), "no such model\n");
        fs::write(place.with_added_extension("message"), "out of luck").unwrap();
        assert_eq!(of_container(&place, true), "out of luck");
    }
}
