//! Reasons why the job of a step is not created. The API has no field for them; they stand where a phase would be.

use krafla_api::volcano::JobPhase;

/// What keeps the job of a step from being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// There is no JobTemplate of the step's name.
    TemplateMissing,
    /// There is one, with something that its kind does not have.
    TemplateUnreadable,
    /// A job that is not the flow's has its name.
    ForeignJob,
    /// The server did not take it.
    Refused,
    /// The step waits for one that is not in the flow.
    DependencyUnknown,
    /// Steps wait for each other.
    DependencyRing,
    /// Two steps have one name, and only the first counts.
    NamedTwice,
}

impl Hindrance {
    const ALL: [Hindrance; 7] = [
        Hindrance::TemplateMissing,
        Hindrance::TemplateUnreadable,
        Hindrance::ForeignJob,
        Hindrance::Refused,
        Hindrance::DependencyUnknown,
        Hindrance::DependencyRing,
        Hindrance::NamedTwice,
    ];

    /// The word that the flow's status has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Hindrance::TemplateMissing => "TemplateMissing",
            Hindrance::TemplateUnreadable => "TemplateUnreadable",
            Hindrance::ForeignJob => "ForeignJob",
            Hindrance::Refused => "Refused",
            Hindrance::DependencyUnknown => "DependencyUnknown",
            Hindrance::DependencyRing => "DependencyRing",
            Hindrance::NamedTwice => "NamedTwice",
        }
    }

    /// What stands in a flow's status in place of the phase of a job, if that is no phase.
    pub fn of(phase: &JobPhase) -> Option<Hindrance> {
        let JobPhase::Other(word) = phase else { return None };
        Hindrance::ALL.into_iter().find(|it| it.as_str() == &**word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_a_status_is_known_again() {
        for hindrance in Hindrance::ALL {
            assert_eq!(Hindrance::of(&JobPhase::from(hindrance.as_str())), Some(hindrance));
        }
        assert_eq!(Hindrance::of(&JobPhase::Aborted), None);
        assert_eq!(Hindrance::of(&JobPhase::from("Sideways")), None);
    }
}
