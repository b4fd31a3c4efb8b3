# Names for what scripts/ does.
.PHONY: demo test mutants spark-diff server-load

demo:
	scripts/demo.sh

test:
	scripts/test.sh

mutants:
	scripts/mutants.sh $(ARGS)

spark-diff:
	scripts/spark-diff.sh $(ARGS)

# Twenty tenants with ten queries each for ten minutes, and sixty kills; another scale with LOAD.
LOAD ?= 20 10 600 60 20
server-load:
	scripts/build-guests.sh --lang rust ledger flights
	TIDEMILL_LOAD="$(LOAD)" cargo test --release --locked -p tidemill-host --test all server::load -- --nocapture
