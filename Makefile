# `make book` and `make test` set everything up by themselves; a second call installs nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOYS = $(shell grep -l '"nbmake"' chapters/*.ipynb)
STUDY ?= digits
JOBS ?= 2
ifeq ($(wildcard requirements.txt),)
$(error call it from the book's folder, or so: make -C $(dir $(firstword $(MAKEFILE_LIST))) $(MAKECMDGOALS))
endif
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))

.PHONY: book test lint sweep status clean help

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(READY): requirements.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else "Python 3.11 or newer is needed; this is %d.%d. Try: make PYTHON=python3.12" % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

book: $(READY)  ## build the book from the committed records, strictly
	$(BIN)/jupyter-book build . -W -n --keep-going
	@echo "The book is built. Open _build/html/index.html"

# tests/test_reruns.py runs every chapter from the records; nbmake, those that can, on a toy case.
test: $(READY) book  ## tests, chapters, and the built pages in a browser
	$(BIN)/python -m pytest tests --nbmake $(TOYS) -n 2 --dist loadfile --nbmake-timeout=300 --durations=40

lint: $(READY)  ## style
	$(BIN)/ruff check .

sweep: $(READY)  ## train what a study lacks: make sweep STUDY=mnist JOBS=2
	$(BIN)/python -m lib run $(STUDY) --jobs $(JOBS)

status: $(READY)  ## what is measured and what is missing
	$(BIN)/python -m lib status

clean:  ## remove the built book; _build/runs stays
	@[ ! -d _build ] || find _build -mindepth 1 -maxdepth 1 ! -name runs -exec rm -rf {} +
