"""Fixtures of the whole-batch manager's tests: a judge, a tokenizer, and batches of verl."""

import os
import pathlib
import random
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]


def command():
    """The `plaudit` command: PLAUDIT_BIN, or what was built last."""
    built = [ROOT / "target" / kind / "plaudit" for kind in ("release", "debug")]
    places = (
        [os.environ["PLAUDIT_BIN"]]
        if "PLAUDIT_BIN" in os.environ
        else [path for path in built if path.exists()]
    )
    if not places:
        pytest.fail("there is no plaudit command: build it, or set PLAUDIT_BIN")
    return str(max(places, key=os.path.getmtime))


@pytest.fixture
def judge_sim():
    """Starts simulated judges: `judge_sim(error_rate=1)` is the address of one."""
    running = []

    def start(**options):
        flags = [
            word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        process = subprocess.Popen(
            [command(), "judge-sim", "--port", "0", "--latency", "1ms", "--slow-share", "0", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        running.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    yield start
    for process in running:
        process.terminate()
        process.wait(timeout=10)


@pytest.fixture
def judged(judge_sim):
    """The recipe `tutorial` on a simulated judge that has no doubts, as keyword arguments of a manager."""

    def options(**flags):
        url = judge_sim(**{"temperature": 0.01, "position_bias": 0, "ties": 0.01, **flags})
        return {"overrides": {"judges.main.base_url": url, "judges.main.model": "judge-sim"}}

    return options


class Rollouts:
    """Groups of rollouts with a hidden quality that the simulated judge sees, in any order."""

    def __init__(self, groups=3, size=4, *, shuffle=7, reference_quality=None, thinks=True):
        self.rows = []
        for group in range(groups):
            for member in range(size):
                quality = (member * 2 + group) % size + 0.5 * (member % 2)
                thought = "<think> step %d </think> " % member if thinks else ""
                self.rows.append(
                    {
                        "uid": f"uid-{group}",
                        "prompt": f"Please answer question {group} with care",
                        "response": f"{thought}<answer> {group} {member} [[quality:{quality}]] </answer>",
                        "quality": quality,
                        "reference": None
                        if reference_quality is None
                        else f"<answer> reference {group} [[quality:{reference_quality}]] </answer>",
                    }
                )
        if shuffle is not None:
            random.Random(shuffle).shuffle(self.rows)

    def __getitem__(self, name):
        return [row[name] for row in self.rows]

    def __len__(self):
        return len(self.rows)

    def by_group(self, values):
        """Qualities and values of each group, worst first."""
        groups = {}
        for row, value in zip(self.rows, values, strict=True):
            groups.setdefault(row["uid"], []).append((row["quality"], value))
        return {name: sorted(pairs) for name, pairs in groups.items()}


@pytest.fixture
def rollouts():
    return Rollouts


@pytest.fixture
def tokenizer():
    """A tokenizer of whole words whose decoded text is the text that was encoded."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")

    def build(texts):
        words = sorted({word for text in texts for word in text.split()})
        vocabulary = {word: at for at, word in enumerate(["<pad>", "<eos>", *words])}
        model = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<pad>"))
        model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=model, pad_token="<pad>", eos_token="<eos>"
        )

    return build


@pytest.fixture
def batch(tokenizer):
    """A `DataProto` of rollouts as verl's trainer has it when it asks for rewards, and its tokenizer."""
    torch = pytest.importorskip("torch")
    np = pytest.importorskip("numpy")
    verl = pytest.importorskip("verl")

    def build(rollouts, *, uid=True, meta_info=None, left=0, empty=()):
        """Prompts are padded on the left, responses on the right, and by `left` on the left as well."""
        tok = tokenizer([*rollouts["prompt"], *rollouts["response"]])
        asked = [tok.encode(text) for text in rollouts["prompt"]]
        answered = [
            [] if at in empty else [*tok.encode(text), tok.eos_token_id]
            for at, text in enumerate(rollouts["response"])
        ]
        wide, long = max(map(len, asked)) + 3, max(map(len, answered)) + left + 2
        prompts = torch.zeros((len(asked), wide), dtype=torch.long)
        responses = torch.zeros((len(asked), long), dtype=torch.long)
        mask = torch.zeros((len(asked), wide + long), dtype=torch.long)
        for at, (ask, answer) in enumerate(zip(asked, answered)):
            prompts[at, wide - len(ask) :] = torch.tensor(ask)
            mask[at, wide - len(ask) : wide] = 1
            responses[at, left : left + len(answer)] = torch.tensor(answer, dtype=torch.long)
            mask[at, wide + left : wide + left + len(answer)] = 1
        columns = {
            "data_source": ["tests"] * len(rollouts),
            "reward_model": [{"style": "rule", "ground_truth": text} for text in rollouts["reference"]],
            "extra_info": [{"split": "train", "index": at} for at in range(len(rollouts))],
        }
        if uid:
            columns["uid"] = rollouts["uid"]
        data = verl.DataProto.from_dict(
            tensors={
                "prompts": prompts,
                "responses": responses,
                "attention_mask": mask,
                "input_ids": torch.cat([prompts, responses], dim=1),
                "position_ids": (mask.cumsum(dim=1) - 1).clamp(min=0),
            },
            non_tensors={name: np.array(column, dtype=object) for name, column in columns.items()},
            meta_info=dict(meta_info or {}),
        )
        return data, tok

    return build
