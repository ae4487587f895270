"""What users of Hugging Face and PyTorch write that is no key here: for each name its key, none, or a sentence.

Names with exactly the same meaning as a key of Thaw are aliases of its field (`thaw.schema.keys.Key`) and are accepted.
What to write follows from the field itself (`thaw.schema.keys.unknown_key`).
"""

NOT_HERE = ""  # nothing sets it: it is fixed, decided by the workflow, or changes no result

OF_A_PHASE = {
    **dict.fromkeys(("freeze", "freeze_encoder", "freeze_layers", "num_frozen_layers", "freeze_embeddings"), "train"),
    **dict.fromkeys(("requires_grad", "trainable", "layers", "top_k"), "train"),
    **dict.fromkeys(("lora", "peft", "adapters"), "insert"),
    **dict.fromkeys(("warmup_steps", "num_warmup_steps"), "warmup_ratio"),
    **dict.fromkeys(("lr_scheduler", "lr_scheduler_type", "lr_scheduler_kwargs"), "schedule"),
    **dict.fromkeys(("adam_beta1", "adam_beta2"), "adam_betas"),
    **dict.fromkeys(("fp16", "half", "bf16", "tf32", "amp", "torch_dtype"), "precision"),
    **dict.fromkeys(("gradient_accumulation_steps", "auto_find_batch_size"), "batch_size"),
    **dict.fromkeys(("eval_strategy", "evaluation_strategy", "eval_steps"), "evaluations"),
    "optim": "optimizer",
    "num_steps": "updates",
    "early_stopping_threshold": "patience",
    "load_best_model_at_end": "checkpoint",
    "seed": "data_seed",
    **dict.fromkeys(("adam_epsilon", "label_smoothing", "label_smoothing_factor", "dropout"), NOT_HERE),
    **dict.fromkeys(("per_device_eval_batch_size", "eval_batch_size", "max_length", "max_seq_length"), NOT_HERE),
    **dict.fromkeys(("metric_for_best_model", "greater_is_better", "logging_steps"), NOT_HERE),
    **dict.fromkeys(("save_strategy", "save_steps"), NOT_HERE),
}
OF_AN_EXPERIMENT = {
    "seed": "seeds",
    **dict.fromkeys(("model", "model_name_or_path"), "encoders"),
    **dict.fromkeys(("dataset", "dataset_name", "task_name"), "tasks"),
    **dict.fromkeys(("output_dir", "run_name"), "experiment"),
    "max_train_samples": "subsets",
    **dict.fromkeys(("num_workers", "dataloader_num_workers"), "compute"),
    "cores": "is an option and no key; write --cores N after thaw run",
    "jobs": "is an option and no key; write --jobs N after thaw run",
    "device": "is no key: jobs use a free GPU where there is one; CUDA_VISIBLE_DEVICES= before the command hides them",
}
OF_AN_INSERT = {
    "peft_type": "kind",
    "target_modules": "targets",
    "lora_dropout": NOT_HERE,
    "bias": NOT_HERE,
    **dict.fromkeys(("reduction_factor", "bottleneck_size"), "size"),
    "layers_to_transform": "top",
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
