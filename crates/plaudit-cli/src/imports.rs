//! `--import`: Python modules that register rewards of the user's own, imported before the verb runs.

use crate::error::CliError;
use clap::Args;

/// Imports a Python module by its name or its file, or says why it cannot.
pub type Import<'i> = dyn Fn(&str) -> Result<(), String> + 'i;

/// Which modules are imported.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Import a Python module that registers rewards first: its name, or its file (needs the command of the Python package)
    #[arg(long = "import", value_name = "MODULE")]
    modules: Vec<String>,
}

impl ImportArgs {
    /// Imports the modules, in order.
    pub(crate) fn load(&self, import: Option<&Import<'_>>) -> Result<(), CliError> {
        for module in &self.modules {
            let Some(import) = import else {
                let message = "--import: this command has no Python in it; that of the Python package has: pip install plaudit";
                return Err(CliError::Arguments(message.to_owned()));
            };
            import(module).map_err(|why| CliError::Arguments(format!("--import {module}: {why}")))?;
        }
        Ok(())
    }
}
