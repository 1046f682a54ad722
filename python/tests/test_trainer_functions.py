"""Reward functions that were written for verl and for TRL, as components of a recipe."""

from __future__ import annotations

import asyncio
import pickle

import plaudit
import pytest


def compute_score(data_source, solution_str, ground_truth, extra_info=None, bonus=0.0):
    """Whether the solution ends with the truth."""
    if solution_str == "raise":
        raise ValueError("cannot be read")
    right = solution_str.endswith(str(ground_truth))
    return {
        "score": float(right) + bonus,
        "acc": right,
        "source": data_source,
        "split": extra_info.get("split"),
    }


def close(completions, solution, **kwargs):
    """Whether the completion is the solution."""
    texts = [each if isinstance(each, str) else each[0]["content"] for each in completions]
    return [None if wanted is None else float(text == wanted) for text, wanted in zip(texts, solution)]


def engine(name: str, function, **settings) -> plaudit.Engine:
    plaudit.register(name, function)
    return plaudit.Engine({"components": {"mine": {"reward": name, **settings}}})


def test_a_function_of_verl():
    own = engine("test_verl_function", plaudit.verl_function(compute_score), bonus=0.5)
    extras = [{"data_source": "gsm8k", "split": "train"}, {}, {}, {"reward_model": {"ground_truth": 9}}]
    report = own.score(None, ["it is 42", "it is 41", "raise", "9"], ["42", "42", "42", None], extras=extras)
    assert report.outcomes == ["scored", "scored", "invalid", "scored"]
    assert report.totals[[0, 1, 3]].tolist() == [1.5, 0.5, 1.5]
    assert report.info["acc"] == [True, False, None, True] and report.info["source"][0] == "gsm8k"
    assert report.info["split"][0] == "train" and report.reasons[2]["message"] == "ValueError: cannot be read"
    with pytest.raises(plaudit.RecipeError, match="bonnus"):
        engine("test_verl_function", plaudit.verl_function(compute_score), bonnus=1)


def test_a_function_of_trl():
    own = engine("test_trl_function", plaudit.trl_function(close))
    messages = [{"role": "user", "content": "q"}]
    report = own.score(["p", messages, "p"], ["a", "b", "c"], ["a", "b", None])
    assert report.totals[:2].tolist() == [1.0, 1.0] and report.outcomes == ["scored", "scored", "skipped"]
    # A column of that name goes before the reference.
    columns = own.score(None, ["a"], ["b"], extras=[{"solution": "a"}])
    assert columns.totals.tolist() == [1.0]
    missing = own.score(None, ["a"], extras=[{"other": 1}])
    assert "needs the column 'solution'" in missing.reasons[0]["message"]
    assert "['other']" in missing.reasons[0]["message"]


def test_coroutine_functions_run_at_once():
    together: list[str] = []

    async def one(solution_str, ground_truth):
        together.append(solution_str)
        while len(together) < 4:
            await asyncio.sleep(0)
        return 1.0

    async def batch(completions, **kwargs):
        await asyncio.sleep(0)
        return [2.0] * len(completions)

    own = engine("test_async_verl", plaudit.verl_function(one))
    # One after the other, the first would wait for ever.
    assert own.score(None, list("abcd"), groups=list(range(4))).totals.tolist() == [1.0] * 4
    assert engine("test_async_trl", plaudit.trl_function(batch)).score(None, ["a"]).totals.tolist() == [2.0]


def test_the_page_and_the_signature_are_the_functions_own():
    function = plaudit.verl_function(compute_score)
    assert function.__doc__ == compute_score.__doc__ and function.__name__ == "compute_score"
    assert function == plaudit.verl_function(compute_score) and function != plaudit.trl_function(close)


def test_engines_with_such_functions_are_pickled():
    own = pickle.loads(pickle.dumps(engine("test_pickled_verl", plaudit.verl_function(compute_score))))
    assert own.score(None, ["42"], ["42"]).totals.tolist() == [1.0]


def test_wrong_functions_are_refused_at_once():
    with pytest.raises(plaudit.ArgumentError, match="takes \\(data_source, solution_str"):
        plaudit.verl_function(lambda prompts, responses: [])
    with pytest.raises(plaudit.ArgumentError, match="takes \\(completions"):
        plaudit.trl_function(lambda solution_str: 1.0)
    with pytest.raises(plaudit.ArgumentError, match="token ids"):
        plaudit.trl_function(lambda completions, completion_ids: [])
    with pytest.raises(plaudit.ArgumentError, match="once a rollout, not once a group"):
        plaudit.register("test_wrong_per", plaudit.verl_function(compute_score), per="group")
