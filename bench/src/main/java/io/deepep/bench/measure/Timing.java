package io.deepep.bench.measure;

/**
 * How long an operation took, each sample that of the slowest rank.
 *
 * @param work from the start of the first kernel to the end of the last one; on the host backend
 *     the whole call
 * @param calls the whole call as the calling thread sees it, results final
 * @param enqueues until an asynchronous call returns, results perhaps not final; on the host
 *     backend the whole call
 */
public record Timing(Samples work, Samples calls, Samples enqueues) {}
