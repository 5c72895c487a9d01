//! What a role would grant beyond what its author may do.

use std::collections::{BTreeMap, BTreeSet};

use super::{Rule, User, covers_path, has, has_or_all};

/// What is allowed by `wanted` and not by `held`, in the smallest parts: one verb, one group, one resource, one name.
pub fn uncovered(held: &[&Rule], wanted: &[Rule]) -> Vec<Rule> {
    let parts = wanted.iter().flat_map(parts_of);
    parts.filter(|part| !held.iter().any(|rule| covers(rule, part))).collect()
}

/// Whether all of `wanted` is allowed by `held`; if not, why the author of `wanted` is refused.
pub fn confirm(user: &User, held: &[&Rule], wanted: &[Rule], unresolved: Option<&str>) -> Result<(), String> {
    let missing = uncovered(held, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let described: BTreeSet<String> = compacted(missing).iter().map(described).collect();
    let described: Vec<String> = described.into_iter().collect();
    let (name, groups) = (&user.name, quoted(&user.groups));
    let mut message = format!(
        "user {name:?} (groups={groups}) is attempting to grant RBAC permissions not currently held:\n{}",
        described.join("\n")
    );
    if let Some(unresolved) = unresolved {
        message.push_str(&format!("; resolution errors: [{unresolved}]"));
    }
    Err(message)
}

/// The right to do everything, which aggregation asks for: what a role gathers is not known beforehand.
pub fn full_authority() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    [
        Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() },
        Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() },
    ]
}

fn parts_of(rule: &Rule) -> Vec<Rule> {
    let one = |text: &String| vec![text.clone()];
    let mut parts = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let part = Rule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..Rule::default()
                };
                if rule.resource_names.is_empty() {
                    parts.push(part);
                } else {
                    let named = |name| Rule { resource_names: one(name), ..part.clone() };
                    parts.extend(rule.resource_names.iter().map(named));
                }
            }
        }
    }
    for url in &rule.non_resource_urls {
        let part = |verb| Rule { verbs: one(verb), non_resource_urls: one(url), ..Rule::default() };
        parts.extend(rule.verbs.iter().map(part));
    }
    parts
}

/// Whether a rule allows a smallest part.
fn covers(rule: &Rule, part: &Rule) -> bool {
    let covers_resource = |resource: &String| {
        let of_any = resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        has_or_all(&rule.resources, resource) || of_any.is_some_and(|of_any| has(&rule.resources, &of_any))
    };
    let covers_url = |url: &String| rule.non_resource_urls.iter().any(|own| covers_path(own, url));
    let covers_names = rule.resource_names.is_empty()
        || !part.resource_names.is_empty()
            && part.resource_names.iter().all(|name| has(&rule.resource_names, name));
    part.verbs.iter().all(|verb| has_or_all(&rule.verbs, verb))
        && part.api_groups.iter().all(|group| has_or_all(&rule.api_groups, group))
        && part.resources.iter().all(covers_resource)
        && part.non_resource_urls.iter().all(covers_url)
        && covers_names
}

/// Parts about one resource as one rule with several verbs.
fn compacted(parts: Vec<Rule>) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut simple: BTreeMap<_, Rule> = BTreeMap::new();
    for part in parts {
        if !part.non_resource_urls.is_empty() {
            rules.push(part);
            continue;
        }
        let about = (part.api_groups.clone(), part.resources.clone(), part.resource_names.clone());
        match simple.entry(about) {
            std::collections::btree_map::Entry::Vacant(vacant) => {
                vacant.insert(part);
            }
            std::collections::btree_map::Entry::Occupied(mut rule) => rule.get_mut().verbs.extend(part.verbs),
        }
    }
    rules.extend(simple.into_values());
    rules
}

fn described(rule: &Rule) -> String {
    let fields = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let fields = fields.into_iter().filter(|(_, list)| !list.is_empty());
    let fields: Vec<String> = fields.map(|(name, list)| format!("{name}:{}", quoted(list))).collect();
    format!("{{{}}}", fields.join(", "))
}

fn quoted(list: &[String]) -> String {
    let items: Vec<String> = list.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", items.join(" "))
}
