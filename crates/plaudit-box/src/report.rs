//! What the sandbox found out about its host: each layer of each tier, what was tried, and the remedy.

use crate::options::Tier;

/// One layer of a tier, or the attacks on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerReport {
    /// The tier that was tried.
    pub tier: Tier,
    /// The layer.
    pub name: &'static str,
    /// Whether it works.
    pub works: bool,
    /// Whether the tier goes on without it.
    pub optional: bool,
    /// Whether it is an attack that was made, and not a layer.
    pub attack: bool,
    /// What was tried, and what came of it.
    pub detail: String,
    /// What to do where it does not work.
    pub remedy: Option<&'static str>,
}

/// All layers that were tried, and the tier that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxReport {
    /// The best tier that withstood the attacks.
    pub tier: Option<Tier>,
    /// The layers in the order in which they were tried.
    pub layers: Vec<LayerReport>,
}

impl std::fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.tier {
            Some(tier) => writeln!(f, "sandbox: tier {tier}")?,
            None => writeln!(f, "sandbox: none")?,
        }
        for layer in &self.layers {
            let mark = if layer.works { "ok" } else { "no" };
            writeln!(f, "  {mark}  tier {}, {}: {}", layer.tier, layer.name, layer.detail)?;
            if let Some(remedy) = layer.remedy {
                writeln!(f, "      {remedy}")?;
            }
        }
        Ok(())
    }
}
