"""What a report cites besides its catalogue entries: metrics, optimizers, tests, software, keys of references.bib."""

METRICS = {"mcc": "matthews1975mcc", "spearman": "spearman1904", "span_f1": "tjong2003conll"}
METRICS |= dict.fromkeys(("answer_f1", "exact_match"), "rajpurkar2016squad")
METRICS |= dict.fromkeys(("best_f1", "best_exact"), "rajpurkar2018squad2")
OPTIMIZERS = {"adamw": "loshchilov2019adamw", "lbfgs": "liu1989lbfgs"}
TESTS = "westfall1993resampling"
SOFTWARE = ("wolf2020transformers", "paszke2019pytorch", "molder2021snakemake")
