# Names for what scripts/ does.
.PHONY: demo test mutants spark-diff

demo:
	scripts/demo.sh

test:
	scripts/test.sh

mutants:
	scripts/mutants.sh $(ARGS)

spark-diff:
	scripts/spark-diff.sh $(ARGS)
