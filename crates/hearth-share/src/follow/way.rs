//! How a program follows: while it runs, by what it is told at its start, or not at all.

use super::program::Program;
use std::env;
use std::fmt;

/// How a program follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// The preloaded library has these of its runtimes follow; none: those that it loads later.
    Library(Vec<&'static str>),
    /// By the CPUs that it may run on, which this runtime reads again and again.
    Mask(&'static str),
    /// This variable tells it a number at its start.
    Told(&'static str),
    /// The user has told it a number by this variable.
    Users(&'static str),
    /// It cannot, for this reason.
    Not(&'static str),
}

/// Libraries by which runtimes are known: the begin of the name.
const RUNTIMES: &[(&str, &str)] = &[
    ("libgomp", "GNU's OpenMP"),
    ("libomp", "LLVM's OpenMP"),
    ("libiomp", "Intel's OpenMP"),
    ("libtbb.so", "oneTBB"),
    ("libopenblas", "OpenBLAS"),
    ("libblis", "BLIS"),
    ("libblas", "BLAS"),
    ("libcblas", "BLAS"),
    ("liblapack", "BLAS"),
];

/// Since this version Go reads the CPUs that it may run on while it runs.
const GO_REREADS: (u32, u32) = (1, 25);

impl Way {
    /// How this program follows.
    pub fn of(program: &Program) -> Self {
        if let Some(version) = program.go {
            return go(version);
        }
        if program.libraries.iter().any(|name| name.starts_with("libjli.so")) || program.name() == "java" {
            return Self::Mask("the JVM");
        }
        match program.obstacle() {
            Some(reason) => Self::Not(reason),
            None => Self::Library(runtimes(program)),
        }
    }
}

impl Way {
    /// Whether it has use for a number.
    pub fn follows(&self) -> bool {
        !matches!(self, Self::Users(_) | Self::Not(_))
    }

    /// Whether a number at its start may be all that it, or what it starts, ever reads.
    pub fn is_told_at_start(&self) -> bool {
        match self {
            Self::Library(runtimes) => runtimes.is_empty(),
            Self::Told(_) => true,
            Self::Mask(_) | Self::Users(_) | Self::Not(_) => false,
        }
    }
}

fn go(version: (u32, u32)) -> Way {
    if env::var_os("GOMAXPROCS").is_some() {
        Way::Users("GOMAXPROCS")
    } else if version >= GO_REREADS {
        Way::Mask("Go")
    } else {
        Way::Told("GOMAXPROCS")
    }
}

fn runtimes(program: &Program) -> Vec<&'static str> {
    let known = |(begin, _): &&(&str, &str)| program.libraries.iter().any(|name| name.starts_with(begin));
    let mut names: Vec<_> = RUNTIMES.iter().filter(known).map(|(_, name)| *name).collect();
    names.dedup();
    names
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Library(names) if names.is_empty() => {
                write!(f, "follows while it runs, where it or what it starts uses OpenMP, oneTBB or BLAS")
            }
            Self::Library(names) => write!(f, "follows while it runs ({})", names.join(", ")),
            Self::Mask(name) => {
                write!(f, "follows while it runs ({name}, by the CPUs that it may run on)")
            }
            Self::Told(name) => write!(f, "is told at its start ({name}), and does not follow while it runs"),
            Self::Users(name) => write!(f, "has the number that you set ({name})"),
            Self::Not(reason) => write!(f, "cannot follow: {reason}; it runs as it is"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(libraries: &[&str]) -> Program {
        let libraries = libraries.iter().map(|name| (*name).to_owned()).collect();
        Program {
            libraries,
            known: true,
            interpreter: Some("/lib64/ld-linux-x86-64.so.2".into()),
            ..Program::default()
        }
    }

    #[test]
    fn runtimes_are_known_by_the_libraries_that_a_program_names() {
        let way = Way::of(&program(&["libm.so.6", "libgomp.so.1", "liblapack.so.3", "libblas.so.3"]));
        assert_eq!(way, Way::Library(vec!["GNU's OpenMP", "BLAS"]));
        assert_eq!(Way::of(&program(&["libc.so.6"])), Way::Library(vec![]));
        assert_eq!(Way::of(&program(&["libjli.so"])), Way::Mask("the JVM"));
    }

    #[test]
    fn versions_of_go_follow_or_are_told() {
        let built_with = |go| Way::of(&Program { go: Some(go), ..program(&[]) });
        assert_eq!(built_with((1, 26)), Way::Mask("Go"));
        assert_eq!(built_with((1, 24)), Way::Told("GOMAXPROCS"));
    }

    #[test]
    fn a_program_that_nothing_can_be_loaded_into_cannot_follow() {
        let of_another_library =
            Program { interpreter: Some("/lib/ld-musl-x86_64.so.1".into()), ..program(&[]) };
        for other in [Program { interpreter: None, ..program(&[]) }, of_another_library, Program::default()] {
            assert!(matches!(Way::of(&other), Way::Not(_)), "{other:?}");
        }
    }
}
