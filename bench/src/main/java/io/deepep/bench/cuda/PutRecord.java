package io.deepep.bench.cuda;

import com.fasterxml.jackson.annotation.JsonInclude;

/**
 * One figure of {@code bench put}.
 *
 * @param transport what carried the puts
 * @param pattern {@code bandwidth}: rank 0 to rank 1; {@code latency}: one way between them; {@code
 *     sparse}: every rank to every other and back
 * @param messageBytes of a put; of a row that is dispatched
 * @param ranks that took part
 * @param gpus that they had
 * @param sms blocks of each rank
 * @param messages that a rank put
 * @param p50Micros of all of them, or of one message where the pattern is latency
 * @param p99Micros the same, 99th percentile; left out where the pattern is latency, whose times
 *     are means of many messages
 * @param bytesPerSecond that left a rank at the median
 * @param gpu model
 * @param driver CUDA version of the driver, and its own where it tells
 * @param version of the library
 * @param commit of the sources
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record PutRecord(
        String transport,
        String pattern,
        long messageBytes,
        int ranks,
        int gpus,
        int sms,
        long messages,
        double p50Micros,
        Double p99Micros,
        double bytesPerSecond,
        String gpu,
        String driver,
        String version,
        String commit) {}
