//! Text that others wrote, as a terminal may show it: how many columns it takes, and nothing in it that does more than
//! colour its own line. Pure.

use unicode_width::UnicodeWidthChar;

const ESCAPE: char = '\u{1b}';
/// Ends all colours.
const RESET: &str = "\u{1b}[0m";

/// How many columns a line takes.
pub(crate) fn width(line: &str) -> usize {
    line.chars().map(columns).sum()
}

/// How many rows a line takes on a terminal of so many columns.
pub(crate) fn rows(line: &str, width: usize) -> usize {
    let (mut n_rows, mut taken) = (1_usize, 0_usize);
    for n in line.chars().map(columns) {
        // What takes two columns is not split.
        if taken.saturating_add(n) > width && taken > 0 {
            n_rows = n_rows.saturating_add(1);
            taken = 0;
        }
        taken = taken.saturating_add(n);
    }
    n_rows
}

/// A line that is not wider than this, with a sign where its end is missing.
pub(crate) fn cut(line: &str, width_max: usize) -> String {
    if width(line) <= width_max {
        return line.to_owned();
    }
    let mut taken = 1_usize;
    let fits = |char: &char| {
        taken = taken.saturating_add(columns(*char));
        taken <= width_max
    };
    let kept: String = line.chars().take_while(fits).collect();
    // A terminal without columns does not exist, but one may say so.
    if width_max == 0 { kept } else { kept + "…" }
}

/// A name that is not wider than this: what tells names apart is at their beginning or at their end.
pub(crate) fn cut_in_the_middle(name: &str, width_max: usize) -> String {
    if width(name) <= width_max {
        return name.to_owned();
    }
    let n_last = width_max.saturating_sub(1) / 2;
    let first = cut(name, width_max.saturating_sub(n_last));
    let n_skipped = name.chars().count().saturating_sub(n_last);
    first.chars().chain(name.chars().skip(n_skipped)).collect()
}

/// A word in pieces that are not wider than this.
pub(crate) fn pieces(word: &str, width_max: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut taken = 0_usize;
    for char in word.chars() {
        taken = taken.saturating_add(columns(char));
        match pieces.last_mut().filter(|piece| taken <= width_max || piece.is_empty()) {
            Some(piece) => piece.push(char),
            None => {
                pieces.push(char.to_string());
                taken = columns(char);
            }
        }
    }
    pieces
}

fn columns(char: char) -> usize {
    char.width().unwrap_or(0)
}

/// What is left of a line that was written over itself, as bars of progress are.
pub(crate) fn last_written(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit_once('\r').map_or(line, |(_, last)| last)
}

/// A line as it may stand in a picture: without colours, and really one line.
pub(crate) fn plain(line: &str) -> String {
    harmless_line(&line.trim_end().replace(['\n', '\r', '\t'], " "), false)
}

/// Lines that do nothing to a terminal but stand on it. Colours stay where they are wanted, and end with their line.
pub(crate) fn harmless(text: &str, wants_colour: bool) -> String {
    let lines = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
        Some(line) => harmless_line(line, wants_colour) + "\n",
        None => harmless_line(line, wants_colour),
    });
    lines.collect()
}

fn harmless_line(line: &str, wants_colour: bool) -> String {
    let mut shown = String::new();
    // Behind the last colour: what a backspace may take away.
    let mut erasable_from = 0;
    let mut is_coloured = false;
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (part, behind) = rest.split_at(length_of_first(rest));
        rest = behind;
        match first {
            ESCAPE if wants_colour && is_colour(part) => {
                shown += part;
                erasable_from = shown.len();
                is_coloured = ![RESET, "\u{1b}[m"].contains(&part);
            }
            '\u{8}' if shown.len() > erasable_from => drop(shown.pop()),
            '\t' => shown.push(first),
            first if first.is_control() => {}
            _ => shown += part,
        }
    }
    if is_coloured {
        shown += RESET;
    }
    shown
}

/// Whether a sequence sets colours and the like. Those with a sign in front set something else.
fn is_colour(sequence: &str) -> bool {
    let parameters = sequence.strip_prefix("\u{1b}[").and_then(|rest| rest.strip_suffix('m'));
    parameters.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit() || b";:".contains(&byte)))
}

/// How many bytes the first character takes, or the sequence (ECMA-48) that it begins.
fn length_of_first(text: &str) -> usize {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return 0 };
    let introducer = match first {
        ESCAPE => chars.next(),
        // The same in one character.
        '\u{80}'..='\u{9f}' => char::from_u32(u32::from(first).saturating_sub(0x40)),
        _ => None,
    };
    let body = chars.as_str();
    let rest = match introducer {
        None => body,
        Some('[') => {
            let parameters_end = body.trim_start_matches(|char| matches!(char, ' '..='?'));
            without_final(parameters_end, '@')
        }
        // Titles, links, clipboards, pictures: a string up to its end.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let ends = ["\u{7}", "\u{1b}\\", "\u{9c}"];
            let behind = ends.iter().filter_map(|end| body.split_once(end).map(|(_, behind)| behind));
            behind.max_by_key(|behind| behind.len()).unwrap_or_default()
        }
        Some(' '..='/') => without_final(body.trim_start_matches(|char| matches!(char, ' '..='/')), '0'),
        Some('0'..='~') => body,
        // No sequence begins like this, and what follows is text.
        Some(_) => text.strip_prefix(first).unwrap_or_default(),
    };
    text.len().saturating_sub(rest.len())
}

