"""Messages as users see them, word by word: the mistakes of a first hour, each one sentence at its place.

tests/messages.json has them. After a change of words: pytest tests/test_messages_golden.py --update-messages, and read
the difference.
"""

import re

import pytest
import yaml

from conftest import HOME
from thaw.cli.main import main
from thaw.core.errors import UserError
from thaw.planning.configuration import load_plan, read_config
from thaw.schema.catalogue import Catalogue, shipped

EXPERIMENT = """\
experiment: mine
title: mine
catalogues: [my]
tasks: [reviews]
encoders: [minilm]
strategies:
  - linear_probe
  - top_k: [1]
seeds: [1]
outputs: [main_table]
"""
ROWS = [f"film number {i} was {word} and long;{label}" for i in range(20) for word, label in (("good", 1), ("bad", 0))]
CSV = "\n".join(["text;stars", *ROWS, ""])

# what is changed in the experiment: the old and the new text
IN_AN_EXPERIMENT = [
    ("seeds:", "seed:"),
    ("seeds: [1]", "seeds: 100"),
    ("seeds: [1]", "seeds: [1, 1]"),
    ("seeds: [1]", "seeds: [one]"),
    ("title: mine\n", ""),
    ("title: mine", "experiment: mine"),
    ("title: mine", "title: [mine"),
    ("[my]", "[nope]"),
    ("[reviews]", "[review]"),
    ("[reviews]", "[sst2]\nsources: [files]"),
    ("[my]", "[my, half]"),
    ("[reviews]", "3"),
    ("minilm", "minilmm"),
    ("minilm", "bert"),
    ("experiment: mine", "experiment: my exp/1"),
    ("- linear_probe", "- probe"),
    ("- linear_probe", "- qqqq"),
    ("- linear_probe", "- linear_probe: [1]"),
    ("- top_k: [1]", "- full: {rate: 0.1}"),
    ("[1]\nseeds", "[9]\nseeds"),
    ("main_table", "main_tabel"),
    ("main_table", "comparisons"),
    ("title:", "learning_rate: 0.1\ntitle:"),
    ("title:", "subsets: [1000]\ntitle:"),
    ("title:", "subsets: [n100]\ntitle:"),
    ("title:", "heads: [crf]\ntitle:"),
    ("title:", "baselines: [svm]\ntitle:"),
    ("title:", "adapted: [full]\ntitle:"),
]
FILES = "files: {format: csv, splits: {train: reviews.csv}, delimiter: ';'}"
CORPUS = (
    f"corpora:\n  mine: {{texts: [text], targets: {{stars: label}}, carve: {{validation: 0.1, test: 0.2}}, {FILES}}}\n"
)
TASK = "tasks:\n  reviews: {corpus: mine, target: stars, type: classification, metrics: [accuracy]}\n"
STRATEGY = "strategies:\n  linear_probe:\n    override: true\n    phases: [{train: [head, {top: 1}]}]\n"
# a file of a catalogue, its text, what is changed in it
IN_A_CATALOGUE = [
    ("strategies", STRATEGY, "{top: 1}", "{top: 14}"),
    ("strategies", STRATEGY, "{top: 1}", "blocks"),
    ("tasks", CORPUS + TASK, "format: csv", "format: tsv"),
    ("tasks", CORPUS + TASK, "target: stars", "target: star"),
    ("tasks", CORPUS + TASK, "[accuracy]", "[acc]"),
    ("tasks", CORPUS + TASK, "type: class", "type: pair_class"),
    (
        "tasks",
        CORPUS + TASK,
        "type: classification, metrics: [accuracy]",
        "type: multi_label_classification, metrics: [f1_micro]",
    ),
    ("tasks", CORPUS + TASK, "delimiter: ';'", "delimiter: ';', columns: {stars: star}"),
    ("tasks", CORPUS + TASK, "delimiter: ';'", "separators: {stars: ';'}"),
]
# a head of the user's, and the strategy that trains it
HEADS = """
{kind: linear, layers: {combine: mix}} <- frozen
{kind: linear, layers: {layer: 9}} <- full
{kind: linear, layers: {layer: 4}} <- full
{kind: linear, layers: {layer: best}} <- frozen
{kind: linear, layers: {norm: true}} <- full
{kind: linear, layers: {combine: attention}} <- frozen
{kind: linear, layers: {combine: attention, last: 9}} <- full
{kind: linear, layers: {combine: attention, heads: 4}} <- full
{kind: linear, layers: {combine: atention}} <- full
{kind: linear, layers: {combine: ladder, heads: 7}} <- full
{kind: linear, layers: {combine: ladder, gates: fixed, temperature: 1}} <- full
""".strip().splitlines()
# strategies of the user's, of which `mine` is run
STRATEGIES = """
mine: {phases: [{train: [all], epochs: 3, updates: 9}]}
mine: {phases: [{train: [all], num_train_epochs: 3, max_steps: 9}]}
mine: {phases: [{train: [all], judge: 3}]}
mine: {phases: [{train: [all], updates: 9, warmup_of: phase}]}
mine: {phases: [{train: [all], updates: 9, judge: 10}]}
mine: {phases: [{train: [all], updates: 9, unfreeze: {epochs: 1}}]}
mine: {phases: [{train: [all], unfreeze: {updates: 1}}]}
mine: {phases: [{train: [head], updates: 9, optimizer: lbfgs}]}
mine: {phases: [{train: [head, {top: 3}], updates: 3, unfreeze: {}}]}
mine: {phases: [{train: [all], unfreeze: {}, one_by_one: true}]}
mine: {phases: [{train: [all], unfreeze: {}, reinit_top: 1}]}
mine: {phases: [{train: [all], schedule: slanted_triangular, warmup: 0.2}]}
mine: {phases: [{train: [all], stop: {}}]}
mine: {phases: [{train: [head], reinit_top: 2}]}
mine: {phases: [{train: [head], folds: 5}]}
mine: {phases: [{train: [head], optimizer: lbfgs, folds: 1}]}
mine: {phases: [{train: [head], optimizer: lbfgs, folds: 5, select: {by: clusters}}]}
mine: {phases: [{train: [head], select: {by: clusters}}]}
mine: {phases: [{train: [head], optimizer: lbfgs, select: {by: clusters, penalty: 0.2}}]}
mine: {phases: [{train: [head], optimizer: lbfgs, select: {by: group_lasso, fractions: [1.5]}}]}
mine: {base: full, from: task_texts}
mine: {base: full, form: task_text}
mine: {base: full, after: frozen_sgd, from: task_text}
mine: {phases: [{train: [all]}], after: {strategy: frozen_sgd, checkpoint: best}}
mine: {phases: [{train: [all]}], after: mine}
mine: {phases: [{train: [all]}], rates_from: other}
mine: {phases: [{train: [all]}], rates_from: other}, other: {phases: [{train: [all]}]}
mine: {phases: [{train: [all]}], search: {grid: {epochs: [0, 2]}, seeds: [3]}}
mine: {phases: [{train: [all]}], search: {grid: {epochs: [2, 2]}, seeds: [3]}}
mine: {phases: [{train: [all]}], search: {grid: {layers: [1, 2]}, seeds: [3]}}
mine: {phases: [{train: [all]}], search: {grid: {2.epochs: [1, 2]}, seeds: [3]}}
mine: {phases: [{train: [all]}], sweep: {learning_rate: [1.0e-5, 2.0e-4]}}
mine: {phases: [{train: [head], coral: {to: other}}]}
mine: {phases: [{train: [all], contrastive: {}}]}
mine: {phases: [{train: [all], coral: {to: other}}]}
mine: {phases: [{train: [head, {top: 1}], coral: {to: other}, distil: {logits: {}}}]}
mine: {phases: [{train: [all]}], after: {strategy: other}}, other: {phases: [{train: [all]}], keep: false}
mine: {phases: [{train: [all]}], after: {strategy: other, subset: all}}, other: {phases: [{train: [all]}], keep: true}
mine: {phases: [{train: [head], insert: {kind: adapters, rank: 4}}]}
mine: {phases: [{insert: {kind: lora}}, {insert: {kind: lora, rank: 4}}]}
mine: {reads: {layers: {layer: best, margin: 0.1}}, phases: [{train: [head], optimizer: lbfgs}]}
mine: {reads: {layers: {layer: 9}}, phases: [{train: [head], optimizer: lbfgs}]}
mine: {reads: {pooling: attention}, phases: [{train: [head], optimizer: lbfgs}]}
mine: {reads: {pooling: [mean, attention]}, phases: [{train: [head], optimizer: lbfgs}]}
mine: {reads: {layers: {combine: mix}}, phases: [{train: [head], optimizer: lbfgs}]}
mine: {reads: {pooling: [mean, mean]}, phases: [{train: [head], optimizer: lbfgs}]}
mine: {reads: {layers: {layer: 2}}, phases: [{train: [head, {top: 3}]}, {train: [head]}]}
mine: {reads: {layers: {combine: ladder, heads: 5}}, phases: [{train: [head]}]}
mine: {reads: {layers: {combine: concat}, pooling: mean}, after: linear_probe, phases: [{train: [all]}]}
mine: {teacher: full, reads: {layers: {layer: 3}}, phases: [{train: [embeddings], distil: {attention: {map: {5: 5}}}}]}
mine: {teacher: ful, phases: [{train: [all], distil: {logits: {}}}]}
mine: {teacher: mine, phases: [{train: [all], distil: {logits: {}}}]}
mine: {teacher: {strategy: top_k, variant: k99}, phases: [{train: [all], distil: {logits: {}}}]}
mine: {teacher: top_k, phases: [{train: [all], distil: {logits: {}}}]}
mine: {teacher: {strategy: top_k, variant: k}, phases: [{train: [all], distil: {logits: {}}}]}
mine: {teacher: {strategy: top_k, variant: 3}, phases: [{train: [all], distil: {logits: {}}}]}
mine: {teacher: {strategy: full, variant: k03}, phases: [{train: [all], distil: {logits: {}}}]}
mine: {teacher: full, phases: [{train: [all]}]}
mine: {teacher: full, phases: [{train: [all], distil: {logits: {loss: mse, temperature: 2}}}]}
mine: {after: {strategy: full, subset: n100_d1}, phases: [{train: [all]}]}
mine: {phases: [{train: [all], distil: {logits: {}}}]}
mine: {teacher: full, phases: [{train: [all], distil: {hard: 0}}]}
mine: {student: {layers: k}, phases: [{train: [all]}]}
mine: {student: {layers: 4, top: 2}, phases: [{train: [all]}]}
mine: {student: {layers: 2, top: 2}, phases: [{train: [all]}]}
mine: {student: {layers: 6}, phases: [{train: [all]}]}
mine: {student: {layers: 6, keep: spread, start: bottom}, phases: [{train: [all]}]}
mine: {student: {layers: [1, 2, 3, 4, 5, 6]}, phases: [{train: [all]}]}
mine: {teacher: full, student: {layers: 6}, phases: [{train: [all], distil: {logits: {}}}]}
mine: {student: {layers: 2, start: [1]}, phases: [{train: [all]}]}
mine: {student: {layers: [1, 3], start: [1]}, phases: [{train: [all]}]}
mine: {student: {layers: 1, start: [99]}, phases: [{train: [all]}]}
mine: {student: {layers: [1, 99]}, phases: [{train: [all]}]}
mine: {student: {layers: [3, 1]}, phases: [{train: [all]}]}
mine: {student: {layers: [1], keep: top}, phases: [{train: [all]}]}
mine: {student: {layers: [0, 2]}, phases: [{train: [all]}]}
mine: {student: {layers: 2}, reads: {layers: {layer: 5}}, phases: [{train: [all]}]}
mine: {teacher: full, phases: [{train: [all], distil: {hidden: {project: sharde}}}]}
mine: {student: {layers: 1}, phases: [{train: [{top: 1}]}]}
mine: {student: {layers: 1}, phases: [{train: [head], optimizer: lbfgs}]}
mine: {student: {layers: 1}, phases: [{train: [all], replace: {}}]}
mine: {after: full, student: {layers: 2}, phases: [{train: [layers], replace: {}}]}
mine: {after: full, student: {layers: 2, keep: spread}, phases: [{train: [all], replace: {}}]}
mine: {teacher: full, phases: [{train: [all], distil: {hidden: {map: top, last: true}}}]}
mine: {teacher: full, phases: [{train: [all], distil: {hidden: {map: {1: 99}}}}]}
mine: {teacher: full, student: {layers: 2, keep: spread}, phases: [{train: [all], distil: {hidden: {map: {1: 2}}}}]}
mine: {teacher: full, phases: [{train: [all], distil: {attention: {heads: 7}}}]}
mine: {teacher: {strategy: drop_top, variant: n02}, phases: [{train: [all], distil: {attention: {}}}]}
mine: {teacher: full, student: {layers: 2}, phases: [{train: [all], distil: {attention: {map: {6: 6}}}}]}
mine: {after: {strategy: drop_top, variant: n02}, phases: [{train: [all]}]}
mine: {teacher: full, phases: [{train: [all], unfreeze: {}, distil: {hard: 0, hidden: {}}}]}
mine: {teacher: {strategy: full, encoder: bert_base_uncased}, phases: [{train: [all], distil: {hidden: {}}}]}
mine: {teacher: {strategy: full, encoder: bert_base_uncased}, phases: [{train: [all], distil: {attention: {}}}]}
mine: {teacher: {strategy: full, encoder: bert_base_uncased}, phases: [{train: [all], distil: {attention: {heads: 5}}}]}
mine: {teacher: {strategy: full, encoder: bert_base_uncase}, phases: [{train: [all], distil: {logits: {}}}]}
mine: {teacher: full, phases: [{train: [all], distil: {logits: {}, order: stacked}}]}
mine: {phases: [{train: []}]}
mine: {phases: [{train: [{top: n}]}]}
mine: {multi_task: {tasks: [trec6, trec6]}, phases: [{train: [all]}]}
mine: {multi_task: {tasks: [acceptability, reviews]}, phases: [{train: [all]}]}
mine: {multi_task: {tasks: [reviews], power: 0.5}, phases: [{train: [all]}]}
mine: {multi_task: {tasks: [paraphrase], sampling: annealed}, phases: [{train: [all], epochs: 1}]}
mine: {multi_task: {tasks: [nope, reviews]}, phases: [{train: [all]}]}
mine: {multi_task: {tasks: [reviews], own: left_out}, phases: [{train: [all]}]}
mine: {base: full, after: {strategy: o, task: similarity}}, o: {base: full, keep: true, multi_task: {tasks: [reviews]}}
mine: {multi_task: {tasks: [reviews, paraphrase]}, teacher: full_separate, phases: [{distil: {logits: {}}}]}
mine: {teacher: {strategy: full, subset: n100_d}, phases: [{train: [all], distil: {logits: {}}}]}
mine: {teacher: {strategy: full, dropout: true}, phases: [{train: [all], distil: {hidden: {}}}]}
""".strip().splitlines()
# catalogues of the user's, each one file
CATALOGUES = """
tasks.yaml <- taks: {}
tasks.yaml <- {CORPUS}, tasks: {mine: {corpus: c, tagret: label, type: classification, metrics: [accuracy]}}
tasks.yaml <- {CORPUS}, tasks: {mine: {corpus: c, type: classification, metrics: [accuracy]}}
tasks.yaml <- {CORPUS}, tasks: {mine: {corpus: c, target: label, type: clasification, metrics: [accuracy]}}
tasks.yaml <- {CORPUS}, tasks: {mine: {corpus: c, target: label, type: classification, metrics: [pearson]}}
tasks.yaml <- {CORPUS}, tasks: {t: {corpus: c, target: t, type: tagging, metrics: [accuracy], class_weight: balanced}}
tasks.yaml <- corpora: {c: {texts: [text], targets: {label: label}, synthetic: acceptability, texts: [b]}}
tasks.yaml <- corpora: {c: {texts: [no], targets: {label: label}, synthetic: acceptability}}
tasks.yaml <- corpora: {on: {texts: [text], targets: {label: label}, synthetic: acceptability}}
tasks.yaml <- corpora: {Reviews: {texts: [text], targets: {label: label}, synthetic: acceptability}}
tasks.yaml <- corpora: {../c: {texts: [text], targets: {label: label}, synthetic: acceptability}}
tasks.yaml <- corpora: {c: {texts: [text], targets: {label: label}, files: {format: tsv, splits: {train: a}}}}
tasks.yaml <- corpora: {c: {texts: [text], targets: {label: label}}}
tasks.yaml <- corpora: {c: {texts: [], targets: {label: label}, synthetic: acceptability}}
tasks.yaml <- corpora: {c: {texts: [context], targets: {answers: answers}, files: {format: squad, splits: {train: a}}}}
tasks.yaml <- views: {mine: {pairs: separate, stride: 8}}
tasks.yaml <- subsets: {few: {rows: 8, per_label: 8}}
tasks.yaml <- corpora: {c: [1
tasks.yaml <- corpora: !!python/object:os.system {}
tasks.yaml <- [corpora]
heads.yaml <- heads: {a: {base: b}}
heads.yaml <- heads: {a: {base: b}, b: {base: a}}
heads.yaml <- heads: {a: {kind: linear, aliases: [b]}, b: {kind: mlp}}
heads.yaml <- heads: {a: {kind: linear, aliases: [c]}, b: {kind: mlp, aliases: [c]}}
heads.yaml <- heads: {a: {kind: linear, aliases: b}}
heads.yaml <- heads: {mine: {kind: linear, poling: mean}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], rate: {384: 0}}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], rate: {}}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], rate: fast}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], learning_rate: -1}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], lr: -1}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], optimizer: lbfgs}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [head], optimizer: lbfgs, rate: 0.1}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [head], l2: [1]}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all]}], learning_rate: 1}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all]}], warmup_steps: 1}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all]}], phazes: 1}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all]}], after: {strategy: a, taks: b}}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], freeze: 6}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], gradient_accumulation_steps: 4}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], fp16: true}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], lr_scheduler_type: cosine}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], label_smoothing: 0.1}]}}
strategies.yaml <- strategies: {mine: {phases: [{train: [all], learning_rat: 1}]}}
strategies.yaml <- strategies: {mine: {phases: [{insert: {kind: lora, r: 0}}]}}
strategies.yaml <- strategies: {mine: {phases: [{insert: {kind: lora, lora_dropout: 0.1}}]}}
encoders.yaml <- encoders: {a: {hub: x/y, folder: z, layers: 1, width: 8}}
outputs.yaml <- outputs: {mine: {kind: comparison_table, caption: Mine.}}
""".strip().splitlines()
USUAL = "corpora: {c: {texts: [text], targets: {label: label}, synthetic: acceptability}}"
# what is changed in the experiment of tests/base.yaml, or of a shipped `file`, with files of a catalogue of the user's
OF_AN_EXPERIMENT = """
{strategies: [mine], strategies.yaml: {strategies: {mine: {reads: {}, phases: [{train: [head], optimizer: lbfgs}]}}}}
{strategies: [mine], strategies.yaml: {strategies: {mine: {reads: {layers: {layer: best}}, phases: [{train: [head]}]}}}}
{strategies: [mine], heads: [mlp], strategies.yaml: {strategies: {mine: {reads: {pooling: [mean, max]}, phases: [{}]}}}}
{tasks: [acceptability], strategies: [full], heads: [esim]}
{tasks: [acceptability], strategies: [full], heads: [crf]}
{tasks: [entities], strategies: [full], heads: [bcn]}
{tasks: [acceptability], strategies: [full], heads: [merchant]}
{tasks: [acceptability], strategies: [linear_probe], heads: [mlp]}
{tasks: [paraphrase], strategies: [full], heads: [cosine]}
{tasks: [acceptability], strategies: [full_separate]}
{tasks: [mine], tasks.yaml: {tasks: {mine: {base: acceptability, transfer_sets: [{task: similarity}]}}}}
{tasks: [acceptability], strategies: [linear_probe: [1]]}
{probes: [mine], outputs: [probe_curves], probes.yaml: {probes: {mine: {kind: linear, layers: [2, 9]}}}}
{probes: [mine], outputs: [probe_curves], probes.yaml: {probes: {mine: {kind: linear, l2: []}}}}
{probes: [mine], outputs: [probe_curves], probes.yaml: {probes: {mine: {kind: linear, poling: first}}}}
{probes: [mine], outputs: [probe_curves], probes.yaml: {probes: {mine: {kind: lnear}}}}
{probes: [mine], outputs: [probe_curves], probes.yaml: {probes: {mine: {kind: domain_divergence}}}}
{probes: [mine], outputs: [probe_curves], probes.yaml: {probes: {mine: {kind: edge, l2: [1.0]}}}}
{probes: [mine], outputs: [probe_curves], probes.yaml: {probes: {mine: {kind: edge, dropout: 1.0}}}}
{file: merge, merges: {near: {strategies: [full]}}}
{file: merge, tasks: [sick_e, stsb, mrpc], strategies: [joint_pairs], merges: {near: {strategies: [joint_pairs]}}}
{file: merge, merges: {near: {strategies: [top_q]}}}
{file: merge, merges: {near: {strategies: [top_k], tasks: [mrpq]}}}
{file: merge, merges: {near: {strategies: [top_k], seed: 9}}}
{file: merge, merges: {near: {strategies: [linear_probe_all_layers]}}}
{file: merge, merges: {near: {strategies: [top_k], encoder: bert}}}
{file: squad, heads: [linear]}
{file: squad, strategies: [frozen]}
{file: squad, strategies: [hinton]}
{file: squad, strategies: [full_coral_stsb]}
{file: squad, baselines: [random_encoder]}
{file: squad, tasks: [squad, sick_e], heads: [start_end]}
{file: squad, ensembles: {e: {by: mean, members: [{strategy: full, seeds: [1, 2, 3]}]}}}
{file: squad, tasks: [mine], tasks.yaml: {tasks: {mine: {base: squad, view: joint}}}}
{file: squad, tasks: [mine], heads: [linear_mean], tasks.yaml: {tasks: {mine: {base: sick_e, view: windows}}}}
{probes: [liner]}
{tasks: [acceptability], strategies: [full, linear_probe], adapted: [ful], probes: [linear]}
{tasks: [acceptability], strategies: [full, linear_probe], adapted: [linear_probe], probes: [linear]}
{tasks: [acceptability], strategies: [full, linear_probe], adapted: [full], probes: []}
{tasks: [acceptability], strategies: [full, linear_probe], adapted: [full], probes: [cka], seeds: [1]}
{tasks: [acceptability], strategies: [full, linear_probe], adapted: [full], probes: [rsa], store: {max_gib: 0.001}}
{tasks: [acceptability], strategies: [full, linear_probe], probe_tasks: [acceptability], probes: [linear]}
{strategies: [m], heads: [bilstm], strategies.yaml: {strategies: {m: {base: full, reads: {pooling: [mean, max]}}}}}
{strategies: [mine], heads: [mlp], strategies.yaml: {strategies: {mine: {base: full, reads: {pooling: pooler}}}}}
{outputs: [probe_curves]}
{tasks: [acceptability], strategies: [full], ensembles: {two: {by: interpolation, members: [{strategy: full}]}}}
{tasks: [acceptability], strategies: [full], ensembles: {two: {by: weights, members: [{strategy: lora}]}}}
{tasks: [paraphrase], ensembles: {two: {by: weights, members: [{strategy: full}, {strategy: frozen_separate}]}}}
{strategies: [full], only: {full: [acceptability]}, ensembles: {two: {members: [{strategy: full}], tasks: [entities]}}}
{strategies: [frozen, top_k: [2]], only: {top_k: [acceptability]}, merges: {m: {strategies: [top_k]}}}
{strategies: [full, ladder], outputs: [way]}
{strategies: [full, frozen], outputs: [way]}
{strategies: [full_200, linear_probe], outputs: [task_pairs]}
{outputs: [sizes]}
{outputs: [settings_over_tasks]}
{outputs: [transfer_table]}
{gradients: true, outputs: [gradients]}
{probes: [logme], outputs: [gains]}
{probes: [linear], outputs: [layer_changes]}
{tasks: [entities], probes: [m], outputs: [layer_mixes], probes.yaml: {probes: {m: {base: edge_small, layers: [1, 2]}}}}
{tasks: [similarity], probes: [m], outputs: [domains], probes.yaml: {probes: {m: {kind: domain_divergence, domain: g}}}}
{subsets: [n1000_r1, n100_d1], outputs: [m], outputs.yaml: {outputs: {m: {base: main_table, split: reserved}}}}
{subsets: [n100_d1], strategies: [full], probes: [adapter_removal], outputs: [removed_adapters]}
{subsets: [n100_d1], strategies: [full], adapted: [full], probes: [adapter_removal], outputs: [removed_adapters]}
{tasks: [acceptability], subsets: [n250_d1], strategies: [full], adapted: [full], probes: [next_sentence_loss]}
{tasks: [similarity], subsets: [few], tasks.yaml: {subsets: {few: {per_label: 8, validation: 0.25}}}}
{tasks: [similarity], probes: [mutual_information]}
{tasks: [acceptability], probes: [edge]}
{tasks: [acceptability], subsets: [n100_d1], strategies: [full, linear_probe], outputs: [main_table], probes: [cka]}
{tasks: [acceptability], adapted: [full], probes: [linear]}
{tasks: [acceptability], strategies: [linear_probe], outputs: [main_table], compute: {precision: bf16}}
{tasks: [paraphrase], strategies: [full_separate], adapted: [full_separate], probes: [linear]}
{encoders: [elmo]}
{encoders: [glove]}
{encoders: [mine], encoders.yaml: {encoders: {mine: {kind: elmo, hub: a/b, layers: 2, width: 8}}}}
{encoders: [mine], encoders.yaml: {encoders: {mine: {kind: word_vectors, file: f, layers: 1, cased: true, width: 8}}}}
{encoders: [mine], encoders.yaml: {encoders: {mine: {hub: a/b, layers: 0, width: 8}}}}
{encoders: [mine], encoders.yaml: {encoders: {mine: {hub: a/b, layers: 1, vocabulary: 5, width: 8}}}}
{encoders: [mine], encoders.yaml: {encoders: {mine: {hub: a/b, file: f, layers: 1, width: 8}}}}
{tasks: [acceptability], ensembles: {two: {members: [{strategy: full, seeds: [1]}]}}}
{tasks: [acceptability], ensembles: {two: {members: [{strategy: full}, {strategy: full, seeds: [1]}]}}}
{tasks: [acceptability], ensembles: {two: {members: [{strategy: full, seeds: [1, 7]}]}}}
{tasks: [acceptability], ensembles: {two: {members: [{strategy: top_k, value: 9}]}}}
{tasks: [acceptability], ensembles: {two: {by: median, members: [{strategy: full}]}}}
{heads: [mine], heads.yaml: {heads: {mine: {kind: bilstm, options: {sise: 3}}}}}
{heads: [mine], heads.yaml: {heads: {mine: {kind: crf, options: {size: 3}}}}}
{heads: [mine], heads.yaml: {heads: {mine: {kind: esim, options: {size: 0}}}}}
{heads: [mine], heads.yaml: {heads: {mine: {kind: esim, options: {size: wide}}}}}
{heads: [mine], heads.yaml: {heads: {mine: {kind: sim_transformer, options: {size: 50}}}}}
{heads: [mine], heads.yaml: {heads: {mine: {kind: esim, separate_pooling: max}}}}
{heads: [mine], heads.yaml: {heads: {mine: {kind: mlp, initialisation: xavier}}}}
""".strip().splitlines()
# how the encoder is pretrained further
FURTHER = """
{phase: {pick: best}}
{phase: {optimizer: lbfgs}}
{phase: {distil: {logits: {}}}}
{phase: {schedule: plateau}}
{phase: {epochs: 1}, student: {layers: 7}}
{phase: {epochs: 1}, student: {layers: 6}}
{phase: {epochs: 1}, student: {layers: [1, 3, 5]}, cosine: 0.5}
""".strip().splitlines()
COMMANDS = """
plan absent.yaml
plan my
plan reviews.csv
plan mine.yaml --strategies linear_probe
plan mine.yaml --config seeds
plan mine.yaml --config seeds=100
plan mine.yaml --config seed=1
plan mine.yaml --config seeds=[1
plan mine.yaml --config store.max_gib=3
plan mine.yaml --config cores=4
plan mine.yaml --config device=cuda
plan mine.yaml --config pathvars=3
plan mine.yaml seeds=[1]
plan seeds=[1]
plan mine.yaml over.yaml
run absent.yaml
plan mine.yml
run mien.yaml
run mine
run qqqq --cores 2
run reviews.csv
run --cores 2 mine.yaml
run mine.yaml --strategies linear_probe
run mine.yaml --data-dir=elsewhere
run mine.yaml --config seeds=[1
run mine.yaml --cores 1 seeds=[1]
doctor absent.yaml
doctor reviews.csv
advise mine.yaml reviews.csv
advise mine
advise absent
advise mine.yaml --seeds 3
list strategies qqqq
new task absent.csv
new task reviews.csv --name Help-Desk
new task https://a.org/b.csv
new task my
new task broken.csv
new task reviews.csv --label text
new task reviews.csv --label star
show other
export my out
export mine.yaml out
predict my
""".strip().splitlines()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a task of the user's, of synthetic texts, its experiment and some broken files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my").mkdir()
    task = "{corpus: acceptability, target: label, type: classification, metrics: [accuracy]}"
    (tmp_path / "my/tasks.yaml").write_text(f"tasks:\n  reviews: {task}\n")
    (tmp_path / "mine.yaml").write_text(EXPERIMENT)
    (tmp_path / "half").mkdir()
    (tmp_path / "over.yaml").write_text("title: other\noutputs: [tabel]\n")
    (tmp_path / "reviews.csv").write_text(CSV)
    (tmp_path / "broken.csv").write_text(CSV.replace("1 was good and long;", "1 was good and long"))
    return tmp_path


