"""Tests of the whole-batch manager with the loaders, data and metrics of verl 0.4 to 0.7.0."""

import functools
import inspect
import os
import pathlib
import threading
import time

import pytest

verl = pytest.importorskip("verl")
np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from plaudit.verl import PlauditBatchRewardManager, register  # noqa: E402
from verl.trainer.ppo import reward as verl_reward  # noqa: E402
from verl.trainer.ppo.metric_utils import process_validation_metrics  # noqa: E402

VERSION = tuple(int(part) for part in verl.__version__.split(".")[:3])
pytestmark = pytest.mark.skipif(
    VERSION >= (0, 7, 1), reason="this verl calls no whole-batch manager any more"
)

RULES = {
    "name": "rules",
    "components": {
        "format": {"reward": "reasoning_format"},
        "thought": {"reward": "thought_length", "weight": 0},
    },
}


def config(name="plaudit", function=None, **reward_kwargs):
    """The trainer's own configuration, with the lines that a user adds."""
    hydra = pytest.importorskip("hydra")
    folder = pathlib.Path(inspect.getfile(verl)).parent / "trainer" / "config"
    lines = []
    if VERSION >= (0, 7, 0):
        classes = {
            "plaudit": "PlauditBatchRewardManager",
            "rm_gallery": "RMGalleryRewardManager",
            "dgr": "DGRRewardManager",
        }
        lines += ["reward_manager.source=importlib", f"reward_manager.name={classes[name]}"]
        lines += ["reward_manager.module.path=pkg://plaudit.verl"]
    else:
        lines += [f"reward_model.reward_manager={name}"]
    if function:
        lines += [f"custom_reward_function.path={function}"]
    with hydra.initialize_config_dir(str(folder), version_base=None):
        composed = hydra.compose("ppo_trainer", overrides=lines)
    from omegaconf import OmegaConf

    OmegaConf.set_struct(composed, False)
    composed.reward_model.reward_kwargs = OmegaConf.create(reward_kwargs)
    return composed


def load(tokenizer, num_examine=0, **options):
    """The manager as `main_ppo` makes it."""
    register()
    composed = config(**options)
    return verl_reward.load_reward_manager(
        composed, tokenizer, num_examine=num_examine, **composed.reward_model.get("reward_kwargs", {})
    )


def last_tokens(data):
    """Where verl expects the score of each row."""
    width = data.batch["prompts"].shape[-1]
    return (data.batch["attention_mask"][:, width:].sum(dim=1) - 1).tolist()


def test_a_scattered_padded_batch_is_scored_as_its_texts_are(batch, rollouts, judged):
    rows = rollouts(groups=4, size=4)
    data, tokenizer = batch(rows)
    options = judged()
    manager = load(tokenizer, **options)
    tensor, info = verl_reward.compute_reward(data, manager)
    lengths = [len(text.split()) + 1 for text in rows["response"]]
    expected = PlauditBatchRewardManager(**options).score_batch(
        rows["prompt"], rows["response"], groups=rows["uid"], tokens=lengths
    )
    assert tensor.dtype == torch.float32 and tensor.shape == data.batch["responses"].shape
    for at, place in enumerate(last_tokens(data)):
        assert tensor[at, place].item() == pytest.approx(expected.rewards[at])
        assert torch.count_nonzero(tensor[at]) <= 1
    assert data.batch["acc"].tolist() == pytest.approx(expected.rewards)
    assert info["reward_principle"] == expected.info["reward_principle"]
    assert {
        "reward_format",
        "reward_ngram",
        "thought_lengths",
        "scores_thought_length",
        "scores_total_lengths",
    } <= set(info)
    for pairs in rows.by_group(info["reward_principle"]).values():
        assert [value for _, value in pairs] == sorted(value for _, value in pairs)


def test_what_comes_back_goes_through_the_rest_of_a_step(batch, rollouts):
    rows = rollouts(groups=2, size=4)
    data, tokenizer = batch(rows)
    tensor, info = verl_reward.compute_reward(data, load(tokenizer, recipe=RULES))
    data.batch["token_level_scores"] = tensor
    data.non_tensor_batch.update({key: np.array(values) for key, values in info.items()})
    parts = data.chunk(2)
    again = verl.DataProto.concat(parts)
    assert again.batch["acc"].tolist() == data.batch["acc"].tolist()
    assert again.non_tensor_batch["plaudit/invalid"].tolist() == [0.0] * 8
    data.reorder(torch.arange(7, -1, -1))
    assert data.non_tensor_batch["score"].tolist() == again.non_tensor_batch["score"].tolist()[::-1]


