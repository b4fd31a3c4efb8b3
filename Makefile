# Names for what scripts/ does. `make test` and `make demo` are what the README tells of.
.PHONY: demo test spark-diff

demo:
	scripts/demo.sh

test:
	scripts/test.sh

spark-diff:
	scripts/spark-diff.sh $(ARGS)
