//! Unified diffs as kube-apiserver's messages show them.
//!
//! Which of several equally short diffs is shown depends on how matching lines are looked for: the longest block of equal
//! lines first, then what is left and right of it; in a text of 200 lines and more, lines that are more frequent than one in
//! a hundred start no block. This is the method of Python's difflib, which kube-apiserver's library follows.

use std::collections::HashMap;

/// Lines shown before and after a change.
const N_LINES_AROUND: usize = 3;
/// From this length on, frequent lines start no block.
const N_LINES_LONG: usize = 200;

/// Equal lines: where they begin in the old and in the new text, and how many they are.
#[derive(Clone, Copy)]
struct Block {
    old: usize,
    new: usize,
    len: usize,
}

/// A stretch of both texts that is equal or differs.
#[derive(Clone, Copy)]
struct Stretch {
    is_equal: bool,
    old: (usize, usize),
    new: (usize, usize),
}

/// The difference of two texts; empty if they are equal.
pub(super) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    groups(stretches(&old, &new)).iter().map(|group| hunk(group, &old, &new)).collect()
}

fn hunk(group: &[Stretch], old: &[&str], new: &[&str]) -> String {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return String::new() };
    let mut text = format!("@@ -{} +{} @@\n", range(first.old.0, last.old.1), range(first.new.0, last.new.1));
    let mut show = |mark: char, lines: &[&str], (from, to): (usize, usize)| {
        for line in lines.get(from..to).unwrap_or_default() {
            text.push(mark);
            text.push_str(line);
            text.push('\n');
        }
    };
    for stretch in group {
        if stretch.is_equal {
            show(' ', old, stretch.old);
        } else {
            show('-', old, stretch.old);
            show('+', new, stretch.new);
        }
    }
    text
}

/// Lines from one position up to another as a hunk's head counts them.
fn range(from: usize, to: usize) -> String {
    match to.saturating_sub(from) {
        1 => format!("{}", from + 1),
        0 => format!("{from},0"),
        length => format!("{},{length}", from + 1),
    }
}

/// Changes that are near each other, with the lines around them.
fn groups(mut stretches: Vec<Stretch>) -> Vec<Vec<Stretch>> {
    if let Some(first) = stretches.first_mut().filter(|stretch| stretch.is_equal) {
        first.old.0 = first.old.0.max(first.old.1.saturating_sub(N_LINES_AROUND));
        first.new.0 = first.new.0.max(first.new.1.saturating_sub(N_LINES_AROUND));
    }
    if let Some(last) = stretches.last_mut().filter(|stretch| stretch.is_equal) {
        last.old.1 = last.old.1.min(last.old.0 + N_LINES_AROUND);
        last.new.1 = last.new.1.min(last.new.0 + N_LINES_AROUND);
    }
    let mut groups = Vec::new();
    let mut group: Vec<Stretch> = Vec::new();
    for stretch in stretches {
        let (mut old, mut new) = (stretch.old, stretch.new);
        if stretch.is_equal && old.1 - old.0 > 2 * N_LINES_AROUND {
            group.push(Stretch {
                old: (old.0, old.1.min(old.0 + N_LINES_AROUND)),
                new: (new.0, new.1.min(new.0 + N_LINES_AROUND)),
                ..stretch
            });
            groups.push(std::mem::take(&mut group));
            old.0 = old.0.max(old.1.saturating_sub(N_LINES_AROUND));
            new.0 = new.0.max(new.1.saturating_sub(N_LINES_AROUND));
        }
        group.push(Stretch { old, new, ..stretch });
    }
    groups.push(group);
    groups.retain(|group| group.iter().any(|stretch| !stretch.is_equal));
    groups
}

fn stretches(old: &[&str], new: &[&str]) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let (mut i, mut j) = (0, 0);
    let end = Block { old: old.len(), new: new.len(), len: 0 };
    for block in blocks(old, new).into_iter().chain([end]) {
        if i < block.old || j < block.new {
            stretches.push(Stretch { is_equal: false, old: (i, block.old), new: (j, block.new) });
        }
        (i, j) = (block.old + block.len, block.new + block.len);
        if block.len > 0 {
            stretches.push(Stretch { is_equal: true, old: (block.old, i), new: (block.new, j) });
        }
    }
    stretches
}

/// All blocks of equal lines, in order.
fn blocks(old: &[&str], new: &[&str]) -> Vec<Block> {
    let places = places(new);
    let mut found: Vec<Block> = Vec::new();
    let mut open = vec![((0, old.len()), (0, new.len()))];
    while let Some((old_range, new_range)) = open.pop() {
        let block = longest(old, new, &places, old_range, new_range);
        if block.len == 0 {
            continue;
        }
        found.push(block);
        open.push(((old_range.0, block.old), (new_range.0, block.new)));
        open.push(((block.old + block.len, old_range.1), (block.new + block.len, new_range.1)));
    }
    found.sort_by_key(|block| (block.old, block.new));
    let mut joined: Vec<Block> = Vec::new();
    for block in found {
        match joined.last_mut() {
            Some(last) if last.old + last.len == block.old && last.new + last.len == block.new => {
                last.len += block.len;
            }
            _ => joined.push(block),
        }
    }
    joined
}

/// Where each line stands in the new text, without those too frequent to start a block.
fn places<'a>(new: &[&'a str]) -> HashMap<&'a str, Vec<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (position, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(position);
    }
    if new.len() >= N_LINES_LONG {
        let n_frequent = new.len() / 100 + 1;
        places.retain(|_, positions| positions.len() <= n_frequent);
    }
    places
}

/// The longest block of equal lines in these ranges; of several the first one.
fn longest(
    old: &[&str],
    new: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    (old_from, old_to): (usize, usize),
    (new_from, new_to): (usize, usize),
) -> Block {
    let mut best = Block { old: old_from, new: new_from, len: 0 };
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for (i, line) in old.iter().enumerate().take(old_to).skip(old_from) {
        let mut next = HashMap::new();
        for &j in places.get(line).into_iter().flatten().filter(|j| (new_from..new_to).contains(*j)) {
            let len = j.checked_sub(1).and_then(|before| lengths.get(&before)).unwrap_or(&0) + 1;
            next.insert(j, len);
            if len > best.len {
                best = Block { old: i + 1 - len, new: j + 1 - len, len };
            }
        }
        lengths = next;
    }
    // Lines that are too frequent to start a block may still belong to one.
    let is_same = |i: usize, j: usize| old.get(i).is_some_and(|line| new.get(j) == Some(line));
    while best.old > old_from && best.new > new_from && is_same(best.old - 1, best.new - 1) {
        best = Block { old: best.old - 1, new: best.new - 1, len: best.len + 1 };
    }
    while best.old + best.len < old_to
        && best.new + best.len < new_to
        && is_same(best.old + best.len, best.new + best.len)
    {
        best.len += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn changes_far_from_each_other_are_shown_apart() {
        let old: Vec<String> = (0..20).map(|n| format!("line {n}")).collect();
        let mut new = old.clone();
        new[2] = "other".to_owned();
        new.remove(17);
        expect![[r#"
            @@ -1,6 +1,6 @@
             line 0
             line 1
            -line 2
            +other
             line 3
             line 4
             line 5
            @@ -15,6 +15,5 @@
             line 14
             line 15
             line 16
            -line 17
             line 18
             line 19
        "#]]
        .assert_eq(&unified(&old.join("\n"), &new.join("\n")));
    }

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(unified("a\nb", "a\nb"), "");
    }
}
