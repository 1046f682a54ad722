//! What `plaudit doctor` tells about the sandbox for programs: every layer of each isolation, the attacks on it, and the languages.

use super::CheckResult::{Bad, Doubtful, Good};
use super::DoctorCheck;
use plaudit::code::{Isolation, LayerReport, probe};

/// One line for the sandbox; with all, one for each layer that was tried and one for each language as well.
pub(super) fn checks(all: bool) -> Vec<DoctorCheck> {
    let host = probe();
    let (verdict, isolates) = match host.sandbox.isolation {
        Some(Isolation::Namespaces) => {
            (Good, "isolated by namespaces, seccomp, Landlock and limits".to_owned())
        }
        Some(Isolation::Landlock) => (
            Good,
            "isolated by Landlock, seccomp and limits: one process without files for each program".to_owned(),
        ),
        Some(Isolation::None) => (Doubtful, "not isolated".to_owned()),
        None => (Doubtful, "none: rewards that run programs are refused".to_owned()),
    };
    let usable: Vec<&str> =
        host.languages.iter().filter(|(_, found)| found.is_ok()).map(|(name, _)| name.as_str()).collect();
    let said = match (all, usable.as_slice()) {
        (true, _) => isolates,
        (false, []) => format!("{isolates}; `plaudit doctor --all` tells why"),
        (false, usable) => format!("{isolates}; {}; more with --all", usable.join(", ")),
    };
    let mut checks = vec![DoctorCheck::new(verdict, "sandbox", said)];
    if !all {
        return checks;
    }
    for isolation in [Isolation::Namespaces, Isolation::Landlock] {
        let layers: Vec<&LayerReport> =
            host.sandbox.layers.iter().filter(|layer| layer.isolation == isolation).collect();
        let attacks = layers.iter().filter(|layer| layer.attack).count();
        let stopped = layers.iter().filter(|layer| layer.attack && layer.works).count();
        checks.extend(layers.iter().filter(|layer| !layer.attack || !layer.works).map(|layer| line(layer)));
        if attacks > 0 {
            let verdict = if stopped == attacks { Good } else { Bad };
            let said = format!("{stopped} of {attacks} stopped");
            checks.push(DoctorCheck::new(verdict, &format!("{isolation}: attacks"), said));
        }
    }
    checks.extend(host.languages.into_iter().map(|(name, found)| match found {
        Ok(command) => DoctorCheck::new(Good, &name, command),
        Err(why) => DoctorCheck::new(Good, &name, format!("left out: {why}")),
    }));
    checks
}

fn line(layer: &LayerReport) -> DoctorCheck {
    let verdict = if layer.works { Good } else { Doubtful };
    let remedy = layer.remedy.map_or_else(String::new, |remedy| format!("\n{remedy}"));
    DoctorCheck::new(
        verdict,
        &format!("{}: {}", layer.isolation, layer.name),
        format!("{}{remedy}", layer.detail),
    )
}
