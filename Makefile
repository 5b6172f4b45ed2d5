.PHONY: test lint check bench scale crash mutate nightly evidence ci

test:            ## the default tests
	pytest

lint:            ## style and types
	ruff check .
	ruff format --check .
	mypy

check: lint test ## what a commit should pass
	kb check --strict
	python scripts/check_docs.py

bench:           ## the figures in the README
	python scripts/cold_start.py
	python scripts/bench_build.py
	python scripts/fit_ranking.py

scale:           ## 1,000 and 10,000 made-up records, beside what one would use instead (docs/scale.md; about 15 minutes)
	python scripts/bench/scale.py

crash:           ## kill, fill up and break a real build at every step (needs strace)
	python scripts/crash.py
	python scripts/crash.py --segments

mutate:          ## do the tests notice wrong code? 40 random changes, about ten minutes
	python scripts/mutate.py

nightly:         ## states, bytes, requests, load, mutants that nobody thought of: half an hour
	pip install -q torch==2.13.0 && pip install -q -e '.[dev]'
	pip install -q atheris || true
	python scripts/nightly --self-test

evidence:        ## makes the errors of the articles and then their cures (installs what they need; about five minutes)
	pip install -q torch==2.13.0 && pip install -q -e '.[evidence]'
	python scripts/evidence.py

ci:              ## all of it, from a clean checkout
	bash .ci/run
