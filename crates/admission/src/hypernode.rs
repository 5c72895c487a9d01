//! HyperNodes: their members must be there, and their patterns must be readable.

use krafla_api::volcano::HyperNode;

use crate::{Operation, Path, Reason, Request, Verdict, pattern, read};

/// Everything that is wrong with a new or changed HyperNode. How selectors combine is for the schema's rules to say.
pub fn validate(request: Request<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    if request.operation == Operation::Delete {
        return verdict;
    }
    let Some(hypernode) = read::<HyperNode>(request.object, &mut verdict) else { return verdict };
    let path = Path::new("spec.members");
    if hypernode.spec.members.is_empty() {
        let message = "Invalid value: []: member must have at least one member";
        verdict.refuse(&path, Reason::Invalid, message);
    }
    for (index, member) in hypernode.spec.members.iter().enumerate() {
        let Some(regex) = &member.selector.regex_match else { continue };
        if let Some(error) = pattern::error(&regex.pattern) {
            let path = path.index(index).field("selector.regexMatch.pattern");
            let detail = format!("member regexMatch pattern is invalid: {error}");
            verdict.invalid(&path, regex.pattern.as_str(), detail);
        }
    }
    verdict
}