def test_padding_on_the_left_of_responses_and_empty_responses(batch, rollouts):
    rows = rollouts(groups=2, size=2, shuffle=None)
    data, tokenizer = batch(rows, left=3, empty=(1,))
    manager = load(tokenizer, recipe=RULES, num_examine=1)
    tensor = manager(data)
    assert [row.nonzero().flatten().tolist() for row in tensor] == [
        [3 + len(rows["response"][0].split())],
        [],
        *[[3 + len(text.split())] for text in rows["response"][2:]],
    ]
    empty = PlauditBatchRewardManager(
        tokenizer, recipe={"name": "flat", "components": {"l": {"reward": "length_penalty"}}}
    )
    tensor = empty(data)
    assert tensor[1].nonzero().flatten().tolist() == [tensor.shape[1] - 1]


def test_scores_that_are_there_are_given_back(batch, rollouts):
    data, tokenizer = batch(rollouts(groups=1, size=2))
    data.batch["rm_scores"] = torch.full_like(data.batch["responses"], 0.5, dtype=torch.float32)
    data.non_tensor_batch["kept"] = np.array([1.0, 2.0])
    data.meta_info["reward_extra_keys"] = ["kept"]
    manager = load(tokenizer, recipe=RULES)
    assert manager(data) is data.batch["rm_scores"] or torch.equal(manager(data), data.batch["rm_scores"])
    result = manager(data, return_dict=True)
    assert result["reward_extra_info"]["kept"].tolist() == [1.0, 2.0] and "acc" not in data.batch.keys()


@pytest.mark.parametrize("told", [True, False], ids=["meta_info", "num_examine"])
def test_validation_compares_with_the_reference(batch, rollouts, judged, told, capsys):
    rows = rollouts(groups=5, size=1, reference_quality=0.2)
    data, tokenizer = batch(rows, uid=False, meta_info={"validate": True} if told else None)
    manager = load(tokenizer, num_examine=1, **judged())
    result = manager(data, return_dict=True)
    info = result["reward_extra_info"]
    assert info["win"] == [float(quality > 0.2) for quality in rows["quality"]] == info["acc"]
    assert set(info) >= {"win_and", "comparison_score"}
    printed = capsys.readouterr().out
    assert "[Sample 0] Prompt: Please answer" in printed and "[Sample 1]" not in printed
    assert (
        "[Sample 0] Reference:" in printed
        and "[Sample 0] Score:" in printed
        and "reward_principle=" in printed
    )
    metrics = process_validation_metrics(
        ["tests"] * 5, rows["prompt"], {**info, "reward": result["reward_tensor"].sum(-1).tolist()}
    )
    assert metrics["tests"]["acc"]["mean@1"] == pytest.approx(sum(info["win"]) / 5)


def test_the_training_manager_does_not_validate(batch, rollouts, judged):
    rows = rollouts(groups=2, size=2, reference_quality=0.2)
    data, tokenizer = batch(rows)
    info = load(tokenizer, **judged())(data, return_dict=True)["reward_extra_info"]
    assert "win" not in info


def test_uneven_groups_stop_the_run_with_their_names(batch, rollouts):
    rows = rollouts(groups=3, size=2)
    del rows.rows[0]
    data, tokenizer = batch(rows)
    before = set(data.batch.keys())
    with pytest.raises(ValueError, match=r"most have 2 rollouts, but 'uid-\d' has 1"):
        verl_reward.compute_reward(data, load(tokenizer, recipe=RULES))
    assert set(data.batch.keys()) == before
    tensor, _ = verl_reward.compute_reward(data, load(tokenizer, recipe=RULES, same_size=False))
    assert len(tensor) == 5


OWN = """
import threading

never = threading.Event()

def compute_score(prompt, responses, extras, **kwargs):
    if "question 1" in prompt:
        raise RuntimeError("no such model")
    if "question 2" in prompt:
        never.wait(600)
    scores = [float(extra["index"]) for extra in extras]
    return scores, {"fed_back": [kwargs.get("last_mean_std", -1.0)] * len(responses)}
"""


