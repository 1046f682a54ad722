#!/bin/sh
# verl's own trainer, unmodified, on a CPU with plaudit's rewards: a few minutes, most of them Ray starting processes.
#
#   examples/verl/cpu/run.sh                       verl 0.9, its V1 trainer
#   TRAINER=v0 examples/verl/cpu/run.sh            the trainer of 0.7 and 0.8 (still in 0.9)
#   SCORING=agent examples/verl/cpu/run.sh         scored in the agent loop instead of the reward workers
#   BROKEN_ROLLOUTS=0.05 SCORING=agent ...         one rollout in twenty fails (V1 goes on without it)
#   SCORING=tools examples/verl/cpu/run.sh         verl's agent loop with a calculator: conversations, a reward for each turn
#   RECIPE=math SCORING=tools ...                  by another recipe, a shipped one or a file
#
# Needs verl, torch and Ray in the Python that PYTHON names, and plaudit.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
work=${WORK:-$(mktemp -d)}
steps=${STEPS:-2}
scoring=${SCORING:-workers}
recipe=${RECIPE:-$here/recipe.yaml}
response=12
if [ "$scoring" = tools ]; then
    recipe=${RECIPE:-$here/tools.yaml}
    response=40
    "$python" "$here/make_inputs.py" "$work" tools
else
    "$python" "$here/make_inputs.py" "$work"
fi

set -- \
    reward.reward_manager.source=importlib \
    reward.reward_manager.module.path=pkg://plaudit.verl \
    reward.reward_manager.name=PlauditRewardManager \
    +reward.reward_kwargs.recipe="$recipe" \
    +reward.reward_kwargs.num_examine=1 \
    "$@"
if [ "${TRAINER:-v1}" = v1 ]; then
    set -- "$@" \
        trainer.v1.sampler.custom_sampler.path=pkg://plaudit.verl \
        trainer.v1.sampler.custom_sampler.name=PlauditSampler \
        transfer_queue.backend.SimpleStorage.num_data_storage_units=1
else
    set -- "$@" trainer.use_v1=False
fi
if [ "$scoring" != workers ]; then
    set -- "$@" actor_rollout_ref.rollout.agent.agent_loop_config_path="$here/../agents.yaml"
fi
case $scoring in
    agent) set -- "$@" actor_rollout_ref.rollout.agent.default_agent_loop=plaudit ;;
    tools)
        # The policy never ends a turn by itself before it has learnt to, so the generator ends it.
        export TURN_LENGTH=6
        set -- "$@" \
            actor_rollout_ref.rollout.agent.default_agent_loop=plaudit_tool_agent \
            actor_rollout_ref.rollout.multi_turn.enable=True \
            actor_rollout_ref.rollout.multi_turn.format=hermes \
            actor_rollout_ref.rollout.multi_turn.max_assistant_turns=3 \
            actor_rollout_ref.rollout.multi_turn.function_tool_path="$here/calculator.py"
        ;;
esac

export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"
export VERL_USE_EXTERNAL_MODULES=cpu_platform VERL_PLATFORM=cpu VERL_ENGINE_DEVICE=cuda
export HYDRA_FULL_ERROR=1 TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=1
# Some virtual machines announce instructions that their host refuses, and a worker dies of them.
export ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 TORCHDYNAMO_DISABLE=1
export RAY_raylet_start_wait_time_s=300 RAY_worker_register_timeout_seconds=300 RAY_worker_niceness=0
set -- \
    algorithm.adv_estimator=grpo \
    data.train_files="$work/train.parquet" data.val_files="$work/test.parquet" \
    data.train_batch_size=4 data.val_batch_size=8 data.max_prompt_length=16 data.max_response_length=$response \
    data.dataloader_num_workers=0 \
    actor_rollout_ref.model.path="$work/policy" \
    actor_rollout_ref.model.use_remove_padding=False \
    +actor_rollout_ref.model.override_config.attn_implementation=eager \
    actor_rollout_ref.actor.strategy=fsdp2 \
    actor_rollout_ref.actor.ppo_mini_batch_size=4 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
    actor_rollout_ref.actor.use_kl_loss=False actor_rollout_ref.actor.optim.lr=0.01 \
    actor_rollout_ref.rollout.name=tiny actor_rollout_ref.rollout.n=4 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4 \
    actor_rollout_ref.rollout.agent.num_workers=2 \
    reward.num_workers=2 \
    trainer.n_gpus_per_node=1 trainer.nnodes=1 trainer.device=cpu \
    trainer.total_training_steps="$steps" trainer.test_freq="$steps" trainer.save_freq=-1 \
    trainer.logger='["console"]' trainer.resume_mode=disable trainer.default_local_dir="$work/checkpoints" \
    +ray_kwargs.ray_init.num_gpus=1 ray_kwargs.ray_init.num_cpus=8 \
    +ray_kwargs.ray_init.include_dashboard=False \
    "$@"

# Ends in seconds where a setting, the recipe or a column of the data is wrong.
"$python" -m plaudit.verl check "$@"
exec "$python" -m verl.trainer.main_ppo "$@"
