/** Measuring on GPUs: a common start, time by events, and what a bare copy between them reaches. */
package io.deepep.bench.cuda;
