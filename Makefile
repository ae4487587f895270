# The two commands of Thaw are `make demo` and `make test`; `make help` lists all.
#
# CORES=4 limits the cores; ARGS passes more to Snakemake, for example
# make demo ARGS="--config data_dir=../shared/data"

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo paper papers test test-slow test-recovery test-slurm test-gpu test-tools slurm fuzz fuzz-guided mutants \
    mutants-heads bench bench-quick reference site clean

CORES ?= all
EXPERIMENT ?= demo
FUZZ ?= 100000
FUZZ_SECONDS ?= 600
ARGS ?=
PYTHON ?=
VENV := .venv
INSTALLED := $(VENV)/installed
PEERS := $(VENV)/bench/installed
SETFIT := $(VENV)/setfit/installed
SITE := $(VENV)/site/installed
MUTMUT := $(VENV)/mutmut
ATHERIS := $(VENV)/atheris
REPORT := results/outputs/demo/report.html
# Each worker computes with one thread; where a test takes two, they sleep while they wait. One without work takes tests of another.
# What pytest rewrites of the tests is kept for the next run, whatever the environment says of bytecode.
PYTEST := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE PYTHONDONTWRITEBYTECODE= pytest -q --numprocesses logical --maxprocesses 8 --dist worksteal
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED)  ## run the default experiment on the embedded data; no network beyond the install
	@touch $(VENV)/started
	@thaw demo --cores $(CORES) $(ARGS)
	@if [ $(REPORT) -nt $(VENV)/started ]; then echo "The report is in $(REPORT)"; \
	elif [ -e $(REPORT) ]; then echo "Nothing to be done for the report; it is in $(REPORT)"; fi

paper: $(INSTALLED)  ## the report of EXPERIMENT as a PDF, where pdflatex is; the demo's by default
	@test -f results/outputs/$(EXPERIMENT)/paper.tex || { echo "error: results/outputs/$(EXPERIMENT)/paper.tex is \
	not there; run the experiment first" >&2; exit 1; }
	@command -v pdflatex > /dev/null || { echo "error: no pdflatex here; install TeX Live, or compile \
	results/outputs/$(EXPERIMENT)/paper.tex elsewhere, with tables/ and figures/ in its folder" >&2; exit 1; }
	@cd results/outputs/$(EXPERIMENT) && for turn in 1 2 3; do \
	    pdflatex -interaction=batchmode -halt-on-error paper.tex > /dev/null || { tail -20 paper.log >&2; exit 1; }; \
	    if [ $$turn = 1 ] && [ -s references.bib ]; then bibtex paper > /dev/null || exit 1; fi; done
	@echo "The paper is in results/outputs/$(EXPERIMENT)/paper.pdf"

PAPERS := peters2019 peters2019_layers peters2019_domains lee2019 lee2019_roberta lee2019_rates wang2019 wei2022 wei2022_students houlsby2019 ulmfit kovaleva2019

papers: $(INSTALLED)  ## all papers' tables and figures; ARGS may name an overlay: ARGS="small.yaml"
	@failed=0; for name in $(PAPERS); do \
	    thaw fetch config/experiments/$$name.yaml $(ARGS) || true; \
	    thaw run config/experiments/$$name.yaml $(ARGS) --cores $(CORES) || failed=1; done; exit $$failed

test: $(INSTALLED)  ## style and all unmarked tests
	@ruff check scripts tests benchmarks quality config
	@ruff format --check scripts tests benchmarks quality config
	@snakefmt --check Snakefile workflow
	@$(PYTEST)

test-slow: $(INSTALLED)  ## the tests that take minutes
	@CUDA_VISIBLE_DEVICES= $(PYTEST) -m slow tests quality

test-recovery: $(INSTALLED)  ## kills, full disks, flipped bits, lost GPUs; some ten minutes
	@pytest -q -s -m "slow or not slow" tests/test_machines.py tests/test_progress.py quality/test_disks.py quality/test_recovery.py

test-slurm: $(INSTALLED) slurm  ## a small experiment on a SLURM of its own; installs Debian's where it is root
	@pytest -q -s -m "slow or not slow" tests/test_slurm.py quality/test_cluster.py

test-gpu: $(INSTALLED)  ## smoke tests on a CUDA device, under ten minutes; one line where there is none
	@pytest -q -s -rs -m gpu quality/gpu || { test $$? = 5 && echo "no test was run"; }

test-tools: $(INSTALLED)  ## tests of the tools and of the tests: fuzzing, planted mistakes, recipes; ARGS="-m slow" for load
	@CUDA_VISIBLE_DEVICES= $(PYTEST) benchmarks quality $(ARGS)

