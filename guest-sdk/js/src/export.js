// What the author's module exports: a class and the schemas of its rows.

import { codecOf } from "./codec/codec.js";
import { printColumns } from "./ddl.js";
import { INVALID_PROCESSOR, ProcessorError } from "./errors.js";

const OPTIONS = new Set(["output", "key", "input", "initialState", "bigint"]);
const definitions = new Map();

/** Makes a class the processor of its component. Codecs are made here: at build time, once for all instances. */
export function exportProcessor(Processor, options) {
  if (typeof Processor !== "function") invalid("the first argument of exportProcessor is a class");
  const { name } = Processor;
  if (typeof Processor.prototype?.handleInputRows !== "function") invalid(`the class ${name} has no method handleInputRows`);
  for (const option of Object.keys(options ?? {})) {
    if (!OPTIONS.has(option)) invalid(`exportProcessor has no option \`${option}\`; it has ${[...OPTIONS].join(", ")}`);
  }
  const { output, key, input, initialState, bigint = "number" } = options ?? {};
  if (output === undefined) invalid(`exportProcessor(${name}, { output: "..." }): the schema of what it emits is missing`);
  if (bigint !== "number" && bigint !== "bigint") invalid('the option `bigint` is "number" or "bigint"');
  definitions.set(Processor, {
    Processor,
    bigint,
    output: codecOf(output, bigint),
    key: wanted(key, bigint),
    input: wanted(input, bigint),
    initialState: wanted(initialState, bigint),
  });
}

/** The one processor of a component. */
export function exportedProcessor() {
  if (definitions.size !== 1) {
    invalid(
      definitions.size === 0
        ? "no processor is exported: end the module with exportProcessor(YourClass, { output: \"...\" })"
        : `a component has one processor, and this one exports ${definitions.size}: ${[...definitions.keys()].map(({ name }) => name).join(", ")}`,
    );
  }
  return [...definitions.values()][0];
}

/** What a class was exported with. */
export function definitionOf(Processor) {
  return definitions.get(Processor) ?? invalid(`the class ${Processor?.name} is not exported: end its module with exportProcessor(...)`);
}

/** The columns that a processor wants, in DDL. A single type takes the name of the query's first column. */
export function wantedColumns(codec, given, what) {
  const { columns, single } = codec.schema;
  if (!single) return printColumns(columns);
  const first = given.columns[0];
  if (first === undefined) invalid(`the ${what} has no columns, and the processor wants one`);
  return printColumns([{ ...columns[0], name: first.name }]);
}

function wanted(ddl, bigint) {
  return ddl === undefined ? undefined : codecOf(ddl, bigint);
}

function invalid(problem) {
  throw new ProcessorError(INVALID_PROCESSOR, problem);
}
