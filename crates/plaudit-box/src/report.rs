//! What the sandbox found out about its host: each layer of each isolation, what was tried, and the remedy.

use crate::options::Isolation;

/// One layer of an isolation, or the attacks on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerReport {
    /// The isolation that was tried.
    pub isolation: Isolation,
    /// The layer.
    pub name: &'static str,
    /// Whether it works.
    pub works: bool,
    /// Whether the isolation goes on without it.
    pub optional: bool,
    /// Whether it is an attack that was made, and not a layer.
    pub attack: bool,
    /// What was tried, and what came of it.
    pub detail: String,
    /// What to do where it does not work.
    pub remedy: Option<&'static str>,
}

/// All layers that were tried, and the isolation that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxReport {
    /// The best isolation that withstood the attacks.
    pub isolation: Option<Isolation>,
    /// The layers in the order in which they were tried.
    pub layers: Vec<LayerReport>,
}

impl std::fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.isolation {
            Some(isolation) => writeln!(f, "sandbox: {isolation}")?,
            None => writeln!(f, "sandbox: none")?,
        }
        for layer in &self.layers {
            let mark = if layer.works { "ok" } else { "no" };
            writeln!(f, "  {mark}  {}, {}: {}", layer.isolation, layer.name, layer.detail)?;
            if let Some(remedy) = layer.remedy {
                writeln!(f, "      {remedy}")?;
            }
        }
        Ok(())
    }
}
