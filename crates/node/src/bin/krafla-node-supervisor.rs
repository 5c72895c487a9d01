//! The supervisor alone, for the tests of this crate. Users have it as a part of `krafla`.

fn main() -> std::process::ExitCode {
    krafla_node::supervisor::main(std::env::args_os().skip(1))
}
