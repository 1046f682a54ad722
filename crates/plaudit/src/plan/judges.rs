//! Resolves the judges of a recipe: their configuration, and which of them a component asks.

use super::Scorer;
use super::resolve::Resolver;
use crate::judge::answer::AnswerFormat;
use crate::judge::config::{ConfigError, JudgeConfig, ResolvedJudge};
use crate::judge::rewards::judged_reward::{JudgedReward, PromptSource};
use crate::judge::rewards::params::Mode;
use crate::recipe::file::RecipeFile;
use crate::recipe::{Node, RecipeError};

impl Resolver<'_> {
    /// Takes the recipe's judges in. A judge that a recipe before has defined is that one, so that whoever routes to
    /// other recipes says where their judges are.
    pub(super) fn define(&mut self, written: &RecipeFile) {
        for (name, config) in &written.judges {
            let judge = self.judge(name, config);
            if !self.judges.iter().any(|known| known.name == *name) {
                self.judges.extend(judge);
            }
        }
    }

    /// Which judges a component asks, if any; none at all where one of them does not exist.
    #[allow(clippy::option_option, reason = "no judge is needed, or one is and does not exist")]
    pub(super) fn asks(
        &mut self,
        path: &str,
        node: &Node,
        scorer: &Scorer,
        defined: &[String],
    ) -> Option<Option<(usize, Option<usize>)>> {
        let Scorer::Judged(reward) = scorer else { return Some(None) };
        let mut places = Vec::new();
        for (key, named) in reward.judges() {
            let name = named.or(if defined.len() == 1 { defined.first().map(String::as_str) } else { None });
            let place = name.and_then(|name| {
                let known = defined.iter().any(|known| known == name);
                self.judges.iter().position(|judge| judge.name == name).filter(|_| known)
            });
            let scalar = |at: usize| self.judges[at].config.kind.is_scalar();
            let wants = if key == "prior" { true } else { reward.is_scalar() };
            let message = match (place, name) {
                (Some(at), _) if scalar(at) == wants && !self.lacks_form(reward, at) => {
                    places.push(at);
                    continue;
                }
                (Some(at), _) if scalar(at) == wants => {
                    let judge = &self.judges[at].name;
                    let message = format!(
                        "mode listwise asks for a ranking, which is not one token with probabilities, and judges.{judge} has \
                         answer_format: logprobs"
                    );
                    let line = node.get("mode").map_or(node.line, |node| node.line);
                    let error = RecipeError::new("recipe.judge", format!("{path}.mode"), message).at(line);
                    self.errors
                        .push(error.fixed_by(format!("set judges.{judge}.answer_format to auto or json")));
                    continue;
                }
                (Some(_), _) if wants => {
                    "a scalar reward model is wanted: a judge of kind classify, pooling or embeddings"
                        .to_owned()
                }
                (Some(_), _) => "a judge that can be talked to is wanted: of kind chat or overlap".to_owned(),
                // It exists, and its errors have been reported.
                (None, Some(name)) if defined.iter().any(|known| known == name) => continue,
                (None, Some(name)) => format!("there is no judge {name:?}"),
                (None, None) if defined.is_empty() => "there is no judge to ask".to_owned(),
                (None, None) => "there are several judges: say which".to_owned(),
            };
            let fix = match defined {
                [] => "define one, such as judges: { main: { base_url: http://127.0.0.1:8000/v1, model: NAME } }".to_owned(),
                names => format!("the judges are {}", names.join(", ")),
            };
            let path = format!("{path}.{key}");
            let line = node.get(key).map_or(node.line, |node| node.line);
            self.errors.push(RecipeError::new("recipe.judge", path, message).at(line).fixed_by(fix));
        }
        let judge = *places.first()?;
        let complete = places.len() == reward.judges().count();
        complete.then_some(Some((judge, places.get(1).copied())))
    }

    /// Whether a judge may be asked in no form that a reward can be asked in.
    fn lacks_form(&self, reward: &JudgedReward, judge: usize) -> bool {
        let ranks =
            reward.params.mode == Mode::Listwise && matches!(reward.prompt, PromptSource::Principles { .. });
        ranks && self.judges[judge].formats() == [AnswerFormat::Logprobs]
    }

    /// A judge that the recipe defines, unless it has errors.
    fn judge(&mut self, name: &str, config: &JudgeConfig) -> Option<ResolvedJudge> {
        let path = format!("judges.{name}");
        let resolved = ResolvedJudge::new(name, config.clone());
        let found = match &resolved {
            Ok(judge) => judge.warnings(),
            Err(errors) => errors.clone(),
        };
        let found: Vec<RecipeError> = found.into_iter().map(|error| self.located(&path, error)).collect();
        let list = if resolved.is_ok() { &mut self.warnings } else { &mut self.errors };
        list.extend(found);
        resolved.ok()
    }

    /// An error of a judge's configuration, at its place in the recipe.
    fn located(&self, judge: &str, error: ConfigError) -> RecipeError {
        let path = format!("{judge}.{}", error.key);
        let parent = path.rsplit_once('.').map_or(path.as_str(), |(parent, _)| parent);
        let line = self.line(&path).or_else(|| self.line(parent));
        // A judge without a model may be another one with a misspelt name.
        let fix = error.fix.or_else(|| self.neighbour(judge).filter(|_| error.key == "model"));
        RecipeError { code: error.code, path, line, message: error.message, fix }
    }
}
