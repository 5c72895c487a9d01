//! The signal by which a container is asked to end, by the name that a manifest has for it.

use rustix::process::Signal;

/// The signal of a name; SIGTERM if there is none. Those of real time have no names here, and whoever asks for one is asked to
/// end in the usual way.
pub(super) fn stop_signal(name: &str) -> Signal {
    ALL.into_iter().find(|(known, _)| *known == name).map_or(Signal::TERM, |(_, signal)| signal)
}

const ALL: [(&str, Signal); 34] = [
    ("SIGABRT", Signal::ABORT),
    ("SIGALRM", Signal::ALARM),
    ("SIGBUS", Signal::BUS),
    ("SIGCHLD", Signal::CHILD),
    ("SIGCLD", Signal::CHILD),
    ("SIGCONT", Signal::CONT),
    ("SIGFPE", Signal::FPE),
    ("SIGHUP", Signal::HUP),
    ("SIGILL", Signal::ILL),
    ("SIGINT", Signal::INT),
    ("SIGIO", Signal::IO),
    ("SIGIOT", Signal::ABORT),
    ("SIGKILL", Signal::KILL),
    ("SIGPIPE", Signal::PIPE),
    ("SIGPOLL", Signal::IO),
    ("SIGPROF", Signal::PROF),
    ("SIGPWR", Signal::POWER),
    ("SIGQUIT", Signal::QUIT),
    ("SIGSEGV", Signal::SEGV),
    ("SIGSTKFLT", Signal::STKFLT),
    ("SIGSTOP", Signal::STOP),
    ("SIGSYS", Signal::SYS),
    ("SIGTERM", Signal::TERM),
    ("SIGTRAP", Signal::TRAP),
    ("SIGTSTP", Signal::TSTP),
    ("SIGTTIN", Signal::TTIN),
    ("SIGTTOU", Signal::TTOU),
    ("SIGURG", Signal::URG),
    ("SIGUSR1", Signal::USR1),
    ("SIGUSR2", Signal::USR2),
    ("SIGVTALRM", Signal::VTALARM),
    ("SIGWINCH", Signal::WINCH),
    ("SIGXCPU", Signal::XCPU),
    ("SIGXFSZ", Signal::XFSZ),
];
