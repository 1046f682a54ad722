//! The layers of a box: their names, what became of each, and the remedy where one does not work.

use crate::child::Step;
use crate::job::BoxError;
use crate::options::Isolation;
use crate::report::LayerReport;

impl Step {
    /// The name of the layer that a step puts on.
    pub(crate) fn layer(self) -> &'static str {
        match self {
            Step::Clone => "namespaces",
            Step::Group => "process group and death signal",
            Step::Identity => "user namespace",
            Step::Mounts => "file system",
            Step::Files => "files of the job",
            Step::User => "user",
            Step::Limits => "limits",
            Step::NoNewPrivileges => "no new privileges",
            Step::Landlock => "Landlock",
            Step::Descriptors => "descriptors",
            Step::Seccomp => "seccomp",
            Step::Ready | Step::Execute => "program",
        }
    }
}

/// What helps against a failure, by the layer and the error.
pub(crate) fn remedy(layer: &str, errno: i32) -> Option<&'static str> {
    Some(match (layer, errno) {
        ("namespaces", libc::ENOSPC) => "Raise user.max_user_namespaces (sysctl), or use Landlock alone.",
        ("namespaces", _) => {
            "Docker and Kubernetes refuse user namespaces by default: run with a seccomp profile that allows clone(CLONE_NEWUSER), \
             on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0; or use Landlock alone."
        }
        ("user namespace", _) => {
            "As root in a container, add the capabilities SETUID and SETGID, or run as an ordinary user."
        }
        ("file system", libc::ENOENT) => {
            "A folder that the box binds is not there, or its user may not enter it."
        }
        ("file system", _) => {
            "The kernel refuses mounts in a user namespace: AppArmor or SELinux may forbid them; or use Landlock alone."
        }
        ("user", _) => {
            "As root in a container, add the capabilities SETUID and SETGID, or run as an ordinary user."
        }
        ("Landlock", _) => "Needs Linux 5.13 or later with landlock in the list of `lsm=`.",
        ("seccomp", _) => "Needs a kernel with CONFIG_SECCOMP_FILTER.",
        ("/proc", _) => {
            "Programs see no /proc, which most do not need. For one, give the container an unmasked /proc \
             (Docker: --security-opt systempaths=unconfined; Kubernetes: procMount: Unmasked)."
        }
        _ => return None,
    })
}

impl LayerReport {
    /// A layer that could not be put on.
    pub(crate) fn failed(isolation: Isolation, failure: &BoxError) -> Self {
        let (name, errno) = match failure {
            BoxError::Setup { layer, errno } => (*layer, *errno),
            BoxError::HostError(what, errno) => (*what, *errno),
            _ => ("program", 0),
        };
        let detail = format!("refused: {}", std::io::Error::from_raw_os_error(errno));
        Self {
            isolation,
            name,
            works: false,
            optional: false,
            attack: false,
            detail,
            remedy: remedy(name, errno),
        }
    }

    /// A layer that is on.
    pub(crate) fn on(isolation: Isolation, name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            isolation,
            name,
            works: true,
            optional: false,
            attack: false,
            detail: detail.into(),
            remedy: None,
        }
    }

    /// A layer that the isolation goes on without.
    pub(crate) fn missing(isolation: Isolation, name: &'static str, errno: i32) -> Self {
        let detail = format!("left out: {}", std::io::Error::from_raw_os_error(errno));
        Self {
            isolation,
            name,
            works: false,
            optional: true,
            attack: false,
            detail,
            remedy: remedy(name, errno),
        }
    }
}
