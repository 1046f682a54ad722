//! The trainers of `plaudit init`: what each hands over, and how it is told of a recipe.

/// A trainer, or another caller.
#[derive(Debug)]
pub(super) struct Trainer {
    /// The name of the trainer on the command line.
    pub(super) name: &'static str,
    /// The trainer as it writes itself.
    pub(super) title: &'static str,
    /// The trainer in one line, for the help.
    pub(super) summary: &'static str,
    /// Where the fields of a rollout come from (`FIELDS` stands for their names), and what an invalid one gets: comments of the recipe.
    pub(super) rows: &'static [&'static str],
    /// Whether it hands rollouts over one by one, so that groups wait for their members.
    pub(super) one_by_one: bool,
    /// The page of the guide.
    pub(super) page: &'static str,
    snippet: &'static str,
}

/// What stands in a snippet for its placeholders.
pub(super) struct Places<'p> {
    /// The file of the recipe, as it was named.
    pub(super) path: &'p str,
    /// The name that the recipe gives itself.
    pub(super) name: &'p str,
    /// Example rollouts, as one line of JSON.
    pub(super) row: &'p str,
}

/// Every trainer, the default first.
pub(super) const TRAINERS: &[Trainer] = &[
    Trainer {
        name: "none",
        title: "Python",
        summary: "A loop of your own, or files: the Python package and the command",
        rows: &[
            "A rollout has the fields FIELDS;",
            "every other field is `extra`. One that could not be scored is NaN in Python and null in files, with the reason.",
        ],
        one_by_one: false,
        page: "docs/guide/python.md",
        snippet: include_str!("../../init/trainers/none.txt"),
    },
    Trainer {
        name: "verl",
        title: "verl",
        summary: "verl 0.7.1 and later, by its reward manager",
        rows: &[
            "verl: the reference of a row is reward_model.ground_truth; extra_info and the other columns are `extra`. A rollout that could",
            "not be scored gets the mean of its siblings, and plaudit/invalid 1 (+reward.reward_kwargs.invalid).",
        ],
        one_by_one: true,
        page: "docs/guide/verl.md",
        snippet: include_str!("../../init/trainers/verl.txt"),
    },
    Trainer {
        name: "trl",
        title: "TRL",
        summary: "TRL's GRPOTrainer and RLOOTrainer, and axolotl, by a reward function",
        rows: &[
            "TRL: the reference is the column reference, answer, ground_truth or solution; the other columns are `extra`. A completion that",
            "could not be scored is None, which TRL leaves out of the mean of its group.",
        ],
        one_by_one: false,
        page: "docs/guide/trl.md",
        snippet: include_str!("../../init/trainers/trl.txt"),
    },
    Trainer {
        name: "openrlhf",
        title: "OpenRLHF",
        summary: "OpenRLHF, by its agent function",
        rows: &[
            "OpenRLHF: the label of a sample is its reference, or an object whose `reference` is that and whose other fields are `extra`. A",
            "sample that could not be scored gets the mean of its siblings.",
        ],
        one_by_one: true,
        page: "docs/guide/openrlhf.md",
        snippet: include_str!("../../init/trainers/openrlhf.txt"),
    },
    Trainer {
        name: "ray",
        title: "Ray Data",
        summary: "Data sets of Ray Data, on all machines of a cluster",
        rows: &[
            "Ray Data: the columns are FIELDS;",
            "other columns are `extra`, and `fields=` names those of an existing data set. A rollout that could not be scored is null, with",
            "the reason.",
        ],
        one_by_one: false,
        page: "docs/guide/ray.md",
        snippet: include_str!("../../init/trainers/ray.txt"),
    },
    Trainer {
        name: "slime",
        title: "slime",
        summary: "slime's remote reward model, by the service",
        rows: &[
            "slime: the label of a sample is its reference; token counts and metadata are not sent. A sample that could not be scored is",
            "answered with an error, never with a number.",
        ],
        one_by_one: true,
        page: "docs/guide/serve-clients.md",
        snippet: include_str!("../../init/trainers/slime.txt"),
    },
    Trainer {
        name: "nemo-gym",
        title: "NeMo-Gym",
        summary: "NeMo-Gym and NeMo-RL, by the service",
        rows: &[
            "NeMo-Gym: the reference is the field reference, expected_answer, answer, ground_truth, solution or label; all fields of the data",
            "set are `extra`. A sample that could not be scored has _ng_failure_class, and NeMo-RL masks it.",
        ],
        one_by_one: true,
        page: "docs/guide/serve-clients.md",
        snippet: include_str!("../../init/trainers/nemo-gym.txt"),
    },
    Trainer {
        name: "service",
        title: "the service",
        summary: "Anything that speaks HTTP, by `plaudit serve`",
        rows: &[
            "The service: a rollout has the fields FIELDS;",
            "every other field is `extra`. One that could not be scored has \"total\": null and the reason.",
        ],
        one_by_one: true,
        page: "docs/guide/serve.md",
        snippet: include_str!("../../init/trainers/service.txt"),
    },
];

impl Trainer {
    /// What to put into a launch script, a program or a configuration.
    pub(super) fn snippet(&self, places: &Places<'_>) -> String {
        let path = shell(places.path);
        let absolute = if places.path.starts_with('/') { path.clone() } else { format!("\"$PWD\"/{path}") };
        let string = serde_json::Value::from(places.path).to_string();
        let filled = [
            ("{absolute}", absolute.as_str()),
            ("{path}", path.as_str()),
            ("{string}", string.as_str()),
            ("{name}", places.name),
            ("{row}", places.row),
        ];
        filled
            .iter()
            .fold(self.snippet.trim_end().to_owned(), |text, (mark, value)| text.replace(mark, value))
    }
}

/// A path as one word of a shell.
pub(super) fn shell(path: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+,@:".contains(letter);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::shell;

    #[test]
    fn paths_are_words_of_a_shell() {
        assert_eq!(shell("runs/my-recipe.yaml"), "runs/my-recipe.yaml");
        assert_eq!(shell("my recipe's.yaml"), r"'my recipe'\''s.yaml'");
        assert_eq!(shell("$(x).yaml"), "'$(x).yaml'");
    }
}