slurm:
	@PATH=$$PATH:/usr/sbin; { command -v slurmctld && command -v slurmd; } > /dev/null || { test "$$(id -u)" = 0 && apt-get update -q && \
	DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends slurmctld slurmd slurm-client; } || { \
	echo "error: no SLURM here; on Debian or Ubuntu root can install it, with a mirror in reach" >&2; exit 1; }

fuzz: $(INSTALLED)  ## readers and settings on FUZZ=100000 broken and hostile inputs
	@FUZZ=$(FUZZ) pytest -q -s quality/test_fuzz.py

fuzz-guided: $(INSTALLED) $(ATHERIS)  ## the readers, by atheris, for FUZZ_SECONDS=600
	@PYTHONPATH=scripts:$(ATHERIS) python quality/fuzz_guided.py $(FUZZ_SECONDS)

mutants: $(INSTALLED) $(MUTMUT)  ## changes to the code of specs, stores, resuming and metrics that no test sees; hours
	@OMP_NUM_THREADS=1 PYTHONPATH=scripts:tests:$(VENV)/mutmut python quality/mutants.py $(ARGS)

mutants-heads: $(INSTALLED)  ## wrong formulas of heads, adapters and boundaries that no test of values sees; minutes
	@OMP_NUM_THREADS=1 PYTHONPATH=scripts:tests python quality/head_mutants.py $(ARGS)

bench: $(INSTALLED) $(PEERS) $(SETFIT)  ## speed compared with what people use, all parts; hours (docs/results/performance.md)
	@PYTHONPATH=scripts python -m benchmarks all --peers $(VENV)/bench/bin/python --setfit $(VENV)/setfit/bin/python $(ARGS)

bench-quick: $(INSTALLED) $(PEERS)  ## the same with little work, some ten minutes on two cores
	@PYTHONPATH=scripts python -m benchmarks all --quick --peers $(VENV)/bench/bin/python $(ARGS)

reference: $(INSTALLED)  ## the pages of all keys and all commands, in docs/reference, and JSON schemas for editors
	@python scripts/reference_pages.py
	@echo "The pages are docs/reference/configuration.md and docs/reference/command-line.md"

site: $(SITE) reference  ## the documentation as a site with search, in site/; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(VENV)/site/bin/mkdocs build --strict --quiet
	@echo "The site is in site/index.html"

clean:  ## delete all results and logs; .venv stays
	rm -rf results logs .snakemake

# A stamp file, so that the packages are installed once and again only when a pin changes.
$(INSTALLED): requirements.txt
	@for python in $(PYTHON) python3.11 python3 none; do \
	    $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && break; done; \
	if [ $$python = none ]; then \
	    echo "error: Thaw needs Python 3.11 or newer, and neither python3.11 nor python3 on the PATH is" >&2; exit 1; fi; \
	echo "installing the pinned packages into $(VENV); once, and it takes some minutes"; \
	$$python -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --progress-bar off -r requirements.txt \
	| while read -r verb name rest; do case "$$verb $$rest" in \
	    "Collecting (from -r"*|"Processing (from -r"*) echo "  $${name##*/}";; \
	    "Installing"*) echo "unpacking them all";; esac; done
	@$(VENV)/bin/python -m pip install --quiet --progress-bar off --no-deps --no-build-isolation -e .
	@$(VENV)/bin/python scripts/reference_pages.py
	@touch $@

# What the benchmark compares with has environments of its own, so that it cannot change ours.
$(PEERS): benchmarks/requirements.txt
$(SETFIT): benchmarks/requirements-setfit.txt
$(PEERS) $(SETFIT): $(INSTALLED)
	@python -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --progress-bar off -r $(filter %.txt,$^)
	@touch $@

# The site is built in an environment of its own too, from the extra `docs`.
$(SITE): pyproject.toml
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: make site needs Python 3.11" >&2; exit 1; }
	@python3 -m venv $(@D)
	@$(@D)/bin/python -c 'import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' \
	| $(@D)/bin/python -m pip install --quiet --progress-bar off -r /dev/stdin
	@touch $@

# The tools that test the tests are installed in folders of their own, outside of the environment that they try.
$(MUTMUT): $(INSTALLED)
	@python -m pip install --quiet --progress-bar off --no-deps --target $@ mutmut==3.8.1 libcst==1.9.0
$(ATHERIS): $(INSTALLED)
	@python -m pip install --quiet --progress-bar off --no-deps --target $@ atheris==3.0.0
