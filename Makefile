# SPDX-License-Identifier: BSD-2-Clause
#
# The one Makefile.  `make help` lists what it can do.  It is never written by
# configure: built in another folder, that folder gets a two-line Makefile that
# names srcdir and includes this one.
#
# Sources are found, not listed: a new file in lib/*/, io_thread/, test/unit/,
# test/broker/, perf/ or docs/examples/ is built without an edit here.  Objects
# stand in build/<variant>/.

srcdir ?= .
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:

variants := plain debug asan ubsan tsan fuzz schedules planted
goals := $(or $(MAKECMDGOALS),all)

# -- What needs no configuration ------------------------------------------
unconfigured := help deps deps-kafka deps-peers peers clean distclean
two_pass := check demo

# Where the brokers' jars and the peers are kept; `make clean` leaves them.
kafka_jars = KP_KAFKA="$${KP_KAFKA:-$(CURDIR)/build/kafka}"
peers_dir = KP_PEERS="$${KP_PEERS:-$(CURDIR)/build/peers}"

.PHONY: all help deps deps-kafka deps-peers peers clean distclean FORCE
all:

help:
	@sed 's/^  //' $(srcdir)/test/support/make-help.txt

deps:
	@$(srcdir)/test/support/deps

deps-kafka: deps
	@$(kafka_jars) $(srcdir)/test/integration/deps

# The clients that perf/compare measures beside libkp; P='java ...' only these.
deps-peers:
	@$(peers_dir) $(srcdir)/perf/peers/deps $(P)
peers: deps-peers
	@$(peers_dir) $(srcdir)/perf/peers/build $(P)

clean:
	rm -rf $(filter-out build/kafka build/peers,$(wildcard build/*))
	rm -f $(foreach f,perf/*.c docs/examples/*.c,$(patsubst \
	    $(srcdir)/%.c,%,$(wildcard $(srcdir)/$(f)))) test/broker/kp-broker
distclean: clean
	rm -rf build config.h config.mk config.log config.status srctree
	rm -rf $(srcdir)/configure $(srcdir)/autom4te.cache

# make reads config.mk, so it would run configure before anything else, and on
# a machine without the libraries it would die there.  So these two begin with a
# pass that does not read it, installs what is missing, and starts over.
ifneq ($(and $(filter $(two_pass),$(goals)),$(if $(KP_PASS),,first)),)

.PHONY: $(goals)
$(filter-out $(firstword $(goals)),$(goals)): $(firstword $(goals))
	@:
$(firstword $(goals)):
	@$(srcdir)/test/support/deps $(if $(filter check,$(goals)),--cxx --python)
	@grep -qs '^CHECK_LIBS := .' config.mk || rm -f config.mk
	@+$(MAKE) --no-print-directory KP_PASS=2 $(goals)

else ifneq ($(filter-out $(unconfigured),$(goals)),)

# -- Configuration --------------------------------------------------------
$(srcdir)/configure: $(srcdir)/configure.ac
	@cd $(srcdir) && autoconf || { \
	    echo 'make deps installs what building needs.' >&2; exit 1; }
config.mk: $(srcdir)/configure
	@if [ -x ./config.status ]; then ./config.status --recheck -q && \
	    ./config.status -q; else $(srcdir)/configure -q; fi
	@touch config.mk
# Written with config.mk; an unchanged one keeps its time, so nothing is built
# again for it.
config.h: config.mk
	@test -f $@ || ./config.status -q
include config.mk

major_minor := $(basename $(VERSION))
SONAME := libkp.so.$(major_minor)

# -- Flags: ours first, then the user's -----------------------------------
warnings := -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
    -Wstrict-prototypes
KP_CFLAGS := -std=c11 -D_GNU_SOURCE -include config.h -I$(srcdir) \
    -I$(srcdir)/include -fPIC -fvisibility=hidden -pthread \
    -ffile-prefix-map=$(srcdir)/= -ffile-prefix-map='$(CURDIR)'=. $(warnings) $(DEP_CFLAGS) $(CHECK_CFLAGS)

flags_plain :=
flags_debug := -DKP_DEBUG -DKP_FAILMALLOC
flags_asan := $(flags_debug) -fsanitize=address -fno-omit-frame-pointer
flags_ubsan := $(flags_debug) -fsanitize=undefined -fno-sanitize-recover=all
# With KP_YIELDS=SEED in the environment its threads stand back at random.
flags_tsan := $(flags_debug) -fsanitize=thread -include test/support/yields.h
# Only clang has libFuzzer.
FUZZ_CC := clang
flags_fuzz := $(flags_debug) -O1 -g -fno-omit-frame-pointer \
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
build/fuzz/%: CC = $(FUZZ_CC)
# Every atomic operation and lock is a point for the schedule explorer.
flags_schedules := $(flags_debug) -include test/schedules/shim.h
# Faults that the simulator must find; see below, "planted".
flags_planted := $(flags_debug) -DKP_PLANTED -include test/sim/plant.h

# -- Sources --------------------------------------------------------------
# LIB_DIRS narrows the library to some folders, SKIP leaves files out, and
# KEEP=1 goes on without those that do not compile: for a tree that is half way
# through a change.
LIB_DIRS ?= $(patsubst $(srcdir)/%/,%,$(wildcard $(srcdir)/lib/*/)) io_thread
find = $(filter-out $(SKIP),$(patsubst $(srcdir)/%,%,$(wildcard \
    $(addprefix $(srcdir)/,$(1)))))

