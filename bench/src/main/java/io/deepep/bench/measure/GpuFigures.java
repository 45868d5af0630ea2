package io.deepep.bench.measure;

import com.fasterxml.jackson.annotation.JsonInclude;

/**
 * What a record says besides when the ranks live on GPUs. Bandwidths are bytes per second and GPU,
 * one direction: the rows that the ranks of the busiest GPU send to other ranks or receive from
 * them, padding of rows included, rows that stay at their rank not. Ranks of several hosts have no
 * bare copy, and leave out what is said of one.
 *
 * @param gpu model
 * @param gpus GPUs in use; fewer than ranks where these share them, and then rows between ranks of
 *     one GPU cross no link
 * @param processes that the ranks are spread over
 * @param driver CUDA version of the driver, and its own where it tells
 * @param linkBytes bytes of those rows
 * @param linkBytesPerSecond at the median
 * @param ceilingBytesPerSecond the best that a bare copy reached in this run
 * @param ceilingShare of it
 * @param sameSmsCeilingBytesPerSecond what a bare copy in the same direction reached with as many
 *     multiprocessors
 * @param sameSmsCeilingShare of it
 * @param callP50Micros the whole call on the host, median of the slowest rank
 * @param enqueueP50Micros until an asynchronous call returns, median of the slowest rank
 * @param deviceBytesPerRank device memory that an open buffer takes
 * @param emptyKernelMicros low latency: an empty kernel of the operation's blocks and threads,
 *     between the same events; otherwise left out
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record GpuFigures(
        String gpu,
        int gpus,
        int processes,
        String driver,
        long linkBytes,
        double linkBytesPerSecond,
        Double ceilingBytesPerSecond,
        Double ceilingShare,
        Double sameSmsCeilingBytesPerSecond,
        Double sameSmsCeilingShare,
        double callP50Micros,
        double enqueueP50Micros,
        long deviceBytesPerRank,
        Double emptyKernelMicros) {}
