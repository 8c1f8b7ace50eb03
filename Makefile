# SPDX-License-Identifier: MIT
# Everyday commands; the build itself is Meson's (meson.build).
#
#   make          build into build/
#   make run      build, then show real programs at work on usysv
#   make check    everything CI runs; ends with "N passed, N failed, N skipped"
#   make quick    the fast part of it, below a minute
#   make install  install (PREFIX=..., DESTDIR=...)
#   make format   clang-format the sources in place
#   make tidy     clang-tidy

BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

all: $(BUILD)/build.ninja
	ninja -C $(BUILD) -j $(JOBS)

$(BUILD)/build.ninja:
	meson setup $(BUILD) --prefix=$(PREFIX) || { rm -rf $(BUILD); exit 1; }

run:
	scripts/install-deps.sh build demo
	$(MAKE) all
	scripts/demo.sh $(BUILD)

check:
	scripts/install-deps.sh --try build check demo
	scripts/check.sh

quick: all
	scripts/check.sh --quick $(BUILD)

# A prefix that is given here counts also if the build folder was made for another; ldconfig, for
# LD_PRELOAD to find the library by its name.
install: $(BUILD)/build.ninja
ifneq ($(origin PREFIX),file)
	meson configure $(BUILD) -Dprefix=$(PREFIX)
endif
	$(MAKE) all
	meson install -C $(BUILD) --no-rebuild
	[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || PATH="$$PATH:/usr/sbin:/sbin" ldconfig

clean:
	rm -rf build build-*

format:
	scripts/format.sh

tidy: all
	scripts/tidy.sh $(BUILD)

.PHONY: all run check quick install clean format tidy
