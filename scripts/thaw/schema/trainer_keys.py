"""What users of Hugging Face and PyTorch write that is no key here: for each name, what to write instead.

Names with exactly the same meaning as a key of Thaw are aliases of its field (`thaw.schema.keys.Key`) and are accepted.
"""

from thaw.schema.phase_parts import OPTIMIZERS, SCHEDULES

_CHECKED = "validation is scored after every epoch and results are saved by the workflow; leave it out"
_FREEZE = "frozen is what train: does not name; write train: [head] or train: [head, {top: 2}] for the last two layers"
_FP16 = "fp16 is not available; write precision: bf16, or leave it out for fp32"
_JUDGED = "with updates: validation is scored so often as evaluations: says; write evaluations: 10, or leave it out"
_SCHEDULE = f"write schedule: {', '.join(SCHEDULES)}"
_BETAS = "both betas are one key; write adam_betas: [0.9, 0.98]"
_SMOOTHING = "label smoothing is not available; leave it out"

# for a phase of a strategy
PHASE_HINTS = {
    "freeze": _FREEZE,
    "freeze_encoder": _FREEZE,
    "freeze_layers": _FREEZE,
    "num_frozen_layers": _FREEZE,
    "freeze_embeddings": "embeddings are frozen unless train: names them; write train: [head, {top: 12}], or [all]",
    "requires_grad": _FREEZE,
    "trainable": "what trains is a list of selectors; write train: [head, {top: 2}]",
    "layers": "what trains is a list of selectors; write train: [head, {top: 2}]",
    "top_k": "what trains is a list of selectors; write train: [head, {top: 2}]",
    "lora": "LoRA is an insert; write insert: {kind: lora, rank: 8, alpha: 16}",
    "peft": "write insert: {kind: lora}, {kind: ia3} or {kind: adapters}",
    "adapters": "adapters are an insert; write insert: {kind: adapters, size: 64}",
    "warmup_steps": "the length of the warm-up is a share of the updates; write warmup_ratio: 0.1",
    "num_warmup_steps": "the length of the warm-up is a share of the updates; write warmup_ratio: 0.1",
    "lr_scheduler": _SCHEDULE,
    "lr_scheduler_type": _SCHEDULE,
    "lr_scheduler_kwargs": "a schedule has no options but warmup_ratio; slanted_triangular has cut_frac and ratio",
    "optim": f"write optimizer: {', '.join(OPTIMIZERS)}",
    "adam_beta1": _BETAS,
    "adam_beta2": _BETAS,
    "adam_epsilon": "the epsilon of the optimizer is fixed; leave it out",
    "num_steps": "the length of a phase is stated in epochs or updates; write epochs: 3 or updates: 400",
    "gradient_accumulation_steps": "not needed: batch_size is the number of examples of one update; leave it out",
    "auto_find_batch_size": "the batch size decides the result, so it is stated; write batch_size: 32",
    "per_device_eval_batch_size": "the batch size of evaluation changes no result; leave it out",
    "eval_batch_size": "the batch size of evaluation changes no result; leave it out",
    "label_smoothing": _SMOOTHING,
    "label_smoothing_factor": _SMOOTHING,
    "fp16": _FP16,
    "half": _FP16,
    "bf16": "write precision: bf16",
    "tf32": "write precision: tf32",
    "amp": "write precision: bf16",
    "torch_dtype": "write precision: bf16, or leave it out for fp32",
    "early_stopping_threshold": "any better validation score counts; write patience: 3",
    "load_best_model_at_end": "write checkpoint: best to keep the weights of the best epoch on validation",
    "metric_for_best_model": "the main metric, the first of the task's metrics, decides; leave it out",
    "greater_is_better": "all metrics are better when larger; leave it out",
    "eval_strategy": _CHECKED,
    "evaluation_strategy": _CHECKED,
    "eval_steps": _JUDGED,
    "save_strategy": _CHECKED,
    "save_steps": _CHECKED,
    "logging_steps": _CHECKED,
    "seed": "seeds belong to the experiment, as seeds: [1, 2, 3]; data_seed here is the seed of the order of the rows",
    "dropout": "dropout belongs to the head (config/heads.yaml); the encoder keeps that of its configuration",
    "max_length": "the maximum length belongs to a view (config/tasks.yaml)",
    "max_seq_length": "the maximum length belongs to a view (config/tasks.yaml), as max_length",
}

# for the experiment
EXPERIMENT_HINTS = {
    "seed": "unknown key; did you mean 'seeds'?",
    "model": "write encoders: [bert_base_uncased]; config/encoders.yaml lists them",
    "model_name_or_path": "write encoders: [bert_base_uncased]; config/encoders.yaml lists them, and yours go there",
    "dataset": "write tasks: [sst2]; config/tasks.yaml lists them",
    "dataset_name": "write tasks: [sst2]; config/tasks.yaml lists them, and yours go in a catalogue of your own",
    "task_name": "write tasks: [sst2]; config/tasks.yaml lists them",
    "output_dir": "outputs go to results/outputs/<experiment>; write experiment: and a name",
    "run_name": "write experiment: and a name",
    "max_train_samples": "write subsets: [name]; config/tasks.yaml lists them, each with its number of rows",
    "num_workers": "write compute: {threads: 2}",
    "dataloader_num_workers": "write compute: {threads: 2}",
    "cores": "is an option and no key; write --cores N after thaw run",
    "jobs": "is an option and no key; write --jobs N after thaw run",
    "device": "is no key: jobs use a free GPU where there is one; CUDA_VISIBLE_DEVICES= before the command hides them",
}

# for an insert
PEFT_HINTS = {
    "peft_type": "write kind: lora, ia3 or adapters",
    "target_modules": "write targets: query_value, attention, feed_forward or all",
    "lora_dropout": "there is no dropout in LoRA here; leave it out",
    "bias": "biases are selected by train:, as [head, {only: bias}]",
    "reduction_factor": "the width of the bottleneck is stated; write size: 64",
    "bottleneck_size": "write size: 64",
    "layers_to_transform": "layers are counted from the top; write top: 3",
}

# what a strategy or an encoder is called elsewhere -> its id here
OTHER_NAMES = {
    **dict.fromkeys(("linear_probing", "probe", "feature_extraction", "head_only", "freeze"), "linear_probe"),
    **dict.fromkeys(("full_finetuning", "full_fine_tuning", "full_ft", "fine_tuning", "finetuning"), "full"),
    **dict.fromkeys(("fine_tune", "finetune", "all_layers", "sft"), "full"),
    **dict.fromkeys(("top_layers", "last_layers", "last_k", "partial", "top_k_layers"), "top_k"),
    **dict.fromkeys(("lp_ft", "probe_then_finetune", "linear_probe_then_finetune"), "stack_then_finetune"),
    **dict.fromkeys(("adapter", "houlsby"), "adapters"),
    **dict.fromkeys(("llrd", "layer_wise_decay"), "layerwise_decay"),
    **dict.fromkeys(("bert", "bert_base"), "bert_base_uncased"),
    **dict.fromkeys(("all_minilm_l6_v2", "sentence_transformers"), "minilm"),
    "roberta": "roberta_base",
    "distilbert": "distilbert_base_uncased",
    "deberta": "deberta_v3_base",
}


def keys_of_a_phase(names: dict[str, str], where: str) -> dict[str, str]:
    """Return the hints for names that belong to a phase. Args: its names; where a phase is written."""
    return {name: f"it is a key of a phase; write it {where}" for name in names} | {
        name: f"no key here, and in a phase: {hint}" for name, hint in PHASE_HINTS.items()
    }