/// What follows the character that ends a sequence, if one does.
fn without_final(text: &str, lowest: char) -> &str {
    text.strip_prefix(|char| (lowest..='~').contains(&char)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_pod_does_more_to_a_terminal_than_colour_its_own_line() {
        for (written, with_colours, without) in [
            ("plain\ttext", "plain\ttext", "plain\ttext"),
            ("\u{1b}[1;31mred\u{1b}[0m", "\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}[38:2::1:2:3mred\u{1b}[m.", "\u{1b}[38:2::1:2:3mred\u{1b}[m.", "red."),
            // A colour that is left on ends with the line.
            ("a \u{1b}[31mred\nb", "a \u{1b}[31mred\u{1b}[0m\nb", "a red\nb"),
            // The cursor moves, the screen is cleared, the alternate screen is shown, keys are changed, all is reset.
            ("\u{1b}[2A\u{1b}[2J\u{1b}[?1049h\u{1b}[>4;2m\u{1b}cx", "x", "x"),
            // Titles, links and the clipboard.
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;http://a\u{1b}\\y", "xy", "xy"),
            ("\u{1b}Pq#0\u{1b}\\x\u{9b}2Jy\u{9d}52;c;\u{9c}z", "xyz", "xyz"),
            // Other character sets, the bell, and what ends in the middle.
            ("\u{1b}(0x\u{7}y\u{0}\u{7f}\u{85}z", "xyz", "xyz"),
            ("x\u{1b}", "x", "x"),
            ("x\u{1b}[3", "x", "x"),
            ("x\u{1b}]0;never ends", "x", "x"),
            ("x\u{1b}\u{e9}\u{1b}[3\u{e9}y", "x\u{e9}\u{e9}y", "x\u{e9}\u{e9}y"),
            // Backspaces delete, but not the colour before them.
            ("1/9\u{8}\u{8}\u{8}\u{8}2/9", "2/9", "2/9"),
            ("\u{1b}[31m1\u{8}\u{8}2", "\u{1b}[31m2\u{1b}[0m", "2"),
        ] {
            assert_eq!(harmless(written, true), with_colours, "{written:?}");
            assert_eq!(harmless(written, false), without, "{written:?}");
        }
    }

    #[test]
    fn of_a_line_that_was_written_over_itself_the_last_state_is_left() {
        for (written, expected) in
            [("text", "text"), ("10 %\r20 %", "20 %"), ("10 %\r20 %\r\r", "20 %"), ("", ""), ("\r", "")]
        {
            assert_eq!(last_written(written), expected, "{written:?}");
        }
    }

    #[test]
    fn in_a_picture_a_line_is_one_line() {
        assert_eq!(plain("a:\r\n\tb \u{1b}[31mc\n"), "a:   b c");
    }

    #[test]
    fn both_ends_of_a_name_are_kept() {
        for (width_max, expected) in [(8, "worker-1"), (7, "wor…r-1"), (4, "wo…1"), (1, "…"), (0, "")] {
            assert_eq!(cut_in_the_middle("worker-1", width_max), expected);
        }
    }

    #[test]
    fn a_long_word_is_divided() {
        assert_eq!(pieces("short", 5), ["short"]);
        assert_eq!(pieces("longer", 4), ["long", "er"]);
        assert_eq!(pieces("日本語", 5), ["日本", "語"]);
        assert_eq!(pieces("日本", 0), ["日", "本"]);
    }

    #[test]
    fn wide_characters_take_two_columns_and_are_not_split() {
        for (line, n_columns, n_rows_of_two, in_three) in [
            ("", 0, 1, ""),
            ("abcd", 4, 2, "ab…"),
            ("日本", 4, 2, "日…"),
            ("e\u{301}te!", 4, 2, "e\u{301}t…"),
        ] {
            assert_eq!((width(line), rows(line, 2), rows(line, 4)), (n_columns, n_rows_of_two, 1), "{line}");
            assert_eq!((cut(line, 3), cut(line, 4)), (in_three.to_owned(), line.to_owned()), "{line}");
        }
        assert_eq!((rows("日本", 3), rows("abc", 1), rows("日", 1), rows("ab", 0)), (2, 3, 1, 2));
        assert_eq!(
            (cut("abc", 1), cut("abc", 0), cut("日本", 2)),
            ("…".to_owned(), String::new(), "…".to_owned())
        );
    }
}
