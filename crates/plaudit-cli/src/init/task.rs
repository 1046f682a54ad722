//! The tasks of `plaudit init`: a commented recipe and example rollouts for each.

/// A task, with what there is to write and to try for it.
#[derive(Debug)]
pub(super) struct Task {
    /// The name of the task on the command line.
    pub(super) name: &'static str,
    /// The recipe: a head of comments, of which the first line says what the task is, then the keys.
    recipe: &'static str,
    /// A rollout or a group of them, as one line of JSON without a single quote.
    example: &'static str,
}

/// Every task, the default first. A new one is its name here and its two files in `init/tasks/`.
pub(super) const TASKS: &[Task] = {
    macro_rules! tasks {
        ($($name:literal),+ $(,)?) => { &[$(Task {
            name: $name,
            recipe: include_str!(concat!("../../init/tasks/", $name, ".yaml")),
            example: include_str!(concat!("../../init/tasks/", $name, ".jsonl")),
        }),+] };
    }
    tasks!["math", "code", "choice", "instructions", "chat", "rubric", "agent", "safety", "writing"]
};

impl Task {
    /// The task in one line.
    pub(super) fn summary(&self) -> &'static str {
        self.head().lines().next().unwrap_or("").trim_start_matches('#').trim()
    }

    /// The comments that the recipe opens with.
    pub(super) fn head(&self) -> &'static str {
        &self.recipe[..self.border()]
    }

    /// The keys of the recipe.
    pub(super) fn keys(&self) -> &'static str {
        &self.recipe[self.border()..]
    }

    pub(super) fn example(&self) -> &'static str {
        self.example.trim_end()
    }

    /// Where the first line begins that is no comment.
    fn border(&self) -> usize {
        self.recipe.split_inclusive('\n').take_while(|line| line.starts_with('#')).map(str::len).sum()
    }
}