def test_custom_function_that_fails_or_hangs_stops_no_step(batch, rollouts, tmp_path, caplog):
    function = tmp_path / "own_reward.py"
    function.write_text(OWN)
    rows = rollouts(groups=4, size=3)
    data, tokenizer = batch(rows)
    manager = load(tokenizer, function=function, timeout=3.0, max_workers=2)
    began = time.monotonic()
    tensor, info = verl_reward.compute_reward(data, manager)
    assert time.monotonic() - began < 60
    rewards = tensor.sum(-1).tolist()
    good = [uid in ("uid-0", "uid-3") for uid in rows["uid"]]
    assert rewards == [float(at) if good[at] else 0.0 for at in range(12)]
    assert info["plaudit/invalid"] == [0.0 if fine else 1.0 for fine in good]
    assert info["fed_back"] == [-1.0] * 12
    printed = caplog.text
    assert (
        "6 of 12 rollouts are invalid" in printed
        and "no such model" in printed
        and "no answer within 3 s" in printed
    )
    assert all(thread.daemon for thread in threading.enumerate() if thread.name.startswith("plaudit-group"))


def test_the_last_spread_is_fed_back(batch, rollouts, tmp_path):
    function = tmp_path / "own_reward.py"
    function.write_text(OWN)
    rows = rollouts(groups=1, size=4, shuffle=None)
    data, tokenizer = batch(rows)
    manager = load(tokenizer, function=function)
    _, first = verl_reward.compute_reward(data, manager)
    assert first["fed_back"] == [-1.0] * 4
    # What the manager saw itself, and what the trainer says, which counts more.
    _, second = verl_reward.compute_reward(batch(rows)[0], manager)
    assert second["fed_back"] == pytest.approx([np.std([0, 1, 2, 3])] * 4)
    data, _ = batch(rows, meta_info={"last_reward_info": {"reward_std": np.array([0.25, 0.75])}})
    _, third = verl_reward.compute_reward(data, manager)
    assert third["fed_back"] == [0.5] * 4


def test_invalid_rollouts_do_not_poison_their_group(batch, rollouts):
    rows = rollouts(groups=2, size=3, shuffle=None)
    for row in rows.rows:
        row["reference"] = row["response"] if row["uid"] == "uid-0" else None
    rows.rows[1]["reference"] = None
    data, tokenizer = batch(rows)
    recipe = {"name": "r", "components": {"right": {"reward": "accuracy", "required": True}}}
    tensor, info = verl_reward.compute_reward(data, load(tokenizer, recipe=recipe))
    assert tensor.sum(-1).tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert info["plaudit/invalid"] == [0.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    tensor, _ = verl_reward.compute_reward(data, load(tokenizer, recipe=recipe, invalid=-999.0))
    assert tensor.sum(-1).tolist() == [1.0, -999.0, 1.0, -999.0, -999.0, -999.0]


def test_the_names_of_the_tutorial_are_registered_too(batch, rollouts):
    data, tokenizer = batch(rollouts(groups=2, size=2))
    for name in ("rm_gallery", "dgr"):
        tensor, _ = verl_reward.compute_reward(data, load(tokenizer, name=name, recipe=RULES))
        assert len(tensor) == 4


@pytest.mark.skipif(VERSION < (0, 6, 0), reason="this verl does not know the variable")
def test_an_environment_variable_is_enough(tmp_path):
    import subprocess
    import sys

    environment = {**os.environ, "VERL_USE_EXTERNAL_MODULES": "plaudit.verl.legacy"}
    code = "import verl.workers.reward_manager.registry as found; print(*found.REWARD_MANAGER_REGISTRY)"
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=600
    )
    assert {"plaudit", "rm_gallery", "dgr"} <= set(said.stdout.split()), said.stderr


def test_new_or_pickled_manager_in_a_ray_task_scores_the_same(batch, rollouts, judged, monkeypatch):
    ray = pytest.importorskip("ray")
    rows = rollouts(groups=3, size=4)
    data, tokenizer = batch(rows)
    options = judged()
    here, _ = verl_reward.compute_reward(data, load(tokenizer, **options))
    environment = {"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}}
    if VERSION < (0, 7, 0):
        environment["worker_process_setup_hook"] = "plaudit.verl.register"
    # A busy machine takes longer to start Ray and its workers than Ray waits.
    for limit in ("raylet_start_wait_time_s", "worker_register_timeout_seconds"):
        monkeypatch.setenv(f"RAY_{limit}", "600")
    ray.init(num_cpus=1, runtime_env=environment, include_dashboard=False, log_to_driver=False)
    try:
        calls = [
            functools.partial(verl_reward.compute_reward_async.remote, data, config(**options), tokenizer)
        ]
        if VERSION >= (0, 5, 0):
            manager = load(tokenizer, **options)
            calls.append(
                functools.partial(verl_reward.compute_reward_async.remote, data=data, reward_fn=manager)
            )
        for call in calls:
            for _ in range(2):
                there, info = ray.get(call(), timeout=900)
                assert torch.equal(here, there) and info["plaudit/invalid"] == [0.0] * 12
    finally:
        ray.shutdown()