lib_src := $(call find,$(LIB_DIRS:=/*.c))
broker_src := $(filter-out test/broker/main.c %_test.c,\
    $(call find,test/broker/*.c))
broker_main := $(call find,test/broker/main.c)
support_src := $(call find,test/support/*.c)
# The simulator: run.c is its main.
sim_src := $(filter-out test/sim/run.c %_test.c,$(call find,test/sim/*.c))
sim_main := $(call find,test/sim/run.c)
test_src := $(filter-out test/integration/%,$(call find,test/*/*_test.c))
fuzz_src := $(filter-out %_test.c test/fuzz/engine.c,$(call find,test/fuzz/*.c))
fuzz_engine := $(call find,test/fuzz/engine.c)
fuzz_targets := $(shell sed -n 's/^FUZZ_TARGET.\([a-z_]*\),.*/\1/p' \
    $(srcdir)/test/fuzz/targets.def 2>/dev/null)
failcalls_src := $(filter-out %_test.c,$(call find,test/failcalls/*.c))
# What is called in place of these is in test/failcalls.
failcalls_wraps := -Wl,--wrap=syscall $(shell sed -n \
    's/^CALL.\([a-z_0-9]*\),.*/-Wl,--wrap=\1/p' \
    $(srcdir)/test/failcalls/calls.def)
# One program: the schedule explorer, and the library's files that it explores.
sched_src := $(call find,test/schedules/*.c test/schedules/*/*.c)
explored_src := $(filter lib/shared/% lib/api/% io_thread/%,$(lib_src))
example_src := $(call find,docs/examples/*.c)
tool_src := $(call find,docs/tools/*.c)
# Programs of several files: the main one here, the others in folders below.
perf_src := $(call find,perf/*.c)
perf_part_src := $(filter-out perf/peers/%,$(call find,perf/*/*.c))
all_src := $(lib_src) $(broker_src) $(broker_main) $(support_src) $(test_src) \
    $(fuzz_src) $(fuzz_engine) $(failcalls_src) $(sim_src) $(sim_main) \
    $(example_src) $(tool_src) $(perf_src) $(perf_part_src) $(sched_src)

tests := $(test_src:.c=)
examples := $(example_src:.c=)
perfs := $(perf_src:.c=)
broker := $(if $(broker_main),test/broker/kp-broker)

# -- Rules of one variant -------------------------------------------------
define variant_rules
build/$(1)/%.o: $(srcdir)/%.c build/$(1)/flags
	@mkdir -p $$(@D)
	$$(quiet)$$(CC) $(KP_CFLAGS) $$(flags_$(1)) $(CPPFLAGS) $(CFLAGS) \
	    $(if $(WERROR),-Werror) -MMD -MP -c $$< -o $$@ $$(if $$(KEEP),|| echo "left out: $$<")

build/$(1)/libkp.a: $(lib_src:%.c=build/$(1)/%.o)
build/$(1)/libbroker.a: $(broker_src:%.c=build/$(1)/%.o)
build/$(1)/libsupport.a: $(support_src:%.c=build/$(1)/%.o)
build/$(1)/libfuzz.a: $(fuzz_src:%.c=build/$(1)/%.o)
build/$(1)/libsim.a: $(sim_src:%.c=build/$(1)/%.o)
build/$(1)/libfailcalls.a: $(failcalls_src:%.c=build/$(1)/%.o)
build/$(1)/perf/parts.a: $(perf_part_src:%.c=build/$(1)/%.o)
build/$(1)/%.a: build/$(1)/sources
	$$(archive)

$(patsubst %.c,build/$(1)/%,$(filter-out test/fuzz/% test/failcalls/%,\
    $(test_src))): build/$(1)/%: build/$(1)/%.o build/$(1)/libsim.a \
    build/$(1)/libsupport.a build/$(1)/libbroker.a build/$(1)/libkp.a
	$$(call link,$(1),$(CHECK_LIBS))
$(patsubst %.c,build/$(1)/%,$(filter test/fuzz/%,$(test_src))): \
    build/$(1)/%: build/$(1)/%.o build/$(1)/libfuzz.a \
    build/$(1)/libsupport.a build/$(1)/libbroker.a build/$(1)/libkp.a
	$$(call link,$(1),$(CHECK_LIBS))
build/$(1)/test/sim/run: build/$(1)/test/sim/run.o build/$(1)/libsim.a \
    build/$(1)/libsupport.a build/$(1)/libbroker.a build/$(1)/libkp.a
	$$(call link,$(1),$(CHECK_LIBS))
$(patsubst %.c,build/$(1)/%,$(filter test/failcalls/%,$(test_src))): \
    build/$(1)/%: build/$(1)/%.o build/$(1)/libfailcalls.a \
    build/$(1)/libsupport.a build/$(1)/libbroker.a build/$(1)/libkp.a
	$$(call link,$(1),$$(failcalls_wraps) $(CHECK_LIBS))
$(perf_src:%.c=build/$(1)/%): build/$(1)/%: build/$(1)/%.o \
    build/$(1)/perf/parts.a build/$(1)/libkp.a
	$$(call link,$(1),-lm)
$(patsubst %.c,build/$(1)/%,$(example_src) $(tool_src)): build/$(1)/%: \
    build/$(1)/%.o build/$(1)/libkp.a
	$$(call link,$(1))
build/$(1)/test/broker/kp-broker: build/$(1)/test/broker/main.o \
    build/$(1)/libbroker.a build/$(1)/libkp.a
	$$(call link,$(1))
endef

# Of the variant `planted` these sources of the library are changed copies, and
# nothing of any other variant is.
define planted_rule
build/planted/planted/$(1): $(srcdir)/$(1) $(srcdir)/test/sim/planted \
    $(srcdir)/test/sim/plant
	@mkdir -p $$(@D)
	@$(srcdir)/test/sim/plant $(1) < $$< > $$@
build/planted/$(1:.c=.o): build/planted/planted/$(1) build/planted/flags
	@mkdir -p $$(@D)
	$$(quiet)$$(CC) $(KP_CFLAGS) -w $$(flags_planted) $(CPPFLAGS) $(CFLAGS) \
	    -MMD -MP -c $$< -o $$@
endef

quiet = $(if $(V),,@echo "  CC   $@";)
# Appended, not replaced: two folders may have files of one name.
define archive
@echo "  AR   $@"; mkdir -p $(@D); rm -f $@
@$(AR) qcs $@ $(if $(KEEP),$$(ls $(filter %.o,$^) 2>/dev/null),$(filter %.o,$^))
endef
# (variant, more libraries): links every prerequisite, in their order.
define link
@$(if $(V),set -x;,echo "  LINK $@";) \
$(CC) $(flags_$(1)) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ \
    $(DEP_LIBS) $(2) $(LIBS)
endef

$(foreach v,$(variants),$(eval $(call variant_rules,$(v))))
ifneq ($(filter check-planted planted,$(goals)),)
$(foreach f,$(shell $(srcdir)/test/sim/plant --files),\
    $(eval $(call planted_rule,$(f))))
endif

# Kept, though nobody names them as a target.
.PRECIOUS: build/%/flags build/%/sources
# Objects are built again when the command that makes them changes.
build/%/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(KP_CFLAGS) $(flags_$*) $(CPPFLAGS) $(CFLAGS)' > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# Archives are made again when a source file comes or goes.
build/%/sources: FORCE
	@mkdir -p $(@D)
	@echo '$(all_src)' > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

-include $(foreach v,$(variants),$(all_src:%.c=build/$(v)/%.d))

# -- The library and the programs -----------------------------------------
so := build/plain/libkp.so.$(VERSION)
$(so): $(lib_src:%.c=build/plain/%.o) $(srcdir)/lib/libkp.map
	@echo "  LINK $@"
	@# nodelete: a look-up that nobody waits for any more has a thread in it
	@$(CC) $(CFLAGS) $(LDFLAGS) -shared -pthread -Wl,-soname,$(SONAME) \
	    -Wl,--version-script=$(srcdir)/lib/libkp.map -Wl,-z,defs \
	    -Wl,-z,nodelete \
	    -o $@ $(filter %.o,$^) $(DEP_LIBS) $(LIBS)
	@ln -sf $(@F) build/plain/$(SONAME)
	@ln -sf $(SONAME) build/plain/libkp.so

# It loads the library by name, whatever it is built with itself.
unload_tests := $(foreach v,$(variants),build/$(v)/test/unit/unload_test)
$(unload_tests): | $(so)
$(unload_tests): private LIBS += -ldl

build/plain/libkp.pc: $(srcdir)/lib/libkp.pc.in config.mk FORCE
	@mkdir -p $(@D)
	@sed -e 's|@prefix@|$(prefix)|' -e 's|@exec_prefix@|$(exec_prefix)|' \
	    -e 's|@libdir@|$(libdir)|' -e 's|@includedir@|$(includedir)|' \
	    -e 's|@VERSION@|$(VERSION)|' \
	    -e 's|@LIBS_PRIVATE@|-pthread $(strip $(DEP_LIBS) $(PRIVATE_LIBS))|' \
	    $< > $@

.PHONY: lib
lib: $(so) build/plain/libkp.a
all: lib $(broker) $(perfs) $(examples)

# The plain programs also stand under the names of their sources.
$(perfs) $(examples) $(broker): %: build/plain/%
	@mkdir -p $(@D)
	@ln -f $< $@

# -- Installing -----------------------------------------------------------
INSTALL := install
.PHONY: install uninstall
install: lib build/plain/libkp.pc
	$(INSTALL) -d '$(DESTDIR)$(includedir)/kp' '$(DESTDIR)$(libdir)/pkgconfig'
	$(INSTALL) -m 644 $(wildcard $(srcdir)/include/kp/*.h) \
	    '$(DESTDIR)$(includedir)/kp'
	$(INSTALL) -m 644 build/plain/libkp.a '$(DESTDIR)$(libdir)'
	$(INSTALL) -m 755 $(so) '$(DESTDIR)$(libdir)'
	ln -sf $(notdir $(so)) '$(DESTDIR)$(libdir)/$(SONAME)'
	ln -sf $(SONAME) '$(DESTDIR)$(libdir)/libkp.so'
	$(INSTALL) -m 644 build/plain/libkp.pc '$(DESTDIR)$(libdir)/pkgconfig'
uninstall:
	rm -rf '$(DESTDIR)$(includedir)/kp'
	cd '$(DESTDIR)$(libdir)' && rm -f libkp.a libkp.so $(SONAME) \
	    $(notdir $(so)) pkgconfig/libkp.pc

# -- What is printed by programs and committed ----------------------------
# program:file
generated := $(foreach g,print_errors:include/kp/errors.h \
    print_config:docs/CONFIGURATION.md,$(if $(filter \
    docs/tools/$(firstword $(subst :, ,$(g))).c,$(tool_src)),$(g)))
tools := $(tool_src:%.c=build/plain/%)
.PHONY: docs format check-format
docs: $(tools)
	@for g in $(generated); do echo "  GEN  $${g#*:}"; \
	    build/plain/docs/tools/$${g%%:*} > build/plain/generated.new && \
	    mv build/plain/generated.new $(srcdir)/$${g#*:} || exit 1; done

# F='FILE...': only these.
F ?= $(addprefix $(srcdir)/,$(all_src))
format:
	clang-format -i $(F)
check-format:
	clang-format --dry-run --Werror $(F)

# -- Tests ----------------------------------------------------------------
# T=heap_test: only these programs.
chosen := $(if $(T),$(filter $(addprefix %/,$(T)),$(tests)),$(tests))
lints := $(wildcard $(srcdir)/test/lint/*)
support := $(srcdir)/test/support
lints += $(support)/perf_tables
# What a test program or script of a variant may want to know.
test_env = srcdir='$(srcdir)' variant=build/$(1) CC='$(CC)' NM='$(NM)' \
    HAVE='$(HAVE)' VERSION='$(VERSION)' soname='$(SONAME)' \
    generated='$(generated)' \
    KP_BROKER='$(CURDIR)/build/$(1)/test/broker/kp-broker' \
    KP_LIBRARY='$(CURDIR)/build/plain/libkp.so'
programs = $(addprefix build/$(1)/,$(broker) $(perfs) $(examples))

.PHONY: unit check lint check-asan check-ubsan check-tsan check-valgrind
unit: $(chosen:%=build/debug/%)
	@$(call test_env,debug) $(support)/run $(chosen:%=build/debug/%)
lint: lib $(tools)
	@$(call test_env,plain) $(support)/run $(lints)

# Scripts that run the built programs against the test broker.
scripts := $(support)/smoke $(support)/examples
.PHONY: check-smoke check-examples check-install
check-smoke check-examples: check-%: $(call programs,plain)
	@$(call test_env,plain) $(support)/run $(support)/$*
# Do the peers' drivers do what multi_thread_send does?
.PHONY: check-peers
check-peers: build/plain/perf/multi_thread_send build/plain/$(broker)
	@$(call test_env,plain) $(peers_dir) $(support)/run \
	    $(srcdir)/perf/peers/check
# Instructions of a record by callgrind, against the committed figures.
.PHONY: check-instructions renew-instructions
counted := build/plain/perf/multi_thread_send build/plain/$(broker)
check-instructions: $(counted)
	@$(call test_env,plain) $(support)/run $(srcdir)/perf/instructions
renew-instructions: $(counted)
	@$(call test_env,plain) $(srcdir)/perf/instructions --renew
check-install:
	@rm -rf build/installed build/again
	@$(MAKE) install prefix='$(CURDIR)/build/installed' DESTDIR= >/dev/null
	@$(MAKE) install prefix='$(CURDIR)/build/installed' DESTDIR= >/dev/null
	@$(MAKE) install prefix=/usr DESTDIR='$(CURDIR)/build/again' >/dev/null
	@CC='$(CC)' $(support)/install '$(CURDIR)/build/installed' \
	    '$(CURDIR)/build/again/usr'

explorer := build/schedules/explore
check: $(tests:%=build/debug/%) $(explorer) lib $(tools) $(call programs,plain)
	@$(call test_env,plain) $(support)/run $(lints) $(scripts) \
	    $(tests:%=build/debug/%) $(explorer)

# Sanitizers: the same programs and scripts.  A process for each case would be in
# TSAN's way, and cost most of the time under ASAN and valgrind.
check-asan: export ASAN_OPTIONS ?= detect_stack_use_after_return=1
check-ubsan: export UBSAN_OPTIONS ?= print_stacktrace=1
check-tsan: export TSAN_OPTIONS ?= halt_on_error=1 die_after_fork=0
check-asan check-tsan: export CK_FORK = no
check-asan check-ubsan check-tsan: export CK_TIMEOUT_MULTIPLIER ?= 5
check-asan check-ubsan check-tsan: export RUN_TIMEOUT ?= 900
define check_variant
check-$(1): $(chosen:%=build/$(1)/%) $(if $(T),,$(call programs,$(1)))
	@$$(call test_env,$(1)) $(support)/run $(if $(T),,$(scripts)) \
	    $(chosen:%=build/$(1)/%)
endef
$(foreach v,asan ubsan tsan,$(eval $(call check_variant,$(v))))

# The tests with the most threads again, for each seed of YIELDS.
YIELDS ?= 1 2 3
yielding := accumulator_threads_test batch_result_test buffer_pool_test \
    cq_test public_callback_test public_close_test \
    public_queue_test public_story_test shared_small_test
.PHONY: check-yields
check-yields:
	@for seed in $(YIELDS); do echo "KP_YIELDS=$$seed"; \
	    KP_YIELDS=$$seed $(MAKE) --no-print-directory check-tsan \
	        T='$(yielding)' || exit 1; done

# valgrind runs one thread at a time and each twenty times slower: not those
# that only repeat what others do over much data or many seeds, nor the one that
# forks: in a child, what the parent's other threads held looks lost.
not_valgrind := golden_message_test codec_test sim_test world_test \
    public_failmalloc_test broker_cluster_test memory_pressure_world_test \
    accumulator_threads_test public_process_test failcalls_test \
    public_faults_test public_guest_test matrix_produce_test \
    matrix_requests_test replay_test
VALGRIND := valgrind -q --error-exitcode=99 --leak-check=full \
    --errors-for-leak-kinds=definite,indirect \
    --show-leak-kinds=definite,indirect \
    --fair-sched=yes --max-threads=5000
grinded := $(if $(T),$(chosen),$(filter-out \
    $(addprefix %/,$(not_valgrind)),$(tests)))
check-valgrind: $(grinded:%=build/debug/%)
	@$(call test_env,debug) CK_FORK=no RUN_TIMEOUT=1100 \
	    RUN_WRAP='$(VALGRIND)' $(support)/run $^

# One program under a name for each target.  FUZZ_SECONDS: for each.  T= as
# above: only these targets.
FUZZ_SECONDS ?= 10
fuzzers := $(addprefix build/fuzz/fuzz-,$(or $(T),$(fuzz_targets)))
.PHONY: fuzz check-fuzz
fuzz: $(fuzzers)
build/fuzz/fuzz: $(fuzz_engine:%.c=build/fuzz/%.o) build/fuzz/libfuzz.a \
    build/fuzz/libsupport.a build/fuzz/libbroker.a build/fuzz/libkp.a
	$(call link,fuzz,-fsanitize=fuzzer)
build/fuzz/fuzz-%: build/fuzz/fuzz
	@ln -f $< $@
check-fuzz: $(fuzzers)
	@srcdir='$(srcdir)' FUZZ_SECONDS='$(FUZZ_SECONDS)' \
	    $(srcdir)/test/fuzz/run $(fuzzers)

# The simulator, test/sim/run, with the library's own assertions in it.
.PHONY: sim
sim: build/debug/test/sim/run
	@mkdir -p test/sim
	@ln -f $< test/sim/run

# Every way of every system call, in each kind of life; `make check` has a short
# version of it.  One process a case, as each starts a broker.
.PHONY: check-failcalls
check-failcalls: build/asan/test/failcalls/failcalls_test \
    build/asan/test/failmalloc/world_test
	@ASAN_OPTIONS='detect_stack_use_after_return=1' KP_FAILCALLS=long \
	    RUN_TIMEOUT=900 $(support)/run $^

# The schedule explorer.  What the explored files call besides stands in the
# debug build; SCHEDULES= are its options.
$(explorer): $(sched_src:%.c=build/schedules/%.o) \
    $(explored_src:%.c=build/schedules/%.o) build/debug/libsupport.a \
    build/debug/libbroker.a build/debug/libkp.a
	$(call link,schedules)
.PHONY: check-schedules
check-schedules: $(explorer)
	@$< $(SCHEDULES)

# Does it find what it is there to find?  Each fault of test/sim/planted.
.PHONY: planted check-planted
planted: build/planted/test/sim/run
check-planted: build/planted/test/sim/run
	@$< --planted $(srcdir)/test/sim/planted

# Real Kafka: the script starts and stops the brokers.  T= as above, without
# the folder.
.PHONY: check-kafka
check-kafka: deps-kafka lib $(call programs,plain)
	@$(kafka_jars) CC='$(CC)' KP_BUILD='$(CURDIR)/build/plain' \
	    $(srcdir)/test/integration/run $(T)

# The same brokers under harm.  RUNS= and SEED= as the script's options.
.PHONY: check-chaos
check-chaos: deps-kafka lib
	@$(kafka_jars) CC='$(CC)' KP_BUILD='$(CURDIR)/build/plain' \
	    $(srcdir)/test/chaos/run $(if $(RUNS),--runs $(RUNS)) \
	    $(if $(SEED),--seed $(SEED))

.PHONY: demo
demo: $(broker) perf/multi_thread_send
	@$(call test_env,plain) $(support)/demo

endif
