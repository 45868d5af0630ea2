/** Disturbs ranks at every phase of a verified workload, and counts what became of the others. */
package io.deepep.bench.chaos;
