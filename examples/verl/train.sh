#!/bin/sh
# GRPO with verl (0.7.1 to 0.9) and plaudit's group rewards. The lines between the marks are all that plaudit needs; the
# rest is an ordinary run of verl on one machine with eight GPUs. Put your own model, data and judge into it.
#
#   pip install verl plaudit
#   vllm serve Qwen/Qwen3-32B --port 8000 &          # the judge, on GPUs of its own or on another machine
#   examples/verl/train.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)

# --- plaudit -----------------------------------------------------------------------------------------------------------
# The recipe `tutorial` compares the responses of each prompt pairwise. Any recipe will do, by its name or its path.
set -- \
    reward.reward_manager.source=importlib \
    reward.reward_manager.module.path=pkg://plaudit.verl \
    reward.reward_manager.name=PlauditRewardManager \
    +reward.reward_kwargs.recipe=tutorial \
    +reward.reward_kwargs.overrides.judges.main.base_url="${JUDGE_URL:-http://127.0.0.1:8000/v1}" \
    +reward.reward_kwargs.overrides.judges.main.model="${JUDGE_MODEL:-Qwen/Qwen3-32B}" \
    +reward.reward_kwargs.state="${STATE:-plaudit-state}" \
    +reward.reward_kwargs.num_examine=1 \
    "$@"
# Metrics of the rewards in training, with verl 0.9 and its V1 trainer.
set -- "$@" \
    trainer.v1.sampler.custom_sampler.path=pkg://plaudit.verl \
    trainer.v1.sampler.custom_sampler.name=PlauditSampler
# Scoring in the agent loop instead: for large batches, and where rollouts may fail.
if [ "${SCORING:-workers}" = agent ]; then
    set -- "$@" \
        actor_rollout_ref.rollout.agent.agent_loop_config_path="$here/agents.yaml" \
        actor_rollout_ref.rollout.agent.default_agent_loop=plaudit
fi
# ------------------------------------------------------------------------------------------------------------------------

set -- \
    algorithm.adv_estimator=grpo \
    data.train_files="${TRAIN:-data/train.parquet}" data.val_files="${VAL:-data/test.parquet}" \
    data.train_batch_size=256 data.max_prompt_length=1024 data.max_response_length=4096 \
    actor_rollout_ref.model.path="${MODEL:-Qwen/Qwen3-8B}" \
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 \
    actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
    actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.optim.lr=1e-6 \
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=8 \
    trainer.n_gpus_per_node=8 trainer.nnodes=1 trainer.test_freq=10 trainer.save_freq=50 \
    "$@"

# Settings, recipe, data, judges and sandbox, before a GPU is touched.
python3 -m plaudit.verl check "$@"
exec python3 -m verl.trainer.main_ppo "$@"
