# `make book` and `make test` set everything up by themselves; a second call installs nothing.
PYTHON ?= python3
VENV := .venv
# Where _build/ lies: from a checkout that cannot be written, make book VENV=/elsewhere/venv OUT=/elsewhere
OUT := .
RUN = "$(VENV)/bin/python" -m
BOOK = "$(VENV)/bin/python" -c 'from jupyter_book.cli.main import main; main()'
TOYS = $(shell grep -l '"nbmake"' chapters/*.ipynb)
STUDY ?= digits
JOBS ?= 2
ifeq ($(wildcard requirements.txt),)
HERE := $(strip $(MAKEFILE_LIST))
$(error call it from the book's folder, or so: make -C "$(HERE:%Makefile=%)" $(MAKECMDGOALS))
endif
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))
NEW_ENOUGH = import sys; v = sys.version_info; \
  sys.exit(None if v >= (3, 11) else "Python 3.11 or newer is needed; this is %d.%d. Try: make PYTHON=python3.12" % v[:2])
# An environment whose Python runs, is new enough and has a pip, and whose scripts name the place where it lies.
FITS = import os, sys, pip; here = os.path.abspath(sys.argv[1]); \
  sys.exit(sys.version_info < (3, 11) or here not in open(here + "/bin/activate", encoding="utf-8").read())

.PHONY: book test check lint sweep status clean help environment

help:  ## this list
	@grep -hE '^[a-z]+:.*##' Makefile | sed 's/:.*##/\t/'

environment:
	@"$(VENV)/bin/python" -c '$(FITS)' "$(VENV)" 2>/dev/null || { \
	  $(PYTHON) -c '$(NEW_ENOUGH)' && \
	  { [ ! -e "$(VENV)" ] || [ -e "$(VENV)/pyvenv.cfg" ] || rmdir "$(VENV)" 2>/dev/null || \
	    { echo "$(VENV) is there, and no environment of Python: move it away" >&2; exit 1; }; } && \
	  echo "making $(VENV)" && $(PYTHON) -m venv --clear "$(VENV)"; }
	@cmp -s requirements.txt "$(VENV)/.installed" || { \
	  $(RUN) pip install --quiet --disable-pip-version-check -r requirements.txt && \
	  { cp requirements.txt "$(VENV)/.installed" 2>/dev/null || true; }; }

book: environment  ## build the book from the committed records, strictly
	$(BOOK) build . --path-output "$(OUT)" -W -n --keep-going
	@echo "The book is built. Open $(OUT)/_build/html/index.html"

# tests/test_reruns.py runs every chapter from the records; nbmake, those that can, on a toy case.
# The toy cases stand first: the longest, begun last, left a core idle. Two workers have a thread each, not all cores.
test: export OMP_NUM_THREADS = 1
test: environment book  ## tests, chapters, and the built pages in a browser
	$(RUN) pytest --nbmake $(TOYS) tests -n 2 --dist loadfile --nbmake-timeout=300 --durations=40

check: environment lint  ## in a minute: style, order of rooms, golden values, a chapter on a toy case
	$(RUN) pytest -q tests/test_rooms.py tests/test_house.py tests/test_records.py \
	  --deselect tests/test_records.py::test_every_committed_record_is_whole_and_one_of_ours
	$(RUN) pytest -q --nbmake chapters/steps_to_result.ipynb --nbmake-timeout=300

lint: environment  ## style
	$(RUN) ruff check .

sweep: environment  ## train what a study lacks: make sweep STUDY=mnist JOBS=2
	$(RUN) lib run $(STUDY) --jobs $(JOBS)

status: environment  ## what is measured and what is missing
	$(RUN) lib status

clean:  ## remove the built book; _build/runs stays
	@[ ! -d "$(OUT)/_build" ] || find "$(OUT)/_build" -mindepth 1 -maxdepth 1 ! -name runs -exec rm -rf {} +
