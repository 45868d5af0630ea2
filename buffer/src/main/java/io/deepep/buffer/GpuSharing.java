package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.cuda.CudaDevice;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Which ranks share a GPU, be they threads or processes. They share its multiprocessors: a kernel
 * that waits for a peer keeps its own while it waits, so the peer's must fit beside it.
 *
 * @param mostRanksPerGpu the same on every rank, so that all come to the same verdict about a
 *     configuration
 */
record GpuSharing(int mostRanksPerGpu) {
    /** The smallest number of multiprocessors that a rank can work with. */
    private static final int FEWEST_SMS = 2;

    /** What a rank tells of its GPU. */
    record Gpu(String uuid, int numSms, String name) {
        private byte[] encode() {
            return (uuid + " " + numSms + " " + name).getBytes(StandardCharsets.UTF_8);
        }

        private static Gpu decode(byte[] message) {
            String text = new String(message, StandardCharsets.UTF_8);
            int first = text.indexOf(' ');
            int second = text.indexOf(' ', first + 1);
            int sms = Integer.parseInt(text.substring(first + 1, second));
            return new Gpu(text.substring(0, first), sms, text.substring(second + 1));
        }
    }

    /**
     * Meets the other ranks: collective.
     *
     * @throws IllegalArgumentException on every rank, if the kernels of the ranks on one GPU do not
     *     fit there at once
     */
    static GpuSharing agree(BufferOptions options, CudaDevice device) {
        Gpu own = new Gpu(device.uuid(), device.numSms(), device.name());
        List<Gpu> gpus =
                options.communicator().allGather(own.encode(), options.timeout()).stream()
                        .map(Gpu::decode)
                        .toList();
        int numRanks = gpus.size();
        return options.normal() == null
                ? of(gpus, Map.of())
                : of(
                        gpus,
                        Map.of(
                                "dispatchConfig",
                                numSms(
                                        options.dispatchConfig(),
                                        Config.recommendedForDispatch(numRanks)),
                                "combineConfig",
                                numSms(
                                        options.combineConfig(),
                                        Config.recommendedForCombine(numRanks))));
    }

    /** The recommended number shrinks to what there is, another one is the user's choice. */
    private static int numSms(Config config, Config recommended) {
        return config.equals(recommended) ? FEWEST_SMS : config.numSms();
    }

    /**
     * Judges a placement.
     *
     * @param gpus of every rank
     * @param numSms that each rank needs at once, by what asks for them
     */
    static GpuSharing of(List<Gpu> gpus, Map<String, Integer> numSms) {
        Map<Gpu, List<Integer>> ranksByGpu = new LinkedHashMap<>();
        for (int rank = 0; rank < gpus.size(); rank++) {
            ranksByGpu.computeIfAbsent(gpus.get(rank), ignored -> new ArrayList<>()).add(rank);
        }
        int most = 0;
        for (Map.Entry<Gpu, List<Integer>> entry : ranksByGpu.entrySet()) {
            new TreeMap<>(numSms)
                    .forEach(
                            (name, number) ->
                                    requireRoom(entry.getKey(), entry.getValue(), name, number));
            most = Math.max(most, entry.getValue().size());
        }
        return new GpuSharing(most);
    }

    private static void requireRoom(Gpu gpu, List<Integer> ranks, String name, int number) {
        int room = gpu.numSms() / ranks.size() / 2 * 2;
        if (number > room) {
            throw new IllegalArgumentException(
                    name
                            + " needs "
                            + number
                            + " multiprocessors for each of the ranks "
                            + ranks
                            + " that share one "
                            + gpu.name()
                            + " with "
                            + gpu.numSms()
                            + "; "
                            + (room < FEWEST_SMS
                                    ? "put fewer ranks on the GPU"
                                    : "lower Config.numSms to "
                                            + room
                                            + " or less, or put fewer ranks on the GPU"));
        }
    }
}
