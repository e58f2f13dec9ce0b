# make demo, test, test-long, lint, platforms, audit: the first call of any of them creates the virtual environment.

PYTHON ?= $(or $(shell command -v python3.11),python3)
VENV ?= .venv
SOURCE ?=
PYTEST_ARGS ?=
JOBS ?= auto

BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--constraint requirements/constraints.txt
SOURCES := CMakeLists.txt package.xml pyproject.toml setup.py \
	$(shell find smart_caption_ros launch config msg srv cmake scripts -type f -not -name '*.pyc')

# The virtual environment is a ROS prefix; unset the variables of a ROS prefix that the shell has sourced.
unexport AMENT_PREFIX_PATH CMAKE_PREFIX_PATH LD_LIBRARY_PATH PYTHONPATH _ROS_WHEELS_BOOTSTRAP_COMPLETE

.PHONY: help demo test test-long lint platforms audit clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo                 caption rendered rooms and eight photographs over ROS 2; see demo_output/'
	@echo 'make demo SOURCE=PATH     the same for a picture, a folder, sequences, a video or a ROS bag'
	@echo 'make test                 run the tests in JOBS processes (PYTEST_ARGS="-k name" to choose some)'
	@echo 'make test-long            run those that take many seconds each, which `make test` leaves out'
	@echo 'make lint                 check style and types'
	@echo 'make platforms            run the robot side tests with the versions of Ubuntu 22.04 and 24.04'
	@echo 'make audit                report the known vulnerabilities of the pinned packages'
	@echo 'make clean                remove the virtual environment and what was built'

demo: $(VENV)/.demo
ifdef SOURCE
	$(BIN)/smart-caption demo --source "$(SOURCE)" --output demo_output
else
	$(BIN)/smart-caption demo --output demo_output
	$(BIN)/smart-caption demo --source sample:photographs --output demo_output/photographs
endif

test: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses $(JOBS) $(PYTEST_ARGS)

test-long: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses $(JOBS) -m long $(PYTEST_ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

platforms:
	.ci/platforms

audit: $(VENV)/.audit
	$(BIN)/python .ci/audit.py

clean:
	rm -rf $(VENV) build/platforms build/bdist* build/lib* build/temp* build/wheel *.egg-info demo_output

# Stamps: .ros for the virtual environment with ROS, .package for this package, .demo, .test and .audit for the other
# dependencies of these targets. Changed pins create a new environment, so that no old package remains.
$(VENV)/.ros: requirements/ros-jazzy.txt requirements/constraints.txt
	@echo 'Making the virtual environment $(VENV) (once; some minutes) ...'
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "needs Python 3.11: make PYTHON=...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP_INSTALL) --requirement requirements/ros-jazzy.txt setuptools
	@touch $@

$(VENV)/.package: $(VENV)/.ros $(SOURCES)
	@echo 'Building the messages and installing the package ...'
	@rm -rf build/lib* build/wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir build/wheel .
	$(PIP_INSTALL) --force-reinstall --no-deps build/wheel/*.whl
	@touch $@

$(VENV)/.demo $(VENV)/.test $(VENV)/.audit: $(VENV)/.ros pyproject.toml | $(VENV)/.package
$(VENV)/.demo: EXTRAS := demo
$(VENV)/.test: EXTRAS := demo,fleet,test,training
$(VENV)/.audit: EXTRAS := audit
$(VENV)/.demo $(VENV)/.test $(VENV)/.audit:
	$(PIP_INSTALL) 'smart_caption_ros[$(EXTRAS)]'
	@touch $@