def message(words: list[str]) -> str:
    """Return what a command that fails says."""
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert isinstance(caught.value.code, str), "a sentence, which exits with 1"
    assert caught.value.code.startswith("error: ")
    return of_ours(caught.value.code.removeprefix("error: "))


def of_ours(sentence: str) -> str:
    """Return a message without this folder, and without the lines of our catalogues, which move."""
    return re.sub(r"(?<![\w/])(config/(?:papers/)?\w+\.yaml):\d+", r"\1", sentence.replace(f"{HOME}/", ""))


@pytest.mark.parametrize("change", IN_AN_EXPERIMENT, ids=" ".join)
def test_a_mistake_in_an_experiment_has_the_line_of_the_users_file(place, recorded, change):
    assert change[0] in EXPERIMENT
    (place / "mine.yaml").write_text(EXPERIMENT.replace(*change, 1))
    (place / "half/encoders.yaml").write_text("encoders:\n  nn: {hub: a/b}\n")
    recorded(" -> ".join(change), message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", IN_A_CATALOGUE, ids=lambda case: f"{case[2]} {case[3]}")
def test_a_mistake_in_a_catalogue_has_its_line(place, recorded, case):
    name, text, *change = case
    assert change[0] in text
    (place / f"my/{name}.yaml").write_text(text.replace(*change, 1))
    (place / "mine.yaml").write_text(f"{EXPERIMENT}data_dir: .\n")
    recorded(f"{name}.yaml: {' -> '.join(change)}", message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", HEADS)
def test_a_head_that_cannot_be_has_its_line(place, recorded, case):
    head, strategy = case.split(" <- ")
    (place / "my/heads.yaml").write_text(f"heads:\n  mine: {head}\n")
    text = EXPERIMENT.replace("linear_probe\n  - top_k: [1]", strategy).replace("title:", "heads: [mine]\ntitle:")
    (place / "mine.yaml").write_text(text)
    recorded(f"heads.yaml: {case}", message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", STRATEGIES)
def test_a_strategy_that_cannot_be_has_its_line(place, recorded, case):
    (place / "my/strategies.yaml").write_text(f"strategies: {{{case}}}\n")
    (place / "mine.yaml").write_text(EXPERIMENT.replace("linear_probe\n  - top_k: [1]", "mine"))
    recorded(f"strategies.yaml: {case}", message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("case", CATALOGUES)
def test_a_catalogue_that_cannot_be_has_its_line(place, recorded, case):
    file, text = case.split(" <- ")
    (place / f"half/{file}").write_text(f"{{{text.replace('{CORPUS}', USUAL)}}}\n" if text[0] != "[" else text)
    with pytest.raises(UserError) as caught:
        Catalogue([*shipped(HOME), "half"])
    recorded(case, str(caught.value))


@pytest.mark.parametrize("case", OF_AN_EXPERIMENT)
def test_an_experiment_that_cannot_be_planned_says_why(place, recorded, case):
    wish = yaml.safe_load(case)
    if other := wish.pop("file", ""):
        file, wish = HOME / f"config/experiments/{other}.yaml", {"sources": ["hub"]} | wish
    else:
        file, wish = HOME / "tests/base.yaml", {"strategies": ["linear_probe"], "outputs": ["main_table"]} | wish
    for name in [name for name in wish if name.endswith(".yaml")]:
        wish["catalogues"] = ["own"]
        (place / "own").mkdir()
        (place / "own" / name).write_text(yaml.safe_dump(wish.pop(name)))
    with pytest.raises(UserError) as caught:
        load_plan(read_config([str(file)], wish), HOME)
    recorded(case, of_ours(str(caught.value)))


@pytest.mark.parametrize("case", FURTHER)
def test_a_further_pretraining_that_cannot_be_has_its_line(place, recorded, case):
    (place / "my/encoders.yaml").write_text(f"further_pretraining:\n  mine: {case}\n")
    (place / "my/strategies.yaml").write_text("strategies: {mine: {base: full, from: mine}}\n")
    (place / "mine.yaml").write_text(EXPERIMENT.replace("linear_probe\n  - top_k: [1]", "mine"))
    recorded(f"encoders.yaml: {case}", message(["plan", "mine.yaml"]))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mistake_on_the_command_line_is_one_sentence(place, recorded, command):
    recorded(f"thaw {command}", message(command.split()))


@pytest.mark.parametrize(
    ("command", "sentence"),
    {
        "new tasks reviews.csv": "argument task: invalid choice: 'tasks' (choose from 'task')",
        "plan mine.yaml --strategy-names linear_probe": "unrecognized arguments: --strategy-names linear_probe",
    }.items(),
)
def test_a_wrong_word_is_one_sentence_without_the_list_of_options(place, capsys, command, sentence):
    with pytest.raises(SystemExit) as caught:
        main(command.split())
    assert caught.value.code == 2
    name = command.split()[0]
    assert capsys.readouterr().err == f"error: thaw {name}: {sentence}; thaw {name} --help describes it\n"
